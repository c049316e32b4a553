package rules

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/knowledge/megatron"
)

// A Rule is one row of the rules table, as a person reads it.
type Rule struct {
	// ID is stable and readable, such as "heads-multiple-of-tp".
	ID    string `json:"id"`
	Topic string `json:"topic"`
	// Condition says when the rule applies, Requirement what must hold then,
	// Reason why, and Remedy what to do where it does not.
	Condition   lang.Text `json:"condition"`
	Requirement lang.Text `json:"requirement"`
	Reason      lang.Text `json:"reason"`
	Remedy      lang.Text `json:"remedy"`
	Severity    Severity  `json:"severity"`
	// Stage is when a job that breaks the rule dies.
	Stage string `json:"stage,omitempty"`
	// Flags are what the rule looks at; the first is what to change.
	Flags []string `json:"flags,omitempty"`
	// Effect says what following the remedy does to the run.
	Effect string `json:"effect,omitempty"`
	// Source is the check in Megatron's code or the document that states the rule.
	Source string `json:"source"`
	// Since and Until are the first and the last release with the check; empty
	// stands for the oldest and the newest that are known.
	Since string `json:"since,omitempty"`
	Until string `json:"until,omitempty"`
}

// What a fix does: it leaves the loss curve alone, or it moves it.
const (
	PerformanceOnly   = "performance only"
	ChangesExperiment = "changes the experiment"
)

// cfg is what a row looks at: Megatron's effective values.
type cfg = megatron.Config

// A row is a rule and the code that judges it. broken reports that a launch
// breaks the rule; fix, where given, computes the remedy for that launch.
type row struct {
	id, topic string
	// flags are names with a blank between; the first is the problem's field.
	flags    string
	source   string
	stage    stage
	severity Severity // Error where empty
	effect   string   // PerformanceOnly where empty
	when     lang.Text
	must     lang.Text
	why      lang.Text
	do       lang.Text
	broken   func(*cfg) bool
	fix      func(*cfg) lang.Text
	// after are the rows of which this one is only a consequence when both are broken.
	after string
	// at is the line of arguments.py from which a check elsewhere is called.
	at int
	// until is the last release that makes the check; zero for one that the
	// newest still makes. Where each release makes it stands in sources.csv.
	until megatron.Release

	names []string
	order int
}

// t is a text in both languages; an empty Chinese half means that the first
// one is symbols only and reads the same.
func t(en, zh string) lang.Text { return lang.Text{EN: en, ZH: zh} }

// Megatron's files, as the start of a source.
const (
	inArgs     = "megatron/training/arguments.py:"
	inConfig   = "megatron/core/transformer/transformer_config.py:"
	inParallel = "megatron/core/model_parallel_config.py:"
	inState    = "megatron/core/parallel_state.py:"
	inBatch    = "megatron/core/num_microbatches_calculator.py:"
	inSchedule = "megatron/core/optimizer_param_scheduler.py:"
	inLayout   = "megatron/core/transformer/pipeline_parallel_layer_layout.py:"
	inBlock    = "megatron/core/transformer/transformer_block.py:"
	inOptim    = "megatron/core/optimizer/optimizer_config.py:"
	inOptimize = "megatron/core/optimizer/__init__.py:"
	inDDP      = "megatron/core/distributed/distributed_data_parallel_config.py:"
	inDeterm   = "megatron/training/determinism.py:"
	inGraph    = "megatron/core/transformer/cuda_graph_config.py:"
	inHybrid   = "megatron/core/models/hybrid/hybrid_layer_allocation.py:"
	inPipeline = "megatron/core/pipeline_parallel/schedules.py:"
	inVariant  = "megatron/core/models/gpt/experimental_attention_variant_module_specs.py:"
	inUtils    = "megatron/training/argument_utils.py:"
	inInit     = "megatron/training/initialize.py:"
)

// A stage is when Megatron makes a check; stages run in this order.
type stage int

const (
	parsing stage = iota
	validating
	batching
	configuring
	holding
	grouping
	building
	optimizing
	stepping
	advising // not Megatron's: a document's rule
)

var stageNames = [...]string{
	"argparse", "validate_args", "microbatches", "transformer_config", "containers",
	"parallel_state", "model_build", "optimizer", "first_step", "",
}

// stageOf is the stage in which the checks of a file run; where a file is
// called from validate_args, the row says so with at.
func stageOf(r row) stage {
	if r.stage != parsing {
		return r.stage
	}
	if r.at > 0 || strings.HasPrefix(r.source, inArgs) {
		return validating
	}
	for _, f := range []struct {
		prefix string
		stage  stage
	}{
		{inConfig, configuring},
		{inParallel, configuring},
		{inUtils, configuring},
		{inLayout, configuring},
		{inBatch, batching},
		{inOptim, holding},
		{inDDP, holding},
		{inState, grouping},
		{inInit, grouping},
		{inBlock, building},
		{inHybrid, building},
		{inOptimize, optimizing},
		{inSchedule, optimizing},
		{inPipeline, stepping},
	} {
		if strings.HasPrefix(r.source, f.prefix) {
			return f.stage
		}
	}
	return advising
}

// orderOf sorts rows as Megatron asks them, so that the first problem told is
// the one that Megatron would stop at.
func orderOf(r row) int {
	line := r.at
	if line == 0 {
		_, number, _ := strings.Cut(r.source, ".py:")
		line, _ = strconv.Atoi(number)
	}
	switch {
	case strings.HasPrefix(r.source, inUtils): // before the object is made
	case strings.HasPrefix(r.source, inParallel) && r.at == 0:
		line += 1000 // the base class, first thing
	case strings.HasPrefix(r.source, inLayout):
		line = 2290 // called from the model configuration
	}
	return int(stageOf(r))*1_000_000 + line*10
}

// table is every row in the order in which Megatron asks them.
var table = sync.OnceValue(func() []row {
	rows := slices.Concat(
		parallelRows(), modelRows(), activationRows(), batchRows(), scheduleRows(), connectionRows(), fsdpRows(),
		sequenceRows(), pipelineRows(), hybridRows(), expertRows(), expertOverlapRows(), precisionRows(), optimizerRows(),
		graphRows(), recomputeRows(), inferenceRows(), checkpointRows(), overlapRows(), dataRows(),
		noteRows(), launchRows(), aroundRows(), imageRows(), olderRows(),
	)
	for i := range rows {
		r := &rows[i]
		r.names = strings.Fields(r.flags)
		r.stage = stageOf(*r)
		r.order = orderOf(*r)
		r.severity = cmp.Or(r.severity, Error)
		r.effect = cmp.Or(r.effect, PerformanceOnly)
	}
	slices.SortStableFunc(rows, func(a, b row) int { return cmp.Compare(a.order, b.order) })
	return rows
})

// Table returns every rule, topic by topic, and within a topic in the order in
// which Megatron asks them.
func Table() []Rule { return slices.Clone(listed()) }

var listed = sync.OnceValue(func() []Rule {
	rules := slices.Clone(parserRules)
	for _, r := range table() {
		rules = append(rules, r.rule())
	}
	var topics []string
	for _, r := range rules {
		if !slices.Contains(topics, r.Topic) {
			topics = append(topics, r.Topic)
		}
	}
	slices.SortStableFunc(rules, func(a, b Rule) int {
		return cmp.Compare(slices.Index(topics, a.Topic), slices.Index(topics, b.Topic))
	})
	return rules
})

// Explain returns the rule with the id.
func Explain(id string) (Rule, bool) {
	for _, r := range listed() {
		if r.ID == id {
			return r, true
		}
	}
	return Rule{}, false
}

func (r row) rule() Rule {
	since, until := r.span()
	named := func(v megatron.Release) string {
		if v == 0 {
			return ""
		}
		return v.String()
	}
	return Rule{
		Since: named(since), Until: named(until),
		ID: r.id, Topic: r.topic, Condition: r.when, Requirement: r.must, Reason: r.why, Remedy: r.do,
		Severity: r.severity, Stage: stageNames[r.stage], Flags: r.names, Effect: r.effect, Source: r.source,
	}
}

// topics sets the topic of every row of a list.
func topics(topic string, rows []row) []row {
	for i := range rows {
		if rows[i].topic == "" {
			rows[i].topic = topic
		}
	}
	return rows
}

// multiple reports whether a is a multiple of b; nothing is a multiple of 0.
func multiple(a, b int) bool { return b != 0 && a%b == 0 }
