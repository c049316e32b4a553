package knowledge

import (
	_ "embed"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/knowledge/cards"
	"github.com/megatron-ops/megatron-ops/knowledge/rules"
)

//go:embed rules-asked.txt
var rulesAsked string

// known are the cards and, behind them, the rules that people run into.
func known() []cards.Card { return append(cards.All(), ruleCards()...) }

// ruleCards are the rules of rules-asked.txt as cards, worded by the rules table.
func ruleCards() []cards.Card {
	var list []cards.Card
	at := map[string]int{}
	for line := range strings.Lines(rulesAsked) {
		line = strings.TrimSuffix(line, "\n")
		id, asks, ok := strings.Cut(line, ": ")
		if !ok || line[0] == '#' {
			continue
		}
		if id, denies := strings.CutSuffix(id, "!"); denies {
			list[at[id]].Denies = strings.Split(asks, " | ")
			continue
		}
		r, ok := rules.Explain(id)
		if !ok {
			continue // this package's tests find it
		}
		at[id] = len(list)
		list = append(list, ruleCard(r, strings.Split(asks, " | ")))
	}
	return list
}

// ruleCard says what a rule demands, then when, why, and what to do.
func ruleCard(r rules.Rule, asks []string) cards.Card {
	text := func(l lang.Lang, when, when2, why, do, at, stop string) string {
		b := r.Requirement.In(l)
		if l == lang.EN {
			b = upper(b)
		}
		if c := r.Condition.In(l); c != "always" && c != "任何情况" && c != "" {
			b += when + c + when2
		}
		b += stop + why + r.Reason.In(l) + stop + do + r.Remedy.In(l)
		return b + stop + at + "`" + r.Source + "`" + strings.TrimSpace(stop)
	}
	return cards.Card{
		ID:    "rule." + r.ID,
		Title: lang.Text{EN: upper(r.Requirement.EN), ZH: r.Requirement.In(lang.ZH)},
		Skill: "parallel-layout",
		URL:   "https://github.com/NVIDIA/Megatron-LM/blob/main/" + strings.SplitN(r.Source, ":", 2)[0],
		Asks:  asks,
		Text: lang.Text{
			EN: text(lang.EN, " (when: ", ")", "Reason: ", "Fix: ", "Checked at ", ". "),
			ZH: text(lang.ZH, "(条件:", ")", "原因:", "改法:", "检查处:", "。"),
		},
	}
}

// upper begins a sentence, unless with a flag.
func upper(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}
