package bot

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/bot/answer"
	"github.com/megatron-ops/megatron-ops/bot/incoming"
	"github.com/megatron-ops/megatron-ops/bot/typed"
	"github.com/megatron-ops/megatron-ops/internal/lang"
)

// An answer can be shared where other people read and have not seen it.
func TestWhereAnAnswerCanBeShared(t *testing.T) {
	label := func(change func(*incoming.Ask, *typed.Call)) string {
		a, c := incoming.Ask{Kind: incoming.AsCommand, Channel: "C1", Text: "list"}, typed.Call{}
		change(&a, &c)
		rows := shareRow(a, c, lang.EN)
		if len(rows) == 0 {
			return ""
		}
		for _, label := range []string{"Share here", "Share in thread"} {
			if strings.Contains(string(answer.BlocksJSON(rows)), label) {
				return label
			}
		}
		return "?"
	}
	for name, c := range map[string]struct {
		want   string
		change func(*incoming.Ask, *typed.Call)
	}{
		"in a channel":           {"Share here", func(*incoming.Ask, *typed.Call) {}},
		"in a thread":            {"Share in thread", func(a *incoming.Ask, _ *typed.Call) { a.Thread = "1.1" }},
		"a mention":              {"Share in thread", func(a *incoming.Ask, _ *typed.Call) { a.Kind = incoming.AsMessage }},
		"as long as a value":     {"Share here", func(a *incoming.Ask, _ *typed.Call) { a.Text = strings.Repeat("x", answer.MaxValue) }},
		"longer than a value":    {"", func(a *incoming.Ask, _ *typed.Call) { a.Text = strings.Repeat("x", answer.MaxValue+1) }},
		"shared":                 {"", func(_ *incoming.Ask, c *typed.Call) { c.Share = true }},
		"JSON":                   {"", func(_ *incoming.Ask, c *typed.Call) { c.JSON = true }},
		"a direct message":       {"", func(a *incoming.Ask, _ *typed.Call) { a.Direct = true }},
		"open to others":         {"", func(a *incoming.Ask, _ *typed.Call) { a.Open = true }},
		"from another workspace": {"", func(a *incoming.Ask, _ *typed.Call) { a.Foreign = true }},
		"a terminal":             {"", func(a *incoming.Ask, _ *typed.Call) { a.Terminal = &incoming.Terminal{} }},
		"no channel":             {"", func(a *incoming.Ask, _ *typed.Call) { a.Channel = "" }},
		"a button":               {"", func(a *incoming.Ask, _ *typed.Call) { a.Text = "" }},
	} {
		require.Equal(t, c.want, label(c.change), name)
	}
}
