package watch

import (
	"context"
	"time"

	"github.com/megatron-ops/megatron-ops/slurm"
)

// steps asks for the steps that run now, where it is time for that and there is a
// job that could be idle. It takes the place of a look, so that it costs the
// controller no further question; it reports whether it did.
func (w *Watcher) steps(ctx context.Context) bool {
	asker, ok := w.cluster.cluster.(interface {
		RunningSteps(ctx context.Context, user string) ([]slurm.Step, error)
	})
	now := time.Now()
	w.mu.Lock()
	if !ok || w.opts.Idle < 0 || !w.down.IsZero() || now.Sub(w.stepped) < w.opts.Idle/3 {
		w.mu.Unlock()
		return false
	}
	var jobs []slurm.Job
	for _, x := range w.jobs {
		if j := x.job; j.State == slurm.Running && j.StartedAt != nil && now.Sub(*j.StartedAt) >= w.opts.Idle {
			jobs = append(jobs, j)
		}
	}
	if len(jobs) == 0 {
		w.mu.Unlock()
		return false
	}
	w.stepped = now
	w.mu.Unlock()
	running, err := asker.RunningSteps(ctx, "")
	if err != nil {
		return false // the look that follows finds out whether the cluster is away
	}
	idle := map[slurm.JobID]bool{}
	for _, i := range slurm.IdleAllocations(jobs, running, w.opts.Idle, now) {
		idle[i.Job.ID] = true
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.looked = now // the next look comes an interval later
	for _, j := range jobs {
		x := w.jobs[j.ID]
		switch {
		case x == nil:
		case !idle[j.ID]:
			x.busy, x.idle = now, 0
		default:
			w.tellIdle(x, now)
		}
	}
	return true
}

// tellIdle tells of a job that runs no step, when that has gone on for twice as
// long as it was last told.
func (w *Watcher) tellIdle(x *watched, now time.Time) {
	since := *x.job.StartedAt
	if x.busy.After(since) {
		since = x.busy
	}
	long := now.Sub(since)
	if long < w.opts.Idle || long < 2*x.idle {
		return
	}
	x.idle = long
	w.tell(Event{Kind: Idle, At: now, Job: x.job, Idle: slurm.IdleAllocation{Job: x.job, For: long, GPUHours: long.Hours() * float64(x.job.GPUs)}})
}
