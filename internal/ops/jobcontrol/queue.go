package jobcontrol

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/view"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// QueueIn selects waiting jobs.
type QueueIn struct {
	User      string `json:"user,omitempty" short:"u" help:"this user's; several by commas; all where left out" zh:"该用户的作业；多个用逗号分隔；省略为所有人"`
	Partition string `json:"partition,omitempty" short:"p" help:"only this partition's" zh:"只看该分区"`
	Mine      bool   `json:"mine,omitempty" help:"only my own" zh:"只看我的"`
	ops.OnCluster
}

// QueueOut holds the waiting jobs in the order of their priority.
type QueueOut struct {
	Jobs []Waiting `json:"jobs"`
	// Reasons explains each reason that the jobs wait for.
	Reasons []ReasonOut `json:"reasons"`
	// Total counts all waiting jobs, also those that the call does not select.
	Total int `json:"total_waiting"`
	// ranked is set if the cluster tells the jobs' priorities.
	ranked bool
}

// A Waiting is a waiting job with its place among those for the same partition. The
// waiting tasks of an array are one entry.
type Waiting struct {
	slurm.Job
	Tasks int `json:"tasks,omitempty"`
	// Position is 1 for the first in line, and 0 for a job that is not in line, such as
	// a held one.
	Position int `json:"position,omitempty"`
	InLine   int `json:"in_line,omitempty"`
}

// A ReasonOut explains a reason for waiting.
type ReasonOut struct {
	Reason string `json:"reason"`
	Jobs   int    `json:"jobs"`
	Says   string `json:"says"`
	Do     string `json:"do,omitempty"`
	// NodesAway holds the nodes out of service that such jobs wait for.
	NodesAway []AwayNodes `json:"nodes_away,omitempty"`
}

// Queue returns the operation queue.
func Queue() ops.Op {
	return ops.Define(ops.Op{
		Name: "queue", Effect: ops.Read, Toolset: ops.JobsSet,
		Summary: lang.Text{EN: "who waits: place in line, estimated start, and why, in words", ZH: "排队情况：排位、预计开始时间与原因说明"},
		Help:    lang.Text{EN: "Use to see when jobs start. For one job's priority use priority.", ZH: "查看作业何时开始。单个作业的优先级用 priority。"},
		Example: "queue --mine",
	}, queue)
}

func queue(ctx context.Context, c *ops.Call, in QueueIn) (QueueOut, error) {
	cl, err := c.Cluster(in.Cluster)
	if err != nil {
		return QueueOut{}, err
	}
	// Everybody's jobs are needed: a place in line is one among all.
	all, err := c.LookAll(ctx, cl, slurm.Filter{States: []slurm.State{slurm.Pending}})
	if err != nil {
		return QueueOut{}, c.SlurmError(err, "")
	}
	users := usersOf(c, in.User, in.Mine)
	out := QueueOut{Jobs: []Waiting{}, Reasons: []ReasonOut{}}
	_, out.ranked = cl.(prioritizer)
	for _, w := range inLine(all) {
		out.Total++
		if len(users) > 0 && !slices.Contains(users, w.User) || in.Partition != "" && !w.MayRunIn(in.Partition) {
			continue
		}
		w.Cluster = cl.Name()
		out.Jobs = append(out.Jobs, w)
	}
	out.Reasons = reasons(c, out.Jobs)
	out.addNodesAway(ctx, cl)
	return out, nil
}

// usersOf returns the users that a list of names stands for; nil means everybody.
func usersOf(c *ops.Call, names string, mine bool) []string {
	switch {
	case mine, names == "me":
		return []string{c.Who.User}
	case names == "", names == "all":
		return nil
	}
	return strings.FieldsFunc(names, func(r rune) bool { return r == ',' || r == ' ' })
}

// inLine merges an array's tasks and a heterogeneous job's components, sorts the jobs as Slurm considers them, by priority
// and then by age, and numbers the jobs of each partition.
func inLine(jobs []slurm.Job) []Waiting {
	var all []Waiting
	at := map[string]int{}
	for _, j := range jobs {
		whole := j.ID.Array()
		if strings.Contains(string(j.ID), "+") {
			if i, seen := at[string(whole)]; seen {
				all[i].join(j)
				continue
			}
			at[string(whole)] = len(all)
			all = append(all, Waiting{Job: j})
			all[len(all)-1].ID = whole
			continue
		}
		key := string(whole) + "\x00" + j.Reason
		if i, seen := at[key]; seen && j.ID != j.ID.Array() {
			all[i].ID = j.ID.Array()
			all[i].Tasks = max(all[i].Tasks, 1) + 1
			continue
		}
		at[key] = len(all)
		all = append(all, Waiting{Job: j})
	}
	slices.SortStableFunc(all, func(a, b Waiting) int {
		return cmp.Or(cmp.Compare(priorityOf(b.Job), priorityOf(a.Job)), submitted(a.Job).Compare(submitted(b.Job)))
	})
	count := map[string]int{}
	for i := range all {
		if w := &all[i]; priorityOf(w.Job) > 0 && competes(w.Reason) {
			count[w.Partition]++
			w.Position = count[w.Partition]
		}
	}
	for i := range all {
		if all[i].Position > 0 {
			all[i].InLine = count[all[i].Partition]
		}
	}
	return all
}

// join adds another component to a heterogeneous job, which starts as one. It is not in
// line while any component waits for something else than nodes.
func (w *Waiting) join(component slurm.Job) {
	w.NumNodes += component.NumNodes
	w.GPUs += component.GPUs
	if competes(w.Reason) && !competes(component.Reason) {
		w.Reason, w.EstStart = component.Reason, component.EstStart
	}
}

// competes reports whether a job with that reason competes for nodes. Held jobs and
// jobs that wait for another job or for a time do not.
func competes(reason string) bool {
	return !slices.ContainsFunc([]string{"JobHeld", "Dependency", "BeginTime", "job requeued in held state", "burst_buffer/", "BurstBufferOperation", "Burst buffer pre_run"}, func(aside string) bool {
		return strings.HasPrefix(reason, aside)
	})
}

func priorityOf(j slurm.Job) int64 {
	if j.Priority == nil {
		return 1 // the cluster does not tell
	}
	return *j.Priority
}

// reasons explains each reason once, most frequent first.
func reasons(c *ops.Call, jobs []Waiting) []ReasonOut {
	out := []ReasonOut{}
	at := map[string]int{}
	for _, j := range jobs {
		word := cmp.Or(j.Reason, "None")
		i, seen := at[word]
		if !seen {
			m := slurm.ExplainReason(word)
			i = len(out)
			at[word] = i
			out = append(out, ReasonOut{Reason: word, Says: m.Says.In(c.Lang), Do: m.Do.In(c.Lang)})
		}
		out[i].Jobs += max(j.Tasks, 1)
	}
	slices.SortStableFunc(out, func(a, b ReasonOut) int { return b.Jobs - a.Jobs })
	return out
}

// addNodesAway adds to the reasons the nodes out of service that their jobs wait for.
func (o *QueueOut) addNodesAway(ctx context.Context, cl ops.Cluster) {
	var jobs []slurm.Job // one for each reason and partition
	seen := map[string]bool{}
	for i := range o.Jobs {
		if key := o.Jobs[i].Reason + "\x00" + o.Jobs[i].Partition; !seen[key] {
			seen[key], jobs = true, append(jobs, o.Jobs[i].Job)
		}
	}
	away := nodesAway(ctx, cl, jobs...)
	for i := range o.Reasons {
		var nodes []slurm.Node
		for _, j := range jobs {
			if j.Reason == o.Reasons[i].Reason {
				nodes = append(nodes, away[j.ID]...)
			}
		}
		o.Reasons[i].NodesAway = byReason(nodes)
	}
}

// rowsShown is how many rows of a table are shown to a person.
const rowsShown = 50

// View shows one line for each job, and explains their reasons below.
func (o QueueOut) View(l lang.Lang) view.Doc {
	if o.Total == 0 && len(o.Jobs) == 0 {
		return view.Doc{Title: lang.Text{EN: "no job is waiting", ZH: "没有排队中的作业"}.In(l)}
	}
	if len(o.Jobs) == 0 {
		return view.Doc{Title: fmt.Sprintf(lang.Text{EN: "no matching job is waiting (%d are waiting in all)", ZH: "没有符合条件的排队作业（共 %d 个在排队）"}.In(l), o.Total)}
	}
	t := &view.Table{Header: view.Columns(l, "job|place|start|name|user|partition|nodes|GPUs|limit|priority|why", "作业|排位|预计开始|名称|用户|分区|节点数|GPU|时限|优先级|原因"), Spare: []int{9, 7, 8, 4, 5}}
	for _, j := range o.Jobs[:min(len(o.Jobs), rowsShown)] {
		id, place, start, limit, priority := string(j.ID), "-", "?", "-", "-"
		if j.Tasks > 1 {
			id += fmt.Sprintf(" (×%d)", j.Tasks)
		}
		if j.Position > 0 {
			place = fmt.Sprintf("%d/%d", j.Position, j.InLine)
		}
		if j.EstStart != nil {
			start = j.EstStart.Format(time.DateTime)
		}
		if j.TimeLimitS != nil {
			limit = ops.Duration(*j.TimeLimitS)
		}
		if j.Priority != nil {
			priority = strconv.FormatInt(*j.Priority, 10)
		}
		t.Rows = append(t.Rows, []string{
			id, place, start, j.Name, j.User, j.Partition, strconv.Itoa(j.NumNodes), strconv.Itoa(j.GPUs), limit, priority, j.Reason,
		})
	}
	more := ""
	if n := len(o.Jobs) - rowsShown; n > 0 {
		more = fmt.Sprintf(lang.Text{EN: "The first %d; %d more are waiting.", ZH: "仅列出前 %d 个，另有 %d 个在排队。"}.In(l), rowsShown, n)
	}
	why := view.Section{Heading: lang.Text{EN: "why they wait", ZH: "等待原因"}.In(l)}
	for _, r := range o.Reasons {
		text := l.Named(fmt.Sprintf("%s (%d)", r.Reason, r.Jobs), r.Says)
		if r.Do != "" {
			text += "\n" + r.Do
		}
		for _, node := range awayItems(r.NodesAway, l) {
			text += "\n" + node
		}
		why.Items = append(why.Items, text)
	}
	d := view.Doc{Sections: []view.Section{{Text: more, Table: t}}}
	if o.ranked {
		d.Next = []string{"priority " + string(o.Jobs[0].ID)}
	}
	d.Add(why)
	return d
}
