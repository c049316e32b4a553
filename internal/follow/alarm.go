package follow

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/joblogs"
	"github.com/megatron-ops/megatron-ops/internal/store"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// alarmDocs is the kind of document that records which alarms of a job were reported,
// so that a restart does not report them again.
const alarmDocs = "alarms"

// quietPolls is for how many polls in a row an alarm must be absent before it is
// reported again when it comes back.
const quietPolls = 10

// reportedAlarms counts, for each alarm of a job that was reported, the polls in a row
// that did not see it.
type reportedAlarms map[string]int

// update takes the alarms that a poll has seen and returns the new ones. changed
// reports whether there is something to store.
func (h reportedAlarms) update(seen []joblogs.Alarm) (fresh []joblogs.Alarm, changed bool) {
	now := map[string]bool{}
	for _, a := range seen {
		now[a.ID] = true
		missed, told := h[a.ID]
		if !told {
			fresh = append(fresh, a)
		}
		changed = changed || !told || missed > 0
		h[a.ID] = 0
	}
	for id, missed := range h {
		switch {
		case now[id]:
			continue
		case missed+1 >= quietPolls:
			delete(h, id)
		default:
			h[id] = missed + 1
		}
		changed = true
	}
	return fresh, changed
}

// checkLoop regularly reads the numbers of every running job that is followed, and
// reports what goes wrong while it can still be corrected. For one waiting job per
// round it asks what would start the job sooner.
func (f *Follower) checkLoop(ctx context.Context, st *store.Store) {
	for ops.Pause(ctx, f.Interval) {
		f.mu.Lock()
		jobs := slices.Collect(maps.Values(f.live))
		f.mu.Unlock()
		asked := false
		for _, j := range jobs {
			if w := f.Watchers[j.Cluster]; w != nil {
				now, ok := w.Job(j.ID)
				if !ok {
					f.untrack(j)
					continue
				}
				if now.State != "" {
					now.Cluster = j.Cluster
					j = now
				}
			}
			f.track(j)
			switch j.State {
			case slurm.Running:
				f.adoptNext(ctx, st, j)
				f.reportAlarms(ctx, st, j)
			case slurm.Pending:
				asked = asked || f.hint(ctx, st, j)
			}
		}
	}
}

// track keeps a running or pending job for checkLoop, and drops a job in another state.
func (f *Follower) track(j slurm.Job) {
	if j.State != slurm.Running && j.State != slurm.Pending {
		f.untrack(j)
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.live[key(j.Cluster, j.ID)] = j
}

// untrack drops a job that has ended, or that no watcher follows any more.
func (f *Follower) untrack(j slurm.Job) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.live, key(j.Cluster, j.ID))
	delete(f.asked, key(j.Cluster, j.ID))
}

func (f *Follower) reportAlarms(ctx context.Context, st *store.Store, j slurm.Job) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	seen, err := joblogs.Alarms(ctx, f.reader(), j)
	if err != nil {
		f.Log.Warn("a running job's numbers could not be read", "job", j.ID, "error", err)
		return
	}
	told := reportedAlarms{}
	k := key(j.Cluster, j.ID)
	if _, err := st.Slack().Get(ctx, alarmDocs, k, time.Now(), &told); err != nil {
		f.Log.Error("a job's alarms could not be read", "job", j.ID, "error", err)
		return
	}
	fresh, changed := told.update(seen)
	// Store first: an alarm that a crash swallows is better than one that is reported
	// again and again.
	if changed {
		if err := st.Slack().Put(ctx, alarmDocs, k, told, time.Now().Add(lookback)); err != nil {
			f.Log.Error("a job's alarms could not be written", "job", j.ID, "error", err)
			return
		}
	}
	if len(fresh) > 0 {
		f.tell(ctx, News{Job: j, Alarms: fresh})
	}
}
