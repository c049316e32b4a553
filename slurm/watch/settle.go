package watch

import (
	"slices"
	"time"

	"github.com/megatron-ops/megatron-ops/slurm"
)

// settle decides what a look says of one job, and whether it is the last word.
func settle(x *watched, s sighting) (j slurm.Job, final, known bool) {
	id := x.job.ID
	queue, past := s.queue[id.Array()], s.past[id.Array()]
	if id.Array() == id {
		x.parts = max(x.parts, parts(id, queue))
		if x.parts > 0 {
			// For a moment the accounts have an array's end as that of one job.
			past = slices.DeleteFunc(slices.Clone(past), func(p slurm.Job) bool { return p.ID == id })
		}
	}
	if j, ok := s.live(id); ok {
		x.waits, x.vain, x.again = 0, 0, time.Time{}
		j.Restarts, j.Requeues = x.job.Restarts, x.job.Requeues
		if p, ok := slurm.Fold(id, past); ok && len(p.Requeues) > len(j.Requeues) {
			j.Restarts, j.Requeues, x.owed = p.Restarts, p.Requeues, 0
			x.late = time.Time{}
		}
		x.owed = max(x.owed-1, 0)
		return j, false, true
	}
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
		// The queue has its end; the accounts, which have the exit code too, will
		// have it soon, unless the site keeps none.
		x.waits++
		if s.pastErr == nil && x.waits >= patience {
			return j, true, true
		}
	}
	j.Reason = slurm.ReasonUnsettled
	return j, false, true
}

// parts counts the elements or components of id among rows.
func parts(id slurm.JobID, rows []slurm.Job) int {
	n := 0
	for i := range rows {
		if rows[i].ID != id && rows[i].ID.Array() == id {
			n++
		}
	}
	return n
}

// patience is for how many looks an end in the queue waits for the accounts.
const patience = 3

// accountsLate is how late a busy accounting daemon may know why a job was put
// back; looks that come often go on asking for so long.
const accountsLate = time.Minute

// merge puts together what queue and accounts say of one array's elements: they
// leave the queue one by one. The accounts know more of an end, the queue all
// else.
func merge(queue, past []slurm.Job) []slurm.Job {
	rows := slices.Clone(queue)
	for _, p := range past {
		i := slices.IndexFunc(rows, func(r slurm.Job) bool { return r.ID == p.ID })
		switch {
		case i < 0:
			rows = append(rows, p)
		case p.State.Ended(): // in the queue too, or the whole would run
			rows[i] = p
		}
	}
	return rows
}

// absent deals with a job that nobody knows.
func (w *Watcher) absent(x *watched, now time.Time) (news bool) {
	if x.job.State.Ended() {
		// Its end was seen in the queue, and the site keeps no accounts.
		delete(w.jobs, x.job.ID)
		w.tell(Event{Kind: Ended, At: now, Job: x.job})
		return true
	}
	if x.absent.IsZero() {
		x.absent = now
		x.job.Reason = slurm.ReasonUnsettled
		w.tell(Event{Kind: Changed, At: now, Job: x.job})
		return true
	}
	if now.Sub(x.absent) >= w.opts.Forget {
		delete(w.jobs, x.job.ID)
		w.tell(Event{Kind: Lost, At: now, Job: x.job})
		return true
	}
	return false
}

// same reports whether there is nothing to tell between two sights of a job.
func same(a, b slurm.Job) bool {
	return a.State == b.State && a.Reason == b.Reason && a.Restarts == b.Restarts &&
		len(a.Requeues) == len(b.Requeues) && slices.Equal(a.Nodes, b.Nodes) && sameTime(a.SubmittedAt, b.SubmittedAt)
}

// sameTime compares submit times: a requeue rewrites it, so a second run that
// looks like the first is told of.
func sameTime(a, b *time.Time) bool { return a == nil || b == nil || a.Equal(*b) }
