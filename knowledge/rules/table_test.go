package rules

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/knowledge/megatron"
)

// TestRowsAreComplete checks that every row has all texts that a person will see.
func TestRowsAreComplete(t *testing.T) {
	seen := map[string]bool{}
	word := regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)
	for _, r := range Table() {
		require.Regexp(t, word, r.ID)
		require.False(t, seen[r.ID], "%s twice", r.ID)
		seen[r.ID] = true
		require.NotEmpty(t, r.Topic, r.ID)
		require.NotEmpty(t, r.Source, r.ID)
		require.NotEmpty(t, r.Effect, r.ID)
		require.NotEmpty(t, r.Condition.EN, r.ID)
		for name, text := range map[string]lang.Text{"requirement": r.Requirement, "reason": r.Reason, "remedy": r.Remedy} {
			require.NotEmpty(t, text.EN, "%s of %s", name, r.ID)
			require.NotEmpty(t, text.ZH, "%s of %s in Chinese", name, r.ID)
		}
		for _, f := range r.Flags {
			if strings.HasPrefix(f, "--") {
				known := len(megatron.FlagHistory(f)) > 0
				require.True(t, known, "%s names %s, which Megatron does not have", r.ID, f)
			}
		}
	}
	for _, r := range table() {
		for cause := range strings.FieldsSeq(r.after) {
			require.True(t, seen[cause], "%s follows %s, which is no rule", r.id, cause)
		}
	}
}

// TestAdviceNamesFlagsThatExist checks the flags in every text. A name that Megatron
// does not know would lead the reader to a second error.
func TestAdviceNamesFlagsThatExist(t *testing.T) {
	quoted := map[string]bool{ // told as the wrong spellings of Megatron's own messages, or not Megatron's at all
		"--nccl-ub": true, "--local-ckpt-dir": true, "--non_persistent_ckpt_type": true, "--help": true, "--flag": true,
		"--nnodes": true, "--nproc-per-node": true, "--ntasks-per-node": true, // the launcher's and sbatch's
	}
	flag := regexp.MustCompile(`--[a-z][a-z0-9_-]*[a-z0-9]`)
	for _, r := range Table() {
		for _, text := range []lang.Text{r.Condition, r.Requirement, r.Reason, r.Remedy} {
			for _, f := range flag.FindAllString(text.EN+" "+text.ZH, -1) {
				known := len(megatron.FlagHistory(f)) > 0
				require.True(t, known || quoted[f], "%s says %s, which Megatron does not have", r.ID, f)
			}
		}
	}
}

func TestConnectionsMatrix(t *testing.T) {
	for _, c := range []struct {
		name                string
		arch, tp, cp        int
		torch, mega, expert bool
		want                string
	}{
		{"hopper with tensor parallelism", 9, 2, 1, false, false, false, "1"},
		{"ampere with context parallelism", 8, 1, 4, false, false, false, "1"},
		{"hopper alone", 9, 1, 1, false, false, false, Unset},
		{"blackwell with tensor parallelism", 10, 8, 1, false, false, false, Unset},
		{"a newer blackwell", 12, 8, 1, false, false, false, Unset},
		{"torch FSDP2 on hopper with tensor parallelism", 9, 2, 1, true, false, false, Unset},
		{"megatron FSDP on blackwell", 10, 1, 1, false, true, false, Unset},
		{"expert overlap on hopper", 9, 1, 1, false, false, true, "32"},
		{"expert overlap comes first", 10, 2, 1, false, true, true, "32"},
	} {
		value, reason := Connections(c.arch, c.tp, c.cp, c.torch, c.mega, c.expert)
		require.Equal(t, c.want, value, c.name)
		require.NotEmpty(t, reason.EN)
		require.NotEmpty(t, reason.ZH)
	}
}

func check(edits string) Verdict {
	d := newDraft(bases["dense"])
	d.edit(edits)
	c := d.carried("", "", true, "")
	return Check(megatron.Run{Entry: c.Entry, Argv: c.Argv, WorldSize: c.World, Arch: c.Arch, Env: c.Env})
}

func problem(t *testing.T, v Verdict, rule string) Problem {
	t.Helper()
	for _, p := range v.Problems {
		if p.Rule == rule {
			return p
		}
	}
	require.Fail(t, "not told", "%s among %v", rule, v.Problems)
	return Problem{}
}

func TestFixesAreComputed(t *testing.T) {
	v := check("--num-attention-heads 12 --hidden-size 768 --tensor-model-parallel-size 8 --pipeline-model-parallel-size 1 --micro-batch-size 1")
	p := problem(t, v, "heads-multiple-of-tp")
	require.Equal(t, "use TP 4: 12 heads are divisible by 1, 2, 3, 4, 6, 12", p.Fix)
	require.Equal(t, "--tensor-model-parallel-size", p.Field)
	require.Equal(t, "megatron/core/transformer/transformer_config.py:1447", p.Source)
	require.Equal(t, PerformanceOnly, p.Effect)

	v = check("--global-batch-size 100")
	p = problem(t, v, "eval-batch-divisible")
	require.Equal(t, "use 96 or 104 (multiples of 8)", p.Fix)
	require.Equal(t, ChangesExperiment, p.Effect)

	v = check("--context-parallel-size 3 --tensor-model-parallel-size 1")
	require.Equal(t, "use CP 2, or --seq-length 2046", problem(t, v, "seq-length-for-cp").Fix, "no longer than the positions")
	require.Contains(t, problem(t, v, "world-multiple-of-model-size").Fix, "or CP 2")
	v = check("--context-parallel-size 3 --tensor-model-parallel-size 1 --pipeline-model-parallel-size 1")
	require.Equal(t, "TP × PP × CP = 3: use 15 / 18 GPUs, or CP 2", problem(t, v, "world-multiple-of-model-size").Fix)

	v = check("--num-layers 25")
	require.Contains(t, problem(t, v, "layers-multiple-of-pp").Fix, "use PP 1")
}

func TestSwitchesAreShownAsTyped(t *testing.T) {
	v := check("--num-experts 4 --moe-grouped-gemm --sequence-parallel --expert-tensor-parallel-size 1")
	p := problem(t, v, "grouped-gemm-no-fused-bias")
	require.Contains(t, p.Message, "--no-bias-dropout-fusion off")
	require.Contains(t, p.Message, "--disable-bias-linear off")
	require.Contains(t, p.Message, "--moe-grouped-gemm on")
}

// A rule about what was given quotes it, and not what Megatron makes of it.
func TestTheGivenValueIsQuoted(t *testing.T) {
	p := problem(t, check("--cuda-graph-impl transformer_engine --cuda-graph-scope full attn"), "full-scope-alone")
	require.Equal(t, "full must be the only value (now --cuda-graph-scope full attn)", p.Message)
}

func TestAllProblemsAtOnceConsequencesLast(t *testing.T) {
	v := check("--global-batch-size 100 --num-attention-heads 31 --lr-warmup-iters 5000 CUDA_DEVICE_MAX_CONNECTIONS=8")
	require.False(t, v.OK)
	for _, rule := range []string{"eval-batch-divisible", "heads-multiple-of-tp", "warmup-shorter-than-decay", "connections-one"} {
		problem(t, v, rule)
	}
	follow := problem(t, v, "global-batch-divisible")
	require.Equal(t, "eval-batch-divisible", follow.Follows)
	cause, consequence := -1, -1
	for i, p := range v.Problems {
		switch p.Rule {
		case "warmup-shorter-than-decay":
			cause = i
		case "global-batch-divisible":
			consequence = i
		}
	}
	require.Greater(t, consequence, cause, "a consequence comes after what has causes of its own")
}

func TestScriptsOfTheUsersOwnMayAddFlags(t *testing.T) {
	run := func(entry string) Verdict {
		d := newDraft(bases["dense"])
		d.edit("--my-own-flag 3 @entry=" + entry)
		c := d.carried("", "", true, "")
		return Check(megatron.Run{Entry: c.Entry, Argv: c.Argv, WorldSize: c.World, Arch: c.Arch, Env: c.Env})
	}
	require.Equal(t, Error, problem(t, run("gpt"), "unknown-flag").Severity)
	own := run("train_mine.py")
	require.True(t, own.OK)
	require.Equal(t, Warning, problem(t, own, "unknown-flag").Severity)
}

func TestRulesOfDocumentsLeaveOKTrue(t *testing.T) {
	v := check("NCCL_TIMEOUT=1800 !--bf16")
	require.True(t, v.OK)
	require.Equal(t, Warning, problem(t, v, "nccl-timeout-does-not-exist").Severity)
	require.Equal(t, Warning, problem(t, v, "half-precision").Severity)
}

func TestSilentChangesAreNotes(t *testing.T) {
	v := check("--tensor-model-parallel-size 1 --sequence-parallel --async-save --use-mcore-models")
	require.True(t, v.OK)
	for _, rule := range []string{"sequence-parallel-switched-off", "async-save-dropped", "use-mcore-models-has-no-effect", "fp32-accumulation-switched-on"} {
		require.Equal(t, Note, problem(t, v, rule).Severity)
	}
}

func TestChineseProblems(t *testing.T) {
	d := newDraft(bases["dense"])
	d.edit("--num-attention-heads 31 --optimizer adamw")
	c := d.carried("", "", true, "")
	for _, p := range CheckIn(megatron.Run{Argv: c.Argv, WorldSize: c.World, Arch: 9, Env: c.Env}, lang.ZH).Problems {
		require.Equal(t, lang.ZH, lang.Of(p.Message), p.Message)
		require.Equal(t, lang.ZH, lang.Of(p.Fix), p.Fix)
	}
}

func TestConstants(t *testing.T) {
	got := map[string]Constant{}
	for _, c := range Constants(Config{Nodes: 4, GPUsPerNode: 8, TP: 8, CP: 1, Arch: 9}) {
		require.NotEmpty(t, c.Reason.EN, c.Name)
		require.NotEmpty(t, c.Reason.ZH, c.Name)
		got[c.Name] = c
	}
	require.Equal(t, "cd <worktree>", got["worktree"].Value)
	require.Equal(t, "--ntasks-per-node=1", got["tasks per node"].Value)
	require.Equal(t, "srun uv run python -m torch.distributed.run", got["launch command"].Value)
	require.Equal(t, `$(set +o pipefail; scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n1)`, got["MASTER_ADDR"].Value)
	require.Equal(t, "29500", got["MASTER_PORT"].Value)
	require.Equal(t, "4", got["NNODES"].Value)
	require.Equal(t, "32", got["WORLD_SIZE"].Value)
	require.Equal(t, "1", got[connections].Value)
	for _, flag := range []string{"--nnodes", "--nproc-per-node", "--node-rank", "--master-addr", "--master-port"} {
		require.Contains(t, got, flag)
	}
}

func TestExplain(t *testing.T) {
	r, ok := Explain("connections-one")
	require.True(t, ok)
	require.Equal(t, "megatron/training/arguments.py:1477", r.Source)
	_, ok = Explain("no-such-rule")
	require.False(t, ok)
}

func TestAboutNamesFlagsThatExist(t *testing.T) {
	for flag, says := range about {
		f, ok := megatron.LookupFlag(flag)
		require.True(t, ok, flag)
		require.Equal(t, f.Name, flag, "write the flag's first name")
		require.NotEmpty(t, says.ZH, flag)
	}
	says, ok := About("--persistent-save-interval")
	require.True(t, ok, "any spelling will do")
	require.Contains(t, says.EN, "checkpoints")
}

// TestHugeNumbersAreJudged gives sizes that overflow or would make a search
// endless.
func TestHugeNumbersAreJudged(t *testing.T) {
	for _, f := range []string{
		"--tensor-model-parallel-size", "--pipeline-model-parallel-size", "--context-parallel-size", "--expert-model-parallel-size",
		"--num-attention-heads", "--hidden-size", "--num-layers", "--num-experts", "--global-batch-size", "--micro-batch-size", "--num-query-groups",
		"--num-virtual-stages-per-pipeline-rank", "--num-layers-per-virtual-pipeline-stage", "--seq-length", "--num-distributed-optimizer-instances",
		"--expert-tensor-parallel-size", "--tensor-parallel-num-weight-shards", "--mtp-num-layers", "--decoder-first-pipeline-num-layers",
	} {
		for _, n := range []string{"9007199254740991", "9223372036854775807", "-9223372036854775808", "4611686018427387904", "99999999999999999999999", "0"} {
			require.NotPanics(t, func() { check(f + " " + n) }, "%s %s", f, n)
			require.NotPanics(t, func() {
				check(f + " " + n + " --pipeline-model-parallel-size " + n + " --tensor-model-parallel-size " + n)
			}, "%s %s", f, n)
		}
	}
}
