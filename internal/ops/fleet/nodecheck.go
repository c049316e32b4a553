package fleet

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/view"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/hostlist"
)

// NodeCheckIn names the nodes to test.
type NodeCheckIn struct {
	Nodes     string `json:"nodes" arg:"" help:"hostlist; two or more are compared with one another" zh:"节点列表（hostlist）；两个以上会互相比较"`
	GPUs      *int   `json:"gpus,omitempty" name:"gpus" help:"of each node; all it has where left out, 0 for none" zh:"每节点 GPU 数；省略为全部，0 表示不用"`
	Partition string `json:"partition,omitempty" help:"to reach the nodes through" zh:"经由哪个分区"`
	Python    string `json:"python,omitempty" placeholder:"FILE" help:"a Python with torch, as the nodes see it; python3 where left out" zh:"节点上带 torch 的 Python；默认 python3"`
	Yes       bool   `json:"yes,omitempty" help:"do not ask before" zh:"不再询问"`
	ops.OnCluster
}

// NodeCheckOut holds the results, one for each node.
type NodeCheckOut struct {
	Nodes []CheckedNode `json:"nodes"`
	// Odd lists the nodes that failed or fell behind the others. Exclude is the same
	// list as a value for --exclude.
	Odd     []string `json:"odd"`
	Exclude string   `json:"exclude"`
	// Untested lists the tests that could not be run, and why.
	Untested []Untested `json:"untested"`
}

// A CheckedNode is the result of one node.
type CheckedNode struct {
	Node   string `json:"node"`
	OK     bool   `json:"ok"`
	State  string `json:"state,omitempty"`  // Slurm's state, for a node that accepts no jobs
	Reason string `json:"reason,omitempty"` // why it accepts none
	// Findings say what is wrong with the node. Measured holds the figure of each test,
	// for the node's slowest GPU or link.
	Findings []string           `json:"findings"`
	Measured map[string]float64 `json:"measured"`
}

// An Untested is a test that could not be run.
type Untested struct {
	Test  string   `json:"test"`
	Why   string   `json:"why"`
	Nodes []string `json:"nodes"`
}

// Found reports whether a node should be left out.
func (o NodeCheckOut) Found() bool { return len(o.Odd) > 0 }

//go:embed nodecheck.py
var nodeCheckProgram string

// nodeCheckLimit is how long the tests on the nodes may take.
const nodeCheckLimit = 8 * time.Minute

// nodeCheckShell writes the program to a file, because the processes that it starts for
// the GPUs read the program again. The file lies in a folder of its own, and the program
// runs in it: Python imports what lies beside a program, and in its work directory, before
// its own modules, and anybody can leave a file in /tmp.
const nodeCheckShell = `dir=$(mktemp -d) || exit 3
trap 'rm -rf "$dir"' EXIT
printf %s "$2" >"$dir/nodecheck.py" || exit 3
case $1 in */*) python=$(realpath -s "$1") ;; *) python=$1 ;; esac
cd "$dir" || exit 3
"$python" "$dir/nodecheck.py"`

// NodeCheck returns the operation nodecheck.
func NodeCheck() ops.Op {
	return ops.Define(ops.Op{
		Name: "nodecheck", Effect: ops.Write, Toolset: ops.NodesSet,
		Summary: lang.Text{EN: "test nodes and the links between them; finds the odd ones out", ZH: "检测节点及其互联，找出异常节点"},
		Help: lang.Text{
			EN: "Use when a node is in doubt. A short job tests CUDA, memory, NCCL and connections against peers, reads ECC and Xid lines, and says what it could not test. Free nodes only.",
			ZH: "怀疑节点有问题时使用。短作业检测 CUDA、显存、NCCL 与连通性并互相比较，读取 ECC 与 Xid，并说明未能测试的项目。只能用空闲节点。",
		},
		Example: "nodecheck gpu[01-04]",
	}, nodecheck)
}

func nodecheck(ctx context.Context, c *ops.Call, in NodeCheckIn) (NodeCheckOut, error) {
	out := NodeCheckOut{Nodes: []CheckedNode{}, Odd: []string{}, Untested: []Untested{}}
	names, err := nodeNames(in.Nodes)
	if err != nil {
		return out, err
	}
	if in.GPUs != nil && *in.GPUs < 0 {
		return out, ops.NegativeError("gpus", *in.GPUs, lang.Text{EN: "a number, 0 for none", ZH: "数字，0 表示不用"})
	}
	cl, err := c.Cluster(in.Cluster)
	if err != nil {
		return out, err
	}
	v, err := ops.Capable[interface {
		Visit(context.Context, slurm.Visit) (string, error)
	}](cl, lang.Text{EN: "test its nodes", ZH: "测试节点"})
	if err != nil {
		return out, err
	}
	all, err := cl.Nodes(ctx)
	if err != nil {
		return out, c.SlurmError(err, "")
	}
	var usable []string
	gpus := -1
	for _, name := range names {
		i := slices.IndexFunc(all, func(n slurm.Node) bool { return n.Name == name })
		if i < 0 {
			return out, noNodeError(name)
		}
		n := all[i]
		if !n.Usable() {
			out.Nodes = append(out.Nodes, CheckedNode{
				Node: name, State: n.State, Reason: n.Reason, Measured: map[string]float64{},
				Findings: []string{strings.TrimSpace(slurm.ExplainNode(n.State).Says.In(c.Lang) + " " + n.Reason)},
			})
			continue
		}
		usable = append(usable, name)
		if gpus < 0 || n.GPUs < gpus {
			gpus = n.GPUs
		}
	}
	if in.GPUs != nil {
		gpus = *in.GPUs
	}
	if len(usable) == 0 {
		out.finish(names)
		return out, nil
	}
	gpus = max(gpus, 0)
	would := lang.Text{EN: "this takes %s of %s for some minutes, with %s each", ZH: "将占用 %[2]s 的 %[1]s 数分钟，每个节点 %[3]s"}.
		With(ops.Counted(len(usable), "node"), cl.Name(), ops.Counted(gpus, "GPU"))
	if err := c.RequireYes(in.Yes, would); err != nil {
		return out, err
	}
	argv := []string{
		"env", "CHECK_NODES=" + strings.Join(usable, ","), "CHECK_GPUS=" + strconv.Itoa(gpus), "PYTHONDONTWRITEBYTECODE=1",
		"bash", "-c", nodeCheckShell, "nodecheck", cmp.Or(in.Python, "python3"), nodeCheckProgram,
	}
	done := c.During(lang.Text{EN: "the nodes test themselves and one another", ZH: "各节点正在自检并相互检测"}.In(c.Lang))
	said, err := v.Visit(ctx, slurm.Visit{
		Nodes: usable, Partition: in.Partition, Argv: argv, GPUs: gpus,
		CPUs: max(1, gpus), Memory: strconv.Itoa(4+4*gpus) + "G", Limit: nodeCheckLimit,
	})
	done()
	lines := readChecks(said)
	// A node that failed has reported why, or counts as odd because it reported
	// nothing. The remaining errors mean that the nodes could not be allocated.
	if len(lines) == 0 && err != nil && !strings.Contains(err.Error(), "Exited with exit code") {
		return out, c.SlurmError(err, "")
	}
	out.judge(usable, lines, c.Lang)
	out.finish(names)
	if err != nil && ctx.Err() != nil {
		return out, errors.Join(ctx.Err(), err)
	}
	return out, nil
}

// finish sorts the nodes into the order in which they were named, and fills Odd and
// Exclude.
func (o *NodeCheckOut) finish(names []string) {
	slices.SortStableFunc(o.Nodes, func(a, b CheckedNode) int { return slices.Index(names, a.Node) - slices.Index(names, b.Node) })
	for _, n := range o.Nodes {
		if !n.OK {
			o.Odd = append(o.Odd, n.Node)
		}
	}
	o.Exclude = hostlist.Compress(o.Odd)
}

// View lists the odd nodes with what is wrong, and the tests that could not be run.
func (o NodeCheckOut) View(l lang.Lang) view.Doc {
	d := view.Doc{Tone: view.Good, Title: lang.Text{EN: "nothing odd on %s", ZH: "%s正常"}.With(ops.Counted(len(o.Nodes), "node")).In(l)}
	if len(o.Odd) > 0 {
		d.Tone = view.Bad
		d.Title = lang.Text{EN: "odd: %d of %s: %s", ZH: "%[2]s中有 %[1]d 个异常：%[3]s"}.With(len(o.Odd), ops.Counted(len(o.Nodes), "node"), o.Exclude).In(l)
		d.Sections = append(d.Sections, view.Section{Text: lang.Text{EN: "Leave them out: ", ZH: "排除："}.In(l) + "--exclude " + o.Exclude})
		d.Next = []string{"avoid " + o.Exclude}
	}
	t := &view.Table{Header: view.Columns(l, "node||figures|what is wrong", "节点||测得|问题")}
	for _, n := range o.Nodes {
		mark := "ok"
		if !n.OK {
			mark = "ODD"
		}
		var figures []string
		for _, k := range checkOrder {
			if v, ok := n.Measured[k.name]; ok {
				figures = append(figures, strings.TrimSpace(fmt.Sprintf("%s %g %s", k.says.In(l), v, k.unit)))
			}
		}
		t.Rows = append(t.Rows, []string{n.Node, mark, strings.Join(figures, ", "), strings.Join(n.Findings, "; ")})
	}
	d.Sections = append(d.Sections, view.Section{Table: t})
	if len(o.Untested) > 0 {
		s := view.Section{Heading: lang.Text{EN: "not tested", ZH: "未能测试"}.In(l)}
		for i := 0; i < len(o.Untested); {
			u, tests := o.Untested[i], []string{}
			for i < len(o.Untested) && o.Untested[i].Why == u.Why && slices.Equal(o.Untested[i].Nodes, u.Nodes) {
				tests = append(tests, checkName(o.Untested[i].Test).In(l))
				i++
			}
			s.Items = append(s.Items, fmt.Sprintf("%s (%s): %s", strings.Join(tests, ", "), hostlist.Compress(u.Nodes), u.Why))
		}
		d.Sections = append(d.Sections, s)
	}
	return d
}
