// Package terminal draws messages for Slack as text, and their buttons as choices, for a person
// at a terminal.
package terminal

import (
	"encoding/json"
	"html"
	"strings"

	"github.com/megatron-ops/megatron-ops/bot/answer"
	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/internal/view"
)

// Text draws blocks as text for a terminal of width columns (0 means any number), and their
// buttons as choices. Lines of code are not wrapped.
func Text(blocks json.RawMessage, width int) (s Message) {
	blocks = answer.Unfolded(blocks) // a terminal can scroll
	var list []map[string]any
	if json.Unmarshal(blocks, &list) != nil {
		return Message{}
	}
	var b strings.Builder
	line := func(lead, text string) { b.WriteString(view.Prose(lead, text, width) + "\n") }
	for _, blk := range list {
		switch blk["type"] {
		case "header":
			line("", "\n"+textIn(blk["text"]))
		case "section":
			if blk["text"] != nil {
				line("", textIn(blk["text"]))
			}
			for _, f := range answer.Objects(blk["fields"]) {
				name, value, _ := strings.Cut(textIn(f), "\n")
				line("  "+name+"  ", value)
			}
			if e, ok := blk["accessory"].(map[string]any); ok {
				s.Choices = append(s.Choices, choicesOf(e)...)
			}
		case "context":
			for _, e := range answer.Objects(blk["elements"]) {
				line("", textIn(e))
			}
		case "data_visualization":
			b.WriteString(answer.ChartLine(blk) + "\n")
		case "rich_text":
			for _, e := range answer.Objects(blk["elements"]) {
				switch e["type"] {
				case "rich_text_list":
					for _, it := range answer.Objects(e["elements"]) {
						line("  • ", spans(it["elements"]))
					}
				case "rich_text_preformatted":
					b.WriteString("  │ " + strings.ReplaceAll(spans(e["elements"]), "\n", "\n  │ ") + "\n")
				default:
					line("", spans(e["elements"]))
				}
			}
		case "table":
			table := answer.TableIn(blk)
			_ = view.Text(&b, view.Doc{Sections: []view.Section{{Table: &table}}}, view.Style{Width: width}) // writing to a strings.Builder does not fail
		case "actions", "context_actions":
			s.Choices = append(s.Choices, choicesIn(blk)...)
		}
	}
	s.Text = strings.Trim(b.String(), "\n")
	return s
}

func textIn(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case map[string]any:
		if v["type"] == "mrkdwn" {
			return plainMarkup(textIn(v["text"]))
		}
		return textIn(v["text"])
	}
	return ""
}

// plainMarkup turns mrkdwn into plain text: a date becomes its fallback, a person their id, and
// asterisks are dropped.
func plainMarkup(s string) string {
	s = slackDate.ReplaceAllString(s, "$1")
	s = slackPerson.ReplaceAllString(s, "@$1")
	return html.UnescapeString(strings.ReplaceAll(s, "*", ""))
}

var (
	slackDate   = lazy.New(`<!date\^\d+\^[^|>]*\|([^>]*)>`)
	slackPerson = lazy.New(`<@([A-Z0-9]+)>`)
)

// spans returns the text of a list of rich_text elements.
func spans(v any) string {
	var b strings.Builder
	for _, e := range answer.Objects(v) {
		switch e["type"] {
		case "user":
			b.WriteString("@" + textIn(e["user_id"]))
		default:
			b.WriteString(textIn(e["text"]))
		}
	}
	return b.String()
}

// choicesIn returns the buttons of a row and the entries of its menus.
func choicesIn(blk map[string]any) (cs []Choice) {
	for _, e := range answer.Objects(blk["elements"]) {
		cs = append(cs, choicesOf(e)...)
	}
	return cs
}

// choicesOf returns what can be pressed in one element.
func choicesOf(e map[string]any) (cs []Choice) {
	action, value := textIn(e["action_id"]), textIn(e["value"])
	add := func(label, value string) {
		if action == "" || strings.Contains(value, "mute ") { // a terminal sends no notifications that one could mute
			return
		}
		cs = append(cs, Choice{Label: label, Action: action, Value: value})
	}
	switch e["type"] {
	case "feedback_buttons":
		for _, thumb := range []string{"positive_button", "negative_button"} {
			if t, ok := e[thumb].(map[string]any); ok {
				add(textIn(t["text"]), textIn(t["value"]))
			}
		}
	case "overflow", "static_select":
		for _, o := range answer.Objects(e["options"]) {
			add(textIn(o["text"]), textIn(o["value"]))
		}
	default:
		add(textIn(e["text"]), value)
	}
	return cs
}

// A Message is one message of the bot.
type Message struct {
	Text    string
	Choices []Choice
}

// A Choice is a button.
type Choice struct {
	Label string
	// Action and Value are what a press sends.
	Action, Value string
}
