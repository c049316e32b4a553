// Package within opens files through the folders that hold them. If a path is checked
// and then opened by name, somebody can replace it by a link in between; a file that is
// opened through an open folder cannot lead out of the folder, whenever a link is put
// there.
package within

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/megatron-ops/megatron-ops/internal/lang"
)

// Folders are open folders below which files may be opened. A nil *Folders is the whole
// machine: names are opened as they are, and links are followed.
type Folders struct {
	dirs []dir
	// Owner is the user id whose files may be opened; negative: everybody's. Files of
	// the user nobody may be opened too, because some file systems map all owners to
	// it.
	Owner int
}

type dir struct {
	given, real string // the folder's name, and the same without links
	root        *os.Root
}

// nobody is the uid to which squashing file systems map every owner.
const nobody = 65534

// Open opens the folders at the given absolute paths. It skips folders that do not
// exist.
func Open(paths ...string) (*Folders, error) {
	f := &Folders{Owner: -1}
	for _, p := range paths {
		p = filepath.Clean(p)
		if slices.ContainsFunc(f.dirs, func(d dir) bool { return d.given == p }) {
			continue
		}
		real, err := filepath.EvalSymlinks(p)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		var root *os.Root
		if err == nil {
			root, err = os.OpenRoot(real)
		}
		if err != nil {
			f.Close()
			return nil, err
		}
		f.dirs = append(f.dirs, dir{p, real, root})
	}
	return f, nil
}

// Holding opens the folders that contain the given files.
func Holding(files ...string) (*Folders, error) {
	var dirs []string
	for _, p := range files {
		dirs = append(dirs, filepath.Dir(p))
	}
	return Open(dirs...)
}

// Close closes the folders, but not the files that were opened.
func (f *Folders) Close() {
	if f == nil {
		return
	}
	for _, d := range f.dirs {
		_ = d.root.Close() // nothing was written
	}
}

// find returns the folder that contains path, and path's name within it.
func (f *Folders) find(path string) (dir, string, error) {
	for _, d := range f.dirs {
		for _, top := range []string{d.given, d.real} {
			if name, err := filepath.Rel(top, path); err == nil && filepath.IsLocal(name) {
				return dir{given: top, root: d.root}, name, nil
			}
		}
	}
	return dir{}, "", &fs.PathError{Op: "open", Path: path, Err: fs.ErrPermission}
}

// Open opens a regular file for reading. It opens nothing that could block.
func (f *Folders) Open(path string) (*os.File, error) {
	const flags = os.O_RDONLY | syscall.O_NONBLOCK | syscall.O_NOCTTY
	var file *os.File
	var err error
	if f == nil {
		file, err = os.OpenFile(path, flags, 0)
	} else {
		var d dir
		var name string
		if d, name, err = f.find(path); err == nil {
			file, err = d.root.OpenFile(name, flags, 0)
		}
	}
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	switch {
	case err != nil:
	case !info.Mode().IsRegular():
		err = lang.Text{EN: "%s: not a regular file", ZH: "%s：不是普通文件"}.Err(path)
	case !f.owns(info):
		err = &fs.PathError{Op: "open", Path: path, Err: fs.ErrPermission}
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	return file, nil
}

// ReadFile returns the first most bytes of a regular file. It opens nothing that could
// block.
func (f *Folders) ReadFile(path string, most int64) ([]byte, error) {
	file, err := f.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(io.LimitReader(file, most))
}

// ReadDir lists the folder at path, as os.ReadDir does.
func (f *Folders) ReadDir(path string) ([]fs.DirEntry, error) {
	if f == nil {
		return os.ReadDir(path)
	}
	d, name, err := f.find(path)
	if err != nil {
		return nil, err
	}
	return fs.ReadDir(d.root.FS(), filepath.ToSlash(name))
}

func (f *Folders) owns(info fs.FileInfo) bool {
	if f == nil || f.Owner < 0 {
		return true
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && (int(st.Uid) == f.Owner || st.Uid == nobody)
}

// Stat describes the file at path.
func (f *Folders) Stat(path string) (fs.FileInfo, error) {
	if f == nil {
		return os.Stat(path)
	}
	d, name, err := f.find(path)
	if err != nil {
		return nil, err
	}
	return d.root.Stat(name)
}

// WalkDir walks the tree at path, as filepath.WalkDir does.
func (f *Folders) WalkDir(path string, each fs.WalkDirFunc) error {
	if f == nil {
		return filepath.WalkDir(path, each)
	}
	d, name, err := f.find(path)
	if err != nil {
		return each(path, nil, err)
	}
	return fs.WalkDir(d.root.FS(), filepath.ToSlash(name), func(p string, e fs.DirEntry, err error) error {
		return each(filepath.Join(d.given, filepath.FromSlash(p)), e, err)
	})
}

// Glob returns the names that match pattern, as filepath.Glob does.
func (f *Folders) Glob(pattern string) (found []string, err error) {
	if f == nil {
		return filepath.Glob(pattern)
	}
	fixed := pattern[:strings.IndexAny(pattern+"*", "*?[")]
	d, _, err := f.find(filepath.Dir(fixed + "x"))
	if err != nil {
		return nil, err
	}
	name, err := filepath.Rel(d.given, pattern)
	if err != nil {
		return nil, err
	}
	names, err := fs.Glob(d.root.FS(), filepath.ToSlash(name))
	for _, n := range names {
		found = append(found, filepath.Join(d.given, filepath.FromSlash(n)))
	}
	return found, err
}
