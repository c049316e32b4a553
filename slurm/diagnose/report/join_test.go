package report_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/megatron-ops/megatron-ops/knowledge/megatron"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/diagnosetest"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logfile"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/report"
	"github.com/stretchr/testify/require"
)

func TestOutOfMemoryNamesTheSmallestChange(t *testing.T) {
	r := diagnosetest.Text(t, diagnosetest.PrintedArguments+"[rank3]: Traceback (most recent call last):\n[rank3]:   File \"/w/megatron/core/x.py\", line 3, in backward_step\n"+
		"[rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 4.00 GiB. GPU 3 has a total capacity of 79.10 GiB of which 1.20 GiB is "+
		"free. Including non-PyTorch memory, this process has 77.90 GiB memory in use.\n")
	require.Equal(t, outcome.CUDAOOM, r.Class)
	require.Equal(t, "backward", r.Phase)
	require.Equal(t, report.Memory{TriedGiB: 4, TotalGiB: 79.1, FreeGiB: 1.2}, *r.Memory)
	require.NotNil(t, r.Fit)
	require.Equal(t, []string{"--micro-batch-size", "2"}, r.Fit.Flags)
	require.Less(t, r.Fit.EstimateGiB, 77.0)
	require.Contains(t, r.Advice[0], "--micro-batch-size 2")
}

func TestARefusalIsJoinedWithItsRule(t *testing.T) {
	text := "Traceback (most recent call last):\n  File \"/w/megatron/core/transformer/transformer_config.py\", line 1448, in __post_init__\n" +
		"ValueError: num_attention_heads (30) must be a multiple of tensor_model_parallel_size (8).\n"
	r := diagnosetest.Text(t, text)
	require.Equal(t, outcome.ParallelConfig, r.Class)
	require.NotEmpty(t, r.Rules)
	require.Contains(t, r.Advice[0], r.Rules[0])
	src, err := logfile.Read("log", strings.NewReader(text))
	require.NoError(t, err)
	launch := megatron.Run{WorldSize: 8, Arch: 9, Argv: strings.Fields("--num-layers 4 --hidden-size 480 --num-attention-heads 30 --seq-length 128 " +
		"--max-position-embeddings 128 --micro-batch-size 1 --tensor-model-parallel-size 8"), Env: map[string]string{"CUDA_DEVICE_MAX_CONNECTIONS": "1"}}
	r, err = diagnose.Run(context.Background(), src, diagnose.Context{Launch: &launch})
	require.NoError(t, err)
	require.NotEmpty(t, r.Rules, "the rules that the launch itself breaks")
}

func TestAConnectionErrorNamesThePeersNode(t *testing.T) {
	r := diagnosetest.Text(t, "n1:12:12 [0] NCCL INFO Bootstrap : Using ib0:10.1.2.1<0>\nn2:15:15 [0] NCCL INFO Bootstrap : Using ib0:10.1.2.3<0>\n"+
		"n1:12:99 [0] misc/socket.cc:483 NCCL WARN socketStartConnect: Connect to 10.1.2.3<45123> failed : No route to host\n")
	require.Equal(t, outcome.NCCLConnection, r.Class)
	require.Equal(t, "n2 (10.1.2.3)", r.Peer)
	require.Contains(t, strings.Join(r.Advice, " "), "n2 (10.1.2.3)")
}

func TestNodesThatDidNotStartAlike(t *testing.T) {
	dir := t.TempDir()
	for node, commit := range map[string]string{"gpu1": "aaaa111", "gpu2": "bbbb222"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "train-7-"+node+".err"), []byte("commit: "+commit+"\n"+
			node+":12:99 [0] misc/socket.cc:58 NCCL WARN socketProgress: Connection closed by remote peer 10.1.2.3<41000>\n"), 0o644))
	}
	r, err := diagnose.Path(context.Background(), dir, diagnose.Context{JobState: "FAILED"})
	require.NoError(t, err)
	require.Equal(t, outcome.NCCLConnection, r.Class)
	require.Equal(t, []string{"commit"}, r.Differs)
}
