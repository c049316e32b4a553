// Package watch follows jobs on a cluster with bounded load: it makes one query to the
// queue and at most one to the accounts in an interval, however many jobs and readers
// there are. It reports what has changed; its callers decide what that means and whom
// to tell.
//
// A job that neither the queue nor, with its end, the accounts list is queried again: a
// job's absence is never taken for its end.
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

// cluster lists the methods that a watcher needs of a back end.
type cluster interface {
	Name() string
	// Jobs queries the queue; f has All.
	Jobs(ctx context.Context, f slurm.Filter) ([]slurm.Job, error)
	// Past queries the accounts; f has IDs.
	Past(ctx context.Context, f slurm.Filter) ([]slurm.Job, error)
}

// A Kind is the kind of an event.
type Kind string

// The kinds of event.
const (
	Changed     Kind = "changed"     // Job differs from the last event about it
	Ended       Kind = "ended"       // Job will not run again by itself; if somebody requeues it, it is followed again
	Lost        Kind = "lost"        // neither the queue nor the accounts have listed Job for a day
	Unreachable Kind = "unreachable" // the cluster has not answered since At; sent once
	Reachable   Kind = "reachable"   // the cluster answers again
	Idle        Kind = "idle"        // Job holds its nodes but runs no step on them
)

// An Event is one thing that happened.
type Event struct {
	Kind    Kind
	Cluster string
	At      time.Time
	Job     slurm.Job
	Err     error // of Unreachable
	// Idle holds the time without a step, and its cost.
	Idle slurm.IdleAllocation
}

// Options are a watcher's intervals. Zero fields take the defaults, given below.
type Options struct {
	Interval time.Duration // time between two looks at the queue: 30 s
	Floor    time.Duration // a reader this soon after a query gets that query's answer: 10 s
	Window   time.Duration // time in which at most two looks are made while nothing changes: two intervals
	Longest  time.Duration // the longest interval, after failures and very slow answers: 5 min
	Forget   time.Duration // time after which a job that nobody lists is lost: 24 h
	// Idle is how long a job may run without a step before an event reports it, and
	// again each time that this has doubled: 30 min. Negative means never.
	Idle time.Duration
}

func (o Options) withDefaults() Options {
	o.Interval = cmp.Or(o.Interval, 30*time.Second)
	o.Floor = cmp.Or(o.Floor, 10*time.Second)
	o.Longest = cmp.Or(o.Longest, 5*time.Minute)
	o.Forget = cmp.Or(o.Forget, 24*time.Hour)
	o.Idle = cmp.Or(o.Idle, 30*time.Minute)
	o.Floor = min(o.Floor, o.Interval) // so that the watcher's own looks always cause a query
	o.Window = cmp.Or(o.Window, 2*o.Interval)
	return o
}

// A Watcher follows the jobs of one cluster under one identity.
type Watcher struct {
	cluster *Shared
	opts    Options

	mu       sync.Mutex
	jobs     map[slurm.JobID]*watched
	over     map[slurm.JobID]pastJob // jobs that have ended and can be requeued
	subs     map[*Subscription]bool
	interval time.Duration
	quiet    int       // number of looks in a row without news
	looked   time.Time // time of the last look that was answered
	down     time.Time // since when the cluster does not answer; zero while it answers
	failed   time.Time // time of the last look that was not answered
	stepped  time.Time // time of the last query for running steps
	wake     chan struct{}
}

// A watched is a job that is followed.
type watched struct {
	job          slurm.Job
	reported     bool          // an event has reported job as it is
	missingSince time.Time     // since when neither the queue nor the accounts list it
	endLooks     int           // number of looks for which its end in the queue has waited for the accounts
	emptyQueries int           // number of queries to the accounts in a row that brought no end
	nextQuery    time.Time     // time of the next query to the accounts
	reasonLooks  int           // number of looks that may still ask the accounts why it was requeued
	reasonUntil  time.Time     // until when further looks may ask the same
	parts        int           // largest number of its elements or components seen in the queue
	stepSeen     time.Time     // when a step was last seen running
	idleReported time.Duration // time without a step at the last report of it
}

// New returns a watcher of c. If c is a *Shared, the watcher's queries also serve its
// other readers. The watcher queries nothing before Run.
func New(c cluster, o Options) *Watcher {
	o = o.withDefaults()
	shared, ok := c.(*Shared)
	if !ok {
		shared = NewShared(c, o)
	}
	return &Watcher{
		cluster: shared, opts: o, interval: o.Interval,
		jobs: map[slurm.JobID]*watched{}, over: map[slurm.JobID]pastJob{}, subs: map[*Subscription]bool{}, wake: make(chan struct{}, 1),
	}
}

// Watch starts to follow a job. known is the job as it was last reported, such as a
// restarted server has it from its store: no event comes while the job is still like
// this. A job with only an ID is one that was never reported. Where a second call has
// another known state, the next look reports the job again, so that neither caller
// misses a change. A job that has ended is followed again only once somebody requeues
// it.
func (w *Watcher) Watch(known slurm.Job) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if x, is := w.jobs[known.ID]; is {
		x.reported = x.reported && (known.State == "" || same(x.job, known))
		return
	}
	if known.State.Ended() && known.Reason != slurm.ReasonUnsettled {
		w.keepOver(known, time.Now())
	} else {
		if known.State != "" { // else the look tells whether it runs again
			delete(w.over, known.ID)
		}
		w.jobs[known.ID] = &watched{job: known, reported: known.State != ""}
	}
	w.nudge()
}

// Clear stops following all jobs. Callers that watch again start with the stored
// states.
func (w *Watcher) Clear() {
	w.mu.Lock()
	defer w.mu.Unlock()
	clear(w.jobs)
	clear(w.over)
	w.looked = time.Time{}
}

// nudge wakes Run up to check for work.
func (w *Watcher) nudge() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// Watched lists the followed jobs as they were at the last look.
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

// Job returns a followed job as it was at the last look.
func (w *Watcher) Job(id slurm.JobID) (j slurm.Job, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if x, is := w.jobs[id]; is {
		return x.job, true
	}
	return slurm.Job{}, false
}

// Run looks at the cluster at the watcher's interval until ctx ends. While it follows
// no job, and none that could be requeued, it makes no query.
func (w *Watcher) Run(ctx context.Context) {
	stepped := false
	for {
		w.mu.Lock()
		idle := len(w.jobs) == 0 && len(w.over) == 0
		// A random extra time spreads watchers that started together. It only lengthens
		// the interval, because a shorter one could bring a third look within a minute.
		pause := time.Duration(float64(w.interval) * (1 + 0.1*rand.Float64()))
		next := w.looked.Add(pause)
		if w.looked.IsZero() {
			next = time.Now()
		}
		down := !w.down.IsZero()
		if down {
			next = w.failed.Add(pause)
		} else if spent := w.cluster.next(); spent.After(next) {
			next = spent // another reader has caused a query meanwhile
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
		wait := time.Until(next)
		if down { // until next, another reader may find that the cluster answers again
			wait = min(wait, w.opts.Interval)
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
			if down && time.Now().Before(next) && !w.cluster.answers() {
				continue
			}
			// A look at the queue follows every query for steps, however often that is
			// due.
			if stepped = !stepped && w.checkSteps(ctx); !stepped {
				_ = w.look(ctx)
			}
		}
	}
}

// look queries the cluster and reports news.
func (w *Watcher) look(ctx context.Context) error {
	w.mu.Lock()
	ids := slices.Sorted(maps.Keys(w.jobs))
	w.mu.Unlock()

	begin := time.Now()
	seen, err := w.ask(ctx, ids)
	took := time.Since(begin)

	w.mu.Lock()
	defer w.mu.Unlock()
	w.adjustInterval(w.apply(ids, seen, err), took, err)
	return err
}

// A lookResult is the result of one look.
type lookResult struct {
	queue   map[slurm.JobID][]slurm.Job // by array
	at      time.Time                   // time of the queue's answer
	past    map[slurm.JobID][]slurm.Job
	pastErr error
	asked   map[slurm.JobID]bool // the jobs that the accounts were asked for
}

// live returns a job that the queue lists and that has not ended.
func (s lookResult) live(id slurm.JobID) (slurm.Job, bool) {
	j, ok := slurm.Fold(id, s.queue[id.Array()])
	return j, ok && !j.State.Ended()
}

// ask queries the queue for all jobs, and the accounts for those that have left the
// queue.
func (w *Watcher) ask(ctx context.Context, ids []slurm.JobID) (lookResult, error) {
	seen, err := w.cluster.look(ctx)
	if err != nil {
		return lookResult{}, err
	}
	s := lookResult{queue: seen.rows, at: seen.at, asked: map[slurm.JobID]bool{}}
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

// requeued reports whether a job was requeued since the last look. Only the accounts
// know the reason, and may need a look or two to have it.
func (w *Watcher) requeued(id slurm.JobID, j slurm.Job) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	x := w.jobs[id]
	if x == nil {
		return false
	}
	if x.reported && !sameTime(x.job.SubmittedAt, j.SubmittedAt) {
		x.reasonLooks, x.reasonUntil = accountsLooks, time.Now().Add(accountsLate)
	}
	return x.reasonLooks > 0 || time.Now().Before(x.reasonUntil)
}

// due reports whether it is time to ask the accounts for a job that left the queue: at
// every look at first, and ever more rarely where they have no answer.
func (w *Watcher) due(id slurm.JobID) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	x := w.jobs[id]
	return x == nil || time.Now().After(x.nextQuery)
}

// apply stores the result of a look, sends events, and reports whether there was any
// news.
func (w *Watcher) apply(ids []slurm.JobID, s lookResult, err error) (news bool) {
	now := time.Now()
	if err != nil {
		w.failed = now
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
	for _, id := range slices.Concat(ids, w.takeUpRequeued(s, now)) {
		x, followed := w.jobs[id]
		if !followed {
			continue
		}
		if _, live := s.live(id); !live && s.asked[id] {
			x.emptyQueries++
			if x.emptyQueries > accountsLooks {
				x.nextQuery = now.Add(min(time.Duration(x.emptyQueries-accountsLooks)*w.opts.Interval, 2*w.opts.Longest))
			}
		} else if !live {
			if !x.missingSince.IsZero() { // not due for a query, but the time until it counts as lost may be over
				news = w.handleUnknown(x, now) || news
			}
			continue
		}
		j, final, known := resolve(x, s)
		if !known {
			if s.pastErr == nil {
				news = w.handleUnknown(x, now) || news
			}
			continue
		}
		j.Restarts = max(j.Restarts, x.job.Restarts) // some accounts, and a queue, do not count runs
		x.missingSince = time.Time{}
		if x.reported && same(x.job, j) && !final {
			x.job = j
			continue
		}
		x.job, x.reported, news = j, true, true
		if final {
			w.end(j, now)
		} else {
			w.tell(Event{Kind: Changed, At: now, Job: j})
		}
	}
	return news
}

// adjustInterval sets the next interval: twice as long after a failure, slightly longer
// after many looks without news, the usual one after news. After a look of more than a
// second it is at least rest times as long, so that a slow cluster is queried less
// often, and at the usual interval as soon as it answers quickly again.
func (w *Watcher) adjustInterval(news bool, took time.Duration, err error) {
	switch {
	case err != nil:
		w.interval *= 2
	case news:
		w.interval, w.quiet = w.opts.Interval, 0
	case w.quiet < quietLooks:
		w.interval = w.opts.Interval
		w.quiet++
	default:
		w.interval = min(w.interval*5/4, 2*w.opts.Interval)
	}
	if took > time.Second {
		w.interval = max(w.interval, rest*took)
	}
	w.interval = min(w.interval, w.opts.Longest)
}

// rest is the time between two looks as a multiple of how long a slow look takes: one of
// more than 1.5 s delays the next one beyond the default interval of 30 s.
const rest = 20

// quietLooks is the number of looks without news after which the interval grows.
const quietLooks = 20
