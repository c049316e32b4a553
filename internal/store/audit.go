package store

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"time"
)

// An Entry is one entry of the audit trail. Digest covers the digest of the entry
// before, so that changing or removing an entry is detectable.
type Entry struct {
	ID      int64     `json:"id"`
	At      time.Time `json:"at"`
	Surface string    `json:"surface"`
	Who     string    `json:"who"`
	Owner   string    `json:"user"`
	Agent   string    `json:"agent,omitempty"`
	Op      string    `json:"op"`
	Input   string    `json:"input"`
	Result  string    `json:"result"`
	// Job is the job that was created or changed, Script the SHA-256 in hex of the
	// submitted script, and Agreed who agreed: "self", or an approver's name.
	Job    string `json:"job,omitempty"`
	Script string `json:"script_sha256,omitempty"`
	Agreed string `json:"agreed,omitempty"`
	Digest string `json:"digest"`

	form int // which columns the digest covers
}

// The forms of an entry: until release 0.1, and since then with the job, the script and
// who agreed.
const (
	firstForm   = 1
	currentForm = 2
)

// digest returns the entry's digest, given the digest of the entry before.
func (e Entry) digest(prev string) string {
	h := sha256.New()
	fmt.Fprintf(h, "%s|%d|%q|%q|%q|%q|%q|%q|%q", prev, millis(e.At), e.Surface, e.Who, e.Owner, e.Agent, e.Op, e.Input, e.Result)
	if e.form != firstForm {
		fmt.Fprintf(h, "|%d|%q|%q|%q", e.form, e.Job, e.Script, e.Agreed)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// AddAudit appends e to the trail, and records it in the head as the last entry.
func (s *Store) AddAudit(ctx context.Context, e Entry) error {
	s.head.mu.Lock() // so that the head is written in the order of the entries
	defer s.head.mu.Unlock()
	err := s.tx(ctx, func(tx *sql.Tx) error {
		if s.postgres {
			if _, err := tx.ExecContext(ctx, `SELECT pg_advisory_xact_lock(7220432)`); err != nil {
				return err
			}
		}
		var prev string
		err := tx.QueryRowContext(ctx, `SELECT digest FROM audit ORDER BY id DESC LIMIT 1`).Scan(&prev)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		e.form = currentForm
		e.Digest = e.digest(prev)
		return tx.QueryRowContext(ctx, s.rebind(`INSERT INTO audit (at, surface, who, owner, agent, op, input, result, job, script, agreed, form, digest)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id`),
			millis(e.At), e.Surface, e.Who, e.Owner, e.Agent, e.Op, e.Input, e.Result, e.Job, e.Script, e.Agreed, e.form, e.Digest).Scan(&e.ID)
	})
	if err != nil {
		return err
	}
	return s.head.write(e)
}

const auditColumns = `id, at, surface, who, owner, agent, op, input, result, job, script, agreed, form, digest`

// Audit returns the newest entries, at most limit, newest first.
func (s *Store) Audit(ctx context.Context, limit int) ([]Entry, error) {
	var es []Entry
	err := s.entries(ctx, func(e Entry) bool { es = append(es, e); return true },
		`SELECT `+auditColumns+` FROM audit ORDER BY id DESC LIMIT ?`, limit)
	return es, err
}

// VerifyAudit checks the whole trail. broken is the id of the first entry that does not
// follow from the one before, or 0. cut reports whether entries at the end are missing
// that the head knows.
func (s *Store) VerifyAudit(ctx context.Context) (broken int64, cut bool, err error) {
	head, err := s.head.read()
	if err != nil {
		return 0, false, err
	}
	prev, seen := "", head.ID == 0
	err = s.entries(ctx, func(e Entry) bool {
		if e.digest(prev) != e.Digest {
			broken = e.ID
			return false
		}
		prev = e.Digest
		seen = seen || e.ID == head.ID && e.Digest == head.Digest
		return true
	}, `SELECT `+auditColumns+` FROM audit ORDER BY id`)
	return broken, err == nil && broken == 0 && !seen, err
}

// entries passes each row to visit until visit returns false.
func (s *Store) entries(ctx context.Context, visit func(Entry) bool, query string, args ...any) error {
	rows, err := s.query(ctx, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var e Entry
		var at int64
		err := rows.Scan(&e.ID, &at, &e.Surface, &e.Who, &e.Owner, &e.Agent, &e.Op, &e.Input, &e.Result,
			&e.Job, &e.Script, &e.Agreed, &e.form, &e.Digest)
		if err != nil {
			return err
		}
		e.At = fromMillis(at)
		if !visit(e) {
			return nil
		}
	}
	return rows.Err()
}
