package card

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// A TestACardHasTheButtonsOfItsState has the buttons of its state, and what ends a job is asked first.
func TestACardHasTheButtonsOfItsState(t *testing.T) {
	for name, c := range map[string]struct {
		news News
		want []string
	}{
		"waits":   {News{Job: slurm.Job{State: slurm.Pending, Reason: "Priority"}}, []string{"Extend chain", "Hold", "Cancel", "Mute"}},
		"is held": {News{Job: slurm.Job{State: slurm.Pending, Reason: "JobHeldUser"}}, []string{"Extend chain", "Release", "Cancel", "Mute"}},
		"runs":    {News{Job: slurm.Job{State: slurm.Running}}, []string{"Diagnose", "Logs", "Extend chain", "Cancel", "Mute"}},
		"is done": {News{Job: slurm.Job{State: slurm.Completed}}, []string{"Logs", "Change and resubmit"}},
		"failed":  {News{Job: slurm.Job{State: slurm.Failed}}, []string{"Diagnose", "Logs", "Change and resubmit"}},
		"failed on a bad node, with a fix": {
			News{Job: slurm.Job{State: slurm.NodeFail}, Exclude: []string{"n2"}, Fix: []string{"mem: 2T"}},
			[]string{"Diagnose", "Logs", "Retry without the bad node", "Apply fix and resubmit", "Change and resubmit"},
		},
	} {
		c.news.Job.ID, c.news.Job.Cluster = "4711", "slurm"
		raw, err := json.Marshal(Buttons(c.news, lang.EN))
		require.NoError(t, err)
		var row struct {
			Elements []struct {
				Text    struct{ Text string } `json:"text"`
				Value   string                `json:"value"`
				Confirm any                   `json:"confirm"`
			} `json:"elements"`
		}
		require.NoError(t, json.Unmarshal(raw, &row))
		var got []string
		for _, e := range row.Elements {
			got = append(got, e.Text.Text)
			require.Contains(t, e.Value, "4711")
			require.Contains(t, e.Value, "slurm", "the cluster goes with it")
			require.Equal(t, e.Text.Text == "Cancel", e.Confirm != nil)
		}
		require.Equal(t, c.want, got, name)
	}
}
