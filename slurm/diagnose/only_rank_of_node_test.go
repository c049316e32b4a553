package diagnose_test

import (
	"fmt"
	"testing"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose/diagnosetest"
	"github.com/stretchr/testify/require"
)

// Where every node has one rank, the node of an exception tells its rank.
func TestTheOnlyRankOfANode(t *testing.T) {
	log := of("gpu2: ", diagnosetest.Raised("PermissionError: [Errno 13] Permission denied: '/scratch/ckpt/model_optim_rng.pt'"))
	for _, rank := range []int{0, 1, 3} {
		log += of(fmt.Sprintf("gpu%d: ", rank), diagnosetest.Raised("RuntimeError: [./gloo/transport/tcp/pair.cc:598] Connection closed by peer [127.0.0.1]:4711"))
	}
	for rank := range 4 {
		log += of(fmt.Sprintf("gpu%d: ", rank), "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n====\nt.py FAILED\n----\nFailures:\n"+
			"  <NO_OTHER_FAILURES>\n----\nRoot Cause (first observed failure):\n[0]:\n  time      : 2026-06-11_10:00:09\n"+
			fmt.Sprintf("  host      : gpu%d\n  rank      : %d (local_rank: 0)\n  exitcode  : 1 (pid: 7%d)\n====\n", rank, rank, rank))
	}
	r := diagnosetest.Old(t, log)
	require.Contains(t, r.RootLine, "PermissionError")
	require.NotNil(t, r.RootRank)
	require.Equal(t, 2, *r.RootRank)
}
