// Package store keeps what must survive the process: submissions with their idempotency
// keys, the audit trail, and the state of the surfaces. SQLite is the default; a URL
// selects PostgreSQL. The SQL is the same for both.
package store

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/lang"
)

// ErrNotFound says that no row has the key.
var ErrNotFound = lang.Text{EN: "not in the store", ZH: "数据库中没有记录"}.Err()

// A Store is an open database, safe for concurrent use.
type Store struct {
	db       *sql.DB
	leases   *sql.DB // the leases' own connection to PostgreSQL; db for SQLite
	postgres bool
	path     string // of the SQLite file
	accepts  acceptQueue
	head     head
}

// Open opens the database that url names: a postgres:// URL, or the path of a SQLite
// file, which it creates with its folder if needed. It migrates the schema, and refuses
// a schema that is newer than this program. A postgres:// URL needs the driver pgx
// (github.com/jackc/pgx/v5/stdlib), which the program imports.
func Open(ctx context.Context, url string) (*Store, error) {
	s := &Store{postgres: strings.HasPrefix(url, "postgres://") || strings.HasPrefix(url, "postgresql://")}
	driver, dsn := "pgx", url
	if !s.postgres {
		if err := keepPrivate(url); err != nil {
			return nil, err
		}
		driver, dsn, s.path = "sqlite", sqliteDSN(url), url
	}
	db, err := sql.Open(driver, dsn)
	if err != nil {
		return nil, lang.Text{EN: "store %s: %s", ZH: "数据库 %s：%s"}.Err(redactURL(url), err)
	}
	s.db, s.leases = db, db
	if s.postgres {
		// A connection costs the server a process: it is kept, and hundreds of requests
		// at once share a few. They must not delay a renewal, or the leader changes.
		db.SetMaxOpenConns(maxConnections)
		db.SetMaxIdleConns(maxConnections)
		db.SetConnMaxIdleTime(5 * time.Minute)
		if s.leases, err = sql.Open(driver, dsn); err != nil {
			return nil, lang.Text{EN: "store %s: %s", ZH: "数据库 %s：%s"}.Err(redactURL(url), err)
		}
		s.leases.SetMaxOpenConns(1)
	} else {
		// One writer: SQLite serialises writes anyway, and a second connection would
		// only wait in the busy handler.
		db.SetMaxOpenConns(1)
	}
	if err := s.migrate(ctx); err != nil {
		_ = s.Close() // the migration's error says more
		return nil, lang.Text{EN: "store %s: %s", ZH: "数据库 %s：%s"}.Err(redactURL(url), err)
	}
	return s, nil
}

// maxConnections is the largest number of connections to PostgreSQL, which accepts 100
// from all servers by default.
const maxConnections = 16

// Close closes the database.
func (s *Store) Close() error {
	if s.leases != s.db {
		return errors.Join(s.db.Close(), s.leases.Close())
	}
	return s.db.Close()
}

// sqliteDSN asks for a write-ahead log that loses no acknowledged commit, or for a
// rollback journal on a network file system, where WAL's shared memory does not work.
func sqliteDSN(path string) string {
	journal := "WAL"
	if OnNetworkFS(filepath.Dir(path)) {
		journal = "DELETE"
	}
	return "file:" + path + "?_txlock=immediate" +
		"&_pragma=busy_timeout(10000)&_pragma=foreign_keys(1)" +
		"&_pragma=synchronous(FULL)&_pragma=journal_mode(" + journal + ")"
}

// redactURL removes the password from a database URL before it is shown.
func redactURL(url string) string {
	scheme, rest, ok := strings.Cut(url, "://")
	if !ok {
		return url
	}
	if at := strings.LastIndexByte(rest, '@'); at >= 0 {
		user, _, _ := strings.Cut(rest[:at], ":")
		rest = user + rest[at:]
	}
	return scheme + "://" + rest
}

// rebind writes the query's placeholders in the database's syntax.
func (s *Store) rebind(query string) string {
	if !s.postgres {
		return query
	}
	var b strings.Builder
	n := 0
	for _, r := range query {
		if r == '?' {
			n++
			b.WriteString("$" + strconv.Itoa(n))
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

func (s *Store) exec(ctx context.Context, query string, args ...any) (sql.Result, error) {
	res, err := s.db.ExecContext(ctx, s.rebind(query), args...)
	return res, s.advised(err)
}

func (s *Store) query(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	return s.db.QueryContext(ctx, s.rebind(query), args...)
}

func (s *Store) row(ctx context.Context, query string, args ...any) *sql.Row {
	return s.db.QueryRowContext(ctx, s.rebind(query), args...)
}

// changed runs a statement and reports whether it changed exactly one row.
func (s *Store) changed(ctx context.Context, query string, args ...any) (bool, error) {
	res, err := s.exec(ctx, query, args...)
	if err != nil {
		return false, err
	}
	n, err := res.RowsAffected()
	return n == 1, err
}

// tx runs f in one transaction.
func (s *Store) tx(ctx context.Context, f func(*sql.Tx) error) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := f(tx); err != nil {
		return s.advised(errors.Join(err, tx.Rollback()))
	}
	return s.advised(tx.Commit())
}

// collect returns the rows of a query, each read by scan.
func collect[T any](ctx context.Context, s *Store, scan func(scanner) (T, error), query string, args ...any) (list []T, err error) {
	rows, err := s.query(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		one, err := scan(rows)
		if err != nil {
			return nil, err
		}
		list = append(list, one)
	}
	return list, rows.Err()
}

// A scanner is a row of a query's result.
type scanner interface{ Scan(into ...any) error }

// millis is the stored form of a time: milliseconds since 1970, 0 for the zero time.
func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

func fromMillis(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}

// Ping returns an error if the database does not answer.
func (s *Store) Ping(ctx context.Context) error { return s.db.PingContext(ctx) }
