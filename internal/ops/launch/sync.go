package launch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/view"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/cluster"
)

// SyncIn names a folder on this machine and its destination.
type SyncIn struct {
	Dir     string   `json:"dir,omitempty" arg:"" optional:"" help:"folder here; the git worktree around the current folder where left out" zh:"本机目录；省略为当前目录所在的 git 工作树"`
	To      string   `json:"to,omitempty" placeholder:"DIR" help:"folder on the cluster; below the cluster's sync_to where left out" zh:"集群上的目录；省略为该集群 sync_to 之下"`
	Exclude []string `json:"exclude,omitempty" sep:"none" placeholder:"PATTERN" help:"leave these out too, in the form of .gitignore" zh:"另外排除，写法同 .gitignore"`
	DryRun  bool     `json:"dry_run,omitempty" name:"dry-run" help:"show the difference, bring nothing" zh:"只显示差异，不传输"`
	Yes     bool     `json:"yes,omitempty" help:"do not ask before bringing it" zh:"不再询问，直接传输"`
	ops.OnCluster
}

// SyncOut is the difference, and whether the folder was transferred.
type SyncOut struct {
	Cluster string               `json:"cluster"`
	From    string               `json:"from"`
	To      string               `json:"to"`
	Added   []cluster.TreeChange `json:"added"`
	Changed []cluster.TreeChange `json:"changed"`
	Deleted []cluster.TreeChange `json:"deleted"`
	Bytes   int64                `json:"bytes"`
	Same    int                  `json:"same"`
	// LeftOut lists links that lead out of the folder. Unfinished says who made an
	// earlier transfer that broke off while it put files in place. Jobs lists the
	// caller's jobs that wait or run in the destination.
	LeftOut    []string      `json:"left_out"`
	Unfinished string        `json:"unfinished,omitempty"`
	Jobs       []slurm.JobID `json:"jobs_there"`
	Commit     string        `json:"commit,omitempty"`
	Brought    bool          `json:"brought"`
	// digest identifies the difference. other reports that it is not the difference
	// that the caller agreed to.
	digest string
	other  bool
}

// Did reports whether the folder was brought.
func (o SyncOut) Did() bool { return o.Brought }

// Sync returns the operation sync.
func Sync() ops.Op {
	return ops.Define(ops.Op{
		Name: "sync", Effect: ops.Write, Toolset: ops.JobsSet, Idempotent: true,
		Summary: lang.Text{EN: "bring a worktree from this machine to a cluster that is reached by ssh", ZH: "把本机的代码目录传到通过 ssh 访问的集群"},
		Help: lang.Text{
			EN: "Shows first what would be added, changed and deleted there. What .gitignore and .megatronopsignore name stays here, as do links that lead out. Only files that an earlier sync brought are deleted. submit with sync does both.",
			ZH: "先显示那边将新增、修改、删除的文件。.gitignore 与 .megatronopsignore 列出的内容和指向目录之外的链接不传输；只会删除此前由 sync 传去的文件。submit 加 sync 一次完成两步。",
		},
		Example:  "sync --cluster far --to /lustre/alice/Megatron-LM",
		Examples: []string{`sync --cluster far --dry-run`, `sync ~/Megatron-LM --cluster far --exclude '*.ipynb' --yes`, `submit -f job.yaml --cluster far --sync`},
	}, syncTree)
}

func syncTree(ctx context.Context, c *ops.Call, in SyncIn) (SyncOut, error) {
	cl, err := c.Cluster(in.Cluster)
	if err != nil {
		return SyncOut{}, err
	}
	b, err := newTransfer(c, cl, in)
	if err != nil {
		return SyncOut{}, err
	}
	out, err := b.compare(ctx, c)
	if err != nil || in.DryRun || out.unchanged() && out.Unfinished == "" {
		return out, err
	}
	if in.Yes || c.Confirmed {
		if out, err = b.run(ctx, c); err != nil || !out.other {
			return out, err
		}
	}
	e := ops.ConfirmError(out.question())
	e.Details, e.Shown = out.lines(), out.digest
	return out, e
}

// A treeReceiver is a cluster that accepts worktrees.
type treeReceiver interface {
	ops.Cluster
	SyncDefaults() (to string, excludes []string)
	CompareTree(context.Context, *cluster.SourceTree, string) (cluster.TreeDifference, error)
	BringTree(ctx context.Context, t *cluster.SourceTree, to, by string, of cluster.GitSource) (cluster.TreeDifference, error)
}

// A treeTransfer is the transfer of one folder to a cluster.
type treeTransfer struct {
	cl       treeReceiver
	dir, to  string
	excludes []string
}

// newTransfer resolves which folder is transferred, and to where.
func newTransfer(c *ops.Call, cl ops.Cluster, in SyncIn) (b treeTransfer, err error) {
	if s := c.Who.Surface; s != ops.Shell && s != ops.Chat && s != ops.MCP {
		return b, &ops.Error{Code: ops.NotAllowed, Message: lang.Text{EN: "files of your machine are brought from your machine: in its shell, or by an agent there", ZH: "本机文件只能从本机传输：在其 shell 中，或由那里的智能体执行"}}
	}
	if cl.Kind() != "ssh" {
		return b, ops.InputError("cluster", lang.Text{EN: "cluster %s, of kind %s, is not reached by ssh: its files are this machine's", ZH: "集群 %s（类型 %s）不是通过 ssh 访问：其文件就在本机"}.With(cl.Name(), cl.Kind()), lang.Text{EN: "name a cluster of kind ssh: --cluster NAME", ZH: "请用 --cluster 指定类型为 ssh 的集群"})
	}
	if b.cl, err = ops.Capable[treeReceiver](cl, lang.Text{EN: "receive a worktree", ZH: "接收工作树"}); err != nil {
		return b, err
	}
	into, excludes := b.cl.SyncDefaults()
	b.excludes = slices.Concat(excludes, in.Exclude)
	switch b.dir = in.Dir; {
	case b.dir == "" && c.Dir == "":
		return b, ops.InputError("dir", lang.Text{EN: "no folder is named", ZH: "没有指明目录"}, lang.Text{EN: "its absolute path", ZH: "请给出绝对路径"})
	case b.dir == "":
		b.dir = worktreeAround(c.Dir)
	case !filepath.IsAbs(b.dir) && c.Dir == "":
		return b, ops.InputError("dir", lang.Text{EN: "%q is relative", ZH: "%q 是相对路径"}.With(b.dir), lang.Text{EN: "its absolute path", ZH: "请给出绝对路径"})
	case !filepath.IsAbs(b.dir):
		b.dir = filepath.Join(c.Dir, b.dir)
	}
	b.dir = filepath.Clean(b.dir)
	if c.MayRead != nil {
		if err := c.MayRead(b.dir); err != nil {
			return b, err
		}
	}
	if st, err := os.Stat(b.dir); err != nil || !st.IsDir() {
		return b, ops.InputError("dir", lang.Text{EN: "%s is no folder of this machine", ZH: "%s 不是本机目录"}.With(b.dir), lang.Text{EN: "check the path", ZH: "请检查路径"})
	}
	if b.to = in.To; b.to == "" && into != "" {
		b.to = path.Join(into, filepath.Base(b.dir))
	}
	switch {
	case b.to == "":
		return b, ops.InputError("to", lang.Text{EN: "it is not said where on %s the folder belongs", ZH: "没有说明目录放在 %s 的何处"}.With(cl.Name()), lang.Text{EN: "--to /path/on/the/cluster, or clusters.%s.sync_to in the configuration", ZH: "使用 --to /集群上的路径，或在配置中设置 clusters.%s.sync_to"}.With(cl.Name()))
	case !path.IsAbs(b.to) || path.Clean(b.to) == "/" || strings.ContainsFunc(b.to, unicode.IsControl):
		return b, ops.InputError("to", lang.Text{EN: "%s is no absolute path of a folder", ZH: "%s 不是目录的绝对路径"}.With(strconv.Quote(b.to)), lang.Text{EN: "such as /lustre/alice/Megatron-LM", ZH: "例如 /lustre/alice/Megatron-LM"})
	}
	b.to = path.Clean(b.to)
	return b, nil
}

// worktreeAround returns the git worktree that contains dir, or dir itself.
func worktreeAround(dir string) string {
	for d := dir; ; d = filepath.Dir(d) {
		if _, err := os.Lstat(filepath.Join(d, ".git")); err == nil {
			return d
		}
		if d == filepath.Dir(d) {
			return dir
		}
	}
}

// compare returns what the transfer would change.
func (b treeTransfer) compare(ctx context.Context, c *ops.Call) (SyncOut, error) {
	return b.with(ctx, c, func(t *cluster.SourceTree) (cluster.TreeDifference, bool, error) {
		d, err := b.cl.CompareTree(ctx, t, b.to)
		return d, false, err
	})
}

// run transfers the folder as it is now.
func (b treeTransfer) run(ctx context.Context, c *ops.Call) (SyncOut, error) {
	return b.with(ctx, c, func(t *cluster.SourceTree) (cluster.TreeDifference, bool, error) {
		host, _ := os.Hostname()
		of, _ := cluster.SourceHere(ctx, b.dir)
		by := fmt.Sprintf("%s@%s, %s", c.Who.User, host, c.Now().UTC().Format("2006-01-02 15:04 MST"))
		t.Agreed = c.Shown
		d, err := b.cl.BringTree(ctx, t, b.to, by, of)
		return d, err == nil, err
	})
}

func (b treeTransfer) with(ctx context.Context, c *ops.Call, do func(*cluster.SourceTree) (cluster.TreeDifference, bool, error)) (SyncOut, error) {
	defer c.During("sync")()
	out := SyncOut{Cluster: b.cl.Name(), From: b.dir, To: b.to, Jobs: []slurm.JobID{}, LeftOut: []string{}}
	t, err := cluster.ReadSourceTree(ctx, b.dir, b.excludes)
	if err != nil {
		return out, c.SlurmError(err, "")
	}
	defer func() { _ = t.Close() }()
	d, brought, err := do(t)
	out.other = errors.Is(err, cluster.ErrDifferenceChanged)
	if err != nil && !out.other {
		return out, c.SlurmError(err, "")
	}
	out.digest = d.Digest()
	out.Added, out.Changed, out.Deleted = shownFiles(d.Added), shownFiles(d.Changed), shownFiles(d.Deleted)
	out.Bytes, out.Same, out.Unfinished, out.Brought = d.Bytes, d.Same, d.Unfinished, brought
	for _, p := range t.Outside {
		out.LeftOut = append(out.LeftOut, printable(p))
	}
	if of, ok := cluster.SourceHere(ctx, b.dir); ok {
		out.Commit = of.Commit
	}
	if !out.unchanged() {
		jobs, err := b.cl.Jobs(ctx, slurm.Filter{User: c.Who.User})
		for _, j := range jobs {
			if err == nil && !j.State.Ended() && (j.WorkDir == b.to || strings.HasPrefix(j.WorkDir, b.to+"/")) {
				out.Jobs = append(out.Jobs, j.ID)
			}
		}
	}
	return out, nil
}

// shownFiles returns the files with paths that can be printed.
func shownFiles(all []cluster.TreeChange) []cluster.TreeChange {
	files := append([]cluster.TreeChange{}, all...)
	for i := range files {
		files[i].Path = printable(files[i].Path)
	}
	return files
}

// printable returns a path as it can be printed: quoted where it has other characters.
func printable(p string) string {
	if !utf8.ValidString(p) || strings.ContainsFunc(p, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(p)
	}
	return p
}

func (o SyncOut) unchanged() bool { return len(o.Added)+len(o.Changed)+len(o.Deleted) == 0 }

// maxShown is how many files of each kind are shown by name.
const maxShown = 12

// lines describes the difference, one line for each file, and what else the reader
// should know.
func (o SyncOut) lines() []lang.Text {
	var all []lang.Text
	for _, k := range []struct {
		mark  string
		files []cluster.TreeChange
	}{{"+", o.Added}, {"~", o.Changed}, {"-", o.Deleted}} {
		for _, f := range k.files[:min(len(k.files), maxShown)] {
			line := lang.Same(k.mark + " " + f.Path)
			if k.mark != "-" {
				line = lang.Same(line.EN + "  " + ops.Bytes(f.Bytes))
			}
			if f.EditedThere {
				line = lang.Text{EN: "%s  (edited there since it was brought)", ZH: "%s  （传去之后在那边被修改过）"}.With(line)
			}
			all = append(all, line)
		}
		if more := len(k.files) - maxShown; more > 0 {
			all = append(all, lang.Text{EN: "%s and %d more", ZH: "%s 另有 %d 个"}.With(k.mark, more))
		}
	}
	if o.Unfinished != "" {
		all = append(all, lang.Text{EN: "an earlier sync (%s) broke off while files were put in place; this one finishes it", ZH: "此前的一次 sync（%s）在放置文件时中断；本次会完成它"}.With(o.Unfinished))
	}
	if len(o.LeftOut) > 0 {
		all = append(all, lang.Text{EN: "left out, links that lead out of the folder: %s", ZH: "不传输（指向目录之外的链接）：%s"}.With(strings.Join(o.LeftOut[:min(len(o.LeftOut), maxShown)], ", ")))
	}
	if len(o.Jobs) > 0 && !o.unchanged() {
		var ids []string
		for _, id := range o.Jobs {
			ids = append(ids, string(id))
		}
		all = append(all, lang.Text{EN: "jobs of yours that wait or run in that folder would see this: %s", ZH: "您在该目录中排队或运行的作业会受影响：%s"}.With(strings.Join(ids, ", ")))
	}
	return all
}

// summary describes the difference in one line.
func (o SyncOut) summary() lang.Text {
	return lang.Text{EN: "%d added, %d changed, %d deleted, %s", ZH: "新增 %d，修改 %d，删除 %d，%s"}.With(len(o.Added), len(o.Changed), len(o.Deleted), ops.Bytes(o.Bytes))
}

// question says what a yes would transfer.
func (o SyncOut) question() lang.Text {
	would := lang.Text{EN: "this brings %s to %s:%s: %s", ZH: "将把 %s 传到 %s:%s：%s"}.With(o.From, o.Cluster, o.To, o.summary())
	if o.other {
		would = lang.Text{EN: "%s; %s", ZH: "%s；%s"}.With(lang.Said(cluster.ErrDifferenceChanged), would)
	}
	return would
}

// View shows the difference.
func (o SyncOut) View(l lang.Lang) view.Doc {
	place := o.Cluster + ":" + o.To
	d := view.Doc{Tone: view.Good, Title: lang.Text{EN: "%s is as it is here: %s", ZH: "%s 与本机一致：%s"}.With(place, ops.Counted(o.Same, "file")).In(l)}
	switch {
	case o.Brought:
		d.Title = lang.Text{EN: "brought to %s: %s", ZH: "已传到 %s：%s"}.With(place, o.summary()).In(l)
	case !o.unchanged():
		d.Tone, d.Title = view.Plain, lang.Text{EN: "%s differs: %s", ZH: "%s 有差异：%s"}.With(place, o.summary()).In(l)
	}
	var items []string
	for _, line := range o.lines() {
		items = append(items, line.In(l))
	}
	if len(items) > 0 {
		d.Sections = []view.Section{{Items: items}}
	}
	return d
}
