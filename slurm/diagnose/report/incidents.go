package report

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
)

// A Failure is the diagnosis of one job, among which Incidents looks for common causes.
type Failure struct {
	JobID  string    `json:"job_id"`
	At     time.Time `json:"at"`
	Report Report    `json:"report"`
}

// An Incident is one cause that hit several jobs within a short time.
type Incident struct {
	Class string    `json:"class"`
	Where string    `json:"where"` // a node, a switch or a file system; the class if the jobs name none
	Jobs  []string  `json:"jobs"`
	From  time.Time `json:"from"`
	To    time.Time `json:"to"`
}

// sharedClasses are failures of what all jobs of a site share: several of them at once are one event,
// even without a common node.
var sharedClasses = map[string]bool{
	outcome.Filesystem: true, outcome.DiskFull: true, outcome.HFHub: true, outcome.SlurmNodeFail: true,
	outcome.NCCLIB: true, outcome.Container: true,
}

// mountPath matches the first two parts of a path in a line, which stand for the file system.
var mountPath = lazy.New(`['" (](/[\w.-]+/[\w.-]+)`)

// Says describes the incident in one sentence.
func (i Incident) Says() lang.Text {
	c := outcome.Of(i.Class)
	jobs := strings.Join(i.Jobs, ", ")
	from, to := i.From.Format(time.DateTime), i.To.Format(time.TimeOnly)
	if i.Where == i.Class {
		return said(fmt.Sprintf("One incident, not %d: jobs %s failed with %s between %s and %s.", len(i.Jobs), jobs, c.Name.EN, from, to),
			fmt.Sprintf("这是同一起事件：作业 %s 在 %s 至 %s 之间都因“%s”失败。", jobs, from, to, c.Name.ZH))
	}
	return said("One incident, not %d: jobs %s failed on %s (%s) between %s and %s.", "这是同一起事件：作业 %[2]s 在 %[5]s 至 %[6]s 之间都因 %[3]s 失败（%[4]s）。").
		With(len(i.Jobs), jobs, i.Place(), c.Name, from, to)
}

// atSwitch is the prefix of Incident.Where for a switch.
const atSwitch = "switch "

// Place is Where in both languages.
func (i Incident) Place() lang.Text {
	if name, ok := strings.CutPrefix(i.Where, atSwitch); ok {
		return said("switch %s", "交换机 %s").With(name)
	}
	return lang.Same(i.Where)
}

// fabricClasses are the failures that a switch can cause on any of its nodes.
var fabricClasses = map[string]bool{
	outcome.NCCLIB: true, outcome.NCCLConnection: true, outcome.NCCLTimeout: true, outcome.Rendezvous: true, outcome.SlurmNodeFail: true,
}

// Incidents groups failures with a common cause: on one node, or for shared resources on one file
// system or of one class, each within window of the one before. switches gives the switch of each node,
// where known. Network failures on several nodes of one switch are one incident of that switch.
func Incidents(failures []Failure, window time.Duration, switches map[string]string) []Incident {
	several := groupByPlace(failures, window, whereOf)
	var fabric []Failure
	for _, f := range failures {
		if fabricClasses[f.Report.Class] {
			fabric = append(fabric, f)
		}
	}
	nodes := map[string]map[string]bool{} // switch → nodes that failed
	onSwitch := func(r Report) string {
		if r.RootNode == nil || switches[*r.RootNode] == "" {
			return ""
		}
		s := atSwitch + switches[*r.RootNode]
		if nodes[s] == nil {
			nodes[s] = map[string]bool{}
		}
		nodes[s][*r.RootNode] = true
		return s
	}
	for _, i := range groupByPlace(fabric, window, onSwitch) {
		if len(nodes[i.Where]) < 2 {
			continue // a single node's fault
		}
		several = slices.DeleteFunc(several, func(one Incident) bool { return nodes[i.Where][one.Where] && fabricClasses[one.Class] })
		several = append(several, i)
	}
	slices.SortStableFunc(several, func(a, b Incident) int { return a.From.Compare(b.From) })
	return several
}

// groupByPlace groups failures for which whereOf returns the same place.
func groupByPlace(failures []Failure, window time.Duration, whereOf func(Report) string) []Incident {
	sorted := slices.Clone(failures)
	slices.SortStableFunc(sorted, func(a, b Failure) int { return a.At.Compare(b.At) })
	var all []*Incident
	for _, f := range sorted {
		where := whereOf(f.Report)
		if where == "" {
			continue
		}
		var joined *Incident
		for _, i := range all {
			one := i.Class == f.Report.Class || strings.HasPrefix(where, atSwitch) || areNodes(where, i.Class, f.Report)
			if i.Where == where && one && f.At.Sub(i.To) <= window {
				joined = i
			}
		}
		if joined == nil {
			joined = &Incident{Class: f.Report.Class, Where: where, From: f.At}
			all = append(all, joined)
		}
		if !slices.Contains(joined.Jobs, f.JobID) {
			joined.Jobs = append(joined.Jobs, f.JobID)
		}
		joined.To = f.At
	}
	var several []Incident
	for _, i := range all {
		if len(i.Jobs) > 1 {
			several = append(several, *i)
		}
	}
	return several
}

// areNodes reports whether failures of different classes can be faults of the one node where both
// happened: two mistakes of users have nothing in common there.
func areNodes(where, class string, r Report) bool {
	return r.RootNode != nil && *r.RootNode == where && !outcome.Of(class).UserActs() && !outcome.Of(r.Class).UserActs()
}

// whereOf returns what a failure may have in common with those of other jobs, or the empty string.
func whereOf(r Report) string {
	switch r.Class {
	case outcome.Success, outcome.Running, outcome.Hang, outcome.UserException, outcome.SlurmCancelled, outcome.SlurmTimeLimit, outcome.SlurmPreempted,
		outcome.ParallelConfig, outcome.BadArgs, outcome.ShapeMismatch, outcome.MaxConnections, outcome.NaNLoss:
		return ""
	}
	if sharedClasses[r.Class] {
		if m := mountPath.FindStringSubmatch(r.RootLine); m != nil && (r.Class == outcome.Filesystem || r.Class == outcome.DiskFull) {
			return m[1]
		}
		if r.Class == outcome.HFHub || r.Class == outcome.Container && r.RootNode == nil {
			return r.Class
		}
	}
	if r.RootNode != nil {
		return *r.RootNode
	}
	return ""
}
