package joblogs_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/joblogs"
	"github.com/megatron-ops/megatron-ops/internal/ops/opstest"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/checkpoint"
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
	require.ErrorContains(t, err, c.Dir+" holds no checkpoint of Megatron-LM")
	opstest.Write(t, filepath.Join(c.Dir, "latest_checkpointed_iteration.txt"), "70")
	require.NoError(t, os.Mkdir(filepath.Join(c.Dir, "iter_0000060"), 0o700))
	_, err = opstest.Do(t, c, joblogs.CheckpointFolder(), c.Dir)
	require.Equal(t, ops.NotFound, ops.AsError(err).Code)
	require.ErrorContains(t, err, "latest_checkpointed_iteration.txt names iter_0000070, which is not there")
	require.Equal(t, "--iteration 60 reads one that is there", ops.AsError(err).Fix.EN)
	c.Who.Surface = ops.Slack
	_, err = opstest.Do(t, c, joblogs.CheckpointFolder(), filepath.Join(saved, "dist"))
	require.Equal(t, ops.BadInput, ops.AsError(err).Code, "a path is for who may read it")
	_, err = opstest.Do(t, c, joblogs.CheckpointFolder(), "4711")
	require.Equal(t, ops.BadInput, ops.AsError(err).Code)
}

// A job's id leads to its checkpoints, and the error explains where it cannot.
func TestACheckpointOfAJob(t *testing.T) {
	saved, err := filepath.Abs("../../../slurm/checkpoint/testdata")
	require.NoError(t, err)
	args := func(words ...string) string { return "args: [" + strings.Join(words, ", ") + "]" }
	save := "--save=" + filepath.Join(saved, "dist")
	for name, c := range map[string]struct {
		spec  string
		words []string
		says  string // the answer, or the error
		code  ops.Code
	}{
		"the latest":                 {args(save), []string{"7"}, "iteration 100, torch_dist: complete", ""},
		"an earlier one":             {args(save), []string{"7", "--iteration", "50"}, "iteration 50, torch_dist", ""},
		"with the others":            {args(save), []string{"7"}, "other iterations 50", ""},
		"one that there is not":      {args(save), []string{"7", "--iteration", "51"}, "has no iteration 51", ops.NotFound},
		"it saves none":              {args("--lr=1e-4"), []string{"7"}, "job 7 saves no checkpoint: it has no --save", ops.NotFound},
		"it saves where none can go": {"container: {image: /i.sqsh, runtime: pyxis}\n" + args("--save=/ckpt"), []string{"7"}, "/ckpt is inside the job's container alone", ops.NotFound},
		"it saves into a mount":      {"container: {image: /i.sqsh, runtime: pyxis, mounts: [\"" + saved + ":/ckpt\"]}\n" + args("--save=/ckpt/dist"), []string{"7"}, "iteration 100, torch_dist: complete", ""},
		"not submitted here":         {"", []string{"7"}, "the specification of job 7 is not known here", ops.NotFound},
		"no such job":                {"", []string{"8"}, "", ops.NotFound},
		"for a job like it":          {args(save), []string{filepath.Join(saved, "fsdp"), "--for", "7"}, "gpt (TP 1 PP 1 DP 8) cannot load it", ""},
		"for a job of its format":    {args("--ckpt-format=fsdp_dtensor", "--use-megatron-fsdp"), []string{filepath.Join(saved, "fsdp"), "--for", "7"}, "gpt (TP 1 PP 1 DP 8) can load it", ""},
		"for a job not known here":   {"", []string{filepath.Join(saved, "fsdp"), "--for", "7"}, "the specification of job 7 is not known here", ops.NotFound},
		"for a file not there":       {"", []string{filepath.Join(saved, "fsdp"), "-f", "none.yaml"}, "none.yaml", ops.BadInput},
	} {
		t.Run(name, func(t *testing.T) {
			call := opstest.NewCall(t, &opstest.Site{OfKind: "cli", KnownJobs: map[slurm.JobID]slurm.Job{"7": {ID: "7", Name: "gpt", User: "alice", State: slurm.Completed}}})
			call.Dir = t.TempDir()
			if c.spec != "" {
				remember(t, call, "7", "name: gpt\nnodes: 1\ngpus_per_node: 8\nworktree: /lustre/m\n"+c.spec+"\n")
			}
			out, err := opstest.Do(t, call, joblogs.CheckpointFolder(), c.words...)
			if c.code != "" {
				require.Error(t, err)
				require.Equal(t, c.code, ops.AsError(err).Code)
				require.ErrorContains(t, err, c.says)
				return
			}
			require.NoError(t, err)
			require.Contains(t, strings.Join(strings.Fields(opstest.Text(t, out, lang.EN)), " "), c.says)
		})
	}
}

// The faults of a checkpoint, and its size, in words.
func TestACheckpointIsToldInWords(t *testing.T) {
	whole := func(c checkpoint.Checkpoint) checkpoint.Checkpoint {
		c.Format, c.Complete = checkpoint.TorchDist, true
		return c
	}
	broken := func(faults ...checkpoint.Fault) checkpoint.Checkpoint {
		return checkpoint.Checkpoint{Format: checkpoint.TorchDist, Faults: faults}
	}
	many := func(n int) (all []checkpoint.Fault) {
		for i := range n {
			all = append(all, checkpoint.Fault{File: fmt.Sprintf("__%d_0.distcp", i), Missing: true})
		}
		return all
	}
	ten, has, lacks := 10, true, false
	for name, c := range map[string]struct {
		of     checkpoint.Checkpoint
		en, zh string
		not    string
	}{
		"an iteration":                {whole(checkpoint.Checkpoint{Iteration: &ten}), "iteration 10, torch_dist: complete", "第 10 次迭代，torch_dist：完整", "not complete"},
		"a release":                   {whole(checkpoint.Checkpoint{}), "a release, torch_dist: complete", "发布版，torch_dist：完整", "saved with"},
		"not whole":                   {broken(), "a release, torch_dist: not complete", "不完整", "what is wrong"},
		"a file is missing":           {broken(checkpoint.Fault{File: "f", Missing: true}), "f is missing", "缺少 f", "more"},
		"a file is empty":             {broken(checkpoint.Fault{File: "f", Empty: true}), "f is empty", "f 是空文件", ""},
		"a file cannot be read":       {broken(checkpoint.Fault{File: "f", Unreadable: true}), "f was cut short, or is not what PyTorch writes", "f 被截断", ""},
		"a file is short":             {broken(checkpoint.Fault{File: "f", Have: 1 << 10, Want: 1 << 20}), "f has 1.0 KiB, and the index says 1.0 MiB", "f 只有 1.0 KiB", ""},
		"twenty faults are all shown": {broken(many(20)...), "__19_0.distcp is missing", "缺少 __19_0.distcp", "more"},
		"of more, the first":          {broken(many(23)...), "and 3 more", "另有 3 处", "__20_0.distcp"},
		"few parameters":              {whole(checkpoint.Checkpoint{Parameters: 999_999, Tensors: 3}), "999999 in 3 tensors", "999999，3 个张量", ""},
		"a million":                   {whole(checkpoint.Checkpoint{Parameters: 1_000_000, Tensors: 3}), "1.0 million in 3 tensors", "1.0 M，3 个张量", ""},
		"a billion":                   {whole(checkpoint.Checkpoint{Parameters: 1_000_000_000, Tensors: 3}), "1.00 billion in 3 tensors", "1.00 B，3 个张量", ""},
		"parameters not told":         {whole(checkpoint.Checkpoint{}), "size", "大小", "parameters"},
		"the optimizer's state":       {whole(checkpoint.Checkpoint{Optimizer: &has, OptimizerSharding: "dp_zero_gather_scatter"}), "in it, cut as dp_zero_gather_scatter", "包含，按 dp_zero_gather_scatter 切分", "not in it"},
		"without it":                  {whole(checkpoint.Checkpoint{Optimizer: &lacks}), "not in it", "不含", "cut as"},
		"the model":                   {whole(checkpoint.Checkpoint{Model: map[string]any{"hidden_size": 64, "num_layers": 4}}), "num_layers 4, hidden_size 64", "num_layers 4, hidden_size 64", "num_experts"},
	} {
		t.Run(name, func(t *testing.T) {
			en := opstest.Text(t, joblogs.CheckpointFolderOut{Checkpoint: c.of}, lang.EN)
			require.Contains(t, en, c.en)
			require.Contains(t, opstest.Text(t, joblogs.CheckpointFolderOut{Checkpoint: c.of}, lang.ZH), c.zh)
			if c.not != "" {
				require.NotContains(t, en, c.not)
			}
			require.Equal(t, !c.of.Complete, joblogs.CheckpointFolderOut{Checkpoint: c.of}.Found(), "a script learns of it by the exit code")
		})
	}
}
