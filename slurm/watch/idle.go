package watch

import (
	"context"
	"time"

	"github.com/megatron-ops/megatron-ops/slurm"
)

// checkSteps queries the running steps, where that is due and some job could be idle.
// The query replaces a look at the queue, so it adds no load to the controller.
// checkSteps reports whether it made the query.
func (w *Watcher) checkSteps(ctx context.Context) bool {
	asker, ok := w.cluster.cluster.(interface {
		RunningSteps(context.Context) ([]slurm.Step, error)
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
	running, err := asker.RunningSteps(ctx)
	if err != nil {
		return false // the look that follows finds out whether the cluster answers
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
			x.stepSeen, x.idleReported = now, 0
		default:
			w.reportIdle(x, now)
		}
	}
	return true
}

// reportIdle reports a job without a running step, at first after Options.Idle and
// again whenever that time has doubled since the last report.
func (w *Watcher) reportIdle(x *watched, now time.Time) {
	since := *x.job.StartedAt
	if x.stepSeen.After(since) {
		since = x.stepSeen
	}
	long := now.Sub(since)
	if long < w.opts.Idle || long < 2*x.idleReported {
		return
	}
	x.idleReported = long
	w.tell(Event{Kind: Idle, At: now, Job: x.job, Idle: slurm.IdleAllocation{Job: x.job, For: long, GPUHours: long.Hours() * float64(x.job.GPUs)}})
}
