package joblogs

import (
	"context"
	"slices"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/cluster"
)

// tasksShown is how many failed tasks of an array are named to a person, tasksKept how many
// the answer holds.
const (
	tasksShown = 8
	tasksKept  = 50
)

// failedTasks returns the tasks of an array that failed, if there are several, in the order
// in which they ended.
func failedTasks(ctx context.Context, cl ops.Cluster, array slurm.JobID) (ids []slurm.JobID) {
	past, _ := cl.Past(cluster.WithPatience(ctx, accountsLimit), slurm.Filter{IDs: []slurm.JobID{array}}) // the cause is told without them
	past = slices.DeleteFunc(slices.Clone(past), func(r slurm.Job) bool { return r.ID.Array() != array || !r.State.Failed() })
	if len(past) < 2 {
		return nil
	}
	end := func(r slurm.Job) (at time.Time) {
		if r.EndedAt != nil {
			at = *r.EndedAt
		}
		return at
	}
	slices.SortStableFunc(past, func(a, b slurm.Job) int { return end(a).Compare(end(b)) })
	for _, r := range past {
		ids = append(ids, r.ID)
	}
	return ids
}
