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

// An Entry is one line of the audit trail. Digest chains it to the line before,
// so that a line cannot be changed or dropped unseen.
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
	Digest  string    `json:"digest"`
}

// digest is the chain's next link.
func (e Entry) digest(prev string) string {
	h := sha256.New()
	fmt.Fprintf(h, "%s|%d|%q|%q|%q|%q|%q|%q|%q", prev, millis(e.At), e.Surface, e.Who, e.Owner, e.Agent, e.Op, e.Input, e.Result)
	return hex.EncodeToString(h.Sum(nil))
}

// AddAudit appends e to the trail.
func (s *Store) AddAudit(ctx context.Context, e Entry) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // a committed transaction cannot be rolled back
	if s.postgres {
		if _, err := tx.ExecContext(ctx, `SELECT pg_advisory_xact_lock(7220432)`); err != nil {
			return err
		}
	}
	var prev string
	err = tx.QueryRowContext(ctx, `SELECT digest FROM audit ORDER BY id DESC LIMIT 1`).Scan(&prev)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	if _, err := tx.ExecContext(ctx, s.rebind(`INSERT INTO audit (at, surface, who, owner, agent, op, input, result, digest)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`),
		millis(e.At), e.Surface, e.Who, e.Owner, e.Agent, e.Op, e.Input, e.Result, e.digest(prev)); err != nil {
		return err
	}
	return tx.Commit()
}

// Audit returns the newest entries, at most limit, newest first.
func (s *Store) Audit(ctx context.Context, limit int) ([]Entry, error) {
	return s.entries(ctx, `SELECT id, at, surface, who, owner, agent, op, input, result, digest FROM audit ORDER BY id DESC LIMIT ?`, limit)
}

// VerifyAudit walks the whole trail and returns the id of the first entry that
// does not follow from the one before; 0 where all do.
func (s *Store) VerifyAudit(ctx context.Context) (broken int64, err error) {
	all, err := s.entries(ctx, `SELECT id, at, surface, who, owner, agent, op, input, result, digest FROM audit ORDER BY id`)
	if err != nil {
		return 0, err
	}
	prev := ""
	for _, e := range all {
		if e.digest(prev) != e.Digest {
			return e.ID, nil
		}
		prev = e.Digest
	}
	return 0, nil
}

func (s *Store) entries(ctx context.Context, query string, args ...any) ([]Entry, error) {
	rows, err := s.query(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var es []Entry
	for rows.Next() {
		var e Entry
		var at int64
		if err := rows.Scan(&e.ID, &at, &e.Surface, &e.Who, &e.Owner, &e.Agent, &e.Op, &e.Input, &e.Result, &e.Digest); err != nil {
			return nil, err
		}
		e.At = fromMillis(at)
		es = append(es, e)
	}
	return es, rows.Err()
}
