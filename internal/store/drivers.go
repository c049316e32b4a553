package store

import (
	"errors"
	"path/filepath"

	// modernc.org/sqlite needs no cgo, so that the binary stays static. The driver of
	// PostgreSQL, pgx, is for the program to import: most tests of what is above the
	// store never meet that server, and link a tenth faster without it.
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/megatron-ops/megatron-ops/internal/lang"
)

// primaryCode masks what SQLite adds to an error's code to tell its kinds apart.
const primaryCode = 0xff

// diskErrors say what to do about the errors of SQLite that come from the disk. An
// exceeded quota is an I/O error to SQLite.
var diskErrors = map[int]lang.Text{
	sqlite3.SQLITE_FULL: {
		EN: "the disk of %s is full (%s); free some space, or name another folder in MEGATRON_OPS_STATE_DIR",
		ZH: "%s 所在的磁盘已满（%s）；请腾出空间，或用 MEGATRON_OPS_STATE_DIR 指定其他目录",
	},
	sqlite3.SQLITE_IOERR: {
		EN: "%s cannot be read or written (%s): a quota may be used up; free some space, or name another folder in MEGATRON_OPS_STATE_DIR",
		ZH: "%s 无法读写（%s）：可能已用尽配额；请腾出空间，或用 MEGATRON_OPS_STATE_DIR 指定其他目录",
	},
	sqlite3.SQLITE_NOTADB:  damaged,
	sqlite3.SQLITE_CORRUPT: damaged,
}

var damaged = lang.Text{
	EN: "the database in %s is damaged (%s); put a copy by `megatron-ops backup` in its place, or move it away and begin anew: jobs go on, but what was submitted from here is forgotten",
	ZH: "%s 中的数据库已损坏（%s）；请换上 `megatron-ops backup` 的副本，或将其移走后重新开始：作业会继续运行，但此前的提交记录将丢失",
}

// advised returns err with what a person can do about it where the disk is at fault,
// and else err.
func (s *Store) advised(err error) error {
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		if t, known := diskErrors[e.Code()&primaryCode]; known {
			return t.Err(filepath.Dir(s.path), err)
		}
	}
	return err
}
