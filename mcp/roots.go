package mcp

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
)

// mayRead refuses a path that an agent named and that, with symbolic links resolved, is
// not below one of the server's roots. A job's own logs are read by the job's id,
// wherever they are; paths are for the files that the agent's person works on.
func (s *Server) mayRead(path string) error {
	refused := &ops.Error{
		Code: ops.NotAllowed, Message: lang.Text{EN: "%s is not in a folder that this server may read", ZH: "%s 不在本服务允许读取的目录中"}.With(path),
		Fix: lang.Text{
			EN: "give a job's id, or a path below %s",
			ZH: "请给出作业号，或位于 %s 之下的路径",
		}.With(lang.Text{EN: strings.Join(s.cfg.Roots, " or "), ZH: strings.Join(s.cfg.Roots, " 或 ")}),
	}
	if len(s.cfg.Roots) == 0 {
		refused.Fix = lang.Text{EN: "give a job's id", ZH: "请给出作业号"}
		return refused
	}
	if !filepath.IsAbs(path) {
		return refused
	}
	at, err := resolved(path)
	if err != nil || !s.within(at) {
		return refused
	}
	return nil
}

// resolved returns path without symbolic links. A last part that does not exist yet is
// kept.
func resolved(path string) (string, error) {
	path = filepath.Clean(path)
	at, err := filepath.EvalSymlinks(path)
	if !errors.Is(err, fs.ErrNotExist) || path == "/" {
		return at, err
	}
	if _, err := os.Lstat(path); err == nil {
		return "", fs.ErrNotExist // a dangling link: its target can change
	}
	at, err = resolved(filepath.Dir(path))
	return filepath.Join(at, filepath.Base(path)), err
}

// within reports whether a path without symbolic links is below a root.
func (s *Server) within(path string) bool {
	for _, root := range s.cfg.Roots {
		if at, err := filepath.EvalSymlinks(root); err == nil {
			if rel, err := filepath.Rel(at, path); err == nil && filepath.IsLocal(rel) {
				return true
			}
		}
	}
	return false
}
