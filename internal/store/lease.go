package store

import (
	"context"
	"errors"
	"os"
	"syscall"
	"time"
)

// leaseSchema is who leads what, and until when by the database's own clock:
// those of several machines may differ.
const leaseSchema = `CREATE TABLE leases (
		name   TEXT PRIMARY KEY,
		holder TEXT NOT NULL,
		until  BIGINT NOT NULL
	);`

// A Lease is the right to lead, of which there is one for each name in a
// database. Of a SQLite file the right is a lock beside it, which ends with the
// process; of PostgreSQL it is a row that must be renewed.
type Lease struct {
	store  *Store
	name   string
	holder string
	lock   *os.File
}

// Lease returns the lease of that name for holder, who does not have it yet.
func (s *Store) Lease(name, holder string) *Lease {
	return &Lease{store: s, name: name, holder: holder}
}

// Renew takes or keeps the lease for that long and reports whether holder has it.
func (l *Lease) Renew(ctx context.Context, span time.Duration) (bool, error) {
	if !l.store.postgres {
		return l.renewLock()
	}
	const now = `CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT)`
	res, err := l.store.exec(ctx, `INSERT INTO leases (name, holder, until) VALUES (?, ?, `+now+` + ?)
		ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, until = excluded.until
		WHERE leases.holder = excluded.holder OR leases.until < `+now,
		l.name, l.holder, span.Milliseconds())
	if err != nil {
		return false, err
	}
	n, err := res.RowsAffected()
	return n == 1, err
}

func (l *Lease) renewLock() (bool, error) {
	if l.lock != nil {
		return true, nil
	}
	f, err := os.OpenFile(l.store.path+"."+l.name, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return false, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return false, nil
		}
		return false, err
	}
	l.lock = f
	return true, nil
}

// Resign gives the lease back, where holder has it.
func (l *Lease) Resign(ctx context.Context) error {
	if !l.store.postgres {
		if l.lock == nil {
			return nil
		}
		defer func() { l.lock = nil }()
		return l.lock.Close()
	}
	_, err := l.store.exec(ctx, `DELETE FROM leases WHERE name = ? AND holder = ?`, l.name, l.holder)
	return err
}
