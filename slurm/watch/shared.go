package watch

import (
	"cmp"
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

// A Shared serves any number of readers with few queries. One query asks for the whole
// queue; readers that come while it runs, or soon after it, get its answer. While
// nothing changes, Shared queries the queue at most twice in a Window, however often
// readers call.
//
// Its memory serves only readers. Code that changes something calls the cluster
// directly, and then Changed.
type Shared struct {
	cluster cluster
	opts    Options

	mu      sync.Mutex
	asking  chan struct{} // closed when the running query is answered; nil where none runs
	last    snapshot
	before  snapshot      // the answer that another process got, for when the cluster does not answer
	stale   bool          // something was changed since the last answer
	err     error         // the error of the last query
	failed  time.Time     // the time of err
	hold    time.Duration // how long readers get err without a new query
	asked   [2]time.Time  // times of the last two queries, the older first
	quiet   bool          // the last answer equalled the one before it
	changed time.Time     // time of the last answer that differed from the one before it
	details map[slurm.JobID]detail
	past    map[string]accountsAnswer
	turns   map[string]chan struct{} // running queries other than the queue's, by their key
	queued  *batch                   // the next query for details, which waits for the running one
}

// A snapshot is one answer of the queue.
type snapshot struct {
	rows map[slurm.JobID][]slurm.Job // by array
	all  []slurm.Job
	at   time.Time
	sum  uint64
}

// A detail is the answer to a query for one job.
type detail struct {
	job  slurm.Job
	err  error
	at   time.Time
	same bool // equal to the answer before it
}

// An accountsAnswer is an answer of the accounts.
type accountsAnswer struct {
	rows []slurm.Job
	at   time.Time
}

// NewShared returns a view of c for many readers.
func NewShared(c cluster, o Options) *Shared {
	return &Shared{cluster: c, opts: o.withDefaults(), details: map[slurm.JobID]detail{}, past: map[string]accountsAnswer{}, turns: map[string]chan struct{}{}}
}

// Name is the cluster's name.
func (s *Shared) Name() string { return s.cluster.Name() }

// Recall stores an answer that somebody else got at that time. While the cluster does
// not answer, readers get it, marked with its time.
func (s *Shared) Recall(jobs []slurm.Job, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.before = snapshot{rows: byArray(jobs), all: jobs, at: at}
}

// known returns the newest answer, of this or another process. The caller holds the
// lock.
func (s *Shared) known() snapshot {
	if s.before.at.After(s.last.at) {
		return s.before
	}
	return s.last
}

// Changed reports that this process has changed something, so that the next reader gets
// a new answer.
func (s *Shared) Changed() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stale, s.asked, s.quiet = true, [2]time.Time{}, false
	clear(s.past)
	for id, d := range s.details {
		if !d.job.State.Ended() || d.job.Reason == slurm.ReasonUnsettled {
			delete(s.details, id)
		}
	}
}

// fresh reports whether the last answer is new enough for a reader.
func (s *Shared) fresh(now time.Time) bool {
	return !s.stale && !s.last.at.IsZero() && (now.Sub(s.last.at) < s.opts.Floor || s.spent(now))
}

// spent reports whether a query now would be the third within a Window without changes.
func (s *Shared) spent(now time.Time) bool {
	return s.quiet && !s.asked[0].IsZero() && now.Sub(s.asked[0]) < s.opts.Window
}

// answers reports whether the last query was answered, whoever made it.
func (s *Shared) answers() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err == nil
}

// next returns the time from which a reader would cause a query; the zero time means
// now.
func (s *Shared) next() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.spent(time.Now()) {
		return s.asked[0].Add(s.opts.Window)
	}
	return time.Time{}
}

// look returns the last answer, or makes a new query.
func (s *Shared) look(ctx context.Context) (snapshot, error) {
	for {
		s.mu.Lock()
		if under := s.asking; under != nil {
			s.mu.Unlock()
			select {
			case <-ctx.Done():
				return snapshot{}, ctx.Err()
			case <-under:
			}
			continue
		}
		now := time.Now()
		switch {
		case s.err != nil && now.Sub(s.failed) < s.hold:
			defer s.mu.Unlock()
			return snapshot{}, s.err
		case s.fresh(now):
			defer s.mu.Unlock()
			return s.last, nil
		}
		done := make(chan struct{})
		s.asking = done
		s.mu.Unlock()
		return s.ask(ctx, done)
	}
}

// ask queries the queue for everybody's jobs, so that the answer serves every reader. It
// stores the answer and closes done.
func (s *Shared) ask(ctx context.Context, done chan struct{}) (snapshot, error) {
	began := time.Now()
	rows, err := s.cluster.Jobs(ctx, slurm.Filter{All: true})

	s.mu.Lock()
	defer s.mu.Unlock()
	s.asking = nil
	close(done)
	now := time.Now()
	if err != nil {
		if ctx.Err() == nil {
			// For a while the next readers get the same error without a query.
			s.err, s.failed = err, now
			s.hold = min(max(2*s.hold, s.opts.Floor), s.opts.Interval)
		}
		return snapshot{}, err
	}
	sum := sumOf(rows)
	s.quiet = s.err == nil && !s.stale && !s.last.at.IsZero() && sum == s.last.sum
	if !s.quiet {
		s.changed = now
	}
	s.asked = [2]time.Time{s.asked[1], began}
	s.err, s.hold, s.stale, s.before = nil, 0, false, snapshot{}
	s.last = snapshot{rows: byArray(rows), all: rows, at: now, sum: sum}
	return s.last, nil
}

var seed = maphash.MakeSeed()

// sumOf returns a checksum of an answer that does not depend on the order of its rows.
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

// byArray groups the rows by array or heterogeneous job. It sorts rows in place, and
// the groups share its memory.
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

// Jobs returns jobs of the queue, and those of the accounts where f has Since.
func (s *Shared) Jobs(ctx context.Context, f slurm.Filter) ([]slurm.Job, error) {
	seen, err := s.look(ctx)
	if err != nil {
		return nil, err
	}
	return s.choose(ctx, seen, f)
}

// Known answers f from the newest stored answer of the queue, without a query, and
// returns that answer's time; zero where there is no answer.
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

// choose returns the jobs of an answer that f selects.
func (s *Shared) choose(ctx context.Context, seen snapshot, f slurm.Filter) ([]slurm.Job, error) {
	match := f.Matcher()
	rows := []slurm.Job{}
	for _, j := range seen.all {
		if match(j) {
			rows = append(rows, withElapsed(j, seen.at))
		}
	}
	if f.Since.IsZero() {
		return rows, nil
	}
	past, err := s.Past(ctx, f)
	return slurm.WithPast(rows, past, match, err)
}

// withElapsed adds the time since the answer to a running job's elapsed time.
func withElapsed(j slurm.Job, at time.Time) slurm.Job {
	if j.State == slurm.Running && !at.IsZero() {
		j.ElapsedS += int64(time.Since(at).Seconds())
	}
	return j
}

// settled is the delay after which the accounts contain what the queue has shown.
const settled = time.Minute

// Past returns jobs of the accounts. While the queue does not change, no job ends, so
// an answer that came a minute after the last change stays valid.
func (s *Shared) Past(ctx context.Context, f slurm.Filter) ([]slurm.Job, error) {
	if len(f.IDs) > 0 {
		return s.cluster.Past(ctx, f) // a watcher's query, which the watcher limits itself
	}
	key := fmt.Sprint("past\x00", f.User, "\x00", f.Partition, "\x00", f.States, "\x00", f.Since.Truncate(time.Hour).Unix())
	done, err := s.turn(ctx, key)
	if err != nil {
		return nil, err
	}
	defer done()
	if rows, holds := s.validPast(key); holds {
		return rows, nil
	}
	asked := time.Now()
	rows, err := s.cluster.Past(ctx, f)
	if err != nil {
		return rows, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.past) >= maxStored/100 {
		clear(s.past)
	}
	s.past[key] = accountsAnswer{rows, asked}
	return rows, nil
}

// validPast returns the stored answer of the accounts for key, and whether it is still
// valid.
func (s *Shared) validPast(key string) ([]slurm.Job, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m, have := s.past[key]
	return m.rows, have && (time.Since(m.at) < s.opts.Floor || !s.last.at.IsZero() && m.at.After(s.changed.Add(settled)))
}

// turn waits until no other query with that key runs. done ends the caller's turn. The
// caller checks first whether the query before has already brought the answer.
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

// maxStored is the largest number of single jobs whose details are stored.
const maxStored = 20000

// Job returns one job. It queries the details that only a query for one job has, such
// as the output path, once for each state of each run. While the cluster does not
// answer, it returns the job as last seen, with SeenAt set.
func (s *Shared) Job(ctx context.Context, id slurm.JobID) (slurm.Job, error) {
	seen, err := s.look(ctx)
	s.mu.Lock()
	had, known := s.details[id]
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
		if d, err = s.askOne(ctx, id, row, ok); err != nil {
			return d.job, err
		}
	}
	if ok && !row.State.Ended() && d.err == nil {
		return withDetail(withElapsed(row, seen.at), d.job), nil
	}
	return d.job, d.err
}

// remembered returns the stored detail of a job, and whether it is still valid. row is
// the job's present row in the queue.
func (s *Shared) remembered(id slurm.JobID, row slurm.Job, inQueue bool) (d detail, holds bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d, known := s.details[id]
	now := time.Now()
	switch {
	case !known:
		return d, false
	case d.err == nil && inQueue && !row.State.Ended():
		// Its dependency may be met, or Slurm preempt it, while its row stays the same.
		return d, d.job.State == row.State && sameTime(d.job.SubmittedAt, row.SubmittedAt) && now.Sub(d.at) < s.opts.Longest
	case d.err == nil && d.job.State.Ended() && d.job.Reason != slurm.ReasonUnsettled:
		return d, true
	}
	return d, now.Sub(d.at) < s.opts.Floor || d.same && now.Sub(d.at) < s.opts.Interval
}

// withDetail adds to a row of the queue the fields that only a query for one job has.
func withDetail(row, detail slurm.Job) slurm.Job {
	row.Stdout, row.Stderr, row.ExitCode = detail.Stdout, detail.Stderr, detail.ExitCode
	row.Restarts, row.Requeues, row.PreemptedAt = detail.Restarts, detail.Requeues, detail.PreemptedAt
	row.Dependency, row.ArrayLimit = cmp.Or(row.Dependency, detail.Dependency), cmp.Or(row.ArrayLimit, detail.ArrayLimit)
	row.GPUs = max(row.GPUs, detail.GPUs)
	return row
}

// askOne queries one job; of several simultaneous callers only one queries. The
// detail's own error says that the job is not known; the returned error says that there
// was no answer.
func (s *Shared) askOne(ctx context.Context, id slurm.JobID, row slurm.Job, inQueue bool) (detail, error) {
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
	j, found, err := s.batchedDetail(ctx, row)
	if !found && err == nil {
		j, err = asker.Job(ctx, id)
	}
	if err != nil && !errors.Is(err, slurm.ErrNotFound) {
		return detail{job: j}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	had, known := s.details[id]
	if len(s.details) >= maxStored {
		clear(s.details)
	}
	d := detail{job: j, err: err, at: time.Now(), same: known && (err != nil) == (had.err != nil) && same(had.job, j)}
	s.details[id] = d
	return d, nil
}
