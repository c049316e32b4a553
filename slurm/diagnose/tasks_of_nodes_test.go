package diagnose_test

import (
	"strings"
	"testing"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose/diagnosetest"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/stretchr/testify/require"
)

// One log of srun --label with a torchrun on each node. The failed rank is on the second node, whose
// torchrun was ended before it reported that.
func TestALauncherKnowsTheRanksOfItsOwnTask(t *testing.T) {
	label := func(task, text string) string {
		return task + ": " + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n"+task+": ") + "\n"
	}
	summary := func(host, rank string) string {
		return "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \nFailures:\n  <NO_OTHER_FAILURES>\nRoot Cause (first observed failure):\n[0]:\n" +
			"  time      : 2026-11-23_10:00:05\n  host      : " + host + "\n  rank      : " + rank + " (local_rank: 0)\n  exitcode  : 1 (pid: 4711)\n"
	}
	starts := label("0", "start: attempt=0 node=0 host=gpu1 ranks=0-1 commit=- dirty=- argv=a env=b") +
		label("1", "start: attempt=0 node=1 host=gpu2 ranks=2-3 commit=- dirty=- argv=a env=b")
	cause := label("1", diagnosetest.Raised("RuntimeError: mat1 and mat2 shapes cannot be multiplied (8x12 and 16x64)"))
	first := label("0", diagnosetest.Raised(lostPeer)+summary("gpu1", "0"))
	ended := "srun: error: gpu1: task 0: Exited with exit code 1\n"
	two := 2
	for name, c := range map[string]struct {
		log, node string
		rank      *int
	}{
		"start lines tell the node":         {starts + cause + first + ended, "gpu2", nil},
		"nothing tells the node":            {cause + first + ended, "", nil},
		"srun tells the node":               {cause + first + ended + "srun: error: gpu2: task 1: Exited with exit code 1\n", "gpu2", nil},
		"its own launcher tells both":       {cause + label("1", summary("gpu2", "2")) + first + ended, "gpu2", &two},
		"its own launcher told with starts": {starts + cause + label("1", summary("gpu2", "2")) + first + ended, "gpu2", &two},
	} {
		t.Run(name, func(t *testing.T) {
			r := diagnosetest.Old(t, c.log)
			require.Equal(t, outcome.ShapeMismatch, r.Class)
			require.Equal(t, c.rank, r.RootRank)
			if c.node == "" {
				require.Nil(t, r.RootNode)
				return
			}
			require.NotNil(t, r.RootNode)
			require.Equal(t, c.node, *r.RootNode)
		})
	}
}
