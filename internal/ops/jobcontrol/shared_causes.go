package jobcontrol

import (
	"context"
	"slices"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/joblogs"
	"github.com/megatron-ops/megatron-ops/internal/store"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/report"
)

// IncidentWindow is the time within which failures with one cause count as one
// incident.
const IncidentWindow = time.Hour

// maxDiagnosed is the most failed jobs whose logs are read for one answer.
const maxDiagnosed = 60

// incidentsOf diagnoses the failed jobs and returns the causes that several of them
// share.
func incidentsOf(ctx context.Context, c *ops.Call, cl ops.Cluster, jobs []HistoryJob) []report.Incident {
	var failures []report.Failure
	for _, j := range jobs {
		if !j.State.Failed() || len(failures) == maxDiagnosed {
			continue
		}
		c.Step(len(failures), 0, string(j.ID))
		d, err := joblogs.DiagnoseJob(ctx, c, joblogs.DiagnoseIn{Target: string(j.ID), OnCluster: ops.OnCluster{Cluster: cl.Name()}})
		if err != nil {
			continue // a job without a readable log has no cause to share
		}
		failures = append(failures, report.Failure{JobID: string(j.ID), At: ended(j.Job), Report: d.Report})
	}
	return append([]report.Incident{}, report.Incidents(failures, IncidentWindow, Switches(ctx, cl))...)
}

// failureDocs is the kind of document that keeps the failures of the last hours.
const failureDocs = "failure"

// IncidentsOf keeps the failure of a job and returns the incidents that it is part of.
func IncidentsOf(
	ctx context.Context, docs store.Documents, cl ops.Cluster, j slurm.Job, r report.Report, now time.Time,
) ([]report.Incident, error) {
	this := report.Failure{JobID: string(j.ID), At: now, Report: r}
	if j.EndedAt != nil {
		this.At = *j.EndedAt
	}
	if err := docs.Put(ctx, failureDocs, j.Cluster+"/"+this.JobID, this, now.Add(3*IncidentWindow)); err != nil {
		return nil, err
	}
	keys, err := docs.Keys(ctx, failureDocs, now)
	if err != nil {
		return nil, err
	}
	var all []report.Failure
	for _, k := range keys {
		var one report.Failure
		if ok, err := docs.Get(ctx, failureDocs, k, now, &one); err == nil && ok && k == j.Cluster+"/"+one.JobID {
			all = append(all, one)
		}
	}
	return slices.DeleteFunc(report.Incidents(all, IncidentWindow, Switches(ctx, cl)), func(i report.Incident) bool {
		return !slices.Contains(i.Jobs, this.JobID)
	}), nil
}

// Switches returns the switch of each of a cluster's nodes; nil where the cluster does
// not tell.
func Switches(ctx context.Context, cl ops.Cluster) map[string]string {
	t, ok := cl.(interface {
		Topology(context.Context) (map[string]string, error)
	})
	if !ok {
		return nil
	}
	of, err := t.Topology(ctx)
	if err != nil {
		return nil
	}
	return of
}
