package metrics_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/slurm/metrics"
)

// The newest address of an experiment tracker counts, with any text before it.
func TestARunsAddressAtItsTracker(t *testing.T) {
	for name, c := range map[string]struct{ log, want string }{
		"at the beginning":     {"wandb: ⭐️ View project at https://wandb.ai/lab/gpt\nwandb: 🚀 View run at https://wandb.ai/lab/gpt/runs/gpt-77\n", "https://wandb.ai/lab/gpt/runs/gpt-77"},
		"at the end":           {"wandb: 🚀 View run calm-sea-4 at: https://wandb.ai/lab/gpt/runs/gpt-77\n", "https://wandb.ai/lab/gpt/runs/gpt-77"},
		"with a place before":  {"1: [gpu2:15]:wandb:  View run at http://wandb.lab.example:8080/lab/gpt/runs/gpt-77\r\n", "http://wandb.lab.example:8080/lab/gpt/runs/gpt-77"},
		"the newest of two":    {"wandb: View run at https://wandb.ai/a/b/runs/1\nwandb: View run at https://wandb.ai/a/b/runs/2\nView run at nowhere\n", "https://wandb.ai/a/b/runs/2"},
		"MLflow's":             {"🏃 View run gpt at: http://mlflow:5000/#/experiments/3/runs/0af1\n🧪 View experiment at: http://mlflow:5000/#/experiments/3\n", "http://mlflow:5000/#/experiments/3/runs/0af1"},
		"none, being offline":  {"wandb: You can sync this run to the cloud by running:\nwandb: wandb sync wandb/offline-run-1\n", ""},
		"no run's":             {"View run at https://example.org/help\n", ""},
		"markup and a command": {"View run at https://a.example/runs/1|click>\nView run at javascript://x/runs/1\nView run at https://user@evil.example/x/runs/1\n", ""},
		"too long":             {"View run at https://a.example/" + strings.Repeat("x", 400) + "/runs/1\n", ""},
	} {
		require.Equal(t, c.want, metrics.TrackedIn([]byte(c.log)), name)
		run, err := metrics.ReadFrom("x", strings.NewReader(c.log), "")
		require.NoError(t, err)
		require.Equal(t, c.want, run.Tracked, name)
	}
}
