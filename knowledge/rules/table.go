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

// A Rule is the public form of one row of the rules table.
type Rule struct {
	// ID is stable and readable, such as "heads-multiple-of-tp".
	ID    string `json:"id"`
	Topic string `json:"topic"`
	// Condition says when the rule applies, Requirement what must be true then,
	// Reason why, and Remedy how to repair a launch that breaks the rule.
	Condition   lang.Text `json:"condition"`
	Requirement lang.Text `json:"requirement"`
	Reason      lang.Text `json:"reason"`
	Remedy      lang.Text `json:"remedy"`
	Severity    Severity  `json:"severity"`
	// Stage is the stage of Megatron's start in which a job that breaks the rule
	// fails.
	Stage string `json:"stage,omitempty"`
	// Flags are the rule's inputs. The first is the one to change.
	Flags []string `json:"flags,omitempty"`
	// Effect is the remedy's effect on the run: PerformanceOnly or
	// ChangesExperiment.
	Effect string `json:"effect,omitempty"`
	// Source is the check in Megatron's code or the document that states the rule.
	Source string `json:"source"`
	// Since and Until are the first and the last release with the check; empty
	// means the oldest and the newest known release.
	Since string `json:"since,omitempty"`
	Until string `json:"until,omitempty"`
}

// The effects of a fix: PerformanceOnly keeps the loss curve, ChangesExperiment
// changes it.
const (
	PerformanceOnly   = "performance only"
	ChangesExperiment = "changes the experiment"
)

// cfg is the input of a row: Megatron's effective values.
type cfg = megatron.Config

// A row is a rule and the code that checks it. broken reports whether a launch
// breaks the rule. fix is optional and computes the remedy for that launch.
type row struct {
	id, topic string
	// flags are names separated by blanks. The first is the problem's field.
	flags    string
	source   string
	stage    stage
	severity Severity // Error where empty
	effect   string   // PerformanceOnly where empty
	when     lang.Text
	must     lang.Text
	why      lang.Text
	do       lang.Text
	asked    bool // the message quotes the given values of its flags, not those that Megatron makes of them
	broken   func(*cfg) bool
	fix      func(*cfg) lang.Text
	// after are ids of rows, separated by blanks. Where one of them is broken too,
	// this row is only a consequence.
	after string
	// at is the line of arguments.py that calls a check in another file.
	at int
	// until is the last release with the check; zero means that the newest release
	// has it. sources.csv names the check's line in each release.
	until megatron.Release

	names []string
	order int
}

// t returns a text in both languages. An empty Chinese text means that the English
// one consists of symbols only and serves both.
func t(en, zh string) lang.Text { return lang.Text{EN: en, ZH: zh} }

// Megatron's files, each as the prefix of a source.
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

// A stage is a phase of Megatron's start that makes checks. Megatron runs the
// stages in this order; stageNames has their public names.
type stage int

const (
	parsing stage = iota
	validating
	batching
	configuring
	holding // creation of the optimizer's and DDP's configuration objects
	grouping
	building
	optimizing
	stepping
	advising // a rule of a document, which Megatron does not check
)

var stageNames = [...]string{
	"argparse", "validate_args", "microbatches", "transformer_config", "containers",
	"parallel_state", "model_build", "optimizer", "first_step", "",
}

// stageOf returns the stage in which Megatron makes the row's check. The source's
// file decides, unless validate_args calls the file: then the row sets at.
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

// orderOf returns a key that sorts rows in the order of Megatron's checks, so that
// the first reported problem is the one at which Megatron would stop.
func orderOf(r row) int {
	line := r.at
	if line == 0 {
		_, number, _ := strings.Cut(r.source, ".py:")
		line, _ = strconv.Atoi(number)
	}
	switch {
	case strings.HasPrefix(r.source, inUtils): // runs before the constructor
	case strings.HasPrefix(r.source, inParallel) && r.at == 0:
		line += 1000 // the base class comes first
	case strings.HasPrefix(r.source, inLayout):
		line = 2290 // called from the model configuration
	}
	return int(stageOf(r))*1_000_000 + line*10
}

// table returns every row in the order of Megatron's checks.
var table = sync.OnceValue(func() []row {
	rows := slices.Concat(
		parallelRows(), splitRows(), modelRows(), activationRows(), batchRows(), scheduleRows(), connectionRows(), fsdpRows(),
		sequenceRows(), pipelineRows(), hybridRows(), expertRows(), expertOverlapRows(), precisionRows(), optimizerRows(),
		graphRows(), recomputeRows(), inferenceRows(), checkpointRows(), overlapRows(), dataRows(),
		noteRows(), launchRows(), reinforcementRows(), aroundRows(), imageRows(), olderRows(),
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

// Table returns every rule, topic by topic, and within a topic in the order of
// Megatron's checks.
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
	i := slices.IndexFunc(listed(), func(r Rule) bool { return r.ID == id })
	if i < 0 {
		return Rule{}, false
	}
	return listed()[i], true
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

// topics sets the topic of every row that has none.
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
