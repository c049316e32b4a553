package diagnose_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/diagnosetest"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/stretchr/testify/require"
)

// A program that writes an exception down and goes on may end later, by an exception about a peer that another reason ended.
func TestAnExceptionCaughtBeforeTheEnd(t *testing.T) {
	const (
		caught = "ERROR: could not write the throughput\nTraceback (most recent call last):\n" +
			"  File \"/w/megatron/training/training.py\", line 202, in misc\n    writer[\"tensorboard_dir\"]\nKeyError: 'tensorboard_dir'\n"
		lost = "RuntimeError: [./gloo/transport/tcp/pair.cc:598] Connection closed by peer [127.0.0.1]:4711"
		own  = "IndexError: list index out of range"
	)
	left := func(host, rank, code string) string {
		return "ERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: " + code + ") local_rank: 0 (pid: 700) of binary: /usr/bin/python3\n" +
			"torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n====\nt.py FAILED\n----\nFailures:\n  <NO_OTHER_FAILURES>\n----\n" +
			"Root Cause (first observed failure):\n[0]:\n  time      : 2026-06-11_10:00:09\n  host      : " + host + "\n  rank      : " + rank +
			" (local_rank: 0)\n  exitcode  : " + code + " (pid: 700)\n====\n"
	}
	follows := caught + diagnosetest.Raised(lost) + left("gpu8", "1", "1")
	const mine, kept = "rank 0", "KeyError: 'tensorboard_dir'"
	for name, c := range map[string]struct{ first, second, line, rank string }{
		"a peer left with a code of its own":   {left("gpu7", "0", "77"), follows, "(exitcode: 77)", mine},
		"a peer raised an exception":           {diagnosetest.Raised(own) + left("gpu7", "0", "1"), follows, own, mine},
		"no peer has a reason":                 {left("gpu7", "0", "1"), follows, kept, ""},
		"nothing else is said of its process":  {left("gpu7", "0", "77"), caught + left("gpu8", "1", "1"), kept, ""},
		"a peer raised the same, and it again": {diagnosetest.Raised(kept) + left("gpu7", "0", "1"), caught + diagnosetest.Raised(kept) + left("gpu8", "1", "1"), kept, ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			require.NoError(t, os.WriteFile(filepath.Join(dir, "node0-gpu7.log"), []byte(c.first), 0o644))
			require.NoError(t, os.WriteFile(filepath.Join(dir, "node1-gpu8.log"), []byte(c.second), 0o644))
			r, err := diagnose.Path(t.Context(), dir, diagnose.Context{JobState: "ENDED"})
			require.NoError(t, err)
			require.Contains(t, r.RootLine, c.line, r.Why)
			if c.rank == mine {
				require.NotNil(t, r.RootRank)
				require.Zero(t, *r.RootRank)
			}
		})
	}
}

// A rank that says in words of its own that a peer is gone, because of the exception that told it so, only follows.
func TestAnExceptionRaisedFromALostPeer(t *testing.T) {
	wrapped := diagnosetest.Raised("RuntimeError: [./gloo/transport/tcp/pair.cc:598] Connection closed by peer [127.0.0.1]:4711") +
		"\nThe above exception was the direct cause of the following exception:\n\n" + diagnosetest.Raised("RuntimeError: peers are gone, cannot continue")
	r := diagnosetest.Old(t, of("[default0]:", wrapped)+of("[default1]:", diagnosetest.Raised("KeyError: 'tokens'")))
	require.Contains(t, r.RootLine, "KeyError: 'tokens'", r.Why)
	late := strings.Replace(wrapped, "pair.cc:598] Connection closed by peer [127.0.0.1]:4711",
		"unbound_buffer.cc:81] Timed out waiting 12000ms for recv operation to complete", 1)
	r = diagnosetest.Old(t, of("[default0]:", late))
	require.Equal(t, outcome.NCCLTimeout, r.Class, "a peer that did not come")
}

// Nobody sends SIGUSR1 or SIGALRM to a process because another one failed: it ended first, and the others lost it.
func TestASignalThatNoLauncherSends(t *testing.T) {
	lost := diagnosetest.Raised("RuntimeError: [./gloo/transport/tcp/pair.cc:598] Connection closed by peer [127.0.0.1]:4711")
	for signal, class := range map[int]string{-10: outcome.UnknownExit, -14: outcome.UnknownExit, -13: outcome.NCCLConnection} {
		r := diagnosetest.Old(t, lost+lost+exitedWith("gpu7", 1, 0, 1)+exitedWith("gpu8", signal, 2, 3))
		require.Equal(t, class, r.Class, "%d: %s", signal, r.RootLine)
		require.Equal(t, class == outcome.UnknownExit, r.RootNode != nil && *r.RootNode == "gpu8", "%d", signal)
	}
}

// Torchrun writes each rank's standard error into a file of its own, without a prefix.
func TestAnExceptionCaughtInAFileOfItsRank(t *testing.T) {
	const caught = "Traceback (most recent call last):\n  File \"/w/t.py\", line 202, in misc\n    writer[\"dir\"]\nKeyError: 'dir'\n"
	const lost = "RuntimeError: [./gloo/transport/tcp/pair.cc:598] Connection closed by peer [127.0.0.1]:4711"
	killed := strings.ReplaceAll(exitedWith("gpu1", -11, 0, 0), "Root Cause", exitedWith("gpu1", 1, 0, 1)[len("torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \nFailures:\n"):]+"Root Cause")
	thread := "Traceback (most recent call last):\n  File \"/usr/lib/python3.11/threading.py\", line 1038, in _bootstrap_inner\n    self.run()\n"
	for name, c := range map[string]struct{ launcher, first, line string }{
		"a signal ended a peer":   {killed, "", "exitcode  : -11"},
		"a thread of a peer died": {exitedWith("gpu1", 1, 0, 1), thread + "RuntimeError: the queue was shut\n", "the queue was shut"},
		"it only lost a peer":     {exitedWith("gpu1", 1, 0, 1), thread + "ConnectionResetError: [Errno 104] Connection reset by peer\n", "KeyError: 'dir'"},
		"nobody says why":         {exitedWith("gpu1", 1, 0, 1), "", "KeyError: 'dir'"},
	} {
		dir := t.TempDir()
		for file, text := range map[string]string{"slurm-7.out": c.launcher, "run/none_x1/attempt_0/0/stderr.log": "loading\n" + c.first, "run/none_x1/attempt_0/1/stderr.log": caught + diagnosetest.Raised(lost)} {
			require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, file)), 0o755))
			require.NoError(t, os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644))
		}
		r, err := diagnose.Path(t.Context(), dir, diagnose.Context{JobState: "ENDED"})
		require.NoError(t, err)
		require.Contains(t, r.RootLine, c.line, name)
	}
}
