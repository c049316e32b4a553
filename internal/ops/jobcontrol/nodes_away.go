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

// mostAway is how many different drain reasons are shown to a person.
const mostAway = 5

// awayItems returns a line for each state and reason of nodes out of service.
func awayItems(nodes []slurm.Node, l lang.Lang) (items []string) {
	type cause struct{ state, reason, by, at string }
	var causes []cause
	of := map[cause][]string{}
	for _, n := range nodes {
		c := cause{state: n.State, reason: n.Reason, by: n.ReasonBy}
		if n.ReasonAt != nil {
			c.at = n.ReasonAt.Local().Format(time.DateTime)
		}
		if of[c] == nil {
			causes = append(causes, c)
		}
		of[c] = append(of[c], n.Name)
	}
	for i, c := range causes {
		if i == mostAway {
			more := lang.Text{EN: "%d more reasons: `nodes --drained` lists them", ZH: "另有 %d 种原因：`nodes --drained` 可列出"}
			return append(items, more.With(len(causes)-mostAway).In(l))
		}
		why := c.reason
		if why == "" {
			why = lang.Text{EN: "no reason is given", ZH: "未给出原因"}.In(l)
		}
		who := strings.Join(slices.DeleteFunc([]string{c.by, c.at}, func(s string) bool { return s == "" }), ", ")
		if who != "" {
			who = " (" + who + ")"
		}
		items = append(items, l.Named(fmt.Sprintf("%s %s", hostlist.Compress(of[c]), c.state), why+who))
	}
	return items
}

// awaySection shows the nodes out of service for which a job waits.
func awaySection(nodes []slurm.Node, l lang.Lang) view.Section {
	return view.Section{Heading: lang.Text{EN: "nodes out of service", ZH: "不可用的节点"}.In(l), Items: awayItems(nodes, l)}
}
