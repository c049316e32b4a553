package jobcontrol

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/view"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/hostlist"
)

// nodesAway returns the nodes out of service for which jobs wait that have one of those
// reasons: the nodes that the reason names, or else those of the job's partitions. It
// returns nothing where no reason is about such nodes, or the cluster does not tell.
func nodesAway(ctx context.Context, cl ops.Cluster, jobs ...slurm.Job) map[slurm.JobID][]slurm.Node {
	if !slices.ContainsFunc(jobs, slurm.Job.WaitsForNodesAway) {
		return nil
	}
	all, _ := cl.Nodes(ctx) // the reason itself is told without them
	all = slices.DeleteFunc(slices.Clone(all), slurm.Node.Usable)
	away := map[slurm.JobID][]slurm.Node{}
	for _, j := range jobs {
		if !j.WaitsForNodesAway() {
			continue
		}
		named, partitions := slurm.UnavailableNodes(j.Reason), strings.Split(j.Partition, ",")
		for _, n := range all {
			in := slices.ContainsFunc(n.Partitions, func(p string) bool { return slices.Contains(partitions, p) })
			if slices.Contains(named, n.Name) || len(named) == 0 && in {
				away[j.ID] = append(away[j.ID], n)
			}
		}
	}
	return away
}

// AwayNodes are nodes out of service for one reason.
type AwayNodes struct {
	Nodes string `json:"nodes"` // hostlist
	State string `json:"state"` // as sinfo %T prints it
	// Reason, By and At are what an administrator or Slurm noted, who did, and when.
	Reason string     `json:"reason,omitempty"`
	By     string     `json:"by,omitempty"`
	At     *time.Time `json:"at,omitempty"`
}

// byReason puts nodes together that have one state and reason. A node may be given twice.
func byReason(nodes []slurm.Node) (away []AwayNodes) {
	var names [][]string
	for _, n := range nodes {
		i := slices.IndexFunc(away, func(a AwayNodes) bool {
			at := a.At == n.ReasonAt || a.At != nil && n.ReasonAt != nil && a.At.Equal(*n.ReasonAt)
			return at && a.State == n.State && a.Reason == n.Reason && a.By == n.ReasonBy
		})
		if i < 0 {
			i = len(away)
			away, names = append(away, AwayNodes{State: n.State, Reason: n.Reason, By: n.ReasonBy, At: n.ReasonAt}), append(names, nil)
		}
		names[i] = append(names[i], n.Name)
	}
	for i := range away {
		away[i].Nodes = hostlist.Compress(names[i])
	}
	return away
}

// mostAway is how many different drain reasons are shown to a person.
const mostAway = 5

// awayItems returns a line for each state and reason of nodes out of service.
func awayItems(away []AwayNodes, l lang.Lang) (items []string) {
	for i, a := range away {
		if i == mostAway {
			more := lang.Text{EN: "%d more reasons: `nodes --drained` lists them", ZH: "另有 %d 种原因：`nodes --drained` 可列出"}
			return append(items, more.With(len(away)-mostAway).In(l))
		}
		why := a.Reason
		if why == "" {
			why = lang.Text{EN: "no reason is given", ZH: "未给出原因"}.In(l)
		}
		var noted []string
		if a.By != "" {
			noted = append(noted, a.By)
		}
		if a.At != nil {
			noted = append(noted, a.At.Local().Format(time.DateTime))
		}
		if len(noted) > 0 {
			why += " (" + strings.Join(noted, ", ") + ")"
		}
		items = append(items, l.Named(fmt.Sprintf("%s %s", a.Nodes, a.State), why))
	}
	return items
}

// awaySection shows the nodes out of service for which a job waits.
func awaySection(away []AwayNodes, l lang.Lang) view.Section {
	return view.Section{Heading: lang.Text{EN: "nodes out of service", ZH: "不可用的节点"}.In(l), Items: awayItems(away, l)}
}
