package slurm

import (
	"strconv"
	"strings"
	"time"
)

// A Step is one step of a job. The batch script is a step too.
type Step struct {
	ID        string     `json:"step_id"` // such as "4711.0" or "4711.batch"
	Name      string     `json:"name"`
	State     State      `json:"state"`
	ExitCode  *string    `json:"exit_code"`
	ElapsedS  int64      `json:"elapsed_s"`
	Nodes     []string   `json:"nodes"`
	MaxRSS    string     `json:"max_rss,omitempty"` // the largest of one task, as Slurm writes it
	StartedAt *time.Time `json:"started_at"`
	Submit    string     `json:"submit_line,omitempty"` // the srun command line that started it
}

// Job returns the id of the job that the step belongs to.
func (s Step) Job() JobID {
	return JobID(s.ID).Job()
}

// As returns the step as a Job. Fields that only the whole job has, such as its owner
// and its time limit, come from job.
func (s Step) As(job Job) Job {
	return Job{
		ID: JobID(s.ID), Cluster: job.Cluster, Name: s.Name, User: job.User, Account: job.Account, Partition: job.Partition, QOS: job.QOS,
		State: s.State, Nodes: s.Nodes, NumNodes: len(s.Nodes), ElapsedS: s.ElapsedS, TimeLimitS: job.TimeLimitS, ExitCode: s.ExitCode,
		SubmittedAt: s.StartedAt, StartedAt: s.StartedAt, WorkDir: job.WorkDir,
	}
}

// StepFormat is the value of sacct --format that ParseSteps expects. Free text comes
// last.
const StepFormat = "JobID,State,ExitCode,ElapsedRaw,NodeList,MaxRSS,Start,JobName,SubmitLine"

// ParseSteps reads the output of sacct --parsable2 --noheader --delimiter=sep
// --format=StepFormat. It leaves out the job's own record.
func ParseSteps(out, sep string) []Step {
	var steps []Step
	records, _ := splitAccounts(out, sep, 9)
	for _, v := range records {
		s := Step{ID: v[0], State: ParseState(v[1]), Nodes: nodesOf(v[4]), MaxRSS: v[5], StartedAt: ParseTime(v[6]), Name: v[7], Submit: v[8]}
		s.ElapsedS, _ = strconv.ParseInt(v[3], 10, 64)
		if s.State.Ended() {
			s.ExitCode = exitCode(v[2])
		}
		if strings.Contains(s.ID, ".") {
			steps = append(steps, s)
		}
	}
	return steps
}

// An IdleAllocation is a running job without a running step for a while: its nodes do
// nothing, or nothing that Slurm can see.
type IdleAllocation struct {
	Job      Job           `json:"job"`
	For      time.Duration `json:"-"`
	GPUHours float64       `json:"gpu_hours"` // held without a step
}

// IdleAllocations returns the jobs that have run for at least after and have no step in
// steps, the list of the steps that run now. On a single node the batch script may do
// the work itself without srun, so there the batch step counts as a step.
func IdleAllocations(jobs []Job, steps []Step, after time.Duration, now time.Time) []IdleAllocation {
	busy, script := map[JobID]bool{}, map[JobID]bool{}
	for _, s := range steps {
		switch _, step, _ := strings.Cut(s.ID, "."); step {
		case "extern":
		case "batch":
			script[s.Job()] = true
		default:
			busy[s.Job()] = true
		}
	}
	var idle []IdleAllocation
	for _, j := range jobs {
		// The step of an array element or of a component may carry the job's raw id.
		if j.State != Running || j.StartedAt == nil || busy[j.ID] || busy[j.RawID] ||
			(script[j.ID] || script[j.RawID]) && max(j.NumNodes, len(j.Nodes)) < 2 {
			continue
		}
		if held := now.Sub(*j.StartedAt); held >= after {
			idle = append(idle, IdleAllocation{j, held, held.Hours() * float64(j.GPUs)})
		}
	}
	return idle
}

// RunningStepFormat is the value of squeue --steps --format that ParseRunningSteps
// expects.
const RunningStepFormat = "%i|%S|%N|%j"

// ParseRunningSteps reads the output of squeue --steps --noheader
// --format=RunningStepFormat.
func ParseRunningSteps(out string) []Step {
	var all []Step
	for line := range strings.Lines(out) {
		f := strings.SplitN(strings.TrimSuffix(line, "\n"), "|", 4)
		if len(f) == 4 && strings.Contains(f[0], ".") {
			all = append(all, Step{ID: f[0], StartedAt: ParseTime(f[1]), Nodes: nodesOf(f[2]), Name: f[3], State: Running})
		}
	}
	return all
}
