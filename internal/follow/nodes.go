package follow

import (
	"context"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/ops/fleet"
	"github.com/megatron-ops/megatron-ops/internal/store"
)

// reported is when the operators were last told of a node.
const reported = "node-report"

// window is for how long a node that the operators were told of is not told of
// again, and for how long one that was blamed is left out of retries.
const window = 24 * time.Hour

// blame writes down against each node that the diagnosis blames what happened,
// leaves it out of retries for a while, and reports it to the operators once in a
// window.
func (f *Follower) blame(ctx context.Context, st *store.Store, n *News) {
	if n.Report == nil {
		return
	}
	now := f.Service.Now()
	for _, node := range n.Report.ExcludeNodes {
		b := fleet.Blame{Job: n.Job.ID, Name: n.Job.Name, User: n.Job.User, Class: n.Report.Class, At: now, Line: n.Report.RootLine, File: n.Report.RootFile}
		if n.Job.EndedAt != nil {
			b.At = *n.Job.EndedAt
		}
		all, err := fleet.RecordBlame(ctx, f.Service, n.Job.Cluster, node, b)
		if err != nil {
			f.Log.Error("a node's failure could not be written down", "node", node, "error", err)
			continue
		}
		if err := fleet.PutAvoided(
			ctx,
			f.Service,
			n.Job.Cluster,
			fleet.Avoided{Node: node, Until: now.Add(window), Reason: n.Report.Class, Job: n.Job.ID},
		); err != nil {
			f.Log.Error("a node could not be put on the list to avoid", "node", node, "error", err)
		}
		k := n.Job.Cluster + "/" + node
		var before time.Time
		if told, err := st.Slack().Get(ctx, reported, k, now, &before); err != nil || told {
			continue
		}
		report := fleet.NodeReport(ctx, f.reader(), n.Job.Cluster, node, all)
		f.Log.Warn(report.Title.EN, "report", report.Text.EN)
		if err := f.Service.Notify(ctx, report); err != nil {
			f.Log.Error("a node could not be reported", "node", node, "error", err)
			continue
		}
		if err := st.Slack().Put(ctx, reported, k, now, now.Add(window)); err != nil {
			f.Log.Error("a node's report could not be noted", "node", node, "error", err)
		}
	}
}
