package bot_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/ops/opstest"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// A yard is a cluster that keeps its jobs in memory and counts submissions.
type yard struct {
	opstest.Bare
	mu        sync.Mutex
	jobs      map[slurm.JobID]slurm.Job
	submitted []slurm.Submission
	updates   atomic.Int32 // how many were begun
	changes   atomic.Int32 // how many jobs were cancelled or requeued, or had a command run in them
	changed   func()       // is called after each of those, unless it is nil
	// held are the questions that get no answer until their channel is closed.
	held map[string]chan struct{}
	// silent makes Submit and Find fail as while Slurm's controller is down; lost says that
	// what was submitted meanwhile did not arrive.
	silent, lost bool
	// refusal is what Submit answers, unless it is nil.
	refusal error
	// accountless makes the accounts fail.
	accountless bool
	// short makes jobs end before anybody can look at them.
	short bool
}

func (y *yard) Name() string { return "yard" }
func (y *yard) Kind() string { return "rest" }

func (y *yard) Submit(ctx context.Context, s slurm.Submission) (slurm.JobID, error) {
	y.wait(ctx, "submit")
	y.mu.Lock()
	defer y.mu.Unlock()
	y.submitted = append(y.submitted, s)
	if y.refusal != nil {
		return "", y.refusal
	}
	if y.silent && y.lost {
		return "", slurm.ErrUnknown
	}
	id := slurm.JobID(fmt.Sprint(4710 + len(y.submitted)))
	limit := int64(3600)
	y.jobs[id] = slurm.Job{ID: id, Name: s.Name, User: "ada", Partition: "gpu", State: slurm.Pending, Reason: "Priority", Nodes: []string{}, NumNodes: 2, TimeLimitS: &limit}
	if y.short {
		y.jobs[id] = slurm.Job{ID: id, Name: s.Name, User: "ada", Partition: "gpu", State: slurm.Completed, Nodes: []string{"n1"}, NumNodes: 2, TimeLimitS: &limit}
	}
	if y.silent {
		return "", slurm.ErrUnknown
	}
	return id, nil
}

// hold lets the cluster not answer a question until release is called.
func (y *yard) hold(question string) (release func()) {
	y.mu.Lock()
	defer y.mu.Unlock()
	gate := make(chan struct{})
	if y.held == nil {
		y.held = map[string]chan struct{}{}
	}
	y.held[question] = gate
	return func() {
		y.mu.Lock()
		defer y.mu.Unlock()
		delete(y.held, question)
		close(gate)
	}
}

// wait waits while a question is held.
func (y *yard) wait(ctx context.Context, question string) {
	y.mu.Lock()
	gate := y.held[question]
	y.mu.Unlock()
	if gate != nil {
		select {
		case <-gate:
		case <-ctx.Done():
		}
	}
}

func (y *yard) Job(ctx context.Context, id slurm.JobID) (slurm.Job, error) {
	y.wait(ctx, "job")
	y.mu.Lock()
	defer y.mu.Unlock()
	j, ok := y.jobs[id]
	if !ok {
		return slurm.Job{}, slurm.JobNotFound(id)
	}
	return j, nil
}

func (y *yard) Jobs(_ context.Context, f slurm.Filter) (out []slurm.Job, err error) {
	y.mu.Lock()
	defer y.mu.Unlock()
	for _, j := range y.jobs {
		if f.Match(j) {
			out = append(out, j)
		}
	}
	if y.accountless && !f.Since.IsZero() {
		out = slices.DeleteFunc(out, func(j slurm.Job) bool { return j.State.Ended() })
		return out, &slurm.AccountsError{Err: slurm.FromStderr("sacct", "sacct: error: Connection refused")}
	}
	return out, nil
}

func (y *yard) Cancel(_ context.Context, id slurm.JobID) error {
	y.mu.Lock()
	defer y.mu.Unlock()
	j := y.jobs[id]
	j.State = slurm.Cancelled
	y.jobs[id] = j
	y.change()
	return nil
}

func (y *yard) Requeue(_ context.Context, id slurm.JobID) error {
	y.mu.Lock()
	defer y.mu.Unlock()
	j := y.jobs[id]
	j.State, j.Restarts = slurm.Running, j.Restarts+1
	y.jobs[id] = j
	y.change()
	return nil
}

func (y *yard) Exec(context.Context, slurm.Exec) ([]slurm.NodeOutput, error) {
	y.change()
	return []slurm.NodeOutput{{Node: "gpu-07", Text: "hello"}}, nil
}

func (y *yard) change() {
	y.changes.Add(1)
	if y.changed != nil {
		y.changed()
	}
}

func (y *yard) Update(ctx context.Context, id slurm.JobID, u slurm.Update) error {
	y.updates.Add(1)
	y.wait(ctx, "update")
	if ctx.Err() != nil {
		return ctx.Err()
	}
	y.mu.Lock()
	defer y.mu.Unlock()
	j := y.jobs[id]
	limit := int64(u.TimeLimit.Seconds())
	j.TimeLimitS = &limit
	y.jobs[id] = j
	return nil
}

func (y *yard) Find(_ context.Context, token string, _ time.Time) (slurm.JobID, bool, error) {
	y.mu.Lock()
	defer y.mu.Unlock()
	if y.silent {
		return "", false, slurm.ErrUnknown
	}
	for i, s := range y.submitted {
		id := slurm.JobID(fmt.Sprint(4711 + i))
		if _, there := y.jobs[id]; there && s.Token == token {
			return id, true, nil
		}
	}
	return "", false, nil
}

// fallSilent stops the controller's answers, or starts them again.
func (y *yard) fallSilent(silent, lost bool) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.silent, y.lost = silent, lost
}

func (y *yard) count() int {
	y.mu.Lock()
	defer y.mu.Unlock()
	return len(y.submitted)
}

// last returns the last submission.
func (y *yard) last() slurm.Submission {
	y.mu.Lock()
	defer y.mu.Unlock()
	return y.submitted[len(y.submitted)-1]
}

func (y *yard) put(j slurm.Job) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.jobs[j.ID] = j
}
