package follow

import (
	"context"
	"slices"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/ops/jobcontrol"
	"github.com/megatron-ops/megatron-ops/internal/store"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/report"
)

// Kinds of documents that combine failures of several jobs into one incident.
const (
	failureDocs  = "failures"  // the failures of the last hours
	incidentDocs = "incidents" // the incidents that were reported
)

// reportIncident checks whether a failure is one of several with the same cause, and
// adds the incident to the news of the job that completes it: once for each incident.
func (f *Follower) reportIncident(ctx context.Context, st *store.Store, n *News) {
	if n.Report == nil {
		return
	}
	now := time.Now()
	at := now
	if n.Job.EndedAt != nil {
		at = *n.Job.EndedAt
	}
	r := *n.Report
	this := report.Failure{JobID: string(n.Job.ID), At: at, Report: report.Report{Class: r.Class, RootNode: r.RootNode, RootLine: r.RootLine}}
	docs := st.Slack()
	if err := docs.Put(ctx, failureDocs, key(n.Job.Cluster, n.Job.ID), this, now.Add(3*jobcontrol.IncidentWindow)); err != nil {
		f.Log.Error("a failure could not be kept", "job", n.Job.ID, "error", err)
		return
	}
	keys, err := docs.Keys(ctx, failureDocs, now)
	if err != nil {
		f.Log.Error("failures could not be read", "error", err)
		return
	}
	var all []report.Failure
	for _, k := range keys {
		var one report.Failure
		if ok, err := docs.Get(ctx, failureDocs, k, now, &one); err == nil && ok && k == key(n.Job.Cluster, slurm.JobID(one.JobID)) {
			all = append(all, one)
		}
	}
	for _, i := range report.Incidents(all, jobcontrol.IncidentWindow, jobcontrol.Switches(ctx, f.Service.Clusters[n.Job.Cluster])) {
		if !slices.Contains(i.Jobs, this.JobID) {
			continue
		}
		first := n.Job.Cluster + "/" + i.Class + "/" + i.Where + "/" + i.Jobs[0]
		if by, err := docs.Claim(ctx, incidentDocs, first, this.JobID, now.Add(lookback)); err == nil && by == this.JobID {
			n.Incident = &i
			return
		}
	}
}
