package store

import (
	"context"
	"os"

	"github.com/megatron-ops/megatron-ops/internal/lang"
)

// Backup writes a consistent copy of the database to a new file with mode 600 while
// others read and write it. For PostgreSQL it returns an error that names pg_dump.
func (s *Store) Backup(ctx context.Context, file string) error {
	if s.postgres {
		return lang.Text{EN: "the store is PostgreSQL: pg_dump makes its backups", ZH: "存储为 PostgreSQL：请用 pg_dump 备份"}.Err()
	}
	f, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600) // VACUUM would create it with another mode
	if err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	if _, err = s.db.ExecContext(ctx, "VACUUM INTO ?", file); err != nil {
		_ = os.Remove(file)
	}
	return err
}
