package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// keepPrivate makes the folder and the file of a SQLite database, and takes
// everybody else's rights to the file: it holds scripts, the audit trail and
// Slack's encrypted tokens. A folder that others may write is refused, for
// whoever can replace the file decides what this program believes.
func keepPrivate(path string) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("state directory: %w", err)
	}
	info, err := os.Stat(dir)
	if err != nil {
		return fmt.Errorf("state directory: %w", err)
	}
	if mode := info.Mode().Perm(); mode&0o022 != 0 {
		return fmt.Errorf("state directory %s has mode %04o: others may write it, and so replace what is kept there; chmod go-w %s, or name another in MEGATRON_OPS_STATE_DIR", dir, mode, dir)
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("state: %w", err)
	}
	defer f.Close()
	for _, p := range []string{path, path + "-wal", path + "-shm", path + "-journal"} {
		if err := os.Chmod(p, 0o600); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("state: %w", err)
		}
	}
	return nil
}
