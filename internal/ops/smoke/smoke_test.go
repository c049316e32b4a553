package smoke

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/launch"
	"github.com/megatron-ops/megatron-ops/internal/ops/opstest"
	"github.com/megatron-ops/megatron-ops/knowledge/megatron"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/cluster/local"
)

func TestMain(m *testing.M) {
	if code, ok := local.Standin(os.Args); ok {
		os.Exit(code)
	}
	os.Exit(m.Run())
}

func TestALadderIsSmallAndPlansWell(t *testing.T) {
	c := opstest.NewCall(t, &opstest.Site{})
	base := []string{
		"--num-layers", "32", "--hidden-size", "1024", "--num-attention-heads", "16", "--seq-length", "2048",
		"--max-position-embeddings", "2048", "--micro-batch-size", "2", "--global-batch-size", "512", "--train-samples", "100000",
		"--lr", "1e-4", "--lr-decay-samples", "90000", "--lr-warmup-samples", "1000", "--rampup-batch-size", "64", "64", "1000",
		"--save", "/ckpt", "--load=/ckpt", "--save-interval", "500", "--data-path", "/d/a", "/d/b", "--split", "99,1,0",
	}
	for name, layout := range map[string][]string{
		"tensor and pipeline": {"--tensor-model-parallel-size", "4", "--pipeline-model-parallel-size", "4", "--sequence-parallel"},
		"interleaved":         {"--tensor-model-parallel-size", "2", "--pipeline-model-parallel-size", "8", "--num-layers-per-virtual-pipeline-stage", "2"},
		"context":             {"--context-parallel-size", "8", "--tensor-model-parallel-size", "8"},
		"experts": {
			"--tensor-model-parallel-size", "2", "--expert-model-parallel-size", "16", "--num-experts", "64", "--moe-router-topk", "2", "--sequence-parallel",
			"--moe-layer-freq", "[1]*32", "--moe-grouped-gemm", "--disable-bias-linear", "--moe-token-dispatcher-type", "alltoall",
		},
	} {
		t.Run(name, func(t *testing.T) {
			words := []string{"--name", "gpt", "--nodes", "16", "--gpus-per-node", "8", "--gpu", "h100", "--time", "1-0", "--worktree", "/lustre/m", "--chain", "3", "--kill-switch", "/lustre/STOP", "--cpus-per-task", "96", "--"}
			op := Smoke()
			in := op.NewIn().(*In)
			require.NoError(t, op.Words(in, append(append(words, base...), layout...)))
			s, err := launch.ReadSpec(c, in.SpecIn)
			require.NoError(t, err)
			rungs := ladder(s)
			require.Len(t, rungs, 3)
			for i, world := range []int{1, 8, 16} {
				r := rungs[i]
				full := r.spec.WithDefaults()
				require.Equal(t, world, full.WorldSize())
				verdict, err := launch.JudgeSpec(c, r.spec)
				require.NoError(t, err)
				require.True(t, verdict.OK, "%s: %+v\n%v", r.name, verdict.Problems, r.spec.Args)
				line := strings.Join(r.spec.Args, " ")
				for _, gone := range []string{"--save", "--load", "--train-samples", "--rampup", "virtual"} {
					require.NotContains(t, line, gone)
				}
				require.Contains(t, line, "--data-path /d/a /d/b --split 99,1,0")
				require.Contains(t, line, "--train-iters 10")
				require.Nil(t, r.spec.Chain)
				require.Empty(t, r.spec.KillSwitch)
				require.Equal(t, "00:10:00", r.spec.Time)
			}
			require.Equal(t, 12, *rungs[0].spec.CPUsPerTask)
			require.Equal(t, "512", megatron.LastOf(s.Args, "--global-batch-size"), "the job itself stays as it is")
		})
	}
}

func TestSmokeNamesTheFirstRungThatFails(t *testing.T) {
	c := opstest.NewCall(t, &opstest.Site{})
	c.Clusters["here"] = local.New("here", t.TempDir())
	c.Default = "here"
	dir := t.TempDir()
	program := func(text string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "try.sh"), []byte(text), 0o600))
	}
	words := []string{
		"--name", "own", "--nodes", "4", "--gpus-per-node", "2", "--time", "60", "--worktree", dir, "--script", "try.sh",
		"--launcher", "custom", "--launcher-argv", "bash", "--no-guards", "--no-monitor",
	}
	out, err := opstest.Do(t, c, Smoke(), append(words, "--dry-run")...)
	require.NoError(t, err)
	require.Len(t, out.(Out).Rungs, 3)
	require.Contains(t, opstest.Text(t, out, lang.ZH), "2 个节点，4 块 GPU", "a size in the reader's language")
	_, err = opstest.Do(t, c, Smoke(), words...)
	require.True(t, ops.AsError(err).Confirm)

	program("echo \"$SLURM_NNODES nodes\"\n[ \"$SLURM_NNODES\" = 1 ]\n")
	out, err = opstest.Do(t, c, Smoke(), append(words, "--yes")...)
	require.NoError(t, err)
	s := out.(Out)
	require.Equal(t, "2 nodes", s.Failed, "%+v", s)
	require.True(t, s.Found())
	require.Equal(t, slurm.Completed, s.Rungs[1].State)
	require.Equal(t, slurm.Failed, s.Rungs[2].State)
	require.NotEmpty(t, s.Rungs[2].Why)
	require.Contains(t, opstest.Text(t, s, lang.ZH), "NCCL_SOCKET_IFNAME")

	program("exit 0\n")
	out, err = opstest.Do(t, c, Smoke(), append(words, "--yes")...)
	require.NoError(t, err)
	require.True(t, out.(Out).OK, "%+v", out)
	program("exit 3\n")
	out, err = opstest.Do(t, c, Smoke(), append(words, "--yes")...)
	require.NoError(t, err)
	require.Equal(t, "1 GPU", out.(Out).Failed)
	require.Len(t, out.(Out).Rungs, 1, "what comes after is not tried")
}
