package library

import (
	"fmt"
	"io/fs"
	"regexp"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/knowledge/cards"
	"github.com/megatron-ops/megatron-ops/knowledge/rules"
)

// messagesFile lists what Megatron says where it stops, one line a rule: people
// paste it, and the rule knows what to do.
const messagesFile = "megatron-messages.txt"

// Checks begins the ids of the cards of Megatron's messages.
const Checks = "check."

// checkedAt is the commit of Megatron-LM whose lines the rules name.
const checkedAt = "https://github.com/NVIDIA/Megatron-LM/blob/d98e8a64ddf34856e74b24714e3bedb2f5a39553/"

// filledIn stands in a message for what the program fills in.
var filledIn = regexp.MustCompile(`\s*['"(]*…['")]*\s*`)

// stopped is a message's text, for the rules that share it.
var stopped = lang.Text{EN: `Megatron stops with "%s".`, ZH: `Megatron 报 "%s" 并停止。`}

// told is one of the rules: when it holds, what must be, why, and what to do.
func told(r rules.Rule) lang.Text {
	text := lang.Text{EN: "%s: %s (%s). To do: %s.", ZH: "%s：%s（%s）。做法：%s。"}
	when := r.Condition
	if when.ZH == "" {
		when = lang.Same(when.EN)
	}
	return text.With(when, r.Requirement, r.Reason, r.Remedy)
}

// messages are the cards of Megatron's messages.
func messages(data fs.FS) ([]cards.Card, error) {
	text, err := fs.ReadFile(data, messagesFile)
	if err != nil {
		return nil, err
	}
	byID := map[string]rules.Rule{}
	for _, r := range rules.Table() {
		byID[r.ID] = r
	}
	var list []cards.Card
	at := map[string]int{}
	for line := range strings.Lines(string(text)) {
		if line[0] == '#' {
			continue
		}
		id, message, _ := strings.Cut(strings.TrimSpace(line), "\t")
		r, ok := byID[id]
		if !ok || message == "" {
			return nil, fmt.Errorf("%s: %q: no rule of that id, or no message", messagesFile, id)
		}
		more := told(r)
		if i, ok := at[message]; ok {
			list[i].Text.EN += " " + more.In(lang.EN)
			list[i].Text.ZH += more.In(lang.ZH)
			continue
		}
		at[message] = len(list)
		path, number, _ := strings.Cut(r.Source, ":")
		said := stopped.With(message)
		list = append(list, cards.Card{
			ID: Checks + id, Skill: "parallel-layout", URL: checkedAt + path + "#L" + number,
			Title: lang.Text{EN: "Megatron's check " + id, ZH: "Megatron 的检查 " + id},
			Asks:  []string{message, filledIn.ReplaceAllString(message, " ")},
			Text:  lang.Text{EN: said.In(lang.EN) + " " + more.In(lang.EN), ZH: said.In(lang.ZH) + more.In(lang.ZH)},
		})
	}
	return list, nil
}
