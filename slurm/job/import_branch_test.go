package job_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Of several branches, the first is imported whole: a mix of two is a run that nobody wrote.
func TestImportTakesOneBranch(t *testing.T) {
	s, notes := imported("#SBATCH --nodes=1 --gpus-per-node=8", "cd /w",
		`if [ -n "$WANDB_API_KEY" ]; then export WANDB_MODE=online; LOG="--wandb-project llm"`,
		`else export WANDB_MODE=offline WANDB_SILENT=true; LOG="--tensorboard-dir /tb"; EXTRA="--log-interval 10"; fi`,
		`case "$SIZE" in 7b) ARGS="--num-layers 32" ;; 13b) ARGS="--num-layers 40"; BIG=--bf16 ;; esac`,
		"torchrun --nproc_per_node=8 pretrain_gpt.py $ARGS $BIG $LOG $EXTRA")
	require.Equal(t, []string{"--num-layers", "32", "--wandb-project", "llm"}, s.Args)
	require.Equal(t, map[string]string{"WANDB_MODE": "online"}, s.Env)
	require.Contains(t, notes, "WANDB_MODE=online: branches set several values: this one is used")
	require.Contains(t, notes, "WANDB_SILENT: only a branch that is not taken sets it")
}

// A job that asks for no GPUs gets none, and each form of a request is read.
func TestImportCountsTheGPUs(t *testing.T) {
	for _, c := range []struct {
		options, command string
		gpus             int
		request, gpu     string
	}{
		{"--partition=cpu", "python /w/tools/preprocess_data.py", 0, "", ""},
		{"--cpus-per-task=4", "srun bash /w/tokenize.sh", 0, "", ""},
		{"--tres-per-node=gres/gpu:4", "torchrun --nproc_per_node=4 /w/t.py", 4, "gres", ""},
		{"--tres-per-node=gres/gpu:a100:2", "python /w/t.py", 2, "gres", "a100"},
		{"--gres=gpu:1080ti:4", "python /w/t.py", 4, "gres", "1080ti"},
	} {
		s, notes := imported("#SBATCH --nodes=1 "+c.options, c.command)
		require.NotNil(t, s.GPUsPerNode, c.options+" "+notes)
		require.Equal(t, c.gpus, *s.GPUsPerNode, c.options)
		require.Equal(t, []string{c.request, c.gpu}, []string{s.GPURequest, s.GPU}, c.options)
		require.Empty(t, s.Validate(), c.options)
	}
	s, _ := imported("#SBATCH --nodes=1 --exclusive", "python /w/t.py")
	require.Nil(t, s.GPUsPerNode, "whole nodes have their GPUs")
	for _, place := range []string{"--partition=a100", "--constraint=gpu", "--partition=cpu_gpu"} {
		s, _ = imported("#SBATCH --nodes=2 "+place, "srun python /w/train.py")
		require.Nil(t, s.GPUsPerNode, "%s may give whole nodes", place)
	}
}

// kill -0 only asks whether a process lives, so that there is nothing to import.
func TestImportIgnoresAQuestion(t *testing.T) {
	_, notes := imported("#SBATCH --nodes=1 --gpus-per-node=1", "kill -0 $$ || exit", "kill $OTHER", "python /w/t.py")
	require.NotContains(t, notes, "kill -0")
	require.Contains(t, notes, "kill $OTHER")
}
