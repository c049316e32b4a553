package store

import (
	"context"
	"os"
)

// Sizes describes a database: its kind, its schema version, the size of its file in
// bytes (0 for PostgreSQL), and the number of rows of each table.
type Sizes struct {
	Kind   string
	Schema int
	Bytes  int64
	Rows   map[string]int64
}

// Sizes counts the rows of each table.
func (s *Store) Sizes(ctx context.Context) (Sizes, error) {
	z := Sizes{Kind: "PostgreSQL", Rows: map[string]int64{}}
	if !s.postgres {
		z.Kind = "SQLite"
		if at, err := os.Stat(s.path); err == nil {
			z.Bytes = at.Size()
		}
	}
	if err := s.row(ctx, `SELECT COALESCE(MAX(version), 0) FROM schema_version`).Scan(&z.Schema); err != nil {
		return z, err
	}
	for table, count := range map[string]string{
		"submissions": `SELECT COUNT(*) FROM submissions`, "audit": `SELECT COUNT(*) FROM audit`, "feedback": `SELECT COUNT(*) FROM feedback`,
		"slack_inbox": `SELECT COUNT(*) FROM slack_inbox`, "slack_outbox": `SELECT COUNT(*) FROM slack_outbox`,
		"slack_refs": `SELECT COUNT(*) FROM slack_refs`, "slack_docs": `SELECT COUNT(*) FROM slack_docs`,
	} {
		var n int64
		if err := s.row(ctx, count).Scan(&n); err != nil {
			return z, err
		}
		z.Rows[table] = n
	}
	return z, nil
}
