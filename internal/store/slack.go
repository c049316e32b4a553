package store

import (
	"context"
	"database/sql"
	"errors"
	"strconv"
	"time"
)

// A SlackRequest is one thing that Slack delivered, written down before it is
// acknowledged.
type SlackRequest struct {
	Key  string // equal for every delivery of the same request
	Body string
	At   time.Time
}

// A SlackMessage is something owed to Slack.
type SlackMessage struct {
	ID int64
	// Key names the message for good: a second message with the same key is not
	// taken.
	Key string
	// Messages of one lane go out one after the other, oldest first.
	Lane string
	// An unsent message with the same Collapse is replaced instead of followed.
	// Empty: never.
	Collapse string
	Body     string
	// NotBefore holds the message back; the zero time does not.
	NotBefore time.Time
	// Attempts counts the sends that began. One that began and was not settled has
	// an unknown result.
	Attempts int
	Tried    time.Time // when the first send began
	Error    string    // the last one
	Queued   time.Time
}

// A SlackRef is where a sent message is: other messages name it by its key.
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

// Slack is the bot's part of the database: the requests it has accepted, the
// messages it still owes, and small documents such as job cards, identity links
// and settings.
type Slack struct {
	*Store
	accepts *accepts
}

// Slack returns the bot's part of s.
func (s *Store) Slack() *Slack { return &Slack{s, &s.accepts} }

// tx runs f in one transaction.
func (s *Slack) tx(ctx context.Context, f func(*sql.Tx) error) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := f(tx); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}

// Unfinished lists the accepted requests whose work has no result yet, oldest
// first.
func (s *Slack) Unfinished(ctx context.Context, limit int) (list []SlackRequest, err error) {
	rows, err := s.query(ctx,
		`SELECT key, body, at FROM slack_inbox WHERE done = 0 ORDER BY at LIMIT ?`, limit)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var r SlackRequest
		var at int64
		if err := rows.Scan(&r.Key, &r.Body, &at); err != nil {
			return nil, err
		}
		r.At = fromMillis(at)
		list = append(list, r)
	}
	return list, rows.Err()
}

// Finish ends the request of that key and queues what it owes, both or neither.
func (s *Slack) Finish(ctx context.Context, key string, at time.Time, owed ...SlackMessage) error {
	return s.tx(ctx, func(tx *sql.Tx) error {
		for _, m := range owed {
			if err := s.enqueue(ctx, tx, m); err != nil {
				return err
			}
		}
		// The body may hold what a person typed; only the key is needed from here on.
		_, err := tx.ExecContext(ctx, s.rebind(`UPDATE slack_inbox SET done = ?, body = '' WHERE key = ?`), millis(at), key)
		return err
	})
}

// How long is kept what somebody may still ask for: why Slack refused a message, and
// where a message stands, which a job that runs or is repeated for long edits.
const (
	refusedKept = 30 * 24 * time.Hour
	refsKept    = 400 * 24 * time.Hour
)

// Sweep forgets requests and messages that were settled before the given time,
// documents that have expired, and what is older than anybody asks for.
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
			// A message's ts is the second in which it was posted, and more behind a dot.
			{`DELETE FROM slack_refs WHERE ts < ?`, strconv.FormatInt(now.Add(-refsKept).Unix(), 10)},
		} {
			if _, err := tx.ExecContext(ctx, s.rebind(q.sql), q.arg); err != nil {
				return err
			}
		}
		return nil
	})
}
