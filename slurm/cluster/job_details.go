package cluster

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/megatron-ops/megatron-ops/slurm"
)

// askDetails asks squeue for what its other listing does not tell.
func (c *CLI) askDetails(ctx context.Context, op string, ids ...slurm.JobID) (string, error) {
	return c.ask(ctx, op, "squeue", "--noheader", "--array", "--states=all", "--jobs="+joinIDs(ids), "--Format="+slurm.DetailFormat())
}

// Details fills into rows, which the queue has shown, what only a question for
// single jobs tells, by one question for all of them. It returns the rows that were
// told of, by their ids: the others have left the queue, or are parts of a job
// whose files are another part's, and are to be asked for by Job.
func (c *CLI) Details(ctx context.Context, rows []slurm.Job) (map[slurm.JobID]slurm.Job, error) {
	all := map[slurm.JobID]slurm.Job{}
	rows = slices.DeleteFunc(slices.Clone(rows), func(j slurm.Job) bool { return !slurm.IsJobID(string(j.ID)) || strings.Contains(string(j.ID), "+") })
	for some := range slices.Chunk(rows, manyIDs) {
		ids := make([]slurm.JobID, len(some))
		for i := range some {
			ids[i] = some[i].ID
		}
		out, err := c.askDetails(ctx, "details of jobs", ids...)
		if err != nil && !errors.Is(err, slurm.ErrNotFound) {
			return all, err
		}
		told := slurm.AddDetails(some, out)
		for _, j := range some {
			if told[j.ID] {
				all[j.ID] = j
			}
		}
	}
	return all, nil
}

// addDetail fills what only a question for one job can tell. Of an array the
// element is asked for that speaks for the whole, and the files of a component are
// those of the first, which has the log.
func (c *CLI) addDetail(ctx context.Context, j *slurm.Job, rows []slurm.Job) {
	speaks := j.ID
	if i := slices.IndexFunc(rows, func(r slurm.Job) bool { return r.State == j.State }); j.ID == j.ID.Array() && i >= 0 {
		speaks = rows[i].ID
	}
	detail := func(id slurm.JobID, into *slurm.Job) {
		if out, err := c.askDetails(ctx, "", id); err == nil {
			slurm.AddDetail(into, out)
		}
	}
	detail(speaks, j)
	if whole, component, is := strings.Cut(string(speaks), "+"); is && component != "0" {
		leader := *j
		leader.ID, leader.Stdout, leader.Stderr = slurm.JobID(whole+"+0"), "", ""
		if detail(leader.ID, &leader); leader.Stdout != "" {
			j.Stdout, j.Stderr = leader.Stdout, leader.Stderr
		}
	}
}

// addArrayLimit fills how many tasks of an array may run at a time: only squeue's
// one entry of those that wait tells that, which the list of all takes apart.
func (c *CLI) addArrayLimit(ctx context.Context, j *slurm.Job, rows []slurm.Job) {
	waits := func(r slurm.Job) bool { return r.State == slurm.Pending && strings.Contains(string(r.ID), "_") }
	if !slices.ContainsFunc(rows, waits) {
		return
	}
	out, err := c.ask(ctx, "", "squeue", "--noheader", "--states=PENDING", "--jobs="+string(j.ID.Array()), "--format=%i")
	if err == nil {
		j.ArrayLimit = slurm.ArrayLimit(out)
	}
}
