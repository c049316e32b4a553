package watch

import (
	"context"
	"slices"

	"github.com/megatron-ops/megatron-ops/slurm"
)

// A batch is a set of jobs whose details one query asks for.
type batch struct {
	rows    []slurm.Job
	done    chan struct{} // closed when answers and err are set
	answers map[slurm.JobID]slurm.Job
	err     error
}

// batchedDetail returns the details of a job that the queue's listing lacks. While one such
// query runs, all callers wait for its end and then share the next query, so a cluster
// on which many jobs end at once gets no more queries. found is false where the back end
// has no such query, or no answer for this job.
func (s *Shared) batchedDetail(ctx context.Context, row slurm.Job) (j slurm.Job, found bool, err error) {
	asker, ok := s.cluster.(interface {
		Details(ctx context.Context, rows []slurm.Job) (map[slurm.JobID]slurm.Job, error)
	})
	s.mu.Lock()
	// The listing has one row for each part of an array, and none for the whole or a job that
	// has left the queue.
	whole := !slices.ContainsFunc(s.last.rows[row.ID.Array()], func(r slurm.Job) bool { return r.ID == row.ID })
	if !ok || whole {
		s.mu.Unlock()
		return j, false, nil
	}
	b := s.queued
	if b == nil {
		b = &batch{done: make(chan struct{})}
		s.queued = b
		// The first caller may go away, but the others still need the answer.
		go s.askBatch(context.WithoutCancel(ctx), b, asker.Details)
	}
	b.rows = append(b.rows, row)
	s.mu.Unlock()
	select {
	case <-ctx.Done():
		return j, false, ctx.Err()
	case <-b.done:
	}
	j, found = b.answers[row.ID]
	return j, found, b.err
}

// askBatch waits until no other query for details runs, closes the batch, and sends its
// query.
func (s *Shared) askBatch(ctx context.Context, b *batch, details func(context.Context, []slurm.Job) (map[slurm.JobID]slurm.Job, error)) {
	defer close(b.done)
	over, err := s.turn(ctx, "details")
	if err != nil {
		b.err = err
		return
	}
	defer over()
	s.mu.Lock()
	s.queued = nil
	s.mu.Unlock()
	b.answers, b.err = details(ctx, b.rows)
}
