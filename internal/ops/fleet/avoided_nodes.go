package fleet

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/redact"
	"github.com/megatron-ops/megatron-ops/internal/view"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/hostlist"
)

// AvoidIn names nodes to put on the caller's list or to take off it.
type AvoidIn struct {
	Nodes  string `json:"nodes" arg:"" help:"hostlist" zh:"节点列表（hostlist）"`
	Spare  bool   `json:"spare,omitempty" help:"rather keep them as spares, which take the place of a bad node in a nodelist" zh:"作为备用节点：替换 nodelist 中的坏节点"`
	Hours  int    `json:"hours,omitempty" help:"for so long; 24 where left out" zh:"有效小时数，默认 24"`
	Reason string `json:"reason,omitempty" placeholder:"TEXT" help:"why" zh:"原因"`
	Drop   bool   `json:"drop,omitempty" help:"take them off the list" zh:"从列表移除"`
	ops.OnCluster
}

// AvoidOut is the caller's list after the operation.
type AvoidOut struct {
	Nodes []Avoided `json:"nodes"`
}

// An Avoided is a node that retries leave out, or keep as a spare, until a time.
type Avoided struct {
	Node   string      `json:"node"`
	Spare  bool        `json:"spare,omitempty"`
	Until  time.Time   `json:"until"`
	Reason string      `json:"reason,omitempty"`
	Owner  string      `json:"owner,omitempty"` // the user for whose jobs the entry holds; empty: all users
	Job    slurm.JobID `json:"job_id,omitempty"`
}

const (
	docAvoid  = "avoid"  // cluster/owner/node → Avoided
	docBlamed = "blamed" // cluster/node → []Blame
)

// avoidHours is how long a node is left out unless the call says otherwise.
const avoidHours = 24

func avoidKey(cluster, owner, node string) string { return cluster + "/" + owner + "/" + node }

// Avoid returns the operation avoid.
func Avoid() ops.Op {
	return ops.Define(ops.Op{
		Name: "avoid", Effect: ops.Write, Toolset: ops.NodesSet, Idempotent: true,
		Summary: lang.Text{EN: "nodes that retries of my jobs avoid for a time, or keep as spares", ZH: "重试时在一段时间内排除的节点，或备用节点"},
		Help:    lang.Text{EN: "Nodes that a diagnosis blames come on the list by themselves; nodes --avoided shows it.", ZH: "诊断判定有问题的节点会自动加入；用 nodes --avoided 查看。"},
		Example: "avoid gpu07 --hours 48",
	}, avoid)
}

func avoid(ctx context.Context, c *ops.Call, in AvoidIn) (AvoidOut, error) {
	out := AvoidOut{Nodes: []Avoided{}}
	names, err := nodeNames(in.Nodes)
	if err != nil {
		return out, err
	}
	if in.Hours < 0 || in.Hours > 24*90 {
		return out, ops.InputError("hours",
			lang.Text{EN: "%d is not between 0 and %d", ZH: "%d 不在 0 到 %d 之间"}.With(in.Hours, 24*90),
			lang.Text{EN: "a number of hours, such as 24", ZH: "小时数，例如 24"})
	}
	cl, err := c.Cluster(in.Cluster)
	if err != nil {
		return out, err
	}
	for _, n := range names {
		if in.Drop {
			if err := removeAvoided(ctx, c.Service, cl.Name(), c.Who.User, n); err != nil {
				return out, err
			}
			// An entry of the watcher holds for everybody; an operator may lift it.
			if c.Who.Operator || c.OwnHands() {
				if err := removeAvoided(ctx, c.Service, cl.Name(), "", n); err != nil {
					return out, err
				}
			}
			continue
		}
		a := Avoided{
			Node: n, Spare: in.Spare, Owner: c.Who.User, Reason: redact.Text(redact.Clean(in.Reason)),
			Until: c.Now().Add(time.Duration(cmp.Or(in.Hours, avoidHours)) * time.Hour),
		}
		if err := PutAvoided(ctx, c.Service, cl.Name(), a); err != nil {
			return out, err
		}
	}
	out.Nodes, err = AvoidedNodes(ctx, c.Service, cl.Name(), c.Who.User)
	return out, err
}

// PutAvoided puts a node on the list.
func PutAvoided(ctx context.Context, s *ops.Service, cluster string, a Avoided) error {
	return s.Docs().Put(ctx, docAvoid, avoidKey(cluster, a.Owner, a.Node), a, a.Until)
}

// removeAvoided takes a node off the list.
func removeAvoided(ctx context.Context, s *ops.Service, cluster, owner, node string) error {
	return s.Docs().Delete(ctx, docAvoid, avoidKey(cluster, owner, node))
}

// AvoidedNodes lists the entries for an owner's jobs: the owner's own and those for
// everybody.
func AvoidedNodes(ctx context.Context, s *ops.Service, cluster, owner string) ([]Avoided, error) {
	list := []Avoided{}
	docs := s.Docs()
	keys, err := docs.Keys(ctx, docAvoid, s.Now())
	for _, k := range keys {
		var a Avoided
		if ok, err := docs.Get(ctx, docAvoid, k, s.Now(), &a); err == nil && ok &&
			(strings.HasPrefix(k, cluster+"/"+owner+"/") || strings.HasPrefix(k, cluster+"//")) {
			list = append(list, a)
		}
	}
	slices.SortStableFunc(list, func(a, b Avoided) int { return strings.Compare(a.Node, b.Node) })
	return list, err
}

// View shows one line for each node.
func (o AvoidOut) View(l lang.Lang) view.Doc {
	if len(o.Nodes) == 0 {
		return view.Doc{Title: lang.Text{EN: "no node is avoided or kept as a spare", ZH: "没有需避开的节点或备用节点"}.In(l)}
	}
	return view.Doc{Sections: []view.Section{avoidSection(o.Nodes, l)}}
}

func avoidSection(list []Avoided, l lang.Lang) view.Section {
	t := &view.Table{Header: view.Columns(l, "node|what|until|for|why", "节点|用途|有效期至|适用于|原因")}
	var out []string
	for _, a := range list {
		what := lang.Text{EN: "avoid", ZH: "避开"}
		if a.Spare {
			what = lang.Text{EN: "spare", ZH: "备用"}
		} else {
			out = append(out, a.Node)
		}
		whose := cmp.Or(a.Owner, lang.Text{EN: "everybody", ZH: "所有人"}.In(l))
		t.Rows = append(t.Rows, []string{a.Node, what.In(l), a.Until.Format(time.DateTime), whose, a.Reason})
	}
	s := view.Section{Heading: lang.Text{EN: "retries leave these out", ZH: "重试时排除以下节点"}.In(l), Table: t}
	if len(out) > 0 {
		s.Text = "--exclude " + hostlist.Compress(out)
	}
	return s
}

// A Blame is one failure that a node caused, according to a diagnosis.
type Blame struct {
	Job   slurm.JobID `json:"job_id"`
	Name  string      `json:"name"`
	User  string      `json:"user,omitempty"`
	Class string      `json:"class"`
	At    time.Time   `json:"at"`
	Line  string      `json:"line,omitempty"` // the line of the log that shows the failure
	File  string      `json:"file,omitempty"`
}

// mostBlames is how many blames are kept for each node.
const mostBlames = 20

// RecordBlame stores a failure that a node caused, and returns all of that node's
// blames, newest last.
func RecordBlame(ctx context.Context, s *ops.Service, cluster, node string, b Blame) ([]Blame, error) {
	all := BlamesOf(ctx, s, cluster, node)
	if !slices.ContainsFunc(all, func(o Blame) bool { return o.Job == b.Job && o.Class == b.Class }) {
		all = append(all, b)
	}
	all = all[max(0, len(all)-mostBlames):]
	return all, s.Docs().Put(ctx, docBlamed, cluster+"/"+node, all, s.Now().AddDate(0, 0, 30))
}

// BlamesOf returns the stored blames of a node.
func BlamesOf(ctx context.Context, s *ops.Service, cluster, node string) (all []Blame) {
	_, _ = s.Docs().Get(ctx, docBlamed, cluster+"/"+node, s.Now(), &all)
	return all
}

// says describes a blame in one line.
func (b Blame) says(l lang.Lang) string {
	text := fmt.Sprintf(lang.Text{EN: "%s: job %s (%s, %s): %s", ZH: "%s：作业 %s（%s，%s）：%s"}.In(l), b.At.Format(time.DateTime), b.Job, b.Name, b.User, b.Class)
	if b.Line != "" {
		text += "\n" + b.Line
		if b.File != "" {
			text += " (" + b.File + ")"
		}
	}
	return text
}

// NodeReport returns a notice for the operators about a node that failures are blamed
// on: its current state, the evidence, the jobs and the times.
func NodeReport(ctx context.Context, c *ops.Call, cluster, node string, all []Blame) ops.Notice {
	newest := all[len(all)-1]
	n := ops.Notice{
		Key: fmt.Sprintf("node/%s/%s/%d", cluster, node, newest.At.Unix()), Cluster: cluster, Operators: true,
		Title: lang.Text{EN: "%s: node %s is blamed for %s", ZH: "%s：节点 %s 被判定导致 %s"}.With(cluster, node, ops.Counted(len(all), "failure")),
	}
	state := nodeState(ctx, c, cluster, node)
	for _, l := range []lang.Lang{lang.EN, lang.ZH} {
		var lines []string
		if state != "" {
			lines = append(lines, lang.Text{EN: "Slurm says: ", ZH: "Slurm 状态："}.In(l)+state)
		}
		for _, b := range all {
			lines = append(lines, b.says(l))
		}
		lines = append(lines, fmt.Sprintf(lang.Text{
			EN: "To check it: `nodecheck %s`. To take it out: scontrol update NodeName=%s State=DRAIN Reason=\"%s\"",
			ZH: "检查：`nodecheck %s`。下线：scontrol update NodeName=%s State=DRAIN Reason=\"%s\"",
		}.In(l), node, node, newest.Class))
		if text := strings.Join(lines, "\n"); l == lang.ZH {
			n.Text.ZH = text
		} else {
			n.Text.EN = text
		}
	}
	return n
}

// nodeState returns a node's state and the reason for it, as Slurm has them, or "" where
// the cluster does not tell.
func nodeState(ctx context.Context, c *ops.Call, cluster, node string) string {
	cl, err := c.Cluster(cluster)
	if err != nil {
		return ""
	}
	all, _ := cl.Nodes(ctx)
	for _, n := range all {
		if n.Name == node {
			return strings.TrimSpace(n.State + " " + n.Reason)
		}
	}
	return ""
}
