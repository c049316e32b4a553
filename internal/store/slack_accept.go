package store

import (
	"context"
	"database/sql"
	"sync"
)

// Requests that come at the same time are written in one transaction: each waits
// for one turn on the disk, not for one turn of everybody before it.

// An accepting is a request that waits to be written down.
type accepting struct {
	r     SlackRequest
	fresh bool
	err   error
	done  chan struct{}
}

// accepts are those that wait, and whether somebody writes.
type accepts struct {
	mu      sync.Mutex
	waiting []*accepting
	writing bool
}

// Accept writes r down and reports whether it is new: a request whose key was
// seen before is not taken again.
func (s *Slack) Accept(ctx context.Context, r SlackRequest) (fresh bool, err error) {
	a := &accepting{r: r, done: make(chan struct{})}
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
		return false, ctx.Err() // it may be written all the same: its key tells
	}
}

// writeAccepted writes all that wait, and those that came meanwhile, until none
// does.
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
				a.err = s.acceptAll([]*accepting{a}) // one that cannot be stored is nobody else's fault
			} else {
				a.err = err
			}
			a.fresh = a.fresh && a.err == nil
			close(a.done)
		}
	}
}

// acceptAll writes all of list, or nothing. Whoever gives up waiting does not
// take the others along.
func (s *Slack) acceptAll(list []*accepting) error {
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
