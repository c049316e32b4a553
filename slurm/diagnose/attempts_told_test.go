package diagnose_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose/diagnosetest"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/stretchr/testify/require"
)

func exited(code, pid string) string {
	return "ERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: " + code + ") local_rank: 0 (pid: " + pid + ") of binary: /usr/bin/python3\n"
}

func told(rank int, code, pid string) string {
	return fmt.Sprintf("torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n====\nt.py FAILED\n----\nRoot Cause (first observed failure):\n[0]:\n"+
		"  time      : 2026-06-11_10:00:09\n  host      : gpu8\n  rank      : %d (local_rank: 0)\n  exitcode  : %s (pid: %s)\n====\n", rank, code, pid)
}

// One of two launchers of a log leaves without a summary: the summary of the other one tells which of its reports is the last.
func TestALauncherWithoutASummary(t *testing.T) {
	const absent = "/usr/bin/python3: can't open file '/w/t.py': [Errno 2] No such file or directory\n"
	lost := diagnosetest.Raised("RuntimeError: Connection reset by peer")
	r := diagnosetest.Old(t, absent+exited("2", "11")+absent+exited("2", "12")+lost+exited("1", "13")+lost+exited("1", "14")+told(2, "2", "12"))
	require.Equal(t, outcome.EnvLaunch, r.Class, r.RootLine)
	require.Equal(t, 2, r.Attempts)
}

// What processes say behind their exceptions, in each attempt, begins no attempt.
func TestLastWordsBeginNoAttempt(t *testing.T) {
	words := diagnosetest.Raised("KeyError: 'tokens'") + "rank 5: leaving, the group is gone\nrank 3: leaving, the group is gone\n"
	log := "using 4 ranks\n" + words + exited("1", "11") + words + exited("1", "12") + told(2, "1", "12")
	r := diagnosetest.Old(t, strings.ReplaceAll("0: "+strings.TrimSuffix(log, "\n"), "\n", "\n0: ")+"\n")
	require.Equal(t, outcome.UserException, r.Class, r.RootLine)
	log = words + exited("1", "11") + words + exited("1", "12") + told(2, "1", "12")
	r = diagnosetest.Old(t, strings.ReplaceAll("0: "+strings.TrimSuffix(log, "\n"), "\n", "\n0: ")+"\n")
	require.Contains(t, r.RootLine, "KeyError: 'tokens'", r.Why)
}

// As many exceptions ended processes as launchers say failed, more than are kept: one that a function caught is none of them.
func TestAnExceptionAmongManyRanks(t *testing.T) {
	caught := diagnosetest.RaisedIn("build", "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 4.00 GiB")
	own := diagnosetest.Raised("ValueError: no exp_avg")
	lost := diagnosetest.Raised("RuntimeError: [./gloo/transport/tcp/pair.cc:598] Connection closed by peer [127.0.0.1]:4711")
	ends := ""
	for rank := range 10 {
		ends += told(rank, "1", fmt.Sprint(20+rank))
	}
	r := diagnosetest.Old(t, caught+own+strings.Repeat(lost, 9)+ends)
	require.Contains(t, r.RootLine, "no exp_avg", r.Why)
	r = diagnosetest.Old(t, caught+strings.Repeat(lost, 9)+ends)
	require.Equal(t, outcome.CUDAOOM, r.Class, "one rank's end is left to it")
}
