package follow

import (
	"context"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/ops/jobcontrol"
	"github.com/megatron-ops/megatron-ops/internal/store"
)

// incidentDocs is the kind of document that records which incidents were reported.
const incidentDocs = "incidents"

// reportIncident checks whether a failure is one of several with the same cause, and
// adds the incident to the news of the job that completes it: once for each incident.
func (f *Follower) reportIncident(ctx context.Context, st *store.Store, n *News) {
	if n.Report == nil {
		return
	}
	now := time.Now()
	docs := st.Slack()
	incidents, err := jobcontrol.IncidentsOf(ctx, docs, f.Service.Clusters[n.Job.Cluster], n.Job, *n.Report, now)
	if err != nil {
		f.Log.Error("a failure could not be kept", "job", n.Job.ID, "error", err)
	}
	for _, i := range incidents {
		first := n.Job.Cluster + "/" + i.Class + "/" + i.Where + "/" + i.Jobs[0]
		if by, err := docs.Claim(ctx, incidentDocs, first, string(n.Job.ID), now.Add(lookback)); err == nil && by == string(n.Job.ID) {
			n.Incident = &i
			return
		}
	}
}
