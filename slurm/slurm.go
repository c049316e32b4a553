// Package slurm is the vocabulary of Slurm: job ids, states, reasons, jobs and
// nodes, and the reading of what Slurm prints. It starts nothing.
package slurm

import (
	"regexp"
	"strings"
	"time"
)

// A JobID is a job id as Slurm prints it: "4711", "4711_3" for an element of an
// array, or "4711+1" for a component of a heterogeneous job.
type JobID string

var jobIDForm = regexp.MustCompile(`^[0-9]+([_+][0-9]+)?$`)

// IsJobID reports whether word has the form of a job id.
func IsJobID(word string) bool { return jobIDForm.MatchString(word) }

var stepIDForm = regexp.MustCompile(`^[0-9]+([_+][0-9]+)?\.[0-9]+$`)

// IsStepID reports whether word names a step of a job, such as "4711.0".
func IsStepID(word string) bool { return stepIDForm.MatchString(word) }

// Job returns the id of the job that id is a step of, or id itself.
func (id JobID) Job() JobID {
	job, _, _ := strings.Cut(string(id), ".")
	return JobID(job)
}

// Array returns the id of the whole that id is a part of, an array or a
// heterogeneous job, or id itself.
func (id JobID) Array() JobID {
	if i := strings.IndexAny(string(id), "_+"); i >= 0 {
		return id[:i]
	}
	return id
}

// A State is a job's base state in Slurm's own words. A word this version does
// not know is kept as it came.
type State string

// The states that the product itself speaks of; States lists them all.
const (
	Pending     State = "PENDING"
	Running     State = "RUNNING"
	Completing  State = "COMPLETING"
	Completed   State = "COMPLETED"
	Failed      State = "FAILED"
	Cancelled   State = "CANCELLED"
	Timeout     State = "TIMEOUT"
	NodeFail    State = "NODE_FAIL"
	OutOfMemory State = "OUT_OF_MEMORY"
	Preempted   State = "PREEMPTED"
	BootFail    State = "BOOT_FAIL"
	Deadline    State = "DEADLINE"
	Requeued    State = "REQUEUED"
)

// Ended reports whether a job in state s will not run again by itself. It is
// false for a state that this version does not know.
func (s State) Ended() bool { return s.Explain().Ended }

// A Run is a run of a job that is over: the job was put back into the queue.
type Run struct {
	State     State      `json:"state"`
	StartedAt *time.Time `json:"started_at"`
	EndedAt   *time.Time `json:"ended_at"`
	ElapsedS  int64      `json:"elapsed_s"`
	GPUs      int        `json:"gpus,omitempty"`
}

// GPUHours is what the run held.
func (r Run) GPUHours() float64 { return float64(r.GPUs) * float64(r.ElapsedS) / 3600 }

// Last is the job's newest run.
func (j *Job) Last() Run { return Run{j.State, j.StartedAt, j.EndedAt, j.ElapsedS, j.GPUs} }

// A Job is what a cluster says of one job. Times are zero and pointers nil
// where the cluster does not say.
type Job struct {
	ID          JobID      `json:"job_id"`
	RawID       JobID      `json:"raw_id,omitempty"` // of an array element: its own number
	Cluster     string     `json:"cluster,omitempty"`
	Name        string     `json:"name"`
	User        string     `json:"user,omitempty"`
	Account     string     `json:"account,omitempty"`
	Partition   string     `json:"partition,omitempty"`
	QOS         string     `json:"qos,omitempty"`
	State       State      `json:"state"`
	Reason      string     `json:"reason,omitempty"`
	Nodes       []string   `json:"nodes"`
	NumNodes    int        `json:"num_nodes,omitempty"`
	GPUs        int        `json:"gpus,omitempty"`
	ElapsedS    int64      `json:"elapsed_s"`
	TimeLimitS  *int64     `json:"time_limit_s"` // nil: none, or not known
	ExitCode    *string    `json:"exit_code"`    // "code:signal", as sacct has it
	SubmittedAt *time.Time `json:"submitted_at"`
	StartedAt   *time.Time `json:"started_at"`
	EndedAt     *time.Time `json:"ended_at"`
	EstStart    *time.Time `json:"estimated_start,omitempty"`
	Priority    *int64     `json:"priority,omitempty"`
	Restarts    int        `json:"restarts,omitempty"`
	WorkDir     string     `json:"work_dir,omitempty"`
	Stdout      string     `json:"stdout,omitempty"` // expanded path
	Stderr      string     `json:"stderr,omitempty"`
	Comment     string     `json:"comment,omitempty"`
	// Requeues lists earlier ends of the same job, oldest first, such as PREEMPTED.
	Requeues []State `json:"requeues,omitempty"`
	// Earlier are those runs with what they held, as far as the accounts tell.
	Earlier []Run `json:"-"`
	// Tasks is how many tasks of an array are in which state, as far as the cluster
	// still lists them; only of an array as a whole.
	Tasks map[State]int `json:"tasks,omitempty"`
	// ArrayLimit is how many tasks of an array may run at a time (%N), while some of
	// them wait; 0: all of them.
	ArrayLimit int `json:"array_limit,omitempty"`
	// SeenAt is set where the cluster does not answer: all of this is as it was then.
	SeenAt *time.Time `json:"seen_at,omitempty"`
}
