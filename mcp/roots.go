package mcp

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/ops"
)

// mayRead refuses a path that an agent named and that does not lie below the
// server's roots, symbolic links resolved. A job's own logs are read by its id,
// wherever they are; paths are for what the agent's person works on.
func (s *Server) mayRead(path string) error {
	refused := &ops.Error{
		Code: ops.NotAllowed, Message: path + " does not lie in a folder that this server may read",
		Fix: "give a job's id, or a path below " + strings.Join(s.cfg.Roots, " or "),
	}
	if len(s.cfg.Roots) == 0 {
		refused.Fix = "give a job's id"
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

// resolved is path without symbolic links; the end of it that is not there yet
// stays as it is.
func resolved(path string) (string, error) {
	path = filepath.Clean(path)
	at, err := filepath.EvalSymlinks(path)
	if !errors.Is(err, fs.ErrNotExist) || path == "/" {
		return at, err
	}
	if _, err := os.Lstat(path); err == nil {
		return "", fs.ErrNotExist // a link to nowhere: where it leads can change
	}
	at, err = resolved(filepath.Dir(path))
	return filepath.Join(at, filepath.Base(path)), err
}

// within reports whether a path without symbolic links lies below a root.
func (s *Server) within(path string) bool {
	for _, root := range s.cfg.Roots {
		at, err := filepath.EvalSymlinks(root)
		if err != nil {
			continue
		}
		if rel, err := filepath.Rel(at, path); err == nil && filepath.IsLocal(rel) {
			return true
		}
	}
	return false
}
