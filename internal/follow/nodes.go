package follow

import (
	"context"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/ops/fleet"
	"github.com/megatron-ops/megatron-ops/internal/store"
)

// nodeReportDocs is the kind of document that records when the operators were last
// notified of a node.
const nodeReportDocs = "node-report"

// blameWindow is how long the operators are not notified of the same node again, and
// how long retries avoid a blamed node.
const blameWindow = 24 * time.Hour

// blameNodes records the failure against each node that the diagnosis blames, keeps the
// node out of retries for a while, and reports it to the operators once per
// blameWindow.
func (f *Follower) blameNodes(ctx context.Context, st *store.Store, n *News) {
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
			fleet.Avoided{Node: node, Until: now.Add(blameWindow), Reason: n.Report.Class, Job: n.Job.ID},
		); err != nil {
			f.Log.Error("a node could not be put on the list to avoid", "node", node, "error", err)
		}
		k := n.Job.Cluster + "/" + node
		var before time.Time
		if told, err := st.Slack().Get(ctx, nodeReportDocs, k, now, &before); err != nil || told {
			continue
		}
		report := fleet.NodeReport(ctx, f.reader(), n.Job.Cluster, node, all)
		f.Log.Warn(report.Title.EN, "report", report.Text.EN)
		if err := f.Service.Notify(ctx, report); err != nil {
			f.Log.Error("a node could not be reported", "node", node, "error", err)
			continue
		}
		if err := st.Slack().Put(ctx, nodeReportDocs, k, now, now.Add(blameWindow)); err != nil {
			f.Log.Error("a node's report could not be noted", "node", node, "error", err)
		}
	}
}
