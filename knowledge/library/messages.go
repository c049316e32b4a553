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

// messagesFile lists the messages with which Megatron stops, one line for each rule.
// People paste such messages into questions; the rule's texts are the answer.
const messagesFile = "megatron-messages.txt"

// MessagePrefix is the prefix of the ids of cards about Megatron's messages.
const MessagePrefix = "check."

// checkedAt is the address of the Megatron-LM commit whose lines are the rules' sources.
const checkedAt = "https://github.com/NVIDIA/Megatron-LM/blob/d98e8a64ddf34856e74b24714e3bedb2f5a39553/"

// filledIn matches the placeholder of a value in a message.
var filledIn = regexp.MustCompile(`\s*['"(]*…['")]*\s*`)

// stopped is the first sentence of a message's card.
var stopped = lang.Text{EN: `Megatron stops with "%s".`, ZH: `Megatron 报 "%s" 并停止。`}

// Message returns the message that a card of messages is about. ok is false for any
// other card.
func Message(c cards.Card) (message string, ok bool) {
	if !strings.HasPrefix(c.ID, MessagePrefix) {
		return "", false
	}
	before, after, _ := strings.Cut(stopped.EN, "%s")
	message, _, ok = strings.Cut(strings.TrimPrefix(c.Text.EN, before), after)
	return message, ok
}

// ruleText returns a rule as text: when it applies, what must be true, why, and what
// to do.
func ruleText(r rules.Rule) lang.Text {
	text := lang.Text{EN: "%s: %s (%s). To do: %s.", ZH: "%s：%s（%s）。做法：%s。"}
	when := r.Condition
	if when.ZH == "" {
		when = lang.Same(when.EN)
	}
	return text.With(when, r.Requirement, r.Reason, r.Remedy)
}

// messages returns a card for each of Megatron's messages. Rules with the same message
// share a card.
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
		more := ruleText(r)
		if i, ok := at[message]; ok {
			list[i].Text.EN += " " + more.In(lang.EN)
			list[i].Text.ZH += more.In(lang.ZH)
			continue
		}
		at[message] = len(list)
		path, number, _ := strings.Cut(r.Source, ":")
		first := stopped.With(message)
		list = append(list, cards.Card{
			ID: MessagePrefix + id, Skill: "parallel-layout", URL: checkedAt + path + "#L" + number,
			Title: lang.Text{EN: "Megatron's check " + id, ZH: "Megatron 的检查 " + id},
			Asks:  []string{message, filledIn.ReplaceAllString(message, " ")},
			Text:  lang.Text{EN: first.In(lang.EN) + " " + more.In(lang.EN), ZH: first.In(lang.ZH) + more.In(lang.ZH)},
		})
	}
	return list, nil
}
