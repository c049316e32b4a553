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

// MayRequeue returns the error with which Requeue refuses a job, and does nothing.
func (c *Cluster) MayRequeue(_ context.Context, id slurm.JobID) error {
	return c.requeue(id, func(record) error { return nil })
}

// Requeue stops a running job and puts it back into the queue.
func (c *Cluster) Requeue(_ context.Context, id slurm.JobID) error {
	return c.requeue(id, func(r record) error {
		return c.store.updateControl(r.Job.ID, func(ctl *control) { ctl.Requeue = r.Job.Restarts + 1 })
	})
}

// requeue gives the order to each element of a job that runs.
func (c *Cluster) requeue(id slurm.JobID, order func(record) error) error {
	op := "requeue " + string(id)
	sub, err := c.store.submission(id)
	if err == nil && !sub.Request.Requeue {
		return slurm.Refused(op, slurm.Sayf("Requested operation is presently disabled for job %s", id))
	}
	return c.forEachElement(id, func(r record) error {
		switch r.Job.State {
		case slurm.Running:
			return order(r)
		case slurm.Pending:
			return slurm.Refused(op, slurm.Sayf("Job is pending execution"))
		}
		return &slurm.Error{
			Op: op, Kind: slurm.Rejected,
			Msg: lang.Text{EN: "it is %s, and without Slurm only a job that runs can be requeued", ZH: "作业状态为 %s；没有 Slurm 时只能让运行中的作业重新排队"}.With(r.Job.State),
			Fix: lang.Text{EN: "submit it again: `megatron-ops submit --from %s`", ZH: "请重新提交：`megatron-ops submit --from %s`"}.With(r.Job.ID),
		}
	})
}

// Update changes the time limit of a job, and the number of nodes of a pending job. It
// refuses changes of the partition, QOS and excluded nodes, which have no meaning on one
// machine.
func (c *Cluster) Update(_ context.Context, id slurm.JobID, u slurm.Update) error {
	op := "update " + string(id)
	if u.Partition != "" || u.QOS != "" || len(u.Exclude) > 0 {
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
			if u.NumNodes > 0 {
				ctl.Nodes = u.NumNodes
			}
		})
	})
}
