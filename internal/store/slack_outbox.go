package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// Enqueue queues messages, all or none.
func (s *Slack) Enqueue(ctx context.Context, owed ...SlackMessage) error {
	return s.tx(ctx, func(tx *sql.Tx) error {
		for _, m := range owed {
			if err := s.enqueue(ctx, tx, m); err != nil {
				return err
			}
		}
		return nil
	})
}

func (s *Slack) enqueue(ctx context.Context, tx *sql.Tx, m SlackMessage) error {
	if m.Collapse != "" {
		// Never replace a message whose send has begun: its result is not known. The
		// earlier of both times holds, so that an urgent change is not kept waiting.
		res, err := tx.ExecContext(ctx, s.rebind(`UPDATE slack_outbox
			SET body = ?, not_before = CASE WHEN not_before < ? THEN not_before ELSE ? END
			WHERE collapse = ? AND state = 'due' AND tried = 0`),
			m.Body, millis(m.NotBefore), millis(m.NotBefore), m.Collapse)
		if err != nil {
			return err
		}
		if n, err := res.RowsAffected(); err != nil || n > 0 {
			return err
		}
	}
	_, err := tx.ExecContext(ctx, s.rebind(`INSERT INTO slack_outbox (key, lane, collapse, body, not_before, queued)
		VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (key) DO NOTHING`),
		m.Key, m.Lane, m.Collapse, m.Body, millis(m.NotBefore), millis(m.Queued))
	return err
}

// messages reads rows of the outbox; body is what stands for their body.
func (s *Slack) messages(ctx context.Context, body, query string, args ...any) (list []SlackMessage, err error) {
	rows, err := s.query(ctx, `SELECT id, key, lane, collapse, `+body+`, not_before, attempts, tried, error, queued FROM slack_outbox o `+query, args...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var m SlackMessage
		var notBefore, tried, queued int64
		if err := rows.Scan(&m.ID, &m.Key, &m.Lane, &m.Collapse, &m.Body, &notBefore, &m.Attempts, &tried, &m.Error, &queued); err != nil {
			return nil, err
		}
		m.NotBefore, m.Tried, m.Queued = fromMillis(notBefore), fromMillis(tried), fromMillis(queued)
		list = append(list, m)
	}
	return list, rows.Err()
}

// largeBody is what Due does not read: the body of a file is for whoever sends it.
const largeBody = 64 << 10

// Due lists the messages that may be sent now: the oldest of each lane, where
// its time has come. The body of a large one is empty here: Body reads it.
func (s *Slack) Due(ctx context.Context, now time.Time, limit int) ([]SlackMessage, error) {
	small := fmt.Sprintf("CASE WHEN octet_length(body) > %d THEN '' ELSE body END", largeBody)
	return s.messages(ctx, small, `WHERE state = 'due' AND not_before <= ?
		AND NOT EXISTS (SELECT 1 FROM slack_outbox p WHERE p.state = 'due' AND p.lane = o.lane AND p.id < o.id)
		ORDER BY id LIMIT ?`, millis(now), limit)
}

// Body reads the body of a message; empty where it is gone.
func (s *Slack) Body(ctx context.Context, id int64) (body string, err error) {
	list, err := s.messages(ctx, "body", `WHERE id = ?`, id)
	if err != nil || len(list) == 0 {
		return "", err
	}
	return list[0].Body, nil
}

// Trying notes that a send of m begins. It reports false where m has been
// replaced since it was read: what stands there now is to be sent instead.
func (s *Slack) Trying(ctx context.Context, m SlackMessage, now time.Time) (ok bool, err error) {
	res, err := s.exec(ctx, `UPDATE slack_outbox
		SET attempts = attempts + 1, tried = CASE tried WHEN 0 THEN ? ELSE tried END WHERE id = ? AND body = ?`, millis(now), m.ID, m.Body)
	if err != nil {
		return false, err
	}
	n, err := res.RowsAffected()
	return n == 1, err
}

// Sent notes that the message reached Slack, and where it is.
func (s *Slack) Sent(ctx context.Context, m SlackMessage, at SlackRef) error {
	return s.tx(ctx, func(tx *sql.Tx) error {
		if at.TS != "" {
			if _, err := tx.ExecContext(ctx, s.rebind(`INSERT INTO slack_refs (key, channel, ts) VALUES (?, ?, ?)
				ON CONFLICT (key) DO UPDATE SET channel = excluded.channel, ts = excluded.ts`), m.Key, at.Channel, at.TS); err != nil {
				return err
			}
		}
		// The row stays, without its text, so that its key is not taken again.
		_, err := tx.ExecContext(ctx, s.rebind(`UPDATE slack_outbox SET state = 'sent', body = '', error = '' WHERE id = ?`), m.ID)
		return err
	})
}

// Later puts the message off. settled says that Slack surely did not take it,
// so that it may still be replaced.
func (s *Slack) Later(ctx context.Context, id int64, until time.Time, why string, settled bool) error {
	_, err := s.exec(ctx, `UPDATE slack_outbox SET not_before = ?, error = ?,
		tried = CASE WHEN ? THEN 0 ELSE tried END WHERE id = ?`, millis(until), why, settled, id)
	return err
}

// Bury gives the message up: Slack will never take it. Buried lists such.
func (s *Slack) Bury(ctx context.Context, id int64, why string) error {
	_, err := s.exec(ctx, `UPDATE slack_outbox SET state = 'dead', error = ? WHERE id = ?`, why, id)
	return err
}

// Buried lists the messages that were given up, newest first.
func (s *Slack) Buried(ctx context.Context, limit int) ([]SlackMessage, error) {
	return s.messages(ctx, "body", `WHERE state = 'dead' ORDER BY id DESC LIMIT ?`, limit)
}

// Backlog counts the messages that are still owed, and tells since when the
// oldest of them is; the zero time: none is.
func (s *Slack) Backlog(ctx context.Context) (n int, oldest time.Time, err error) {
	var queued int64
	err = s.row(ctx, `SELECT COUNT(*), COALESCE(MIN(queued), 0) FROM slack_outbox WHERE state = 'due'`).Scan(&n, &queued)
	if n > 0 {
		oldest = fromMillis(queued)
	}
	return n, oldest, err
}

// Ref returns where the message of that key is; ok is false while it is not
// sent.
func (s *Slack) Ref(ctx context.Context, key string) (r SlackRef, ok bool, err error) {
	err = s.row(ctx, `SELECT channel, ts FROM slack_refs WHERE key = ?`, key).Scan(&r.Channel, &r.TS)
	if errors.Is(err, sql.ErrNoRows) {
		return SlackRef{}, false, nil
	}
	return r, err == nil, err
}

// Gone reports whether no message of the given keys is sent, or will be: all
// were given up, or are not known.
func (s *Slack) Gone(ctx context.Context, keys ...string) (bool, error) {
	for _, key := range keys {
		var state string
		err := s.row(ctx, `SELECT state FROM slack_outbox WHERE key = ?`, key).Scan(&state)
		if errors.Is(err, sql.ErrNoRows) || err == nil && state == "dead" {
			continue
		}
		return false, err
	}
	return true, nil
}

// Find returns the key of the message that is at that place.
func (s *Slack) Find(ctx context.Context, at SlackRef) (key string, ok bool, err error) {
	err = s.row(ctx, `SELECT key FROM slack_refs WHERE channel = ? AND ts = ?`, at.Channel, at.TS).Scan(&key)
	if errors.Is(err, sql.ErrNoRows) {
		return "", false, nil
	}
	return key, err == nil, err
}
