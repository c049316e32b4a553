package mcp

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	sdk "github.com/mark3labs/mcp-go/mcp"
	sdkserver "github.com/mark3labs/mcp-go/server"

	"github.com/megatron-ops/megatron-ops/internal/ops/jobcontrol"
)

// pollEvery is how often subscribed jobs are polled, all in one query.
const pollEvery = 30 * time.Second

// subscriptions tell clients that a job which they watch has changed. While nobody
// watches, nothing is polled.
type subscriptions struct {
	s     *Server
	every time.Duration

	mu sync.Mutex
	// watchers are keyed by URI, then by the session or stream with which they end.
	watchers map[string]map[string]watcher
	seen     map[string]string // job id → state
	stop     chan struct{}
}

// A watcher is who subscribed, and how to notify them.
type watcher struct {
	who  Grant
	tell func(params map[string]any) error
}

func newSubscriptions(s *Server) *subscriptions {
	return &subscriptions{s: s, every: cmp.Or(s.cfg.PollEvery, pollEvery), watchers: map[string]map[string]watcher{}, seen: map[string]string{}}
}

// hooks register subscriptions with the library, which keeps none itself.
func (u *subscriptions) hooks() *sdkserver.Hooks {
	h := &sdkserver.Hooks{}
	h.AddOnRequestInitialization(u.refuse)
	h.AddAfterSubscribe(func(ctx context.Context, _ any, m *sdk.SubscribeRequest, _ *sdk.EmptyResult) {
		if session := sdkserver.ClientSessionFromContext(ctx); session != nil {
			u.add(m.Params.URI, session.SessionID(), watcher{u.s.grant(ctx), func(params map[string]any) error {
				return u.s.sdk.SendNotificationToSpecificClient(session.SessionID(), sdk.MethodNotificationResourceUpdated, params)
			}})
		}
	})
	// The newest version has a stream of its own for subscriptions.
	h.AddBeforeSubscriptionsListen(func(ctx context.Context, id any, m *sdk.SubscriptionsListenRequest) {
		session := sdkserver.ClientSessionFromContext(ctx)
		if session == nil {
			return // the library refuses the request
		}
		stream := fmt.Sprintf("listen %p %v", session, id)
		for _, uri := range m.Params.Notifications.ResourceSubscriptions {
			u.add(uri, stream, watcher{u.s.grant(ctx), func(params map[string]any) error {
				news := sdk.JSONRPCNotification{JSONRPC: sdk.JSONRPC_VERSION, Notification: sdk.Notification{
					Method: sdk.MethodNotificationResourceUpdated,
					Params: sdk.NotificationParams{Meta: map[string]any{sdk.MetaKeySubscriptionID: id}, AdditionalFields: params},
				}}
				select {
				case session.NotificationChannel() <- news:
				default: // a client that does not read misses the notification
				}
				return nil
			}})
			context.AfterFunc(ctx, func() { u.remove(uri, stream) })
		}
	})
	h.AddAfterUnsubscribe(func(ctx context.Context, _ any, m *sdk.UnsubscribeRequest, _ *sdk.EmptyResult) {
		if session := sdkserver.ClientSessionFromContext(ctx); session != nil {
			u.remove(m.Params.URI, session.SessionID())
		}
	})
	h.AddOnUnregisterSession(func(_ context.Context, session sdkserver.ClientSession) {
		u.mu.Lock()
		uris := slices.Collect(maps.Keys(u.watchers))
		u.mu.Unlock()
		for _, uri := range uris {
			u.remove(uri, session.SessionID())
		}
	})
	return h
}

// refuse returns the error for subscribing to something that cannot be read: the same
// error as for reading it. The library accepts every URI.
func (u *subscriptions) refuse(ctx context.Context, _ any, message any) error {
	raw, ok := message.(json.RawMessage)
	if !ok || !bytes.Contains(raw, []byte("subscri")) {
		return nil
	}
	var m struct {
		Method sdk.MCPMethod
		Params struct {
			URI           string `json:"uri"`
			Notifications sdk.SubscriptionFilter
		}
	}
	if json.Unmarshal(raw, &m) != nil {
		return nil // the library reports what is wrong with the message
	}
	uris := m.Params.Notifications.ResourceSubscriptions
	switch m.Method {
	case sdk.MethodResourcesSubscribe:
		uris = []string{m.Params.URI}
	case sdk.MethodSubscriptionsListen:
	default:
		return nil
	}
	for _, uri := range uris {
		if uri == "" {
			continue // the library reports the missing URI
		}
		if id, ok := jobOf(uri); ok && strings.HasPrefix(uri, jobsURI+id+"/logs") {
			uri = jobsURI + id // a job without a log yet will have one
		}
		read, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": "subscribe", "method": sdk.MethodResourcesRead, "params": map[string]any{"uri": uri}})
		if err != nil {
			return err
		}
		no, ok := u.s.sdk.HandleMessage(ctx, read).(sdk.JSONRPCError)
		if !ok {
			continue
		}
		code, text := no.Error.Code, no.Error.Message
		if m.Method == sdk.MethodSubscriptionsListen { // this protocol version has one code for both
			text = strings.Replace(text, codeMark(sdk.RESOURCE_NOT_FOUND), codeMark(sdk.INVALID_PARAMS), 1)
			code = sdk.INVALID_PARAMS
		}
		if !strings.HasPrefix(text, "\x00") {
			text = codeMark(code) + text
		}
		return errors.New(text) //nolint:err113 // the text of the read error
	}
	return nil
}

// jobOf returns the id of the job whose changes a URI's subscribers want to know.
func jobOf(uri string) (string, bool) {
	rest, ok := strings.CutPrefix(uri, jobsURI)
	id, _, _ := strings.Cut(rest, "/")
	id, _, _ = strings.Cut(id, "?")
	return id, ok && id != ""
}

// mostWatched is how many URIs are watched at most, so that a client cannot grow the
// table without end.
const mostWatched = 1000

func (u *subscriptions) add(uri, session string, w watcher) {
	if _, ok := jobOf(uri); !ok {
		return // resources that never change need no watching
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.watchers[uri] == nil {
		if len(u.watchers) >= mostWatched {
			return
		}
		u.watchers[uri] = map[string]watcher{}
	}
	u.watchers[uri][session] = w
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
	u.pollOnce() // the state now, so that later polls can tell a change
	tick := time.NewTicker(u.every)
	defer tick.Stop()
	for {
		select {
		case <-stop:
			return
		case <-tick.C:
			u.pollOnce()
		}
	}
}

// pollOnce queries all jobs once and notifies the watchers of those that changed.
func (u *subscriptions) pollOnce() {
	u.mu.Lock()
	var who Grant
	for _, sessions := range u.watchers {
		for _, w := range sessions {
			who = w.who
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
	type news struct {
		uri string
		watcher
	}
	var tell []news
	u.mu.Lock()
	for uri, sessions := range u.watchers {
		id, _ := jobOf(uri)
		state, known := now[id]
		if before, seen := u.seen[id]; known && seen && before != state {
			for _, w := range sessions {
				tell = append(tell, news{uri, w})
			}
		}
	}
	maps.Copy(u.seen, now)
	u.mu.Unlock()
	for _, n := range tell {
		// A session without an open stream misses the notification; its client reads
		// when it asks.
		_ = n.tell(map[string]any{"uri": n.uri})
	}
}

// states returns the state of everybody's jobs by job id: a text of everything whose
// change a subscriber wants to know.
func (u *subscriptions) states(ctx context.Context) (map[string]string, error) {
	_, out, err := u.s.run(ctx, "list", map[string]any{"all": true, "user": "all"})
	if err != nil {
		return nil, err
	}
	list, _ := out.(jobcontrol.ListOut)
	states := make(map[string]string, len(list.Jobs))
	for _, j := range list.Jobs {
		states[string(j.ID)] = string(j.State) + "\x00" + j.Reason + "\x00" + strings.Join(j.Nodes, ",")
	}
	return states, nil
}
