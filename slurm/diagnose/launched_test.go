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

// A launcher reports the exit of one process and tells the others to end, so it shows how many it had.
func TestLaunchersShowHowManyProcessesTheyHad(t *testing.T) {
	tag := func(tag, text string) string {
		return tag + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n"+tag) + "\n"
	}
	const (
		closing = "WARNING:torch.distributed.elastic.multiprocessing.api:Sending process 7{n} closing signal SIGTERM\n"
		agent   = "ERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: 1) local_rank: 0 (pid: 700) of binary: /usr/bin/python3\n"
		waited  = "RuntimeError: Socket Timeout"
		lost    = "RuntimeError: [./gloo/transport/tcp/pair.cc:598] Connection closed by peer [127.0.0.1]:4711"
		absent  = "ModuleNotFoundError: No module named 'amp_C'"
	)
	summary := func(host, rank string) string {
		return "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n====\nt.py FAILED\n----\nFailures:\n  <NO_OTHER_FAILURES>\n----\n" +
			"Root Cause (first observed failure):\n[0]:\n  time      : 2026-06-11_10:00:09\n  host      : " + host + "\n  rank      : " + rank +
			" (local_rank: 0)\n  exitcode  : 1 (pid: 700)\n====\n"
	}
	one, rank := func(local string, line string) string { return tag("[default"+local+"]:", diagnosetest.Raised(line)) }, func(r int) *int { return &r }
	closed := func(n int) string { return diagnosetest.Rounds(n, closing) }
	second := func(n int, line string) string { return one("0", line) + closed(n) + agent }
	for name, c := range map[string]struct {
		first, second string
		rank          *int
	}{
		"one that nobody else shows":             {"", second(1, absent), rank(2)},
		"of eight":                               {"", second(7, absent), rank(8)},
		"one alone":                              {"", second(0, absent), rank(1)},
		"all others waited for one":              {one("0", waited) + one("1", waited) + closed(1) + agent + summary("gpu7", "0"), second(1, waited) + summary("gpu8", "2"), rank(3)},
		"two of them did not wait":               {one("0", waited) + closed(1) + agent + summary("gpu7", "0"), second(1, waited) + summary("gpu8", "2"), nil},
		"all others lost one that was told last": {one("0", lost) + one("1", lost) + closed(1) + agent + summary("gpu7", "0"), second(1, lost) + summary("gpu8", "2"), nil},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			require.NoError(t, os.WriteFile(filepath.Join(dir, "node0-gpu7.log"), []byte(c.first), 0o644))
			require.NoError(t, os.WriteFile(filepath.Join(dir, "node1-gpu8.log"), []byte(c.second), 0o644))
			r, err := diagnose.Path(t.Context(), dir, diagnose.Context{JobState: "ENDED"})
			require.NoError(t, err)
			require.Equal(t, c.rank, r.RootRank, "%s: %s", r.Why, r.RootLine)
		})
	}
}

// Labelled tasks, one of whose launchers is told to end: whether that was first.
func TestALauncherToldToEndInOneLog(t *testing.T) {
	const told = "1: WARNING:torch.distributed.elastic.agent.server.api:Received 15 death signal, shutting down workers\n"
	lost := func(task string) string {
		return task + ": " + strings.ReplaceAll(strings.TrimSuffix(diagnosetest.Raised("RuntimeError: [./gloo/transport/tcp/pair.cc:598] "+
			"Connection closed by peer [127.0.0.1]:4711"), "\n"), "\n", "\n"+task+": ") + "\n" + task +
			": ERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: 1) local_rank: 0 (pid: 7) of binary: /usr/bin/python3\n"
	}
	for name, c := range map[string]struct{ log, class string }{
		"before any complaint":  {told + lost("2") + lost("0"), outcome.UnknownExit},
		"after one":             {lost("2") + told + lost("0"), outcome.NCCLConnection},
		"and it complained too": {told + lost("2") + lost("0") + lost("1"), outcome.NCCLConnection},
	} {
		r := diagnosetest.Old(t, c.log)
		require.Equal(t, c.class, r.Class, "%s: %s: %s", name, r.Why, r.RootLine)
	}
}

// Ranks that wait in vain for one that never joins, in each of several attempts: a report on an earlier attempt is no death in the last.
func TestARankThatNeverJoinsInAnyAttempt(t *testing.T) {
	attempt := func(pid string) (log string) {
		for _, local := range []string{"0", "1", "3"} {
			log += of("[default"+local+"]:", "worker "+local+" ends\n"+diagnosetest.RaisedIn("build", "RuntimeError: Socket Timeout"))
		}
		return log + "WARNING:torch.distributed.elastic.multiprocessing.api:Sending process 7 closing signal SIGTERM\n" +
			"ERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: 1) local_rank: 0 (pid: " + pid + ") of binary: /usr/bin/python3\n"
	}
	last := attempt("73") + exitedWith("gpu1", 1, 0, 1) + "srun: error: gpu1: task 0: Exited with exit code 1\n"
	for _, log := range []string{last, attempt("71") + attempt("72") + last} {
		r := diagnosetest.Old(t, log)
		require.Equal(t, outcome.Rendezvous, r.Class, r.RootLine)
	}
}
