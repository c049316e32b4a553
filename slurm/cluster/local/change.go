package local

import (
	"context"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/slurm"
)

var errEnded = slurm.Sayf("Job/step already completing or completed")

// Hold keeps a pending job from starting.
func (c *Cluster) Hold(_ context.Context, id slurm.JobID) error {
	return c.forEachElement(id, func(r record) error {
		if r.Job.State != slurm.Pending {
			return slurm.Refused("hold "+string(id), slurm.Sayf("Job is no longer pending execution"))
		}
		return c.store.updateControl(r.Job.ID, func(ctl *control) { ctl.Hold = new(true) })
	})
}

// Release lets a held job start.
func (c *Cluster) Release(_ context.Context, id slurm.JobID) error {
	return c.forEachElement(id, func(r record) error {
		if r.Job.State.Ended() {
			return slurm.Refused("release "+string(id), errEnded)
		}
		return c.store.updateControl(r.Job.ID, func(ctl *control) { ctl.Hold = new(false) })
	})
}

// Requeue stops a running job and puts it back into the queue.
func (c *Cluster) Requeue(_ context.Context, id slurm.JobID) error {
	sub, err := c.store.submission(id)
	if err == nil && !sub.Request.Requeue {
		return slurm.Refused("requeue "+string(id), slurm.Sayf("Requested operation is presently disabled for job %s", id))
	}
	return c.forEachElement(id, func(r record) error {
		if r.Job.State != slurm.Running {
			return slurm.Refused("requeue "+string(id), slurm.Sayf("Job is not running: %s", r.Job.State))
		}
		return c.store.updateControl(r.Job.ID, func(ctl *control) { ctl.Requeue = r.Requeued + 1 })
	})
}

// Update changes the time limit or the comment of a job, and the number of nodes of a
// pending job. It refuses changes of the partition, QOS, priority and excluded nodes,
// which have no meaning on one machine.
func (c *Cluster) Update(_ context.Context, id slurm.JobID, u slurm.Update) error {
	op := "update " + string(id)
	if u.Partition != "" || u.QOS != "" || u.Priority != nil || len(u.Exclude) > 0 {
		return slurm.Refused(op, lang.Text{EN: "this machine has no partitions, QOS or priorities to change", ZH: "本机没有可修改的分区、QOS 或优先级"}.Err())
	}
	if u.NumNodes > c.Size {
		return slurm.Refused(op, slurm.Sayf("Node count specification invalid"))
	}
	return c.forEachElement(id, func(r record) error {
		if r.Job.State.Ended() {
			return slurm.Refused(op, errEnded)
		}
		if u.NumNodes > 0 && r.Job.State != slurm.Pending {
			return slurm.Refused(op, slurm.Sayf("Job is no longer pending execution"))
		}
		return c.store.updateControl(r.Job.ID, func(ctl *control) {
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
