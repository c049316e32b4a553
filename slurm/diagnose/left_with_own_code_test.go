package diagnose_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose/diagnosetest"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
)

// The others lost a process that exited with a code of its own, although its rank is unknown: srun
// reports the exit of its node's launcher.
func TestANodeExitedWithItsOwnCode(t *testing.T) {
	lost := diagnosetest.Raised("RuntimeError: [./gloo/transport/tcp/pair.cc:589] Read error [10.0.0.1]:37298: Connection reset by peer")
	task := func(node, how string) string {
		return "srun: error: " + node + ": task " + node[3:] + ": " + how + "\n"
	}
	for name, c := range map[string]struct{ log, class, line string }{
		"one of two":         {lost + lost + task("gpu1", "Exited with exit code 75") + task("gpu0", "Exited with exit code 1"), outcome.UnknownExit, "exit code 75"},
		"others told to end": {lost + lost + task("gpu1", "Exited with exit code 75") + task("gpu0", "Terminated"), outcome.UnknownExit, "exit code 75"},
		"each with its":      {lost + lost + task("gpu1", "Exited with exit code 75") + task("gpu0", "Exited with exit code 3"), outcome.NCCLConnection, "Read error"},
		"nobody else":        {lost + lost + task("gpu1", "Exited with exit code 75"), outcome.NCCLConnection, "Read error"},
		"all alike":          {lost + lost + task("gpu1", "Exited with exit code 1") + task("gpu0", "Exited with exit code 1"), outcome.NCCLConnection, "Read error"},
		"a cause is told":    {diagnosetest.Raised("KeyError: 'x'") + lost + task("gpu1", "Exited with exit code 75") + task("gpu0", "Exited with exit code 1"), outcome.UserException, "KeyError"},
	} {
		r := diagnosetest.Text(t, "nnodes=2\n"+c.log)
		require.Equal(t, c.class, r.Class, name)
		require.Contains(t, r.RootLine, c.line, name)
	}
}

// The ranks that lost another one are in different collectives by chance: what they complain about is the one
// that is silent, or that exited with a code of its own.
func TestARankThatLeftIsNotOneOfThoseThatLostIt(t *testing.T) {
	steps := diagnosetest.Rounds(5, "0: iteration {n}/100 | lm loss: 2.1\n1: iteration {n}/100 | lm loss: 2.1\n2: iteration {n}/100 | lm loss: 2.1\n"+
		"3: iteration {n}/100 | lm loss: 2.1\n4: iteration {n}/100 | lm loss: 2.1\n")
	lost := func(rank, collective string) string {
		return strings.ReplaceAll("%: Traceback (most recent call last):\n%:   File \"/w/train.py\", line 90, in <module>\n%:     step()\n"+
			"%:   File \"/venv/torch/distributed/distributed_c10d.py\", line 2700, in "+collective+"\n%:     work.wait()\n"+
			"%: RuntimeError: [/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.0.0.4]:3241\n", "%", rank)
	}
	log := steps + lost("0", "barrier") + lost("1", "all_reduce") + lost("2", "all_reduce") + lost("3", "all_reduce")
	for name, end := range map[string]string{
		"nobody tells of exits": "", "one has a code of its own": "srun: error: gpu1: tasks 0-3: Exited with exit code 1\nsrun: error: gpu1: task 4: Exited with exit code 7\n",
	} {
		r := diagnosetest.Text(t, log+end)
		require.Equal(t, 4, *r.RootRank, name)
		require.Equal(t, "silent", r.Laggard)
	}
}

// DeepSpeed's launcher repeats the command of the process that it started last, whichever failed. The
// local rank in it is the failed one's only if there is one process.
func TestTheLocalRankInDeepSpeedsReport(t *testing.T) {
	const exits = "[2024-05-01 10:05:01,500] [ERROR] [launch.py:322:sigkill_handler] ['/usr/bin/python', '-u', 'train.py', '--local_rank=%'] exits with return code = -9\n"
	for local, known := range map[string]bool{"0": true, "3": false, "03": false} {
		r := diagnosetest.Text(t, "step 1 loss 2.3\n"+strings.Replace(exits, "%", local, 1))
		require.Equal(t, outcome.HostOOM, r.Class)
		require.Equal(t, known, r.RootRank != nil, local)
	}
}

// Ranks that are in different collectives, or in one with tensors of different sizes, are so again in a rerun.
func TestRanksThatDisagreeAboutACollectiveAreNotRetried(t *testing.T) {
	for _, line := range []string{
		"  what():  [enforce fail at ./gloo/transport/tcp/pair.cc:510] op.preamble.length <= op.nbytes. 512 vs 256",
		"RuntimeError: Detected mismatch between collectives on ranks. Rank 2 is running collective: CollectiveFingerPrint(OpType=BROADCAST, TensorShape=[1]), " +
			"but Rank 0 is running collective: CollectiveFingerPrint(OpType=ALLREDUCE, TensorShape=[1]).",
	} {
		log := diagnosetest.Raised(line)
		if strings.HasPrefix(line, " ") {
			log = "terminate called after throwing an instance of 'gloo::EnforceNotMet'\n" + line + "\n"
		}
		r := diagnosetest.Text(t, log)
		require.Equal(t, outcome.NCCLTimeout, r.Class, line)
		require.False(t, r.Retry, line)
		require.Contains(t, r.Summary, "disagree about a collective", line)
		require.Contains(t, strings.Join(r.Advice, " "), "another collective", line)
	}
	// The rank that was sent a message of another length is no more likely wrong than its peer.
	r := diagnosetest.Text(t, "0: terminate called after throwing an instance of 'gloo::EnforceNotMet'\n"+
		"0:   what():  [enforce fail at ./gloo/transport/tcp/pair.cc:510] op.preamble.length <= op.nbytes. 512 vs 256\n"+below("2", diagnosetest.Raised(lostPeer))+
		below("3", diagnosetest.Raised(lostPeer))+"srun: error: gpu1: task 0: Aborted\nsrun: error: gpu1: tasks 1-3: Terminated\n")
	require.Equal(t, outcome.NCCLTimeout, r.Class)
	require.Nil(t, r.RootRank)
	require.Contains(t, strings.Join(r.Advice, " "), "TORCH_DISTRIBUTED_DEBUG=DETAIL")
	r = diagnosetest.Text(t, diagnosetest.Raised("RuntimeError: [../gloo/transport/tcp/unbound_buffer.cc:81] Timed out waiting 12000ms for recv operation to complete"))
	require.True(t, r.Retry)
}
