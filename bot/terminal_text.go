package bot

import (
	"encoding/json"
	"strings"

	"github.com/megatron-ops/megatron-ops/bot/answer"
	"github.com/megatron-ops/megatron-ops/internal/view"
)

// terminalText draws blocks as text, and their buttons as choices.
func terminalText(blocks json.RawMessage) (s Said) {
	blocks, _ = answer.Unfolded(blocks) // a terminal scrolls
	var list []map[string]any
	if json.Unmarshal(blocks, &list) != nil {
		return Said{}
	}
	var b strings.Builder
	for _, blk := range list {
		switch blk["type"] {
		case "header":
			b.WriteString("\n" + textIn(blk["text"]) + "\n")
		case "section":
			b.WriteString(textIn(blk["text"]) + "\n")
		case "context":
			for _, e := range objects(blk["elements"]) {
				b.WriteString(textIn(e) + "\n")
			}
		case "rich_text":
			for _, e := range objects(blk["elements"]) {
				richText(&b, e)
			}
		case "table":
			b.WriteString(answer.PlainTable(tableIn(blk)))
		case "actions", "context_actions":
			s.Choices = append(s.Choices, choicesIn(blk)...)
		}
	}
	s.Text = strings.Trim(b.String(), "\n")
	return s
}

func objects(v any) (list []map[string]any) {
	all, _ := v.([]any)
	for _, x := range all {
		if m, ok := x.(map[string]any); ok {
			list = append(list, m)
		}
	}
	return list
}

func textIn(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case map[string]any:
		return textIn(v["text"])
	}
	return ""
}

// spans is the text of rich elements in a row.
func spans(v any) string {
	var b strings.Builder
	for _, e := range objects(v) {
		switch e["type"] {
		case "user":
			b.WriteString("@" + textIn(e["user_id"]))
		default:
			b.WriteString(textIn(e["text"]))
		}
	}
	return b.String()
}

func richText(b *strings.Builder, e map[string]any) {
	switch e["type"] {
	case "rich_text_list":
		for _, it := range objects(e["elements"]) {
			b.WriteString("  • " + strings.ReplaceAll(spans(it["elements"]), "\n", "\n    ") + "\n")
		}
	case "rich_text_preformatted":
		for line := range strings.SplitSeq(spans(e["elements"]), "\n") {
			b.WriteString("  │ " + line + "\n")
		}
	default:
		b.WriteString(spans(e["elements"]) + "\n")
	}
}

func tableIn(blk map[string]any) (t view.Table) {
	rows, _ := blk["rows"].([]any)
	for i, r := range rows {
		var row []string
		for _, c := range objects(r) {
			row = append(row, textIn(c["text"]))
		}
		if i == 0 {
			t.Header = row
			continue
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

func choicesIn(blk map[string]any) (cs []Choice) {
	for _, e := range objects(blk["elements"]) {
		action, value := textIn(e["action_id"]), textIn(e["value"])
		if e["type"] == "feedback_buttons" {
			for _, thumb := range []string{"positive_button", "negative_button"} {
				if t, ok := e[thumb].(map[string]any); ok {
					cs = append(cs, Choice{Label: textIn(t["text"]), action: action, value: textIn(t["value"])})
				}
			}
			continue
		}
		if action == "" || strings.HasPrefix(value, "mute ") { // nobody is called at a terminal
			continue
		}
		sure := ""
		if c, ok := e["confirm"].(map[string]any); ok {
			sure = textIn(c["text"])
		}
		cs = append(cs, Choice{Label: textIn(e["text"]), Sure: sure, action: action, value: value})
	}
	return cs
}
