package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"strings"
	"sync"
	"time"

	sdk "github.com/mark3labs/mcp-go/mcp"
	sdkserver "github.com/mark3labs/mcp-go/server"
)

// pollEvery is how often subscribed jobs are looked at, all in one question.
const pollEvery = 30 * time.Second

// subscriptions tell clients when a job that they watch has changed. While
// nobody watches, nothing is asked.
type subscriptions struct {
	s     *Server
	every time.Duration

	mu sync.Mutex
	// watchers are the sessions by URI, with who asked.
	watchers map[string]map[string]Grant
	seen     map[string]string // a job's state by id
	stop     chan struct{}
}

func newSubscriptions(s *Server) *subscriptions {
	return &subscriptions{s: s, every: cmp.Or(s.cfg.PollEvery, pollEvery), watchers: map[string]map[string]Grant{}, seen: map[string]string{}}
}

// hooks are where the library tells of subscriptions; it keeps none itself.
func (u *subscriptions) hooks() *sdkserver.Hooks {
	h := &sdkserver.Hooks{}
	h.AddAfterSubscribe(func(ctx context.Context, _ any, m *sdk.SubscribeRequest, _ *sdk.EmptyResult) {
		if session := sdkserver.ClientSessionFromContext(ctx); session != nil {
			u.add(m.Params.URI, session.SessionID(), u.s.grant(ctx))
		}
	})
	h.AddAfterUnsubscribe(func(ctx context.Context, _ any, m *sdk.UnsubscribeRequest, _ *sdk.EmptyResult) {
		if session := sdkserver.ClientSessionFromContext(ctx); session != nil {
			u.remove(m.Params.URI, session.SessionID())
		}
	})
	h.AddOnUnregisterSession(func(_ context.Context, session sdkserver.ClientSession) {
		u.mu.Lock()
		uris := make([]string, 0, len(u.watchers))
		for uri := range u.watchers {
			uris = append(uris, uri)
		}
		u.mu.Unlock()
		for _, uri := range uris {
			u.remove(uri, session.SessionID())
		}
	})
	return h
}

// jobOf is the job whose change a URI's readers want to know.
func jobOf(uri string) (string, bool) {
	rest, ok := strings.CutPrefix(uri, jobsURI)
	id, _, _ := strings.Cut(rest, "/")
	id, _, _ = strings.Cut(id, "?")
	return id, ok && id != ""
}

// mostWatched is how many URIs are watched at most: a client must not be able
// to grow the table without end.
const mostWatched = 1000

func (u *subscriptions) add(uri, session string, g Grant) {
	if _, ok := jobOf(uri); !ok {
		return // what never changes needs no watching
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.watchers[uri] == nil {
		if len(u.watchers) >= mostWatched {
			return
		}
		u.watchers[uri] = map[string]Grant{}
	}
	u.watchers[uri][session] = g
	if u.stop == nil {
		u.stop = make(chan struct{})
		go u.poll(u.stop)
	}
}

func (u *subscriptions) remove(uri, session string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.watchers[uri], session)
	if len(u.watchers[uri]) == 0 {
		delete(u.watchers, uri)
	}
	if len(u.watchers) == 0 && u.stop != nil {
		close(u.stop)
		u.stop = nil
		clear(u.seen)
	}
}

func (u *subscriptions) poll(stop <-chan struct{}) {
	u.look() // what the job is now, so that the next look can tell a change
	tick := time.NewTicker(u.every)
	defer tick.Stop()
	for {
		select {
		case <-stop:
			return
		case <-tick.C:
			u.look()
		}
	}
}

// look asks for all jobs once and tells those who watch one that changed.
func (u *subscriptions) look() {
	u.mu.Lock()
	var who Grant
	for _, sessions := range u.watchers {
		for _, g := range sessions {
			who = g
		}
	}
	u.mu.Unlock()
	ctx, cancel := context.WithTimeout(withGrant(context.Background(), who), u.every)
	defer cancel()
	now, err := u.states(ctx)
	if err != nil {
		u.s.cfg.Log.Warn("subscriptions", "err", err)
		return
	}
	type news struct{ uri, session string }
	var tell []news
	u.mu.Lock()
	for uri, sessions := range u.watchers {
		id, _ := jobOf(uri)
		state, known := now[id]
		if before, seen := u.seen[id]; known && seen && before != state {
			for session := range sessions {
				tell = append(tell, news{uri, session})
			}
		}
	}
	for id, state := range now {
		u.seen[id] = state
	}
	u.mu.Unlock()
	for _, n := range tell {
		// A session without an open stream misses the news; it reads when it asks.
		_ = u.s.sdk.SendNotificationToSpecificClient(n.session, sdk.MethodNotificationResourceUpdated, map[string]any{"uri": n.uri})
	}
}

// states are everybody's jobs, each with what a reader would see change.
func (u *subscriptions) states(ctx context.Context) (map[string]string, error) {
	_, out, err := u.s.run(ctx, "list", map[string]any{"all": true, "user": "all"})
	if err != nil {
		return nil, err
	}
	raw, err := json.Marshal(out)
	if err != nil {
		return nil, err
	}
	var doc struct {
		Jobs []struct {
			ID     string   `json:"job_id"`
			State  string   `json:"state"`
			Reason string   `json:"reason"`
			Nodes  []string `json:"nodes"`
		} `json:"jobs"`
	}
	if err := json.Unmarshal(raw, &doc); err != nil {
		return nil, err
	}
	states := make(map[string]string, len(doc.Jobs))
	for _, j := range doc.Jobs {
		states[j.ID] = j.State + "\x00" + j.Reason + "\x00" + strings.Join(j.Nodes, ",")
	}
	return states, nil
}
