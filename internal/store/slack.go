package store

import (
	"context"
	"database/sql"
	"strconv"
	"time"
)

// A SlackRequest is a request that Slack delivered. It is stored before it is
// acknowledged.
type SlackRequest struct {
	Key  string // the same for every delivery of one request
	Body string
	At   time.Time
}

// A SlackMessage is a message to be sent to Slack.
type SlackMessage struct {
	ID int64
	// Key identifies the message permanently: a second message with the same key is
	// dropped.
	Key string
	// Messages of one lane are sent one after the other, oldest first.
	Lane string
	// A message replaces an unsent message with the same Collapse. Empty: it never
	// does.
	Collapse string
	Body     string
	// NotBefore delays the message; the zero time does not.
	NotBefore time.Time
	// Attempts counts the attempts to send it. An attempt without a recorded result may
	// or may not have reached Slack.
	Attempts int
	Tried    time.Time // when the first attempt started
	Error    string    // the last error
	Queued   time.Time
}

// A SlackRef is where Slack shows a sent message. Other messages refer to it by the
// message's key.
type SlackRef struct{ Channel, TS string }

// slackSchema is the bot's migration. Times are Unix milliseconds, 0 for none.
const slackSchema = `CREATE TABLE slack_inbox (
		key  TEXT PRIMARY KEY,
		body TEXT NOT NULL,
		at   BIGINT NOT NULL,
		done BIGINT NOT NULL DEFAULT 0
	);
	CREATE INDEX slack_inbox_open ON slack_inbox (done, at);
	CREATE TABLE slack_outbox (
		id         SERIAL,
		key        TEXT NOT NULL UNIQUE,
		lane       TEXT NOT NULL,
		collapse   TEXT NOT NULL,
		body       TEXT NOT NULL,
		not_before BIGINT NOT NULL,
		attempts   BIGINT NOT NULL DEFAULT 0,
		tried      BIGINT NOT NULL DEFAULT 0,
		error      TEXT NOT NULL DEFAULT '',
		queued     BIGINT NOT NULL,
		state      TEXT NOT NULL DEFAULT 'due'
	);
	CREATE INDEX slack_outbox_due ON slack_outbox (state, lane, id);
	CREATE TABLE slack_refs (
		key     TEXT PRIMARY KEY,
		channel TEXT NOT NULL,
		ts      TEXT NOT NULL
	);
	CREATE INDEX slack_refs_at ON slack_refs (channel, ts);
	CREATE TABLE slack_docs (
		kind    TEXT NOT NULL,
		key     TEXT NOT NULL,
		value   TEXT NOT NULL,
		expires BIGINT NOT NULL DEFAULT 0,
		PRIMARY KEY (kind, key)
	);`

// Slack is the bot's part of the database: the requests that it has accepted, the
// messages still to be sent, and small documents such as job cards, identity links and
// settings.
type Slack struct {
	*Store
	accepts *acceptQueue
}

// Slack returns the bot's part of s.
func (s *Store) Slack() *Slack { return &Slack{s, &s.accepts} }

// Unfinished lists the accepted requests without a result, oldest first.
func (s *Slack) Unfinished(ctx context.Context, limit int) ([]SlackRequest, error) {
	return collect(ctx, s.Store, func(row scanner) (r SlackRequest, err error) {
		var at int64
		err = row.Scan(&r.Key, &r.Body, &at)
		r.At = fromMillis(at)
		return r, err
	}, `SELECT key, body, at FROM slack_inbox WHERE done = 0 ORDER BY at LIMIT ?`, limit)
}

// Finish marks the request of that key as done and queues its answers, both or neither.
func (s *Slack) Finish(ctx context.Context, key string, at time.Time, owed ...SlackMessage) error {
	return s.tx(ctx, func(tx *sql.Tx) error {
		for _, m := range owed {
			if err := s.enqueue(ctx, tx, m); err != nil {
				return err
			}
		}
		// The body may contain what a person typed; from now on only the key is needed.
		_, err := tx.ExecContext(ctx, s.rebind(`UPDATE slack_inbox SET done = ?, body = '' WHERE key = ?`), millis(at), key)
		return err
	})
}

// Retention of what somebody may still ask for: why Slack refused a message, and where
// a message is, which a long-running or repeated job may still edit.
const (
	refusedKept = 30 * 24 * time.Hour
	refsKept    = 400 * 24 * time.Hour
)

// Sweep deletes requests and messages that were done before the given time, expired
// documents, and what is past its retention.
func (s *Slack) Sweep(ctx context.Context, before, now time.Time) error {
	return s.tx(ctx, func(tx *sql.Tx) error {
		for _, q := range []struct {
			sql string
			arg any
		}{
			{`DELETE FROM slack_inbox WHERE done > 0 AND done < ?`, millis(before)},
			{`DELETE FROM slack_outbox WHERE state = 'sent' AND queued < ?`, millis(before)},
			{`DELETE FROM slack_outbox WHERE state = 'dead' AND queued < ?`, millis(now.Add(-refusedKept))},
			{`DELETE FROM slack_docs WHERE expires > 0 AND expires < ?`, millis(now)},
			// A message's ts is the second of its posting, with a fraction after the
			// dot.
			{`DELETE FROM slack_refs WHERE ts < ?`, strconv.FormatInt(now.Add(-refsKept).Unix(), 10)},
		} {
			if _, err := tx.ExecContext(ctx, s.rebind(q.sql), q.arg); err != nil {
				return err
			}
		}
		return nil
	})
}
