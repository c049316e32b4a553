package store

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// What must be written down outlasts the restart of a database, but not its server's end.
func TestWhatMustBeWrittenIsTriedForFourMinutes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began, failures := time.Now(), 0
		away := errors.New("the database restarts")
		count := func(err error) {
			require.ErrorIs(t, err, away)
			failures++
		}
		answersAfter := func(d time.Duration) func() error {
			return func() error {
				if time.Since(began) < d {
					return away
				}
				return nil
			}
		}
		require.True(t, Insist(t.Context(), answersAfter(200*time.Second), count))
		require.Less(t, failures, 12)
		began = time.Now()
		require.False(t, Insist(t.Context(), answersAfter(time.Hour), count))
		require.InDelta(t, 4*time.Minute, time.Since(began), float64(40*time.Second))

		ctx, end := context.WithCancel(t.Context())
		began = time.Now()
		require.False(t, Insist(ctx, answersAfter(time.Hour), func(error) { end() }))
		require.False(t, Insist(ctx, func() error { return nil }, count), "what a server that ends has read may be cut off")
		require.Zero(t, time.Since(began))
	})
}
