package preflight_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/launch"
	"github.com/megatron-ops/megatron-ops/internal/ops/opstest"
	"github.com/megatron-ops/megatron-ops/knowledge/rules"
	"github.com/megatron-ops/megatron-ops/slurm/job"
)

func TestASpecificationIsJudgedByEachRowOfTheDocuments(t *testing.T) {
	tree := filepath.Join(t.TempDir(), "tree")
	opstest.Write(t, filepath.Join(tree, "pretrain_gpt.py"), "")
	digest := strings.Repeat("0f", 32)
	opstest.Write(t, filepath.Join(tree, "docker", ".ngc_version.dev"), "nvcr.io/nvidia/pytorch:26.06-py3\n")
	opstest.Write(t, filepath.Join(tree, ".venv", "pyvenv.cfg"), "")
	custom := []string{"--launcher", "custom"}
	argv := func(words ...string) []string {
		out := slices.Clone(custom)
		for _, w := range words {
			out = append(out, "--launcher-argv="+w)
		}
		return out
	}
	for _, tt := range []struct {
		row   string
		words []string
		holds []string // a launch that follows the rule
	}{
		{"one-task-per-node", []string{"--srun-args=--ntasks-per-node=8"}, []string{"--srun-args=--ntasks-per-node=1"}},
		{"one-task-per-node", []string{"--srun-args=--ntasks=16"}, []string{"--srun-args=--ntasks=2"}},
		{"no-bare-torchrun", argv("torchrun"), argv("python", "-m", "torch.distributed.run")},
		{"nnodes-match-allocation", argv("python", "-m", "torch.distributed.run", "--nnodes=4"), argv("python", "-m", "torch.distributed.run", "--nnodes={nnodes}")},
		{"nnodes-match-allocation", []string{"--srun-args=--nodes=1"}, []string{"--srun-args=--nodes=2"}},
		{"nproc-match-gpus", argv("python", "-m", "torch.distributed.run", "--nproc-per-node=4"), argv("python", "-m", "torch.distributed.run", "--nproc-per-node=8")},
		{"gpu-kind-known", []string{"--gpu", "h10"}, []string{"--gpu", "nvidia_h100_80gb_hbm3"}},
		{"gpu-kind-known", []string{"--gpu", "abacus"}, []string{"--gpu", "h100"}},
		{"world-size-counts-gpus", argv("my", "--world-size=$SLURM_NTASKS"), argv("my", "--world-size={world_size}")},
		{"rank-evaluated-on-node", argv("my", "--node-rank=$SLURM_NODEID"), argv("my", "--node-rank={node_rank}")},
		{"worktree-shared", []string{"--worktree", "/tmp/tree"}, []string{"--worktree", "/lustre/tree"}},
		{"outputs-shared", []string{"--", "--save", "/dev/shm/ck", "--save-interval", "5"}, []string{"--", "--save", "/lustre/ck", "--save-interval", "5"}},
		{"container-sees-venv", []string{"--worktree", tree, "--container-runtime", "pyxis", "--container-image", "x", "--container-mounts", tree + ":/mlm", "--container-mounts", "/opt:/mlm/.venv"}, []string{"--worktree", tree, "--container-runtime", "pyxis", "--container-image", "x", "--container-mounts", tree + ":/mlm"}},
		{
			"container-sees-venv",
			[]string{"--worktree", tree, "--venv", tree + "/.venv", "--container-runtime", "pyxis", "--container-image", "x", "--container-mounts", tree + ":/mlm"},
			[]string{"--worktree", tree, "--venv", "/opt/none", "--container-runtime", "pyxis", "--container-image", "x", "--container-mounts", tree + ":/mlm"},
		},
		{
			"container-sees-venv",
			[]string{"--worktree", tree, "--venv", "none", "--container-runtime", "pyxis", "--container-image", "x", "--container-mounts", tree + ":/mlm"},
			[]string{"--worktree", tree, "--venv", tree + "/.venv", "--container-runtime", "pyxis", "--container-image", "x", "--container-mounts", tree + ":" + tree},
		},
		{"container-image-matches", []string{"--worktree", tree, "--container-runtime", "pyxis", "--container-image", "nvcr.io/nvidia/pytorch:24.01-py3@sha256:" + digest}, []string{"--worktree", tree, "--container-runtime", "pyxis", "--container-image", "nvcr.io/nvidia/pytorch:26.06-py3@sha256:" + digest}},
		{"container-image-matches", []string{"--worktree", tree, "--container-runtime", "pyxis", "--container-image", "nvcr.io#nvidia/pytorch:24.01-py3"}, []string{"--worktree", tree, "--container-runtime", "pyxis", "--container-image", "nvcr.io#nvidia/pytorch:26.06-py3"}},
		{"cpus-fit-node", []string{"--cpus-per-task", "128"}, []string{"--cpus-per-task", "96"}},
		{"cpus-fit-node", []string{"--cpus-per-task", "96", "--hint", "nomultithread"}, []string{"--cpus-per-task", "48", "--hint", "nomultithread"}},
		{"own-script-agrees", []string{"--script", "train.py", "--", "--world-size", "2"}, []string{"--script", "train.py", "--", "--world-size", "16"}},
		{"own-script-agrees", []string{"--script", "train.py", "--", "--init-method", "tcp://n1:29500"}, []string{"--script", "train.py", "--", "--init-method", "env://"}},
	} {
		for _, broken := range []bool{true, false} {
			words := tt.words
			if !broken {
				words = tt.holds
			}
			c := shell(t, "")
			c.Sites = func(string) job.Site { return job.Site{CPUsPerNode: 96, ThreadsPerCore: 2} }
			all := []string{"--nodes", "2", "--gpus-per-node", "8", "--gpu", "b200", "--time", "10"}
			if !slices.Contains(words, "--worktree") {
				all = append(all, "--worktree", "/lustre/tree")
			}
			out, err := opstest.Do(t, c, launch.Plan(), append(all, words...)...)
			require.NoError(t, err, words)
			i := slices.IndexFunc(out.(launch.PlanOut).Problems, func(p rules.Problem) bool { return p.Rule == tt.row })
			require.Equal(t, broken, i >= 0, "%s with %v", tt.row, words)
			if broken {
				p := out.(launch.PlanOut).Problems[i]
				require.NotEmpty(t, p.Fix)
				require.NotEmpty(t, p.Source)
				require.NotEmpty(t, p.Severity)
			}
		}
	}
}

// The documents' rules about a launch also apply to an existing script, with the line.
func TestALaunchScriptIsJudgedByTheDocuments(t *testing.T) {
	dir := t.TempDir()
	opstest.Write(t, filepath.Join(dir, "run.sh"), `#!/bin/bash
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=8
#SBATCH --time=10
pip install wandb
NNODES=2
export MASTER_ADDR=$(hostname)
srun bash -c "torchrun --nnodes $NNODES --nproc_per_node 4 --node_rank $SLURM_NODEID --master_addr $MASTER_ADDR pretrain_gpt.py --save /tmp/ck --save-interval 10 --world-size $SLURM_NTASKS"
`)
	out, err := opstest.Do(t, shell(t, dir), launch.Plan(), "run.sh")
	require.NoError(t, err)
	got := map[string]string{}
	for _, p := range out.(launch.PlanOut).Problems {
		got[p.Rule] = p.Message
	}
	for row, line := range map[string]string{
		"worktree-shared": "line 9", "no-bare-torchrun": "line 9", "nnodes-match-allocation": "line 7", "nproc-match-gpus": "line 9",
		"world-size-counts-gpus": "line 9", "rank-evaluated-on-node": "line 9", "environment-synced": "line 6", "outputs-shared": "line 9",
	} {
		require.Contains(t, got[row], line, "%s: %v", row, got)
	}
}

// An existing script is judged with its own defaults, and the answer lists the
// assumptions. What the script hides is not guessed: submit asks for it.
func TestAScriptIsJudgedByWhatItShows(t *testing.T) {
	dir := t.TempDir()
	opstest.Write(t, filepath.Join(dir, "run.sh"), `#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=8
#SBATCH --time=10
cd `+dir+`
TP=${TP:-8}
ARGS="--num-layers 4 --hidden-size 768 --num-attention-heads 12 --seq-length 128 --max-position-embeddings 128 --train-iters 10 --lr 1e-4 --save-interval 5 --bf16"
if [ -n "$WANDB_API_KEY" ]; then ARGS="$ARGS --wandb-project x"; fi
srun bash -c "uv run python -m torch.distributed.run --nnodes $SLURM_NNODES --nproc-per-node 8 $(pwd)/pretrain_gpt.py --tensor-model-parallel-size $TP --micro-batch-size 1 $ARGS --save $SCRATCH/out"
`)
	out, err := opstest.Do(t, shell(t, dir), launch.Plan(), "run.sh")
	require.NoError(t, err)
	var refused []string
	for _, p := range out.(launch.PlanOut).Problems {
		if p.Severity == rules.Error && strings.HasPrefix(p.Source, "megatron/") {
			refused = append(refused, p.Rule)
		}
	}
	require.Equal(t, []string{"heads-multiple-of-tp"}, refused)
	kinds := map[job.NoteKind][]string{}
	for _, n := range out.(launch.PlanOut).Read {
		kinds[n.Kind] = append(kinds[n.Kind], n.What)
	}
	require.Equal(t, []string{"$SCRATCH/out"}, kinds[job.Hidden])
	require.Len(t, kinds[job.Taken], 2)
	require.Contains(t, kinds[job.Taken], "TP=8")

	_, err = opstest.Do(t, shell(t, dir), launch.Submit(), "run.sh", "--yes")
	require.ErrorContains(t, err, "$SCRATCH/out")
}

func TestFilesAreLookedAtWhereTheContainerSeesThem(t *testing.T) {
	dir, lake := t.TempDir(), t.TempDir()
	opstest.Write(t, filepath.Join(lake, "web.bin"), "x")
	opstest.Write(t, filepath.Join(lake, "web.idx"), "MMIDIDX\x00\x00")
	opstest.Write(t, filepath.Join(dir, "tok", "vocab.json"), "{}")
	check := func(args ...string) []rules.Problem {
		c := shell(t, "")
		words := []string{
			"--worktree", dir, "--time", "10", "--check-files",
			"--container-runtime", "pyxis", "--container-image", "x", "--container-mounts", lake + ":/data", "--",
		}
		out, err := opstest.Do(t, c, launch.Plan(), append(words, args...)...)
		require.NoError(t, err)
		return slices.DeleteFunc(out.(launch.PlanOut).Problems, func(p rules.Problem) bool {
			r, _ := rules.Explain(p.Rule)
			return r.Topic != "files" || p.Rule == "script-exists" || p.Rule == "looked-as-root"
		})
	}
	require.Empty(t, check("--data-path", "/data/web"), "found through the mount")
	require.Equal(t, []string{"data-missing"}, opstest.Ids(check("--data-path", "/data/other")))
	ps := check("--data-path", lake+"/web")
	require.Equal(t, []string{"path-not-mounted"}, opstest.Ids(ps))
	require.Equal(t, "--data-path /data/web", ps[0].Fix, "the host's name is told as the container's")
	require.Empty(t, check("--vocab-file", dir+"/tok/vocab.json"), "the worktree is mounted without being asked")
	require.Empty(t, check("--tokenizer-model", "/opt/tokenizers/x"), "what only the image may have is not judged")
	require.Equal(t, []string{"path-not-mounted"}, opstest.Ids(check("--vocab-file", "/etc/hostname")))
}

func TestOnlyTheNewestCompleteIterationIsOffered(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "runs [1]")
	opstest.Write(t, filepath.Join(dir, "ck", "latest_checkpointed_iteration.txt"), "300\n")
	opstest.Write(t, filepath.Join(dir, "ck", "iter_0000100", ".metadata"), "")
	opstest.Write(t, filepath.Join(dir, "ck", "iter_0000200", "metadata.json"), "{}")
	opstest.Write(t, filepath.Join(dir, "ck", "iter_0000300", "__0_0.distcp"), "")
	c := shell(t, "")
	out, err := opstest.Do(t, c, launch.Plan(), "--worktree", dir, "--time", "10", "--check-files", "--", "--load", "ck")
	require.NoError(t, err)
	ps := out.(launch.PlanOut).Problems
	p := ps[slices.Index(opstest.Ids(ps), "load-incomplete")]
	require.Contains(t, p.Message, "not written to its end")
	require.Contains(t, p.Fix, "iter_0000200")
}

func TestFilesAreNotLookedAtForSomebodyElse(t *testing.T) {
	c := shell(t, "")
	c.Self, c.Who = "bot", ops.Caller{Surface: ops.Slack, ID: "T1/U1", User: "alice"}
	_, err := opstest.Do(t, c, launch.Plan(), "--worktree", "/w", "--time", "10", "--check-files")
	require.Equal(t, "check_files", ops.AsError(err).Field)
}

func TestALiteralWorldSizeMustAgree(t *testing.T) {
	c := opstest.NewCall(t, &opstest.Site{})
	own := []string{"--nodes", "2", "--gpus-per-node", "4", "--time", "10", "--worktree", "/w", "--script", "train.py", "--"}
	for args, want := range map[string]bool{"--world-size=8": false, "--world-size=2": true} {
		out, err := opstest.Do(t, c, launch.Plan(), append(append([]string{}, own...), args)...)
		require.NoError(t, err)
		require.Equal(t, want, rules.Blocking(out.(launch.PlanOut).Problems), args)
	}
	out, err := opstest.Do(t, c, launch.Plan(), append(own, "--init-method", "tcp://10.0.0.1:29500")...)
	require.NoError(t, err)
	require.Contains(t, opstest.Ids(out.(launch.PlanOut).Problems), "own-script-agrees")
}

// A loginNode is a cluster whose paths mean the same on this machine.
type loginNode struct{ *opstest.Site }

func (loginNode) Kind() string { return "cli" }

// shell returns a call in a person's own shell, in dir on a login node.
func shell(t *testing.T, dir string) *ops.Call {
	t.Helper()
	c := opstest.NewCall(t, &opstest.Site{})
	c.Dir = dir
	c.Clusters, c.Default = map[string]ops.Cluster{"prod": loginNode{&opstest.Site{}}}, "prod"
	return c
}
