// Package lead elects a leader among several servers that share one database. Only the
// leader does what must be done once, such as polling a cluster for its jobs or sending
// queued messages. Another server takes over when the leader is gone.
package lead

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"
)

// lease is the right to lead; *store.Lease implements it.
type lease interface {
	Renew(ctx context.Context, span time.Duration) (bool, error)
	Resign(ctx context.Context) error
}

// A Leader is one server's part in the election.
type Leader struct {
	Lease lease
	Log   *slog.Logger
	// Span is the duration of the lease; zero: ten seconds. The leader renews it three
	// times per span, and stops leading a fifth of a span before another server could
	// take it.
	Span time.Duration

	leads atomic.Bool
}

// Leads reports whether this server leads now.
func (l *Leader) Leads() bool { return l.leads.Load() }

// Run calls work while this server leads, until ctx ends. work's context ends when the
// server no longer leads; work is called again when it leads once more.
func (l *Leader) Run(ctx context.Context, work func(context.Context)) {
	if l.Span == 0 {
		l.Span = 10 * time.Second
	}
	waits := false
	var told string // the last error, which a full disk or a lost database repeats
	var toldAt time.Time
	for ctx.Err() == nil {
		begin := time.Now()
		ours, err := l.Lease.Renew(ctx, l.Span)
		switch {
		case err != nil && ctx.Err() == nil:
			if err.Error() != told || time.Since(toldAt) >= repeatAfter {
				told, toldAt = err.Error(), time.Now()
				l.Log.Error("who leads could not be settled", "error", err)
			}
		case ours:
			l.Log.Info("this server leads")
			l.term(ctx, begin, work)
			waits, told = false, ""
		case !waits:
			l.Log.Info("another server leads; this one stands by")
			waits = true
		}
		select {
		case <-ctx.Done():
		case <-time.After(l.Span / 5):
		}
	}
}

// repeatAfter is how long after a report the same error is reported again.
const repeatAfter = time.Minute

// term lasts from taking the lease until it is lost or ctx ends.
func (l *Leader) term(ctx context.Context, begin time.Time, work func(context.Context)) {
	// The monotonic clock decides: a process that was suspended for a while stops
	// leading as soon as it resumes.
	held, lose := context.WithCancel(ctx)
	last := time.AfterFunc(time.Until(begin.Add(l.Span*4/5)), lose)
	done := make(chan struct{})
	l.leads.Store(true)
	go func() {
		defer close(done)
		work(held)
	}()
	for held.Err() == nil {
		select {
		case <-held.Done():
			continue
		case <-time.After(l.Span / 3):
		}
		begin := time.Now()
		ours, err := l.Lease.Renew(held, l.Span)
		switch {
		case err != nil && held.Err() == nil:
			l.Log.Error("the lease could not be renewed", "error", err)
		case err == nil && !ours:
			lose()
		case err == nil:
			if last.Stop() {
				last.Reset(time.Until(begin.Add(l.Span * 4 / 5)))
			}
		}
	}
	l.leads.Store(false)
	if ctx.Err() == nil {
		l.Log.Warn("this server leads no more")
	}
	<-done
	lose()
	// The next leader need not wait for the end of the span.
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	if err := l.Lease.Resign(end); err != nil {
		l.Log.Warn("the lease could not be given back", "error", err)
	}
}
