package store

import (
	"context"
	"time"
)

// A Feedback is what was made of an answer: a person's verdict, or that there
// was none to give.
type Feedback struct {
	ID       int64     `json:"id"`
	At       time.Time `json:"at"`
	Surface  string    `json:"surface"`
	Who      string    `json:"who"`
	Verdict  string    `json:"verdict"`
	Question string    `json:"question"`
	Answer   string    `json:"answer,omitempty"`
}

// feedbackSchema is the migration that holds the verdicts.
const feedbackSchema = `CREATE TABLE feedback (
		id       SERIAL,
		at       BIGINT NOT NULL,
		surface  TEXT NOT NULL,
		who      TEXT NOT NULL,
		verdict  TEXT NOT NULL,
		question TEXT NOT NULL,
		answer   TEXT NOT NULL DEFAULT ''
	);
	CREATE INDEX feedback_verdict ON feedback (verdict, at)`

// AddFeedback writes a verdict down. Somebody's later verdict on the same
// question replaces the earlier one.
func (s *Store) AddFeedback(ctx context.Context, f Feedback) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // a committed transaction cannot be rolled back
	if _, err := tx.ExecContext(ctx, s.rebind(`DELETE FROM feedback WHERE who = ? AND question = ?`), f.Who, f.Question); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, s.rebind(`INSERT INTO feedback (at, surface, who, verdict, question, answer) VALUES (?, ?, ?, ?, ?, ?)`),
		millis(f.At), f.Surface, f.Who, f.Verdict, f.Question, f.Answer); err != nil {
		return err
	}
	return tx.Commit()
}

// Feedback returns the newest verdicts, at most limit, newest first.
func (s *Store) Feedback(ctx context.Context, limit int) ([]Feedback, error) {
	rows, err := s.query(ctx, `SELECT id, at, surface, who, verdict, question, answer FROM feedback ORDER BY at DESC, id DESC LIMIT ?`, limit)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var list []Feedback
	for rows.Next() {
		var f Feedback
		var at int64
		if err := rows.Scan(&f.ID, &at, &f.Surface, &f.Who, &f.Verdict, &f.Question, &f.Answer); err != nil {
			return nil, err
		}
		f.At = fromMillis(at)
		list = append(list, f)
	}
	return list, rows.Err()
}
