package diagnose_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose/diagnosetest"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/report"
)

// of puts a rank's tag before each line of a text.
func of(tag, text string) string {
	return tag + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n"+tag) + "\n"
}

// namesRank requires the rank that a report names; -1 for none.
func namesRank(t *testing.T, rank int, r report.Report, about string) {
	t.Helper()
	if rank < 0 {
		require.Nil(t, r.RootRank, about)
		return
	}
	require.NotNil(t, r.RootRank, about)
	require.Equal(t, rank, *r.RootRank, about)
}

// Exceptions whose text contains the letters of a launcher's word for a process that was told to end.
func TestASymptomsWordIsAWord(t *testing.T) {
	for raised, class := range map[string]string{
		"json.decoder.JSONDecodeError: Unterminated string starting at: line 1 column 9 (char 8)": outcome.UserException,
		"ValueError: undeterminated scalar":                                          outcome.UserException,
		"RuntimeError: DataLoader worker (pid 71) is killed by signal: Terminated. ": outcome.NCCLConnection,
	} {
		r := diagnosetest.Text(t, of("[rank3]: ", diagnosetest.Raised(raised))+of("[rank2]: ", diagnosetest.Raised(lostPeer))+
			of("[rank1]: ", diagnosetest.Raised(lostPeer)))
		require.Equal(t, class, r.Class, raised)
	}
}

// torchelastic's summary of a rank that SIGKILL ended: sent by the launcher after an ignored SIGTERM,
// or by something else.
func TestALaunchersKillNeedsNoMemory(t *testing.T) {
	const late = "RuntimeError: [../gloo/transport/tcp/unbound_buffer.cc:78] Timed out waiting 60000ms for recv operation to complete"
	log := func(killed string) string {
		return of("[rank0]: ", diagnosetest.Raised(late)) + of("[rank2]: ", diagnosetest.Raised(late)) + of("[rank3]: ", diagnosetest.Raised(late)) + killed +
			"E0611 10:00:31.420000 77 torch/distributed/elastic/multiprocessing/api.py:1002] failed (exitcode: 1) local_rank: 0 (pid: 300) of binary: /v/python\n" +
			diagnosetest.Raised("torch.distributed.elastic.multiprocessing.errors.ChildFailedError: ") +
			"============================================================\ntrain.py FAILED\nFailures:\n[1]:\n  time      : 2026-06-11_10:00:31\n  host      : n1\n" +
			"  rank      : 1 (local_rank: 1)\n  exitcode  : -9 (pid: 301)\n  error_file: <N/A>\n  traceback : Signal 9 (SIGKILL) received by PID 301\n" +
			"Root Cause (first observed failure):\n[0]:\n  time      : 2026-06-11_10:00:01\n  host      : n1\n" +
			"  rank      : 0 (local_rank: 0)\n  exitcode  : 1 (pid: 300)\n  error_file: <N/A>\n  traceback : none\n" +
			"srun: error: n2: task 1: Exited with exit code 1\nsrun: error: n1: task 0: Exited with exit code 1\n"
	}
	const gaveUp = "W0611 10:00:31.350000 77 torch/distributed/elastic/multiprocessing/api.py:1047] Unable to shutdown process %d via %s, forcefully exiting via %s\n"
	for killed, class := range map[string]string{
		fmt.Sprintf(gaveUp, 301, "15", "9"):                            outcome.NCCLTimeout,
		fmt.Sprintf(gaveUp, 301, "Signals.SIGTERM", "Signals.SIGKILL"): outcome.NCCLTimeout,
		fmt.Sprintf(gaveUp, 302, "15", "9"):                            outcome.NCCLTimeout,
		"":                                                             outcome.NCCLTimeout,
	} {
		r := diagnosetest.Text(t, log(killed))
		require.Equal(t, class, r.Class, killed)
		require.NotContains(t, r.Summary, "memory", killed)
		rank := 1 // the only one with this exit code, unless its launcher gave it
		if strings.Contains(killed, "301") {
			rank = -1
		}
		namesRank(t, rank, r, killed)
	}
}

// An agent reported, without times, a failure in each of three attempts, and gave up. The lines of the
// last attempt's ranks came before its last report.
func TestAnAgentTellsOfEachAttempt(t *testing.T) {
	const told = "ERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: 1) local_rank: 0 (pid: 1%d) of binary: /v/python\n"
	const summary = "============================================================\ntrain.py FAILED\nRoot Cause (first observed failure):\n[0]:\n" +
		"  time      : 2026-06-11_10:03:00\n  host      : n1\n  rank      : 0 (local_rank: 0)\n  exitcode  : 1 (pid: 12)\n  error_file: <N/A>\n  traceback : none\n"
	logs := map[string]string{"slurm-7.out": "=== job 7, Thu Jun 11 10:00:00 UTC 2026 ===\n" + fmt.Sprintf(told+told+told, 0, 1, 2) + summary}
	for n := range 3 {
		logs[fmt.Sprintf("logs/n1/7_ab/attempt_%d/0/stderr.log", n)] = fmt.Sprintf("2026-06-11 10:0%d:59 connecting\n", n) +
			diagnosetest.Raised("TimeoutError: The client socket has timed out after 25s while trying to connect to (n1, 4001).")
	}
	r := ofFolder(t, logs)
	require.Equal(t, outcome.Rendezvous, r.Class, r.RootLine)
	require.Equal(t, "logs/n1/7_ab/attempt_2/0/stderr.log", r.RootFile)
	require.Equal(t, 3, r.Attempts)
}

// Two nodes of torch.multiprocessing.spawn: on one a child exited with the program's own exit code, on
// the other a child lost that one.
func TestAChildsOwnCodeIsNoVictims(t *testing.T) {
	for words, class := range map[string]string{
		"process 1 terminated with exit code 7": outcome.UnknownExit,
		"process 1 terminated with exit code 1": outcome.NCCLConnection,
	} {
		r := ofFolder(t, map[string]string{
			"slurm-4.err": "srun: error: n1: task 0: Exited with exit code 1\nsrun: error: n2: task 1: Exited with exit code 1\n",
			"4-n0.err":    spawn + "torch.multiprocessing.spawn.ProcessExitedException: " + words + "\n",
			"4-n1.err": spawn + "torch.multiprocessing.spawn.ProcessRaisedException: \n\n-- Process 0 terminated with the following error:\n" +
				diagnosetest.Raised(lostPeer),
		})
		require.Equal(t, class, r.Class, words)
	}
}

// Shells that found no program, and srun's reports on the tasks that exited.
func TestWhoseShellFoundNoProgram(t *testing.T) {
	const shells = "bash: line 1: /opt/v/bin/python: No such file or directory\nbash: line 1: /opt/v/bin/python: No such file or directory\n"
	for left, rank := range map[string]int{
		"srun: error: n2: tasks 2-3: Exited with exit code 127\nsrun: error: n1: tasks 0-1: Terminated\n":                2,
		"srun: error: n2: task 3: Exited with exit code 126\nsrun: error: n2: task 2: Exited with exit code 126\n":       2,
		"srun: error: n2: tasks 2-3: Exited with exit code 127\nsrun: error: n1: tasks 0-1: Exited with exit code 127\n": -1,
	} {
		r := diagnosetest.Text(t, shells+left)
		require.Equal(t, outcome.EnvLaunch, r.Class, left)
		namesRank(t, rank, r, left)
	}
}

// Ranks wait for others: the rank that hosts the store counts who joined, and only a rank that is
// silent while all others complain may be blamed.
func TestTheRankThatCountsIsNotMissing(t *testing.T) {
	waits := func(rank string) string {
		return of(rank+": ", diagnosetest.Raised("torch.distributed.DistStoreError: wait timeout after 25000ms, keys: /default_pg/0//cpu//0/0"))
	}
	counts := func(came string) string {
		return of("0: ", diagnosetest.Raised("torch.distributed.DistStoreError: Timed out after 26 seconds waiting for clients. "+came+" clients joined."))
	}
	const left = "srun: error: n2: tasks 2-3: Exited with exit code 1\nsrun: error: n1: tasks 0-1: Exited with exit code 1\n"
	r := diagnosetest.Text(t, waits("2")+waits("3")+waits("1")+counts("4/6")+left)
	require.Equal(t, outcome.NodeCountMismatch, r.Class)
	namesRank(t, -1, r, r.RootLine)
}

// Three of four ranks report their ranks when they join, in the words of several trainers, and then
// wait for the fourth, without a rank in that message.
func TestTheRankThatDidNotReportJoiningIsMissing(t *testing.T) {
	waits := strings.Repeat(diagnosetest.Raised("torch.distributed.DistStoreError: wait timeout after 12000ms, keys: /default_pg/0//cpu//0/0"), 2)
	for _, say := range []string{
		"[n%[2]d] joining: rank %[1]d, world size 4, backend gloo\n", "init: rank=%[1]d world_size=4\n", "{\"rank\": %[1]d, \"world_size\": 4}\n",
		"Initializing distributed: GLOBAL_RANK: %[1]d, MEMBER: %[2]d/4\n",
	} {
		came := func(ranks ...int) (all string) {
			for _, r := range ranks {
				all += fmt.Sprintf(say, r, r+1)
			}
			return all
		}
		for log, rank := range map[string]int{came(0, 1, 3): 2, came(0, 1, 2, 3): -1, came(0): -1, came(1, 0): -1} {
			r := diagnosetest.Text(t, log+waits)
			require.Equal(t, outcome.Rendezvous, r.Class, log)
			namesRank(t, rank, r, log)
		}
	}
}

// The traceback of one of four tasks is mixed with other tasks' lines, so that only srun's report on
// the first exit shows its rank.
func TestATracebackThatOthersBreakInto(t *testing.T) {
	const raised = "Traceback (most recent call last):\n  File \"/w/data.py\", line 16, in __init__\n2026-06-11 10:00:01,984 [INFO] dataset ready\n" +
		"2026-06-11 10:00:01,990 [INFO] dataset ready\n    mm = mmap.mmap(f, n)\nValueError: mmap length is greater than file size\n"
	left := ""
	for _, task := range []string{"n2: task 2", "n1: task 1", "n1: task 0", "n2: task 3"} {
		left += "srun: error: " + task + ": Exited with exit code 1\n"
	}
	namesRank(t, 2, diagnosetest.Text(t, raised+diagnosetest.Raised(lostPeer)+diagnosetest.Raised(lostPeer)+diagnosetest.Raised(lostPeer)+left), "")
}

// The errors of torch.cuda in a PyTorch that was built without CUDA.
func TestABuildWithoutCUDA(t *testing.T) {
	for _, line := range []string{"AttributeError: module 'torch._C' has no attribute '_cuda_setDevice'", "AssertionError: Torch not compiled with CUDA enabled"} {
		require.Equal(t, outcome.ExtensionABI, diagnosetest.Text(t, diagnosetest.Raised(line)).Class, line)
	}
}

// A task that was killed as its node failed says nothing about memory. On another node it does.
func TestATaskEndsWithItsNode(t *testing.T) {
	killed := func(node string) string {
		return "srun: error: " + node + ": task 2: Killed\n" + diagnosetest.Raised(lostPeer) + "srun: error: Node failure on gpu7\n"
	}
	r := diagnosetest.Text(t, killed("gpu7"))
	require.Equal(t, outcome.SlurmNodeFail, r.Class)
	require.Equal(t, []string{"gpu7"}, r.ExcludeNodes)
	require.Equal(t, outcome.HostOOM, diagnosetest.Text(t, killed("gpu6")).Class)
}

// Slurm's word on a dead node counts whatever the other nodes still write.
func TestStepsAfterTheFailureOfANode(t *testing.T) {
	steps := diagnosetest.Rounds(20, " iteration {n}/ 400 | elapsed time per iteration (ms): 5000.0 | lm loss: 2.0E+00 |\n")
	for _, line := range []string{
		"srun: error: Node failure on gpu7\n",
		"slurmstepd: error: *** JOB 7 ON gpu1 CANCELLED AT 2026-03-01T10:06:00 DUE TO NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS ***\n",
	} {
		require.Equal(t, outcome.SlurmNodeFail, diagnosetest.Old(t, steps+line+steps).Class, line)
	}
}

// A signal ends the launcher of one node, and the other node's ranks lose its ranks; or srun ends it after they failed.
func TestASignalEndsTheLauncherOfOneNode(t *testing.T) {
	const told = "WARNING:torch.distributed.elastic.agent.server.api:Received 15 death signal, shutting down workers\n"
	const second, first = "srun: error: gpu2: task 1: Exited with exit code 1\n", "srun: error: gpu1: task 0: Exited with exit code 1\n"
	lost := diagnosetest.Raised(lostPeer)
	for name, c := range map[string]struct {
		srun, told string
		node       string
	}{
		"its task exits first":                    {second + first, told, "gpu2"},
		"only its task exits":                     {second, told, "gpu2"},
		"the other node's task exits first":       {first + second, told, ""},
		"its ranks had lost the others before":    {second + first, lost + told, ""},
		"no launcher says that a signal ended it": {second + first, "", ""},
	} {
		r := ofFolder(t, map[string]string{
			"slurm-7.out": "job 7\n" + c.srun, "logs/node_0.txt": "step 1\n" + lost + lost + exitedWith("gpu1", 1, 0, 1), "logs/node_1.txt": "step 1\n" + c.told,
		})
		if c.node == "" {
			require.NotContains(t, r.Summary, "told to end", name)
			continue
		}
		require.Equal(t, outcome.UnknownExit, r.Class, name)
		require.NotNil(t, r.RootNode, name)
		require.Equal(t, c.node, *r.RootNode, name)
		require.Nil(t, r.RootRank, name)
		require.Contains(t, r.Summary, "launcher was told to end", name)
	}
}

// Python ends itself by SIGINT after a KeyboardInterrupt, so a launcher's report tells whose it was.
func TestWhoseKeyboardInterrupt(t *testing.T) {
	raised := diagnosetest.Raised("KeyboardInterrupt") + diagnosetest.Raised("RuntimeError: [pair.cc:598] Connection closed by peer [127.0.0.1]:4711")
	one := strings.Replace(exitedWith("gpu1", 1, 0, 3), "exitcode  : 1 (pid: 4714)", "exitcode  : -2 (pid: 4714)", 1)
	r := diagnosetest.Text(t, raised+one)
	require.Equal(t, outcome.SlurmCancelled, r.Class)
	require.NotNil(t, r.RootRank)
	require.Equal(t, 3, *r.RootRank)
	r = diagnosetest.Text(t, raised+exitedWith("gpu1", -2, 0, 3))
	require.Nil(t, r.RootRank, "all were interrupted")
}
