package lead

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// A seat is a lease that uses the test's clock. Several servers hold it in turn.
type seat struct {
	mu     sync.Mutex
	holder *chair
	until  time.Time
}

type chair struct {
	*seat
	away  bool        // the database refuses it
	hangs atomic.Bool // the database does not answer it
}

func (c *chair) Renew(ctx context.Context, span time.Duration) (bool, error) {
	if c.hangs.Load() {
		<-ctx.Done()
		return false, ctx.Err()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.away:
		return false, errors.New("connection refused")
	case c.holder != nil && c.holder != c && time.Now().Before(c.until):
		return false, nil
	}
	c.holder, c.until = c, time.Now().Add(span)
	return true, nil
}

func (c *chair) Resign(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.away {
		return errors.New("connection refused")
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if c.holder == c {
		c.holder = nil
	}
	return nil
}

func (c *chair) cut(away bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.away = away
}

func TestOneLeadsAndTheOtherTakesOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s seat
		var mu sync.Mutex
		at, most := 0, 0
		work := func(ctx context.Context) {
			mu.Lock()
			at++
			most = max(most, at)
			mu.Unlock()
			<-ctx.Done()
			mu.Lock()
			at--
			mu.Unlock()
		}
		chairs := []*chair{{seat: &s}, {seat: &s}}
		var leaders []*Leader
		ctx, stop := context.WithCancel(t.Context())
		var all sync.WaitGroup
		for _, c := range chairs {
			l := &Leader{Lease: c, Log: slog.New(slog.DiscardHandler)}
			leaders = append(leaders, l)
			all.Go(func() { l.Run(ctx, work) })
			synctest.Wait()
		}
		require.True(t, leaders[0].Leads())
		time.Sleep(time.Minute)
		require.True(t, leaders[0].Leads(), "it stays who it is")
		require.False(t, leaders[1].Leads())

		// The leader loses the database: it stops before the other one starts.
		chairs[0].cut(true)
		time.Sleep(15 * time.Second)
		require.False(t, leaders[0].Leads())
		require.True(t, leaders[1].Leads())
		chairs[0].cut(false)
		time.Sleep(time.Minute)
		require.True(t, leaders[1].Leads())

		stop()
		all.Wait()
		require.Equal(t, 1, most, "never two at once")
		require.Nil(t, s.holder, "given back at the end")
	})
}

// A journal collects the messages of a server's log.
type journal struct {
	slog.Handler
	lines []string
}

func (j *journal) Enabled(context.Context, slog.Level) bool { return true }

func (j *journal) Handle(_ context.Context, r slog.Record) error {
	j.lines = append(j.lines, r.Message)
	return nil
}

// An operator reads in each server's log who leads and why it does not lead, each only
// once.
func TestTheLogSaysWhoLeads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s seat
		chairs, logs, leaders := []*chair{{seat: &s}, {seat: &s}}, []*journal{{}, {}}, []*Leader{}
		ctx, stop := context.WithCancel(t.Context())
		var all sync.WaitGroup
		for i, c := range chairs {
			l := &Leader{Lease: c, Log: slog.New(logs[i])}
			leaders = append(leaders, l)
			all.Go(func() { l.Run(ctx, func(ctx context.Context) { <-ctx.Done() }) })
			synctest.Wait()
		}
		// The database is lost before the lease was renewed even once: the leader still
		// gives up in time.
		chairs[0].cut(true)
		time.Sleep(9 * time.Second)
		require.False(t, leaders[0].Leads())
		time.Sleep(6 * time.Second)
		require.True(t, leaders[1].Leads())
		chairs[0].cut(false)
		time.Sleep(time.Minute)
		stop()
		all.Wait()
		require.Equal(t, []string{
			"this server leads",
			"the lease could not be renewed",
			"the lease could not be renewed",
			"this server leads no more",
			"the lease could not be given back",
			"who leads could not be settled",
			"another server leads; this one stands by",
		}, logs[0].lines)
		require.Equal(t, []string{"another server leads; this one stands by", "this server leads"}, logs[1].lines)
	})
}

// A store that stays away, as on a full disk, is reported once a minute, and not with
// every attempt.
func TestALostStoreIsReportedOnceAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log journal
		c := &chair{seat: &seat{}, away: true}
		ctx, stop := context.WithCancel(t.Context())
		var run sync.WaitGroup
		run.Go(func() { (&Leader{Lease: c, Log: slog.New(&log)}).Run(ctx, func(ctx context.Context) { <-ctx.Done() }) })
		time.Sleep(3*time.Minute - time.Second)
		c.cut(false)
		time.Sleep(5 * time.Second)
		stop()
		run.Wait()
		lost := "who leads could not be settled"
		require.Equal(t, []string{lost, lost, lost, "this server leads"}, log.lines)
	})
}

// A leader that finds the lease held by another, for example after its machine was
// suspended, stops at once.
func TestALeaseInOtherHandsEndsTheTerm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := seat{}
		l := &Leader{Lease: &chair{seat: &s}, Log: slog.New(slog.DiscardHandler)}
		go l.Run(t.Context(), func(ctx context.Context) { <-ctx.Done() })
		synctest.Wait()
		require.True(t, l.Leads())
		s.mu.Lock()
		s.holder, s.until = &chair{seat: &s}, time.Now().Add(time.Hour)
		s.mu.Unlock()
		time.Sleep(4 * time.Second)
		require.False(t, l.Leads())
	})
}

// A server that is stopped while it asks for the lease stops without an error, whether
// it leads or not.
func TestStoppedWhileAsking(t *testing.T) {
	for name, wait := range map[string]time.Duration{"standing by": 0, "leading": 5 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			var s seat
			var log journal
			c := &chair{seat: &s}
			c.hangs.Store(wait == 0)
			ctx, stop := context.WithCancel(t.Context())
			var run sync.WaitGroup
			run.Go(func() {
				(&Leader{Lease: c, Log: slog.New(&log)}).Run(ctx, func(ctx context.Context) { <-ctx.Done() })
			})
			synctest.Wait()
			c.hangs.Store(true)
			time.Sleep(wait)
			stop()
			run.Wait()
			for _, line := range log.lines {
				require.NotContains(t, line, "could not", name)
			}
		})
	}
}
