package watch

import (
	"slices"
	"time"

	"github.com/megatron-ops/megatron-ops/slurm"
)

// resolve combines the answers of queue and accounts for one job. final says that the
// job has ended and that no better answer will come; known is false where neither lists
// the job.
func resolve(x *watched, s lookResult) (j slurm.Job, final, known bool) {
	id := x.job.ID
	queue, past := s.queue[id.Array()], s.past[id.Array()]
	if id.Array() == id {
		x.parts = max(x.parts, parts(id, queue))
		if x.parts > 0 {
			// For a moment the accounts list the end of an array as that of one job.
			past = slices.DeleteFunc(slices.Clone(past), func(p slurm.Job) bool { return p.ID == id })
		}
	}
	if j, ok := s.live(id); ok {
		x.endLooks, x.emptyQueries, x.nextQuery = 0, 0, time.Time{}
		j.Restarts, j.Requeues = x.job.Restarts, x.job.Requeues
		if p, ok := slurm.Fold(id, past); ok && len(p.Requeues) > len(j.Requeues) {
			j.Restarts, j.Requeues, x.reasonLooks = p.Restarts, p.Requeues, 0
			x.reasonUntil = time.Time{}
		}
		x.reasonLooks = max(x.reasonLooks-1, 0)
		return j, false, true
	}
	// While the accounts lag behind a requeue, their newest record is of the run before.
	past = slices.DeleteFunc(slices.Clone(past), func(p slurm.Job) bool {
		return p.ID == id && p.SubmittedAt != nil && x.job.SubmittedAt != nil && p.SubmittedAt.Before(*x.job.SubmittedAt)
	})
	rows := merge(queue, past)
	j, known = slurm.Fold(id, rows)
	if !known {
		return j, false, false
	}
	p, ok := slurm.Fold(id, past)
	if ok && p.State.Ended() && j.State.Ended() && parts(id, past) >= x.parts {
		return j, true, true
	}
	if j.State.Ended() {
		// The queue shows the end. The accounts, which also have the exit code, will
		// show it soon, unless the site keeps none.
		x.endLooks++
		if s.pastErr == nil && x.endLooks >= accountsLooks {
			return j, true, true
		}
	}
	j.Reason = slurm.ReasonUnsettled
	return j, false, true
}

// parts returns the number of elements or components of id among rows.
func parts(id slurm.JobID, rows []slurm.Job) int {
	n := 0
	for i := range rows {
		if rows[i].ID != id && rows[i].ID.Array() == id {
			n++
		}
	}
	return n
}

// accountsLooks is the number of looks for which an end in the queue waits for the
// accounts.
const accountsLooks = 3

// accountsLate is how long after a requeue a busy accounting daemon may still lack its
// reason. Looks in that time ask the accounts again.
const accountsLate = time.Minute

// merge combines the rows of queue and accounts for one array, whose elements leave the
// queue one by one. The accounts know more about an ended element, the queue more about
// any other.
func merge(queue, past []slurm.Job) []slurm.Job {
	rows := slices.Clone(queue)
	for _, p := range past {
		i := slices.IndexFunc(rows, func(r slurm.Job) bool { return r.ID == p.ID })
		switch {
		case i < 0:
			rows = append(rows, p)
		case p.State.Ended(): // in the queue too, or the whole array would count as running
			rows[i] = p
		}
	}
	return rows
}

// handleUnknown handles a job that neither the queue nor the accounts list, and reports
// whether it told anything new.
func (w *Watcher) handleUnknown(x *watched, now time.Time) (news bool) {
	if x.job.State.Ended() {
		// The queue has shown its end, and the site keeps no accounts.
		x.job.Reason = "" // nothing more is awaited
		w.end(x.job, now)
		return true
	}
	if x.missingSince.IsZero() {
		x.missingSince = now
		x.job.Reason = slurm.ReasonUnsettled
		w.tell(Event{Kind: Changed, At: now, Job: x.job})
		return true
	}
	if now.Sub(x.missingSince) >= w.opts.Forget {
		delete(w.jobs, x.job.ID)
		w.tell(Event{Kind: Lost, At: now, Job: x.job})
		return true
	}
	return false
}

// same reports whether two states of a job differ in nothing that is worth an event.
func same(a, b slurm.Job) bool {
	return a.State == b.State && a.Reason == b.Reason && a.Restarts == b.Restarts &&
		len(a.Requeues) == len(b.Requeues) && slices.Equal(a.Nodes, b.Nodes) && sameTime(a.SubmittedAt, b.SubmittedAt)
}

// sameTime compares submit times. A requeue changes the submit time, so a second run
// that looks like the first one still causes an event.
func sameTime(a, b *time.Time) bool { return a == nil || b == nil || a.Equal(*b) }
