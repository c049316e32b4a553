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
	// patience is how long a reader waits for a cluster of which something is known
	// anyhow; Slurm's own commands wait for ten seconds and more. Who has seen it a
	// moment ago waits less long than who knows it from the store.
	patience      = 2 * time.Second
	patienceStore = 5 * time.Second
	// questionLimit ends a question that goes on for others.
	questionLimit = time.Minute
	// keptFor is how long what a cluster showed last is of use.
	keptFor = 7 * 24 * time.Hour
)

// docLastSeen is the kind of document that holds what a cluster showed last.
const docLastSeen = "last-seen"

// A lastSeen is what a cluster showed, for when it does not answer.
type lastSeen struct {
	At   time.Time
	Jobs []byte // JSON, compressed
}

// KeepLastSeen writes down what the view of a cluster saw last, unless that is
// what was written before, which was seen at since; it returns when it was seen.
func (s *Service) KeepLastSeen(ctx context.Context, name string, since time.Time) (time.Time, error) {
	v := s.Views[name]
	if v == nil {
		return since, nil
	}
	jobs, at := v.Known(slurm.Filter{All: true})
	if !at.After(since) {
		return since, nil
	}
	docs, err := s.Docs()
	if err != nil {
		return since, err
	}
	var raw bytes.Buffer
	w := gzip.NewWriter(&raw)
	if err := errors.Join(json.NewEncoder(w).Encode(jobs), w.Close()); err != nil {
		return since, err
	}
	return at, docs.Put(ctx, docLastSeen, name, lastSeen{at, raw.Bytes()}, at.Add(keptFor))
}

// RecallLastSeen hands each view what its cluster showed to the process before, so
// that nobody reads it from the store at each look. It returns when that was seen.
func (s *Service) RecallLastSeen(ctx context.Context) (map[string]time.Time, error) {
	seen := map[string]time.Time{}
	docs, err := s.Docs()
	if err != nil {
		return seen, err
	}
	var failed []error
	for name, v := range s.Views {
		jobs, at, ok, err := readLastSeen(ctx, docs, name, s.Now())
		if ok {
			v.Recall(jobs, at)
			seen[name] = at
		}
		failed = append(failed, err)
	}
	return seen, errors.Join(failed...)
}

// readLastSeen is what the store holds of a cluster's last answer, and when it came.
func readLastSeen(ctx context.Context, docs *store.Slack, cluster string, now time.Time) (jobs []slurm.Job, at time.Time, ok bool, err error) {
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

// lastSeen is what cl showed last of the jobs that pass f, to this process or to
// the server that shares its store; none where nothing is known.
func (c *Call) lastSeen(ctx context.Context, cl Cluster, f slurm.Filter) []slurm.Job {
	f.Since = time.Time{}
	if v := c.Views[cl.Name()]; v != nil {
		if jobs, at := v.Known(f); !at.IsZero() {
			return jobs
		}
		return nil
	}
	docs, err := c.Docs()
	if err != nil {
		return nil
	}
	all, at, ok, err := readLastSeen(ctx, docs, cl.Name(), c.Now())
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

// soon is the answer of ask. Where the cluster cannot be reached, or takes longer than a
// person waits, it is the answer of known, if that knows something. known is given what
// ask returned beside its error.
func soon[T any](ctx context.Context, c *Call, cl Cluster, ask func(context.Context) (T, error), known func(T) (T, bool)) (got T, err error) {
	wait := patienceStore
	asking, cancel := context.WithCancel(ctx)
	defer cancel()
	if c.Views[cl.Name()] != nil { // others wait for the same answer: it is not broken off
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
			if errors.Is(a.err, slurm.ErrUnreachable) {
				if value, ok := known(a.value); ok {
					return value, nil
				}
			}
			return a.value, a.err
		case <-late.C:
			if value, ok := known(got); ok {
				return value, nil
			}
		case <-ctx.Done():
			return got, ctx.Err()
		}
	}
}
