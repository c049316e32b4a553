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

// ignoreFile lists, in the form of .gitignore, further files that a sync leaves out.
const ignoreFile = ".megatronopsignore"

// syncFolder is this program's folder within a tree on the cluster.
const syncFolder = ".megatron-ops"

// A SourceTree is a folder on this machine that a sync may copy to a cluster.
type SourceTree struct {
	Dir   string
	Files []SourceFile // sorted by path
	// Outside lists links that lead out of the tree; a sync leaves them out.
	Outside []string
	// Agreed is the digest of the difference that the person agreed to: a sync with
	// another difference fails. Empty allows any difference.
	Agreed string
	root   *os.Root
}

// A SourceFile is a regular file of a tree, or a link within it.
type SourceFile struct {
	Path  string
	Link  string // the target, for a link
	Exec  bool
	Bytes int64
	sum   string
}

// Close closes the tree's folder.
func (t *SourceTree) Close() error { return t.root.Close() }

// ReadSourceTree reads the folder dir: the files that git would track or show as
// untracked, without those that .megatronopsignore and excludes match in the form of
// .gitignore. The folder need not be a repository. Links are not followed.
func ReadSourceTree(ctx context.Context, dir string, excludes []string) (*SourceTree, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, localError(dir, lang.Said(err))
	}
	t := &SourceTree{Dir: dir, root: root}
	paths, err := listFiles(ctx, dir, excludes)
	if err == nil {
		err = t.read(ctx, paths)
	}
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return t, nil
}

// read adds each path to the tree. It leaves out paths that are gone, that are neither
// a regular file nor a link, or that lie behind a link.
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
			return localError(p, lang.Said(err))
		}
		t.Files = append(t.Files, f)
	}
	return nil
}

// localError returns the error of something on this machine that could not be read or
// run.
func localError(what string, why lang.Text) error {
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

// safeGit is git with options that keep it from starting programs that a repository's
// own configuration names.
var safeGit = []string{"git", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null"}

// gitLimit bounds the time that git may take to read a tree.
const gitLimit = 5 * time.Minute

// listFiles returns the paths below dir that a sync copies, sorted.
func listFiles(ctx context.Context, dir string, excludes []string) ([]string, error) {
	var repository []string // options for a folder that is no repository: an empty one outside of it
	if r, err := git(ctx, dir, "rev-parse", "--is-inside-work-tree"); err != nil {
		return nil, err
	} else if strings.TrimSpace(r.stdout) != "true" {
		empty, err := os.MkdirTemp("", "megatron-ops-")
		if err != nil {
			return nil, localError("git", lang.Said(err))
		}
		defer os.RemoveAll(empty)
		if r, err := git(ctx, empty, "init", "--quiet", "--bare", "--template="); err != nil || r.code != 0 {
			return nil, errors.Join(err, localError("git", lang.Same(strings.TrimSpace(r.stderr))))
		}
		repository = []string{"--git-dir=" + empty, "--work-tree=" + dir}
	}
	ls := func(words ...string) ([]string, error) {
		r, err := git(ctx, dir, slices.Concat(repository, []string{"ls-files", "-z"}, words)...)
		if err == nil && r.code != 0 {
			err = localError("git ls-files", lang.Same(strings.TrimSpace(r.stderr)))
		}
		return strings.FieldsFunc(r.stdout, func(c rune) bool { return c == 0 }), err
	}
	paths, err := ls("--cached", "--others", "--exclude-standard")
	if err != nil {
		return nil, err
	}
	ignore := []string{"--exclude=/" + syncFolder + "/"}
	for _, e := range excludes {
		ignore = append(ignore, "--exclude="+e)
	}
	if _, err := os.Stat(filepath.Join(dir, ignoreFile)); err == nil {
		ignore = append(ignore, "--exclude-from="+ignoreFile)
	}
	drop := map[string]bool{}
	for _, kind := range []string{"--cached", "--others"} {
		ignored, err := ls(append([]string{kind, "--ignored"}, ignore...)...)
		if err != nil {
			return nil, err
		}
		for _, p := range ignored {
			drop[p] = true
		}
	}
	var all []string
	for _, p := range paths {
		switch info, err := os.Lstat(filepath.Join(dir, p)); {
		case drop[p] || err != nil:
		case info.IsDir(): // a repository within the repository
			inner, err := listFiles(ctx, filepath.Join(dir, p), excludes)
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

// git runs git in dir.
func git(ctx context.Context, dir string, words ...string) (result, error) {
	return localRunner{}.run(ctx, command{argv: slices.Concat(safeGit, words), env: gitEnviron(), dir: dir, limit: gitLimit})
}

// gitEnviron returns the environment for git, without the variables that a hook or an
// editor set for another repository.
func gitEnviron() []string {
	return append(slices.DeleteFunc(os.Environ(), func(e string) bool { return strings.HasPrefix(e, "GIT_") }), "LC_ALL=C", "GIT_OPTIONAL_LOCKS=0", "GIT_TERMINAL_PROMPT=0")
}
