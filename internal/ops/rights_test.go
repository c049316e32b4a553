package ops

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// A site is a cluster that knows some jobs. The tests ask nothing else of it.
type site struct {
	Cluster
	knownJobs map[slurm.JobID]slurm.Job
}

func (*site) Name() string { return "test" }

func (*site) Kind() string { return "rest" }

func (s *site) Job(_ context.Context, id slurm.JobID) (slurm.Job, error) {
	if j, ok := s.knownJobs[id]; ok {
		return j, nil
	}
	return slurm.Job{}, slurm.JobNotFound(id)
}

func (s *site) Jobs(context.Context, slurm.Filter) ([]slurm.Job, error) {
	return slices.Collect(maps.Values(s.knownJobs)), nil
}

// actingSite is a site that acts as another person.
type actingSite struct {
	*site
	user string
}

func (a actingSite) Name() string { return "test as " + a.user }

func TestWhoseHandsChangeSomethingOnTheCluster(t *testing.T) {
	t.Parallel()
	here := &site{}
	for name, c := range map[string]struct {
		who    Caller
		self   string
		effect Effect
		asNone bool
		want   string // the cluster's name, or the refusal
	}{
		"the shell is its person":                 {who: Caller{Surface: Shell, User: "ada"}, self: "bot", effect: Write, want: "test"},
		"the chat is its person":                  {who: Caller{Surface: Chat, User: "ada"}, self: "bot", effect: Write, want: "test"},
		"so is an agent on this machine":          {who: Caller{Surface: MCP, User: "ada"}, self: "bot", effect: Write, want: "test"},
		"somebody in Slack is not the bot":        {who: Caller{Surface: Slack, User: "ada"}, self: "bot", effect: Write, want: "test as ada"},
		"nor is a bearer":                         {who: Caller{Surface: MCPHTTP, User: "ada"}, self: "bot", effect: Write, want: "test as ada"},
		"nor is a browser":                        {who: Caller{Surface: Web, User: "ada"}, self: "bot", effect: Destructive, want: "test as ada"},
		"nor does the watcher act as the bot":     {who: Caller{Surface: Watcher, User: "ada"}, self: "bot", effect: Write, want: "test as ada"},
		"reading is everybody's":                  {who: Caller{Surface: Slack, User: "ada"}, self: "bot", effect: Read, want: "test"},
		"outside of an operation it is read":      {who: Caller{Surface: Slack, User: "ada"}, self: "bot", want: "test"},
		"who runs the bot is themselves":          {who: Caller{Surface: Slack, User: "ada"}, self: "ada", effect: Write, want: "test"},
		"who is nobody acts as nobody":            {who: Caller{Surface: Slack}, self: "bot", effect: Write, want: "test"},
		"a bot that cannot act as others says so": {who: Caller{Surface: Slack, User: "ada"}, self: "bot", effect: Write, asNone: true, want: "runs as bot on test and cannot act as ada"},
		"a user that the cluster refuses":         {who: Caller{Surface: Slack, User: "eve"}, self: "bot", effect: Write, want: "no such user"},
	} {
		s := &Service{Clusters: map[string]Cluster{"test": here}, Default: "test", Self: c.self}
		if !c.asNone {
			s.As = actAs
		}
		call, err := (&Call{Service: s, Who: c.who}).For(Op{Name: "x", Effect: Read})
		require.NoError(t, err)
		call.effect = c.effect
		cl, err := call.Cluster("")
		if strings.HasPrefix(c.want, "test") {
			require.NoError(t, err, name)
			require.Equal(t, c.want, cl.Name(), name)
			continue
		}
		require.ErrorContains(t, err, c.want, name)
		require.Equal(t, NotAllowed, AsError(err).Code, name)
		require.Equal(t, "cluster", AsError(err).Field, name)
	}
}

// A caller without a cluster user is told what they can do about it where they are.
func TestHowToGetAClusterUser(t *testing.T) {
	for surface, fix := range map[Surface]string{Slack: "/megatron link", MCPHTTP: "mcp.tokens"} {
		_, err := (&Call{Service: &Service{}, Who: Caller{Surface: surface}}).For(Op{Name: "cancel", Effect: Destructive})
		require.Equal(t, NotAllowed, AsError(err).Code)
		require.Contains(t, AsError(err).Fix.EN, fix)
	}
}

func actAs(cl Cluster, user string) (Cluster, error) {
	if user == "eve" {
		return nil, errors.New("no such user")
	}
	return actingSite{cl.(*site), user}, nil
}

func TestWhoMayChangeAJobAndAsWhom(t *testing.T) {
	t.Parallel()
	here := &site{}
	for name, c := range map[string]struct {
		who   Caller
		owner string
		want  string
	}{
		"one's own":                         {Caller{Surface: Slack, User: "ada"}, "ada", "test"},
		"a job of nobody known":             {Caller{Surface: Slack, User: "ada"}, "", "test"},
		"another's":                         {Caller{Surface: Slack, User: "ada"}, "bob", "job 7 belongs to bob, and you act as ada"},
		"another's, in the shell":           {Caller{Surface: Shell, User: "ada"}, "bob", "job 7 belongs to bob, and you act as ada"},
		"an operator's own":                 {Caller{Surface: Slack, User: "ada", Operator: true}, "ada", "test"},
		"an operator, through a server":     {Caller{Surface: Slack, User: "ada", Operator: true}, "bob", "test as bob"},
		"an operator, of a job of nobody":   {Caller{Surface: Slack, User: "ada", Operator: true}, "", "test"},
		"an operator, in the shell":         {Caller{Surface: Shell, User: "ada", Operator: true}, "bob", "test"},
		"an operator who runs the server":   {Caller{Surface: Slack, User: "bot", Operator: true}, "bob", "test"},
		"an operator, of the bot's job":     {Caller{Surface: Web, User: "ada", Operator: true}, "bot", "test"},
		"an operator, of one who is gone":   {Caller{Surface: Web, User: "ada", Operator: true}, "eve", "no such user"},
		"an operator who is nobody himself": {Caller{Surface: Slack, Operator: true}, "bob", "test as bob"},
	} {
		call := &Call{Service: &Service{Clusters: map[string]Cluster{"test": here}, Self: "bot", As: actAs}, Who: c.who}
		cl, err := call.Changing(here, slurm.Job{ID: "7", User: c.owner})
		if strings.HasPrefix(c.want, "test") {
			require.NoError(t, err, name)
			require.Equal(t, c.want, cl.Name(), name)
			continue
		}
		require.ErrorContains(t, err, c.want, name)
		require.Equal(t, NotAllowed, AsError(err).Code, name)
	}
	call := &Call{Service: &Service{Clusters: map[string]Cluster{"test": here}, Self: "bot"}}
	_, err := call.AsOwner(here, "bob")
	require.ErrorContains(t, err, "cannot act as bob")
	cl, err := call.AsOwner(here, "bot")
	require.NoError(t, err)
	require.Same(t, here, cl)
	call.Self = ""
	_, err = call.AsOwner(here, "")
	require.Error(t, err, "nobody is not the one who runs it")
}

func TestWhoseHandsTheyAre(t *testing.T) {
	t.Parallel()
	for who, own := range map[Caller]bool{
		{Surface: Shell}: true, {Surface: Chat, User: "ada"}: true, {Surface: MCP, User: "ada"}: true,
		{Surface: Slack, User: "bot"}: true, {Surface: Slack, User: "ada"}: false, {Surface: Web}: false, {Surface: MCPHTTP, User: "ada"}: false,
	} {
		require.Equal(t, own, (&Call{Service: &Service{Self: "bot"}, Who: who}).OwnHands(), "%+v", who)
	}
	require.False(t, (&Call{Service: &Service{}, Who: Caller{Surface: Slack}}).OwnHands(), "nobody is not the one who runs it")
}

func TestWhatCanBeALogin(t *testing.T) {
	t.Parallel()
	for word, want := range map[string]bool{
		"ada": true, "Ada": true, "a": true, "z9": true, "0": true, "A.B-c_d": true, "machine$": true, "_svc": true, "AZ": true,
		strings.Repeat("a", 64): true, strings.Repeat("a", 65): false,
		"": false, "-u": false, "a b": false, "a,b": false, "a*": false, "a@b": false, "a/b": false, "a:b": false, "a[1]": false, "a`": false, "a{": false, "é": false, "a\n": false,
	} {
		require.Equal(t, want, IsLogin(word), "%q", word)
	}
}

func TestWhoMayRunAnOperationAndWhatTheAuditKeeps(t *testing.T) {
	t.Parallel()
	type in struct{ N int }
	noon := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	failed := errors.New("failed")
	for name, c := range map[string]struct {
		effect    Effect
		who       Caller
		confirmed bool
		by        string
		fails     bool
		refusal   string
		agreed    string
		audited   bool
	}{
		"reading":                       {effect: Read, who: Caller{}},
		"reading with read rights":      {effect: Read, who: Caller{ReadOnly: true}},
		"writing with read rights":      {effect: Write, who: Caller{User: "ada", ReadOnly: true}, refusal: "may only read", audited: true},
		"writing as nobody":             {effect: Write, who: Caller{}, refusal: "not linked to a cluster user", audited: true},
		"ending as nobody":              {effect: Destructive, who: Caller{}, refusal: "not linked to a cluster user", audited: true},
		"writing unasked":               {effect: Write, who: Caller{User: "ada"}, audited: true},
		"writing with a yes":            {effect: Write, who: Caller{User: "ada"}, confirmed: true, agreed: "self", audited: true},
		"writing with another's yes":    {effect: Write, who: Caller{User: "ada"}, confirmed: true, by: "grace", agreed: "grace", audited: true},
		"another's yes is yes enough":   {effect: Write, who: Caller{User: "ada"}, by: "grace", agreed: "grace", audited: true},
		"a failure is written down too": {effect: Destructive, who: Caller{User: "ada"}, fails: true, refusal: "failed", audited: true},
	} {
		var entries []AuditEntry
		seen := &countingView{}
		s := &Service{
			Now: func() time.Time { return noon }, Views: map[string]View{"test": seen},
			Audit: func(_ context.Context, e AuditEntry) { entries = append(entries, e) },
		}
		ran := false
		op := Define(Op{Name: "poke", Effect: c.effect}, func(context.Context, *Call, in) (int, error) {
			ran = true
			if c.fails {
				return 0, failed
			}
			return 5, nil
		})
		call := &Call{Service: s, Who: c.who, Confirmed: c.confirmed, AgreedBy: c.by}
		out, err := op.Run(t.Context(), call, &in{N: 2})
		if c.refusal != "" {
			require.ErrorContains(t, err, c.refusal, name)
		} else {
			require.NoError(t, err, name)
			require.Equal(t, 5, out, name)
		}
		require.Equal(t, c.refusal == "" || c.fails, ran, name)
		require.Equal(t, ran && c.effect != Read, seen.changed == 1, "%s: what readers see is asked anew after a change", name)
		require.Equal(t, c.audited, len(entries) == 1, name)
		if c.audited {
			require.Equal(t, c.agreed, entries[0].Agreed, name)
			require.Equal(t, "poke", entries[0].Op, name)
			require.Equal(t, c.who, entries[0].Who, name)
			require.Equal(t, noon, entries[0].At, name)
			require.Equal(t, err, entries[0].Err, name)
		}
		_, err = op.Run(t.Context(), call, in{})
		require.ErrorContains(t, err, "poke takes", "%s: not a pointer", name)
		_, err = op.Run(t.Context(), call, &struct{}{})
		require.ErrorContains(t, err, "poke takes", "%s: another's input", name)
	}
}

// countingView is a view that counts the changes that it was told of.
type countingView struct {
	changed, asked int
	jobs           []slurm.Job
	err            error
	at             time.Time
}

func (v *countingView) Job(_ context.Context, id slurm.JobID) (slurm.Job, error) {
	v.asked++
	return slurm.Job{ID: id, Name: "seen"}, v.err
}

func (v *countingView) Jobs(context.Context, slurm.Filter) ([]slurm.Job, error) {
	v.asked++
	return v.jobs, v.err
}

func (v *countingView) Recall(jobs []slurm.Job, at time.Time) { v.jobs, v.at = jobs, at }

func (v *countingView) Known(slurm.Filter) ([]slurm.Job, time.Time) {
	return []slurm.Job{{ID: "1", Name: "known"}}, v.at
}

func (v *countingView) Changed() { v.changed++ }

func TestReadersAreAnsweredTogetherAndWritersAlone(t *testing.T) {
	t.Parallel()
	gone := &slurm.Error{Kind: slurm.Unreachable}
	for name, c := range map[string]struct {
		effect Effect
		view   *countingView
		one    string // the name of the job that Look returns
		all    int
		fails  bool
	}{
		"a reader":                         {Read, &countingView{jobs: make([]slurm.Job, 3)}, "seen", 3, false},
		"a writer asks the cluster":        {Write, &countingView{jobs: make([]slurm.Job, 3)}, "asked", 1, false},
		"no view":                          {Read, nil, "asked", 1, false},
		"a cluster that is away":           {Read, &countingView{err: gone, at: time.Now()}, "", 1, false},
		"away, and never seen":             {Read, &countingView{err: gone}, "", 0, true},
		"only the accounts are away":       {Read, &countingView{err: &slurm.AccountsError{Err: gone}, at: time.Now(), jobs: make([]slurm.Job, 2)}, "known", 2, true},
		"an error of another kind is told": {Read, &countingView{err: errors.New("x"), at: time.Now()}, "", 0, true},
	} {
		here := &site{knownJobs: map[slurm.JobID]slurm.Job{"1": {ID: "1", Name: "asked"}}}
		s := &Service{Clusters: map[string]Cluster{"test": here}, Default: "test", Now: time.Now}
		if c.view != nil {
			s.Views = map[string]View{"test": c.view}
		}
		call := &Call{Service: s, Who: Caller{Surface: Shell, User: "ada"}, effect: c.effect}
		j, err := call.Look(t.Context(), here, "1")
		require.Equal(t, "test", j.Cluster, name)
		if c.one != "" {
			require.NoError(t, err, name)
			require.Equal(t, c.one, j.Name, name)
		}
		if _, shown, err := call.ShownJob(t.Context(), "test", "1"); c.one == "known" {
			require.NoError(t, err, name)
			require.Equal(t, slurm.Job{ID: "1", Name: "known", Cluster: "test", State: slurm.Ended}, shown, "it has left the queue")
		}
		all, err := call.LookAll(t.Context(), here, slurm.Filter{})
		require.Len(t, all, c.all, name)
		require.Equal(t, c.fails, err != nil, "%s: %v", name, err)
	}
}

// An embedded cluster is the back end without Slurm.
type embedded struct{ *site }

func (embedded) Kind() string { return "local" }

func TestWhichClusterAndJobAreMeant(t *testing.T) {
	t.Parallel()
	here := &site{knownJobs: map[slurm.JobID]slurm.Job{"1": {ID: "1", Name: "asked"}}}
	s := &Service{Clusters: map[string]Cluster{"test": here, "b": here}, Default: "test", Now: time.Now}
	call := &Call{Service: s, Who: Caller{Surface: Shell, User: "ada"}, effect: Write}
	_, err := call.Cluster("c")
	require.ErrorContains(t, err, `cluster "c" is not configured`)
	require.Equal(t, "clusters here: b, test", AsError(err).Fix.EN)
	for _, effect := range []Effect{Read, "", Write, Destructive} {
		s.Unchosen, call.effect = true, effect
		_, err = call.Cluster("")
		require.Equal(t, effect == Write || effect == Destructive, err != nil, "%s: what nobody chose is not changed", effect)
		_, err = call.Cluster("test")
		require.NoError(t, err)
		s.Unchosen = false
		_, err = call.Cluster("")
		require.NoError(t, err)
	}
	for id, code := range map[slurm.JobID]Code{"1": "", "2": NotFound, "x": BadInput, "": BadInput} {
		cl, j, err := call.Job(t.Context(), "", id)
		if code == "" {
			require.NoError(t, err)
			require.Equal(t, "test", cl.Name())
			require.Equal(t, "asked", j.Name)
			continue
		}
		require.Equal(t, code, AsError(err).Code, "%q", id)
		require.Equal(t, "job", AsError(err).Field, "%q", id)
	}
	for kind, code := range map[slurm.ErrorKind]Code{slurm.Denied: NotAllowed, slurm.NotFound: NotFound, slurm.Rejected: Failed, slurm.Unreachable: Failed} {
		require.Equal(t, code, AsError(call.SlurmError(&slurm.Error{Kind: kind}, "1")).Code)
	}
	require.Equal(t, 15*time.Second, PollPause(here))
	_, err = Capable[interface{ Steps() }](here, lang.Text{EN: "test its nodes", ZH: "测试节点"})
	require.ErrorContains(t, err, "cluster test, of kind rest, cannot test its nodes")
	require.Contains(t, AsError(err).Fix.EN, "kind cli or ssh")
	_, err = Capable[interface{ Steps() }](embedded{here}, lang.Text{EN: "test its nodes", ZH: "测试节点"})
	require.Contains(t, AsError(err).Fix.EN, "`smoke` work there", "it says what works instead")
	require.Contains(t, lang.Said(err).ZH, "不能测试节点")
	_, err = Capable[interface{ Kind() string }](here, lang.Text{EN: "x", ZH: "x"})
	require.NoError(t, err)
}
