package diagnose_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/diagnosetest"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logfile"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/stretchr/testify/require"
)

// Flight recorder dumps beside logs count only for a verdict about collectives.
func TestDumpsTellWhichCollectiveWasMissed(t *testing.T) {
	late := func(rank int) string {
		return fmt.Sprintf("[rank%d]:[E ProcessGroupNCCL.cpp:632] [Rank %d] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=812, OpType=ALLREDUCE, NumelIn=1, "+
			"NumelOut=1, Timeout(ms)=600000) ran for 600052 milliseconds before timing out.\n", rank, rank)
	}
	oom := strings.ReplaceAll(diagnosetest.OOMLog, "Traceback", "[rank1]: Traceback")
	for name, c := range map[string]struct {
		log, state string
		missing    []int
		class      string
		missed     bool
	}{
		"a collective timed out":    {late(0) + late(2) + late(3), "FAILED", []int{1}, outcome.NCCLTimeout, true},
		"two never came to it":      {late(0) + late(2) + late(3), "FAILED", []int{1, 2}, outcome.NCCLTimeout, true},
		"the job hangs":             {"[rank0]: setting up\n", "RUNNING", []int{1}, outcome.Hang, true},
		"another cause":             {oom, "FAILED", []int{1}, outcome.CUDAOOM, false},
		"all came to all of it":     {late(0) + late(2), "FAILED", nil, outcome.NCCLTimeout, false},
		"dumps, and nothing failed": {"[after training is done]\n", "COMPLETED", []int{1}, outcome.Success, false},
	} {
		dir, long := t.TempDir(), int64(5000)
		require.NoError(t, os.WriteFile(filepath.Join(dir, "train.log"), []byte(c.log), 0o600))
		for rank := range 4 {
			enqueued := 813
			for _, m := range c.missing {
				if rank == m {
					enqueued = 811
				}
			}
			diagnosetest.Dump(t, dir, rank, enqueued, 811)
		}
		r, err := diagnose.Path(t.Context(), dir, diagnose.Context{JobState: c.state, SecondsSinceLastWrite: &long, Nodes: []string{"gpu1"}})
		require.NoError(t, err)
		require.Equal(t, c.class, r.Class, "%s: %s", name, r.RootLine)
		require.Equal(t, c.missed, r.Laggard == "recorder", "%s: %s", name, r.Laggard)
		require.Equal(t, c.missed, r.Collective != "", name)
		if !c.missed {
			continue
		}
		require.Equal(t, 1, *r.RootRank, name)
		require.Contains(t, r.Collective, "#812", name)
		require.Equal(t, "gpu1", *r.RootNode, name)
		if len(c.missing) > 1 {
			require.Equal(t, c.missing, r.MissedBy, name)
		} else {
			require.Empty(t, r.MissedBy, name)
		}
	}
}

// Slurm's message names a failed node, while Slurm holds several nodes down.
func TestAFailedNodeIsTheOneThatALineNames(t *testing.T) {
	down := diagnose.Context{JobState: "NODE_FAIL", FailedNodes: []string{"gpu9"}}
	for name, c := range map[string]struct {
		log, node string
		given     diagnose.Context
	}{
		"no line names it":   {"setting up\n", "gpu9", down},
		"a line names it":    {"srun: error: Node failure on gpu7\n", "gpu7", down},
		"other words for it": {"setting up\nsrun: error: A node failed on node gpu7\n", "gpu7", diagnose.Context{}},
		"nobody names it":    {"setting up\n", "", diagnose.Context{JobState: "NODE_FAIL"}},
		"two lines name two": {"srun: error: Node failure on gpu7\nsrun: error: Node failure on gpu8\n", "gpu7", diagnose.Context{JobState: "NODE_FAIL"}},
	} {
		r := diagnosetest.With(t, c.log, c.given)
		require.Equal(t, outcome.SlurmNodeFail, r.Class, name)
		if c.node == "" {
			require.Nil(t, r.RootNode, name)
			require.Empty(t, r.ExcludeNodes, name)
			continue
		}
		require.Equal(t, c.node, *r.RootNode, name)
		require.Contains(t, r.ExcludeNodes, c.node, name)
		require.NotContains(t, r.ExcludeNodes, "", name)
	}
	r := diagnosetest.With(t, "setting up\n", diagnose.Context{JobState: "FAILED", ExitCode: "1:0", FailedNodes: []string{"gpu9"}})
	require.Nil(t, r.RootNode, "another end is no node's")
}

// Lines with and without a time, and long ones.
func TestALineHasTheTimeThatStandsInIt(t *testing.T) {
	dir := t.TempDir()
	long := strings.Repeat("a", 20_000)
	writeLog(t, filepath.Join(dir, "x.out"), time.Now(), "first", "[2026-06-11 10:00:05] second", "third", long, long[:40_000/3]+" last")
	src, err := logfile.Open(dir)
	require.NoError(t, err)
	lines := allLines(t, src, diagnose.Filter{})
	require.Len(t, lines, 5)
	require.Nil(t, lines[0].Time)
	for _, l := range lines[1:] {
		require.Equal(t, "2026-06-11T10:00:05Z", l.Time.UTC().Format(time.RFC3339), "a line without a time came after the one before it")
	}
	require.Len(t, lines[3].Text, min(len(long), logfile.MaxLineLength), "a long line is cut where every line is")
	require.True(t, strings.HasSuffix(lines[4].Text, " last") || len(lines[4].Text) == logfile.MaxLineLength, "and the next is whole")
	require.Equal(t, 5, lines[4].LineNo)
}

// TestTheNewestLinesOfALongLog has a log that is longer than one read.
func TestTheNewestLinesOfALongLog(t *testing.T) {
	dir := t.TempDir()
	var lines []string
	for i := range 4000 {
		lines = append(lines, fmt.Sprintf("line %d %s", i+1, strings.Repeat("x", 60)))
	}
	writeLog(t, filepath.Join(dir, "x.out"), time.Now(), lines...)
	for _, n := range []int{1, 950, 1000, 3999, 4000, 5000} {
		got := tailOf(t, dir, diagnose.Filter{Tail: n})
		require.Equal(t, lines[max(0, len(lines)-n):], got, "%d lines", n)
	}
	src, err := logfile.Open(dir)
	require.NoError(t, err)
	require.Equal(t, 3001, allLines(t, src, diagnose.Filter{Tail: 1000})[0].LineNo)
	long := strings.Repeat("y", 9*logfile.MaxLineLength)
	writeLog(t, filepath.Join(dir, "x.out"), time.Now(), "first", long, "last")
	require.Equal(t, []string{"first", long[:logfile.MaxLineLength], "last"}, tailOf(t, dir, diagnose.Filter{}))
	f, err := os.Create(filepath.Join(dir, "x.out"))
	require.NoError(t, err)
	_, err = f.WriteString("further back than is searched\n")
	require.NoError(t, err)
	_, err = f.WriteAt([]byte("\nthe end\n"), 8<<20+64<<10-9)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	require.Equal(t, []string{"the end"}, tailOf(t, dir, diagnose.Filter{Tail: 3}))
}

// Lines of programs, and whether they are warnings or errors.
func TestWhichLinesAreOfALevel(t *testing.T) {
	for line, level := range map[string]string{
		"RuntimeError: bad":             "error",
		"[E1107 12:14:04 x.cpp:1] late": "error",
		"E1107 12:14:04 x.cpp:1 late":   "error",
		"F1107 12:14:04 x.cpp:1 late":   "error",
		"gpu1:1:2 [0] NCCL WARN late":   "error",
		"WARNING: it is late":           "warning",
		"W1107 12:14:04 x.cpp:1 late":   "warning",
		"iteration 7":                   "",
		"Epoch 7":                       "",
		"[ ] waiting":                   "",
	} {
		dir := t.TempDir()
		writeLog(t, filepath.Join(dir, "x.out"), time.Now(), line)
		require.Equal(t, level == "error", len(tailOf(t, dir, diagnose.Filter{Level: "error"})) == 1, line)
		require.Equal(t, level != "", len(tailOf(t, dir, diagnose.Filter{Level: "warning"})) == 1, line)
		require.Equal(t, level != "", len(tailOf(t, dir, diagnose.Filter{Level: "warn"})) == 1, line)
	}
}

// srun's labels of several tasks on each node.
func TestTasksFillTheNodesInOrder(t *testing.T) {
	for name, c := range map[string]struct {
		tasks int
		nodes []string
		want  []string // the node of each task's line
	}{
		"as many as nodes": {2, []string{"n1", "n2"}, []string{"n1", "n2"}},
		"three of a node":  {6, []string{"n1", "n2"}, []string{"n1", "n1", "n1", "n2", "n2", "n2"}},
		"not evenly":       {3, []string{"n1", "n2"}, []string{"", "", ""}},
		"no nodes known":   {2, nil, []string{"", ""}},
	} {
		dir := t.TempDir()
		var lines []string
		for i := range c.tasks {
			lines = append(lines, fmt.Sprintf("%d: the launcher says", i), fmt.Sprintf("%d: [default1]:a process says", i))
		}
		writeLog(t, filepath.Join(dir, "x.out"), time.Now(), lines...)
		src, err := logfile.Open(dir)
		require.NoError(t, err)
		var got []string
		for i, l := range allLines(t, src, diagnose.Filter{Nodes: c.nodes}) {
			if i%2 == 0 {
				got = append(got, l.Node)
			}
		}
		require.Equal(t, c.want, got, name)
	}
}

// A job that writes on without progress, and a silent one.
func TestTheAgeOfAHangIsTold(t *testing.T) {
	for age, since := range map[int64]int64{0: 0, 40: 40} {
		r := diagnosetest.With(t, stepsAt(1000, 0)+"[2026-06-11 10:52:00] a warning\n", diagnose.Context{JobState: "RUNNING", SecondsSinceLastWrite: &age})
		require.Equal(t, outcome.Hang, r.Class)
		if since == 0 {
			require.Nil(t, r.SinceS)
		} else {
			require.Equal(t, since, *r.SinceS)
		}
	}
}
