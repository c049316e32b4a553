package ops

import (
	"cmp"
	"context"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/store"
	"github.com/megatron-ops/megatron-ops/internal/view"
	"github.com/megatron-ops/megatron-ops/knowledge/rules"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// A site is a cluster that answers from a map and counts what it is asked.
type site struct {
	jobs      map[slurm.JobID]slurm.Job
	submitted []slurm.Submission
	refuse    error
	found     slurm.JobID
	kind      string // rest where it is empty
	mu        sync.Mutex
}

func (s *site) Name() string { return "test" }
func (s *site) Kind() string { return cmp.Or(s.kind, "rest") }

// put changes a job while others look.
func (s *site) put(j slurm.Job) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.jobs[j.ID] = j
}

func (s *site) Submit(_ context.Context, sub slurm.Submission) (slurm.JobID, error) {
	if s.refuse != nil {
		return "", s.refuse
	}
	s.submitted = append(s.submitted, sub)
	return slurm.JobID("470" + string(rune('0'+len(s.submitted)))), nil
}

func (s *site) Job(_ context.Context, id slurm.JobID) (slurm.Job, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	j, ok := s.jobs[id]
	if !ok {
		return slurm.Job{}, slurm.JobNotFound(id)
	}
	return j, nil
}

func (s *site) Jobs(_ context.Context, f slurm.Filter) ([]slurm.Job, error) {
	var out []slurm.Job
	for _, j := range s.jobs {
		if f.Match(j) {
			out = append(out, j)
		}
	}
	return out, nil
}

func (s *site) Cancel(_ context.Context, id slurm.JobID) error {
	j := s.jobs[id]
	j.State = slurm.Cancelled
	s.jobs[id] = j
	return nil
}

func (s *site) Find(context.Context, string, time.Time) (slurm.JobID, bool, error) {
	return s.found, s.found != "", nil
}

func newCall(t *testing.T, s *site) *Call {
	st, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "state.db"))
	require.NoError(t, err)
	t.Cleanup(func() { st.Close() })
	return &Call{
		Service: &Service{
			Clusters: map[string]Cluster{"test": s}, Default: "test", Now: time.Now,
			Store: func() (*store.Store, error) { return st, nil },
		},
		Who: Caller{Surface: Shell, ID: "alice", User: "alice"},
	}
}

func do(t *testing.T, c *Call, name string, words ...string) (any, error) {
	t.Helper()
	op, ok := lookup(name)
	require.True(t, ok, name)
	in := op.NewIn()
	if err := op.Words(in, words); err != nil {
		return nil, err
	}
	return op.Run(t.Context(), c, in)
}

var goodJob = []string{
	"--name", "gpt", "--nodes", "2", "--gpu", "h100", "--time", "1:00:00", "--worktree", "/lustre/m", "--",
	"--num-layers", "24", "--hidden-size", "1024", "--num-attention-heads", "16", "--seq-length", "2048",
	"--max-position-embeddings", "2048", "--micro-batch-size", "2", "--global-batch-size", "64", "--train-iters", "100",
	"--lr", "1e-4", "--tensor-model-parallel-size", "4",
}

func TestEveryOperationSpeaksBothLanguagesAndShowsItself(t *testing.T) {
	for _, op := range operations() {
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

func TestPlanTellsAllProblemsAtOnce(t *testing.T) {
	c := newCall(t, &site{})
	out, err := do(t, c, "plan", append(append([]string{}, goodJob...), "--num-attention-heads", "18", "--global-batch-size", "63")...)
	require.NoError(t, err)
	p := out.(PlanOut)
	require.False(t, p.OK)
	require.True(t, p.Found())
	require.GreaterOrEqual(t, len(p.Problems), 2)
}

func TestPlanOfAGoodJob(t *testing.T) {
	out, err := do(t, newCall(t, &site{}), "plan", goodJob...)
	require.NoError(t, err)
	p := out.(PlanOut)
	require.True(t, p.OK, "%+v", p.Problems)
	require.Equal(t, 16, p.WorldSize)
	require.Equal(t, "1", p.Derived["cuda_device_max_connections"])
}

// The arguments can be judged before there is a worktree; a submit cannot.
func TestPlanWithoutAWorktreeStillJudges(t *testing.T) {
	words := slices.Concat(goodJob[:8], goodJob[10:])
	require.NotContains(t, words, "--worktree")
	out, err := do(t, newCall(t, &site{}), "plan", words...)
	require.NoError(t, err)
	p := out.(PlanOut)
	require.True(t, p.OK)
	require.True(t, slices.ContainsFunc(p.Problems, func(r rules.Problem) bool { return r.Rule == "worktree-given" && r.Severity == rules.Error }), "%+v", p.Problems)
	_, err = do(t, newCall(t, &site{}), "submit", append([]string{"--yes"}, words...)...)
	require.ErrorContains(t, err, "worktree")
}

func TestSubmitOnceForOneKey(t *testing.T) {
	s := &site{}
	c := newCall(t, s)
	words := append([]string{"--yes", "--idempotency-key", "k1"}, goodJob...)
	first, err := do(t, c, "submit", words...)
	require.NoError(t, err)
	again, err := do(t, c, "submit", words...)
	require.NoError(t, err)
	require.Equal(t, first.(SubmitOut).JobID, again.(SubmitOut).JobID)
	require.False(t, first.(SubmitOut).AlreadySubmitted)
	require.True(t, again.(SubmitOut).AlreadySubmitted)
	require.Len(t, s.submitted, 1)

	other := append([]string{"--qos", "urgent"}, words...)
	_, err = do(t, c, "submit", other...)
	require.Equal(t, BadInput, AsError(err).Code, "a key belongs to one specification")
}

func TestSubmitAfterALostAnswerFindsTheJob(t *testing.T) {
	s := &site{refuse: &slurm.Error{Op: "submit", Kind: slurm.Unknown, Msg: "timed out"}}
	c := newCall(t, s)
	words := append([]string{"--yes", "--idempotency-key", "k1"}, goodJob...)
	_, err := do(t, c, "submit", words...)
	require.Error(t, err)
	s.refuse, s.found = nil, "4799"
	out, err := do(t, c, "submit", words...)
	require.NoError(t, err)
	require.Equal(t, slurm.JobID("4799"), *out.(SubmitOut).JobID)
	require.Empty(t, s.submitted, "it was there already")
}

func TestErrorsOfThePlanStopSubmit(t *testing.T) {
	s := &site{}
	words := append([]string{"--yes"}, goodJob...)
	words = append(words, "--num-attention-heads", "18")
	out, err := do(t, newCall(t, s), "submit", words...)
	require.NoError(t, err)
	require.Nil(t, out.(SubmitOut).JobID)
	require.True(t, out.(SubmitOut).Found())
	require.Empty(t, s.submitted)
}

func TestSubmitAsksFirst(t *testing.T) {
	s := &site{}
	_, err := do(t, newCall(t, s), "submit", goodJob...)
	require.True(t, AsError(err).Confirm)
	require.Empty(t, s.submitted)
}

func TestOnlyOwnersAndOperatorsCancel(t *testing.T) {
	s := &site{jobs: map[slurm.JobID]slurm.Job{"51": {ID: "51", User: "bob", State: slurm.Running}}}
	c := newCall(t, s)
	_, err := do(t, c, "cancel", "51", "--yes")
	require.Equal(t, NotAllowed, AsError(err).Code)
	require.Equal(t, slurm.Running, s.jobs["51"].State)

	c.Who.Operator = true
	out, err := do(t, c, "cancel", "51", "--yes")
	require.NoError(t, err)
	require.True(t, out.(CancelOut).Cancelled)
}

func TestWritesNeedALinkedCaller(t *testing.T) {
	c := newCall(t, &site{})
	c.Who = Caller{Surface: Slack, ID: "T1/U1"}
	_, err := do(t, c, "submit", goodJob...)
	require.Equal(t, NotAllowed, AsError(err).Code)
	_, err = do(t, c, "plan", goodJob...)
	require.NoError(t, err, "reading is open")
}

func TestEveryWriteIsAudited(t *testing.T) {
	c := newCall(t, &site{jobs: map[slurm.JobID]slurm.Job{"51": {ID: "51", User: "bob", State: slurm.Running}}})
	var entries []AuditEntry
	c.Audit = func(_ context.Context, e AuditEntry) { entries = append(entries, e) }
	_, _ = do(t, c, "submit", append([]string{"--yes"}, goodJob...)...)
	_, _ = do(t, c, "cancel", "51", "--yes")
	_, _ = do(t, c, "status", "51")
	require.Len(t, entries, 2, "reads are not writes")
	require.Error(t, entries[1].Err, "a refusal is written down too")
}

func TestBadWordsNameTheField(t *testing.T) {
	c := newCall(t, &site{})
	for _, tt := range []struct {
		op, field, says string
		words           []string
	}{
		{"submit", "--nodez", "no flag --nodez", []string{"--nodez", "2"}},
		{"submit", "nodes", `"x" is not a number`, []string{"--nodes", "x"}},
		{"submit", "nodes", "-3", []string{"--nodes=-3", "--worktree", "/w"}},
		{"submit", "name", "", []string{"--name", "a\nb", "--worktree", "/w"}},
		{"plan", "file", "no such file", []string{"-f", "/nosuch/job.yaml"}},
		{"status", "job", "needs a", nil},
		{"status", "job", `"abc" is not a job id`, []string{"abc"}},
	} {
		_, err := do(t, c, tt.op, tt.words...)
		e := AsError(err)
		require.NotNil(t, e, tt.words)
		require.Equal(t, BadInput, e.Code, "%v: %v", tt.words, e)
		require.Equal(t, tt.field, e.Field, "%v: %v", tt.words, e)
		require.Contains(t, e.Message, tt.says)
		require.NotEmpty(t, e.Fix, tt.words)
	}
}

func TestUnknownJobIsNotFound(t *testing.T) {
	_, err := do(t, newCall(t, &site{}), "status", "9999")
	require.Equal(t, NotFound, AsError(err).Code)
}

func TestFlagsWinOverTheFile(t *testing.T) {
	c := newCall(t, &site{})
	s, err := c.spec(SpecIn{YAML: "name: a\nnodes: 2\nworktree: /w\nargs: [--lr, '1']\nenv: {A: '1'}\n"})
	require.NoError(t, err)
	require.Equal(t, 2, *s.Nodes)
	in := SpecIn{YAML: "name: a\nnodes: 2\nworktree: /w\nargs: [--lr, '1']\nenv: {A: '1'}\n"}
	four := 4
	in.Spec.Nodes, in.Spec.Env = &four, map[string]string{"B": "2"}
	in.AfterDashes([]string{"--lr", "2"})
	s, err = c.spec(in)
	require.NoError(t, err)
	require.Equal(t, 4, *s.Nodes)
	require.Equal(t, []string{"--lr", "1", "--lr", "2"}, s.Args)
	require.Equal(t, map[string]string{"A": "1", "B": "2"}, s.Env)
}

func TestArgumentsAsOneQuotedLine(t *testing.T) {
	c := newCall(t, &site{})
	s, err := c.spec(SpecIn{YAML: "worktree: /w\nargs: [--lr, '1']\n", Line: `--data-path '/data/my set' --bf16`})
	require.NoError(t, err)
	require.Equal(t, []string{"--lr", "1", "--data-path", "/data/my set", "--bf16"}, s.Args)
	for _, words := range [][]string{{"--command-line", "--num-layers 2 --bf16"}, {"--command-line=--num-layers 2 --bf16"}} {
		out, err := do(t, c, "render", append([]string{"--worktree", "/w"}, words...)...)
		require.NoError(t, err)
		require.Contains(t, out.(RenderOut).Script, "--num-layers")
	}
	_, err = c.spec(SpecIn{YAML: "worktree: /w\n", Line: "--save $HOME/x"})
	require.Equal(t, "command_line", AsError(err).Field, "what a shell would expand is not known here")
}

func TestAFlagOfMegatronsIsToldWhereItBelongs(t *testing.T) {
	c := newCall(t, &site{})
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
		e := AsError(err)
		require.Equal(t, BadInput, e.Code, tt.words)
		require.Contains(t, e.Fix, tt.fix, tt.words)
		if tt.op == "constants" {
			require.NotContains(t, e.Fix, "after --", "it takes no arguments of Megatron's")
		}
	}
}

func TestListShowsMine(t *testing.T) {
	s := &site{jobs: map[slurm.JobID]slurm.Job{
		"1": {ID: "1", User: "alice", State: slurm.Running}, "2": {ID: "2", User: "bob", State: slurm.Running},
	}}
	out, err := do(t, newCall(t, s), "list")
	require.NoError(t, err)
	require.Len(t, out.(ListOut).Jobs, 1)
	require.NotEmpty(t, out.(ListOut).View(lang.ZH).Sections)
	out, err = do(t, newCall(t, s), "list", "--user", "all")
	require.NoError(t, err)
	require.Len(t, out.(ListOut).Jobs, 2)
}

func TestNobodyElseActsAsTheServer(t *testing.T) {
	s := &site{}
	c := newCall(t, s)
	c.Self = "bot"
	c.Who = Caller{Surface: Slack, ID: "T1/U1", User: "alice"}
	_, err := do(t, c, "submit", append([]string{"--yes"}, goodJob...)...)
	require.Equal(t, NotAllowed, AsError(err).Code, "a job must not run as the bot")
	require.Empty(t, s.submitted)
	_, err = do(t, c, "list")
	require.NoError(t, err, "reading is open")

	acted := ""
	c.As = func(cl Cluster, user string) (Cluster, error) { acted = user; return cl, nil }
	_, err = do(t, c, "submit", append([]string{"--yes"}, goodJob...)...)
	require.NoError(t, err)
	require.Equal(t, "alice", acted)
}

func TestSomebodysOwnProgramIsJudgedByWhatItSays(t *testing.T) {
	c := newCall(t, &site{})
	own := []string{"--name", "x", "--nodes", "2", "--gpu", "h100", "--time", "10", "--worktree", "/w", "--script", "train.py", "--"}
	out, err := do(t, c, "plan", append(own, "data.json", "--epochs", "3")...)
	require.NoError(t, err)
	require.True(t, out.(PlanOut).OK, "%+v", out)
	for _, p := range out.(PlanOut).Problems {
		require.NotEqual(t, rules.Error, p.Severity, "%+v", p)
	}
	out, err = do(t, c, "plan", append(own, "--num-attention-heads", "12", "--tensor-model-parallel-size", "8")...)
	require.NoError(t, err)
	require.False(t, out.(PlanOut).OK, "12 heads on TP 8 are wrong in any program that takes these flags")
}

func TestWhatIsWrongWithASpecificationIsSaidInTheCallersLanguage(t *testing.T) {
	c := newCall(t, &site{})
	c.Lang = lang.ZH
	_, err := do(t, c, "render", "--worktree", "/w", "--time", "soon", "--nodes", "0")
	e := AsError(err)
	require.Equal(t, "time", e.Field)
	require.Equal(t, `"soon" 格式不符`, e.Message)
	require.Contains(t, e.Fix, "请给出分钟数")
	require.Len(t, e.More, 1)
	require.Contains(t, e.More[0].Message, "超出范围")
	out, err := do(t, c, "render", "--worktree", "/w", "--gpus-per-node", "8", "--nodes", "1")
	require.NoError(t, err)
	require.Contains(t, text(t, out, lang.ZH), "没有给出 cpus_per_task")
}
