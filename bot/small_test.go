package bot

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slack-go/slack"
	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/bot/answer"
	"github.com/megatron-ops/megatron-ops/bot/card"
	"github.com/megatron-ops/megatron-ops/bot/incoming"
	"github.com/megatron-ops/megatron-ops/bot/typed"
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/jobcontrol"
	"github.com/megatron-ops/megatron-ops/internal/ops/launch"
	"github.com/megatron-ops/megatron-ops/internal/ops/operations"
	"github.com/megatron-ops/megatron-ops/internal/store"
	"github.com/megatron-ops/megatron-ops/internal/view"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// An answer can be shown to others where others read, and it is not shown yet.
func TestWhereAnAnswerCanBeShared(t *testing.T) {
	label := func(change func(*incoming.Ask, *typed.Call)) string {
		a, c := incoming.Ask{Kind: incoming.AsCommand, Channel: "C1", Text: "list"}, typed.Call{}
		change(&a, &c)
		rows := shareRow(a, c, lang.EN)
		if len(rows) == 0 {
			return ""
		}
		for _, label := range []string{"Share here", "Share in thread"} {
			if strings.Contains(string(answer.BlocksJSON(rows)), label) {
				return label
			}
		}
		return "?"
	}
	for name, c := range map[string]struct {
		want   string
		change func(*incoming.Ask, *typed.Call)
	}{
		"in a channel":           {"Share here", func(*incoming.Ask, *typed.Call) {}},
		"in a thread":            {"Share in thread", func(a *incoming.Ask, _ *typed.Call) { a.Thread = "1.1" }},
		"a mention":              {"Share in thread", func(a *incoming.Ask, _ *typed.Call) { a.Kind = incoming.AsMessage }},
		"as long as a value":     {"Share here", func(a *incoming.Ask, _ *typed.Call) { a.Text = strings.Repeat("x", answer.MaxValue) }},
		"longer than a value":    {"", func(a *incoming.Ask, _ *typed.Call) { a.Text = strings.Repeat("x", answer.MaxValue+1) }},
		"shared":                 {"", func(_ *incoming.Ask, c *typed.Call) { c.Share = true }},
		"JSON":                   {"", func(_ *incoming.Ask, c *typed.Call) { c.JSON = true }},
		"a direct message":       {"", func(a *incoming.Ask, _ *typed.Call) { a.Direct = true }},
		"open to others":         {"", func(a *incoming.Ask, _ *typed.Call) { a.Open = true }},
		"from another workspace": {"", func(a *incoming.Ask, _ *typed.Call) { a.Foreign = true }},
		"a terminal":             {"", func(a *incoming.Ask, _ *typed.Call) { a.Terminal = &incoming.Terminal{} }},
		"no channel":             {"", func(a *incoming.Ask, _ *typed.Call) { a.Channel = "" }},
		"a button":               {"", func(a *incoming.Ask, _ *typed.Call) { a.Text = "" }},
	} {
		require.Equal(t, c.want, label(c.change), name)
	}
}

// A file is fetched, with the bot's token, from where Slack keeps files and nowhere else.
func TestFilesComeFromSlackAlone(t *testing.T) {
	stand, err := url.Parse("http://127.0.0.1:8080/api/")
	require.NoError(t, err)
	for _, c := range []struct {
		address string
		api     *url.URL
		want    bool
	}{
		{"https://files.slack.com/files-pri/T1-F1/a.log", nil, true},
		{"https://files.slack-gov.com/files-pri/T1-F1/a.log", nil, true},
		{"http://files.slack.com/files-pri/T1-F1/a.log", nil, false},
		{"https://files.slack.com.evil.example/a.log", nil, false},
		{"https://me@files.slack.com/a.log", nil, false},
		{"https://evil.example/a.log", nil, false},
		{"http://127.0.0.1:8080/a.log", nil, false},
		{"http://127.0.0.1:8080/a.log", stand, true},
		{"https://127.0.0.1:8080/a.log", stand, false},
		{"http://127.0.0.1:8081/a.log", stand, false},
	} {
		u, err := url.Parse(c.address)
		require.NoError(t, err)
		require.Equal(t, c.want, (&Bot{api: c.api}).fileHost(u), c.address)
	}
}

// A policy of channels holds for what changes something there; people of other
// workspaces may only ask.
func TestWhatAPlaceAllows(t *testing.T) {
	op := func(name string) ops.Op {
		o, ok := operations.Lookup(name)
		require.True(t, ok, name)
		return o
	}
	for name, c := range map[string]struct {
		open []string
		a    incoming.Ask
		op   string
		want bool
	}{
		"everywhere":               {nil, incoming.Ask{Channel: "C2"}, "cancel", true},
		"its channel":              {[]string{"C1"}, incoming.Ask{Channel: "C1"}, "cancel", true},
		"another channel":          {[]string{"C1"}, incoming.Ask{Channel: "C2"}, "cancel", false},
		"reading there":            {[]string{"C1"}, incoming.Ask{Channel: "C2"}, "list", true},
		"directly":                 {[]string{"C1"}, incoming.Ask{Channel: "D1", Direct: true}, "cancel", true},
		"a page":                   {[]string{"C1"}, incoming.Ask{}, "cancel", true},
		"a question of a stranger": {nil, incoming.Ask{Foreign: true}, "ask", true},
		"a stranger":               {nil, incoming.Ask{Foreign: true}, "list", false},
	} {
		b := &Bot{cfg: Config{Policy: Policy{Channels: c.open}}}
		require.Equal(t, c.want, b.mayHere(c.a, op(c.op)) == nil, name)
	}
}

// partly is a result that was found out before something failed.
type partly struct{ Found string }

func (p partly) View(lang.Lang) view.Doc {
	return view.Doc{Sections: []view.Section{{Text: p.Found}}, Next: []string{"logs 1"}}
}

// What was found out before a failure stands below it; a refusal has found nothing.
func TestAFailureShowsWhatWasFound(t *testing.T) {
	for _, c := range []struct {
		code   ops.Code
		result any
		want   bool
	}{
		{ops.Failed, partly{"three of four"}, true},
		{ops.NotAllowed, partly{"three of four"}, false},
		{ops.Failed, partly{}, false},
		{ops.Failed, nil, false},
	} {
		d := (&Bot{}).failed(&ops.Error{Code: c.code, Message: lang.Same("the node is gone")}, c.result, &ops.Call{})
		shown := view.Markdown(d)
		require.Contains(t, shown, "the node is gone")
		require.Equal(t, c.want, strings.Contains(shown, "three of four"))
		require.Equal(t, c.want, len(d.Next) == 1)
	}
}

// finder is a cluster that looks for a job by its token.
type finder struct {
	ops.Cluster
	found bool
	err   error
}

func (f finder) Find(context.Context, string, time.Time) (slurm.JobID, bool, error) {
	return "1", f.found, f.err
}

// A submission is offered again only where its cluster answers, for its owner, that it
// has no such job.
func TestWhenASubmissionIsSurelyAbsent(t *testing.T) {
	away := errors.New("the cluster does not answer")
	for name, c := range map[string]struct {
		here  finder
		owner string
		as    func(ops.Cluster, string) (ops.Cluster, error)
		want  bool
	}{
		"it is there":      {here: finder{found: true}, owner: "me"},
		"it is not":        {here: finder{}, owner: "me", want: true},
		"nobody knows":     {here: finder{err: away}, owner: "me"},
		"as the owner":     {here: finder{}, owner: "ada", as: func(ops.Cluster, string) (ops.Cluster, error) { return finder{found: true}, nil }},
		"not as the owner": {here: finder{}, owner: "ada", as: func(ops.Cluster, string) (ops.Cluster, error) { return nil, away }},
		"as oneself":       {here: finder{}, owner: "me", as: func(ops.Cluster, string) (ops.Cluster, error) { return nil, away }, want: true},
		"as nobody else":   {here: finder{}, owner: "ada", want: true},
	} {
		b := &Bot{cfg: Config{Service: &ops.Service{Self: "me", As: c.as, Clusters: map[string]ops.Cluster{"yard": c.here}}}}
		require.Equal(t, c.want, b.surelyAbsent(t.Context(), store.Submission{Cluster: "yard", Owner: c.owner}), name)
		require.False(t, b.surelyAbsent(t.Context(), store.Submission{Cluster: "gone", Owner: c.owner}), name)
	}
}

// What begins with a command's word is the command where the rest fits it, has flags or
// is one word, and a question otherwise.
func TestWhatReadsAsACommand(t *testing.T) {
	for line, want := range map[string]bool{
		"status 4711": true, "status 4711 4712 4713": false, "status 4711 4712 --nodez": true, "list the constants for H100": false, "list": true,
		"list everything": true, "memory of my model": false, "settings lang zh": true, "settings are where in here": false, "help me please now": false,
	} {
		words := strings.Fields(line)
		require.Equal(t, want, readsAsCommand(words[0], words[1:], typed.Text{}), line)
	}
}

// A job's specification is for its owner and for operators who are users of the cluster.
func TestWhoMayBeginWithAJobsSpecification(t *testing.T) {
	st, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "state.db"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, st.Close()) })
	sub := store.Submission{Key: "k", Token: "t", Cluster: "yard", Owner: "ada", Name: "gpt", Spec: json.RawMessage(`{"nodes":2}`), CreatedAt: noon}
	_, _, err = st.Begin(t.Context(), sub)
	require.NoError(t, err)
	require.NoError(t, st.Finish(t.Context(), sub.Key, store.Submitted, "4711", "", noon))
	for _, c := range []struct {
		who  ops.Caller
		job  slurm.JobID
		want ops.Code
	}{
		{ops.Caller{User: "ada"}, "4711", ""},
		{ops.Caller{User: "olga", Operator: true}, "4711", ""},
		{ops.Caller{User: "grace"}, "4711", ops.NotAllowed},
		{ops.Caller{Operator: true}, "4711", ops.NotAllowed},
		{ops.Caller{User: "ada"}, "4712", ops.NotFound},
	} {
		call := &ops.Call{Service: &ops.Service{Store: func() (*store.Store, error) { return st, nil }}, Who: c.who}
		spec, refused := (&Bot{}).specOfJob(t.Context(), call, "yard", c.job)
		if c.want != "" {
			require.Equal(t, c.want, refused.Code, c.who)
			continue
		}
		require.Nil(t, refused, c.who)
		require.EqualValues(t, 2, spec["nodes"])
	}
}

// reserved is a cluster with reservations.
type reserved struct {
	ops.Cluster
	all []slurm.Reservation
	err error
}

func (r reserved) Reservations(context.Context) ([]slurm.Reservation, error) { return r.all, r.err }

// The form offers the reservations that a person may use and that have not ended.
func TestTheReservationsThatAFormOffers(t *testing.T) {
	over, ahead := noon.Add(-time.Hour), noon.Add(time.Hour)
	yard := reserved{all: []slurm.Reservation{
		{Name: "mine", Users: []string{"ada"}, End: &ahead},
		{Name: "over", Users: []string{"ada"}, End: &over},
		{Name: "endless", Users: []string{"ada"}},
		{Name: "theirs", Users: []string{"grace"}, End: &ahead},
		{Name: "my-account", Accounts: []string{"llm"}},
		{Name: "another-account", Accounts: []string{"vision"}},
		{Name: "a-group", Groups: []string{"nobody-is-in-this-group"}},
	}}
	b := &Bot{now: func() time.Time { return noon }, log: slog.New(slog.DiscardHandler)}
	offered := func(cl ops.Cluster, user string) []string {
		c := &ops.Call{Service: &ops.Service{Clusters: map[string]ops.Cluster{"yard": cl}}, Who: ops.Caller{User: user}}
		return b.reservations(t.Context(), c, "yard", []string{"llm"})
	}
	require.Equal(t, []string{"mine", "endless", "my-account"}, offered(yard, "ada"))
	require.Empty(t, offered(yard, ""), "nobody of the cluster")
	require.Empty(t, offered(finder{}, "ada"), "a cluster that has none")
	require.Empty(t, offered(reserved{err: errors.New("it is away")}, "ada"))
}

// What a job's menu offers fits its state.
func TestAJobsMenuFitsItsState(t *testing.T) {
	for state, want := range map[slurm.State][]string{
		slurm.Pending:   {"status", "priority", "cancel"},
		slurm.Running:   {"status", "logs", "diagnose", "metrics", "cancel"},
		slurm.Completed: {"status", "logs", "metrics"},
		slurm.Failed:    {"status", "logs", "diagnose", "metrics"},
	} {
		drawn := string(answer.BlocksJSON([]slack.Block{jobRow(card.News{Job: slurm.Job{ID: "7", Name: "gpt", Cluster: "yard", State: state}}, 0, lang.EN)}))
		for _, verb := range []string{"status", "priority", "logs", "diagnose", "metrics", "cancel"} {
			require.Equal(t, slices.Contains(want, verb), strings.Contains(drawn, `"`+answer.ActRun+" "+verb+" 7"), "%s: %s", state, verb)
		}
		require.Equal(t, len(want), strings.Count(drawn, "--cluster yard"), state)
	}
}

// The state that most jobs are in comes first, and the fifth is left out.
func TestStatesAreCounted(t *testing.T) {
	var jobs []slurm.Job
	for i, state := range []slurm.State{slurm.Failed, slurm.Timeout, slurm.Running, slurm.Pending, slurm.Completed} {
		for range i + 1 {
			jobs = append(jobs, slurm.Job{State: state})
		}
	}
	require.Equal(t, "5 completed · 4 waiting · 3 running · 2 time limit reached", stateCounts(jobs, lang.EN))
}

// Which operations are about one job, and whether they need it named.
func TestWhichOperationsAreAboutAJob(t *testing.T) {
	for name, want := range map[string]string{"status": "job", "logs": "job", "diagnose": "job-or-path", "list": "", "compare": "", "nodes": ""} {
		op, ok := operations.Lookup(name)
		require.True(t, ok, name)
		arg, _ := jobArgument(op)
		require.Equal(t, want, arg, name)
	}
}

// What one can do while a job waits stands beside its card, and only then.
func TestWhatToDoStandsBesideAJobThatWaits(t *testing.T) {
	for state, want := range map[slurm.State]bool{slurm.Pending: true, slurm.Running: false} {
		doc := besideCard(jobcontrol.StatusOut{Job: slurm.Job{ID: "7", State: state}, Do: "ask for a shorter time"}, lang.EN)
		require.Equal(t, want, doc.Sections[0].Text == "Ask for a shorter time", state)
		last := doc.Sections[len(doc.Sections)-1]
		require.True(t, last.Fold && len(last.Facts) > 0, "the rest is folded")
	}
}

// The newest job is the one that was submitted last, and where no time tells the one
// of the greatest number.
func TestTheNewestJobComesFirst(t *testing.T) {
	noon, later := time.Unix(0, 0), time.Unix(60, 0)
	for _, c := range []struct{ first, second slurm.Job }{
		{slurm.Job{ID: "7", SubmittedAt: &later}, slurm.Job{ID: "8", SubmittedAt: &noon}},
		{slurm.Job{ID: "8", SubmittedAt: &noon}, slurm.Job{ID: "7", SubmittedAt: &noon}},
		{slurm.Job{ID: "8", SubmittedAt: &noon}, slurm.Job{ID: "7"}},
		{slurm.Job{ID: "10"}, slurm.Job{ID: "9", SubmittedAt: &later}},
		{slurm.Job{ID: "9_2"}, slurm.Job{ID: "9_1"}},
	} {
		require.Negative(t, newestFirst(c.first, c.second))
		require.Positive(t, newestFirst(c.second, c.first))
	}
}

// The estimate of memory names what a GPU has where its kind is known, and is left out
// where there is none.
func TestMemoryInWords(t *testing.T) {
	const args = "args: [--num-layers, '8', --hidden-size, '1024', --num-attention-heads, '8', --seq-length, '2048', --max-position-embeddings, '2048', " +
		"--micro-batch-size, '1', --global-batch-size, '64', --train-iters, '10', --lr, '1e-4', --bf16]\n"
	c := &ops.Call{Service: &ops.Service{Now: time.Now}}
	for spec, want := range map[string]string{
		"nodes: 1\ngpus_per_node: 8\ngpu: h100\n" + args: `^about \d+ of 79 GiB a GPU \(\d+ to \d+\)$`,
		"nodes: 1\ngpus_per_node: 8\n" + args:            `^about \d+ GiB a GPU \(\d+ to \d+\)$`,
		"nodes: 1\ngpus_per_node: 8\n":                   `^$`,
	} {
		require.Regexp(t, want, memoryWords(t.Context(), c, launch.SubmitIn{SpecIn: launch.SpecIn{YAML: spec}}), spec)
	}
}
