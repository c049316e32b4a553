package cluster

import (
	"context"
	"errors"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/megatron-ops/megatron-ops/slurm"
)

// askDetails runs squeue for the columns that its --format listing lacks, and returns its
// answer with the columns that it has. An older squeue, or a site's wrapper, does not know
// all of them: it is asked again without those that it names or, where it names none,
// for the few that all know. The columns that it named are not asked for again for a while.
func (c *CLI) askDetails(ctx context.Context, op string, ids ...slurm.JobID) (slurm.Details, string, error) {
	columns := c.columns.known()
	asked, named := len(columns), true
	for {
		r, err := c.run(ctx, command{
			argv: []string{"squeue", "--noheader", "--array", "--states=all", "--jobs=" + joinIDs(ids), "--Format=" + columns.Format()},
			env:  queryEnviron(c.Environ()),
		})
		if err != nil {
			return nil, "", withOp(op, err)
		}
		var refused *slurm.Error
		if r.code != 0 {
			refused = refusal(op, r)
		}
		fewer, least := columns.Without(r.stderr), slurm.FewDetails()
		switch known := len(fewer) == len(columns); {
		case known && refused == nil:
			if named && len(columns) < asked {
				c.columns.keep(columns)
			}
			return columns, r.stdout, nil
		case refused != nil && refused.Kind != slurm.Rejected && refused.Kind != slurm.Broken, known && len(columns) <= len(least):
			return nil, "", refused
		case known:
			fewer, named = least, false // the failure may be a passing one
		}
		columns = fewer
	}
}

// detailColumns are the columns of details that a cluster's squeue has, as far as known.
type detailColumns struct {
	mu    sync.Mutex
	has   slurm.Details
	until time.Time
}

// columnsKept is how long a column that squeue does not know is not asked for: an upgrade
// brings it.
const columnsKept = time.Hour

func (d *detailColumns) known() slurm.Details {
	d.mu.Lock()
	defer d.mu.Unlock()
	if time.Now().After(d.until) {
		return slurm.AllDetails()
	}
	return d.has
}

func (d *detailColumns) keep(has slurm.Details) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.has, d.until = has, time.Now().Add(columnsKept)
}

// Details adds to rows, taken from a queue listing, the columns that only --Format has,
// with one query for up to manyIDs jobs. It returns the jobs that the answer contains,
// by id. The other jobs have left the queue, or are components of a heterogeneous job
// whose log is another component's; query these with Job.
func (c *CLI) Details(ctx context.Context, rows []slurm.Job) (map[slurm.JobID]slurm.Job, error) {
	all := map[slurm.JobID]slurm.Job{}
	rows = slices.DeleteFunc(slices.Clone(rows), func(j slurm.Job) bool { return !slurm.IsJobID(string(j.ID)) || strings.Contains(string(j.ID), "+") })
	for some := range slices.Chunk(rows, manyIDs) {
		ids := make([]slurm.JobID, len(some))
		for i := range some {
			ids[i] = some[i].ID
		}
		columns, out, err := c.askDetails(ctx, "details of jobs", ids...)
		if err != nil && !errors.Is(err, slurm.ErrNotFound) {
			return all, err
		}
		told := columns.AddAll(some, out)
		for _, j := range some {
			if told[j.ID] {
				c.correctPreemption(ctx, j.ID, &j)
				all[j.ID] = j
			}
		}
	}
	return all, nil
}

// addDetail adds the columns that only a query for one job has. For an array it queries
// the element that represents the whole. For a component of a heterogeneous job it
// takes the output paths of the first component, which has the log.
func (c *CLI) addDetail(ctx context.Context, j *slurm.Job, rows []slurm.Job) {
	representative := j.ID
	if i := slices.IndexFunc(rows, func(r slurm.Job) bool { return r.State == j.State }); j.ID == j.ID.Array() && i >= 0 {
		representative = rows[i].ID
	}
	detail := func(id slurm.JobID, into *slurm.Job) {
		if columns, out, err := c.askDetails(ctx, "", id); err == nil {
			columns.Add(into, out)
		}
	}
	detail(representative, j)
	c.correctArrayPaths(ctx, representative, j)
	c.correctPreemption(ctx, representative, j)
	if whole, component, is := strings.Cut(string(representative), "+"); is && component != "0" {
		leader := *j
		leader.ID, leader.Stdout, leader.Stderr = slurm.JobID(whole+"+0"), "", ""
		if detail(leader.ID, &leader); leader.Stdout != "" {
			j.Stdout, j.Stderr = leader.Stdout, leader.Stderr
		}
	}
}

// defaultLog is the name of a log that squeue makes up for an array's task whose script names
// none: it lacks the task.
var defaultLog = regexp.MustCompile(`^slurm-[0-9]+\.out$`)

// correctArrayPaths sets the output paths of an array's task, or of an array, whose script
// may name no log. Only scontrol tells such a log's name.
func (c *CLI) correctArrayPaths(ctx context.Context, task slurm.JobID, j *slurm.Job) {
	if !strings.Contains(string(task), "_") || !defaultLog.MatchString(filepath.Base(j.Stdout)) {
		return
	}
	out, err := c.ask(ctx, "", "scontrol", "show", "job", string(task))
	if err == nil {
		slurm.CorrectPaths(j, task, out)
	}
}

// correctPreemption forgets the time of preemption of a running job that was only suspended.
// squeue tells that by the end of a job that has a time limit, and else only after a longer
// suspension.
func (c *CLI) correctPreemption(ctx context.Context, id slurm.JobID, j *slurm.Job) {
	if j.PreemptedAt == nil || j.State != slurm.Running || j.TimeLimitS != nil {
		return
	}
	out, err := c.ask(ctx, "", "scontrol", "show", "job", string(id))
	if err == nil && slurm.WasSuspended(out) {
		j.PreemptedAt = nil
	}
}

// addArrayLimit sets how many tasks of an array may run at a time. squeue prints the
// limit only in its single row for all waiting tasks, which the listing with --array
// splits up.
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

// BatchScript returns the script that a job was submitted with. Slurm shows it only to
// the job's owner and to operators.
func (c *CLI) BatchScript(ctx context.Context, id slurm.JobID) (string, error) {
	if !slurm.IsJobID(string(id)) {
		return "", slurm.JobNotFound(id)
	}
	return c.ask(ctx, "script of "+string(id), "scontrol", "write", "batch_script", string(id.Array()), "-")
}
