package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/lang"
)

// Documents holds small values by kind and key, each until it expires. Of several callers
// Take gives a document to exactly one. Claim does too, and names the same owner to that
// caller when it asks again.
type Documents interface {
	Put(ctx context.Context, kind, key string, value any, expires time.Time) error
	Add(ctx context.Context, kind, key string, value any, now, expires time.Time) (added bool, err error)
	Get(ctx context.Context, kind, key string, now time.Time, value any) (ok bool, err error)
	Take(ctx context.Context, kind, key string, now time.Time, value any) (ok bool, err error)
	Replace(
		ctx context.Context, kind, key string, was json.RawMessage, value any, expires time.Time, owed ...SlackMessage,
	) (done bool, err error)
	Claim(ctx context.Context, kind, key, by string, expires time.Time) (owner string, err error)
	Delete(ctx context.Context, kind, key string) error
	Keys(ctx context.Context, kind string, now time.Time) ([]string, error)
}

// Put stores value as the document kind/key. With a zero expires the document does not
// expire.
func (s *Slack) Put(ctx context.Context, kind, key string, value any, expires time.Time) error {
	b, err := json.Marshal(value)
	if err != nil {
		return lang.Text{EN: "%s %s: %s", ZH: "%s %s：%s"}.Err(kind, key, err)
	}
	_, err = s.exec(ctx, `INSERT INTO slack_docs (kind, key, value, expires) VALUES (?, ?, ?, ?)
		ON CONFLICT (kind, key) DO UPDATE SET value = excluded.value, expires = excluded.expires`,
		kind, key, string(b), millis(expires))
	return err
}

// Get reads the document kind/key into value. ok is false if there is none or it has
// expired.
func (s *Slack) Get(ctx context.Context, kind, key string, now time.Time, value any) (ok bool, err error) {
	return s.read(ctx, now, kind, key, value,
		`SELECT value, expires FROM slack_docs WHERE kind = ? AND key = ?`)
}

// Take reads and deletes the document: of several takers exactly one gets it.
func (s *Slack) Take(ctx context.Context, kind, key string, now time.Time, value any) (ok bool, err error) {
	return s.read(ctx, now, kind, key, value,
		`DELETE FROM slack_docs WHERE kind = ? AND key = ? RETURNING value, expires`)
}

func (s *Slack) read(ctx context.Context, now time.Time, kind, key string, value any, query string) (bool, error) {
	var b string
	var expires int64
	err := s.row(ctx, query, kind, key).Scan(&b, &expires)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if expires != 0 && expires <= millis(now) {
		return false, nil
	}
	if err := json.Unmarshal([]byte(b), value); err != nil {
		return false, lang.Text{EN: "%s %s: %s", ZH: "%s %s：%s"}.Err(kind, key, err)
	}
	return true, nil
}

// Claim makes by the owner of the document kind/key, unless it has an owner, and
// returns the owner. The owner may claim it again, for example after a crash.
func (s *Slack) Claim(ctx context.Context, kind, key, by string, expires time.Time) (owner string, err error) {
	raw, err := json.Marshal(by)
	if err != nil {
		return "", err
	}
	if _, err := s.exec(ctx, `INSERT INTO slack_docs (kind, key, value, expires) VALUES (?, ?, ?, ?)
		ON CONFLICT (kind, key) DO NOTHING`, kind, key, string(raw), millis(expires)); err != nil {
		return "", err
	}
	_, err = s.Get(ctx, kind, key, time.Time{}, &owner)
	return owner, err
}

// Add stores value as the document kind/key unless there is one that is valid at now. Of
// several callers one adds.
func (s *Slack) Add(ctx context.Context, kind, key string, value any, now, expires time.Time) (added bool, err error) {
	b, err := json.Marshal(value)
	if err != nil {
		return false, lang.Text{EN: "%s %s: %s", ZH: "%s %s：%s"}.Err(kind, key, err)
	}
	return s.changed(ctx, `INSERT INTO slack_docs (kind, key, value, expires) VALUES (?, ?, ?, ?)
		ON CONFLICT (kind, key) DO UPDATE SET value = excluded.value, expires = excluded.expires
		WHERE slack_docs.expires <> 0 AND slack_docs.expires <= ?`, kind, key, string(b), millis(expires), millis(now))
}

// Replace stores value in place of the document kind/key and queues messages, all or none. It does
// nothing where the document is another one by now than was, which is what Get reads into a
// json.RawMessage; a nil was stands for no document. A nil value deletes the document.
func (s *Slack) Replace(
	ctx context.Context, kind, key string, was json.RawMessage, value any, expires time.Time, owed ...SlackMessage,
) (done bool, err error) {
	b, err := json.Marshal(value)
	if err != nil {
		return false, lang.Text{EN: "%s %s: %s", ZH: "%s %s：%s"}.Err(kind, key, err)
	}
	query, args := `UPDATE slack_docs SET value = ?, expires = ? WHERE kind = ? AND key = ? AND value = ?`, []any{string(b), millis(expires), kind, key, string(was)}
	switch {
	case value == nil:
		query, args = `DELETE FROM slack_docs WHERE kind = ? AND key = ? AND value = ?`, args[2:]
	case was == nil:
		query = `INSERT INTO slack_docs (value, expires, kind, key) VALUES (?, ?, ?, ?) ON CONFLICT (kind, key) DO NOTHING`
		args = args[:4]
	}
	err = s.tx(ctx, func(tx *sql.Tx) error {
		res, err := tx.ExecContext(ctx, s.rebind(query), args...)
		if err != nil {
			return err
		}
		n, err := res.RowsAffected()
		if done = n == 1; err != nil || !done {
			return err
		}
		for _, m := range owed {
			if err := s.enqueue(ctx, tx, m); err != nil {
				return err
			}
		}
		return nil
	})
	return done && err == nil, err
}

// Delete deletes the document kind/key.
func (s *Slack) Delete(ctx context.Context, kind, key string) error {
	_, err := s.exec(ctx, `DELETE FROM slack_docs WHERE kind = ? AND key = ?`, kind, key)
	return err
}

// Expiries returns when each valid document of a kind expires, by key.
func (s *Slack) Expiries(ctx context.Context, kind string, now time.Time) (all map[string]time.Time, err error) {
	rows, err := s.query(ctx, `SELECT key, expires FROM slack_docs WHERE kind = ? AND (expires = 0 OR expires > ?)`, kind, millis(now))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	all = map[string]time.Time{}
	for rows.Next() {
		var key string
		var expires int64
		if err := rows.Scan(&key, &expires); err != nil {
			return nil, err
		}
		all[key] = fromMillis(expires)
	}
	return all, rows.Err()
}

// Keys returns the keys of a kind's valid documents in ascending order.
func (s *Slack) Keys(ctx context.Context, kind string, now time.Time) ([]string, error) {
	return collect(ctx, s.Store, func(row scanner) (key string, err error) { return key, row.Scan(&key) },
		`SELECT key FROM slack_docs WHERE kind = ? AND (expires = 0 OR expires > ?) ORDER BY key`, kind, millis(now))
}
