package bot

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops/jobcontrol"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/cluster"
)

// Facts that a card leaves out are shown beside it, as far as they are known.
func TestFurtherFactsOfAJob(t *testing.T) {
	for want, r := range map[string]jobcontrol.StatusOut{
		"Slurm's state=PENDING Priority":                  {Job: slurm.Job{State: slurm.Pending, Reason: "Priority"}},
		"Slurm's state=RUNNING":                           {Job: slurm.Job{State: slurm.Running, Reason: "None"}},
		"Nodes=gpu[1-2]; Slurm's state=RUNNING":           {Job: slurm.Job{State: slurm.Running, Nodes: []string{"gpu1", "gpu2"}}},
		"Slurm's state=RUNNING; Restarts=1":               {Job: slurm.Job{State: slurm.Running, Restarts: 1}},
		"Slurm's state=RUNNING; Output=/w/a":              {Job: slurm.Job{State: slurm.Running, Stdout: "/w/a", Stderr: "/w/a"}},
		"Slurm's state=RUNNING; Output=/w/a; Errors=/w/b": {Job: slurm.Job{State: slurm.Running, Stdout: "/w/a", Stderr: "/w/b"}},
		"Tasks=3 waiting · 1 running; Tasks at a time=1; Slurm's state=RUNNING": {Job: slurm.Job{
			State: slurm.Running, ArrayLimit: 1, Tasks: map[slurm.State]int{slurm.Running: 1, slurm.Pending: 3},
		}},
		"Slurm's state=RUNNING; Code=commit abc": {Job: slurm.Job{State: slurm.Running}, Source: &cluster.GitSource{Commit: "abc"}},
	} {
		var said []string
		for _, f := range detailFacts(r, lang.EN) {
			said = append(said, f.Name+"="+f.Value)
		}
		require.Equal(t, want, strings.Join(said, "; "))
	}
}
