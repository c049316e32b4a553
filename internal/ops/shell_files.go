package ops

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

const maxSpec = 1 << 20

// ReadFile reads a file that the shell named; other surfaces have no files of
// their own here.
func (c *Call) ReadFile(field, path string) ([]byte, error) {
	if c.Who.Surface != Shell && c.Who.Surface != Chat {
		return nil, InputError(field, "give the text itself", "files are read in the shell only")
	}
	if path == "-" && c.Stdin != nil {
		return io.ReadAll(io.LimitReader(c.Stdin, maxSpec))
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(c.Dir, path)
	}
	st, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, InputError(field, "check the path", "%s: there is no such file", path)
	case err != nil:
		return nil, InputError(field, "check the path and its permissions", "%s", strings.TrimPrefix(err.Error(), "stat "))
	case !st.Mode().IsRegular():
		return nil, InputError(field, "name a file", "%s is not a regular file", path)
	case st.Size() > maxSpec:
		return nil, InputError(field, "a specification has a few lines", "%s has %d bytes, more than %d", path, st.Size(), maxSpec)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, InputError(field, "check the file's permissions", "%s", strings.TrimPrefix(err.Error(), "open "))
	}
	return b, nil
}

// WriteFile writes a file that the shell named; "" is none.
func (c *Call) WriteFile(field, file string, draw func(io.Writer) error) error {
	if file == "" {
		return nil
	}
	if c.Who.Surface != Shell && c.Who.Surface != Chat {
		return InputError(field, "use the shell", "files are written in the shell only")
	}
	if !filepath.IsAbs(file) {
		file = filepath.Join(c.Dir, file)
	}
	f, err := os.Create(file)
	if err != nil {
		return &Error{Code: Failed, Field: field, Message: err.Error()}
	}
	if err := draw(f); err != nil {
		f.Close()
		return &Error{Code: Failed, Field: field, Message: err.Error()}
	}
	return f.Close()
}
