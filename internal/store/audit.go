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
	// Job is the job that was made or changed, Script the SHA-256 in hex of what was
	// submitted, and Agreed who said yes: "self", or an approver's name.
	Job    string `json:"job,omitempty"`
	Script string `json:"script_sha256,omitempty"`
	Agreed string `json:"agreed,omitempty"`
	Digest string `json:"digest"`

	form int // over which columns the digest goes
}

// The forms of an entry: until 0.1, and with the job, the script and who agreed.
const (
	firstForm = 1
	form      = 2
)

// digest is the chain's next link.
func (e Entry) digest(prev string) string {
	h := sha256.New()
	fmt.Fprintf(h, "%s|%d|%q|%q|%q|%q|%q|%q|%q", prev, millis(e.At), e.Surface, e.Who, e.Owner, e.Agent, e.Op, e.Input, e.Result)
	if e.form != firstForm {
		fmt.Fprintf(h, "|%d|%q|%q|%q", e.form, e.Job, e.Script, e.Agreed)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// AddAudit appends e to the trail, and notes in the head that it is the last.
func (s *Store) AddAudit(ctx context.Context, e Entry) error {
	s.head.turn.Lock() // the head is that of the last entry
	defer s.head.turn.Unlock()
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
	e.form = form
	e.Digest = e.digest(prev)
	err = tx.QueryRowContext(ctx, s.rebind(`INSERT INTO audit (at, surface, who, owner, agent, op, input, result, job, script, agreed, form, digest)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id`),
		millis(e.At), e.Surface, e.Who, e.Owner, e.Agent, e.Op, e.Input, e.Result, e.Job, e.Script, e.Agreed, e.form, e.Digest).Scan(&e.ID)
	if err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
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

// VerifyAudit walks the whole trail and returns the id of the first entry that
// does not follow from the one before, and then whether entries at its end are
// gone: those which the head knows. 0 and false where all is well.
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

// entries gives each row to see, until it says false.
func (s *Store) entries(ctx context.Context, see func(Entry) bool, query string, args ...any) error {
	rows, err := s.query(ctx, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var e Entry
		var at int64
		if err := rows.Scan(
			&e.ID,
			&at,
			&e.Surface,
			&e.Who,
			&e.Owner,
			&e.Agent,
			&e.Op,
			&e.Input,
			&e.Result,
			&e.Job,
			&e.Script,
			&e.Agreed,
			&e.form,
			&e.Digest,
		); err != nil {
			return err
		}
		e.At = fromMillis(at)
		if !see(e) {
			return nil
		}
	}
	return rows.Err()
}
