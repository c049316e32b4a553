package people

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/slack-go/slack"
	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/bot/card"
	"github.com/megatron-ops/megatron-ops/bot/incoming"
	"github.com/megatron-ops/megatron-ops/bot/record"
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/store"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// A desk has a Directory and a Slack whose answers are given by method.
type desk struct {
	*Directory
	ctx   context.Context
	store record.Store
	at    time.Time
	says  map[string]string
	asked []string
}

func (d *desk) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := r.ParseForm(); err != nil {
		return nil, err
	}
	method := r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:] + r.Form.Get("cursor")
	d.asked = append(d.asked, method)
	said, ok := d.says[method]
	if !ok {
		return nil, errors.New("no answer")
	}
	w := httptest.NewRecorder()
	_, err := w.WriteString(said)
	return w.Result(), err
}

func open(t *testing.T, p Policy) *desk {
	t.Helper()
	db, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "state.db"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	d := &desk{ctx: t.Context(), store: db.Slack(), at: noon, says: map[string]string{}}
	d.Directory = New(Config{
		Policy: p, Store: db.Slack(), Service: &ops.Service{Default: "prod", Clusters: map[string]ops.Cluster{"prod": nil}},
		Client: func(_ context.Context, team string) (*slack.Client, error) {
			if team == "T404" {
				return nil, errors.New("not installed")
			}
			return slack.New("xoxb-1", slack.OptionHTTPClient(&http.Client{Transport: d})), nil
		},
		Now: func() time.Time { return d.at }, Log: slog.New(slog.DiscardHandler),
	})
	return d
}

func (d *desk) put(t *testing.T, kind, key string, value any) {
	t.Helper()
	require.NoError(t, d.store.Put(d.ctx, kind, key, value, time.Time{}))
}

// Rights come by a person's id, by a user group, and by who is in a channel.
func TestRightsComeByPersonGroupAndChannel(t *testing.T) {
	t.Parallel()
	d := open(t, Policy{
		Operators: []string{"U5", "S1", "C1", ""}, Viewers: []string{"T1/U8", "T2/U4"},
		Links: map[string]string{"U1": "ada", "T1/U1": "ada-of-t1", "U8": "guest"},
	})
	d.says["usergroups.users.list"] = `{"ok":true,"users":["U6"]}`
	d.says["conversations.members"] = `{"ok":true,"members":["U7"],"response_metadata":{"next_cursor":"2"}}`
	d.says["conversations.members2"] = `{"ok":true,"members":["U9"]}`
	d.put(t, record.Link, "T1/U4", Link{User: "dora", How: "code"})
	for who, want := range map[string]ops.Caller{
		"T1/U1": {User: "ada-of-t1"}, "T2/U1": {User: "ada"}, "T1/U4": {User: "dora"}, "T2/U4": {ReadOnly: true},
		"T1/U5": {Operator: true}, "T1/U6": {Operator: true}, "T1/U7": {Operator: true}, "T1/U9": {Operator: true}, "T1/U8": {User: "guest", ReadOnly: true}, "T1/U2": {},
	} {
		team, user, _ := strings.Cut(who, "/")
		want.Surface, want.ID = ops.Slack, who
		require.Equal(t, want, d.Call(d.ctx, incoming.Ask{Team: team, User: user}).Who, who)
	}
	require.Equal(t, ops.Caller{Surface: ops.Slack, ID: "T1/U5", ReadOnly: true}, d.Call(d.ctx, incoming.Ask{Team: "T1", User: "U5", Foreign: true}).Who, "of another workspace")
	c := d.Call(d.ctx, incoming.Ask{Terminal: &incoming.Terminal{User: "ada", Dir: "/w"}})
	require.Equal(t, ops.Caller{Surface: ops.Chat, ID: "ada", User: "ada"}, c.Who)
	require.Equal(t, "/w", c.Dir)
}

// Who is in a group is remembered for a while; where Slack does not say, nobody is.
func TestMembersAreRemembered(t *testing.T) {
	t.Parallel()
	d := open(t, Policy{})
	d.says["usergroups.users.list"] = `{"ok":true,"users":["U6"]}`
	require.Equal(t, []string{"U6"}, d.members(d.ctx, "T1", "S1"))
	delete(d.says, "usergroups.users.list")
	d.at = noon.Add(5*time.Minute - time.Second)
	require.Equal(t, []string{"U6"}, d.members(d.ctx, "T1", "S1"))
	d.at = noon.Add(5 * time.Minute)
	require.Empty(t, d.members(d.ctx, "T1", "S1"), "rights are not guessed")
	asked := len(d.asked)
	require.Empty(t, d.members(d.ctx, "T1", "S1"))
	require.Len(t, d.asked, asked, "nor is Slack asked at once again")
	d.says["usergroups.users.list"] = `{"ok":true,"users":["U6"]}`
	d.at = d.at.Add(31 * time.Second)
	require.Equal(t, []string{"U6"}, d.members(d.ctx, "T1", "S1"))
	require.Empty(t, d.members(d.ctx, "T404", "S1"))
}

// Where the app lacks the scope for a group, the log says how it gets it.
func TestAGroupThatMayNotBeReadSaysWhatToDo(t *testing.T) {
	t.Parallel()
	d := open(t, Policy{})
	var log strings.Builder
	d.cfg.Log = slog.New(slog.NewTextHandler(&log, nil))
	d.says["usergroups.users.list"] = `{"ok":false,"error":"missing_scope","needed":"usergroups:read"}`
	require.Empty(t, d.members(d.ctx, "T1", "S1"))
	require.Contains(t, log.String(), "megatron-ops slack manifest")
}

// A person whom Slack names elsewhere has the rights that they have here; a person of another
// workspace has none.
func TestAPersonIsTheSameOutsideOfSlack(t *testing.T) {
	t.Parallel()
	d := open(t, Policy{Links: map[string]string{"U1": "ada"}})
	d.says["auth.test"] = `{"ok":true,"team_id":"T1"}`
	who, err := d.Person(d.ctx, "T1", "U1")
	require.NoError(t, err)
	require.Equal(t, ops.Caller{Surface: ops.Slack, ID: "T1/U1", User: "ada"}, who)
	who, err = d.Person(d.ctx, "T2", "U1")
	require.NoError(t, err)
	require.Equal(t, ops.Caller{Surface: ops.Slack, ID: "T2/U1", ReadOnly: true}, who)
	_, err = d.Person(d.ctx, "T404", "U1")
	require.Error(t, err)
	delete(d.says, "auth.test")
	_, err = d.Person(d.ctx, "T1", "U1")
	require.Error(t, err)
}

// Requests go to the approvals' channel, else to each operator; a user group is its people.
func TestWhoDecides(t *testing.T) {
	t.Parallel()
	d := open(t, Policy{Operators: []string{"T1/U5", "U6", "S1", "U6"}})
	d.says["usergroups.users.list"] = `{"ok":true,"users":["U7","U8"]}`
	require.Equal(t, []card.Place{{Team: "T1", Channel: "U5"}, {Channel: "U6"}, {Channel: "U7"}, {Channel: "U8"}}, d.Deciders(d.ctx))
	require.True(t, d.Decides())
	d = open(t, Policy{Operators: []string{"U5"}, ApprovalChannel: "T1/C-ops"})
	require.Equal(t, []card.Place{{Team: "T1", Channel: "C-ops"}}, d.Deciders(d.ctx))
	require.True(t, open(t, Policy{ApprovalChannel: "C-ops"}).Decides())
	d = open(t, Policy{})
	require.False(t, d.Decides())
	require.Empty(t, d.Deciders(d.ctx))
	d = open(t, Policy{Operators: []string{"U0", "U1", "U2", "U3", "U4", "U5", "U6", "U7", "U8", "U9", "U10"}})
	require.Len(t, d.Deciders(d.ctx), 10)
}

// A cluster user's people are those who have proven it and those whom the operator maps to it.
func TestThePeopleOfAClusterUser(t *testing.T) {
	t.Parallel()
	d := open(t, Policy{Links: map[string]string{"T1/U1": "ada", "U3": "ada", "U4": "grace"}})
	d.put(t, record.Link, "T1/U1", Link{User: "ada"})
	d.put(t, record.Link, "T1/U2", Link{User: "ada"})
	d.put(t, record.Link, "T1/U5", Link{User: "grace"})
	require.Equal(t, []card.Place{{Team: "T1", Channel: "U1"}, {Team: "T1", Channel: "U2"}, {Channel: "U3"}}, d.PeopleOf(d.ctx, "ada"))
	require.Empty(t, d.PeopleOf(d.ctx, ""))
}

// Jobs are shown to people of the cluster, and to others where the operator says so.
func TestWhoMayRead(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		policy Policy
		a      incoming.Ask
		who    ops.Caller
		want   bool
	}{
		"linked":            {who: ops.Caller{User: "ada"}, want: true},
		"an operator":       {who: ops.Caller{Operator: true}, want: true},
		"a viewer":          {who: ops.Caller{ReadOnly: true}, want: true},
		"a foreigner":       {a: incoming.Ask{Foreign: true}, who: ops.Caller{ReadOnly: true}},
		"a foreigner, open": {policy: Policy{Read: "everyone"}, a: incoming.Ask{Foreign: true}, who: ops.Caller{ReadOnly: true}},
		"at a terminal":     {a: incoming.Ask{Terminal: &incoming.Terminal{}}, want: true},
		"not linked":        {},
		"not linked, open":  {policy: Policy{Read: "everyone"}, want: true},
		"open here":         {policy: Policy{ReadIn: map[string]string{"C7": "everyone"}}, a: incoming.Ask{Channel: "C7"}, want: true},
		"open elsewhere":    {policy: Policy{ReadIn: map[string]string{"C7": "everyone"}}, a: incoming.Ask{Channel: "C8"}},
		"closed here":       {policy: Policy{Read: "everyone", ReadIn: map[string]string{"C7": "linked"}}, a: incoming.Ask{Channel: "C7"}},
	} {
		require.Equal(t, c.want, New(Config{Policy: c.policy}).MayRead(c.a, &ops.Call{Who: c.who}), name)
	}
}

// One is answered as one chose, else as one writes; at a terminal as it is set.
func TestTheLanguageAndClusterOfWhoAsks(t *testing.T) {
	t.Parallel()
	d := open(t, Policy{})
	at := incoming.Ask{Team: "T1", User: "U1"}
	require.Equal(t, "prod", d.ClusterOf(d.ctx, at))
	require.Equal(t, lang.EN, d.LangOf(d.ctx, at))
	at.Text = "帮助"
	require.Equal(t, lang.ZH, d.LangOf(d.ctx, at))
	require.Equal(t, lang.ZH, d.LangOf(d.ctx, incoming.Ask{Text: "help", Terminal: &incoming.Terminal{Lang: lang.ZH}}))
	require.Equal(t, lang.ZH, d.LangOf(d.ctx, incoming.Ask{Text: "帮助", Terminal: &incoming.Terminal{Lang: lang.EN}}))
	d.put(t, record.Settings, "T1/U1", Settings{Lang: lang.EN, Cluster: "dev"})
	require.Equal(t, lang.EN, d.LangOf(d.ctx, at))
	require.Equal(t, "dev", d.ClusterOf(d.ctx, at))
	require.Equal(t, "dev", d.Settings(d.ctx, "", "U1").Cluster, "a link of the configuration may leave the workspace out")
	require.Empty(t, d.Settings(d.ctx, "", "U11").Cluster)
	require.Empty(t, d.Settings(d.ctx, "T2", "U1").Cluster)
	require.Equal(t, lang.ZH, Settings{}.LangOr(lang.ZH))
	require.Equal(t, lang.EN, Settings{Lang: lang.EN}.LangOr(lang.ZH))
}

// A setting is accepted, or refused with what would work.
func TestASettingIsRead(t *testing.T) {
	t.Parallel()
	c := &ops.Call{Service: &ops.Service{Clusters: map[string]ops.Cluster{"prod": nil}}}
	before := Settings{Lang: lang.EN, Notify: "ends", QuietFrom: 60, QuietTo: 120, Zone: "UTC", Digest: true, Cluster: "dev"}
	for words, change := range map[string]func(*Settings){
		"language zh": func(s *Settings) { s.Lang = lang.ZH }, "lang auto": func(s *Settings) { s.Lang = "" }, "--lang 中文": func(s *Settings) { s.Lang = lang.ZH },
		"notify all": func(s *Settings) { s.Notify = "all" }, "notify none": func(s *Settings) { s.Notify = "none" }, "通知 ends": func(*Settings) {},
		"quiet off":                       func(s *Settings) { s.QuietFrom, s.QuietTo = 0, 0 },
		"quiet":                           func(s *Settings) { s.QuietFrom, s.QuietTo = 0, 0 },
		"quiet 22:30-08:05":               func(s *Settings) { s.QuietFrom, s.QuietTo = 22*60+30, 8*60+5 },
		"quiet 22:00–08:00 Asia/Shanghai": func(s *Settings) { s.QuietFrom, s.QuietTo, s.Zone = 22*60, 8*60, "Asia/Shanghai" },
		"zone Asia/Tokyo":                 func(s *Settings) { s.Zone = "Asia/Tokyo" },
		"digest off":                      func(s *Settings) { s.Digest = false }, "摘要 on": func(*Settings) {},
		"cluster prod": func(s *Settings) { s.Cluster = "prod" }, "cluster": func(s *Settings) { s.Cluster = "" },
		// What follows is refused, and changes nothing.
		"language fr": nil, "notify sometimes": nil, "quiet 22-8": nil, "quiet 22:00-8": nil, "quiet 22:00-08:00 Mars": nil, "zone Mars": nil, "zone": nil,
		"digest maybe": nil, "cluster moon": nil, "colour red": nil,
	} {
		got, want := before, before
		err := got.Set(strings.Fields(words), c)
		if change == nil {
			require.NotNil(t, err, words)
			require.NotEmpty(t, err.Fix.ZH, words)
		} else {
			require.Nil(t, err, words)
			change(&want)
		}
		require.Equal(t, want, got, words)
	}
}

// Quiet hours may go over midnight, and end in the person's own zone.
func TestQuietHours(t *testing.T) {
	t.Parallel()
	at := func(clock string) time.Time {
		x, err := time.Parse("15:04", clock)
		require.NoError(t, err)
		return time.Date(2026, 11, 20, x.Hour(), x.Minute(), 30, 0, time.UTC)
	}
	night, lunch := Settings{QuietFrom: 22 * 60, QuietTo: 8 * 60}, Settings{QuietFrom: 12 * 60, QuietTo: 13 * 60}
	for _, c := range []struct {
		s     Settings
		clock string
		wakes string
	}{
		{night, "21:59", ""},
		{night, "22:00", "2026-11-21 08:00"},
		{night, "23:30", "2026-11-21 08:00"},
		{night, "07:59", "2026-11-20 08:00"},
		{night, "08:00", ""},
		{lunch, "11:59", ""},
		{lunch, "12:00", "2026-11-20 13:00"},
		{lunch, "12:59", "2026-11-20 13:00"},
		{lunch, "13:00", ""},
		{Settings{QuietFrom: 60, QuietTo: 60}, "01:00", ""},
		{Settings{QuietFrom: 20 * 60, QuietTo: 21 * 60, Zone: "Asia/Shanghai"}, "12:30", "2026-11-20 13:00"},
	} {
		got := ""
		if x := c.s.QuietUntil(at(c.clock)); !x.IsZero() {
			got = x.UTC().Format("2006-01-02 15:04")
		}
		require.Equal(t, c.wakes, got, "%v at %s", c.s, c.clock)
		require.Equal(t, c.wakes != "", c.s.Quiet(at(c.clock)))
	}
	require.Equal(t, "off", Settings{}.QuietValue())
	s := Settings{QuietFrom: 22*60 + 5, QuietTo: 8 * 60, Zone: "UTC"}
	require.Equal(t, "22:05-08:00 UTC", s.QuietValue())
	require.Equal(t, []string{"off", "22:00-08:00 UTC", "20:00-08:00 UTC", "18:00-09:00 UTC", "22:05-08:00 UTC"}, s.QuietChoices())
	require.Len(t, night.QuietChoices(), 4, "what they have is offered once")
}
