package diagnose_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose/diagnosetest"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/stretchr/testify/require"
)

// An exception that was caught does not explain a signal that ended its process later, or another one.
func TestAProcessThatASignalEndedDidNotEndByAnException(t *testing.T) {
	caught := strings.Replace(diagnosetest.Raised("KeyError: 'loss'"), "<module>", "misc", 1)
	left := func(rank, exit int) string {
		return "  time      : 2026-06-11_10:00:09\n" +
			fmt.Sprintf("  host      : gpu%d\n  rank      : %d (local_rank: 0)\n  exitcode  : %d (pid: 7)\n", rank, rank, exit)
	}
	all := func(exits ...int) (log string) {
		for rank, exit := range exits {
			log += "t.py FAILED\n----\nFailures:\n  <NO_OTHER_FAILURES>\n----\nRoot Cause (first observed failure):\n[0]:\n" + left(rank, exit) + "====\n"
		}
		return log
	}
	for name, c := range map[string]struct {
		log, class string
	}{
		"a bus error":                    {caught + all(1, -7, 1), outcome.ShmBusError},
		"SIGUSR1":                        {caught + all(21, -10, 21), outcome.UnknownExit},
		"an abort":                       {caught + all(1, -6, 1), outcome.UserException},
		"others left each with another":  {caught + all(1, -7, 3), outcome.UserException},
		"the exception left its program": {diagnosetest.Raised("KeyError: 'loss'") + all(1, -7, 1), outcome.UserException},
	} {
		r := diagnosetest.Old(t, c.log)
		require.Equal(t, c.class, r.Class, "%s: %s", name, r.RootLine)
	}
}

// The rest of a chain of exceptions is no sign that a process went on after the first of them.
func TestAChainOfExceptionsAmongPeersThatLeaveWithAnotherCode(t *testing.T) {
	first := strings.Replace(diagnosetest.Raised("ValueError: invalid literal for int() with base 10: '4k'"), "<module>", "misc", 1)
	chain := first + "\nThe above exception was the direct cause of the following exception:\n\n" +
		diagnosetest.Raised("RuntimeError: could not parse phase 16")
	log := of("gpu1: [default0]:", chain)
	for rank, exit := range []int{21, 1, 21} {
		log += of(fmt.Sprintf("gpu%d: ", rank), diagnosetest.Raised("torch.distributed.elastic.multiprocessing.errors.ChildFailedError: ")+
			"====\nt.py FAILED\n----\nFailures:\n"+
			"  <NO_OTHER_FAILURES>\n----\nRoot Cause (first observed failure):\n[0]:\n  time      : 2026-06-11_10:00:09\n"+
			fmt.Sprintf("  host      : gpu%d\n  rank      : %d (local_rank: 0)\n  exitcode  : %d (pid: 7)\n====\n", rank, rank, exit))
	}
	r := diagnosetest.Old(t, log)
	require.Equal(t, outcome.UserException, r.Class, r.RootLine)
}
