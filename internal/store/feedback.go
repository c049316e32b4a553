package store

import (
	"context"
	"database/sql"
	"time"
)

// A Feedback is a reaction to an answer: a person's verdict, or that there was no
// answer.
type Feedback struct {
	ID       int64     `json:"id"`
	At       time.Time `json:"at"`
	Surface  string    `json:"surface"`
	Who      string    `json:"who"`
	Verdict  string    `json:"verdict"`
	Question string    `json:"question"`
	Answer   string    `json:"answer,omitempty"`
}

// feedbackSchema is the migration that creates the table of verdicts.
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

// AddFeedback stores a verdict. A person's later verdict on the same question replaces
// the earlier one.
func (s *Store) AddFeedback(ctx context.Context, f Feedback) error {
	return s.tx(ctx, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, s.rebind(`DELETE FROM feedback WHERE who = ? AND question = ?`), f.Who, f.Question); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, s.rebind(`INSERT INTO feedback (at, surface, who, verdict, question, answer) VALUES (?, ?, ?, ?, ?, ?)`),
			millis(f.At), f.Surface, f.Who, f.Verdict, f.Question, f.Answer)
		return err
	})
}

// Feedback returns the newest verdicts, at most limit, newest first.
func (s *Store) Feedback(ctx context.Context, limit int) ([]Feedback, error) {
	return collect(ctx, s, func(row scanner) (f Feedback, err error) {
		var at int64
		err = row.Scan(&f.ID, &at, &f.Surface, &f.Who, &f.Verdict, &f.Question, &f.Answer)
		f.At = fromMillis(at)
		return f, err
	}, `SELECT id, at, surface, who, verdict, question, answer FROM feedback ORDER BY at DESC, id DESC LIMIT ?`, limit)
}
