package mcp

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// outside refuses a path that an agent named and that does not lie under the
// server's roots, symbolic links resolved. A job's own logs are read by its id,
// wherever they are; paths are for what the agent's person works on.
func (s *Server) outside(o ops.Op, in any) *ops.Error {
	path, ok := stringField(in, "job")
	if o.Name != "diagnose" || !ok || path == "" || slurm.IsJobID(path) {
		return nil
	}
	refused := &ops.Error{
		Code: ops.NotAllowed, Field: "job", Message: path + " does not lie in a folder that this server may read",
		Fix: "give a job's id, or a path below " + strings.Join(s.roots(), " or "),
	}
	if len(s.roots()) == 0 {
		refused.Fix = "give a job's id"
		return refused
	}
	abs, err := filepath.Abs(path)
	if err != nil || !s.within(abs, false) {
		return refused
	}
	if _, err := os.Lstat(abs); err != nil {
		return nil // the operation says that it is not there
	}
	if !s.within(abs, true) {
		return refused
	}
	leaves := false
	_ = filepath.WalkDir(abs, func(p string, d fs.DirEntry, err error) error {
		if err == nil && d.Type()&fs.ModeSymlink != 0 && !s.within(p, true) {
			leaves = true
			return fs.SkipAll
		}
		return nil
	})
	if leaves {
		refused.Message = path + " holds a symbolic link to somewhere else"
		return refused
	}
	return nil
}

func (s *Server) roots() []string { return s.cfg.Roots }

// within reports whether path lies under a root; a link counts as what it
// points to where resolve is set.
func (s *Server) within(path string, resolve bool) bool {
	for _, root := range s.roots() {
		at := path
		if resolve {
			var err error
			if at, err = filepath.EvalSymlinks(path); err != nil {
				return false
			}
			if root, err = filepath.EvalSymlinks(root); err != nil {
				continue
			}
		}
		rel, err := filepath.Rel(root, at)
		if err == nil && rel != ".." && !strings.HasPrefix(rel, "../") {
			return true
		}
	}
	return false
}
