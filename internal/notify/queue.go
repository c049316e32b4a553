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

// A Notifier tells its targets.
type Notifier struct {
	// Targets by the names that the configuration gives them.
	Targets map[string]Target
	Docs    *store.Slack
	Log     *slog.Logger
	Client  *http.Client
	Now     func() time.Time
	// Pause is between two looks at what is owed. Zero: 2 s.
	Pause time.Duration
}

// The kinds of documents: what is still to be told, and what was.
const (
	docOwed = "notify"
	docTold = "notify_told"
)

const (
	// giveUp is how long a service is tried; kept is how long after it was owed a
	// message is forgotten.
	giveUp = 24 * time.Hour
	kept   = 2 * giveUp
	// remembered is how long a message counts as told.
	remembered = 30 * 24 * time.Hour
	// firstAgain and longestAgain bound the pause before a message is tried again.
	firstAgain, longestAgain = 5 * time.Second, 30 * time.Minute
)

// owed is one message to one target.
type owed struct {
	Target  string    `json:"target"`
	Message Message   `json:"message"`
	Since   time.Time `json:"since"`
	Tries   int       `json:"tries"`
	Next    time.Time `json:"next"`
}

// Tell writes down what the targets are to hear of, once.
func (n *Notifier) Tell(ctx context.Context, ms ...Message) error {
	for _, m := range ms {
		for name, t := range n.Targets {
			if !t.wants(m) {
				continue
			}
			key := name + "/" + m.Key
			var told bool
			if had, err := n.Docs.Get(ctx, docTold, key, n.Now(), &told); err != nil || had {
				if err != nil {
					return err
				}
				continue
			}
			if err := n.Docs.Put(ctx, docOwed, key, owed{Target: name, Message: m, Since: n.Now()}, n.Now().Add(kept)); err != nil {
				return err
			}
			if err := n.Docs.Put(ctx, docTold, key, true, n.Now().Add(remembered)); err != nil {
				return err
			}
		}
	}
	return nil
}

// Run tells what is owed until ctx ends. One server does, the one that leads. A
// service that does not answer holds up no other.
func (n *Notifier) Run(ctx context.Context) {
	var all sync.WaitGroup
	for _, target := range n.names() {
		all.Go(func() {
			tick := time.NewTicker(cmp.Or(n.Pause, 2*time.Second))
			defer tick.Stop()
			for {
				n.work(ctx, target)
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

// names are the targets, and "": those that the configuration has no more.
func (n *Notifier) names() []string { return append(slices.Collect(maps.Keys(n.Targets)), "") }

// Work tells once what is due.
func (n *Notifier) Work(ctx context.Context) {
	for _, target := range n.names() {
		n.work(ctx, target)
	}
}

// targetOf is the target that an owed message's key names; empty where there is
// none of that name any more.
func (n *Notifier) targetOf(key string) (found string) {
	for name := range n.Targets {
		if strings.HasPrefix(key, name+"/") && len(name) > len(found) {
			found = name
		}
	}
	return found
}

// work tells one target what is due.
func (n *Notifier) work(ctx context.Context, target string) {
	keys, err := n.Docs.Keys(ctx, docOwed, n.Now())
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
		var o owed
		if ok, err := n.Docs.Get(ctx, docOwed, key, n.Now(), &o); err != nil || !ok || n.Now().Before(o.Next) || ctx.Err() != nil {
			continue
		}
		var err error = errGone
		if to, known := n.Targets[target]; known {
			err = n.send(ctx, to, o.Message)
		}
		if err != nil && ctx.Err() != nil {
			return // stopped in the middle: the next server tells
		}
		switch {
		case err == nil:
		case errors.Is(err, errGone) || n.Now().Sub(o.Since) > giveUp:
			n.Log.Error("notify: given up", "target", o.Target, "message", o.Message.Key, "error", err)
		default:
			o.Tries++
			wait := min(firstAgain<<min(o.Tries-1, 12), longestAgain)
			if late := new(laterError); errors.As(err, &late) {
				wait = max(wait, late.after)
			}
			o.Next = n.Now().Add(wait)
			n.Log.Warn("notify: not taken, tried again", "target", o.Target, "message", o.Message.Key, "in", wait, "error", err)
			if err := n.Docs.Put(ctx, docOwed, key, o, o.Since.Add(kept)); err != nil {
				n.Log.Warn("notify: not written down", "error", err)
			}
			continue
		}
		// What was taken is not told again by the next server, where this one is just stopping.
		if err := n.Docs.Delete(context.WithoutCancel(ctx), docOwed, key); err != nil {
			n.Log.Warn("notify: not written down", "error", err)
		}
	}
}

// A Backlog is what a target is still to be told.
type Backlog struct {
	Target, Kind string
	Messages     int
	Oldest       time.Time // since when the oldest is owed; zero: nothing is
}

// Backlogs are those of all targets.
func (n *Notifier) Backlogs(ctx context.Context) ([]Backlog, error) {
	owed, err := n.Docs.Expiries(ctx, docOwed, n.Now())
	if err != nil {
		return nil, err
	}
	by := map[string]Backlog{}
	for key, expires := range owed {
		target := n.targetOf(key)
		b := by[target]
		b.Messages++
		if since := expires.Add(-kept); b.Oldest.IsZero() || since.Before(b.Oldest) {
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
