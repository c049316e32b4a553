package diagnose_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose/diagnosetest"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/stretchr/testify/require"
)

// exitedWith is torchelastic's summary of the ranks of a node that failed.
func exitedWith(host string, code, from, to int) string {
	var b strings.Builder
	b.WriteString("torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \nFailures:\n")
	for r := from; r <= to; r++ {
		if r == to {
			b.WriteString("Root Cause (first observed failure):\n")
		}
		fmt.Fprintf(&b, "[%d]:\n  time      : 2026-11-23_10:00:05\n  host      : %s\n  rank      : %d (local_rank: %d)\n  exitcode  : %d (pid: %d)\n",
			r-from, host, r, r-from, code, 4711+r)
	}
	return b.String()
}

// One node's ranks all refuse their arguments, without saying their ranks; the other node's miss them.
func TestRanksThatFailAlikeAreNoConsequences(t *testing.T) {
	const refusal = "usage: pretrain.py [-h] [--lr LR]\npretrain.py: error: argument --lr: expected one argument\n"
	others := strings.Repeat(diagnosetest.Raised("RuntimeError: Socket Timeout"), 2) + exitedWith("gpu1", 1, 0, 1)
	for name, c := range map[string]struct {
		log        string
		downstream int
	}{
		"all of the node": {strings.Repeat(refusal, 3) + exitedWith("gpu2", 2, 2, 4) + others, 2},
		"one of them, and the launcher tells of three": {refusal + exitedWith("gpu2", 2, 2, 4) + others, 5},
	} {
		r := diagnosetest.Text(t, "job 49 on gpu[1-2]\n"+c.log)
		require.Equal(t, outcome.BadArgs, r.Class, name)
		require.Equal(t, c.downstream, r.DownstreamRanks, name)
	}
}

// Ranks of one or several nodes complain of an address that no name service knows.
func TestAnAddressThatNoRankCanResolve(t *testing.T) {
	complaint := func(rank int) string {
		return fmt.Sprintf("[rank%d]:[W1123 10:00:00.000000000 socket.cpp:697] [c10d] The IPv4 network addresses of (login-1, 29500) cannot be retrieved "+
			"(gai error: -2 - Name or service not known).\n[rank%d]: Traceback (most recent call last):\n[rank%d]:   File \"/w/t.py\", line 9, in <module>\n"+
			"[rank%d]: torch.distributed.DistNetworkError: The client socket has timed out after 60000ms while trying to connect to (login-1, 29500).\n",
			rank, rank, rank, rank)
	}
	all := complaint(0) + complaint(1) + complaint(2)
	for name, c := range map[string]struct{ log, node string }{
		"all nodes": {all + exitedWith("gpu1", 1, 0, 1) + exitedWith("gpu2", 1, 2, 2), ""},
		"one node":  {all + exitedWith("gpu1", 1, 0, 2), "gpu1"},
	} {
		r := diagnosetest.Text(t, c.log)
		require.Equal(t, outcome.Rendezvous, r.Class, name)
		require.Nil(t, r.RootRank, name)
		if c.node == "" {
			require.Nil(t, r.RootNode, name)
			continue
		}
		require.NotNil(t, r.RootNode, name)
		require.Equal(t, c.node, *r.RootNode, name)
	}
	r := diagnosetest.Text(t, complaint(1)+exitedWith("gpu1", 1, 1, 1))
	require.NotNil(t, r.RootRank, "only one rank complains")
	require.Equal(t, 1, *r.RootRank)
}

// Each rank's last words name it by torchrun's --tee, and a launcher tells which ranks failed by themselves.
func TestAnErrorOfAllRanksIsCalledSo(t *testing.T) {
	raised := func(local int, message string) string {
		return fmt.Sprintf("[default%d]:Traceback (most recent call last):\n[default%d]:  File \"/w/t.py\", line 9, in <module>\n[default%d]:    main()\n[default%d]:%s\n",
			local, local, local, local, message)
	}
	const key, peer = "KeyError: 'optimizer'", "RuntimeError: Connection closed by peer"
	told := func(to int) (ended string) {
		for r := 2; r <= to; r++ {
			ended += fmt.Sprintf("  host      : gpu1\n  rank      : %d (local_rank: %d)\n  exitcode  : -15 (pid: %d)\n", r, r, 4811+r)
		}
		return ended
	}
	at := func(line int, log string) string { return strings.Replace(log, "line 9", fmt.Sprint("line ", line), 1) }
	outlived := func(local int) string {
		return fmt.Sprintf("[default%d]:WARNING: going on without it\n", local) + raised(local, key) +
			diagnosetest.Rounds(3, fmt.Sprintf("[default%d]: iteration {n}/ 100 | lm loss: 2.1 | elapsed time per iteration (ms): 100.0\n", local))
	}
	first := 1
	for name, c := range map[string]struct {
		log  string
		rank *int
	}{
		"all ranks":                             {raised(1, key) + raised(0, key) + exitedWith("gpu1", 1, 0, 1), nil},
		"each with other numbers":               {raised(1, "ValueError: rank 1 got 7") + raised(0, "ValueError: rank 0 got 9") + exitedWith("gpu1", 1, 0, 1), nil},
		"one lost its peer":                     {raised(1, key) + raised(0, peer) + exitedWith("gpu1", 1, 0, 1), &first},
		"one raised another error":              {raised(1, key) + raised(2, key) + raised(0, "TypeError: x") + exitedWith("gpu1", 1, 0, 2), &first},
		"one left without a word":               {raised(1, key) + raised(2, key) + exitedWith("gpu1", 1, 0, 2), &first},
		"two of eight, and six told to end":     {raised(1, key) + raised(0, key) + exitedWith("gpu1", 1, 0, 1) + told(7), &first},
		"the others outlived it":                {outlived(0) + outlived(1) + raised(1, key) + raised(0, peer) + exitedWith("gpu1", 1, 0, 1), &first},
		"without a message, at two places":      {at(3, raised(1, "AssertionError")) + raised(0, "AssertionError") + exitedWith("gpu1", 1, 0, 1), &first},
		"without a message, at one place":       {raised(1, "AssertionError") + raised(0, "AssertionError") + exitedWith("gpu1", 1, 0, 1), nil},
		"a copy without the rank":               {raised(1, key) + diagnosetest.Raised(key) + exitedWith("gpu1", 1, 0, 1), &first},
		"most of them, and one was told to end": {raised(1, key) + raised(0, key) + exitedWith("gpu1", 1, 0, 1) + told(2), nil},
	} {
		r := diagnosetest.Text(t, "job 49 on gpu1\n"+c.log)
		require.NotNil(t, r.RootRank, name)
		if c.rank != nil {
			require.Equal(t, *c.rank, *r.RootRank, name)
		}
		require.NotNil(t, r.RootNode, name)
		require.Equal(t, "gpu1", *r.RootNode, name)
		require.Equal(t, c.rank == nil, r.Laggard == "all", name)
		if c.rank == nil {
			require.Equal(t, strings.Count(c.log, "exitcode  : -15"), r.DownstreamRanks, name)
		}
	}
}
