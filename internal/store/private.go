package store

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/megatron-ops/megatron-ops/internal/lang"
)

// keepPrivate creates the folder and the file of a SQLite database, and removes
// everybody else's rights to the file: it holds scripts, the audit trail and Slack's
// encrypted tokens. It refuses a folder that others can write: whoever can replace the
// file decides what this program believes.
func keepPrivate(path string) error {
	dir := filepath.Dir(path)
	err := os.MkdirAll(dir, 0o700)
	var info os.FileInfo
	if err == nil {
		info, err = os.Stat(dir)
	}
	if err != nil {
		return notYours(err)
	}
	if mode := info.Mode().Perm(); mode&0o022 != 0 {
		return lang.Text{
			EN: "state directory %s has mode %04o: others may write it, and so replace what is kept there; chmod go-w %s, or name another in MEGATRON_OPS_STATE_DIR",
			ZH: "状态目录 %s 的权限为 %04o：他人可写，因而可以替换其中的内容；请执行 chmod go-w %s，或用 MEGATRON_OPS_STATE_DIR 指定其他目录",
		}.Err(dir, mode, dir)
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return notYours(err)
	}
	defer f.Close()
	for _, p := range []string{path, path + "-wal", path + "-shm", path + "-journal"} {
		if err := os.Chmod(p, 0o600); err != nil && !errors.Is(err, os.ErrNotExist) {
			return notYours(err)
		}
	}
	return nil
}

// notYours says that the folder of the state cannot be used, and what would help.
func notYours(err error) error {
	return lang.Text{
		EN: "state directory: %s; name one that you may write in MEGATRON_OPS_STATE_DIR",
		ZH: "状态目录：%s；请用 MEGATRON_OPS_STATE_DIR 指定一个可写的目录",
	}.Err(err)
}
