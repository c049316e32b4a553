package terminal

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

// Each kind of block has its text, and what can be pressed is a choice.
func TestBlocksAreText(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		block   string
		text    string
		choices []Choice
	}{
		"a header":  {block: `{"type":"header","text":{"type":"plain_text","text":"Jobs * of ada"}}`, text: "Jobs * of ada"},
		"a section": {block: `{"type":"section","text":{"type":"mrkdwn","text":"*bold* a &lt; b <@U1> <!date^1^{time}|12:00 UTC>"}}`, text: "bold a < b @U1 12:00 UTC"},
		"its fields and its button": {
			block:   `{"type":"section","fields":[{"type":"mrkdwn","text":"*Loss*\n2.3"},{"type":"plain_text","text":"alone"}],"accessory":{"type":"button","action_id":"run","value":"list","text":{"type":"plain_text","text":"Try it"}}}`,
			text:    "  Loss  2.3\n  alone",
			choices: []Choice{{Label: "Try it", Action: "run", Value: "list"}},
		},
		"a context": {block: `{"type":"context","elements":[{"type":"mrkdwn","text":"*one*"},{"type":"plain_text","text":"*two*"}]}`, text: "one\n*two*"},
		"rich text": {block: `{"type":"rich_text","elements":[{"type":"rich_text_section","elements":[{"type":"text","text":"for "},{"type":"user","user_id":"U1"}]}]}`, text: "for @U1"},
		"a list":    {block: `{"type":"rich_text","elements":[{"type":"rich_text_list","elements":[{"type":"rich_text_section","elements":[{"type":"text","text":"a\nb"}]},{"type":"rich_text_section","elements":[{"type":"text","text":"c"}]}]}]}`, text: "  • a\n    b\n  • c"},
		"code":      {block: `{"type":"rich_text","elements":[{"type":"rich_text_preformatted","elements":[{"type":"text","text":"a\nb"}]}]}`, text: "  │ a\n  │ b"},
		"a divider": {block: `{"type":"divider"}`},
		"buttons": {
			block: `{"type":"actions","elements":[{"type":"button","action_id":"yes","value":"1","text":{"text":"Yes"}},
				{"type":"button","value":"2","text":{"text":"a link"}},{"type":"button","action_id":"run","value":"mute 4711","text":{"text":"Mute"}}]}`,
			choices: []Choice{{Label: "Yes", Action: "yes", Value: "1"}},
		},
		"a menu":   {block: `{"type":"actions","elements":[{"type":"overflow","action_id":"menu","options":[{"text":{"text":"Logs"},"value":"run logs 1"},{"text":{"text":"Mute"},"value":"run mute 1"}]}]}`, choices: []Choice{{Label: "Logs", Action: "menu", Value: "run logs 1"}}},
		"a select": {block: `{"type":"section","text":{"type":"plain_text","text":"Language"},"accessory":{"type":"static_select","action_id":"set","options":[{"text":{"text":"English"},"value":"en"}]}}`, text: "Language", choices: []Choice{{Label: "English", Action: "set", Value: "en"}}},
		"thumbs": {
			block:   `{"type":"context_actions","elements":[{"type":"feedback_buttons","action_id":"thumb","positive_button":{"text":{"text":"Good"},"value":"+"},"negative_button":{"text":{"text":"Wrong"},"value":"-"}}]}`,
			choices: []Choice{{Label: "Good", Action: "thumb", Value: "+"}, {Label: "Wrong", Action: "thumb", Value: "-"}},
		},
		"a chart": {
			block: `{"type":"data_visualization","title":"Loss","chart":{"type":"line","series":[{"name":"loss","data":[{"label":"1","value":10},{"label":"2","value":2.5}]}]}}`,
			text:  "Loss  10 → 2.5  █▁",
		},
		"a table": {block: `{"type":"table","rows":[[{"type":"raw_text","text":"job"},{"type":"raw_text","text":"state"}],[{"type":"raw_text","text":"1"},{"type":"raw_text","text":"runs"}]]}`, text: "  job  state\n  1    runs"},
	} {
		said := Text(json.RawMessage("["+c.block+"]"), 0)
		require.Equal(t, c.text, said.Text, name)
		require.Equal(t, c.choices, said.Choices, name)
	}
	require.Equal(t, Message{}, Text(json.RawMessage("no blocks"), 0))
	two := Text(json.RawMessage(`[{"type":"section","text":{"text":"one"}},{"type":"header","text":{"text":"two"}}]`), 0)
	require.Equal(t, "one\n\ntwo", two.Text)
}

// In a narrow terminal each kind of block has lines of whole words; code stays as it is.
func TestANarrowTerminalBreaksNoWord(t *testing.T) {
	t.Parallel()
	said := Text(json.RawMessage(`[{"type":"section","text":{"text":"the job waits for nodes"},"fields":[{"text":"Loss\nnot finite since iteration 3"}]},
		{"type":"rich_text","elements":[
			{"type":"rich_text_list","elements":[{"type":"rich_text_section","elements":[{"type":"text","text":"look at the path /lustre/alice/checkpoints"}]}]},
			{"type":"rich_text_preformatted","elements":[{"type":"text","text":"srun --ntasks=1 --kill-on-bad-exit=1"}]}]},
		{"type":"table","rows":[[{"text":"job"},{"text":"why"}],[{"text":"1"},{"text":"not enough nodes are free"}]]}]`), 20)
	require.Equal(t, `the job waits for
nodes
  Loss  not finite
        since
        iteration 3
  • look at the path
    /lustre/alice/checkpoints
  │ srun --ntasks=1 --kill-on-bad-exit=1
  job  why
  1    not enough
       nodes are
       free`, said.Text)
}
