package store

import (
	"context"
	"database/sql"
	"sync"
)

// Requests that arrive at the same time are stored in one transaction, so that each
// waits for one disk write and not for those of all requests before it.

// A pendingRequest waits to be stored.
type pendingRequest struct {
	r     SlackRequest
	fresh bool
	err   error
	done  chan struct{}
}

// An acceptQueue holds the pending requests. writing reports whether a goroutine is
// storing them.
type acceptQueue struct {
	mu      sync.Mutex
	waiting []*pendingRequest
	writing bool
}

// Accept stores r and reports whether it is new: a request with a known key is not
// stored again.
func (s *Slack) Accept(ctx context.Context, r SlackRequest) (fresh bool, err error) {
	a := &pendingRequest{r: r, done: make(chan struct{})}
	q := s.accepts
	q.mu.Lock()
	q.waiting = append(q.waiting, a)
	if !q.writing {
		q.writing = true
		go s.writeAccepted()
	}
	q.mu.Unlock()
	select {
	case <-a.done:
		return a.fresh, a.err
	case <-ctx.Done():
		return false, ctx.Err() // it may still be stored; its key prevents a duplicate
	}
}

// writeAccepted stores the pending requests until there are none.
func (s *Slack) writeAccepted() {
	q := s.accepts
	for {
		q.mu.Lock()
		list := q.waiting
		q.waiting = nil
		q.writing = len(list) > 0
		q.mu.Unlock()
		if len(list) == 0 {
			return
		}
		err := s.acceptAll(list)
		for _, a := range list {
			if err != nil && len(list) > 1 {
				a.err = s.acceptAll([]*pendingRequest{a}) // a request that cannot be stored must not fail the others
			} else {
				a.err = err
			}
			a.fresh = a.fresh && a.err == nil
			close(a.done)
		}
	}
}

// acceptAll stores all of list, or nothing. It uses a context of its own, so that a
// caller that stops waiting does not cancel the other requests.
func (s *Slack) acceptAll(list []*pendingRequest) error {
	ctx := context.Background()
	return s.tx(ctx, func(tx *sql.Tx) error {
		for _, a := range list {
			res, err := tx.ExecContext(ctx, s.rebind(`INSERT INTO slack_inbox (key, body, at) VALUES (?, ?, ?) ON CONFLICT (key) DO NOTHING`),
				a.r.Key, a.r.Body, millis(a.r.At))
			if err != nil {
				return err
			}
			n, err := res.RowsAffected()
			if err != nil {
				return err
			}
			a.fresh = n == 1
		}
		return nil
	})
}
