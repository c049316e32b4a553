package answers

import (
	"embed"
	"strings"
	"sync"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/knowledge/cards"
	"github.com/megatron-ops/megatron-ops/knowledge/rules"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/megatron-ops/megatron-ops/slurm/job"
)

//go:embed about_this_program.md
var ownPage embed.FS

// About returns the cards about this program: its set-up, and one card for each
// operation, failure class, rule and field of a specification.
func About(operations func() []ops.Op) func() []cards.Card {
	return sync.OnceValue(func() []cards.Card {
		list, err := cards.Load(ownPage)
		if err != nil {
			panic("ops: about_this_program.md: " + err.Error()) // a test loads this page
		}
		for _, o := range operations() {
			list = append(list, card(lang.Text{EN: "operation", ZH: "操作"}, o.Name, "operations.md",
				lang.Text{EN: o.Summary.EN + ". " + o.Help.EN + " Example: `megatron-ops " + o.Example + "`", ZH: o.Summary.ZH + "。" + o.Help.ZH +
					" 例:`megatron-ops " + o.Example + "`"},
				"what does megatron-ops "+o.Name+" do", "megatron-ops "+o.Name+" 怎么用"))
		}
		for _, k := range outcome.Classes() {
			t := lang.Text{EN: k.Name.EN + " (" + k.Who.EN + "; worth a retry: " + string(k.Retry) + ").", ZH: k.Name.ZH + "(" + k.Who.ZH +
				";值得重试:" + string(k.Retry) + ")。"}
			for _, a := range k.Advice {
				t.EN, t.ZH = t.EN+" "+a.EN, t.ZH+a.ZH
			}
			list = append(list, card(lang.Text{EN: "failure class", ZH: "故障类别"}, k.ID, "failures.md", t, "failure class "+k.ID+" meaning and retry",
				"故障类别 "+k.ID+" 是什么"))
		}
		for _, r := range rules.Table() {
			t := lang.Text{EN: r.Requirement.EN + ": " + r.Reason.EN + ". " + r.Remedy.EN, ZH: r.Requirement.ZH + ":" + r.Reason.ZH + "。" + r.Remedy.ZH}
			list = append(list, card(lang.Text{EN: "rule", ZH: "规则"}, r.ID, "rules.md", t, "rule "+r.ID, "规则 "+r.ID))
		}
		for _, f := range job.Fields() {
			t := lang.Text{EN: f.Doc.EN + "; for example `" + f.Example + "`", ZH: f.Doc.ZH + ";例 `" + f.Example + "`"}
			list = append(list, card(lang.Text{EN: "field", ZH: "字段"}, f.Name, "specification.md", t, "what is the field "+f.Name+" in job.yaml",
				"job.yaml 里的字段 "+f.Name))
		}
		return list
	})
}

// card returns the card of one table row.
func card(kind lang.Text, name, page string, says lang.Text, asks ...string) cards.Card {
	head := func(l lang.Lang) string { return "`" + name + "` (" + kind.In(l) + "): " }
	return cards.Card{
		ID: kind.EN + "/" + name, Title: lang.Text{EN: kind.EN + " " + name, ZH: name}, Skill: "megatron-ops",
		URL: "https://github.com/megatron-ops/megatron-ops/blob/main/docs/" + page, Asks: append(asks, name, strings.ReplaceAll(name, "_", " ")),
		Text: lang.Text{EN: head(lang.EN) + says.EN, ZH: head(lang.ZH) + says.ZH},
	}
}
