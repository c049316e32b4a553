package store

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"syscall"
	"time"
)

// leaseSchema is who leads what. until only has to differ from one renewal to the
// next: no clock of another machine is believed.
const leaseSchema = `CREATE TABLE leases (
		name   TEXT PRIMARY KEY,
		holder TEXT NOT NULL,
		until  BIGINT NOT NULL
	);`

// A Lease is the right to lead, of which there is one for each name in a
// database. It is a row that must be renewed: who would take it watches it, by its
// own clock, for as long as it is held. Of a SQLite file a lock beside it, which
// ends with the process, says besides that nobody is there any more.
type Lease struct {
	store  *Store
	name   string
	holder string
	lock   *os.File
	// seen is the row of another holder as it was since then, by this process's own
	// clock, which no change of the machine's moves.
	seen  row
	since time.Time
}

// A row is one renewal of a lease. until is odd where the holder has the lock too.
type row struct {
	holder string
	until  int64
}

// Lease returns the lease of that name for holder, who does not have it yet.
func (s *Store) Lease(name, holder string) *Lease {
	return &Lease{store: s, name: name, holder: holder}
}

// Renew takes or keeps the lease for that long and reports whether holder has it. A
// holder whose process is gone with its lock is replaced at once, any other when its
// row has stayed as it is for a span.
func (l *Lease) Renew(ctx context.Context, span time.Duration) (bool, error) {
	locked := l.lock != nil // since an earlier renewal
	if err := l.takeLock(); err != nil {
		return false, err
	}
	var now row
	err := l.store.row(ctx, `SELECT holder, until FROM leases WHERE name = ?`, l.name).Scan(&now.holder, &now.until)
	none := errors.Is(err, sql.ErrNoRows)
	if err != nil && !none {
		return false, err
	}
	switch {
	case now.holder == l.holder:
	case none && l.store.postgres: // nobody ever had it, or it was given back
	case !locked && l.lock != nil && (none || now.until%2 == 1): // whoever had it is gone
	case !locked && !none && now == l.seen && time.Since(l.since) >= span: // or is stopped
	default:
		if now != l.seen {
			l.seen, l.since = now, time.Now()
		}
		l.unlock() // held from before, it was replaced while this process was stopped
		return false, nil
	}
	// Release 0.2.0 reads it as a time on PostgreSQL: while servers are replaced by
	// newer ones it is one, where the clocks agree.
	until := max(now.until, time.Now().Add(span).UnixMilli())&^1 + 2
	if l.lock != nil {
		until++
	}
	res, err := l.store.exec(ctx, `INSERT INTO leases (name, holder, until) VALUES (?, ?, ?)
		ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, until = excluded.until
		WHERE leases.holder = ? AND leases.until = ?`, l.name, l.holder, until, now.holder, now.until)
	if err != nil {
		return false, err
	}
	n, err := res.RowsAffected()
	if n == 0 {
		l.unlock()
	}
	return n == 1, err
}

func (l *Lease) unlock() {
	if l.lock != nil {
		l.lock.Close()
		l.lock = nil
	}
}

// takeLock takes the lock beside the file, if nobody has it.
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

// Resign gives the lease back, where holder has it.
func (l *Lease) Resign(ctx context.Context) error {
	defer l.unlock()
	_, err := l.store.exec(ctx, `DELETE FROM leases WHERE name = ? AND holder = ?`, l.name, l.holder)
	return err
}
