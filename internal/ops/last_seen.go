package ops

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/store"
	"github.com/megatron-ops/megatron-ops/slurm"
)

const (
	// patience is how long a reader waits for a cluster before it gets what the view in
	// this process saw last; patienceStore is how long where only the store knows the
	// cluster, whose copy is older. Slurm's own commands wait for ten seconds and more.
	patience      = 2 * time.Second
	patienceStore = 5 * time.Second
	// AccountsPatience is how long a reader waits for the accounts before it gets what is known without
	// them. A loaded database may take some seconds for each answer.
	AccountsPatience = 10 * time.Second
	// questionLimit ends a question to the cluster that continues for other readers.
	questionLimit = time.Minute
	// keptFor is how long the store keeps what a cluster showed last.
	keptFor = 7 * 24 * time.Hour
)

// docLastSeen is the kind of document that holds what a cluster showed last.
const docLastSeen = "last-seen"

// A lastSeen is the stored copy of a cluster's jobs, for times when the cluster does
// not answer.
type lastSeen struct {
	At   time.Time
	Jobs []byte // JSON, compressed
}

// KeepLastSeen stores the jobs that the view of a cluster saw last, unless the store
// already has them: since is when the stored ones were seen. KeepLastSeen returns when
// the jobs that are now stored were seen.
func (s *Service) KeepLastSeen(ctx context.Context, name string, since time.Time) (time.Time, error) {
	v := s.Views[name]
	if v == nil {
		return since, nil
	}
	jobs, at := v.Known(slurm.Filter{All: true})
	if !at.After(since) {
		return since, nil
	}
	var raw bytes.Buffer
	w := gzip.NewWriter(&raw)
	if err := errors.Join(json.NewEncoder(w).Encode(jobs), w.Close()); err != nil {
		return since, err
	}
	return at, s.Docs().Put(ctx, docLastSeen, name, lastSeen{at, raw.Bytes()}, at.Add(keptFor))
}

// RecallLastSeen gives each view the jobs that its cluster showed to an earlier
// process, so that readers need not load them from the store each time. It returns when
// each cluster's jobs were seen.
func (s *Service) RecallLastSeen(ctx context.Context) (map[string]time.Time, error) {
	seen := map[string]time.Time{}
	var failed []error
	for name, v := range s.Views {
		jobs, at, ok, err := readLastSeen(ctx, s.Docs(), name, s.Now())
		if ok {
			v.Recall(jobs, at)
			seen[name] = at
		}
		failed = append(failed, err)
	}
	return seen, errors.Join(failed...)
}

// readLastSeen loads a cluster's jobs from the store, and when they were seen.
func readLastSeen(ctx context.Context, docs store.Documents, cluster string, now time.Time) (jobs []slurm.Job, at time.Time, ok bool, err error) {
	var kept lastSeen
	if ok, err := docs.Get(ctx, docLastSeen, cluster, now, &kept); err != nil || !ok {
		return nil, at, false, err
	}
	r, err := gzip.NewReader(bytes.NewReader(kept.Jobs))
	if err != nil {
		return nil, at, false, err
	}
	err = json.NewDecoder(r).Decode(&jobs)
	return jobs, kept.At, err == nil, err
}

// lastSeen returns the jobs that match f as cl last showed them to this process, or to
// the server that shares the store; nil where nothing is known.
func (c *Call) lastSeen(ctx context.Context, cl Cluster, f slurm.Filter) []slurm.Job {
	f.Since = time.Time{}
	if v := c.Views[cl.Name()]; v != nil {
		if jobs, at := v.Known(f); !at.IsZero() {
			return jobs
		}
		return nil
	}
	all, at, ok, err := readLastSeen(ctx, c.Docs(), cl.Name(), c.Now())
	if err != nil || !ok {
		return nil
	}
	match := f.Matcher()
	jobs := []slurm.Job{}
	for _, j := range all {
		if match(j) {
			j.SeenAt = &at
			jobs = append(jobs, j)
		}
	}
	return jobs
}

// answerOrLastSeen returns the answer of ask. Where the cluster cannot be reached, or
// takes longer than a person waits, it returns the answer of known instead, if known
// has one. An answer of the queue that only lacks the accounts' jobs is newer.
func answerOrLastSeen[T any](ctx context.Context, c *Call, cl Cluster, ask func(context.Context) (T, error), known func() (T, bool)) (got T, err error) {
	wait := patienceStore
	asking, cancel := context.WithCancel(ctx)
	defer cancel()
	if c.Views[cl.Name()] != nil { // other readers wait for the same answer, so this reader's end must not cancel the question
		wait = patience
		asking, cancel = context.WithTimeout(context.WithoutCancel(ctx), questionLimit)
	}
	type answer struct {
		value T
		err   error
	}
	came := make(chan answer, 1)
	go func() {
		defer cancel()
		value, err := ask(asking)
		came <- answer{value, err}
	}()
	late := time.NewTimer(wait)
	defer late.Stop()
	for {
		select {
		case a := <-came:
			if _, queued := errors.AsType[*slurm.AccountsError](a.err); !queued && errors.Is(a.err, slurm.ErrUnreachable) {
				if value, ok := known(); ok {
					return value, nil
				}
			}
			return a.value, a.err
		case <-late.C:
			if value, ok := known(); ok {
				return value, nil
			}
		case <-ctx.Done():
			return got, ctx.Err()
		}
	}
}
