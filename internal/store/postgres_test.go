package store

import (
	"fmt"
	"os"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib"

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
