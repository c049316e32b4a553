package store

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/store/pgtest"
)

// postgresURL is the server that TestMain started, or empty if Debian's postgresql
// package is not installed.
var postgresURL string

func TestMain(m *testing.M) {
	url, stop, err := pgtest.Up()
	postgresURL = url
	if err != nil && os.Getenv("CI") == "true" {
		fmt.Fprintln(os.Stderr, "CI promises PostgreSQL:", err)
		os.Exit(1)
	}
	code := m.Run()
	stop()
	os.Exit(code)
}

// needPostgres returns the URL of the server, or skips the test with the reason.
func needPostgres(t *testing.T) string {
	t.Helper()
	if postgresURL == "" {
		t.Skip("PostgreSQL is not installed: apt-get install postgresql, or run `make setup`")
	}
	return postgresURL
}

// A leader keeps its lease however busy its store is, and hundreds of requests at once
// leave room for other servers.
func TestRequestsDoNotTakeAllConnections(t *testing.T) {
	s, err := Open(t.Context(), freshPostgres(t))
	require.NoError(t, err)
	t.Cleanup(func() { s.Close() })
	lease := s.Lease("leader", "a")
	busy, done := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for range 200 {
		all.Go(func() {
			_, _ = s.exec(busy, `SELECT pg_sleep(60)`)
		})
	}
	connections := func() (n int) {
		require.NoError(t, lease.store.row(t.Context(),
			`SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() AND backend_type = 'client backend'`).Scan(&n))
		return n
	}
	require.Eventually(t, func() bool { return connections() == maxConnections+1 }, 30*time.Second, 50*time.Millisecond)
	renewed, err := lease.Renew(t.Context(), time.Minute)
	require.NoError(t, err)
	require.True(t, renewed)
	require.Equal(t, maxConnections+1, connections())
	done()
	all.Wait()
}

// BenchmarkBurst is 64 writers at once, as when many people type.
func BenchmarkBurst(b *testing.B) {
	if postgresURL == "" {
		b.Skip("PostgreSQL is not installed: apt-get install postgresql")
	}
	s, err := Open(b.Context(), postgresURL)
	require.NoError(b, err)
	defer s.Close()
	for b.Loop() {
		var all sync.WaitGroup
		for i := range 64 {
			all.Go(func() {
				if err := s.Slack().Put(b.Context(), "burst", fmt.Sprint(i), true, time.Time{}); err != nil {
					b.Error(err)
				}
			})
		}
		all.Wait()
	}
}
