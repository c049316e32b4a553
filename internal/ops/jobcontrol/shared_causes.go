package jobcontrol

import (
	"context"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/joblogs"
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
		if !failed(j.State) || len(failures) == maxDiagnosed {
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

func failed(s slurm.State) bool { return s.Ended() && s != slurm.Completed && s != slurm.Cancelled }

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
