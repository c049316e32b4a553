package diagnose_test

import (
	"testing"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose/diagnosetest"
	"github.com/stretchr/testify/require"
)

// The rank, the node and the function are those in the line, without what a logger, a resolver or a
// terminal adds.
func TestTheLineTellsTheRankTheNodeAndTheFunction(t *testing.T) {
	r := diagnosetest.Text(t, "ERROR:megatron.core.rerun_state_machine:Unexpected result nan on rank 5 at iteration #12 invocation #1 "+
		"(message='found NaN in local forward loss calculation')\n")
	require.NotNil(t, r.RootRank)
	require.Equal(t, 5, *r.RootRank)

	r = diagnosetest.Text(t, "============\ntrain.py FAILED\n------------\nRoot Cause (first observed failure):\n[0]:\n  time      : 2026-03-28_18:48:30\n"+
		"  host      : node-4.\n  rank      : 3 (local_rank: 3)\n  exitcode  : -9 (pid: 4541)\n  error_file: <N/A>\n"+
		"  traceback : Signal 9 (SIGKILL) received by PID 4541\n============\n")
	require.NotNil(t, r.RootNode)
	require.Equal(t, "node-4", *r.RootNode)

	r = diagnosetest.Text(t, "Traceback (most recent call last):\n  File \"/w/moe.py\", line 8, in forward                    [105/2572]\n    y = x.sum()\n"+
		"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 30.00 MiB.\n")
	require.NotNil(t, r.Traceback)
	require.Equal(t, "forward", r.Traceback.Function)
}
