package store

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"syscall"
	"time"
)

// leaseSchema records who holds which lease. until only has to differ from one renewal
// to the next: no other machine's clock is trusted.
const leaseSchema = `CREATE TABLE leases (
		name   TEXT PRIMARY KEY,
		holder TEXT NOT NULL,
		until  BIGINT NOT NULL
	);`

// A Lease is the right to lead, which one process per name in a database can hold. It
// is a row that must be renewed: a candidate watches the row, by its own clock, for as
// long as a lease lasts. For a SQLite file, a lock beside it, which ends with its
// process, also tells that the holder is gone.
type Lease struct {
	store  *Store
	name   string
	holder string
	lock   *os.File
	// seen is another holder's renewal, unchanged since then. since is read from this
	// process's monotonic clock, which changes of the machine's time do not affect.
	seen  renewal
	since time.Time
}

// A renewal is one renewal of a lease. until is odd if the holder has the lock too.
type renewal struct {
	holder string
	until  int64
}

// Lease returns the lease of that name for holder, who does not hold it yet.
func (s *Store) Lease(name, holder string) *Lease {
	own := &Store{db: s.leases, postgres: s.postgres, path: s.path}
	return &Lease{store: own, name: name, holder: holder}
}

// Renew takes or keeps the lease for span and reports whether holder holds it. A holder
// whose process is gone, with its lock, is replaced at once; any other when its row has
// not changed for span.
func (l *Lease) Renew(ctx context.Context, span time.Duration) (bool, error) {
	locked := l.lock != nil // held since an earlier renewal
	if err := l.takeLock(); err != nil {
		return false, err
	}
	var now renewal
	err := l.store.row(ctx, `SELECT holder, until FROM leases WHERE name = ?`, l.name).Scan(&now.holder, &now.until)
	none := errors.Is(err, sql.ErrNoRows)
	if err != nil && !none {
		return false, err
	}
	switch {
	case now.holder == l.holder:
	case none && l.store.postgres: // nobody ever held it, or it was resigned
	case !locked && l.lock != nil && (none || now.until%2 == 1): // the holder's process is gone
	case !locked && !none && now == l.seen && time.Since(l.since) >= span: // the holder has stopped renewing
	default:
		if now != l.seen {
			l.seen, l.since = now, time.Now()
		}
		l.unlock() // a lock held from before: this process was replaced while it was suspended
		return false, nil
	}
	// Release 0.2.0 reads until as a time on PostgreSQL. While newer servers replace
	// older ones, until is a valid time as far as the clocks agree.
	until := max(now.until, time.Now().Add(span).UnixMilli())&^1 + 2
	if l.lock != nil {
		until++
	}
	renewed, err := l.store.changed(ctx, `INSERT INTO leases (name, holder, until) VALUES (?, ?, ?)
		ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, until = excluded.until
		WHERE leases.holder = ? AND leases.until = ?`, l.name, l.holder, until, now.holder, now.until)
	if err == nil && !renewed {
		l.unlock()
	}
	return renewed, err
}

func (l *Lease) unlock() {
	if l.lock != nil {
		l.lock.Close()
		l.lock = nil
	}
}

// takeLock takes the lock beside the file if nobody has it.
func (l *Lease) takeLock() error {
	if l.lock != nil || l.store.postgres {
		return nil
	}
	f, err := os.OpenFile(l.store.path+"."+l.name, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil
		}
		return err
	}
	l.lock = f
	return nil
}

// Resign gives the lease back if holder has it.
func (l *Lease) Resign(ctx context.Context) error {
	defer l.unlock()
	_, err := l.store.exec(ctx, `DELETE FROM leases WHERE name = ? AND holder = ?`, l.name, l.holder)
	return err
}
