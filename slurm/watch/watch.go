// Package watch follows jobs on a cluster with bounded load: whatever the number
// of jobs and of those who look on, one question to the queue and at most one to
// the accounts in an interval. It tells what changed; what that means, and whom
// to tell, is left to others.
//
// A job that is in neither the queue nor final in the accounts is asked for
// again: absence is never an end.
package watch

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/megatron-ops/megatron-ops/slurm"
)

// cluster is what a watcher asks of a back end.
type cluster interface {
	Name() string
	// Jobs answers from the queue: f has IDs and All.
	Jobs(ctx context.Context, f slurm.Filter) ([]slurm.Job, error)
	// Past answers from the accounts: f has IDs.
	Past(ctx context.Context, f slurm.Filter) ([]slurm.Job, error)
}

// A Kind says what an event tells.
type Kind string

// The kinds of event.
const (
	Changed     Kind = "changed"     // Job is not as it was last told of
	Ended       Kind = "ended"       // Job will not run again by itself; it is not followed any more
	Lost        Kind = "lost"        // neither queue nor accounts have known Job for a day
	Unreachable Kind = "unreachable" // the cluster does not answer since At; told once
	Reachable   Kind = "reachable"   // it answers again
	Idle        Kind = "idle"        // Job holds its nodes and runs no step on them
)

// An Event is one thing that happened.
type Event struct {
	Kind    Kind
	Cluster string
	At      time.Time
	Job     slurm.Job
	Err     error // of Unreachable
	// Idle is for how long nothing runs, and what that has cost.
	Idle slurm.IdleAllocation
}

// Options are a watcher's paces. Zero fields take the defaults.
type Options struct {
	Interval time.Duration // between two looks: 30 s
	Floor    time.Duration // a question sooner than this after another is answered by that one: 10 s
	Window   time.Duration // in which at most two looks are made while nothing changes: two intervals
	Longest  time.Duration // the interval that failures and slow answers lead to: 5 min
	Forget   time.Duration // after which a job that nobody knows is lost: 24 h
	// Idle is for how long a job may run no step before it is told of, and again
	// each time that has doubled: 30 min. Negative: never.
	Idle time.Duration
}

func (o Options) withDefaults() Options {
	for _, d := range []struct {
		field     *time.Duration
		otherwise time.Duration
	}{
		{&o.Interval, 30 * time.Second},
		{&o.Floor, 10 * time.Second},
		{&o.Longest, 5 * time.Minute},
		{&o.Forget, 24 * time.Hour},
		{&o.Idle, 30 * time.Minute},
	} {
		if *d.field == 0 {
			*d.field = d.otherwise
		}
	}
	o.Floor = min(o.Floor, o.Interval) // a look of the watcher's own is never answered from memory
	o.Window = cmp.Or(o.Window, 2*o.Interval)
	return o
}

// A Watcher follows the jobs of one cluster under one identity.
type Watcher struct {
	cluster *Shared
	opts    Options

	mu       sync.Mutex
	jobs     map[slurm.JobID]*watched
	subs     map[*Subscription]bool
	interval time.Duration
	quiet    int       // looks in a row that showed nothing new
	looked   time.Time // the last look that was answered
	down     time.Time // since when the cluster does not answer; zero: it does
	stepped  time.Time // when the steps were last asked for
	wake     chan struct{}
}

// watched is a job that is watched.
type watched struct {
	job    slurm.Job
	told   bool      // job has been told of
	absent time.Time // since when nobody knows it
	waits  int       // looks that an end in the queue has waited for the accounts
	vain   int       // questions to the accounts in a row that brought no end
	again  time.Time // before which the accounts are not asked
	owed   int       // looks that may still ask why it was requeued, and until when more may
	late   time.Time
	parts  int           // elements or components that the queue has shown at once
	busy   time.Time     // when a step was last seen to run
	idle   time.Duration // for how long nothing ran when that was last told
}

// New returns a watcher of c, which may be a *Shared whose other readers are then
// answered by the same questions. Nothing is asked before Run, or Refresh.
func New(c cluster, o Options) *Watcher {
	o = o.withDefaults()
	shared, ok := c.(*Shared)
	if !ok {
		shared = newShared(c, o)
	}
	return &Watcher{
		cluster: shared, opts: o, interval: o.Interval,
		jobs: map[slurm.JobID]*watched{}, subs: map[*Subscription]bool{}, wake: make(chan struct{}, 1),
	}
}

// Watch follows a job from now on. known is the job as it was last told of, as a
// restart has it from its store: if it is still so, nothing is told. Its zero
// value but for the ID is a job that nothing is known of. Of two that were last
// told different things, neither is passed over: the job is told of again.
func (w *Watcher) Watch(known slurm.Job) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if x, is := w.jobs[known.ID]; is {
		x.told = x.told && (known.State == "" || same(x.job, known))
		return
	}
	w.jobs[known.ID] = &watched{job: known, told: known.State != ""}
	w.nudge()
}

// Clear follows no job any more: whoever watches again begins with what is stored.
func (w *Watcher) Clear() {
	w.mu.Lock()
	defer w.mu.Unlock()
	clear(w.jobs)
	w.looked = time.Time{}
}

// nudge makes Run look whether it has something to do.
func (w *Watcher) nudge() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// Watched lists the jobs that are followed, as they were at the last look.
func (w *Watcher) Watched() []slurm.Job {
	w.mu.Lock()
	defer w.mu.Unlock()
	jobs := make([]slurm.Job, 0, len(w.jobs))
	for _, x := range w.jobs {
		jobs = append(jobs, x.job)
	}
	slices.SortFunc(jobs, func(a, b slurm.Job) int { return cmp.Compare(a.ID, b.ID) })
	return jobs
}

// Job returns a job that is followed as it was at the last look.
func (w *Watcher) Job(id slurm.JobID) (j slurm.Job, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if x, is := w.jobs[id]; is {
		return x.job, true
	}
	return slurm.Job{}, false
}

// Run looks at the cluster at the watcher's pace until ctx ends. While no job is
// followed it asks nothing.
func (w *Watcher) Run(ctx context.Context) {
	stepped := false
	for {
		w.mu.Lock()
		idle := len(w.jobs) == 0
		// Many watchers that started together must not stay together; never sooner,
		// or a minute would see a third look.
		pause := time.Duration(float64(w.interval) * (1 + 0.1*rand.Float64()))
		next := w.looked.Add(pause)
		if w.looked.IsZero() {
			next = time.Now()
		}
		if !w.down.IsZero() {
			next = time.Now().Add(pause)
		} else if spent := w.cluster.next(); spent.After(next) {
			next = spent // somebody else has asked meanwhile
		}
		w.mu.Unlock()
		if idle {
			select {
			case <-ctx.Done():
				return
			case <-w.wake:
			}
			continue
		}
		timer := time.NewTimer(time.Until(next))
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
			// A look follows every look at the steps, however often that is due.
			if stepped = !stepped && w.steps(ctx); !stepped {
				_ = w.look(ctx)
			}
		}
	}
}

// look asks the cluster and tells of what is new.
func (w *Watcher) look(ctx context.Context) error {
	w.mu.Lock()
	ids := slices.Sorted(maps.Keys(w.jobs))
	w.mu.Unlock()

	begin := time.Now()
	seen, err := w.ask(ctx, ids)
	took := time.Since(begin)

	w.mu.Lock()
	defer w.mu.Unlock()
	w.pace(w.take(ids, seen, err), took, err)
	return err
}

// A sighting is what one look showed.
type sighting struct {
	queue   map[slurm.JobID][]slurm.Job // by array
	at      time.Time                   // of the queue
	past    map[slurm.JobID][]slurm.Job
	pastErr error
	asked   map[slurm.JobID]bool // of whom the accounts were asked
}

// live returns a job that the queue has and that has not ended.
func (s sighting) live(id slurm.JobID) (slurm.Job, bool) {
	j, ok := slurm.Fold(id, s.queue[id.Array()])
	return j, ok && !j.State.Ended()
}

// ask asks the queue for all, and the accounts for those that the queue has no
// more.
func (w *Watcher) ask(ctx context.Context, ids []slurm.JobID) (sighting, error) {
	seen, err := w.cluster.look(ctx, ids)
	if err != nil {
		return sighting{}, err
	}
	s := sighting{queue: seen.rows, at: seen.at, asked: map[slurm.JobID]bool{}}
	var left []slurm.JobID
	for _, id := range ids {
		if j, ok := s.live(id); !ok && w.due(id) || ok && w.requeued(id, j) {
			left = append(left, id)
			s.asked[id] = true
		}
	}
	if len(left) > 0 {
		rows, err := w.cluster.Past(ctx, slurm.Filter{IDs: left})
		s.past, s.pastErr = byArray(rows), err
	}
	return s, nil
}

// requeued reports whether a job was put back into the queue since it was last
// seen: only the accounts know why, and they may need a look or two.
func (w *Watcher) requeued(id slurm.JobID, j slurm.Job) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	x := w.jobs[id]
	if x == nil {
		return false
	}
	if x.told && !sameTime(x.job.SubmittedAt, j.SubmittedAt) {
		x.owed, x.late = patience, time.Now().Add(accountsLate)
	}
	return x.owed > 0 || time.Now().Before(x.late)
}

// due reports whether the accounts are to be asked for a job that left the queue:
// at each look at first, and ever more rarely where they have nothing to say.
func (w *Watcher) due(id slurm.JobID) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	x := w.jobs[id]
	return x == nil || time.Now().After(x.again)
}

// take takes in what a look showed and tells of it. It reports whether anything
// was new.
func (w *Watcher) take(ids []slurm.JobID, s sighting, err error) (news bool) {
	now := time.Now()
	if err != nil {
		if w.down.IsZero() && !errors.Is(err, context.Canceled) {
			w.down = now
			w.tell(Event{Kind: Unreachable, At: now, Err: err})
		}
		return false
	}
	w.looked = s.at
	if !w.down.IsZero() {
		w.down = time.Time{}
		w.tell(Event{Kind: Reachable, At: now})
	}
	for _, id := range ids {
		x, followed := w.jobs[id]
		if !followed {
			continue
		}
		if _, ok := s.live(id); !ok && s.asked[id] {
			x.vain++
			if x.vain > patience {
				x.again = now.Add(min(time.Duration(x.vain-patience)*w.opts.Interval, 2*w.opts.Longest))
			}
		}
		if _, ok := s.live(id); !ok && !s.asked[id] {
			if !x.absent.IsZero() { // it is not its turn, but its day may be over
				news = w.absent(x, now) || news
			}
			continue
		}
		j, final, known := settle(x, s)
		if !known {
			if s.pastErr == nil {
				news = w.absent(x, now) || news
			}
			continue
		}
		x.absent = time.Time{}
		if x.told && same(x.job, j) && !final {
			x.job = j
			continue
		}
		e := Event{Kind: Changed, At: now, Job: j}
		if final {
			e.Kind = Ended
			delete(w.jobs, id)
		}
		x.job, x.told, news = j, true, true
		w.tell(e)
	}
	return news
}

// pace chooses the next interval: longer after a failure or a slow answer, a
// little longer when nothing happens, the usual one after news.
func (w *Watcher) pace(news bool, took time.Duration, err error) {
	switch {
	case err != nil || took > time.Second:
		w.interval = min(2*w.interval, w.opts.Longest)
	case news:
		w.interval, w.quiet = w.opts.Interval, 0
	case w.quiet < quietLooks:
		w.interval = w.opts.Interval
		w.quiet++
	default:
		w.interval = min(w.interval*5/4, 2*w.opts.Interval)
	}
}

// quietLooks is after how many looks without news the interval grows.
const quietLooks = 20
