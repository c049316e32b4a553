package answer

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/view"
)

// Plainer replaces newer kinds of block, which a workspace has refused, by older kinds that say
// the same; changed is false where there are no newer kinds.
func Plainer(drawn json.RawMessage) (plain json.RawMessage, changed bool) {
	var list []map[string]any
	if json.Unmarshal(drawn, &list) != nil {
		return drawn, false
	}
	var out []map[string]any
	for _, b := range list {
		older := olderBlocks(b)
		changed = changed || older != nil
		if older == nil {
			older = []map[string]any{b}
		}
		out = append(out, older...)
	}
	plain, err := json.Marshal(out[:min(len(out), MaxBlocks)])
	if err != nil {
		return drawn, false
	}
	return plain, changed
}

// olderBlocks returns older blocks that say the same as b, or nil where b is no newer kind.
func olderBlocks(b map[string]any) []map[string]any {
	switch b["type"] {
	case "container":
		blocks := []map[string]any{{"type": "header", "text": b["title"]}}
		for _, child := range Objects(b["child_blocks"]) {
			if older := olderBlocks(child); older != nil {
				blocks = append(blocks, older...)
				continue
			}
			blocks = append(blocks, child)
		}
		return blocks
	case "data_visualization":
		return []map[string]any{plainText(ChartLine(b))}
	case "table":
		return []map[string]any{preformatted(plainTable(TableIn(b)))}
	case "context_actions":
		return []map[string]any{}
	}
	return nil
}

func plainText(s string) map[string]any {
	if s = Cut(s, MaxText); s == "" {
		s = "–"
	}
	return map[string]any{"type": "context", "elements": []any{map[string]any{"type": "plain_text", "text": s}}}
}

func preformatted(s string) map[string]any {
	text := map[string]any{"type": "text", "text": Cut(strings.TrimRight(s, "\n")+" ", MaxText)}
	return map[string]any{"type": "rich_text", "elements": []any{map[string]any{"type": "rich_text_preformatted", "elements": []any{text}}}}
}

// ChartLine draws a chart as a line of text: its title and, for each series, the first and last
// value and a row of bars.
func ChartLine(b map[string]any) string {
	chart, _ := b["chart"].(map[string]any)
	var parts []string
	for _, series := range Objects(chart["series"]) {
		var values []float64
		for _, point := range Objects(series["data"]) {
			if v, ok := point["value"].(float64); ok {
				values = append(values, v)
			}
		}
		if len(values) == 0 {
			continue
		}
		number := func(v float64) string { return strconv.FormatFloat(v, 'g', 4, 64) }
		parts = append(parts, fmt.Sprintf("%s → %s", number(values[0]), number(values[len(values)-1]))+"  "+view.Bars(values))
	}
	title, _ := b["title"].(string)
	return title + "  " + strings.Join(parts, ", ")
}

// Objects returns the JSON objects of a list.
func Objects(v any) (list []map[string]any) {
	all, _ := v.([]any)
	for _, x := range all {
		if m, ok := x.(map[string]any); ok {
			list = append(list, m)
		}
	}
	return list
}

// TableIn reads a table back from its block.
func TableIn(blk map[string]any) (t view.Table) {
	rows, _ := blk["rows"].([]any)
	for i, r := range rows {
		var row []string
		for _, c := range Objects(r) {
			text, _ := c["text"].(string)
			row = append(row, text)
		}
		if i == 0 {
			t.Header = row
			continue
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}
