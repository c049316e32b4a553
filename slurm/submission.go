package slurm

import (
	"os"
	"slices"
	"time"
)

// A Submission is one script on its way to a cluster.
type Submission struct {
	// Script is the whole batch script, its #SBATCH lines included.
	Script string
	// Dir is the directory that the job starts in; absolute.
	Dir string
	// Name is the job's name, for back ends that keep tokens there; empty: the
	// script's own.
	Name string
	// Token, [a-z0-9] only, names this submission for ever: it travels with the
	// job, so that a lost answer can be found again.
	Token string
	// At is when the submission was asked for; zero where nobody needs it.
	At time.Time
	// LogDir is made before the script is handed over, relative to Dir; Slurm does
	// not make it, and the job then dies without a word.
	LogDir string
	// Args are further sbatch arguments, each one element, such as "--hold"; Env
	// replaces the environment that the job inherits where it is not nil.
	Args []string
	Env  []string
	// Lock, where it is not nil, is inherited by the process that submits, so that
	// a lock on it lasts for as long as the request may still go through.
	Lock *os.File
}

// A Filter chooses jobs; the zero Filter means everything that is queued or
// running. Every field set narrows it, but for Since and All.
type Filter struct {
	User      string
	Partition string
	States    []State
	IDs       []JobID
	// Since adds jobs that ended after it.
	Since time.Time
	// All adds ended jobs that the controller still remembers.
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
			(f.Partition == "" || f.Partition == j.Partition) &&
			(len(f.States) == 0 || slices.Contains(f.States, j.State)) &&
			(len(ids) == 0 || ids[j.ID] || ids[j.ID.Array()])
	}
}

// Match reports whether j passes f. For many jobs, take the Matcher.
func (f Filter) Match(j Job) bool { return f.Matcher()(j) }

// An Estimate is Slurm's answer to a submission that is only tried.
type Estimate struct {
	Start time.Time // zero where the cluster gives none
}

// An Update changes a job that has not ended. Nil and zero fields stay.
type Update struct {
	NumNodes  int
	Partition string
	TimeLimit time.Duration
	QOS       string
	Exclude   []string
	Comment   *string
	Priority  *int64
}
