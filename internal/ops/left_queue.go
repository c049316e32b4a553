package ops

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/store"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/cluster"
)

// ShownJob is Job for an answer that only shows what is known of the job. A job that has left the queue
// while the accounts do not answer is as the queue showed it last, or as it was submitted from here. Unless
// the queue showed how it ended, its state is slurm.Ended.
func (c *Call) ShownJob(ctx context.Context, on string, id slurm.JobID) (Cluster, slurm.Job, error) {
	cl, err := c.Cluster(on)
	if err != nil || !slurm.IsJobID(string(id)) {
		return c.Job(ctx, on, id)
	}
	if c.effect == Read {
		ctx = cluster.WithPatience(ctx, AccountsPatience)
	}
	j, err := c.look(ctx, cl, id)
	if _, silent := errors.AsType[*slurm.AccountsError](err); silent {
		if known, ok := c.leftQueue(ctx, cl, id); ok {
			return cl, known, nil
		}
	}
	if err != nil {
		return nil, slurm.Job{}, c.SlurmError(err, id)
	}
	return cl, j, nil
}

func (c *Call) leftQueue(ctx context.Context, cl Cluster, id slurm.JobID) (slurm.Job, bool) {
	j, ok := c.jobLastSeen(ctx, cl, id)
	if !ok {
		sub, err := c.stored(ctx, cl.Name(), id)
		if err != nil {
			return j, false
		}
		if j, ok = asSubmitted(sub, id); !ok {
			return j, false
		}
	}
	if !j.State.Ended() {
		j.State, j.Reason, j.SeenAt = slurm.Ended, "", nil
		tasks := map[slurm.State]int{}
		for state, n := range j.Tasks {
			if !state.Ended() {
				state = slurm.Ended
			}
			tasks[state] += n
		}
		if len(tasks) > 0 {
			j.Tasks = tasks
		}
	}
	j.Cluster = cl.Name()
	return j, true
}

// asSubmitted returns what a submission tells of its job, or of the part of it that id names. ok is false
// for a part that the job does not have, such as a task outside its array.
func asSubmitted(sub store.Submission, id slurm.JobID) (j slurm.Job, ok bool) {
	components, err := slurm.ReadComponents(sub.Script)
	if err != nil {
		components = []slurm.Options{nil} // where the logs are is not known then
	}
	list, _, _ := strings.Cut(components[0].Value("array"), "%")
	indices, _ := slurm.ParseArray(list, slurm.MostIndices)
	_, task, isTask := strings.Cut(string(id), "_")
	_, component, isComponent := strings.Cut(string(id), "+")
	switch {
	case isTask:
		n, err := strconv.Atoi(task)
		ok = err == nil && slices.Contains(indices, n)
	case isComponent:
		n, err := strconv.Atoi(component)
		ok = err == nil && len(components) > 1 && n < len(components)
	default:
		ok = true
	}
	j = slurm.Job{ID: id, Name: sub.Name, User: sub.Owner, WorkDir: sub.Dir, SubmittedAt: &sub.CreatedAt}
	if len(indices) > 0 && !isTask {
		j.Tasks = map[slurm.State]int{slurm.Ended: len(indices)}
	}
	j.Stdout, j.Stderr = slurm.ExpandPattern(components[0].Value("output"), j), slurm.ExpandPattern(components[0].Value("error"), j)
	return j, ok
}
