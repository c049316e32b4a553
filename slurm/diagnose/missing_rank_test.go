package diagnose_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose/diagnosetest"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/stretchr/testify/require"
)

// TestTheMissingRankIsFoundByOneRule has jobs of four ranks in which one is
// absent, silent, named by others or by itself, or left otherwise than the rest.
func TestTheMissingRankIsFoundByOneRule(t *testing.T) {
	others := func(line string, except int) string {
		var b strings.Builder
		b.WriteString("using world size: 4, data-parallel size: 4, context-parallel size: 1, tensor-model-parallel size: 1, pipeline-model-parallel size: 1\n")
		for rank := range 4 {
			if rank != except {
				fmt.Fprintf(&b, "%d: %s\n", rank, strings.ReplaceAll(line, "{rank}", fmt.Sprint(rank)))
			}
		}
		return b.String()
	}
	gloo := "RuntimeError: [/pytorch/third_party/gloo/gloo/transport/tcp/unbound_buffer.cc:84] Timed out waiting 1800000ms for recv operation to complete"
	closed := "RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:598] Connection closed by peer [10.1.2.3]:41233"
	summary := func(codes ...int) string {
		var b strings.Builder
		for rank, code := range codes {
			fmt.Fprintf(&b, "  time      : 2026-06-11_10:00:00\n  host      : gpu1\n  rank      : %d (local_rank: %d)\n  exitcode  : %d (pid: %d)\n"+
				"  error_file: <N/A>\n  traceback : To enable traceback see: x\n", rank, rank, code, 100+rank)
		}
		return b.String()
	}
	for name, c := range map[string]struct {
		log  string
		rank int
		node string
	}{
		"gloo: one is silent":            {others(gloo, 2), 2, ""},
		"gloo: one closed":               {others(closed, 1) + "srun: error: gpu1: task 1: Exited with exit code 1\n", 1, ""},
		"exit -6 beside others":          {others(closed, -1) + summary(1, 1, -6, 1), 2, "gpu1"},
		"a signal before all were ended": {others(closed, -1) + summary(-15, -9, -15, -15), 1, "gpu1"},
		"named by the others":            {others("[E ProcessGroupGloo.cpp:144] Ranks 3 failed to pass monitoredBarrier in 600000 ms", 3), 3, ""},
		"named by more of the others":    {others("[E ProcessGroupGloo.cpp:144] Ranks 1 failed to pass monitoredBarrier in 600000 ms", 3) + strings.Repeat("Ranks 3 failed to pass monitoredBarrier in 600000 ms\n", 5), 3, ""},
		"named as often as another":      {strings.Repeat("Ranks 3 failed to pass monitoredBarrier in 600000 ms\nRanks 2 failed to pass monitoredBarrier in 600000 ms\n", 2), 2, ""},
		"named by itself": {"Traceback (most recent call last):\n  File \"/w/t.py\", line 3, in f\n" +
			"AssertionError: Rank 2: found NaN in local grad norm. Device: 2, node: gpu1\n", 2, "gpu1"},
		"behind by sequence number": {
			others("[rank{rank}]:[E ProcessGroupNCCL.cpp:632] [Rank {rank}] Watchdog caught collective operation "+
				"timeout: WorkNCCL(SeqNum=9, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600052 milliseconds before timing out.", 1), 1,
			"",
		},
		"a node in brackets": {"[dgx-09] [rank3]: Traceback (most recent call last):\n[dgx-09] [rank3]:   File \"/w/t.py\", line 3, in f\n" +
			"[dgx-09] [rank3]: KeyError: 'tokens'\n[dgx-08] [rank1]: NCCL WARN Connection closed by remote peer\n", 3, "dgx-09"},
		"a crash beside others' words": {"terminate called after throwing an instance of 'c10::Error'\n" +
			"  what():  [enforce fail at inline_container.cc:603] . unexpected pos 704 vs 598\n" + others(closed, -1) + summary(1, -6, 1, 1), 1, "gpu1"},
		"mpirun: a signal ended one": {"NCCL version 2.27.3+cuda12.9\nPrimary job  terminated normally, but 1 process returned\na non-zero exit code.\n" +
			"mpirun noticed that process rank 14 with PID 4711 on node gpu7 exited on signal 6 (Aborted).\n", 14, "gpu7"},
		"srun: one was killed, all ended": {others(closed, 3) + "srun: error: gpu1: task 3: Killed\nsrun: error: gpu1: tasks 0-2: Terminated\n", 3, "gpu1"},
	} {
		t.Run(name, func(t *testing.T) {
			r := diagnosetest.Text(t, c.log)
			require.NotEqual(t, outcome.Success, r.Class)
			require.NotNil(t, r.RootRank, "%s: %s", r.Class, r.RootLine)
			require.Equal(t, c.rank, *r.RootRank, "%s: %s", r.Class, r.RootLine)
			if c.node != "" {
				require.NotNil(t, r.RootNode)
				require.Equal(t, c.node, *r.RootNode)
			}
		})
	}
}
