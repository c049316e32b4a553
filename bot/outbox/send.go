package outbox

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/slack-go/slack"

	"github.com/megatron-ops/megatron-ops/bot/answer"
	"github.com/megatron-ops/megatron-ops/internal/store"
)

const (
	// maxCalls is how many calls to Slack run at the same time.
	maxCalls = 8
	// searchPause is the time until the next search for a message whose send had no answer.
	// Slack's rate limit on conversations.history and conversations.replies sets it.
	searchPause = 10 * time.Second
)

// Run sends the queued messages until ctx ends. Lanes are sent in parallel, each in its own
// order, so a call that hangs delays its own lane only.
func (s *Sender) Run(ctx context.Context) {
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	var wg sync.WaitGroup
	defer wg.Wait()
	var mu sync.Mutex
	busy := map[string]bool{} // the outbox's lanes and Slack's rate-limit lanes that have a call under way
	slots := make(chan struct{}, maxCalls)
	for {
		// Copy the busy lanes before reading the queue. A lane that was busy before may be
		// settled afterwards, and then the row that was read for it is out of date. Only this
		// loop adds lanes.
		mu.Lock()
		skip := maps.Clone(busy)
		mu.Unlock()
		due, err := s.cfg.Store.Due(ctx, s.cfg.Now(), 200)
		if err != nil && ctx.Err() == nil {
			s.cfg.Log.Error("slack: outbox", "err", err)
		}
		for _, m := range due {
			if len(slots) == maxCalls {
				break // the end of a call wakes this loop
			}
			if skip[m.Lane] {
				continue
			}
			if m.Body == "" { // a large body is not in the list and is read only when it is sent
				if m.Body, err = s.cfg.Store.Body(ctx, m.ID); err != nil || m.Body == "" {
					continue
				}
			}
			var o Message
			if err := json.Unmarshal([]byte(m.Body), &o); err != nil {
				s.settle(ctx, m, o, store.SlackRef{}, permanentError{err})
				continue
			}
			// Make one call of a kind to a channel at a time, so that a Retry-After that the
			// call brings applies to the next one.
			lane := s.withChannel(ctx, o).lane()
			mu.Lock()
			taken := busy[lane]
			mu.Unlock()
			if taken {
				continue
			}
			if wait := s.limiter.wait(o.Do, lane, s.cfg.Now()); wait > 0 {
				// Take the message off the list until its turn. The list is bounded, and one
				// busy channel must not crowd out the answers of all others.
				if err := s.cfg.Store.Later(ctx, m.ID, s.cfg.Now().Add(wait), m.Error, false); err != nil && ctx.Err() == nil {
					s.cfg.Log.Error("slack: outbox", "err", err)
				}
				continue
			}
			slots <- struct{}{}
			mu.Lock()
			busy[m.Lane], busy[lane] = true, true
			mu.Unlock()
			wg.Go(func() {
				s.sendOne(ctx, m, o)
				mu.Lock()
				delete(busy, m.Lane)
				delete(busy, lane)
				mu.Unlock()
				<-slots
				s.Wake()
			})
		}
		select {
		case <-ctx.Done():
			return
		case <-s.wake:
		case <-tick.C:
		}
		// Several ends that follow each other shortly cause one query only, since the
		// acknowledgement of new requests uses the same database.
		select {
		case <-ctx.Done():
			return
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// sendOne makes the call for m and records its result.
func (s *Sender) sendOne(ctx context.Context, m store.SlackMessage, o Message) {
	if wait, err := s.resolve(ctx, &o); err != nil {
		s.settle(ctx, m, o, store.SlackRef{}, err)
		return
	} else if wait {
		_ = s.cfg.Store.Later(ctx, m.ID, s.cfg.Now().Add(time.Second), "waits for the message it belongs to", true)
		return
	}
	// A send that was tried and has no result may have reached Slack: search for the message
	// before sending it again.
	if !m.Tried.IsZero() && (o.Do == Post || o.Do == Upload) {
		ref, ok, err := s.lookUp(ctx, m, o)
		switch {
		case err != nil: // still unknown whether it arrived
			_ = s.cfg.Store.Later(ctx, m.ID, s.cfg.Now().Add(searchPause), err.Error(), false)
			return
		case ok:
			s.settle(ctx, m, o, ref, nil)
			return
		}
	}
	if !m.Tried.IsZero() && o.untraceable() {
		o = o.repeated()
	}
	if ok, err := s.cfg.Store.Trying(ctx, m, s.cfg.Now()); err != nil || !ok {
		return // a newer edit has replaced this one and is read next
	}
	if s.Plain(o.Team) {
		var changed bool
		if o.Blocks, changed = answer.Plainer(o.Blocks); changed {
			s.queuePicture(ctx, m, o)
		}
	}
	m.Attempts++
	ref, err := s.call(ctx, m.Key, o)
	if ctx.Err() != nil && err != nil {
		return // the result is unknown; the next start searches for the message
	}
	s.settle(ctx, m, o, ref, err)
}

// resolve fills in the place of the messages that o names by key; wait is true while one of
// them was not sent yet.
func (s *Sender) resolve(ctx context.Context, o *Message) (wait bool, err error) {
	for _, named := range []struct {
		key string
		ts  *string
	}{{o.ThreadOf, &o.Thread}, {o.Ref, &o.TS}} {
		if named.key == "" {
			continue
		}
		ref, ok, err := s.refOf(ctx, named.key)
		if err != nil || !ok {
			return err == nil, err
		}
		if meant := o.Channel; o.Do == Update && strings.HasPrefix(ref.Channel, "D") && strings.HasPrefix(meant, "C") {
			*o = o.withReason(s.whyMoved(ctx, named.key), meant) // the edit explains too why its message is not in the channel
		}
		o.Channel, *named.ts = ref.Channel, ref.TS
	}
	return false, nil
}

// refOf returns where the message with this key is: where its last fallback is, if it has any.
func (s *Sender) refOf(ctx context.Context, key string) (ref store.SlackRef, ok bool, err error) {
	keys := []string{key + strings.Repeat(fallbackMark, maxFallbacks), key + fallbackMark + fallbackMark, key + fallbackMark, key}
	for _, k := range keys {
		if ref, ok, err := s.cfg.Store.Ref(ctx, k); err != nil || ok {
			return ref, ok, err
		}
	}
	gone, err := s.cfg.Store.Gone(ctx, keys...)
	if err == nil && gone {
		err = permanentError{errors.New("the message that it belongs to was refused")}
	}
	return ref, false, err
}

// fallbackMark is added to the key of a refused message for each fallback; maxFallbacks is the
// number of fallbacks that one message has.
const (
	fallbackMark = "~"
	maxFallbacks = 3
)

// A permanentError is an error that a later attempt would meet again.
type permanentError struct{ error }

// Permanent marks an error that a later attempt would meet again.
func Permanent(err error) error { return permanentError{err} }

// A waitError asks for another attempt after a time; it is not a failure.
type waitError struct {
	after time.Duration
	why   string
}

func (e waitError) Error() string { return e.why }

// settle records the result of a send, and schedules the next attempt or a fallback.
func (s *Sender) settle(ctx context.Context, m store.SlackMessage, o Message, ref store.SlackRef, err error) {
	st := s.cfg.Store
	if err == nil {
		if err := st.Sent(ctx, m, ref); err != nil {
			s.cfg.Log.Error("slack: sent, but not noted", "key", m.Key, "err", err)
		}
		return
	}
	if limited, ok := errors.AsType[*slack.RateLimitedError](err); ok {
		s.limiter.hold(o.lane(), s.cfg.Now().Add(limited.RetryAfter))
		_ = st.Later(ctx, m.ID, s.cfg.Now().Add(limited.RetryAfter), err.Error(), true)
		return
	}
	if w, ok := errors.AsType[waitError](err); ok {
		_ = st.Later(ctx, m.ID, s.cfg.Now().Add(w.after), w.why, true)
		return
	}
	if next, ok := s.fallback(m, o, err); ok {
		if st.Enqueue(ctx, next) == nil {
			s.noteMoved(ctx, next.Key, err)
			if blocksRefused(err) {
				s.plain.Store(o.Team, s.cfg.Now().Add(refusedFor))
				s.queuePicture(ctx, m, o)
			}
			s.cfg.Log.Info("slack: sent another way", "key", m.Key, "why", err)
			_ = st.Bury(ctx, m.ID, "sent another way: "+err.Error())
			return
		}
	}
	if unauthorized(err) && s.cfg.Now().Sub(m.Queued) < tokenAwaited {
		_ = st.Later(ctx, m.ID, s.cfg.Now().Add(min(5*time.Minute, time.Second<<min(m.Attempts, 9))), err.Error(), true)
		s.cfg.Log.Warn("slack: the token is not valid, and the message waits for another one", "key", m.Key, "err", err)
		return
	}
	if permanent(err) {
		s.cfg.Log.Error("slack: gave a message up", "key", m.Key, "do", o.Do, "err", err)
		_ = st.Bury(ctx, m.ID, err.Error())
		return
	}
	// A 5xx status, a time-out or a broken connection: Slack may have taken the message.
	back := min(5*time.Minute, time.Second<<min(m.Attempts, 9))
	back += rand.N(back / 4) //nolint:gosec // jitter, not a secret
	s.cfg.Log.Warn("slack: will send again", "key", m.Key, "do", o.Do, "after", back, "err", err)
	_ = st.Later(ctx, m.ID, s.cfg.Now().Add(back), err.Error(), false)
}

// tokenAwaited is how long a message waits for a valid token. A token that was revoked is replaced
// by whoever operates the app, and what happened to jobs meanwhile is still news.
const tokenAwaited = 24 * time.Hour

// unauthorized reports whether Slack refused the token and not the message.
func unauthorized(err error) bool {
	e, ok := errors.AsType[slack.SlackErrorResponse](err)
	return ok && slices.Contains([]string{"invalid_auth", "not_authed", "token_revoked", "token_expired", "account_inactive"}, e.Err)
}

// permanent reports whether a later attempt would fail the same way: Slack understood the
// request and refuses it.
func permanent(err error) bool {
	if _, ok := errors.AsType[permanentError](err); ok {
		return true
	}
	if e, ok := errors.AsType[slack.SlackErrorResponse](err); ok {
		switch e.Err {
		case "internal_error", "fatal_error", "service_unavailable", "request_timeout", "ratelimited", "team_added_to_org":
			return false
		}
		return true
	}
	if e, ok := errors.AsType[slack.StatusCodeError](err); ok {
		return e.Code >= 400 && e.Code < 500 && e.Code != http.StatusRequestTimeout && e.Code != http.StatusTooManyRequests
	}
	return false
}
