package card

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// A card has the buttons of its job's state: the next step first and in colour, a few beside
// it, the rest in a menu.
func TestACardHasTheButtonsOfItsState(t *testing.T) {
	t.Parallel()
	news := func(state slurm.State, change ...func(*News)) Card {
		n := News{Job: slurm.Job{ID: "4711", Cluster: "slurm", State: state}}
		for _, f := range change {
			f(&n)
		}
		return Card{News: n, Places: []Place{{Channel: "C1"}}}
	}
	unfollowed := news(slurm.Running)
	unfollowed.Places = nil
	why := func(n *News) { n.Why = "no memory" }
	taken := news(slurm.Failed, why)
	taken.Taken = "U1"
	for name, c := range map[string]struct {
		card      Card
		row, menu []string
		inColour  string
	}{
		"waits": {
			news(slurm.Pending, func(n *News) { n.Job.Reason = "Priority" }),
			[]string{"Why does it wait?"},
			[]string{"Extend chain", "Hold", "Cancel", "Mute"},
			"",
		},
		"is held": {
			news(slurm.Pending, func(n *News) { n.Job.Reason = "JobHeldUser" }),
			[]string{"Release", "Why does it wait?"},
			[]string{"Extend chain", "Cancel", "Mute"},
			"Release",
		},
		"runs":                           {news(slurm.Running), []string{"Diagnose", "Logs"}, []string{"Extend chain", "Cancel", "Mute"}, ""},
		"runs, and nobody is told of it": {unfollowed, []string{"Diagnose", "Logs"}, []string{"Extend chain", "Cancel"}, ""},
		"trains": {
			news(slurm.Running, func(n *News) { n.Iteration = 3 }),
			[]string{"Diagnose", "Logs"},
			[]string{"Numbers", "Extend chain", "Cancel", "Mute"},
			"",
		},
		"is done": {news(slurm.Completed), []string{"Logs", "Change and resubmit"}, nil, ""},
		"ended, how is not known": {
			news(slurm.Ended, why, func(n *News) { n.Exclude, n.Fix = []string{"n2"}, []string{"mem: 2T"} }),
			[]string{"Diagnose", "Logs", "Change and resubmit"},
			nil, "",
		},
		"was cancelled": {news(slurm.Cancelled), []string{"Logs", "Change and resubmit"}, nil, ""},
		"failed":        {news(slurm.Failed), []string{"Diagnose", "I look after it", "Logs"}, []string{"Change and resubmit"}, "Diagnose"},
		"failed, and somebody looks after it": {
			taken, []string{"Logs", "Change and resubmit"}, []string{"Diagnose again"}, "",
		},
		"failed on a bad node, with a fix": {
			news(slurm.NodeFail, why, func(n *News) { n.Exclude, n.Fix = []string{"n2"}, []string{"mem: 2T"} }),
			[]string{"Apply fix and resubmit", "Retry without the bad node", "I look after it"},
			[]string{"Logs", "Change and resubmit", "Diagnose again"},
			"Apply fix and resubmit",
		},
	} {
		raw, err := json.Marshal(Buttons(c.card, lang.EN))
		require.NoError(t, err)
		type element struct {
			Text    struct{ Text string } `json:"text"`
			Value   string                `json:"value"`
			Style   string                `json:"style"`
			Options []element             `json:"options"`
		}
		var drawn struct {
			Elements []element `json:"elements"`
		}
		require.NoError(t, json.Unmarshal(raw, &drawn))
		var row, menu []string
		for _, e := range drawn.Elements {
			for _, o := range e.Options {
				menu = append(menu, o.Text.Text)
				require.Contains(t, o.Value, "4711", name)
				require.Contains(t, o.Value, "slurm", "%s: the cluster goes with it", name)
			}
			if e.Options != nil {
				continue
			}
			row = append(row, e.Text.Text)
			require.Contains(t, e.Value, "4711", name)
			require.Contains(t, e.Value, "slurm", "%s: the cluster goes with it", name)
			require.Equal(t, e.Text.Text == c.inColour, e.Style == "primary", "%s: %s", name, e.Text.Text)
		}
		require.Equal(t, c.row, row, name)
		require.Equal(t, c.menu, menu, name)
	}
}
