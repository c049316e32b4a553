package operations

import (
	"context"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/jobcontrol"
	"github.com/megatron-ops/megatron-ops/internal/ops/launch"
	"github.com/megatron-ops/megatron-ops/internal/ops/opstest"
	"github.com/megatron-ops/megatron-ops/internal/view"
	"github.com/megatron-ops/megatron-ops/knowledge/megatron"
	"github.com/megatron-ops/megatron-ops/knowledge/rules"
	"github.com/megatron-ops/megatron-ops/slurm"
)

func TestEveryOperationSpeaksBothLanguagesAndShowsItself(t *testing.T) {
	for _, op := range All() {
		require.NotEmpty(t, op.Summary.EN, op.Name)
		require.NotEmpty(t, op.Summary.ZH, op.Name)
		require.NotEmpty(t, op.Help.EN, op.Name)
		require.NotEmpty(t, op.Help.ZH, op.Name)
		require.NotEmpty(t, op.Example, op.Name)
		require.True(t, op.Out().Implements(reflect.TypeFor[view.Viewer]()), "%s: its output has no View", op.Name)
		for _, p := range op.Params() {
			require.NotEmpty(t, p.Help.EN, "%s --%s", op.Name, p.Name)
			require.NotEmpty(t, p.Help.ZH, "%s --%s", op.Name, p.Name)
		}
	}
}

// The example of a flag without its value is a valid flag of that operation.
func TestAFlagsExampleIsOne(t *testing.T) {
	for _, op := range All() {
		for _, p := range op.Params() {
			if p.Arg || len(p.Enum) > 0 {
				continue
			}
			said := ops.AsError(op.Words(op.NewIn(), []string{"--" + p.Name}))
			if p.Type == "switch" {
				said = ops.AsError(op.Words(op.NewIn(), []string{"--" + p.Name + "=3"}))
			}
			require.NotNil(t, said, "%s --%s", op.Name, p.Name)
			example, is := strings.CutPrefix(said.Fix.EN, "for example: ")
			require.True(t, is, "%s --%s: %s", op.Name, p.Name, said.Fix.EN)
			words, err := megatron.SplitWords(example)
			require.NoError(t, err, example)
			for _, x := range op.Params() { // the other required arguments
				if x.Arg && x.Required {
					words = append(words, "4711")
				}
			}
			if err := op.Words(op.NewIn(), words); err != nil {
				t.Errorf("%s: %s: %v", op.Name, example, err)
			}
		}
	}
}

func TestPlanTellsAllProblemsAtOnce(t *testing.T) {
	c := opstest.NewCall(t, &opstest.Site{})
	out, err := do(t, c, "plan", append(append([]string{}, opstest.GoodJob...), "--num-attention-heads", "18", "--global-batch-size", "63")...)
	require.NoError(t, err)
	p := out.(launch.PlanOut)
	require.False(t, p.OK)
	require.True(t, p.Found())
	require.GreaterOrEqual(t, len(p.Problems), 2)
}

func TestPlanOfAGoodJob(t *testing.T) {
	out, err := do(t, opstest.NewCall(t, &opstest.Site{}), "plan", opstest.GoodJob...)
	require.NoError(t, err)
	p := out.(launch.PlanOut)
	require.True(t, p.OK, "%+v", p.Problems)
	require.Equal(t, 16, p.WorldSize)
	require.Equal(t, "1", p.Derived["cuda_device_max_connections"])
}

// Arguments can be judged before the worktree exists; a submission needs it.
func TestPlanWithoutAWorktreeStillJudges(t *testing.T) {
	words := slices.Concat(opstest.GoodJob[:8], opstest.GoodJob[10:])
	require.NotContains(t, words, "--worktree")
	out, err := do(t, opstest.NewCall(t, &opstest.Site{}), "plan", words...)
	require.NoError(t, err)
	p := out.(launch.PlanOut)
	require.True(t, p.OK)
	require.True(t, slices.ContainsFunc(p.Problems, func(r rules.Problem) bool { return r.Rule == "worktree-given" && r.Severity == rules.Error }), "%+v", p.Problems)
	_, err = do(t, opstest.NewCall(t, &opstest.Site{}), "submit", append([]string{"--yes"}, words...)...)
	require.ErrorContains(t, err, "worktree")
}

func TestSubmitOnceForOneKey(t *testing.T) {
	s := &opstest.Site{}
	c := opstest.NewCall(t, s)
	words := append([]string{"--yes", "--idempotency-key", "k1"}, opstest.GoodJob...)
	first, err := do(t, c, "submit", words...)
	require.NoError(t, err)
	again, err := do(t, c, "submit", words...)
	require.NoError(t, err)
	require.Equal(t, first.(launch.SubmitOut).JobID, again.(launch.SubmitOut).JobID)
	require.False(t, first.(launch.SubmitOut).AlreadySubmitted)
	require.True(t, again.(launch.SubmitOut).AlreadySubmitted)
	require.Len(t, s.Submitted, 1)

	other := append([]string{"--qos", "urgent"}, words...)
	_, err = do(t, c, "submit", other...)
	require.Equal(t, ops.BadInput, ops.AsError(err).Code, "a key belongs to one specification")
}

func TestSubmitAfterALostAnswerFindsTheJob(t *testing.T) {
	s := &opstest.Site{Refuse: &slurm.Error{Op: "submit", Kind: slurm.Unknown, Msg: lang.Same("timed out")}}
	c := opstest.NewCall(t, s)
	words := append([]string{"--yes", "--idempotency-key", "k1"}, opstest.GoodJob...)
	_, err := do(t, c, "submit", words...)
	require.Error(t, err)
	s.Refuse, s.Found = nil, "4799"
	out, err := do(t, c, "submit", words...)
	require.NoError(t, err)
	require.Equal(t, slurm.JobID("4799"), *out.(launch.SubmitOut).JobID)
	require.Empty(t, s.Submitted, "it was there already")
}

func TestErrorsOfThePlanStopSubmit(t *testing.T) {
	s := &opstest.Site{}
	words := append([]string{"--yes"}, opstest.GoodJob...)
	words = append(words, "--num-attention-heads", "18")
	out, err := do(t, opstest.NewCall(t, s), "submit", words...)
	require.NoError(t, err)
	require.Nil(t, out.(launch.SubmitOut).JobID)
	require.True(t, out.(launch.SubmitOut).Found())
	require.Empty(t, s.Submitted)
}

func TestSubmitAsksFirst(t *testing.T) {
	s := &opstest.Site{}
	_, err := do(t, opstest.NewCall(t, s), "submit", opstest.GoodJob...)
	require.True(t, ops.AsError(err).Confirm)
	require.Empty(t, s.Submitted)
}

func TestOnlyOwnersAndOperatorsCancel(t *testing.T) {
	s := &opstest.Site{KnownJobs: map[slurm.JobID]slurm.Job{"51": {ID: "51", User: "bob", State: slurm.Running}}}
	c := opstest.NewCall(t, s)
	_, err := do(t, c, "cancel", "51", "--yes")
	require.Equal(t, ops.NotAllowed, ops.AsError(err).Code)
	require.Equal(t, slurm.Running, s.KnownJobs["51"].State)

	c.Who.Operator = true
	out, err := do(t, c, "cancel", "51", "--yes")
	require.NoError(t, err)
	require.True(t, out.(jobcontrol.CancelOut).Cancelled)
}

func TestWritesNeedALinkedCaller(t *testing.T) {
	c := opstest.NewCall(t, &opstest.Site{})
	c.Who = ops.Caller{Surface: ops.Slack, ID: "T1/U1"}
	_, err := do(t, c, "submit", opstest.GoodJob...)
	require.Equal(t, ops.NotAllowed, ops.AsError(err).Code)
	_, err = do(t, c, "plan", opstest.GoodJob...)
	require.NoError(t, err, "reading is open")
}

func TestEveryWriteIsAudited(t *testing.T) {
	c := opstest.NewCall(t, &opstest.Site{KnownJobs: map[slurm.JobID]slurm.Job{"51": {ID: "51", User: "bob", State: slurm.Running}}})
	var entries []ops.AuditEntry
	c.Audit = func(_ context.Context, e ops.AuditEntry) { entries = append(entries, e) }
	_, _ = do(t, c, "submit", append([]string{"--yes"}, opstest.GoodJob...)...)
	_, _ = do(t, c, "cancel", "51", "--yes")
	_, _ = do(t, c, "status", "51")
	require.Len(t, entries, 2, "reads are not writes")
	require.Error(t, entries[1].Err, "a refusal is written down too")
}

func TestBadWordsNameTheField(t *testing.T) {
	c := opstest.NewCall(t, &opstest.Site{})
	for _, tt := range []struct {
		op, field, says string
		words           []string
	}{
		{"submit", "--nodez", "no flag --nodez", []string{"--nodez", "2"}},
		{"submit", "nodes", `"x" is not a number`, []string{"--nodes", "x"}},
		{"submit", "nodes", "-3", []string{"--nodes=-3", "--worktree", "/w"}},
		{"submit", "name", "", []string{"--name", "a\nb", "--worktree", "/w"}},
		{"plan", "file", "no such file", []string{"-f", "/nosuch/job.yaml"}},
		{"status", "job", "needs <", nil},
		{"status", "job", `"abc" is not a job id`, []string{"abc"}},
	} {
		_, err := do(t, c, tt.op, tt.words...)
		e := ops.AsError(err)
		require.NotNil(t, e, tt.words)
		require.Equal(t, ops.BadInput, e.Code, "%v: %v", tt.words, e)
		require.Equal(t, tt.field, e.Field, "%v: %v", tt.words, e)
		require.Contains(t, e.Message.EN, tt.says)
		require.NotEmpty(t, e.Fix.EN, tt.words)
	}
}

func TestUnknownJobIsNotFound(t *testing.T) {
	_, err := do(t, opstest.NewCall(t, &opstest.Site{}), "status", "9999")
	require.Equal(t, ops.NotFound, ops.AsError(err).Code)
}

func TestAFlagOfMegatronsIsToldWhereItBelongs(t *testing.T) {
	c := opstest.NewCall(t, &opstest.Site{})
	for _, tt := range []struct{ op, words, fix string }{
		{"plan", "--tp 4", "plan … -- --tensor-model-parallel-size 4, or in the specification's args: [--tensor-model-parallel-size, 4]"},
		{"plan", "--pp=2", "plan … -- --pipeline-model-parallel-size 2,"},
		{"submit", "--lr 1e-4", "submit … -- --lr 1e-4,"},
		{"render", "--seq-length 8192", "render … -- --seq-length 8192,"},
		{"recommend", "--num-layers", "recommend … -- --num-layers,"},
		{"plan", "--bf16 --nodes 2", "plan … -- --bf16,"},
		{"plan", "--batch-size 3", "(--batch-size is not its name there)"},
		{"plan", "--gpus-per-nod 8", "did you mean --gpus-per-node?"},
		{"constants", "--pp 2", ""},
	} {
		_, err := do(t, c, tt.op, strings.Fields(tt.words)...)
		e := ops.AsError(err)
		require.Equal(t, ops.BadInput, e.Code, tt.words)
		require.Contains(t, e.Fix.EN, tt.fix, tt.words)
		if tt.op == "constants" {
			require.NotContains(t, e.Fix.EN, "after --", "it takes no arguments of Megatron's")
		}
	}
}

func TestListShowsMine(t *testing.T) {
	s := &opstest.Site{KnownJobs: map[slurm.JobID]slurm.Job{
		"1": {ID: "1", User: "alice", State: slurm.Running}, "2": {ID: "2", User: "bob", State: slurm.Running},
	}}
	out, err := do(t, opstest.NewCall(t, s), "list")
	require.NoError(t, err)
	require.Len(t, out.(jobcontrol.ListOut).Jobs, 1)
	require.NotEmpty(t, out.(jobcontrol.ListOut).View(lang.ZH).Sections)
	out, err = do(t, opstest.NewCall(t, s), "list", "--user", "all")
	require.NoError(t, err)
	require.Len(t, out.(jobcontrol.ListOut).Jobs, 2)
}

func TestNobodyElseActsAsTheServer(t *testing.T) {
	s := &opstest.Site{}
	c := opstest.NewCall(t, s)
	c.Self = "bot"
	c.Who = ops.Caller{Surface: ops.Slack, ID: "T1/U1", User: "alice"}
	_, err := do(t, c, "submit", append([]string{"--yes"}, opstest.GoodJob...)...)
	require.Equal(t, ops.NotAllowed, ops.AsError(err).Code, "a job must not run as the bot")
	require.Empty(t, s.Submitted)
	_, err = do(t, c, "list")
	require.NoError(t, err, "reading is open")

	acted := ""
	c.As = func(cl ops.Cluster, user string) (ops.Cluster, error) { acted = user; return cl, nil }
	_, err = do(t, c, "submit", append([]string{"--yes"}, opstest.GoodJob...)...)
	require.NoError(t, err)
	require.Equal(t, "alice", acted)
}

func TestSomebodysOwnProgramIsJudgedByWhatItSays(t *testing.T) {
	c := opstest.NewCall(t, &opstest.Site{})
	own := []string{"--name", "x", "--nodes", "2", "--gpu", "h100", "--time", "10", "--worktree", "/w", "--script", "train.py", "--"}
	out, err := do(t, c, "plan", append(own, "data.json", "--epochs", "3")...)
	require.NoError(t, err)
	require.True(t, out.(launch.PlanOut).OK, "%+v", out)
	for _, p := range out.(launch.PlanOut).Problems {
		require.NotEqual(t, rules.Error, p.Severity, "%+v", p)
	}
	out, err = do(t, c, "plan", append(own, "--num-attention-heads", "12", "--tensor-model-parallel-size", "8")...)
	require.NoError(t, err)
	require.False(t, out.(launch.PlanOut).OK, "12 heads on TP 8 are wrong in any program that takes these flags")
}

func TestWhatIsWrongWithASpecificationIsSaidInTheCallersLanguage(t *testing.T) {
	c := opstest.NewCall(t, &opstest.Site{})
	c.Lang = lang.ZH
	_, err := do(t, c, "render", "--worktree", "/w", "--time", "soon", "--nodes", "0")
	e := ops.AsError(err)
	require.Equal(t, "time", e.Field)
	require.Equal(t, `"soon" 格式不符`, e.Message.ZH)
	require.Contains(t, e.Fix.ZH, "请给出分钟数")
	require.Len(t, e.More, 1)
	require.Contains(t, e.More[0].Message.ZH, "超出范围")
	out, err := do(t, c, "render", "--worktree", "/w", "--gpus-per-node", "8", "--nodes", "1")
	require.NoError(t, err)
	require.Contains(t, opstest.Text(t, out, lang.ZH), "没有给出 cpus_per_task")
}
