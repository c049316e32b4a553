package operations

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/opstest"
	"github.com/megatron-ops/megatron-ops/internal/store"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// What an earlier job was submitted with is not taken for what the job is that has its id now.
func TestAnIDThatAnotherJobHasNow(t *testing.T) {
	now := time.Now()
	for name, c := range map[string]struct {
		submitted time.Time
		known     bool // Slurm still knows a job of the id
		found     bool
	}{
		"another job":        {now, true, false},
		"the same job":       {now.AddDate(0, 0, -7), true, true},
		"forgotten by Slurm": {now, false, true},
	} {
		site := &opstest.Site{KnownJobs: map[slurm.JobID]slurm.Job{}}
		if c.known {
			site.KnownJobs["4711"] = slurm.Job{ID: "4711", User: "alice", State: slurm.Running, SubmittedAt: &c.submitted}
		}
		call := opstest.NewCall(t, site)
		st, err := call.Store()
		require.NoError(t, err)
		week := now.AddDate(0, 0, -7)
		spec, err := json.Marshal(map[string]any{"name": "gpt", "nodes": 2, "kill_switch": t.TempDir() + "/STOP", "sweep": []string{"seed=1..2"}})
		require.NoError(t, err)
		_, _, err = st.Begin(t.Context(), store.Submission{Key: "k", Token: "t", Cluster: "test", Owner: "alice", Name: "gpt", Spec: spec, CreatedAt: week})
		require.NoError(t, err)
		require.NoError(t, st.Finish(t.Context(), "k", store.Submitted, "4711", "", week))
		for _, words := range [][]string{
			{"killswitch", "on", "4711"},
			{"submit", "--from", "4711", "--dry-run"},
			{"compare", "4711", "--sweep"},
			{"diff", "4711", "4711"},
		} {
			_, err := do(t, call, words[0], words[1:]...)
			said := ""
			if err != nil {
				said = lang.Said(err).EN
			}
			unknown := err != nil && ops.AsError(err).Code == ops.NotFound && !strings.Contains(said, "not there any more")
			require.Equal(t, !c.found, unknown, "%s: %v: %s", name, words, said)
		}
	}
}
