package ops

import (
	"io/fs"
	"path/filepath"
)

// readable is the file or folder that a caller named instead of a job. A person
// in a shell may read what the system lets them read; an agent what its server's
// roots hold, with no symbolic link out of them; nobody else names paths.
func (c *Call) readable(field, path string) (string, error) {
	if c.Who.Surface == Shell || c.Who.Surface == Chat {
		if !filepath.IsAbs(path) {
			path = filepath.Join(c.Dir, path)
		}
		return path, nil
	}
	if c.MayRead == nil {
		return "", badInput(field, "a job id", "paths are read in the shell only")
	}
	if c.Who.Surface == MCP { // a process of the person's own, started in a folder
		if abs, err := filepath.Abs(path); err == nil {
			path = abs
		}
	}
	if err := c.MayRead(path); err != nil {
		return "", refusedPath(field, err)
	}
	// What was judged is what is read, wherever a link leads later.
	at, err := filepath.EvalSymlinks(path)
	if err != nil {
		return path, nil // whoever reads it says that it is not there
	}
	err = filepath.WalkDir(at, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.Type()&fs.ModeSymlink == 0 {
			return nil
		}
		return c.MayRead(p)
	})
	if err != nil {
		e := *AsError(refusedPath(field, err))
		e.Message, e.zh = path+" holds a symbolic link to somewhere else", chinese{}
		return "", &e
	}
	return at, nil
}

// refusedPath is a refusal with the field that named the path.
func refusedPath(field string, err error) error {
	e := *AsError(err)
	e.Field = field
	return &e
}
