package joblogs_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/joblogs"
	"github.com/megatron-ops/megatron-ops/internal/ops/opstest"
)

func TestACheckpointIsHeldAgainstAJob(t *testing.T) {
	saved, err := filepath.Abs("../../../slurm/checkpoint/testdata")
	require.NoError(t, err)
	c := opstest.NewCall(t, &opstest.Site{})
	c.Dir = t.TempDir()
	opstest.Write(t, filepath.Join(c.Dir, "job.yaml"), `name: resumed
nodes: 2
gpus_per_node: 8
worktree: /lustre/m
args: [--num-layers=4, --hidden-size=64, --num-attention-heads=8, --tensor-model-parallel-size=4, --use-distributed-optimizer]
`)
	out, err := opstest.Do(t, c, joblogs.CheckpointFolder(), filepath.Join(saved, "dist"), "-f", "job.yaml")
	require.NoError(t, err)
	require.True(t, out.(joblogs.CheckpointFolderOut).Found())
	require.Contains(t, opstest.Text(t, out, lang.EN), "resumed (TP 4 PP 1 DP 4) cannot load it")
	require.Contains(t, opstest.Text(t, out, lang.ZH), "resumed（TP 4 PP 1 DP 4）无法加载")

	out, err = opstest.Do(t, c, joblogs.CheckpointFolder(), filepath.Join(saved, "reshardable"), "-f", "job.yaml")
	require.NoError(t, err)
	require.False(t, out.(joblogs.CheckpointFolderOut).Found())
	require.Contains(t, opstest.Text(t, out, lang.EN), "it is resharded while it is loaded: from TP 2 PP 2 DP 4 to TP 4 PP 1 DP 4")

	out, err = opstest.Do(t, c, joblogs.CheckpointFolder(), filepath.Join(saved, "fsdp"))
	require.NoError(t, err)
	require.Contains(t, opstest.Text(t, out, lang.EN), "iteration 10, fsdp_dtensor: complete")

	_, err = opstest.Do(t, c, joblogs.CheckpointFolder(), c.Dir)
	require.Equal(t, ops.NotFound, ops.AsError(err).Code)
	c.Who.Surface = ops.Slack
	_, err = opstest.Do(t, c, joblogs.CheckpointFolder(), filepath.Join(saved, "dist"))
	require.Equal(t, ops.BadInput, ops.AsError(err).Code, "a path is for who may read it")
	_, err = opstest.Do(t, c, joblogs.CheckpointFolder(), "4711")
	require.Equal(t, ops.BadInput, ops.AsError(err).Code)
}
