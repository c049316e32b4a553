package slurm

import (
	"os"
	"slices"
	"strings"
	"time"
)

// A Submission is one script to be submitted to a cluster.
type Submission struct {
	// Script is the whole batch script, its #SBATCH lines included.
	Script string
	// Dir is the absolute directory in which the job starts.
	Dir string
	// Name is the job's name, for back ends that keep tokens in the name; empty: the
	// name in the script.
	Name string
	// Token, [a-z0-9] only, identifies this submission forever. The job carries it, so
	// that the job can be found where the answer to the submission was lost.
	Token string
	// At is the time of the request to submit; zero where nobody needs it.
	At time.Time
	// LogDir, relative to Dir, is created before the submission. Slurm does not create
	// it, and without it the job dies without a message.
	LogDir string
	// Args are further sbatch arguments, such as "--hold". Env, where not nil, replaces
	// the environment that the job inherits.
	Args []string
	Env  []string
	// Lock, where not nil, is an open file that the submitting process inherits. A lock
	// on the file therefore lasts for as long as the request may still take effect.
	Lock *os.File
}

// A Filter selects jobs; the zero Filter selects everything queued or running. Each
// field narrows the selection, except Since and All.
type Filter struct {
	User      string
	Partition string
	States    []State
	IDs       []JobID
	// Since adds the jobs that ended after it.
	Since time.Time
	// All adds the ended jobs that the controller still remembers.
	All bool
}

// Matcher returns a function that reports whether a job passes f.
func (f Filter) Matcher() func(j Job) bool {
	ids := make(map[JobID]bool, len(f.IDs))
	for _, id := range f.IDs {
		ids[id] = true
	}
	return func(j Job) bool {
		if j.State.Ended() && !f.All && len(f.States) == 0 &&
			(f.Since.IsZero() || j.EndedAt != nil && j.EndedAt.Before(f.Since)) {
			return false
		}
		return (f.User == "" || f.User == j.User) &&
			(f.Partition == "" || j.MayRunIn(f.Partition)) &&
			(len(f.States) == 0 || slices.Contains(f.States, j.State)) &&
			(len(ids) == 0 || ids[j.ID] || ids[j.ID.Array()] || ids[j.RawID])
	}
}

// MayRunIn reports whether one of the partitions, separated by commas, is one of j's, of which
// only a waiting job has several. squeue --partition chooses so.
func (j Job) MayRunIn(partitions string) bool {
	own := strings.Split(j.Partition, ",")
	return slices.ContainsFunc(strings.Split(partitions, ","), func(p string) bool { return slices.Contains(own, p) })
}

// RunsOnlyIn reports whether each of j's partitions is one of those given, separated by commas.
func (j Job) RunsOnlyIn(partitions string) bool {
	given := strings.Split(partitions, ",")
	return !slices.ContainsFunc(strings.Split(j.Partition, ","), func(p string) bool { return !slices.Contains(given, p) })
}

// Match reports whether j passes f. For many jobs, use Matcher.
func (f Filter) Match(j Job) bool { return f.Matcher()(j) }

// An Estimate is Slurm's answer to a test submission.
type Estimate struct {
	Start time.Time // zero where the cluster gives none
}

// An Update is a change of a job that has not ended. Nil and zero fields stay
// unchanged.
type Update struct {
	NumNodes  int
	Partition string
	TimeLimit time.Duration
	QOS       string
	Exclude   []string
}
