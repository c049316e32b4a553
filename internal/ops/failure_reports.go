package ops

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/megatron-ops/megatron-ops/slurm"
)

// FailureReports holds the diagnoses of the jobs that have failed lately. Several parts of a
// server tell of a failure at about the same time: the job's card, the notes below it, the
// webhooks. All of them say what one diagnosis found, and the cluster is asked once.
type FailureReports struct {
	mu sync.Mutex
	by map[string]*failureReport
}

// A failureReport is the diagnosis of one end of a job; done is closed once it is there.
type failureReport struct {
	key   string // in FailureReports.by
	done  chan struct{}
	at    time.Time // of its beginning
	found any
	err   error
}

// A diagnosis is kept for failureKept, in which all have told of the failure; of a night in
// which very many jobs fail, only the latest mostFailures.
const (
	failureKept  = 10 * time.Minute
	mostFailures = 512
)

// FailureOf returns the diagnosis of a job's end: the one that another caller has lately made or is
// making, or else what diagnose returns. All get the same one, so nobody may change what it points
// to. An error is not kept. Without r nothing is.
func FailureOf[Out any](ctx context.Context, r *FailureReports, j slurm.Job, now time.Time, diagnose func() (Out, error)) (out Out, err error) {
	if r == nil {
		return diagnose()
	}
	for {
		f, mine := r.find(j, now)
		if mine {
			defer r.finish(f) // after a panic too: others wait
			out, err = diagnose()
			f.found, f.err = out, err
			return out, err
		}
		select {
		case <-ctx.Done():
			return out, ctx.Err()
		case <-f.done:
		}
		if f.err == nil {
			return f.found.(Out), nil
		} // else the other caller may have had less time, or met a fault that is over
	}
}

// find returns the diagnosis of a job's end; mine says that the caller is to make it.
func (r *FailureReports) find(j slurm.Job, now time.Time) (f *failureReport, mine bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := endKey(j)
	if f := r.by[key]; f != nil && now.Sub(f.at) < failureKept {
		return f, false
	}
	if r.by == nil {
		r.by = map[string]*failureReport{}
	}
	oldest := ""
	for k, f := range r.by {
		if now.Sub(f.at) >= failureKept {
			delete(r.by, k)
		} else if oldest == "" || f.at.Before(r.by[oldest].at) {
			oldest = k
		}
	}
	if len(r.by) >= mostFailures {
		delete(r.by, oldest)
	}
	f = &failureReport{key: key, done: make(chan struct{}), at: now, err: context.Canceled} // until it is there
	r.by[key] = f
	return f, true
}

// finish gives a diagnosis to those who wait for it, and forgets one that failed.
func (r *FailureReports) finish(f *failureReport) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if f.err != nil && r.by[f.key] == f {
		delete(r.by, f.key)
	}
	close(f.done)
}

// endKey identifies one end of one run of a job.
func endKey(j slurm.Job) string {
	at := func(t *time.Time) int64 {
		if t == nil {
			return 0
		}
		return t.Unix()
	}
	return fmt.Sprintf("%s/%s/%s/%d/%d/%d", j.Cluster, j.ID, j.State, j.Restarts, at(j.StartedAt), at(j.EndedAt))
}
