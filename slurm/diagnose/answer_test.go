package diagnose_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/diagnosetest"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/stretchr/testify/require"
)

// Downstream ranks are those that complain about the rank that failed first, without that rank and
// ranks with the same exception.
func TestRanksDownstreamAreThoseThatLostTheFirst(t *testing.T) {
	raise := func(rank int, line string) string {
		return fmt.Sprintf("[rank%[1]d]: Traceback (most recent call last):\n[rank%[1]d]:   File \"/w/t.py\", line 9, in <module>\n[rank%[1]d]:     f()\n[rank%[1]d]: %[2]s\n", rank, line)
	}
	const (
		oom  = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."
		lost = "torch.distributed.DistBackendError: NCCL error: remote process exited or there was a network error"
	)
	for name, tt := range map[string]struct {
		log  string
		want int
	}{
		"all others":    {raise(1, oom) + raise(0, lost) + raise(2, lost) + raise(3, lost), 3},
		"one of them":   {raise(1, oom) + raise(2, lost), 1},
		"two raised it": {raise(1, oom) + raise(2, oom) + raise(3, lost), 1},
		"tasks that srun names": {
			"1: Traceback (most recent call last):\n1:   File \"/w/t.py\", line 9, in <module>\n1:     f()\n1: " + oom + "\n0: step 4\n2: step 4\n3: step 4\n" +
				"srun: error: gpu1: task 1: Exited with exit code 1\nsrun: error: gpu2: tasks 2-3: Exited with exit code 1\n", 2,
		},
		"nobody was lost": {raise(1, oom), 0},
	} {
		r := diagnosetest.Old(t, tt.log)
		require.Equal(t, outcome.CUDAOOM, r.Class, name)
		require.Equal(t, 1, *r.RootRank, name)
		require.Equal(t, tt.want, r.DownstreamRanks, name)
	}
}

// Of a cause that one of several ranks raised, and whose lines name no rank, the answer says that no rank
// can be named. Several that raised it need none.
func TestALogThatDoesNotTellWhichRank(t *testing.T) {
	const (
		raised = "Traceback (most recent call last):\n  File \"/w/t.py\", line 9, in <module>\n    f()\nKeyError: 'tokens'\n"
		lost   = "Traceback (most recent call last):\n  File \"/w/t.py\", line 4, in <module>\n    f()\n" +
			"RuntimeError: [../gloo/transport/tcp/pair.cc:598] Connection closed by peer [10.1.1.1]:4567\n"
		exits = "srun: error: gpu1: tasks 0-1: Exited with exit code 1\nsrun: error: gpu2: tasks 2-3: Exited with exit code 1\n"
		words = "The log does not tell which"
	)
	require.Contains(t, diagnosetest.Old(t, raised+lost+lost+lost+exits).Summary, words)
	require.NotContains(t, diagnosetest.Old(t, raised+raised+lost+lost+exits).Summary, words)
	require.NotContains(t, diagnosetest.Old(t, raised).Summary, words)
}

// The report of a hang has no times if the log has none.
func TestAHangTellsOnlyTimesThatAreKnown(t *testing.T) {
	long := int64(7200)
	r := diagnosetest.With(t, "> building train, validation, and test datasets ...\nsetting up\n", diagnose.Context{JobState: "RUNNING", SecondsSinceLastWrite: &long})
	require.Equal(t, outcome.Hang, r.Class)
	require.Equal(t, long, *r.AgeS)
	r = diagnosetest.With(t, "iteration 5/ 10 | elapsed time per iteration (ms): 300.1 | lm loss: 2.1 |\n", diagnose.Context{JobState: "RUNNING"})
	require.Nil(t, r.SinceS)
}

// What is said of the newest line: its age is never negative where the file server's clock is ahead,
// and an empty file has no line.
func TestTheAgeOfTheNewestLine(t *testing.T) {
	ahead, fresh := int64(-7199), int64(1)
	r := diagnosetest.With(t, "setting up\n", diagnose.Context{JobState: "RUNNING", SecondsSinceLastWrite: &ahead})
	require.Contains(t, r.Summary, "last line 0 s ago")
	file := filepath.Join(t.TempDir(), "job-7.out")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	r, err := diagnose.Path(t.Context(), file, diagnose.Context{JobState: "RUNNING", SecondsSinceLastWrite: &fresh})
	require.NoError(t, err)
	require.Equal(t, outcome.Running, r.Class)
	require.Equal(t, "The job runs; nothing failed.", r.Summary)
}

// A job that was requeued and cancelled while it waited is one that was cancelled: nothing brings it back.
func TestARequeuedJobThatWasCancelled(t *testing.T) {
	log := "iteration 5/ 10 | elapsed time per iteration (ms): 300.1 | lm loss: 2.1 |\n" +
		"slurmstepd-gpu1: error: *** JOB 16 ON gpu1 CANCELLED AT 2026-11-25T03:03:12 DUE TO JOB REQUEUE ***\n"
	for state, class := range map[string]string{"CANCELLED": outcome.SlurmCancelled, "PENDING": outcome.SlurmPreempted, "REQUEUED": outcome.SlurmPreempted, "": outcome.SlurmPreempted} {
		require.Equal(t, class, diagnosetest.With(t, log, diagnose.Context{JobState: state}).Class, state)
	}
}
