package answers

import (
	"context"
	"slices"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/view"
	"github.com/megatron-ops/megatron-ops/knowledge/rules"
)

// RulesIn selects rows of the rules table.
type RulesIn struct {
	Topic string `json:"topic,omitempty" help:"only this topic" zh:"只列出该主题"`
	Find  string `json:"find,omitempty" arg:"" optional:"" text:"" help:"only rules that hold this word: a flag, an id" zh:"只列出含该词的规则：参数名或规则 id"`
}

// RulesOut holds the rows.
type RulesOut struct {
	Rules []rules.Rule `json:"rules"`
}

// Rules returns the operation rules.
func Rules() ops.Op {
	return ops.Define(ops.Op{
		Name: "rules", Effect: ops.Read, Toolset: ops.KnowledgeSet, Closed: true,
		Summary: lang.Text{EN: "the rules table: what a launch must satisfy, and where Megatron checks it", ZH: "规则表：启动必须满足的条件，以及 Megatron 的检查位置"},
		Help:    lang.Text{EN: "Use to look a rule up by topic, flag or word. To judge a job use plan.", ZH: "按主题、参数或关键词查规则。检查作业请用 plan。"},
		Example: "rules heads",
	}, listRules)
}

func listRules(_ context.Context, _ *ops.Call, in RulesIn) (RulesOut, error) {
	out := RulesOut{Rules: []rules.Rule{}}
	var topics []string
	for _, r := range rules.Table() {
		if !slices.Contains(topics, r.Topic) {
			topics = append(topics, r.Topic)
		}
		held := strings.ToLower(strings.Join([]string{
			r.ID, r.Condition.EN, r.Requirement.EN, r.Condition.ZH, r.Requirement.ZH,
			strings.Join(r.Flags, " "),
		}, " "))
		if (in.Topic == "" || strings.EqualFold(r.Topic, in.Topic)) && strings.Contains(held, strings.ToLower(in.Find)) {
			out.Rules = append(out.Rules, r)
		}
	}
	if len(out.Rules) == 0 {
		return out, ops.NotFoundError("find",
			lang.Text{EN: "no rule has %q", ZH: "没有规则与 %q 相符"}.With(strings.TrimSpace(in.Topic+" "+in.Find)),
			lang.Text{EN: "topics: %s", ZH: "主题：%s"}.With(strings.Join(topics, ", ")))
	}
	return out, nil
}

// View shows one line for each rule, under its topic.
func (o RulesOut) View(l lang.Lang) view.Doc {
	var d view.Doc
	for _, r := range o.Rules {
		if n := len(d.Sections); n == 0 || d.Sections[n-1].Heading != r.Topic {
			d.Sections = append(d.Sections, view.Section{Heading: r.Topic})
		}
		s := &d.Sections[len(d.Sections)-1]
		text := r.Requirement.In(l)
		if when := r.Condition.In(l); when != "" {
			text = when + " → " + text
		}
		s.Facts = append(s.Facts, view.Fact{Name: r.ID, Value: text})
	}
	return d
}
