package joblogs

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/megatron-ops/megatron-ops/internal/account"
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/within"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logfile"
)

// resolvePath resolves a file or folder that a caller named instead of a job, and opens
// the folders through which it must be read. A person in a shell may read what the
// system allows them to read. An agent may read what its server's roots hold, and no
// symbolic link may lead out of them, now or later. Other callers may not name paths.
func resolvePath(c *ops.Call, field, path string) (string, *within.Folders, error) {
	if c.MayRead == nil && c.AtShell() {
		if !filepath.IsAbs(path) {
			path = filepath.Join(c.Dir, path)
		}
		return path, nil, nil
	}
	if c.MayRead == nil {
		return "", nil, ops.InputError(field, lang.Text{EN: "paths are read in the shell only", ZH: "只能在 shell 中按路径读取"}, lang.Text{EN: "a job id", ZH: "作业号"})
	}
	if c.Who.Surface == ops.MCP { // the person's own process, which was started in some folder
		if abs, err := filepath.Abs(path); err == nil {
			path = abs
		}
	}
	if err := c.MayRead(path); err != nil {
		return "", nil, RefusedPath(field, err)
	}
	in, err := within.Open(c.Roots...)
	if err != nil {
		return "", nil, RefusedPath(field, err)
	}
	at, err := filepath.EvalSymlinks(path)
	if err != nil {
		return path, in, nil // the reader reports that it does not exist
	}
	err = filepath.WalkDir(at, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.Type()&fs.ModeSymlink == 0 {
			return nil
		}
		return c.MayRead(p)
	})
	if err != nil {
		in.Close()
		e := ops.AsError(err)
		return "", nil, &ops.Error{Code: e.Code, Field: field, Message: lang.Text{EN: "%s holds a symbolic link to somewhere else", ZH: "%s 中有指向别处的符号链接"}.With(path), Fix: e.Fix}
	}
	return at, in, nil
}

// RefusedPath returns a refusal with the field that named the path.
func RefusedPath(field string, err error) error {
	e := *ops.AsError(err)
	e.Field = field
	return &e
}

// openFolders opens the folders that hold a job's logs. A server must not read for
// people what they may not read themselves: a log that belongs to anybody but the job's
// user, such as a file that --output was pointed at, is left out.
func openFolders(c *ops.Call, j slurm.Job, logs []string) (*within.Folders, error) {
	in, err := within.Holding(logs...)
	if err != nil {
		return nil, err
	}
	switch c.Who.Surface {
	case ops.Shell, ops.Chat, ops.MCP: // the person's own process
		return in, nil
	}
	if c.Self == "" || j.User == c.Self {
		return in, nil
	}
	u, err := account.ByName(context.Background(), j.User)
	if err != nil {
		// Without the user's id, nobody's files may be read.
		in.Close()
		return nil, &ops.Error{
			Code: ops.NotAllowed, Message: lang.Text{EN: "whose job it is cannot be checked: user %s is not known to this machine", ZH: "无法确认作业属于谁：本机不认识用户 %s"}.With(j.User),
			Fix: lang.Text{EN: "an operator makes the cluster's users known here (getent passwd)", ZH: "请管理员让本机认识集群用户（getent passwd）"},
		}
	}
	in.Owner = u.UID
	return in, nil
}

// openLogs opens a job's logs. done closes the folders of the logs.
func openLogs(c *ops.Call, j slurm.Job, paths []string) (src logfile.Source, done func(), err error) {
	in, err := openFolders(c, j, paths)
	if err != nil {
		return src, nil, err
	}
	theirs := slices.DeleteFunc(slices.Clone(paths), func(p string) bool {
		f, err := in.Open(p)
		if err == nil {
			f.Close()
		}
		return in.Owner >= 0 && errors.Is(err, fs.ErrPermission)
	})
	switch {
	case len(theirs) == 0 && len(paths) > 0:
		err = lang.Text{EN: "%s does not belong to %s, whose job it is", ZH: "%s 不属于作业的所有者 %s"}.Err(paths[0], j.User)
	default:
		src, err = logfile.OpenIn(in, theirs...)
	}
	if err != nil {
		in.Close()
		return src, nil, err
	}
	return src, in.Close, nil
}

// readParts opens a file for reading some of its parts, if it may be read.
func readParts(folders *within.Folders, path string, read func(f io.ReaderAt, size int64)) {
	f, err := folders.Open(path)
	if err != nil {
		return
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil {
		read(f, info.Size())
	}
}

// partOf returns at most most bytes from an offset on; "" where they cannot be read.
func partOf(f io.ReaderAt, from, most int64) string {
	text, err := io.ReadAll(io.NewSectionReader(f, from, most))
	if err != nil {
		return ""
	}
	return string(text)
}
