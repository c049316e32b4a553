package diagnose_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/diagnosetest"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/report"
)

// ofFolder diagnoses the logs of a job that has ended, given by name.
func ofFolder(t *testing.T, logs map[string]string) report.Report {
	t.Helper()
	dir := t.TempDir()
	for file, text := range logs {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, file)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644))
	}
	r, err := diagnose.Path(context.Background(), dir, diagnose.Context{JobState: "ENDED"})
	require.NoError(t, err)
	return r
}

const lostPeer = "RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.0.0.1]:15782"

// logged is an exception that a program caught and logged below a record.
func logged(record, exception string) string {
	return record + "\nTraceback (most recent call last):\n  File \"/w/run.py\", line 57, in main\n    run(args)\n" + exception + "\n"
}

// The two files of srun --output=train-%n.out have the numbers of nodes. Their lines belong to other
// ranks than these numbers.
func TestAFileOfEachNodeNamesNoRank(t *testing.T) {
	const missing = "FileNotFoundError: [Errno 2] No such file or directory: '/data/gone.bin'"
	failed := "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \nFailures:\n  <NO_OTHER_FAILURES>\nRoot Cause (first observed failure):\n[0]:\n" +
		"  host      : gpu2\n  rank      : 2 (local_rank: 0)\n  exitcode  : 1 (pid: 4711)\n"
	first := logged("2026-11-23 10:00:02,001 [rank 0/4 gpu1] CRITICAL train: failed", lostPeer) + logged("2026-11-23 10:00:02,002 [rank 1/4 gpu1] CRITICAL train: failed", lostPeer)
	for name, c := range map[string]struct {
		second string
		rank   any
	}{
		"a record names the rank": {logged("2026-11-23 10:00:01,000 [rank 2/4 gpu2] CRITICAL train: failed", missing) + failed, 2},
		"a record with bars":      {logged("2026-11-23 10:00:01,000 | rank 2/4 | ERROR | failed", missing) + failed, 2},
		// A program may catch exceptions at its module's level too.
		"a record of an error, and the module": {"2026-11-23 10:00:01,000 [rank 2/4 gpu2] ERROR train: failed\n" + diagnosetest.Raised(missing) + failed, 2},
		// An uncaught exception does not belong to the rank that wrote the line before it.
		"nobody caught it":         {"2026-11-23 10:00:01,000 [rank 3/4 gpu2] WARNING train: slow\n" + diagnosetest.Raised(missing) + failed, nil},
		"the record complains not": {logged("2026-11-23 10:00:01,000 [rank 3/4 gpu2] INFO train: step 2", missing) + failed, nil},
	} {
		t.Run(name, func(t *testing.T) {
			r := ofFolder(t, map[string]string{"train-0.out": first, "train-1.out": c.second})
			require.Equal(t, outcome.DatasetMissing, r.Class)
			if c.rank == nil {
				require.True(t, r.RootRank == nil || *r.RootRank == 2, "torchrun tells of rank 2 alone")
				return
			}
			require.NotNil(t, r.RootRank)
			require.Equal(t, c.rank, *r.RootRank)
		})
	}
}

// If all ranks complain about a lost peer, none of them is the silent one.
func TestRanksThatComplainAreNotSilent(t *testing.T) {
	says := func(rank string) string {
		return "[rank" + rank + "]: " + strings.ReplaceAll(strings.TrimSuffix(diagnosetest.Raised(lostPeer), "\n"), "\n", "\n[rank"+rank+"]: ") + "\n"
	}
	r := ofFolder(t, map[string]string{
		"logs/train-0.out": "starting\n" + says("0") + says("1"), "logs/train-1.out": "starting\n" + says("2"),
		"slurm-7.out": "srun: error: gpu1: task 0: Exited with exit code 1\nsrun: error: gpu2: task 2: Exited with exit code 1\nsrun: error: gpu1: task 1: Exited with exit code 1\n",
	})
	require.Equal(t, outcome.NCCLConnection, r.Class)
	require.Empty(t, r.Laggard)
}

// The two files of srun --error=train-%j-n%n.err belong to nodes. In one of them both ranks raise the
// same exception, and the launcher names them and their node.
func TestANodesNumberIsNotItsName(t *testing.T) {
	const gone = "ModuleNotFoundError: No module named 'einops'"
	told := func(host string, rank, local string) string {
		return "[" + local + "]:\n  time      : 2026-11-23_10:00:05\n  host      : " + host + "\n  rank      : " + rank + " (local_rank: " + local + ")\n  exitcode  : 1 (pid: 471" + rank + ")\n"
	}
	failed := func(host, rank string) string {
		return "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \nFailures:\n" + told(host, rank, "1")
	}
	r := ofFolder(t, map[string]string{
		"train-23-n0.err": diagnosetest.Raised(lostPeer) + diagnosetest.Raised(lostPeer) + failed("gpu1", "1") + "Root Cause (first observed failure):\n" + told("gpu1", "0", "0"),
		"train-23-n1.err": diagnosetest.Raised(gone) + diagnosetest.Raised(gone) + failed("gpu2", "3") + "Root Cause (first observed failure):\n" + told("gpu2", "2", "0"),
	})
	require.Equal(t, outcome.ImportError, r.Class)
	namesRank(t, 2, r, r.RootLine)
	require.NotNil(t, r.RootNode)
	require.Equal(t, "gpu2", *r.RootNode)
}

// One rank raises an exception in a file whose name does not name the node. The launcher reports on both ranks of the
// node there, and on those of the other node in the other file.
func TestALaunchersReportsNameTheNodeOfAFile(t *testing.T) {
	raised, lost := diagnosetest.Raised("KeyError: 'tokens'"), diagnosetest.Raised(lostPeer)
	for name, c := range map[string]struct {
		first, second string
		node          any
	}{
		"each node has a file":      {lost + lost + exitedWith("gpu1", 1, 0, 1), raised + lost + exitedWith("gpu2", 1, 2, 3), "gpu2"},
		"the other node said less":  {lost + lost, raised + lost + exitedWith("gpu2", 1, 2, 3) + "srun: error: gpu1: task 0: Exited with exit code 1\n", nil},
		"both nodes share the file": {"starting\n", lost + raised + lost + lost + exitedWith("gpu1", 1, 0, 1) + exitedWith("gpu2", 1, 2, 3), nil},
	} {
		r := ofFolder(t, map[string]string{"train-0.err": c.first, "train-1.err": c.second})
		require.Equal(t, outcome.UserException, r.Class, name)
		require.Nil(t, r.RootRank, name)
		if c.node == nil {
			require.Nil(t, r.RootNode, name)
			continue
		}
		require.NotNil(t, r.RootNode, name)
		require.Equal(t, c.node, *r.RootNode, name)
	}
}

// A launcher gives up, and the one that it could not reach is told to end: what names no node happened on the first's.
func TestATaskThatWasToldToEndLostNoNode(t *testing.T) {
	const gaveUp = "[E socket.cpp:860] [c10d] The client socket has timed out after 15s while trying to connect to (127.0.0.1, 29511).\n"
	for how, node := range map[string]any{"Terminated": "gpu2", "Exited with exit code 1": nil} {
		r := ofFolder(t, map[string]string{
			"train-1.log": gaveUp,
			"slurm-9.out": "srun: error: gpu2: task 1: Exited with exit code 1\nsrun: error: gpu1: task 0: " + how + "\n",
		})
		require.Equal(t, outcome.Rendezvous, r.Class)
		require.Equal(t, node == nil, r.RootNode == nil, how)
		if node != nil {
			require.Equal(t, node, *r.RootNode)
		}
	}
}

// torchrun's prefix is the number on the node, and both nodes write into one file.
func TestTheNumberOnTheNodeNamesNoRank(t *testing.T) {
	local := func(n, text string) string {
		return "[default" + n + "]:" + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n[default"+n+"]:") + "\n"
	}
	raised, lost := diagnosetest.Raised("KeyError: 'tokens'"), diagnosetest.Raised(lostPeer)
	r := diagnosetest.Text(t, local("0", raised)+local("1", lost)+local("0", lost)+local("1", lost)+exitedWith("gpu1", 1, 0, 1)+exitedWith("gpu2", 1, 2, 3))
	require.Nil(t, r.RootRank)
	require.Contains(t, r.Summary, "on which node")
	require.Contains(t, r.Summary, "`--label` of srun")
	words := local("0", raised) + local("1", lost) + local("0", lost) + local("1", lost)
	second := func(host string, rank int) string { // its first process was told to end
		return strings.Replace(exitedWith(host, 1, rank, rank), "local_rank: 0", "local_rank: 1", 1)
	}
	for name, c := range map[string]struct {
		reports string
		rank    int
	}{
		"the second node's was told to end":   {closing + exitedWith("gpu1", 1, 0, 1) + second("gpu2", 3), 0},
		"the first node's was":                {closing + second("gpu1", 1) + exitedWith("gpu2", 1, 2, 3), 2},
		"a third node's says nothing":         {local("1", lost) + closing + exitedWith("gpu1", 1, 0, 1) + second("gpu2", 3), -1},
		"its launcher does not tell":          {exitedWith("gpu1", 1, 0, 1) + second("gpu2", 3), -1},
		"a third node's launcher tells none":  {closing + exitedWith("gpu1", 1, 0, 1) + second("gpu2", 3) + "srun: error: gpu3: task 2: Exited with exit code 1\n", -1},
		"a third node's tells of its process": {closing + exitedWith("gpu1", 1, 0, 1) + second("gpu2", 3) + exitedWith("gpu3", 1, 4, 5), -1},
	} {
		namesRank(t, c.rank, diagnosetest.Text(t, words+c.reports), name)
	}
	r = diagnosetest.Text(t, raised+lost+lost+lost+exitedWith("gpu1", 1, 0, 1)+exitedWith("gpu2", 1, 2, 3))
	require.Nil(t, r.RootRank)
	require.Contains(t, r.Summary, "`--tee 3`")
}

// Nodes' files are numbered, as srun's %n numbers them, and each node has one for its standard output and one for its standard error,
// where the launcher reports.
func TestTheTwoStreamsOfANode(t *testing.T) {
	lost := diagnosetest.Raised(lostPeer)
	full := diagnosetest.Raised("OSError: [Errno 28] No space left on device")
	r := ofFolder(t, map[string]string{
		"pulse_0.out": "loading\n" + lost + lost, "pulse_0.err": exitedWith("gpu1", 9, 0, 1),
		"pulse_1.out": full + lost, "pulse_1.err": strings.Replace(exitedWith("gpu2", 9, 2, 3), "exitcode  : 9 (pid: 4713)", "exitcode  : 28 (pid: 4713)", 1),
	})
	require.Equal(t, outcome.DiskFull, r.Class)
	require.NotNil(t, r.RootNode)
	require.Equal(t, "gpu2", *r.RootNode)
	namesRank(t, 2, r, "by its exit code")

	r = ofFolder(t, map[string]string{
		"pen_0.out": "loading\n", "pen_2.out": "loading\n", "pen_1.out": "loading\n",
		"pen_3.out": of("[default1]:", diagnosetest.Raised("KeyError: 'final'")), "pen_3.err": strings.ReplaceAll(exitedWith("gpu4", 1, 7, 7), "local_rank: 0", "local_rank: 1"),
	})
	namesRank(t, 7, r, "a local rank's prefix")
}

// Files are numbered, and srun reports on more tasks than there are files: these are nodes'.
func TestMoreTasksThanFiles(t *testing.T) {
	raised := diagnosetest.Raised("KeyError: 'a'")
	const one = "srun: error: gpu1: task 1: Exited with exit code 1\n"
	for report, named := range map[string]bool{one: true, "srun: error: gpu2: tasks 2-3: Exited with exit code 1\n" + one: false} {
		r := ofFolder(t, map[string]string{"pen_0.out": raised, "pen_1.out": diagnosetest.Raised(lostPeer), "slurm-7.out": report})
		require.Equal(t, named, r.RootRank != nil && *r.RootRank == 0, report)
	}
}
