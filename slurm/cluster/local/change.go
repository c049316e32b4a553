package local

import (
	"context"
	"errors"

	"github.com/megatron-ops/megatron-ops/slurm"
)

var errEnded = slurm.Sayf("Job/step already completing or completed")

// Hold keeps a pending job from starting.
func (c *Cluster) Hold(_ context.Context, id slurm.JobID) error {
	return c.each("hold", id, func(r record) error {
		if r.Job.State != slurm.Pending {
			return refused("hold "+string(id), errors.New("Job is no longer pending execution"))
		}
		yes := true
		return c.store.order(r.Job.ID, func(ctl *control) { ctl.Hold = &yes })
	})
}

// Release lets a held job start.
func (c *Cluster) Release(_ context.Context, id slurm.JobID) error {
	return c.each("release", id, func(r record) error {
		if r.Job.State.Ended() {
			return refused("release "+string(id), errEnded)
		}
		no := false
		return c.store.order(r.Job.ID, func(ctl *control) { ctl.Hold = &no })
	})
}

// Requeue stops a running job and starts it anew.
func (c *Cluster) Requeue(_ context.Context, id slurm.JobID) error {
	sub, err := c.store.submission(id)
	if err == nil && !sub.Request.Requeue {
		return refused("requeue "+string(id), errors.New("Requested operation is presently disabled for job "+string(id)))
	}
	return c.each("requeue", id, func(r record) error {
		if r.Job.State != slurm.Running {
			return refused("requeue "+string(id), errors.New("Job is not running: "+string(r.Job.State)))
		}
		return c.store.order(r.Job.ID, func(ctl *control) { ctl.Requeue = r.Requeued + 1 })
	})
}

// Update changes the time limit or comment of a job, and the number of nodes of
// a pending one; partitions and the like mean nothing here and are refused.
func (c *Cluster) Update(_ context.Context, id slurm.JobID, u slurm.Update) error {
	op := "update " + string(id)
	if u.Partition != "" || u.QOS != "" || u.Priority != nil || len(u.Exclude) > 0 {
		return refused(op, errors.New("this machine has no partitions, QOS or priorities to change"))
	}
	if u.NumNodes > c.Size {
		return refused(op, slurm.Sayf("Node count specification invalid"))
	}
	return c.each("update", id, func(r record) error {
		if r.Job.State.Ended() {
			return refused(op, errEnded)
		}
		if u.NumNodes > 0 && r.Job.State != slurm.Pending {
			return refused(op, errors.New("Job is no longer pending execution"))
		}
		return c.store.order(r.Job.ID, func(ctl *control) {
			if u.TimeLimit > 0 {
				ctl.TimeLimit = &u.TimeLimit
			}
			if u.Comment != nil {
				ctl.Comment = u.Comment
			}
			if u.NumNodes > 0 {
				ctl.Nodes = u.NumNodes
			}
		})
	})
}
