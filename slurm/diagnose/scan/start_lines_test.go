package scan_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/diagnosetest"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logfile"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/stretchr/testify/require"
)

// started is the line that a rendered script writes on each node.
func started(attempt, node int, host, commit string) string {
	return fmt.Sprintf("start: attempt=%d node=%d host=%s ranks=%d-%d commit=%s dirty=e3b0c44298fc argv=aaaaaaaaaaaa env=bbbbbbbbbbbb\n", attempt, node,
		host, 4*node, 4*node+3, commit)
}

// TestTheLogsOfOurOwnScriptsAreRead has what a rendered script leaves: start
// lines, torchrun's prefixes with the node as the role, and a folder for each
// attempt.
func TestTheLogsOfOurOwnScriptsAreRead(t *testing.T) {
	dir := t.TempDir()
	put := func(name, text string) {
		p := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(p), 0o755))
		require.NoError(t, os.WriteFile(p, []byte(text), 0o600))
	}
	raised := func(prefix, said string) string {
		return prefix + "Traceback (most recent call last):\n" + prefix + "  File \"/w/pretrain_gpt.py\", line 9, in forward_step\n" + prefix +
			"    out = model(tokens)\n" + prefix + said + "\n"
	}
	oom := "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."
	put("one/gpt-4711.out", started(0, 0, "gpu-a.x", "c1")+started(0, 1, "gpu-b.x", "c1")+"[gpu-a.x:0]:hello\n"+raised("[gpu-b.x:3]:", oom))
	src, err := logfile.Open(filepath.Join(dir, "one"))
	require.NoError(t, err)
	r, err := diagnose.Run(context.Background(), src, diagnose.Context{JobState: "FAILED"})
	require.NoError(t, err)
	require.Equal(t, outcome.CUDAOOM, r.Class)
	require.Equal(t, 7, *r.RootRank)
	require.Equal(t, "gpu-b.x", *r.RootNode)
	require.Equal(t, 1, r.Attempts)
	var nodes []string
	require.NoError(t, diagnose.Lines(context.Background(), src, diagnose.Filter{Node: "gpu-b.x"}, func(l diagnose.Line) error {
		nodes = append(nodes, l.Node)
		return nil
	}))
	require.GreaterOrEqual(t, len(nodes), 4)

	// A requeued job: the first attempt's failure is told, and is not the cause.
	put("two/4711/attempt-0/start-0", started(0, 0, "gpu1", "c1"))
	put("two/4711/attempt-0/gpu1/none_x/attempt_0/2/stderr.log", raised("", oom))
	put("two/4711/attempt-1/start-0", started(1, 0, "gpu1", "c1"))
	put("two/4711/attempt-1/start-1", started(1, 1, "gpu2", "c1"))
	put("two/4711/attempt-1/gpu2/none_x/attempt_0/1/stderr.log", raised("", "ValueError: of torchrun's own first attempt"))
	put("two/4711/attempt-1/gpu2/none_x/attempt_1/1/stderr.log", raised("", "OSError: [Errno 28] No space left on device"))
	r, err = diagnose.Path(context.Background(), filepath.Join(dir, "two"), diagnose.Context{JobState: "FAILED"})
	require.NoError(t, err)
	require.Equal(t, outcome.DiskFull, r.Class)
	require.Equal(t, 5, *r.RootRank)
	require.Equal(t, 2, r.Attempts)
	earlier := 0
	for _, e := range r.Evidence {
		if e.Why == "earlier attempt" {
			earlier++
		}
	}
	require.Equal(t, 2, earlier)

	// One output file holds both attempts.
	put("three/gpt-1.out", started(0, 0, "gpu1", "c1")+raised("[gpu1:0]:", oom)+started(1, 0, "gpu1", "c1")+started(1, 1, "gpu2", "c1")+raised("[gpu2:2]:",
		"KeyError: 'mine'"))
	r, err = diagnose.Path(context.Background(), filepath.Join(dir, "three"), diagnose.Context{JobState: "FAILED"})
	require.NoError(t, err)
	require.Equal(t, outcome.UserException, r.Class)
	require.Equal(t, 6, *r.RootRank)
	require.Equal(t, 2, r.Attempts)

	// Nodes that started with different commits explain a network failure.
	timeout := "[rank1]:[E ProcessGroupNCCL.cpp:632] [Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=812, OpType=ALLREDUCE, " +
		"Timeout(ms)=600000) ran for 600091 milliseconds before timing out.\n"
	put("four/gpt-2.out", started(0, 0, "gpu1", "c1")+started(0, 1, "gpu2", "c2")+timeout)
	r, err = diagnose.Path(context.Background(), filepath.Join(dir, "four"), diagnose.Context{JobState: "FAILED"})
	require.NoError(t, err)
	require.Equal(t, []string{"commit"}, r.Differs)
	require.Contains(t, strings.Join(r.Advice, " "), "make commit the same")
}

// TestOurFlightRecorderDumps has dumps under the name that rendered scripts
// give, of two attempts; those of the last count.
func TestOurFlightRecorderDumps(t *testing.T) {
	dir := t.TempDir()
	for attempt, missing := range map[int]int{0: 0, 1: 2} {
		run := filepath.Join(dir, "4711", fmt.Sprintf("attempt-%d", attempt))
		require.NoError(t, os.MkdirAll(run, 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(run, "start-0"), []byte(started(attempt, 0, "gpu1", "c1")), 0o600))
		for rank := range 4 {
			if rank == missing {
				diagnosetest.Dump(t, run, rank, 811, 811)
			} else {
				diagnosetest.Dump(t, run, rank, 813, 811)
			}
			require.NoError(t, os.Rename(filepath.Join(run, fmt.Sprintf("nccl_trace_rank_%d", rank)), filepath.Join(run, fmt.Sprintf("flight-recorder-%d", rank))))
		}
	}
	silent := int64(7200)
	r, err := diagnose.Path(context.Background(), dir, diagnose.Context{JobState: "RUNNING", SecondsSinceLastWrite: &silent})
	require.NoError(t, err)
	require.Equal(t, outcome.Hang, r.Class)
	require.Equal(t, 2, *r.RootRank)
	require.Equal(t, "gpu1", r.Behind.Node)
}
