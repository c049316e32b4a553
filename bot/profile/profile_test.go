package profile

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/bot/incoming"
	"github.com/megatron-ops/megatron-ops/bot/outbox"
	"github.com/megatron-ops/megatron-ops/bot/people"
	"github.com/megatron-ops/megatron-ops/bot/record"
	"github.com/megatron-ops/megatron-ops/bot/reply"
	"github.com/megatron-ops/megatron-ops/internal/account"
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/store"
	"github.com/megatron-ops/megatron-ops/internal/view"
)

// A room is a Handler with a clock that stands still, and its audit records.
type room struct {
	*Handler
	ctx     context.Context
	at      time.Time
	proof   error // what keeps a code from being proved
	audited []string
	homes   int
}

func open(t *testing.T, change ...func(*Config)) *room {
	t.Helper()
	db, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "state.db"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	r := &room{ctx: t.Context(), at: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC), proof: fs.ErrNotExist}
	now, log := func() time.Time { return r.at }, slog.New(slog.DiscardHandler)
	cfg := Config{
		Store: db.Slack(), Service: &ops.Service{Default: "prod", Clusters: map[string]ops.Cluster{"prod": nil, "dev": nil}}, Now: now, Log: log,
		Reply: reply.New(outbox.New(outbox.Config{Store: db.Slack(), Now: now, Log: log})),
		Home:  func(context.Context, incoming.Ask) []store.SlackMessage { r.homes++; return nil },
		Audit: func(_ context.Context, _ *ops.Call, what string, in, result any) {
			raw, _ := json.Marshal([]any{what, in, result})
			r.audited = append(r.audited, string(raw))
		},
	}
	cfg.Policy.Links = map[string]string{"U5": "grace"}
	cfg.Policy.Operators = []string{"U5", "U7"}
	cfg.Policy.LinkProof = func(context.Context, string, time.Time) (account.User, error) {
		return account.User{Name: "ada"}, r.proof
	}
	for _, f := range change {
		f(&cfg)
	}
	cfg.People = people.New(people.Config{Policy: cfg.Policy, Store: cfg.Store, Service: cfg.Service, Now: now, Log: log})
	r.Handler = New(cfg)
	return r
}

func by(user string) incoming.Ask {
	return incoming.Ask{Key: "k", Kind: incoming.AsCommand, Team: "T1", User: user, Channel: "C1", TS: "1.1"}
}

// said returns all texts of the answers.
func said(owed []store.SlackMessage) string {
	var all strings.Builder
	for _, m := range owed {
		all.WriteString(m.Body)
	}
	return all.String()
}

func (r *room) link(user string) string {
	a := by(user)
	return said(r.Link(r.ctx, a, r.cfg.People.Call(r.ctx, a)))
}

func (r *room) unlink(user string) string {
	a := by(user)
	return said(r.Unlink(r.ctx, a, r.cfg.People.Call(r.ctx, a)))
}

// A code that its person has written on the cluster links them; another person's press does
// not.
func TestACodeLinksItsWriter(t *testing.T) {
	t.Parallel()
	r := open(t)
	press := r.Buttons()[actLinked]
	first := r.link("U1")
	require.Contains(t, first, "Prove which cluster user you are")
	require.Equal(t, first, r.link("U1"), "the same code as long as it lives")
	require.Contains(t, said(press(r.ctx, by("U1"))), "was not written on the cluster yet")
	r.proof = nil
	require.Contains(t, said(press(r.ctx, by("U2"))), "Prove which cluster user you are", "who has no code is given their own")
	_, linked := r.cfg.People.Linked(r.ctx, "T1", "U1")
	require.False(t, linked)
	require.Contains(t, said(press(r.ctx, by("U1"))), "you are ada on the cluster")
	have, linked := r.cfg.People.Linked(r.ctx, "T1", "U1")
	require.True(t, linked)
	require.Equal(t, people.Link{User: "ada", How: "code", At: r.at}, people.Link{User: have.User, How: have.How, At: have.At.UTC()})
	require.Equal(t, []string{`["link",{"slack":"T1/U1"},{"user":"ada"}]`}, r.audited)
	require.Contains(t, r.link("U2"), "you are ada on the cluster", "to ask again looks for the proof too")
	require.Contains(t, r.unlink("U1"), "not linked to a cluster user any more")
	_, linked = r.cfg.People.Linked(r.ctx, "T1", "U1")
	require.False(t, linked)
	require.Contains(t, r.audited[2], "unlink")
}

// Whom the operator has mapped cannot change that; without proofs nobody can.
func TestTheOperatorsWordStands(t *testing.T) {
	t.Parallel()
	r := open(t)
	require.Contains(t, r.link("U5"), "your operator has mapped you to grace")
	require.Contains(t, r.unlink("U5"), "your operator has mapped you to grace")
	require.Empty(t, r.audited)
	r = open(t, func(c *Config) { c.Policy.LinkProof = nil })
	require.Contains(t, r.link("U1"), "Your operator links accounts here")
	require.Contains(t, said(r.linkPressed(r.ctx, by("U1"))), "Your operator links accounts here")
	a := incoming.Ask{Key: "k", Terminal: &incoming.Terminal{User: "ada"}}
	require.Contains(t, said(r.Link(r.ctx, a, r.cfg.People.Call(r.ctx, a))), "nothing has to be linked here")
}

// A refused proof links nobody, and makes its code invalid.
func TestARefusedProofEndsItsCode(t *testing.T) {
	t.Parallel()
	r := open(t)
	first := r.link("U1")
	r.proof = errors.New("it is over another text than the code")
	require.Contains(t, said(r.linkPressed(r.ctx, by("U1"))), "it is over another text than the code")
	_, linked := r.cfg.People.Linked(r.ctx, "T1", "U1")
	require.False(t, linked)
	again := r.link("U1")
	require.Contains(t, again, "Prove which cluster user you are")
	require.NotEqual(t, first, again, "another code")
}

// Codes are few in an hour.
func TestCodesAreFewInAnHour(t *testing.T) {
	t.Parallel()
	r := open(t)
	r.proof = errors.New("it is over another text than the code")
	for range codesPerHour {
		require.Contains(t, r.link("U1"), "Prove which cluster user you are")
		require.Contains(t, r.link("U1"), "it is over another text than the code")
	}
	require.Contains(t, r.audited[0], "refused")
	require.Contains(t, r.link("U1"), "you have had many codes in the last hour")
	require.Contains(t, r.link("U2"), "Prove which cluster user you are")
	r.at = r.at.Add(time.Hour - time.Second)
	require.Contains(t, r.link("U1"), "you have had many codes in the last hour")
	r.at = r.at.Add(2 * time.Second)
	require.Contains(t, r.link("U1"), "Prove which cluster user you are")
}

// Settings are typed or chosen, shown with what they are, and drawn where they stood.
func TestSettingsAreTypedAndChosen(t *testing.T) {
	t.Parallel()
	r := open(t)
	set := func(words string, change ...func(*incoming.Ask)) string {
		a := by("U1")
		for _, f := range change {
			f(&a)
		}
		return said(r.SetSettings(r.ctx, a, r.cfg.People.Call(r.ctx, a), strings.Fields(words)))
	}
	require.Contains(t, set(""), "Your settings")
	require.Contains(t, set("notify sometimes"), "is not a value of this setting")
	require.Contains(t, set("language zh"), "您的设置", "in the language that was chosen")
	require.Equal(t, lang.ZH, r.cfg.People.Settings(r.ctx, "T1", "U1").Lang)
	at := func(a *incoming.Ask) { a.Terminal = &incoming.Terminal{User: "ada"} }
	require.Contains(t, set("", at), "settings quiet 22:00-08:00")

	choose := func(name, value, ts string) string {
		a := by("U1")
		a.Kind, a.Value, a.TS, a.Response = incoming.AsButton, value, ts, "r"
		return said(r.Buttons()[actSet+name](r.ctx, a))
	}
	require.Contains(t, choose("notify", "ends", "1.1"), `"replace":true`)
	require.Empty(t, choose("notify", "sometimes", "1.1"))
	require.Empty(t, choose("digest", "on", ""))
	require.Equal(t, 1, r.homes, "the home tab is drawn anew")
	require.Equal(t, people.Settings{Lang: lang.ZH, Notify: "ends", Digest: true}, r.cfg.People.Settings(r.ctx, "T1", "U1"))
}

// A select shows the chosen value, and offers the person's own time zone too; with one cluster
// there is nothing to choose.
func TestEachSettingIsASelect(t *testing.T) {
	t.Parallel()
	r := open(t)
	rows := func(s people.Settings) (values map[string]string, count map[string]int) {
		values, count = map[string]string{}, map[string]int{}
		raw, err := json.Marshal(r.SettingRows(s, lang.EN))
		require.NoError(t, err)
		var blocks []struct {
			Accessory struct {
				Action  string `json:"action_id"`
				Options []any  `json:"options"`
				Chosen  struct {
					Value string `json:"value"`
				} `json:"initial_option"`
			} `json:"accessory"`
		}
		require.NoError(t, json.Unmarshal(raw, &blocks))
		for _, b := range blocks {
			name := strings.TrimPrefix(b.Accessory.Action, actSet)
			values[name], count[name] = b.Accessory.Chosen.Value, len(b.Accessory.Options)
		}
		return values, count
	}
	values, count := rows(people.Settings{})
	require.Equal(t, map[string]string{"lang": "auto", "notify": "all", "digest": "off", "quiet": "off", "zone": "UTC", "cluster": "prod"}, values)
	require.Equal(t, len(zones), count["zone"])
	values, count = rows(people.Settings{Lang: lang.ZH, Notify: "none", Digest: true, QuietFrom: 60, QuietTo: 120, Zone: "Africa/Cairo", Cluster: "dev"})
	require.Equal(t, map[string]string{"lang": "zh", "notify": "none", "digest": "on", "quiet": "01:00-02:00 Africa/Cairo", "zone": "Africa/Cairo", "cluster": "dev"}, values)
	require.Equal(t, len(zones)+1, count["zone"])
	delete(r.cfg.Service.Clusters, "dev")
	values, _ = rows(people.Settings{})
	require.NotContains(t, values, "cluster")
	values, _ = rows(people.Settings{Cluster: "gone"})
	require.Contains(t, values, "cluster", "one that is gone can be left")
}

// Somebody is told who they are here, why, and what they may do.
func TestWhoAmI(t *testing.T) {
	t.Parallel()
	r := open(t)
	require.NoError(t, r.cfg.Store.Put(r.ctx, record.Link, "T1/U1", people.Link{User: "ada", How: "code", At: r.at}, time.Time{}))
	for name, c := range map[string]struct {
		a    incoming.Ask
		want []string
		next bool
	}{
		"linked by a code":          {by("U1"), []string{"T1/U1", "ada", "a code written on the cluster, 2026-11-20", "owner: may act on your own jobs"}, false},
		"the operator's word":       {by("U5"), []string{"T1/U5", "grace", "your operator's mapping", "operator: may act on everybody's jobs"}, false},
		"nobody":                    {by("U2"), []string{"T1/U2", "not linked: you can ask", "viewer: may look and ask"}, true},
		"an operator who is nobody": {by("U7"), []string{"T1/U7", "not linked: you can ask", "viewer: may look and ask"}, true},
		"of another workspace":      {incoming.Ask{Team: "T1", User: "U1", Foreign: true}, []string{"T1/U1", "not linked: you can ask", "viewer: may look and ask"}, true},
		"at a terminal":             {incoming.Ask{Terminal: &incoming.Terminal{User: "ada"}}, []string{"ada", "you run this program; nothing has to be linked here", "owner: may act on your own jobs"}, false},
	} {
		d := r.WhoAmI(r.ctx, c.a, r.cfg.People.Call(r.ctx, c.a))
		var got []string
		for _, f := range d.Sections[0].Facts {
			got = append(got, f.Value)
		}
		require.Equal(t, c.want, got, name)
		require.Equal(t, c.next, len(d.Next) > 0, name)
	}
	doc := r.settingsDoc(people.Settings{Digest: true, QuietFrom: 22*60 + 5, QuietTo: 8*60 + 30, Zone: "UTC"}, lang.EN)
	require.Equal(t, view.Facts{
		{Name: "Language", Value: "as you write"},
		{Name: "Call me", Value: "for every end"},
		{Name: "Daily digest", Value: "every morning"},
		{Name: "Quiet hours", Value: "22:05-08:30 UTC"},
		{Name: "Time zone", Value: "UTC"},
		{Name: "Cluster", Value: "prod"},
	}, doc.Sections[0].Facts)
	require.Equal(t, "无", r.settingsDoc(people.Settings{}, lang.ZH).Sections[0].Facts[3].Value)
}

// A link that signs in is given to a linked person, and to nobody else.
func TestALinkToThePage(t *testing.T) {
	t.Parallel()
	var broken error
	r := open(t, func(c *Config) {
		c.Page = func(_ context.Context, who ops.Caller) (string, error) { return "https://ops/" + who.User, broken }
	})
	page := func(r *room, a incoming.Ask) string {
		return said(r.Page(r.ctx, a, r.cfg.People.Call(r.ctx, a), view.Fact{Name: "Job 4711", Value: "https://ops/jobs/4711"}))
	}
	require.Contains(t, page(r, by("U5")), "https://ops/grace")
	require.Contains(t, page(r, by("U5")), "https://ops/jobs/4711", "where to go then")
	require.Contains(t, page(r, by("U1")), "not linked")
	require.Contains(t, page(r, incoming.Ask{Key: "k", Terminal: &incoming.Terminal{User: "ada"}}), "no page is served here")
	require.Contains(t, page(open(t), by("U5")), "no page is served here")
	broken = lang.Text{EN: "the store is away", ZH: "存储不可用"}.Err()
	require.Contains(t, page(r, by("U5")), "the store is away")
}
