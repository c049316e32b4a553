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
		// Never replace a message with an attempt: its result is unknown. Keep the
		// earlier of both times, so that an urgent change is not delayed.
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

// messages reads rows of the outbox. body is the SQL expression for their body.
func (s *Slack) messages(ctx context.Context, body, query string, args ...any) ([]SlackMessage, error) {
	return collect(ctx, s.Store, func(row scanner) (m SlackMessage, err error) {
		var notBefore, tried, queued int64
		err = row.Scan(&m.ID, &m.Key, &m.Lane, &m.Collapse, &m.Body, &notBefore, &m.Attempts, &tried, &m.Error, &queued)
		m.NotBefore, m.Tried, m.Queued = fromMillis(notBefore), fromMillis(tried), fromMillis(queued)
		return m, err
	}, `SELECT id, key, lane, collapse, `+body+`, not_before, attempts, tried, error, queued FROM slack_outbox o `+query, args...)
}

// largeBody is the size from which Due does not read a body, such as a file's; the
// sender reads it.
const largeBody = 64 << 10

// Due lists the messages that may be sent now: the oldest of each lane, if its time has
// come. The body of a large message is empty: Body reads it.
func (s *Slack) Due(ctx context.Context, now time.Time, limit int) ([]SlackMessage, error) {
	small := fmt.Sprintf("CASE WHEN octet_length(body) > %d THEN '' ELSE body END", largeBody)
	return s.messages(ctx, small, `WHERE state = 'due' AND not_before <= ?
		AND NOT EXISTS (SELECT 1 FROM slack_outbox p WHERE p.state = 'due' AND p.lane = o.lane AND p.id < o.id)
		ORDER BY id LIMIT ?`, millis(now), limit)
}

// Body returns the body of a message, or "" if the message is gone.
func (s *Slack) Body(ctx context.Context, id int64) (body string, err error) {
	list, err := s.messages(ctx, "body", `WHERE id = ?`, id)
	if err != nil || len(list) == 0 {
		return "", err
	}
	return list[0].Body, nil
}

// Trying records that an attempt to send m starts. It returns false if m was replaced
// since it was read: then send the new one instead.
func (s *Slack) Trying(ctx context.Context, m SlackMessage, now time.Time) (ok bool, err error) {
	return s.changed(ctx, `UPDATE slack_outbox
		SET attempts = attempts + 1, tried = CASE tried WHEN 0 THEN ? ELSE tried END WHERE id = ? AND body = ?`, millis(now), m.ID, m.Body)
}

// Sent records that the message reached Slack, and where it is.
func (s *Slack) Sent(ctx context.Context, m SlackMessage, at SlackRef) error {
	return s.tx(ctx, func(tx *sql.Tx) error {
		if at.TS != "" {
			if _, err := tx.ExecContext(ctx, s.rebind(`INSERT INTO slack_refs (key, channel, ts) VALUES (?, ?, ?)
				ON CONFLICT (key) DO UPDATE SET channel = excluded.channel, ts = excluded.ts`), m.Key, at.Channel, at.TS); err != nil {
				return err
			}
		}
		// Keep the row without its text, so that its key is not accepted again.
		_, err := tx.ExecContext(ctx, s.rebind(`UPDATE slack_outbox SET state = 'sent', body = '' WHERE id = ?`), m.ID)
		return err
	})
}

// Later delays the message. settled says that Slack surely did not accept it, so that
// it may still be replaced.
func (s *Slack) Later(ctx context.Context, id int64, until time.Time, why string, settled bool) error {
	_, err := s.exec(ctx, `UPDATE slack_outbox SET not_before = ?, error = ?,
		tried = CASE WHEN ? THEN 0 ELSE tried END WHERE id = ?`, millis(until), why, settled, id)
	return err
}

// Bury gives up the message: Slack will never accept it. Buried lists such messages.
func (s *Slack) Bury(ctx context.Context, id int64, why string) error {
	_, err := s.exec(ctx, `UPDATE slack_outbox SET state = 'dead', error = ? WHERE id = ?`, why, id)
	return err
}

// Buried lists the messages that were given up, newest first.
func (s *Slack) Buried(ctx context.Context, limit int) ([]SlackMessage, error) {
	return s.messages(ctx, "body", `WHERE state = 'dead' ORDER BY id DESC LIMIT ?`, limit)
}

// Backlog returns the number of messages to be sent and when the oldest was queued; the
// zero time: there are none.
func (s *Slack) Backlog(ctx context.Context) (n int, oldest time.Time, err error) {
	var queued int64
	err = s.row(ctx, `SELECT COUNT(*), COALESCE(MIN(queued), 0) FROM slack_outbox WHERE state = 'due'`).Scan(&n, &queued)
	if n > 0 {
		oldest = fromMillis(queued)
	}
	return n, oldest, err
}

// Ref returns where the message of that key is. ok is false while it is not sent.
func (s *Slack) Ref(ctx context.Context, key string) (r SlackRef, ok bool, err error) {
	err = s.row(ctx, `SELECT channel, ts FROM slack_refs WHERE key = ?`, key).Scan(&r.Channel, &r.TS)
	if errors.Is(err, sql.ErrNoRows) {
		return SlackRef{}, false, nil
	}
	return r, err == nil, err
}

// UnderWay reports whether a message was handed to Slack since then whose place is not stored yet:
// somebody may read it, and Find does not know it.
func (s *Slack) UnderWay(ctx context.Context, since time.Time) (some bool, err error) {
	err = s.row(ctx, `SELECT EXISTS (SELECT 1 FROM slack_outbox WHERE state = 'due' AND tried >= ?)`, millis(since)).Scan(&some)
	return some, err
}

// Gone reports whether none of the keys belongs to a message that was or will be sent:
// each was given up or is unknown.
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

// Find returns the key of the message at that place.
func (s *Slack) Find(ctx context.Context, at SlackRef) (key string, ok bool, err error) {
	err = s.row(ctx, `SELECT key FROM slack_refs WHERE channel = ? AND ts = ?`, at.Channel, at.TS).Scan(&key)
	if errors.Is(err, sql.ErrNoRows) {
		return "", false, nil
	}
	return key, err == nil, err
}
