package watch

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/megatron-ops/megatron-ops/slurm"
)

// A Shared cluster answers any number of readers with few questions: the whole
// queue is asked for at once, whoever asks while that runs is answered by it, and
// so is whoever asks soon after. While nothing changes, the queue is asked for at
// most twice in a Window, however often people look.
//
// What it remembers is only ever for reading. Who changes something asks the
// cluster itself, and then says Changed.
type Shared struct {
	cluster cluster
	opts    Options
	// whole asks for everybody's jobs, so that every reader is served; otherwise
	// only for the jobs of a watcher.
	whole bool

	mu      sync.Mutex
	asking  chan struct{} // closed when the question under way is answered; nil: none
	last    sight
	before  sight // what another process has seen; for when the cluster does not answer
	stale   bool  // something was changed since last
	err     error // of the last question
	failed  time.Time
	hold    time.Duration // for how long err stands
	asked   [2]time.Time  // when the last two questions were asked, the older first
	quiet   bool          // the last answer was as the one before it
	changed time.Time     // when an answer last was another one
	told    map[slurm.JobID]detail
	past    map[string]memory
	turns   map[string]chan struct{} // questions besides the queue's under way, by what they ask for
	queued  *batch                   // who asks for details together as soon as the question under way is answered
}

// A sight is what the queue showed.
type sight struct {
	rows map[slurm.JobID][]slurm.Job // by array
	all  []slurm.Job
	at   time.Time
	of   map[slurm.JobID]bool // the jobs asked for; nil: all
	sum  uint64
}

// A detail is what a question for one job said.
type detail struct {
	job  slurm.Job
	err  error
	at   time.Time
	same bool // as the question before it
}

// A memory is what the accounts said.
type memory struct {
	rows []slurm.Job
	at   time.Time
}

// NewShared returns a view of c for many readers.
func NewShared(c cluster, o Options) *Shared {
	s := newShared(c, o)
	s.whole = true
	return s
}

func newShared(c cluster, o Options) *Shared {
	return &Shared{cluster: c, opts: o.withDefaults(), told: map[slurm.JobID]detail{}, past: map[string]memory{}, turns: map[string]chan struct{}{}}
}

// Name is the cluster's.
func (s *Shared) Name() string { return s.cluster.Name() }

// Recall gives what somebody else saw at that time: it answers whoever asks while
// the cluster does not, until the cluster does.
func (s *Shared) Recall(jobs []slurm.Job, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.before = sight{rows: byArray(jobs), all: jobs, at: at}
}

// known is the last sight, whoever's it was; the lock is held.
func (s *Shared) known() sight {
	if s.before.at.After(s.last.at) {
		return s.before
	}
	return s.last
}

// Changed says that something was changed through this process: the next reader
// is told the news.
func (s *Shared) Changed() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stale, s.asked, s.quiet = true, [2]time.Time{}, false
	clear(s.past)
	for id, d := range s.told {
		if !d.job.State.Ended() || d.job.Reason == slurm.ReasonUnsettled {
			delete(s.told, id)
		}
	}
}

// fresh reports whether what is known of the jobs answers a reader of now.
func (s *Shared) fresh(ids []slurm.JobID, now time.Time) bool {
	if s.last.of != nil && (s.whole || slices.ContainsFunc(ids, func(id slurm.JobID) bool { return !s.last.of[id] })) {
		return false
	}
	return !s.stale && !s.last.at.IsZero() && (now.Sub(s.last.at) < s.opts.Floor || s.spent(now))
}

// spent reports whether one more question would be the third of a Window in which
// nothing has changed.
func (s *Shared) spent(now time.Time) bool {
	return s.quiet && !s.asked[0].IsZero() && now.Sub(s.asked[0]) < s.opts.Window
}

// next is from when on a question would be asked and not be answered from memory.
func (s *Shared) next() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.spent(time.Now()) {
		return s.asked[0].Add(s.opts.Window)
	}
	return time.Time{}
}

// look answers from what is known, or asks. ids are the jobs that are wanted;
// none: all.
func (s *Shared) look(ctx context.Context, ids []slurm.JobID) (sight, error) {
	for {
		s.mu.Lock()
		if under := s.asking; under != nil {
			s.mu.Unlock()
			select {
			case <-ctx.Done():
				return sight{}, ctx.Err()
			case <-under:
			}
			continue
		}
		now := time.Now()
		switch {
		case s.err != nil && now.Sub(s.failed) < s.hold:
			defer s.mu.Unlock()
			return sight{}, s.err
		case s.fresh(ids, now):
			defer s.mu.Unlock()
			return s.last, nil
		}
		done := make(chan struct{})
		s.asking = done
		s.mu.Unlock()
		return s.ask(ctx, ids, done)
	}
}

func (s *Shared) ask(ctx context.Context, ids []slurm.JobID, done chan struct{}) (sight, error) {
	f := slurm.Filter{All: true}
	var of map[slurm.JobID]bool
	if !s.whole {
		f.IDs, of = ids, make(map[slurm.JobID]bool, len(ids))
		for _, id := range ids {
			of[id] = true
		}
	}
	began := time.Now()
	rows, err := s.cluster.Jobs(ctx, f)

	s.mu.Lock()
	defer s.mu.Unlock()
	s.asking = nil
	close(done)
	now := time.Now()
	if err != nil {
		if ctx.Err() == nil {
			// Those who come next need not all find out for themselves.
			s.err, s.failed = err, now
			s.hold = min(max(2*s.hold, s.opts.Floor), s.opts.Interval)
		}
		return sight{}, err
	}
	sum := sumOf(rows)
	s.quiet = s.err == nil && !s.stale && !s.last.at.IsZero() && sum == s.last.sum
	if !s.quiet {
		s.changed = now
	}
	s.asked = [2]time.Time{s.asked[1], began}
	s.err, s.hold, s.stale, s.before = nil, 0, false, sight{}
	s.last = sight{rows: byArray(rows), all: rows, at: now, of: of, sum: sum}
	return s.last, nil
}

var seed = maphash.MakeSeed()

// sumOf tells one answer from another, whatever the order of its rows.
func sumOf(rows []slurm.Job) uint64 {
	var sum uint64
	var h maphash.Hash
	h.SetSeed(seed)
	for i := range rows {
		r := &rows[i]
		h.Reset()
		for _, word := range []string{string(r.ID), string(r.State), r.Reason, strings.Join(r.Nodes, ",")} {
			_, _ = h.WriteString(word)
			_ = h.WriteByte(0)
		}
		if r.SubmittedAt != nil {
			fmt.Fprint(&h, r.SubmittedAt.Unix())
		}
		sum += h.Sum64()
	}
	return sum
}

// byArray puts the rows of one array or heterogeneous job together; it sorts rows
// and shares their memory.
func byArray(rows []slurm.Job) map[slurm.JobID][]slurm.Job {
	slices.SortStableFunc(rows, func(a, b slurm.Job) int { return strings.Compare(string(a.ID.Array()), string(b.ID.Array())) })
	all := map[slurm.JobID][]slurm.Job{}
	for begin := 0; begin < len(rows); {
		id, end := rows[begin].ID.Array(), begin+1
		for end < len(rows) && rows[end].ID.Array() == id {
			end++
		}
		all[id] = rows[begin:end:end]
		begin = end
	}
	return all
}

// Jobs answers from the queue, and from the accounts where f has Since.
func (s *Shared) Jobs(ctx context.Context, f slurm.Filter) ([]slurm.Job, error) {
	seen, err := s.look(ctx, f.IDs)
	if err != nil {
		return nil, err
	}
	return s.choose(ctx, seen, f)
}

// Known answers f from what was last seen of the queue, and when that was; a
// zero time: nothing was.
func (s *Shared) Known(f slurm.Filter) ([]slurm.Job, time.Time) {
	s.mu.Lock()
	seen := s.known()
	s.mu.Unlock()
	f.Since = time.Time{}
	rows, _ := s.choose(context.Background(), seen, f)
	for i := range rows {
		rows[i].SeenAt = &seen.at
	}
	return rows, seen.at
}

func (s *Shared) choose(ctx context.Context, seen sight, f slurm.Filter) ([]slurm.Job, error) {
	match := f.Matcher()
	rows := []slurm.Job{}
	known := map[slurm.JobID]bool{}
	for _, j := range seen.all {
		if match(j) {
			rows = append(rows, aged(j, seen.at))
			known[j.ID] = true
		}
	}
	if f.Since.IsZero() {
		return rows, nil
	}
	past, err := s.Past(ctx, f)
	for _, j := range past {
		if !known[j.ID] && j.State.Ended() && match(j) {
			rows = append(rows, j)
		}
	}
	return rows, err
}

// aged brings a running job's time up to now.
func aged(j slurm.Job, at time.Time) slurm.Job {
	if j.State == slurm.Running && !at.IsZero() {
		j.ElapsedS += int64(time.Since(at).Seconds())
	}
	return j
}

// settled is after how long the accounts have what the queue has shown.
const settled = time.Minute

// Past answers from the accounts. While the queue stays as it is nothing ends, so
// that an answer which came a minute after the last change still holds.
func (s *Shared) Past(ctx context.Context, f slurm.Filter) ([]slurm.Job, error) {
	if len(f.IDs) > 0 {
		return s.cluster.Past(ctx, f) // a watcher's: it knows when to ask
	}
	key := fmt.Sprint("past\x00", f.User, "\x00", f.Partition, "\x00", f.States, "\x00", f.Since.Truncate(time.Hour).Unix())
	done, err := s.turn(ctx, key)
	if err != nil {
		return nil, err
	}
	defer done()
	if rows, holds := s.pastHolds(key); holds {
		return rows, nil
	}
	asked := time.Now()
	rows, err := s.cluster.Past(ctx, f)
	if err != nil {
		return rows, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.past) >= mostKept/100 {
		clear(s.past)
	}
	s.past[key] = memory{rows, asked}
	return rows, nil
}

// pastHolds returns what the accounts said of key, while it holds.
func (s *Shared) pastHolds(key string) ([]slurm.Job, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m, have := s.past[key]
	return m.rows, have && (time.Since(m.at) < s.opts.Floor || !s.last.at.IsZero() && m.at.After(s.changed.Add(settled)))
}

// turn waits until nobody else asks for what key names; done lets the next one
// ask. Whoever has the turn looks first whether the one before has been told.
func (s *Shared) turn(ctx context.Context, key string) (done func(), err error) {
	for {
		s.mu.Lock()
		before := s.turns[key]
		if before == nil {
			mine := make(chan struct{})
			s.turns[key] = mine
			s.mu.Unlock()
			return func() {
				s.mu.Lock()
				defer s.mu.Unlock()
				delete(s.turns, key)
				close(mine)
			}, nil
		}
		s.mu.Unlock()
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-before:
		}
	}
}

// mostKept bounds what is remembered of single jobs.
const mostKept = 20000

// Job answers for one job. What only a question for the one job tells, such as
// where its output goes, is asked once for each state of each run. While the
// cluster does not answer, the job comes as it was last seen, with the time.
func (s *Shared) Job(ctx context.Context, id slurm.JobID) (slurm.Job, error) {
	seen, err := s.look(ctx, nil)
	s.mu.Lock()
	had, known := s.told[id]
	old := s.known()
	s.mu.Unlock()
	if err != nil {
		row, ok := slurm.Fold(id, old.rows[id.Array()])
		switch {
		case !errors.Is(err, slurm.ErrUnreachable) || !ok && (!known || had.err != nil):
			return slurm.Job{}, err
		case !ok:
			row, old.at = had.job, had.at
		}
		row.SeenAt = &old.at
		return row, nil
	}
	row, ok := slurm.Fold(id, seen.rows[id.Array()])
	d, holds := s.remembered(id, row, ok)
	if !holds {
		if d, err = s.one(ctx, id, row, ok); err != nil {
			return d.job, err
		}
	}
	if ok && !row.State.Ended() && d.err == nil {
		return blend(aged(row, seen.at), d.job), nil
	}
	return d.job, d.err
}

// remembered returns what a question for one job said before, while it holds; row
// is what the queue shows of it now.
func (s *Shared) remembered(id slurm.JobID, row slurm.Job, inQueue bool) (d detail, holds bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d, known := s.told[id]
	now := time.Now()
	switch {
	case !known:
		return d, false
	case d.err == nil && inQueue && !row.State.Ended():
		return d, d.job.State == row.State && sameTime(d.job.SubmittedAt, row.SubmittedAt)
	case d.err == nil && d.job.State.Ended() && d.job.Reason != slurm.ReasonUnsettled:
		return d, true
	}
	return d, now.Sub(d.at) < s.opts.Floor || d.same && now.Sub(d.at) < s.opts.Interval
}

// blend is a row of the queue with what only a question for the one job tells.
func blend(row, detail slurm.Job) slurm.Job {
	row.Stdout, row.Stderr, row.ExitCode = detail.Stdout, detail.Stderr, detail.ExitCode
	row.Restarts, row.Requeues = detail.Restarts, detail.Requeues
	row.GPUs = max(row.GPUs, detail.GPUs)
	return row
}

// one asks for one job; of many who ask at once, one does. The detail's error is
// that the job is not known, the other one that nobody could say.
func (s *Shared) one(ctx context.Context, id slurm.JobID, row slurm.Job, inQueue bool) (detail, error) {
	asker, ok := s.cluster.(interface {
		Job(context.Context, slurm.JobID) (slurm.Job, error)
	})
	if !ok {
		return detail{}, slurm.JobNotFound(id)
	}
	done, err := s.turn(ctx, "job\x00"+string(id))
	if err != nil {
		return detail{}, err
	}
	defer done()
	if d, holds := s.remembered(id, row, inQueue); holds {
		return d, nil
	}
	j, told, err := s.detailed(ctx, row, inQueue)
	if !told && err == nil {
		j, err = asker.Job(ctx, id)
	}
	if err != nil && !errors.Is(err, slurm.ErrNotFound) {
		return detail{job: j}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	had, known := s.told[id]
	if len(s.told) >= mostKept {
		clear(s.told)
	}
	d := detail{job: j, err: err, at: time.Now(), same: known && (err != nil) == (had.err != nil) && same(had.job, j)}
	s.told[id] = d
	return d, nil
}
