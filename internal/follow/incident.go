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

// Kinds of what is kept to see failures of several jobs as one incident.
const (
	failures  = "failures"  // the failures of the last hours
	incidents = "incidents" // those that were told
)

// incident sees whether a failure is one of several with the same cause, and
// says so with the job that makes it so: once for each incident.
func (f *Follower) incident(ctx context.Context, st *store.Store, n *News) {
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
	if err := docs.Put(ctx, failures, key(n.Job.Cluster, n.Job.ID), this, now.Add(3*jobcontrol.IncidentWindow)); err != nil {
		f.Log.Error("a failure could not be kept", "job", n.Job.ID, "error", err)
		return
	}
	keys, err := docs.Keys(ctx, failures, now)
	if err != nil {
		f.Log.Error("failures could not be read", "error", err)
		return
	}
	var all []report.Failure
	for _, k := range keys {
		var one report.Failure
		if ok, err := docs.Get(ctx, failures, k, now, &one); err == nil && ok && k == key(n.Job.Cluster, slurm.JobID(one.JobID)) {
			all = append(all, one)
		}
	}
	for _, i := range report.Incidents(all, jobcontrol.IncidentWindow, jobcontrol.Switches(ctx, f.Service.Clusters[n.Job.Cluster])) {
		if !slices.Contains(i.Jobs, this.JobID) {
			continue
		}
		first := n.Job.Cluster + "/" + i.Class + "/" + i.Where + "/" + i.Jobs[0]
		if by, err := docs.Claim(ctx, incidents, first, this.JobID, now.Add(memory)); err == nil && by == this.JobID {
			n.Incident = &i
			return
		}
	}
}
