package diagnose_test

import (
	"fmt"
	"testing"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose/diagnosetest"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/stretchr/testify/require"
)

// Ranks that say in words of their own that they lost a peer tell their numbers with it; the one that left without a word is
// the one that they lost.
func TestARankThatLeavesSilentlyAmongOnesThatNameThemselves(t *testing.T) {
	var log string
	for _, rank := range []int{0, 2, 3} {
		wrapped := diagnosetest.Raised("RuntimeError: [./gloo/transport/tcp/pair.cc:598] Connection closed by peer [127.0.0.1]:4711") +
			"\nThe above exception was the direct cause of the following exception:\n\n" +
			diagnosetest.Raised(fmt.Sprintf("RuntimeError: rank %d: peers are gone, cannot continue the step", rank))
		log += of(fmt.Sprintf("[default%d]:", rank%2), wrapped)
	}
	for node := range 2 {
		log += "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n====\nt.py FAILED\n----\nFailures:\n"
		for local := 1; local >= 0; local-- {
			if local == 0 {
				log += "----\nRoot Cause (first observed failure):\n"
			}
			log += fmt.Sprintf("[%d]:\n  time      : 2026-06-11_10:00:09\n  host      : gpu%d\n  rank      : %d (local_rank: %d)\n  exitcode  : 1 (pid: %d)\n",
				local, node, 2*node+local, local, 70+2*node+local)
		}
		log += "====\n"
	}
	r := diagnosetest.Old(t, log)
	require.Equal(t, outcome.UnknownExit, r.Class, r.RootLine)
	require.NotNil(t, r.RootRank)
	require.Equal(t, 1, *r.RootRank)
}
