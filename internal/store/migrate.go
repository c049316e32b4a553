package store

import (
	"context"
	"database/sql"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
)

// migrations bring an empty database to the current schema, in order. A released
// migration never changes. "SERIAL" stands for an auto-increment key.
var migrations = []string{
	`CREATE TABLE submissions (
		key        TEXT PRIMARY KEY,
		token      TEXT NOT NULL UNIQUE,
		cluster    TEXT NOT NULL,
		owner      TEXT NOT NULL,
		asked_by   TEXT NOT NULL,
		name       TEXT NOT NULL,
		spec       TEXT NOT NULL,
		spec_hash  TEXT NOT NULL,
		script     TEXT NOT NULL,
		dir        TEXT NOT NULL,
		state      TEXT NOT NULL,
		job_id     TEXT NOT NULL DEFAULT '',
		message    TEXT NOT NULL DEFAULT '',
		created_at BIGINT NOT NULL,
		updated_at BIGINT NOT NULL
	);
	CREATE INDEX submissions_job ON submissions (cluster, job_id);
	CREATE INDEX submissions_state ON submissions (state);
	CREATE TABLE audit (
		id      SERIAL,
		at      BIGINT NOT NULL,
		surface TEXT NOT NULL,
		who     TEXT NOT NULL,
		owner   TEXT NOT NULL,
		agent   TEXT NOT NULL,
		op      TEXT NOT NULL,
		input   TEXT NOT NULL,
		result  TEXT NOT NULL,
		digest  TEXT NOT NULL
	);`,
	slackSchema,
	feedbackSchema,
	// Where and when a submission was last handed over.
	`ALTER TABLE submissions ADD COLUMN place TEXT NOT NULL DEFAULT '';
	ALTER TABLE submissions ADD COLUMN attempted_at BIGINT NOT NULL DEFAULT 0;`,
	leaseSchema,
	// What a change was about, and who agreed to it. form says which columns an entry's
	// digest covers.
	`ALTER TABLE audit ADD COLUMN job TEXT NOT NULL DEFAULT '';
	ALTER TABLE audit ADD COLUMN script TEXT NOT NULL DEFAULT '';
	ALTER TABLE audit ADD COLUMN agreed TEXT NOT NULL DEFAULT '';
	ALTER TABLE audit ADD COLUMN form BIGINT NOT NULL DEFAULT 1;`,
}

// migrate applies the missing migrations in one transaction.
func (s *Store) migrate(ctx context.Context) error {
	if _, err := s.exec(ctx, `CREATE TABLE IF NOT EXISTS schema_version (version BIGINT NOT NULL)`); err != nil {
		return err
	}
	return s.tx(ctx, func(tx *sql.Tx) error {
		if s.postgres {
			// Two instances that start together take turns.
			if _, err := tx.ExecContext(ctx, `SELECT pg_advisory_xact_lock(7220431)`); err != nil {
				return err
			}
		}
		var version int
		if err := tx.QueryRowContext(ctx, `SELECT COALESCE(MAX(version), 0) FROM schema_version`).Scan(&version); err != nil {
			return err
		}
		if version > len(migrations) {
			return lang.Text{
				EN: "the database has schema %d, this program knows up to %d: use a newer megatron-ops",
				ZH: "数据库的结构版本为 %d，本程序最高支持 %d：请使用更新的 megatron-ops",
			}.Err(version, len(migrations))
		}
		if version == len(migrations) {
			return nil
		}
		serial := "INTEGER PRIMARY KEY AUTOINCREMENT"
		if s.postgres {
			serial = "BIGSERIAL PRIMARY KEY"
		}
		for _, m := range migrations[version:] {
			for stmt := range strings.SplitSeq(m, ";") {
				if strings.TrimSpace(stmt) == "" {
					continue
				}
				if _, err := tx.ExecContext(ctx, strings.ReplaceAll(stmt, "SERIAL", serial)); err != nil {
					return lang.Text{EN: "schema %d: %s", ZH: "数据库结构 %d：%s"}.Err(version+1, err)
				}
			}
			version++
			if _, err := tx.ExecContext(ctx, s.rebind(`INSERT INTO schema_version (version) VALUES (?)`), version); err != nil {
				return err
			}
		}
		return nil
	})
}
