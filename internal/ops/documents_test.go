package ops

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/knowledge/rules"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/job"
)

// A loginNode is a cluster whose paths this machine shares.
type loginNode struct{ *site }

func (loginNode) Kind() string { return "cli" }

// shell is a call of a person's own shell, in dir on a login node.
func shell(t *testing.T, dir string) *Call {
	t.Helper()
	c := newCall(t, &site{})
	c.Dir = dir
	c.Clusters, c.Default = map[string]Cluster{"prod": loginNode{&site{}}}, "prod"
	return c
}

func write(t *testing.T, file, text string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
	require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
}

func TestASpecificationIsJudgedByEachRowOfTheDocuments(t *testing.T) {
	tree := filepath.Join(t.TempDir(), "tree")
	write(t, filepath.Join(tree, "pretrain_gpt.py"), "")
	write(t, filepath.Join(tree, "docker", ".ngc_version.dev"), "nvcr.io/nvidia/pytorch:26.06-py3\n")
	write(t, filepath.Join(tree, ".venv", "pyvenv.cfg"), "")
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
		holds []string // words that keep the rule
	}{
		{"one-task-per-node", []string{"--srun-args=--ntasks-per-node=8"}, []string{"--srun-args=--ntasks-per-node=1"}},
		{"one-task-per-node", []string{"--srun-args=--ntasks=16"}, []string{"--srun-args=--ntasks=2"}},
		{"no-bare-torchrun", argv("torchrun"), argv("python", "-m", "torch.distributed.run")},
		{"nnodes-match-allocation", argv("python", "-m", "torch.distributed.run", "--nnodes=4"), argv("python", "-m", "torch.distributed.run", "--nnodes={nnodes}")},
		{"nnodes-match-allocation", []string{"--srun-args=--nodes=1"}, []string{"--srun-args=--nodes=2"}},
		{"nproc-match-gpus", argv("python", "-m", "torch.distributed.run", "--nproc-per-node=4"), argv("python", "-m", "torch.distributed.run", "--nproc-per-node=8")},
		{"world-size-counts-gpus", argv("my", "--world-size=$SLURM_NTASKS"), argv("my", "--world-size={world_size}")},
		{"rank-evaluated-on-node", argv("my", "--node-rank=$SLURM_NODEID"), argv("my", "--node-rank={node_rank}")},
		{"worktree-shared", []string{"--worktree", "/tmp/tree"}, []string{"--worktree", "/lustre/tree"}},
		{"outputs-shared", []string{"--", "--save", "/dev/shm/ck", "--save-interval", "5"}, []string{"--", "--save", "/lustre/ck", "--save-interval", "5"}},
		{"container-sees-venv", []string{"--worktree", tree, "--container-runtime", "pyxis", "--container-image", "x", "--container-mounts", tree + ":/mlm", "--container-mounts", "/opt:/mlm/.venv"}, []string{"--worktree", tree, "--container-runtime", "pyxis", "--container-image", "x", "--container-mounts", tree + ":/mlm"}},
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
			out, err := do(t, c, Plan(), append(all, words...)...)
			require.NoError(t, err, words)
			i := slices.IndexFunc(out.(PlanOut).Problems, func(p rules.Problem) bool { return p.Rule == tt.row })
			require.Equal(t, broken, i >= 0, "%s with %v", tt.row, words)
			if broken {
				p := out.(PlanOut).Problems[i]
				require.NotEmpty(t, p.Fix)
				require.NotEmpty(t, p.Source)
				require.NotEmpty(t, p.Severity)
			}
		}
	}
}

// What the documents say of a launch is judged in somebody's own script too,
// with the line.
func TestALaunchScriptIsJudgedByTheDocuments(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "run.sh"), `#!/bin/bash
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=8
#SBATCH --time=10
pip install wandb
NNODES=2
export MASTER_ADDR=$(hostname)
srun bash -c "torchrun --nnodes $NNODES --nproc_per_node 4 --node_rank $SLURM_NODEID --master_addr $MASTER_ADDR pretrain_gpt.py --save /tmp/ck --save-interval 10 --world-size $SLURM_NTASKS"
`)
	out, err := do(t, shell(t, dir), Plan(), "run.sh")
	require.NoError(t, err)
	got := map[string]string{}
	for _, p := range out.(PlanOut).Problems {
		got[p.Rule] = p.Message
	}
	for row, line := range map[string]string{
		"worktree-shared": "line 9", "no-bare-torchrun": "line 9", "nnodes-match-allocation": "line 7", "nproc-match-gpus": "line 9",
		"world-size-counts-gpus": "line 9", "rank-evaluated-on-node": "line 9", "environment-synced": "line 6", "outputs-shared": "line 9",
	} {
		require.Contains(t, got[row], line, "%s: %v", row, got)
	}
}

// A script of somebody's own is judged with the defaults that it gives, what it
// rests on is told, and what it hides is not made up: submit asks for it.
func TestAScriptIsJudgedByWhatItShows(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "run.sh"), `#!/bin/bash
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
	out, err := do(t, shell(t, dir), Plan(), "run.sh")
	require.NoError(t, err)
	var refused []string
	for _, p := range out.(PlanOut).Problems {
		if p.Severity == rules.Error && strings.HasPrefix(p.Source, "megatron/") {
			refused = append(refused, p.Rule)
		}
	}
	require.Equal(t, []string{"heads-multiple-of-tp"}, refused)
	kinds := map[job.NoteKind][]string{}
	for _, n := range out.(PlanOut).Read {
		kinds[n.Kind] = append(kinds[n.Kind], n.What)
	}
	require.Equal(t, []string{"$SCRATCH/out"}, kinds[job.Hidden])
	require.Len(t, kinds[job.Taken], 2)
	require.Contains(t, kinds[job.Taken], "TP=8")

	_, err = do(t, shell(t, dir), Submit(), "run.sh", "--yes")
	require.ErrorContains(t, err, "$SCRATCH/out")
}

// Whatever plan reports can be looked up.
func TestEveryRowThatPlanReportsIsExplained(t *testing.T) {
	reported := map[string]bool{}
	for _, r := range circumstances() {
		reported[r.id] = true
	}
	for _, to := range asWritten {
		reported[to.row] = true
	}
	added := regexp.MustCompile(`\b[fr]\.add\("([a-z-]+)"|rule, fix :?= "([a-z-]+)"`)
	sources, err := filepath.Glob("*.go")
	require.NoError(t, err)
	for _, file := range sources {
		b, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, m := range added.FindAllStringSubmatch(string(b), -1) {
			reported[m[1]+m[2]] = true
		}
	}
	require.Greater(t, len(reported), 40)
	for id := range reported {
		r, ok := rules.Explain(id)
		require.True(t, ok, "%s is no row of the rules table", id)
		require.NotEmpty(t, r.Remedy.ZH)
	}
}

func TestFilesAreLookedAtWhereTheContainerSeesThem(t *testing.T) {
	dir, lake := t.TempDir(), t.TempDir()
	write(t, filepath.Join(lake, "web.bin"), "x")
	write(t, filepath.Join(lake, "web.idx"), "MMIDIDX\x00\x00")
	write(t, filepath.Join(dir, "tok", "vocab.json"), "{}")
	check := func(args ...string) []rules.Problem {
		c := shell(t, "")
		words := []string{
			"--worktree", dir, "--time", "10", "--check-files",
			"--container-runtime", "pyxis", "--container-image", "x", "--container-mounts", lake + ":/data", "--",
		}
		out, err := do(t, c, Plan(), append(words, args...)...)
		require.NoError(t, err)
		return slices.DeleteFunc(out.(PlanOut).Problems, func(p rules.Problem) bool {
			r, _ := rules.Explain(p.Rule)
			return r.Topic != "files" || p.Rule == "script-exists" || p.Rule == "looked-as-root"
		})
	}
	require.Empty(t, check("--data-path", "/data/web"), "found through the mount")
	require.Equal(t, []string{"data-missing"}, ids(check("--data-path", "/data/other")))
	ps := check("--data-path", lake+"/web")
	require.Equal(t, []string{"path-not-mounted"}, ids(ps))
	require.Equal(t, "--data-path /data/web", ps[0].Fix, "the host's name is told as the container's")
	require.Empty(t, check("--vocab-file", dir+"/tok/vocab.json"), "the worktree is mounted without being asked")
	require.Empty(t, check("--tokenizer-model", "/opt/tokenizers/x"), "what only the image may have is not judged")
	require.Equal(t, []string{"path-not-mounted"}, ids(check("--vocab-file", "/etc/hostname")))
}

func TestTheVirtualEnvironmentIsLookedInto(t *testing.T) {
	tree := t.TempDir()
	write(t, filepath.Join(tree, "pyproject.toml"), `[project]
name = "megatron-core"
[project.optional-dependencies]
training = [
    "Flask-RESTful",
    "wandb>=0.1",  # a comment with "quotes"
]
dev = ["einops~=0.8", "openai[aiohttp]", "only-linux; sys_platform == 'linux'"]
te = ["transformer-engine[pytorch]"]
`)
	packages := filepath.Join(tree, ".venv", "lib", "python3.12", "site-packages")
	write(t, filepath.Join(tree, ".venv", "bin", "python"), "")
	for _, have := range []string{"flask_restful-1.0.dist-info", "wandb-0.2.dist-info"} {
		require.NoError(t, os.MkdirAll(filepath.Join(packages, have), 0o755))
	}
	check := func() []rules.Problem {
		f := fileCheck{spec: job.Spec{Worktree: tree}.WithDefaults()}
		f.environment()
		return slices.DeleteFunc(f.ps, func(p rules.Problem) bool { return p.Rule == "uv-missing" })
	}
	ps := check()
	require.Equal(t, []string{"environment-synced"}, ids(ps))
	require.Contains(t, ps[0].Message, "lacks 2 packages of the extras training and dev, such as einops, openai")
	for _, have := range []string{"einops-0.8.dist-info", "openai-1.dist-info"} {
		require.NoError(t, os.MkdirAll(filepath.Join(packages, have), 0o755))
	}
	require.Empty(t, check())
	require.NoError(t, os.Remove(filepath.Join(tree, ".venv", "bin", "python")))
	require.Contains(t, check()[0].Message, "not a whole virtual environment")

	t.Setenv("PATH", t.TempDir())
	f := fileCheck{spec: job.Spec{Worktree: tree}.WithDefaults()}
	f.environment()
	require.Contains(t, ids(f.ps), "uv-missing")
}

func TestWhatSeveralNodesUseMustBeOnASharedFileSystem(t *testing.T) {
	tree, two := "/usr", 2 // a folder of this machine that is not local by its name
	f := fileCheck{spec: job.Spec{Worktree: tree, Nodes: &two}.WithDefaults(), apart: true}
	f.environment()
	f.sharedOutput("--save", tree+"/ck")
	require.Contains(t, ids(f.ps), "worktree-shared")
	require.Contains(t, ids(f.ps), "outputs-shared")

	f = fileCheck{spec: f.spec, apart: true, shared: []string{"/usr"}}
	f.environment()
	f.sharedOutput("--save", tree+"/ck")
	require.NotContains(t, ids(f.ps), "worktree-shared", "the site's word counts")
	require.NotContains(t, ids(f.ps), "outputs-shared")
}

func TestACheckpointMustFitInTheQuota(t *testing.T) {
	dir := t.TempDir()
	c := shell(t, "")
	s, err := c.ReadSpec(SpecIn{YAML: "worktree: " + dir + "\nargs: [--num-layers, 32, --hidden-size, 4096, --num-attention-heads, 32, --seq-length, 128, --save, " + dir + "]\n"})
	require.NoError(t, err)
	f := fileCheck{spec: s.WithDefaults(), quotas: func(string) []slurm.Quota {
		return []slurm.Quota{{Of: "user", Mount: "/home", Used: 90 << 30, Limit: 100 << 30}, {Of: "group", Mount: "/home", Limit: 1 << 50}}
	}}
	f.args = argsOf(f.spec)
	f.save()
	i := slices.Index(ids(f.ps), "save-quota")
	require.GreaterOrEqual(t, i, 0)
	require.Regexp(t, `^your quota on /home has 10 GiB left of 100, and one checkpoint takes about \d+ GiB$`, f.ps[i].Message)
	require.Equal(t, 1, strings.Count(strings.Join(ids(f.ps), " "), "save-quota"), "the group's has room")
}

func TestOnlyTheNewestCompleteIterationIsOffered(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "ck", tracker), "300\n")
	write(t, filepath.Join(dir, "ck", "iter_0000100", ".metadata"), "")
	write(t, filepath.Join(dir, "ck", "iter_0000200", "metadata.json"), "{}")
	write(t, filepath.Join(dir, "ck", "iter_0000300", "__0_0.distcp"), "")
	c := shell(t, "")
	out, err := do(t, c, Plan(), "--worktree", dir, "--time", "10", "--check-files", "--", "--load", "ck")
	require.NoError(t, err)
	ps := out.(PlanOut).Problems
	p := ps[slices.Index(ids(ps), "load-incomplete")]
	require.Contains(t, p.Message, "not written to its end")
	require.Contains(t, p.Fix, "iter_0000200")
}

func TestFilesAreNotLookedAtForSomebodyElse(t *testing.T) {
	c := shell(t, "")
	c.Self, c.Who = "bot", Caller{Surface: Slack, ID: "T1/U1", User: "alice"}
	_, err := do(t, c, Plan(), "--worktree", "/w", "--time", "10", "--check-files")
	require.Equal(t, "check_files", AsError(err).Field)
}
