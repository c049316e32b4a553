package store

import (
	"database/sql"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// eachTwice runs a test on both databases, each opened twice, as two servers would.
func eachTwice(t *testing.T, test func(t *testing.T, a, b *Store)) {
	for name, url := range map[string]func(*testing.T) string{
		"sqlite":   func(t *testing.T) string { return filepath.Join(t.TempDir(), "state.db") },
		"postgres": freshPostgres,
	} {
		t.Run(name, func(t *testing.T) {
			url := url(t)
			open := func() *Store {
				s, err := Open(t.Context(), url)
				require.NoError(t, err)
				t.Cleanup(func() { s.Close() })
				return s
			}
			test(t, open(), open())
		})
	}
}

func TestOneHolderOfALease(t *testing.T) {
	eachTwice(t, func(t *testing.T, a, b *Store) {
		ctx := t.Context()
		renew := func(l *Lease, span time.Duration) bool {
			ok, err := l.Renew(ctx, span)
			require.NoError(t, err)
			return ok
		}
		first, second := a.Lease("leader", "a"), b.Lease("leader", "b")
		require.True(t, renew(first, time.Minute))
		require.False(t, renew(second, time.Minute))
		require.True(t, renew(first, time.Minute), "kept")
		require.True(t, renew(b.Lease("other", "b"), time.Minute), "another name is another lease")
		require.NoError(t, second.Resign(ctx), "what one has not, one can give back")
		require.False(t, renew(second, time.Minute))

		require.NoError(t, first.Resign(ctx))
		const short = 300 * time.Millisecond
		require.True(t, renew(second, short))
		require.False(t, renew(first, short))
		// Nobody renews it any more: its holder is stopped.
		require.Eventually(t, func() bool { return renew(first, short) }, 10*time.Second, short/3)
		require.False(t, renew(second, time.Minute), "going on, it finds itself replaced")
		require.False(t, renew(second, time.Minute), "and does not take it back")
		require.True(t, renew(first, time.Minute))
		require.True(t, renew(first, time.Minute))
		third := b.Lease("leader", "c")
		require.False(t, renew(third, time.Minute))
		require.NoError(t, first.Resign(ctx))
		require.True(t, renew(third, time.Minute))
	})
}

// A timestamp from another machine's clock is not trusted: a row of the year 3000 is
// taken over if nobody renews it, and one of 1970 is not while somebody does.
func TestNoOtherClockDecidesWhoLeads(t *testing.T) {
	eachTwice(t, func(t *testing.T, a, b *Store) {
		ctx := t.Context()
		for _, until := range []int64{1 << 45, 2} {
			_, err := a.exec(ctx, `DELETE FROM leases`)
			require.NoError(t, err)
			_, err = a.exec(ctx, `INSERT INTO leases (name, holder, until) VALUES ('leader', 'gone', ?)`, until)
			require.NoError(t, err)
			standby := b.Lease("leader", "standby")
			ok, err := standby.Renew(ctx, time.Minute)
			require.NoError(t, err)
			require.False(t, ok)
			for n := range int64(3) { // renewed by a clock that stands
				_, err = a.exec(ctx, `UPDATE leases SET until = ?`, until+2*n+2)
				require.NoError(t, err)
				ok, err = standby.Renew(ctx, time.Nanosecond)
				require.NoError(t, err)
				require.False(t, ok, "it has just been renewed")
			}
			ok, err = standby.Renew(ctx, time.Nanosecond)
			require.NoError(t, err)
			require.True(t, ok)
			ok, err = standby.Renew(ctx, time.Minute)
			require.NoError(t, err)
			require.True(t, ok, "kept")
			require.NoError(t, standby.Resign(ctx))
		}
	})
}

// With SQLite a process that has ended is replaced at once, even if another led
// meanwhile without its lock.
func TestAHolderThatIsGoneIsReplacedAtOnce(t *testing.T) {
	open := func(url string) *Store {
		s, err := Open(t.Context(), url)
		require.NoError(t, err)
		t.Cleanup(func() { s.Close() })
		return s
	}
	url := filepath.Join(t.TempDir(), "state.db")
	gone, next := open(url).Lease("leader", "gone"), open(url).Lease("leader", "next")
	ok, err := gone.Renew(t.Context(), time.Minute)
	require.NoError(t, err)
	require.True(t, ok)
	gone.unlock() // as its end does
	ok, err = next.Renew(t.Context(), time.Minute)
	require.NoError(t, err)
	require.True(t, ok)

	// An older server, which knows only the lock, leads until it ends.
	_, err = next.store.exec(t.Context(), `DELETE FROM leases`)
	require.NoError(t, err)
	late := open(url).Lease("leader", "late")
	for range 3 {
		ok, err = late.Renew(t.Context(), time.Nanosecond)
		require.NoError(t, err)
		require.False(t, ok)
	}
	next.unlock()
	ok, err = late.Renew(t.Context(), time.Minute)
	require.NoError(t, err)
	require.True(t, ok)
}

// Whoever finds a lease unchanged does not take it if its holder renews it at that moment.
func TestAHolderThatRenewsAtTheLastMomentKeepsItsLease(t *testing.T) {
	s, err := Open(t.Context(), filepath.Join(t.TempDir(), "state.db"))
	require.NoError(t, err)
	t.Cleanup(func() { s.Close() })
	_, err = s.exec(t.Context(), `INSERT INTO leases (name, holder, until) VALUES ('leader', 'holder', 2)`)
	require.NoError(t, err)
	_, err = s.exec(t.Context(), `CREATE TRIGGER meanwhile BEFORE INSERT ON leases BEGIN UPDATE leases SET until = until + 2; END`)
	require.NoError(t, err)
	standby := s.Lease("leader", "standby")
	for range 2 {
		ok, err := standby.Renew(t.Context(), 0)
		require.NoError(t, err)
		require.False(t, ok)
	}
	var holder string
	require.NoError(t, s.row(t.Context(), `SELECT holder FROM leases`).Scan(&holder))
	require.Equal(t, "holder", holder)
	require.Nil(t, standby.lock, "nor does it keep the lock from others")
}

// Two servers write at once, each with several requests: they wait for one another, and
// nothing is lost.
func TestManyWriteAtOnce(t *testing.T) {
	eachTwice(t, func(t *testing.T, a, b *Store) {
		var wg sync.WaitGroup
		for i, s := range []*Store{a, b, a, b, a, b} {
			wg.Go(func() {
				for n := range 20 {
					key := fmt.Sprintf("%d-%d", i, n)
					_, first, err := s.Begin(t.Context(), Submission{Key: key, Token: key, Cluster: "c", Name: "run", Spec: []byte("{}"), CreatedAt: noon})
					if err != nil || !first {
						t.Errorf("%s: %v %v", key, first, err)
					}
					if err := s.Slack().Enqueue(t.Context(), SlackMessage{Key: key, Lane: "l"}); err != nil {
						t.Errorf("%s: %v", key, err)
					}
					if err := s.AddAudit(t.Context(), Entry{At: noon, Surface: "shell", Who: key, Op: "submit"}); err != nil {
						t.Errorf("%s: %v", key, err)
					}
				}
			})
		}
		wg.Wait()
		all, err := a.Unfinished(t.Context())
		require.NoError(t, err)
		require.Len(t, all, 120)
		waiting, _, err := b.Slack().Backlog(t.Context())
		require.NoError(t, err)
		require.Equal(t, 120, waiting)
		broken, _, err := b.VerifyAudit(t.Context())
		require.NoError(t, err)
		require.Zero(t, broken, "the trail is one chain, whoever wrote")
	})
}

// What one server reads before it writes, no other changes in between.
func TestWhoeverBeginsAChangeIsAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	a, err := Open(t.Context(), path)
	require.NoError(t, err)
	t.Cleanup(func() { a.Close() })
	b, err := Open(t.Context(), path)
	require.NoError(t, err)
	t.Cleanup(func() { b.Close() })
	_, err = b.exec(t.Context(), `PRAGMA busy_timeout = 0`)
	require.NoError(t, err)
	put := func() error { return b.Slack().Put(t.Context(), "n", "n", 1, time.Time{}) }
	require.NoError(t, a.tx(t.Context(), func(*sql.Tx) error {
		require.ErrorContains(t, put(), "locked")
		return nil
	}))
	require.NoError(t, put())
	var synchronous int
	require.NoError(t, a.row(t.Context(), `PRAGMA synchronous`).Scan(&synchronous))
	require.Equal(t, 2, synchronous, "FULL: what was acknowledged outlives a crash of the machine")
}

// If several servers see that the same attempt has ended, only one makes the next.
func TestOneMakesTheNextAttempt(t *testing.T) {
	eachTwice(t, func(t *testing.T, a, b *Store) {
		_, _, err := a.Begin(t.Context(), Submission{Key: "k", Token: "t", Cluster: "c", Name: "run", Spec: []byte("{}"), CreatedAt: noon, Place: "one"})
		require.NoError(t, err)
		require.NoError(t, a.Finish(t.Context(), "k", Submitting, "", "it did not answer", noon))
		sub, err := b.Submission(t.Context(), "k")
		require.NoError(t, err)
		require.Equal(t, "one: it did not answer", sub.Place+": "+sub.Message)
		require.Equal(t, noon, sub.AttemptedAt)
		won := 0
		for _, s := range []*Store{a, b, a} {
			ok, err := s.Attempt(t.Context(), sub, "two", noon)
			require.NoError(t, err)
			if ok {
				won++
			}
		}
		require.Equal(t, 1, won)
		sub, err = b.Submission(t.Context(), "k")
		require.NoError(t, err)
		require.Equal(t, Submitting, sub.State)
		require.Equal(t, "two: ", sub.Place+": "+sub.Message, "the new attempt has no answer yet")
		require.NoError(t, a.Finish(t.Context(), "k", Submitted, "4711", "", noon))
		ok, err := b.Attempt(t.Context(), sub, "three", noon)
		require.NoError(t, err)
		require.False(t, ok, "it has become a job meanwhile")
	})
}
