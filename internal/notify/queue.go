package notify

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/store"
)

// A Notifier sends messages to its targets.
type Notifier struct {
	// Targets by the names that the configuration gives them.
	Targets map[string]Target
	Docs    *store.Slack
	Log     *slog.Logger
	Client  *http.Client
	Now     func() time.Time
	// Pause is the time between two checks for due messages. Zero: 2 s.
	Pause time.Duration
}

// The kinds of documents: messages to send, and keys of messages that were queued
// before.
const (
	docQueued = "notify"
	docSeen   = "notify_told"
)

const (
	// retryFor is how long a message is retried; keepFor is how long after queueing a
	// message is dropped from the store.
	retryFor = 24 * time.Hour
	keepFor  = 2 * retryFor
	// dedupeFor is how long a message's key is remembered.
	dedupeFor = 30 * 24 * time.Hour
	// minRetryDelay and maxRetryDelay bound the pause before a message is retried.
	minRetryDelay, maxRetryDelay = 5 * time.Second, 30 * time.Minute
)

// A queuedMessage is one message to one target.
type queuedMessage struct {
	Target  string    `json:"target"`
	Message Message   `json:"message"`
	Since   time.Time `json:"since"`
	Tries   int       `json:"tries"`
	Next    time.Time `json:"next"`
}

// Tell queues messages for the targets that want them, each once.
func (n *Notifier) Tell(ctx context.Context, ms ...Message) error {
	for _, m := range ms {
		for name, t := range n.Targets {
			if !t.wants(m) {
				continue
			}
			key := name + "/" + m.Key
			var told bool
			if had, err := n.Docs.Get(ctx, docSeen, key, n.Now(), &told); err != nil || had {
				if err != nil {
					return err
				}
				continue
			}
			if err := n.Docs.Put(ctx, docQueued, key, queuedMessage{Target: name, Message: m, Since: n.Now()}, n.Now().Add(keepFor)); err != nil {
				return err
			}
			if err := n.Docs.Put(ctx, docSeen, key, true, n.Now().Add(dedupeFor)); err != nil {
				return err
			}
		}
	}
	return nil
}

// Run sends queued messages until ctx ends. Only the leading server runs it. A service
// that does not answer delays no other.
func (n *Notifier) Run(ctx context.Context) {
	var all sync.WaitGroup
	for _, target := range n.names() {
		all.Go(func() {
			tick := time.NewTicker(cmp.Or(n.Pause, 2*time.Second))
			defer tick.Stop()
			for {
				n.sendDue(ctx, target)
				select {
				case <-ctx.Done():
					return
				case <-tick.C:
				}
			}
		})
	}
	all.Wait()
}

// names returns the targets' names, and "" for targets that the configuration no longer
// has.
func (n *Notifier) names() []string { return append(slices.Collect(maps.Keys(n.Targets)), "") }

// targetOf returns the target that a queued message's key names, or "" if the target no
// longer exists.
func (n *Notifier) targetOf(key string) (found string) {
	for name := range n.Targets {
		if strings.HasPrefix(key, name+"/") && len(name) > len(found) {
			found = name
		}
	}
	return found
}

func (n *Notifier) sendDue(ctx context.Context, target string) {
	keys, err := n.Docs.Keys(ctx, docQueued, n.Now())
	if err != nil {
		if ctx.Err() == nil {
			n.Log.Warn("notify: what is owed is not known", "error", err)
		}
		return
	}
	for _, key := range keys {
		if n.targetOf(key) != target {
			continue
		}
		var o queuedMessage
		if ok, err := n.Docs.Get(ctx, docQueued, key, n.Now(), &o); err != nil || !ok || n.Now().Before(o.Next) || ctx.Err() != nil {
			continue
		}
		var err error = errRejected
		if to, known := n.Targets[target]; known {
			err = n.send(ctx, to, o.Message)
		}
		if err != nil && ctx.Err() != nil {
			return // stopped in the middle: the next server sends it
		}
		switch {
		case err == nil:
		case errors.Is(err, errRejected) || n.Now().Sub(o.Since) > retryFor:
			n.Log.Error("notify: given up", "target", o.Target, "message", o.Message.Key, "error", err)
		default:
			o.Tries++
			wait := min(minRetryDelay<<min(o.Tries-1, 12), maxRetryDelay)
			if late := new(retryAfterError); errors.As(err, &late) {
				wait = max(wait, late.after)
			}
			o.Next = n.Now().Add(wait)
			n.Log.Warn("notify: not taken, tried again", "target", o.Target, "message", o.Message.Key, "in", wait, "error", err)
			if err := n.Docs.Put(ctx, docQueued, key, o, o.Since.Add(keepFor)); err != nil {
				n.Log.Warn("notify: not written down", "error", err)
			}
			continue
		}
		// Delete even while this server stops, so that the next one does not send it
		// again.
		if err := n.Docs.Delete(context.WithoutCancel(ctx), docQueued, key); err != nil {
			n.Log.Warn("notify: not written down", "error", err)
		}
	}
}

// A Backlog counts a target's queued messages.
type Backlog struct {
	Target, Kind string
	Messages     int
	Oldest       time.Time // when the oldest was queued; zero: none is queued
}

// Backlogs returns the backlog of each target.
func (n *Notifier) Backlogs(ctx context.Context) ([]Backlog, error) {
	owed, err := n.Docs.Expiries(ctx, docQueued, n.Now())
	if err != nil {
		return nil, err
	}
	by := map[string]Backlog{}
	for key, expires := range owed {
		target := n.targetOf(key)
		b := by[target]
		b.Messages++
		if since := expires.Add(-keepFor); b.Oldest.IsZero() || since.Before(b.Oldest) {
			b.Oldest = since
		}
		by[target] = b
	}
	var all []Backlog
	for _, name := range slices.Sorted(maps.Keys(n.Targets)) {
		b := by[name]
		b.Target, b.Kind = name, n.Targets[name].Kind
		all = append(all, b)
	}
	return all, nil
}
