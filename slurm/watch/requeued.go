package watch

import (
	"time"

	"github.com/megatron-ops/megatron-ops/slurm"
)

// Requeueable is how long after its end a job is looked for in the queue. Slurm forgets
// a job after its MinJobAge, which is minutes at most sites.
const Requeueable = 24 * time.Hour

// A pastJob is what is kept of a job that has ended.
type pastJob struct {
	user     string
	restarts int
	endedAt  time.Time
}

// end reports a job's end and stops following it. The caller holds the watcher's lock.
func (w *Watcher) end(j slurm.Job, now time.Time) {
	delete(w.jobs, j.ID)
	w.keepOver(j, now)
	w.tell(Event{Kind: Ended, At: now, Job: j})
}

// keepOver keeps a job that has ended, for the case that somebody requeues it. The
// caller holds the watcher's lock.
func (w *Watcher) keepOver(j slurm.Job, now time.Time) {
	p := pastJob{j.User, max(j.Restarts, w.over[j.ID].restarts), now}
	if j.EndedAt != nil && j.EndedAt.Before(now) { // the cluster's clock may be ahead
		p.endedAt = *j.EndedAt
	}
	w.over[j.ID] = p
}

// takeUpRequeued follows the jobs again that have ended and that the queue lists as
// waiting or running, and returns their ids. A job of another user is another job: the
// site has begun to count anew. The caller holds the watcher's lock.
func (w *Watcher) takeUpRequeued(s lookResult, now time.Time) (ids []slurm.JobID) {
	for id, last := range w.over {
		j, live := s.live(id)
		switch {
		case live && j.SameJob(slurm.Job{User: last.user}):
			// A queue does not count runs, and each run has news of its own.
			if w.jobs[id] == nil { // else somebody has asked for it meanwhile
				w.jobs[id] = &watched{job: slurm.Job{ID: id}}
				ids = append(ids, id)
			}
			w.jobs[id].job.Restarts = max(j.Restarts, last.restarts+1)
			delete(w.over, id)
		case live, now.Sub(last.endedAt) > Requeueable:
			delete(w.over, id)
		}
	}
	return ids
}
