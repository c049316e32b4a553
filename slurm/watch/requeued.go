package watch

import (
	"time"

	"github.com/megatron-ops/megatron-ops/slurm"
)

// requeueable is how long after its end a job is looked for in the queue. Slurm forgets
// a job after its MinJobAge, which is minutes at most sites.
const requeueable = 24 * time.Hour

// end reports a job's end and stops following it. The caller holds the watcher's lock.
func (w *Watcher) end(j slurm.Job, now time.Time) {
	delete(w.jobs, j.ID)
	w.keepOver(j, now)
	w.tell(Event{Kind: Ended, At: now, Job: j})
}

// keepOver keeps a job that has ended, for the case that somebody requeues it. The
// caller holds the watcher's lock.
func (w *Watcher) keepOver(j slurm.Job, now time.Time) {
	if j.EndedAt == nil {
		j.EndedAt = &now
	}
	w.over[j.ID] = j
}

// takeUpRequeued follows the jobs again that have ended and that the queue lists as
// waiting or running, and returns their ids. The caller holds the watcher's lock.
func (w *Watcher) takeUpRequeued(s lookResult, now time.Time) (ids []slurm.JobID) {
	for id, last := range w.over {
		if j, live := s.live(id); live {
			// A queue does not count runs, and each run has news of its own.
			w.jobs[id] = &watched{job: slurm.Job{ID: id, Restarts: max(j.Restarts, last.Restarts+1)}}
			ids = append(ids, id)
			delete(w.over, id)
		} else if now.Sub(*last.EndedAt) > requeueable {
			delete(w.over, id)
		}
	}
	return ids
}
