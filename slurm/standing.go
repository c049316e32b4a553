package slurm

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// A Step is one step of a job, its batch script included.
type Step struct {
	ID        string     `json:"step_id"` // such as "4711.0" or "4711.batch"
	Name      string     `json:"name"`
	State     State      `json:"state"`
	ExitCode  *string    `json:"exit_code"`
	ElapsedS  int64      `json:"elapsed_s"`
	Nodes     []string   `json:"nodes"`
	MaxRSS    string     `json:"max_rss,omitempty"` // of one task, as Slurm writes it
	StartedAt *time.Time `json:"started_at"`
	Submit    string     `json:"submit_line,omitempty"` // the srun that started it
}

// Job is the job that the step belongs to.
func (s Step) Job() JobID {
	job, _, _ := strings.Cut(s.ID, ".")
	return JobID(job)
}

// As tells the step as a job of its own: what only the whole job has, such as
// its owner and its time limit, is told of the job.
func (s Step) As(job Job) Job {
	return Job{
		ID: JobID(s.ID), Cluster: job.Cluster, Name: s.Name, User: job.User, Account: job.Account, Partition: job.Partition, QOS: job.QOS,
		State: s.State, Nodes: s.Nodes, NumNodes: len(s.Nodes), ElapsedS: s.ElapsedS, TimeLimitS: job.TimeLimitS, ExitCode: s.ExitCode,
		SubmittedAt: s.StartedAt, StartedAt: s.StartedAt, WorkDir: job.WorkDir,
	}
}

// A Priority is what a pending job's priority is made of (sprio(1)), each part
// already weighted by the site.
type Priority struct {
	Job       JobID  `json:"job_id"`
	User      string `json:"user"`
	Total     int64  `json:"total"`
	Age       int64  `json:"age"`
	Account   int64  `json:"association"`
	FairShare int64  `json:"fair_share"`
	Size      int64  `json:"job_size"`
	Partition int64  `json:"partition"`
	QOS       int64  `json:"qos"`
	Nice      int64  `json:"nice"`
}

// A Share is one account's standing of one user (sshare(1)).
type Share struct {
	Account string  `json:"account"`
	User    string  `json:"user"`
	Shares  string  `json:"shares"` // a number, or "parent"
	Norm    float64 `json:"norm_shares"`
	Usage   int64   `json:"raw_usage"` // TRES seconds, decayed
	Used    float64 `json:"effective_usage"`
	// Factor is the fair-share factor, from 0 (used far more than due) to 1.
	Factor float64 `json:"fair_share"`
}

// An Association is what a user may use one account for (sacctmgr(1)).
type Association struct {
	Cluster    string   `json:"cluster"`
	Account    string   `json:"account"`
	User       string   `json:"user"`
	Partition  string   `json:"partition,omitempty"` // empty: all
	DefaultQOS string   `json:"default_qos,omitempty"`
	QOS        []string `json:"qos"`
	MaxJobs    string   `json:"max_jobs,omitempty"` // empty limits: none
	MaxSubmit  string   `json:"max_submit,omitempty"`
	MaxWall    string   `json:"max_wall,omitempty"`
	MaxTRES    string   `json:"max_tres_per_job,omitempty"`
	GrpTRES    string   `json:"grp_tres,omitempty"`
	GrpMinutes string   `json:"grp_tres_mins,omitempty"`
}

// StepFormat is the --format to give sacct for ParseSteps; the free text is last.
const StepFormat = "JobID,State,ExitCode,ElapsedRaw,NodeList,MaxRSS,Start,JobName,SubmitLine"

// ParseSteps reads what sacct --parsable2 --noheader --delimiter=sep printed in
// StepFormat. The job's own record is left out.
func ParseSteps(out, sep string) []Step {
	var steps []Step
	pieces := strings.Split(strings.TrimSuffix(out, "\n"), sep)
	const width = 8 // separators of one record
	id := pieces[0]
	for p := 1; p+width-1 < len(pieces); p += width {
		v := pieces[p : p+width]
		last, next := v[width-1], ""
		if p+width < len(pieces) {
			cut := strings.LastIndexByte(last, '\n')
			if cut < 0 {
				break
			}
			last, next = last[:cut], last[cut+1:]
		}
		s := Step{ID: id, State: ParseState(v[0]), Nodes: nodesOf(v[3]), MaxRSS: v[4], StartedAt: ParseTime(v[5]), Name: v[6], Submit: last}
		s.ElapsedS, _ = strconv.ParseInt(v[2], 10, 64)
		if s.State.Ended() {
			s.ExitCode = exitCode(v[1])
		}
		if strings.Contains(id, ".") {
			steps = append(steps, s)
		}
		id = next
	}
	return steps
}

// PriorityFormat is the --format to give sprio for ParsePriorities.
const PriorityFormat = "%i|%u|%Y|%A|%B|%F|%J|%P|%Q|%N"

// ParsePriorities reads what sprio --noheader printed in PriorityFormat.
func ParsePriorities(out string) []Priority {
	var all []Priority
	for f := range records(out, 10) {
		var n [10]int64
		for i := 2; i < 10; i++ {
			n[i], _ = strconv.ParseInt(f[i], 10, 64)
		}
		all = append(all, Priority{JobID(f[0]), f[1], n[2], n[3], n[4], n[5], n[6], n[7], n[8], n[9]})
	}
	return all
}

// ShareFormat is the --format to give sshare for ParseShares.
const ShareFormat = "Account,User,RawShares,NormShares,RawUsage,EffectvUsage,FairShare"

// ParseShares reads what sshare --parsable2 --noheader printed in ShareFormat.
func ParseShares(out string) []Share {
	var all []Share
	for f := range records(out, 7) {
		s := Share{Account: f[0], User: f[1], Shares: f[2]}
		s.Norm, _ = strconv.ParseFloat(f[3], 64)
		s.Usage, _ = strconv.ParseInt(f[4], 10, 64)
		s.Used, _ = strconv.ParseFloat(f[5], 64)
		s.Factor, _ = strconv.ParseFloat(f[6], 64)
		all = append(all, s)
	}
	return all
}

// AssociationFormat is the format to give sacctmgr show associations for
// ParseAssociations.
const AssociationFormat = "Cluster,Account,User,Partition,DefaultQOS,QOS,MaxJobs,MaxSubmitJobs,MaxWall,MaxTRESPerJob,GrpTRES,GrpTRESMins"

// ParseAssociations reads what sacctmgr --parsable2 --noheader printed in
// AssociationFormat.
func ParseAssociations(out string) []Association {
	var all []Association
	for f := range records(out, 12) {
		a := Association{f[0], f[1], f[2], f[3], f[4], nil, f[6], f[7], f[8], f[9], f[10], f[11]}
		if f[5] != "" {
			a.QOS = strings.Split(f[5], ",")
		}
		all = append(all, a)
	}
	return all
}

// records yields the lines of out that have n fields between bars. Names in
// these tables are an operator's and hold none.
func records(out string, n int) func(yield func([]string) bool) {
	return func(yield func([]string) bool) {
		for line := range strings.Lines(out) {
			f := strings.Split(strings.TrimSpace(line), "|")
			if len(f) == n && !yield(f) {
				return
			}
		}
	}
}

// An IdleAllocation is a running job none of whose steps has run for a while:
// its nodes do nothing, or nothing that Slurm can see.
type IdleAllocation struct {
	Job      Job           `json:"job"`
	For      time.Duration `json:"-"`
	GPUHours float64       `json:"gpu_hours"` // held meanwhile
}

// IdleAllocations returns the jobs that have run for at least after without a
// step; steps are those that run now. On one node a batch script may do the work
// itself, without srun, so that it counts as a step there.
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
		// A step of an array's element or of a component may go by its own number.
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

// RunningStepFormat is the --format to give squeue --steps for
// ParseRunningSteps.
const RunningStepFormat = "%i|%S|%N|%j"

// ParseRunningSteps reads what squeue --steps --noheader printed in
// RunningStepFormat.
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

// String tells a priority as a sum.
func (p Priority) String() string {
	return fmt.Sprintf("%d = age %d + fair share %d + size %d + partition %d + QOS %d + association %d - nice %d",
		p.Total, p.Age, p.FairShare, p.Size, p.Partition, p.QOS, p.Account, p.Nice)
}
