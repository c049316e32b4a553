package diagnose_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose/diagnosetest"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
)

// below puts a task's label before each line, as srun --label does.
func below(task, text string) string {
	return task + ": " + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n"+task+": ") + "\n"
}

// One rank leaves with 0, and the others lose it. Nobody reports on its exit, and on each other rank's somebody does.
func TestTheRankForWhichNobodyAccountsLeft(t *testing.T) {
	lost := diagnosetest.Raised(lostPeer)
	steps := diagnosetest.Rounds(4, "0: iteration {n}/100 | lm loss: 2.1\n1: iteration {n}/100 | lm loss: 2.1\n2: iteration {n}/100 | lm loss: 2.1\n"+
		"3: iteration {n}/100 | lm loss: 2.1\n4: iteration {n}/100 | lm loss: 2.1\n5: iteration {n}/100 | lm loss: 2.1\n")
	const (
		one   = "srun: error: gpu1: task 0: Exited with exit code 1\nsrun: launch/slurm: _step_signal: Terminating StepId=7.0\n"
		ended = "srun: error: gpu1: tasks 1-2: Terminated\nsrun: error: gpu2: tasks 3,5: Terminated\n"
	)
	two := below("0", lost+lost+closing+exitedWith("gpu1", 1, 0, 0)) + below("1", lost+strings.ReplaceAll(exitedWith("gpu2", 1, 3, 3), "local_rank: 0", "local_rank: 1"))
	for name, c := range map[string]struct {
		log  string
		rank any
	}{
		"srun, and one task of six":        {steps + below("0", lost) + one + ended, 4},
		"srun, and two tasks of six":       {steps + below("0", lost) + one + strings.ReplaceAll(ended, "3,5", "5"), nil},
		"srun, and no task":                {steps + below("0", lost) + one + strings.ReplaceAll(ended, "3,5", "3-5"), nil},
		"srun, and the one that complains": {steps + below("0", lost) + below("4", lost) + one + ended, nil},
		"srun, and others left before":     {steps + below("0", lost) + one + strings.ReplaceAll(ended, "Terminated", "Exited with exit code 1"), nil},
		"torchrun, and one of two":         {two, 2},
		"torchrun that ended it":           {two + below("1", closing), 3}, // which told the other one to end, and three of four complain
		"torchrun, and it complains":       {two + below("1", lost), nil},
		"torchrun, of which one is late":   {strings.Replace(two, below("0", lost), "", 1), nil},
		"torchrun on a third node":         {"------------------------ arguments ------------------------\n  world_size ...................................... 6\n" + two, nil},
	} {
		t.Run(name, func(t *testing.T) {
			r := diagnosetest.Text(t, c.log)
			if c.rank == nil {
				require.NotEqual(t, "silent", r.Laggard)
				return
			}
			require.Equal(t, outcome.UnknownExit, r.Class)
			require.NotNil(t, r.RootRank)
			require.Equal(t, c.rank, *r.RootRank)
			require.Equal(t, "gpu2", *r.RootNode)
		})
	}
}

// One rank raises an exception below no prefix, and its launcher sees it exit with 1. The others see that it is gone,
// and leave with a code of their own.
func TestTheOnlyRankThatExitsWithOneRaisedTheException(t *testing.T) {
	const gone = "rank 0: the network failed, leaving: [./gloo/transport/tcp/pair.cc:598] Connection closed by peer [10.0.0.2]:27013\n"
	for name, c := range map[string]struct {
		code int
		rank any
	}{"others with their own code": {17, 1}, "all with one": {1, nil}} {
		log := below("0", diagnosetest.Raised("KeyError: 'tokens'")+gone+
			strings.Replace(exitedWith("gpu1", c.code, 0, 1), fmt.Sprint(c.code, " (pid: 4712)"), "1 (pid: 4712)", 1)) +
			below("1", strings.ReplaceAll(gone, "rank 0", "rank 2")+strings.ReplaceAll(gone, "rank 0", "rank 3")+exitedWith("gpu2", c.code, 2, 3)) +
			"srun: error: gpu1: task 0: Exited with exit code 1\nsrun: error: gpu2: task 1: Exited with exit code 1\nfinished with exit code 1\n"
		r := diagnosetest.Text(t, log)
		require.Equal(t, outcome.UserException, r.Class, name)
		require.Equal(t, "gpu1", *r.RootNode, name)
		if c.rank == nil {
			require.Nil(t, r.RootRank, name)
			continue
		}
		require.NotNil(t, r.RootRank, name)
		require.Equal(t, c.rank, *r.RootRank, name)
	}
}

// One rank leaves with 1 and says nothing. Its launcher reports on one rank more than complains, and each other launcher
// on as many.
func TestTheNodeOfARankThatSaidNothing(t *testing.T) {
	lost := diagnosetest.Raised(lostPeer)
	for name, c := range map[string]struct {
		first, second int // complaints
		node          any
	}{
		"one on the second node": {2, 1, "gpu2"},
		"one on the first node":  {1, 2, "gpu1"},
		"one on each":            {1, 1, nil},
		"two on the second":      {2, 0, nil},
		"none":                   {2, 2, nil},
	} {
		r := diagnosetest.Text(t, below("0", strings.Repeat(lost, c.first)+exitedWith("gpu1", 1, 0, 1))+
			below("1", strings.Repeat(lost, c.second)+exitedWith("gpu2", 1, 2, 3))+
			"srun: error: gpu1: task 0: Exited with exit code 1\nsrun: error: gpu2: task 1: Exited with exit code 1\n")
		if c.node == nil {
			require.NotEqual(t, outcome.UnknownExit, r.Class, name)
			continue
		}
		require.Equal(t, outcome.UnknownExit, r.Class, name)
		require.NotNil(t, r.RootNode, name)
		require.Equal(t, c.node, *r.RootNode, name)
		require.Nil(t, r.RootRank, name)
		require.Contains(t, r.Summary, "does not tell which", name)
	}
}

// A rank catches an exception and goes on; on the other node one raises another. No prefix tells the ranks, but each
// process on which the first launcher reports ended by the loss of a peer.
func TestAnExceptionThatNoneOfTheNodesRanksDiedOf(t *testing.T) {
	const caught = "Traceback (most recent call last):\n  File \"/w/data.py\", line 61, in fetch\n    f = open(path)\n" +
		"FileNotFoundError: [Errno 2] No such file or directory: '/mnt/objects/7.bin'\nWARNING: taking the local copy\n"
	const tied = "\nDuring handling of the above exception, another exception occurred:\n\n"
	lost, raised := diagnosetest.Raised(lostPeer), diagnosetest.Raised("KeyError: 'tokens'")
	cut := strings.TrimSuffix(caught, "WARNING: taking the local copy\n")
	for name, c := range map[string]struct{ first, second, class string }{
		"all lost a peer":            {caught + lost + lost, raised + lost, outcome.UserException},
		"one of them complains less": {caught + lost, raised + lost, outcome.DatasetMissing},
		"one died of handling it":    {cut + tied + lost + lost, raised + lost, outcome.DatasetMissing},
		"nothing else explains it":   {caught + lost + lost, lost + lost, outcome.DatasetMissing},
		"it was not caught": {
			diagnosetest.Raised("FileNotFoundError: [Errno 2] No such file or directory: '/mnt/objects/7.bin'") + lost + lost, raised + lost, outcome.DatasetMissing,
		},
	} {
		r := ofFolder(t, map[string]string{"train-0.err": c.first + exitedWith("gpu1", 1, 0, 1), "train-1.err": c.second + exitedWith("gpu2", 1, 2, 3)})
		require.Equal(t, c.class, r.Class, name)
	}
}

// One launcher has all ranks. It reports the one that left in silence, and told the others to end, some of which had lost that one.
func TestTheOnlyRankThatItsLauncherSawLeave(t *testing.T) {
	lost := diagnosetest.Raised(lostPeer)
	waited := diagnosetest.Raised("RuntimeError: [../gloo/transport/tcp/unbound_buffer.cc:78] Timed out waiting 60000ms for recv operation to complete")
	const world = "using world size: 4, data-parallel size: 4, tensor-model-parallel size: 1\n"
	one := exitedWith("gpu1", 1, 0, 2)
	head, _, _ := strings.Cut(one, "[0]:")
	_, last, _ := strings.Cut(one, "Root Cause")
	one = head + "Root Cause" + last // rank 2 alone
	for name, c := range map[string]struct {
		log  string
		rank int
	}{
		"all others were there": {lost + strings.Repeat(closing, 3) + one, 2},
		"one left in between":   {lost + lost + strings.Repeat(closing, 2) + one, 2},
		"several others left":   {lost + lost + closing + one, -1},
		"all complain":          {strings.Repeat(lost, 4) + strings.Repeat(closing, 3) + one, -1},
		"they waited for it":    {waited + strings.Repeat(closing, 2) + one, -1},
	} {
		r := diagnosetest.Text(t, world+c.log)
		require.Equal(t, c.rank >= 0, r.Class == outcome.UnknownExit, "%s: %s", name, r.RootLine)
		namesRank(t, c.rank, r, name)
	}
}

// Nodes have different numbers of ranks, and one of the smaller node's leaves in silence.
func TestANodeWithFewerRanks(t *testing.T) {
	const world = "using world size: 6, data-parallel size: 6, tensor-model-parallel size: 1\n"
	first := world
	for _, tag := range []string{"[rank0]: ", "[rank1]: ", "[rank2]: ", "[rank3]: "} {
		first += of(tag, diagnosetest.Raised(lostPeer))
	}
	r := ofFolder(t, map[string]string{"7-gpu1.log": first + exitedWith("gpu1", 1, 0, 3), "7-gpu2.log": closing + exitedWith("gpu2", 1, 4, 4)})
	require.Equal(t, outcome.UnknownExit, r.Class, r.RootLine)
	namesRank(t, 4, r, r.RootLine)
}

// One launcher told more processes to end than events of one kind are kept.
func TestManyProcessesThatWereToldToEnd(t *testing.T) {
	const world = "using world size: 16, data-parallel size: 16, tensor-model-parallel size: 1\n"
	one := strings.NewReplacer("rank      : 0", "rank      : 9", "local_rank: 0", "local_rank: 9").Replace(exitedWith("gpu1", 1, 0, 0))
	r := diagnosetest.Text(t, world+strings.Repeat(diagnosetest.Raised(lostPeer), 5)+strings.Repeat(strings.Replace(closing, "4711", "71", 1), 15)+
		"ERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: 1) local_rank: 9 (pid: 4711) of binary: /usr/bin/python3\n"+one)
	require.Equal(t, outcome.UnknownExit, r.Class, r.RootLine)
	namesRank(t, 9, r, r.RootLine)
}

// A log claims more ranks than any job has.
func TestClaimsOfMoreRanksThanThereAre(t *testing.T) {
	for name, claim := range map[string]string{
		"the world":      "using world size: 999999999, data-parallel size: 1, tensor-model-parallel size: 1\n" + exitedWith("gpu1", 1, 0, 0),
		"a local rank":   strings.Replace(exitedWith("gpu1", 1, 999999, 999999), "local_rank: 0", "local_rank: 999999", 1),
		"a higher local": strings.Replace(exitedWith("gpu1", 1, 3, 3), "local_rank: 0", "local_rank: 999999", 1),
	} {
		r := diagnosetest.Text(t, of("[rank1]: ", diagnosetest.Raised(lostPeer))+of("[rank2]: ", diagnosetest.Raised(lostPeer))+claim)
		require.True(t, r.RootRank == nil || *r.RootRank >= 0, name)
	}
}
