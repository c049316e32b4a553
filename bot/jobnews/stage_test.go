package jobnews

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slack-go/slack"
	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/bot/card"
	"github.com/megatron-ops/megatron-ops/bot/outbox"
	"github.com/megatron-ops/megatron-ops/bot/people"
	"github.com/megatron-ops/megatron-ops/bot/record"
	"github.com/megatron-ops/megatron-ops/bot/reply"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/opstest"
	"github.com/megatron-ops/megatron-ops/internal/store"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// A stage has a Notifier with a cluster of its own and a clock that stands still. The messages
// that it queues are read from its store; nothing is sent.
type stage struct {
	*Notifier
	t    *testing.T
	ctx  context.Context
	kept *kept
	site *opstest.Site
	at   time.Time
	// slack answers calls to Slack.
	slack func(method string, form map[string][]string) string
}

// kept is a store that records queued messages.
type kept struct {
	record.Store
	mu     sync.Mutex
	queued []store.SlackMessage
	// away is a kind of documents that cannot be read now.
	away string
}

func (k *kept) Enqueue(ctx context.Context, owed ...store.SlackMessage) error {
	k.mu.Lock()
	k.queued = append(k.queued, owed...)
	k.mu.Unlock()
	return k.Store.Enqueue(ctx, owed...)
}

func (k *kept) Get(ctx context.Context, kind, key string, now time.Time, value any) (bool, error) {
	k.mu.Lock()
	away := kind == k.away
	k.mu.Unlock()
	if away {
		return false, errors.New("the database is busy")
	}
	return k.Store.Get(ctx, kind, key, now, value)
}

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// set makes a stage. U1 is the cluster user ada, U2 is grace.
func set(t *testing.T, policy ...func(*people.Policy)) *stage {
	t.Helper()
	db, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "state.db"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	s := &stage{t: t, ctx: t.Context(), kept: &kept{Store: db.Slack()}, site: &opstest.Site{KnownJobs: map[slurm.JobID]slurm.Job{}}, at: noon}
	now := func() time.Time { return s.at }
	log := slog.New(slog.DiscardHandler)
	service := &ops.Service{
		Clusters: map[string]ops.Cluster{"test": s.site}, Default: "test", Now: now,
		Store: func() (*store.Store, error) { return db, nil },
	}
	client := func(context.Context, string) (*slack.Client, error) {
		return slack.New("xoxb-1", slack.OptionHTTPClient(&http.Client{Transport: s})), nil
	}
	rights := people.Policy{Links: map[string]string{"T1/U1": "ada", "T1/U2": "grace"}}
	for _, change := range policy {
		change(&rights)
	}
	book := people.New(people.Config{Policy: rights, Store: s.kept, Service: service, Client: client, Now: now, Log: log})
	out := outbox.New(outbox.Config{Store: s.kept, Client: client, Now: now, Log: log})
	s.Notifier = New(Config{
		Store: s.kept, Service: service, EditPace: time.Minute, People: book, Reply: reply.New(out), Out: out, Client: client, Now: now, Log: log,
	})
	return s
}

// RoundTrip answers calls to Slack, unless the call was cancelled.
func (s *stage) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	require.NoError(s.t, r.ParseForm())
	w := httptest.NewRecorder()
	_, err := w.WriteString(s.slack(r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:], r.Form))
	return w.Result(), err
}

// settings sets what a person has chosen.
func (s *stage) settings(user string, set people.Settings) {
	s.t.Helper()
	require.NoError(s.t, s.kept.Put(s.ctx, record.Settings, "T1/"+user, set, time.Time{}))
}

// told returns the messages that were queued since the last call, one a line.
func (s *stage) told() []string {
	s.kept.mu.Lock()
	owed := s.kept.queued
	s.kept.queued = nil
	s.kept.mu.Unlock()
	return lines(owed)
}

// begin gives a job of U1's a card in the channel C1.
func (s *stage) begin(j slurm.Job) {
	s.t.Helper()
	j.Cluster = "test"
	k := card.Card{Team: "T1", User: "U1", News: card.News{Job: j}, Places: []card.Place{{Team: "T1", Channel: "C1"}}}
	require.NoError(s.t, s.Begin(s.ctx, k, ""))
	s.told()
}

// tell sends news of a job to its cards.
func (s *stage) tell(n card.News) []string {
	s.t.Helper()
	n.Job.Cluster = "test"
	require.NoError(s.t, s.Tell(s.ctx, n))
	return s.told()
}

// card returns a job's stored card.
func (s *stage) card(id slurm.JobID) (k card.Card) {
	s.t.Helper()
	_, err := s.kept.Store.Get(s.ctx, record.Card, "test/"+string(id), s.at, &k)
	require.NoError(s.t, err)
	return k
}

// unexplained are the jobs whose failure still has no cause.
func (s *stage) unexplained() []string {
	s.t.Helper()
	ids, err := s.kept.Keys(s.ctx, record.Unexplained, s.at)
	require.NoError(s.t, err)
	return ids
}

var called = regexp.MustCompile(`"user_id":"(\w+)"`)

// lines describes messages, one a line: the method, the place, the text, who is mentioned, and
// from when it may be sent.
func lines(owed []store.SlackMessage) (all []string) {
	for _, m := range owed {
		var o outbox.Message
		if err := json.Unmarshal([]byte(m.Body), &o); err != nil {
			return []string{err.Error()}
		}
		where, said := o.Channel, o.Text
		switch {
		case o.Ref != "":
			where = o.Ref
		case o.ThreadOf != "":
			where = "below " + o.ThreadOf
		}
		if o.File != nil {
			said = o.File.Name
		}
		line := string(o.Do) + " " + where + ": " + strings.SplitN(said, "\n", 2)[0]
		if who := called.FindSubmatch(o.Blocks); who != nil {
			line += " (calls " + string(who[1]) + ")"
		}
		if !m.NotBefore.IsZero() {
			line += m.NotBefore.UTC().Format(" (at 15:04)")
		}
		all = append(all, line)
	}
	return all
}

// shown returns all texts of messages.
func shown(owed []store.SlackMessage) string {
	var all strings.Builder
	for _, m := range owed {
		all.WriteString(m.Body + "\n")
	}
	return all.String()
}
