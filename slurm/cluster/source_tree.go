package cluster

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// ignoreFile names, beside .gitignore and in its form, what stays on this machine.
const ignoreFile = ".megatronopsignore"

// keptThere is the folder of our own in a tree that was brought to a cluster.
const keptThere = ".megatron-ops"

// A SourceTree is a folder on this machine as it would be brought to a cluster.
type SourceTree struct {
	Dir   string
	Files []SourceFile // by path
	// Outside are links that lead out of the tree: they stay here.
	Outside []string
	// Agreed is the digest of the difference that was agreed to, which alone is
	// brought; empty: any.
	Agreed string
	root   *os.Root
}

// A SourceFile is a regular file of a tree, or a link within it.
type SourceFile struct {
	Path  string
	Link  string // where a link leads
	Exec  bool
	Bytes int64
	sum   string
}

// Close lets go of the tree's folder.
func (t *SourceTree) Close() error { return t.root.Close() }

// ReadSourceTree reads the folder dir: what git would take of it, less what
// .megatronopsignore and excludes name in the form of .gitignore. The folder need be
// no repository. Links are not followed.
func ReadSourceTree(ctx context.Context, dir string, excludes []string) (*SourceTree, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, unread(dir, lang.Said(err))
	}
	t := &SourceTree{Dir: dir, root: root}
	paths, err := listed(ctx, dir, excludes)
	if err == nil {
		err = t.read(ctx, paths)
	}
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return t, nil
}

// read looks at each path. One that is gone, is no file, or lies behind a link is
// left out.
func (t *SourceTree) read(ctx context.Context, paths []string) error {
	for _, p := range paths {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		info, err := t.root.Lstat(p)
		if err != nil {
			continue
		}
		f := SourceFile{Path: p, Bytes: info.Size(), Exec: info.Mode()&0o100 != 0}
		switch {
		case info.Mode().Type() == fs.ModeSymlink:
			f.Link, err = t.root.Readlink(p)
			f.Bytes, f.Exec = 0, false
			if err == nil && (filepath.IsAbs(f.Link) || !filepath.IsLocal(filepath.Join(filepath.Dir(p), f.Link))) {
				t.Outside = append(t.Outside, p)
				continue
			}
		case info.Mode().IsRegular():
			f.sum, err = t.sumOf(p)
		default:
			continue
		}
		if err != nil {
			return unread(p, lang.Said(err))
		}
		t.Files = append(t.Files, f)
	}
	return nil
}

// unread is the error of something on this machine that could not be read.
func unread(what string, why lang.Text) error {
	return &slurm.Error{Op: what, Kind: slurm.Rejected, Msg: why}
}

func (t *SourceTree) sumOf(path string) (string, error) {
	f, err := t.root.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	_, err = io.Copy(h, f)
	return hex.EncodeToString(h.Sum(nil)), err
}

// harmless keeps git from starting anything that a repository's own configuration
// names.
var harmless = []string{"git", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null"}

// gitLimit is how long git may take to read a tree.
const gitLimit = 5 * time.Minute

// listed are the paths below dir that git would take, in order.
func listed(ctx context.Context, dir string, excludes []string) ([]string, error) {
	var at []string // the repository; a folder that is none is given an empty one
	if r, err := (here{}).run(ctx, command{argv: append(slices.Clone(harmless), "rev-parse", "--is-inside-work-tree"), env: gitEnviron(), dir: dir}); err != nil {
		return nil, err
	} else if strings.TrimSpace(r.stdout) != "true" {
		empty, err := os.MkdirTemp("", "megatron-ops-")
		if err != nil {
			return nil, unread("git", lang.Said(err))
		}
		defer os.RemoveAll(empty)
		if r, err := (here{}).run(ctx, command{argv: append(slices.Clone(harmless), "init", "--quiet", "--bare", empty), env: gitEnviron()}); err != nil || r.code != 0 {
			return nil, errors.Join(err, unread("git", lang.Same(strings.TrimSpace(r.stderr))))
		}
		at = []string{"--git-dir=" + empty, "--work-tree=" + dir}
	}
	ls := func(words ...string) ([]string, error) {
		argv := slices.Concat(harmless, at, []string{"ls-files", "-z"}, words)
		r, err := here{}.run(ctx, command{argv: argv, env: gitEnviron(), dir: dir, limit: gitLimit})
		if err == nil && r.code != 0 {
			err = unread("git ls-files", lang.Same(strings.TrimSpace(r.stderr)))
		}
		return strings.FieldsFunc(r.stdout, func(c rune) bool { return c == 0 }), err
	}
	paths, err := ls("--cached", "--others", "--exclude-standard")
	if err != nil {
		return nil, err
	}
	left := []string{"--exclude=/" + keptThere + "/"}
	for _, e := range excludes {
		left = append(left, "--exclude="+e)
	}
	if _, err := os.Stat(filepath.Join(dir, ignoreFile)); err == nil {
		left = append(left, "--exclude-from="+ignoreFile)
	}
	var out []string
	for _, kind := range []string{"--cached", "--others"} {
		ignored, err := ls(append([]string{kind, "--ignored"}, left...)...)
		if err != nil {
			return nil, err
		}
		out = append(out, ignored...)
	}
	drop := map[string]bool{}
	for _, p := range out {
		drop[p] = true
	}
	var all []string
	for _, p := range paths {
		switch info, err := os.Lstat(filepath.Join(dir, p)); {
		case drop[p] || err != nil:
		case info.IsDir(): // a repository within this one
			inner, err := listed(ctx, filepath.Join(dir, p), excludes)
			if err != nil {
				return nil, err
			}
			for _, i := range inner {
				all = append(all, filepath.Join(p, i))
			}
		default:
			all = append(all, p)
		}
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}

// gitEnviron is git's environment without what a hook or an editor set for another
// repository.
func gitEnviron() []string {
	return append(slices.DeleteFunc(os.Environ(), func(e string) bool { return strings.HasPrefix(e, "GIT_") }), "LC_ALL=C", "GIT_OPTIONAL_LOCKS=0", "GIT_TERMINAL_PROMPT=0")
}
