package diagnose

import (
	"context"
	"slices"

	"github.com/megatron-ops/megatron-ops/knowledge/megatron"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/flightrecorder"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logfile"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/report"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/scan"
)

// A Context is what is known about a job besides its logs. The zero value means that nothing is known.
type Context struct {
	// JobState is a state in Slurm's words, or "ENDED".
	JobState string `json:"job_state,omitempty"`
	// SecondsSinceLastWrite is the age of the newest line. If it is nil, the files' modification times
	// count.
	SecondsSinceLastWrite *int64 `json:"seconds_since_last_write,omitempty"`

	Reason      string   `json:"reason,omitempty"`       // Slurm's reason
	ExitCode    string   `json:"exit_code,omitempty"`    // "1:0"
	FailedNodes []string `json:"failed_nodes,omitempty"` // nodes that Slurm has taken out of service
	Nodes       []string `json:"nodes,omitempty"`        // the job's
	OOMKilled   bool     `json:"oom_killed,omitempty"`   // by Slurm's accounting
	Preempted   bool     `json:"preempted,omitempty"`    // Slurm ended the run for a job of higher priority
	Array       bool     `json:"array,omitempty"`        // a whole array: its files' numbers are tasks, no ranks

	// Addresses maps IP addresses to nodes, as the cluster resolves them.
	Addresses map[string]string `json:"addresses,omitempty"`
	// Resolve asks the cluster's name service for the names of an address. It may be nil.
	Resolve func(address string) []string `json:"-"`
	// Worktree is the folder in which the job was to run.
	Worktree string `json:"worktree,omitempty"`
	// Launch is the run's launch, if the specification is known.
	Launch *megatron.Run `json:"-"`
	// Already lists conditions of remedies that the specification meets, or cannot meet; see
	// report.AsksFor.
	Already []string `json:"-"`
}

// FromJob returns the Context in a cluster's record of a job.
func FromJob(j slurm.Job) Context {
	c := Context{JobState: string(j.State), Reason: j.Reason, Nodes: j.Nodes, OOMKilled: j.State == slurm.OutOfMemory, Array: len(j.Tasks) > 0}
	c.Preempted = j.State == slurm.Preempted || j.PreemptedAt != nil && j.State.Ended()
	if j.ExitCode != nil {
		c.ExitCode = *j.ExitCode
	}
	return c
}

func (c Context) state() slurm.State { return slurm.State(c.JobState) }

// slurmSays reports whether the state is Slurm's own, which tells how a job ended.
func (c Context) slurmSays() bool { return c.JobState != "" && c.JobState != "ENDED" }

// running reports whether the job may still write; known is false if the context does not tell.
func (c Context) running() (is, known bool) {
	switch c.state() {
	case "":
		return false, false
	case slurm.Running, slurm.Completing, slurm.Pending, slurm.Suspended, slurm.Stopped, "CONFIGURING", "RESIZING", "STAGE_OUT", "SIGNALING":
		return true, true
	}
	return false, true
}

// suspended reports whether Slurm has stopped the job's processes. They write nothing until they are
// resumed, so their silence is no sign of a hang.
func (c Context) suspended() bool { return c.state() == slurm.Suspended || c.state() == slurm.Stopped }

// Run diagnoses the logs in src. The report lists files that could not be read. An error means that
// there is no report.
func Run(ctx context.Context, src logfile.Source, c Context) (report.Report, error) {
	src = src.TakenApart()
	all, err := scan.All(ctx, src)
	if err != nil {
		return report.Report{}, err
	}
	recorded, noDumps := src.Recordings()
	src.Unreadable = append(src.Unreadable, noDumps...)
	unread, something := unread(src, all)
	bySlurm := c.slurmSays() && len(src.Unreadable) == 0 && !slices.ContainsFunc(all, func(f *scan.Facts) bool { return f.Reads != nil })
	if !something && len(recorded) == 0 && !src.NoLogs && !bySlurm {
		return report.Report{}, &logfile.UnreadableError{Logs: unread}
	}
	j := newJob(src, all, c)
	if something {
		j.unreadable = unread
	}
	j.resolve()
	if m, ok := flightrecorder.WhoMissed(recorded); ok {
		j.missed = &m
	}
	return j.report(), nil
}

// Path diagnoses the logs at a path.
func Path(ctx context.Context, path string, c Context) (report.Report, error) {
	src, err := logfile.Open(path)
	if err != nil {
		return report.Report{}, err
	}
	return Run(ctx, src, c)
}

// unread lists the logs of a source that could not be read, and reports whether any could.
func unread(s logfile.Source, all []*scan.Facts) (list []logfile.Unreadable, something bool) {
	list = append(list, s.Unreadable...)
	empty := []logfile.Unreadable{}
	for i, f := range all {
		switch {
		case f.Reads != nil:
			if len(list) < logfile.MaxUnreadable {
				list = append(list, logfile.Unread(s.Logs[i].Name, f.Reads))
			}
		case f.Lines == 0:
			empty = append(empty, logfile.Unread(s.Logs[i].Name, logfile.ErrEmpty))
		default:
			something = true
		}
	}
	if len(list) == 0 && !something {
		list = empty
	}
	return list, something
}
