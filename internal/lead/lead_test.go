package lead

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// A seat is a lease whose clock is the test's; several hold it in turns.
type seat struct {
	mu     sync.Mutex
	holder *chair
	until  time.Time
}

type chair struct {
	*seat
	away bool // the database does not answer it
}

func (c *chair) Renew(_ context.Context, span time.Duration) (bool, error) {
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

func (c *chair) Resign(context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.away {
		return errors.New("connection refused")
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

		// The leader loses the database: it stops before the other begins.
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
