// Package slurm is the vocabulary of Slurm: job ids, states, reasons, jobs and nodes,
// and parsers for the output of Slurm's commands. It starts no process.
package slurm

import (
	"cmp"
	"regexp"
	"strings"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/lang"
)

// A JobID is a job id as Slurm prints it: "4711", "4711_3" for an array element, or
// "4711+1" for a component of a heterogeneous job.
type JobID string

var jobIDForm = regexp.MustCompile(`^[0-9]+([_+][0-9]+)?$`)

// IsJobID reports whether word has the form of a job id.
func IsJobID(word string) bool { return jobIDForm.MatchString(word) }

var stepIDForm = regexp.MustCompile(`^[0-9]+([_+][0-9]+)?\.[0-9]+$`)

// IsStepID reports whether word names a step of a job, such as "4711.0".
func IsStepID(word string) bool { return stepIDForm.MatchString(word) }

// Job returns the id of the job that the step id belongs to, or id itself for a job.
func (id JobID) Job() JobID {
	job, _, _ := strings.Cut(string(id), ".")
	return JobID(job)
}

// Array returns the id of the whole array or heterogeneous job that id is a part of, or
// id itself.
func (id JobID) Array() JobID {
	if i := strings.IndexAny(string(id), "_+"); i >= 0 {
		return id[:i]
	}
	return id
}

// A State is a job's state in Slurm's own words. A word that this version does not know
// stays unchanged.
type State string

// The states that this program treats by name; States lists all states.
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
	Suspended   State = "SUSPENDED"
	Stopped     State = "STOPPED"
)

// Ended is the state of a job that has left the queue while the accounts, which know how it ended, do
// not answer. It is not Slurm's own.
const Ended State = "ENDED"

// Word returns the state as a person is shown it: Slurm's own word, or words for Ended,
// which a reader of sacct would look up in vain.
func (s State) Word() lang.Text {
	if s == Ended {
		return lang.Text{EN: "ended", ZH: "已结束"}
	}
	return lang.Same(string(s))
}

// Ended reports whether a job in state s will not run again by itself. It is false for
// an unknown state.
func (s State) Ended() bool { return s.Explain().Ended }

// Failed reports whether a job in the state is known to have ended otherwise than completed or
// cancelled.
func (s State) Failed() bool { return s.Ended() && s != Completed && s != Cancelled && s != Ended }

// A Run is one run of a job, such as a run before the job was requeued.
type Run struct {
	State     State      `json:"state"`
	StartedAt *time.Time `json:"started_at"`
	EndedAt   *time.Time `json:"ended_at"`
	ElapsedS  int64      `json:"elapsed_s"`
	GPUs      int        `json:"gpus,omitempty"`
	// SubmittedAt is when the job was submitted, or put back for this run.
	SubmittedAt *time.Time `json:"-"`
}

// GPUHours returns the GPU hours that the run held.
func (r Run) GPUHours() float64 { return float64(r.GPUs) * float64(r.ElapsedS) / 3600 }

// Last returns the job's newest run.
func (j *Job) Last() Run {
	return Run{j.State, j.StartedAt, j.EndedAt, j.ElapsedS, j.GPUs, j.SubmittedAt}
}

// A Job is a cluster's information on one job. A field is zero or nil where the cluster
// gives no value.
type Job struct {
	ID          JobID      `json:"job_id"`
	RawID       JobID      `json:"raw_id,omitempty"` // an array element's own job number
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
	TimeLimitS  *int64     `json:"time_limit_s"` // nil: none or not known
	ExitCode    *string    `json:"exit_code"`    // "code:signal", as sacct prints it
	SubmittedAt *time.Time `json:"submitted_at"`
	StartedAt   *time.Time `json:"started_at"`
	EndedAt     *time.Time `json:"ended_at"`
	EstStart    *time.Time `json:"estimated_start,omitempty"`
	Priority    *int64     `json:"priority,omitempty"`
	Restarts    int        `json:"restarts,omitempty"`
	Dependency  string     `json:"dependency,omitempty"` // what a waiting job waits for, such as afterok:7(failed)
	WorkDir     string     `json:"work_dir,omitempty"`
	Stdout      string     `json:"stdout,omitempty"` // expanded path, as Stderr
	Stderr      string     `json:"stderr,omitempty"`
	Comment     string     `json:"comment,omitempty"`
	// Requeues lists the states in which earlier runs of the job ended, such as
	// PREEMPTED, oldest first.
	Requeues []State `json:"requeues,omitempty"`
	// Earlier lists the same runs with their times and GPUs, as far as the accounts
	// know them.
	Earlier []Run `json:"-"`
	// Tasks counts the tasks of a whole array by state, as far as the cluster still
	// lists them. It is set only for the array as a whole.
	Tasks map[State]int `json:"tasks,omitempty"`
	// FirstFailed is the task of a whole array that failed first.
	FirstFailed *FailedTask `json:"first_failed,omitempty"`
	// ArrayLimit is how many tasks of an array may run at a time (%N), known while some
	// of them wait; 0 means no limit.
	ArrayLimit int `json:"array_limit,omitempty"`
	// PreemptedAt is when Slurm began to end the run for a job of higher priority. In a
	// grace time the job still runs, and its state at the end may be any: Slurm notes
	// PREEMPTED only for a job that it ends itself.
	PreemptedAt *time.Time `json:"preempted_at,omitempty"`
	// SeenAt is set where the cluster does not answer: the job is then shown as it was
	// at that time.
	SeenAt *time.Time `json:"seen_at,omitempty"`
}

// NewestFirst compares jobs by the time of their submission. Where a time is unknown it
// compares their ids, which Slurm counts up.
func NewestFirst(x, y Job) int {
	if x.SubmittedAt != nil && y.SubmittedAt != nil && !x.SubmittedAt.Equal(*y.SubmittedAt) {
		return y.SubmittedAt.Compare(*x.SubmittedAt)
	}
	return cmp.Or(len(y.ID.Array())-len(x.ID.Array()), strings.Compare(string(y.ID), string(x.ID)))
}
