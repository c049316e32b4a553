package smoke

import (
	"context"
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
	"github.com/megatron-ops/megatron-ops/slurm/job"
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

// A ladder has no rung that is larger than the job, and no rung twice.
func TestTheRungsOfALadder(t *testing.T) {
	for _, c := range []struct {
		nodes, gpus int
		want        string
	}{
		{1, 0, "1 node"}, {2, 0, "1 node, 2 nodes"}, {1, 1, "1 node"}, {2, 1, "1 GPU, 2 nodes"}, {1, 8, "1 GPU, 1 node"}, {4, 8, "1 GPU, 1 node, 2 nodes"},
	} {
		var names []string
		for _, r := range ladder(job.Spec{Nodes: &c.nodes, GPUsPerNode: &c.gpus}) {
			names = append(names, r.name)
		}
		require.Equal(t, c.want, strings.Join(names, ", "))
	}
}

// A small job keeps its environment, and drops what belongs to the real run.
func TestASmallJobLeavesWhatIsTheRealRuns(t *testing.T) {
	nodes, gpus, cpus := 4, 8, 4
	s := job.Spec{
		Name: strings.Repeat("n", 120), Nodes: &nodes, GPUsPerNode: &gpus, CPUsPerTask: &cpus, Worktree: "/w", Env: map[string]string{"A": "1"}, Partition: "gpu",
		Array: "0-3", Train: "a", Every: "1h", Dependency: "afterok:1", Begin: "20:00", Signal: "B:USR1@60", KillSwitch: "/stop", Nodelist: "gpu1",
		Retry: job.Retry{Max: new(2)}, Artifact: job.Artifact{Path: "m.json"}, Launcher: "custom", LauncherArgv: []string{"run"}, Args: []string{"--load", "/ckpt"},
	}
	one, no := small(s, 1, 1, "1gpu"), false
	name := strings.Repeat("n", 100) + "-smoke-1gpu"
	nodes1, gpus1, cpus1 := 1, 1, 1
	require.Equal(t, job.Spec{
		Name: name, Nodes: &nodes1, GPUsPerNode: &gpus1, CPUsPerTask: &cpus1, Worktree: "/w", Env: map[string]string{"A": "1"}, Partition: "gpu", Time: "00:10:00",
		Launcher: "custom", LauncherArgv: []string{"run"}, Requeue: &no, Args: []string{"--load", "/ckpt"},
	}, one, "the words of a program that is not Megatron stay")
	require.Equal(t, 4, *small(s, 1, 8, "1node").CPUsPerTask)
	require.Equal(t, 4, *small(s, 1, 0, "1node").CPUsPerTask)
}

// The largest part of a layout that fits is kept; pipeline, context and tensor
// parallelism are reduced in this order.
func TestALayoutIsCutToItsGPUs(t *testing.T) {
	const always = " --train-iters 10 --eval-iters 1 --eval-interval 10 --log-interval 1"
	const tp, pp, cp, ep, etp = "--tensor-model-parallel-size ", "--pipeline-model-parallel-size ", "--context-parallel-size ", "--expert-model-parallel-size ", "--expert-tensor-parallel-size "
	for _, c := range []struct {
		args  string
		world int
		want  string
	}{
		{"", 4, "--global-batch-size 4"},
		{"--bf16 --micro-batch-size 2 --save /ckpt --train-iters 500 --eval-iters 9 --log-interval 50 --global-batch-size 512", 4, "--bf16 --micro-batch-size 2 --global-batch-size 8"},
		{tp + "4 " + pp + "4 --num-layers 32", 8, tp + "4 " + pp + "2 --num-layers 4 --global-batch-size 1"},
		{tp + "4 " + pp + "4 --num-layers 32", 1, tp + "1 " + pp + "1 --num-layers 2 --global-batch-size 1"},
		{tp + "2 " + cp + "2", 2, tp + "2 " + cp + "1 --global-batch-size 1"},
		{pp + "2 --num-layers 3", 2, pp + "2 --num-layers 2 --global-batch-size 1"},
		{pp + "2 " + cp + "2", 2, pp + "1 " + cp + "2 --global-batch-size 1"},
		{pp + "2 " + ep + "8", 8, pp + "2 " + ep + "4 --global-batch-size 4"},
		{cp + "8", 4, cp + "4 --global-batch-size 1"},
		{cp + "9", 3, cp + "3 --global-batch-size 1"},
		{cp + "6", 4, cp + "1 --global-batch-size 4"},
		{tp + "2 " + ep + "16 " + etp + "2", 8, tp + "2 " + ep + "4 " + etp + "2 --global-batch-size 4"},
		{tp + "2 " + ep + "16", 8, tp + "2 " + ep + "4 --global-batch-size 4"},
		{tp + "2 " + ep + "16 " + etp + "1", 8, tp + "2 " + ep + "8 " + etp + "1 --global-batch-size 4"},
		{tp + "4 " + etp + "4", 2, tp + "2 " + etp + "2 --global-batch-size 1"},
		{"--encoder-num-layers 12 --decoder-num-layers 1", 1, "--encoder-num-layers 2 --decoder-num-layers 1 --global-batch-size 1"},
		{"--moe-layer-freq [1]*32", 1, "--global-batch-size 1"},
		{"--moe-layer-freq ([0]*3+[1])*8", 1, "--global-batch-size 1"},
		{"--moe-layer-freq 2", 1, "--moe-layer-freq 2 --global-batch-size 1"},
	} {
		require.Equal(t, c.want+always, strings.Join(smallArgs(strings.Fields(c.args), c.world), " "), "%s on %d", c.args, c.world)
	}
}

// A leavingUser is a cluster whose user leaves as soon as a job was submitted.
type leavingUser struct {
	*opstest.Site
	leave  func()
	refuse error
	ended  []slurm.JobID
}

func (l *leavingUser) Submit(ctx context.Context, s slurm.Submission) (slurm.JobID, error) {
	defer l.leave()
	return l.Site.Submit(ctx, s)
}

func (l *leavingUser) Cancel(_ context.Context, id slurm.JobID) error {
	l.ended = append(l.ended, id)
	return l.refuse
}

// A rung that nobody waits for is cancelled.
func TestARungThatIsLeftIsEnded(t *testing.T) {
	for _, refuse := range []error{nil, slurm.ErrUnreachable} {
		ctx, leave := context.WithCancel(t.Context())
		l := &leavingUser{Site: &opstest.Site{}, leave: leave, refuse: refuse}
		c := opstest.NewCall(t, l.Site)
		op, in := Smoke(), Smoke().NewIn().(*In)
		c.Clusters["test"] = l
		require.NoError(t, op.Words(in, append([]string{"--yes"}, opstest.GoodJob...))) // the plan has a warning for this job
		_, err := op.Run(ctx, c, in)
		require.Equal(t, []slurm.JobID{"4701"}, l.ended)
		if refuse == nil {
			require.ErrorIs(t, err, context.Canceled)
			continue
		}
		require.ErrorContains(t, err, "job 4701 could not be cancelled and may still run: ")
		require.ErrorContains(t, err, "does not answer")
		require.Contains(t, ops.AsError(err).Fix.ZH, "megatron-ops cancel 4701")
	}
}

// A rung with an error in the plan is not submitted.
func TestARungThatCannotHoldIsNotSubmitted(t *testing.T) {
	site := &opstest.Site{}
	c := opstest.NewCall(t, site)
	out, err := opstest.Do(t, c, Smoke(), append(append([]string{"--yes"}, opstest.GoodJob...), "--num-attention-heads", "15")...)
	require.NoError(t, err)
	o := out.(Out)
	require.Equal(t, "1 GPU", o.Failed)
	require.Contains(t, o.Rungs[0].Why, "--hidden-size must be a multiple of --num-attention-heads")
	require.Empty(t, o.Rungs[0].JobID)
	require.Empty(t, site.Submitted)
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
	out, err := opstest.Do(t, c, Smoke(), append(words, "--dry-run", "--", "--seed", "7")...)
	require.NoError(t, err)
	require.Len(t, out.(Out).Rungs, 3)
	require.Contains(t, opstest.Text(t, out, lang.EN), "own: the ladder; nothing was submitted")
	require.Contains(t, opstest.Text(t, out, lang.EN), "1 GPU: --seed 7")
	require.False(t, out.(Out).Found())
	require.Contains(t, opstest.Text(t, out, lang.ZH), "2 个节点，4 张 GPU", "a size in the reader's language")
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
	said := opstest.Text(t, s, lang.ZH)
	require.Contains(t, said, "own：最先失败的一级是 2 nodes")
	require.Contains(t, said, "2 nodes："+s.Rungs[2].Why)
	require.Contains(t, said, "NCCL_SOCKET_IFNAME")
	require.Contains(t, said, "diagnose "+string(s.Rungs[2].JobID))

	program("exit 0\n")
	out, err = opstest.Do(t, c, Smoke(), append(words, "--yes")...)
	require.NoError(t, err)
	require.True(t, out.(Out).OK, "%+v", out)
	said = opstest.Text(t, out, lang.EN)
	require.Contains(t, said, "every rung holds")
	require.NotContains(t, said, "diagnose")
	program("exit 3\n")
	out, err = opstest.Do(t, c, Smoke(), append(words, "--yes")...)
	require.NoError(t, err)
	require.Equal(t, "1 GPU", out.(Out).Failed)
	require.Len(t, out.(Out).Rungs, 1, "what comes after is not tried")
}
