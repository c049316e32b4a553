package cluster

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// A TreeChange is one file that differs between the tree on this machine and the tree
// on the cluster.
type TreeChange struct {
	Path  string `json:"path"`
	Bytes int64  `json:"bytes"`
	// EditedThere reports that somebody changed the file on the cluster since the last
	// sync.
	EditedThere bool `json:"edited_there,omitempty"`
}

// A TreeDifference lists the changes that a sync would make on the cluster. Files that
// no sync brought, such as logs and checkpoints, are not part of it.
type TreeDifference struct {
	Added, Changed, Deleted []TreeChange
	Same                    int
	// Bytes is the size of the added and changed files.
	Bytes int64
	// Unfinished is the person whose sync broke off while it put files in place; else
	// empty.
	Unfinished string

	rsync  bool
	toSend []SourceFile
}

// ErrDifferenceChanged is the error of a sync that stops because the difference is no longer the
// one that the person agreed to.
var ErrDifferenceChanged = lang.Text{EN: "the difference has changed since it was shown", ZH: "差异在显示之后又有变化"}.Err()

// Digest identifies the difference: which files would change on the cluster, and to
// which content.
func (d TreeDifference) Digest() string {
	h := sha256.New()
	for _, kind := range [][]TreeChange{d.Added, d.Changed, d.Deleted} {
		for _, f := range kind {
			fmt.Fprintf(h, "%q %v\n", f.Path, f.EditedThere)
		}
		fmt.Fprintln(h)
	}
	for _, f := range d.toSend {
		fmt.Fprintf(h, "%q %v %q\n", f.Path, f.Exec, f.fingerprint())
	}
	fmt.Fprintf(h, "%q\n", d.Unfinished)
	return hex.EncodeToString(h.Sum(nil))
}

// None reports whether the tree on the cluster equals the local one.
func (d TreeDifference) None() bool { return len(d.Added)+len(d.Changed)+len(d.Deleted) == 0 }

// A syncRecord is kept beside a tree on the cluster. It lists the files that a sync
// brought, to distinguish them from files that jobs wrote.
type syncRecord struct {
	By    string            `json:"by"`
	Files map[string]string `json:"files"` // base64 of the path → SHA-256, or "link " and the target
}

// SyncDefaults returns the configured target folder of a sync and the patterns of files
// that it leaves out; both are empty for a cluster that is not reached by ssh.
func (c *CLI) SyncDefaults() (to string, excludes []string) {
	if t, ok := c.runner.(*sshRunner); ok {
		return t.SyncTo, t.SyncExclude
	}
	return "", nil
}

// remote returns the runner of the host that receives trees.
func (c *CLI) remote() (*sshRunner, error) {
	t, ok := c.runner.(*sshRunner)
	if !ok {
		return nil, &slurm.Error{
			Op: "sync", Kind: slurm.Rejected, Msg: lang.Text{EN: "cluster %s is not reached by ssh: its files are this machine's", ZH: "集群 %s 不是通过 ssh 访问：其文件就在本机"}.With(c.name),
			Fix: lang.Text{EN: "sync is for clusters of kind ssh", ZH: "sync 用于类型为 ssh 的集群"},
		}
	}
	return t, nil
}

// inspectScript reads NUL-terminated paths, base64-encoded, from standard input. It
// prints the kind of each path, and then the SHA-256 of each regular file. It does not
// follow links: a link in place of a folder is printed as "behind".
const inspectScript = `cd -- "$1" 2>/dev/null || { if [ -e "$1" ] || [ -L "$1" ]; then echo "$1: is no folder that can be entered" >&2; exit 74; fi; printf 'tools\0%s\0\0' "$(command -v rsync)"; exit 0; }
printf 'tools\0%s\0\0' "$(command -v rsync)"
for f in .megatron-ops .megatron-ops/brought .megatron-ops/bringing .megatron-ops/incoming; do
  if [ -L "$f" ]; then printf 'behind\0%s\0\0' "$f"; exit 0; fi
done
for f in brought bringing; do
  [ -f ".megatron-ops/$f" ] && { printf '%s\0%s\0\0' "$f" "$(base64 -w0 ".megatron-ops/$f")"; }
done
files=()
while IFS= read -r -d '' f; do
  d=$f behind=
  while [[ $d == */* ]]; do d=${d%/*}; if [ -L "$d" ] || { [ -e "$d" ] && [ ! -d "$d" ]; }; then behind=$d; fi; done
  if [ -n "$behind" ]; then printf 'behind\0%s\0%s\0' "$f" "$behind"
  elif [ -L "$f" ]; then l=$(readlink -n -- "$f"; echo .); printf 'link\0%s\0%s\0' "$f" "${l%.}"
  elif [ -f "$f" ]; then x=; [ -x "$f" ] && x=x; printf 'file\0%s\0%s\0' "$f" "$x"; files+=("./$f")
  elif [ -e "$f" ]; then printf 'other\0%s\0\0' "$f"; fi
done < <(base64 -d)
[ ${#files[@]} -eq 0 ] || printf '%s\0' "${files[@]}" | xargs -0 sha256sum -z -- 2>/dev/null | while IFS= read -r -d '' l; do
  printf 'sum\0%s\0%s\0' "${l:66+2}" "${l:0:64}"
done`

// installScript moves the files in .megatron-ops/incoming to their places, each by an
// atomic rename, and removes the deleted files. It goes on where the connection breaks
// off. It reads pairs of m (move) or d (delete) and a path, NUL-terminated and
// base64-encoded, from standard input.
const installScript = `trap '' HUP PIPE INT
cd -- "$1" || exit 74
[ -L .megatron-ops ] && exit 74
rm -f .megatron-ops/source
n=0
while IFS= read -r -d '' op && IFS= read -r -d '' f; do
  d=$f
  while [[ $d == */* ]]; do d=${d%/*}; if [ -L "$d" ]; then echo "$d: is a link" >&2; exit 74; fi; done
  case $op in
  m) [[ $f == */* ]] && mkdir -p -- "./${f%/*}"
     mv -fT -- ".megatron-ops/incoming/$f" "./$f" || { echo "$n files were put in place before" >&2; exit 74; } ;;
  d) rm -f -- "./$f" || { echo "$n files were put in place before" >&2; exit 74; }
     [[ $f == */* ]] && rmdir -p --ignore-fail-on-non-empty -- "${f%/*}" 2>/dev/null ;;
  esac
  n=$((n + 1))
done < <(base64 -d)
mv -f .megatron-ops/bringing .megatron-ops/brought && rm -rf .megatron-ops/incoming && echo "$n"`

// bash runs a bash script on the cluster with args as its arguments and stdin as its
// standard input.
func (c *CLI) bash(ctx context.Context, script, stdin string, limit time.Duration, args ...string) (string, error) {
	r, err := c.run(ctx, command{argv: append([]string{"bash", "-c", script, "bash"}, args...), stdin: cmp.Or(stdin, "\n"), limit: limit})
	if err != nil {
		return "", withOp("sync", err)
	}
	if r.code != 0 {
		return "", &slurm.Error{Op: "sync", Kind: slurm.Rejected, Msg: lang.Same(cmp.Or(strings.TrimSpace(r.stderr), "exit status "+strconv.Itoa(r.code)))}
	}
	return r.stdout, nil
}

// transferLimit bounds the time of one step of a sync.
const transferLimit = 2 * time.Hour

// A remoteEntry is the state of one path on the cluster: its kind as inspectScript
// prints it, the link target or the executable mark, and the SHA-256.
type remoteEntry struct{ kind, more, sum string }

// inspect returns the state of paths below dir on the cluster, the sync records found
// there by name, and whether the host has rsync.
func (c *CLI) inspect(ctx context.Context, dir string, paths []string) (rsync bool, notes map[string]string, found map[string]remoteEntry, err error) {
	said, err := c.bash(ctx, inspectScript, nulBase64(paths...), transferLimit, dir)
	if err != nil {
		return false, nil, nil, err
	}
	words := strings.Split(said, "\x00")
	notes, found = map[string]string{}, map[string]remoteEntry{}
	for len(words) > 3 {
		kind, name, more := words[0], words[1], words[2]
		words = words[3:]
		switch kind {
		case "tools":
			rsync = name != ""
		case "brought", "bringing":
			notes[kind] = name
		case "sum":
			s := found[name]
			s.sum = more
			found[name] = s
		case "behind":
			return rsync, nil, nil, &slurm.Error{
				Op: "sync", Kind: slurm.Rejected, Msg: lang.Text{EN: "%s is a link or a file on the cluster, not a folder: nothing is written behind it", ZH: "那边的 %s 是链接或文件而非目录：不会写到它后面"}.With(strconv.Quote(path.Join(dir, cmp.Or(more, name)))),
				Fix: lang.Text{EN: "name another folder, or remove it on the cluster", ZH: "请改用其他目录，或在那边移走它"},
			}
		default:
			found[name] = remoteEntry{kind: kind, more: more}
		}
	}
	return rsync, notes, found, nil
}

// nulBase64 encodes words for a script's standard input, which carries no NUL.
func nulBase64(words ...string) string {
	var b []byte
	for _, w := range words {
		b = append(append(b, w...), 0)
	}
	return base64.StdEncoding.EncodeToString(b)
}

func (f SourceFile) matches(e remoteEntry) bool {
	if f.Link != "" {
		return e.kind == "link" && e.more == f.Link
	}
	return e.kind == "file" && e.sum == f.sum && (e.more == "x") == f.Exec
}

// fingerprint identifies the content of f in a sync record.
func (f SourceFile) fingerprint() string { return cmp.Or(f.sum, "link "+f.Link) }

// CompareTree returns the changes that a sync of the tree to the folder to would make.
func (c *CLI) CompareTree(ctx context.Context, t *SourceTree, to string) (TreeDifference, error) {
	d, _, err := c.compare(ctx, t, to)
	return d, err
}

func (c *CLI) compare(ctx context.Context, t *SourceTree, to string) (d TreeDifference, was syncRecord, err error) {
	if _, err := c.remote(); err != nil {
		return d, was, err
	}
	_, notes, _, err := c.inspect(ctx, to, nil)
	if err != nil {
		return d, was, err
	}
	was.Files = map[string]string{}
	for _, name := range []string{"brought", "bringing"} { // a sync that broke off may have installed files of "bringing"
		raw, err := base64.StdEncoding.DecodeString(notes[name])
		var b syncRecord
		if err == nil && len(raw) > 0 && json.Unmarshal(raw, &b) == nil {
			maps.Copy(was.Files, b.Files)
			was.By = b.By
			if name == "bringing" {
				d.Unfinished = b.By
			}
		}
	}
	here, paths := map[string]bool{}, []string{}
	for _, f := range t.Files {
		here[f.Path] = true
		paths = append(paths, f.Path)
	}
	for p := range was.Files {
		if name, err := base64.StdEncoding.DecodeString(p); err == nil && !here[string(name)] && localName(string(name)) {
			paths = append(paths, string(name))
		}
	}
	slices.Sort(paths)
	var found map[string]remoteEntry
	if d.rsync, _, found, err = c.inspect(ctx, to, paths); err != nil {
		return d, was, err
	}
	edited := func(p string, s remoteEntry) bool {
		mark, known := was.Files[base64.StdEncoding.EncodeToString([]byte(p))]
		return known && mark != cmp.Or(s.sum, "link "+s.more)
	}
	for _, f := range t.Files {
		s, there := found[f.Path]
		change := TreeChange{Path: f.Path, Bytes: f.Bytes}
		switch {
		case !there:
			d.Added = append(d.Added, change)
		case f.matches(s):
			d.Same++
			continue
		case s.kind == "other":
			return d, was, &slurm.Error{
				Op: "sync", Kind: slurm.Rejected, Msg: lang.Text{EN: "%s is a folder or a device on the cluster, and a file here", ZH: "%s 在那边是目录或设备，在这里是文件"}.With(strconv.Quote(f.Path)),
				Fix: lang.Text{EN: "remove it on the cluster first", ZH: "请先在那边移走它"},
			}
		default:
			change.EditedThere = edited(f.Path, s)
			d.Changed = append(d.Changed, change)
		}
		d.Bytes += f.Bytes
		d.toSend = append(d.toSend, f)
	}
	for _, p := range paths {
		if s, there := found[p]; there && !here[p] && s.kind != "other" {
			d.Deleted = append(d.Deleted, TreeChange{Path: p, EditedThere: edited(p, s)})
		}
	}
	return d, was, nil
}

// localName reports whether a path read from a sync record stays within the tree.
func localName(p string) bool {
	return !path.IsAbs(p) && path.Clean(p) == p && p != "." && p != ".." && !strings.HasPrefix(p, "../") && !strings.HasPrefix(p, syncFolder+"/")
}

// BringTree copies the tree to the folder to on the cluster and returns the changes
// that it made. It holds a lock there, copies the files into a staging folder, checks
// every file, and only then moves them into place. A transfer that breaks off leaves
// the old tree unchanged.
func (c *CLI) BringTree(ctx context.Context, t *SourceTree, to, by string, of GitSource) (TreeDifference, error) {
	r, err := c.remote()
	if err != nil {
		return TreeDifference{}, err
	}
	release, err := r.lockTree(ctx, to, by)
	if err != nil {
		return TreeDifference{}, err
	}
	defer release()
	d, was, err := c.compare(ctx, t, to)
	if err != nil {
		return d, err
	}
	if t.Agreed != "" && t.Agreed != d.Digest() {
		return d, ErrDifferenceChanged
	}
	stage := path.Join(to, syncFolder, "incoming")
	if len(d.toSend) > 0 {
		if err := c.mkdir(ctx, stage); err != nil {
			return d, withOp("sync", err)
		}
		if d.rsync && LookIn(r.environ(), "rsync") != "" {
			err = r.sendByRsync(ctx, t, d.toSend, stage)
		} else {
			err = r.sendByTar(ctx, t, d.toSend, stage)
		}
		if err == nil {
			err = c.checkStage(ctx, d.toSend, stage)
		}
		if err != nil {
			return d, err
		}
	}
	will := syncRecord{By: by, Files: map[string]string{}}
	for _, f := range t.Files {
		will.Files[base64.StdEncoding.EncodeToString([]byte(f.Path))] = f.fingerprint()
	}
	pending := will
	if !d.None() { // a file that is to be deleted stays in the record until it is gone
		pending.Files = was.Files
		maps.Copy(pending.Files, will.Files)
	}
	var orders []string
	for _, f := range d.toSend {
		orders = append(orders, "m", f.Path)
	}
	for _, f := range d.Deleted {
		orders = append(orders, "d", f.Path)
	}
	of.Brought = by
	return d, c.install(ctx, to, pending, will, of, orders)
}

// install writes the sync records on the cluster and runs installScript: it stores
// pending before the first change and will after the last.
func (c *CLI) install(ctx context.Context, to string, pending, will syncRecord, of GitSource, orders []string) error {
	write := func(name string, b any) error {
		raw, err := json.Marshal(b)
		if err != nil {
			return err
		}
		_, err = c.bash(ctx, `cd -- "$1" && mkdir -p .megatron-ops && echo '*' >.megatron-ops/.gitignore && base64 -d >".megatron-ops/$2.new" && mv -f ".megatron-ops/$2.new" ".megatron-ops/$2"`, base64.StdEncoding.EncodeToString(raw), 0, to, name)
		return err
	}
	if err := write("bringing", pending); err != nil {
		return err
	}
	if _, err := c.bash(context.WithoutCancel(ctx), installScript, nulBase64(orders...), transferLimit, to); err != nil {
		e := slurm.Error{Op: "sync", Kind: slurm.Rejected, Msg: lang.Said(err)}
		if known, ok := errors.AsType[*slurm.Error](err); ok {
			e = *known
		}
		e.Fix = lang.Text{EN: "sync again: it shows what is there, and finishes", ZH: "请再次 sync：会显示那边的现状并完成传输"}
		return &e
	}
	return errors.Join(write("brought", will), write("source", of))
}
