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
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// A TreeChange is one file that differs between a tree here and there.
type TreeChange struct {
	Path  string
	Bytes int64
	// EditedThere reports that the file there is not as it was brought.
	EditedThere bool
}

// A TreeDifference is what bringing a tree to a cluster would change there. What was
// never brought, such as logs and checkpoints, is not looked at.
type TreeDifference struct {
	Added, Changed, Deleted []TreeChange
	Same                    int
	// Bytes are those of what is added and changed.
	Bytes int64
	// Unfinished says who was putting files in place when that broke off.
	Unfinished string

	rsync  bool
	brings []SourceFile
}

// ErrOther is the error of a tree that is not brought, since the difference is not the
// one that was agreed to.
var ErrOther = lang.Text{EN: "the difference has changed since it was shown", ZH: "差异在显示之后又有变化"}.Err()

// Digest names the difference: which files would be changed there, and to what.
func (d TreeDifference) Digest() string {
	h := sha256.New()
	for _, kind := range [][]TreeChange{d.Added, d.Changed, d.Deleted} {
		for _, f := range kind {
			fmt.Fprintf(h, "%q %v\n", f.Path, f.EditedThere)
		}
		fmt.Fprintln(h)
	}
	for _, f := range d.brings {
		fmt.Fprintf(h, "%q %v %q\n", f.Path, f.Exec, f.mark())
	}
	fmt.Fprintf(h, "%q\n", d.Unfinished)
	return hex.EncodeToString(h.Sum(nil))
}

// None reports that the tree there is as it is here.
func (d TreeDifference) None() bool { return len(d.Added)+len(d.Changed)+len(d.Deleted) == 0 }

// A broughtTree is what lies beside a tree there: what was brought, so that it can be
// told from what jobs have written.
type broughtTree struct {
	By    string            `json:"by"`
	Files map[string]string `json:"files"` // base64 of the path → SHA-256, or the link
}

// SyncDefaults are the folder there that trees are brought into, and what stays here.
func (c *CLI) SyncDefaults() (to string, excludes []string) {
	if t, ok := c.runner.(*there); ok {
		return t.SyncTo, t.SyncExclude
	}
	return "", nil
}

// remote is the host that trees are brought to.
func (c *CLI) remote() (*there, error) {
	t, ok := c.runner.(*there)
	if !ok {
		return nil, &slurm.Error{
			Op: "sync", Kind: slurm.Rejected, Msg: lang.Text{EN: "cluster %s is not reached by ssh: its files are this machine's", ZH: "集群 %s 不是通过 ssh 访问：其文件就在本机"}.With(c.name),
			Fix: lang.Text{EN: "sync is for clusters of kind ssh", ZH: "sync 用于类型为 ssh 的集群"},
		}
	}
	return t, nil
}

// lookThere tells of each path on standard input, base64 of paths that end in NUL,
// what it is, and then the SHA-256 of those that are files. Nothing behind a link is
// looked at: a link in the place of a folder is told as one.
const lookThere = `cd -- "$1" 2>/dev/null || { if [ -e "$1" ] || [ -L "$1" ]; then echo "$1: is no folder that can be entered" >&2; exit 74; fi; printf 'tools\0%s\0\0' "$(command -v rsync)"; exit 0; }
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

// putThere puts what lies in .megatron-ops/incoming in its place, file by file, each
// at once, and takes away what is to go. It goes on where the connection breaks off.
// Its standard input holds m or d and the path, base64 of words that end in NUL.
const putThere = `trap '' HUP PIPE INT
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

// bash runs a script of bash there, with those arguments and that on standard input.
func (c *CLI) bash(ctx context.Context, script, stdin string, limit time.Duration, args ...string) (string, error) {
	r, err := c.run(ctx, command{argv: append([]string{"bash", "-c", script, "bash"}, args...), stdin: cmp.Or(stdin, "\n"), limit: limit})
	if err != nil {
		return "", named("sync", err)
	}
	if r.code != 0 {
		return "", &slurm.Error{Op: "sync", Kind: slurm.Rejected, Msg: lang.Same(cmp.Or(strings.TrimSpace(r.stderr), "exit status "+strconv.Itoa(r.code)))}
	}
	return r.stdout, nil
}

// transferLimit is how long one step of bringing a tree may take.
const transferLimit = 2 * time.Hour

// stands is what a path there is.
type stands struct{ kind, more, sum string }

// look asks what lies below dir there under those paths.
func (c *CLI) look(ctx context.Context, dir string, paths []string) (rsync bool, notes map[string]string, found map[string]stands, err error) {
	said, err := c.bash(ctx, lookThere, wrapped(paths...), transferLimit, dir)
	if err != nil {
		return false, nil, nil, err
	}
	words := strings.Split(said, "\x00")
	notes, found = map[string]string{}, map[string]stands{}
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
				Op: "sync", Kind: slurm.Rejected, Msg: lang.Text{EN: "%s is a link or a file there, not a folder: nothing is written behind it", ZH: "那边的 %s 是链接或文件而非目录：不会写到它后面"}.With(strconv.Quote(path.Join(dir, cmp.Or(more, name)))),
				Fix: lang.Text{EN: "name another folder, or take it away there", ZH: "请改用其他目录，或在那边移走它"},
			}
		default:
			found[name] = stands{kind: kind, more: more}
		}
	}
	return rsync, notes, found, nil
}

// wrapped is words for a script's standard input, which takes no NUL.
func wrapped(words ...string) string {
	var b strings.Builder
	for _, w := range words {
		b.WriteString(w)
		b.WriteByte(0)
	}
	return wrap([]byte(b.String()))
}

// wrap is base64 in lines.
func wrap(raw []byte) string {
	var b strings.Builder
	text := base64.StdEncoding.EncodeToString(raw)
	for len(text) > 76 {
		b.WriteString(text[:76] + "\n")
		text = text[76:]
	}
	return b.String() + text + "\n"
}

// is reports whether what stands there is f.
func (f SourceFile) is(s stands) bool {
	if f.Link != "" {
		return s.kind == "link" && s.more == f.Link
	}
	return s.kind == "file" && s.sum == f.sum && (s.more == "x") == f.Exec
}

// mark is what is kept of f.
func (f SourceFile) mark() string { return cmp.Or(f.sum, "link "+f.Link) }

// CompareTree says what bringing the tree to the folder to would change there.
func (c *CLI) CompareTree(ctx context.Context, t *SourceTree, to string) (TreeDifference, error) {
	d, _, err := c.compare(ctx, t, to)
	return d, err
}

func (c *CLI) compare(ctx context.Context, t *SourceTree, to string) (d TreeDifference, was broughtTree, err error) {
	if _, err := c.remote(); err != nil {
		return d, was, err
	}
	_, notes, _, err := c.look(ctx, to, nil)
	if err != nil {
		return d, was, err
	}
	was.Files = map[string]string{}
	for _, name := range []string{"brought", "bringing"} { // what was on its way may be there
		raw, err := base64.StdEncoding.DecodeString(notes[name])
		var b broughtTree
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
	var found map[string]stands
	if d.rsync, _, found, err = c.look(ctx, to, paths); err != nil {
		return d, was, err
	}
	edited := func(p string, s stands) bool {
		mark, known := was.Files[base64.StdEncoding.EncodeToString([]byte(p))]
		return known && mark != cmp.Or(s.sum, "link "+s.more)
	}
	for _, f := range t.Files {
		s, there := found[f.Path]
		change := TreeChange{Path: f.Path, Bytes: f.Bytes}
		switch {
		case !there:
			d.Added = append(d.Added, change)
		case f.is(s):
			d.Same++
			continue
		case s.kind == "other":
			return d, was, &slurm.Error{
				Op: "sync", Kind: slurm.Rejected, Msg: lang.Text{EN: "%s is a folder or a device there, and a file here", ZH: "%s 在那边是目录或设备，在这里是文件"}.With(strconv.Quote(f.Path)),
				Fix: lang.Text{EN: "take it away there first", ZH: "请先在那边移走它"},
			}
		default:
			change.EditedThere = edited(f.Path, s)
			d.Changed = append(d.Changed, change)
		}
		d.Bytes += f.Bytes
		d.brings = append(d.brings, f)
	}
	for _, p := range paths {
		if s, there := found[p]; there && !here[p] && s.kind != "other" {
			d.Deleted = append(d.Deleted, TreeChange{Path: p, EditedThere: edited(p, s)})
		}
	}
	return d, was, nil
}

// localName reports whether a path that was read there stays within the tree.
func localName(p string) bool {
	return !path.IsAbs(p) && path.Clean(p) == p && p != "." && p != ".." && !strings.HasPrefix(p, "../") && !strings.HasPrefix(p, keptThere+"/")
}

// BringTree brings the tree to the folder to: under a lock there, into a folder beside
// it first, where every file is checked, and only then into its place. A transfer that
// breaks off leaves what was there as it was. It returns what was changed.
func (c *CLI) BringTree(ctx context.Context, t *SourceTree, to, by string, of GitSource) (TreeDifference, error) {
	r, err := c.remote()
	if err != nil {
		return TreeDifference{}, err
	}
	release, err := r.hold(ctx, to, by)
	if err != nil {
		return TreeDifference{}, err
	}
	defer release()
	d, was, err := c.compare(ctx, t, to)
	if err != nil {
		return d, err
	}
	if t.Agreed != "" && t.Agreed != d.Digest() {
		return d, ErrOther
	}
	stage := path.Join(to, keptThere, "incoming")
	if len(d.brings) > 0 {
		if err := c.mkdir(ctx, stage); err != nil {
			return d, named("sync", err)
		}
		if d.rsync && lookIn(os.Environ(), "rsync") != "" {
			err = r.byRsync(ctx, t, d.brings, stage)
		} else {
			err = r.byTar(ctx, t, d.brings, stage)
		}
		if err == nil {
			err = c.checkStage(ctx, d.brings, stage)
		}
		if err != nil {
			return d, err
		}
	}
	will := broughtTree{By: by, Files: map[string]string{}}
	for _, f := range t.Files {
		will.Files[base64.StdEncoding.EncodeToString([]byte(f.Path))] = f.mark()
	}
	pending := will
	if !d.None() { // what is to go is known as ours until it is gone
		pending.Files = was.Files
		maps.Copy(pending.Files, will.Files)
	}
	var orders []string
	for _, f := range d.brings {
		orders = append(orders, "m", f.Path)
	}
	for _, f := range d.Deleted {
		orders = append(orders, "d", f.Path)
	}
	of.Brought = by
	return d, c.put(ctx, to, pending, will, of, orders)
}

// put writes down what is about to be there, and puts it there.
func (c *CLI) put(ctx context.Context, to string, pending, will broughtTree, of GitSource, orders []string) error {
	write := func(name string, b any) error {
		raw, err := json.Marshal(b)
		if err != nil {
			return err
		}
		_, err = c.bash(ctx, `cd -- "$1" && mkdir -p .megatron-ops && echo '*' >.megatron-ops/.gitignore && base64 -d >".megatron-ops/$2.new" && mv -f ".megatron-ops/$2.new" ".megatron-ops/$2"`, wrap(raw), 0, to, name)
		return err
	}
	if err := write("bringing", pending); err != nil {
		return err
	}
	if _, err := c.bash(context.WithoutCancel(ctx), putThere, wrapped(orders...), transferLimit, to); err != nil {
		e := slurm.Error{Op: "sync", Kind: slurm.Rejected, Msg: lang.Said(err)}
		if known, ok := errors.AsType[*slurm.Error](err); ok {
			e = *known
		}
		e.Fix = lang.Text{EN: "sync again: it shows what is there, and finishes", ZH: "请再次 sync：会显示那边的现状并完成传输"}
		return &e
	}
	return errors.Join(write("brought", will), write("source", of))
}
