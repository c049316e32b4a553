package follow

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/ops/joblogs"
	"github.com/megatron-ops/megatron-ops/internal/store"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// alarms is where is kept what a job's followers have heard of, so that a
// restart does not tell it again.
const alarms = "alarms"

// quietLooks is for how many looks in a row an alarm must be gone before it is
// told anew when it comes back.
const quietLooks = 10

// heard is what was told of one job: the alarms that go on, with the looks in a
// row that did not see them.
type heard map[string]int

// note takes what a look has seen, and returns what is new. It reports whether
// there is something to keep.
func (h heard) note(seen []joblogs.Alarm) (fresh []joblogs.Alarm, changed bool) {
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
		case missed+1 >= quietLooks:
			delete(h, id)
		default:
			h[id] = missed + 1
		}
		changed = true
	}
	return fresh, changed
}

// patrol looks at the numbers of every running job that is followed, and tells
// of what goes wrong while it can still be mended; of one job that waits it
// tells what would start it sooner.
func (f *Follower) patrol(ctx context.Context, st *store.Store) {
	for sleep(ctx, f.Interval) {
		f.mu.Lock()
		jobs := slices.Collect(maps.Values(f.live))
		f.mu.Unlock()
		asked := false
		for _, j := range jobs {
			if w := f.Watchers[j.Cluster]; w != nil {
				now, ok := w.Job(j.ID)
				if !ok {
					f.letGo(j)
					continue
				}
				if now.State != "" {
					now.Cluster = j.Cluster
					j = now
				}
			}
			f.follow(j)
			switch j.State {
			case slurm.Running:
				f.adopt(ctx, st, j)
				f.sound(ctx, st, j)
			case slurm.Pending:
				asked = asked || f.hint(ctx, st, j)
			}
		}
	}
}

// follow keeps a job that runs or waits for the patrol, and lets go of others.
func (f *Follower) follow(j slurm.Job) {
	f.mu.Lock()
	defer f.mu.Unlock()
	k := key(j.Cluster, j.ID)
	switch j.State {
	case slurm.Running, slurm.Pending:
		f.live[k] = j
	default:
		delete(f.live, k)
	}
	if j.State != slurm.Pending {
		delete(f.asked, k)
	}
}

// letGo takes from the patrol a job that is not watched any more.
func (f *Follower) letGo(j slurm.Job) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.live, key(j.Cluster, j.ID))
	delete(f.asked, key(j.Cluster, j.ID))
}

// sound tells of what is new about a running job.
func (f *Follower) sound(ctx context.Context, st *store.Store, j slurm.Job) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	seen, err := joblogs.Alarms(ctx, f.reader(), j)
	if err != nil {
		f.Log.Warn("a running job's numbers could not be read", "job", j.ID, "error", err)
		return
	}
	told := heard{}
	k := key(j.Cluster, j.ID)
	had, err := st.Slack().Get(ctx, alarms, k, time.Now(), &told)
	if err != nil {
		f.Log.Error("a job's alarms could not be read", "job", j.ID, "error", err)
		return
	}
	if !had && len(seen) == 0 {
		return
	}
	fresh, changed := told.note(seen)
	// Written down first: an alarm that a crash swallows is better than one that
	// rings again and again.
	if changed {
		if err := st.Slack().Put(ctx, alarms, k, told, time.Now().Add(memory)); err != nil {
			f.Log.Error("a job's alarms could not be written", "job", j.ID, "error", err)
			return
		}
	}
	if len(fresh) > 0 {
		f.tell(ctx, News{Job: j, Alarms: fresh})
	}
}
