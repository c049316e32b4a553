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

// A Failure is one job's diagnosis, for finding what several jobs share.
type Failure struct {
	JobID  string    `json:"job_id"`
	At     time.Time `json:"at"`
	Report Report    `json:"report"`
}

// An Incident is one cause that hit several jobs within a window of time.
type Incident struct {
	Class string    `json:"class"`
	Where string    `json:"where"` // a node, a switch, a file system, or the class where none is named
	Jobs  []string  `json:"jobs"`
	From  time.Time `json:"from"`
	To    time.Time `json:"to"`
}

// shared are classes that a site shares: the same one in several jobs at
// once is one event, even without a common node.
var shared = map[string]bool{
	outcome.Filesystem: true, outcome.DiskFull: true, outcome.HFHub: true, outcome.SlurmNodeFail: true,
	outcome.NCCLIB: true, outcome.Container: true,
}

// mountOf names the file system that a line's path lies on, by its first parts.
var mountOf = lazy.New(`['" (](/[\w.-]+/[\w.-]+)`)

// Says names the incident in one sentence.
func (i Incident) Says() lang.Text {
	c := outcome.Of(i.Class)
	jobs := strings.Join(i.Jobs, ", ")
	from, to := i.From.Format(time.DateTime), i.To.Format(time.TimeOnly)
	if i.Where == i.Class {
		return said(fmt.Sprintf("One incident, not %d: jobs %s failed of %s between %s and %s.", len(i.Jobs), jobs, c.Name.EN, from, to),
			fmt.Sprintf("这是同一起事件：作业 %s 在 %s 至 %s 之间都因“%s”失败。", jobs, from, to, c.Name.ZH))
	}
	return said("One incident, not %d: jobs %s failed on %s (%s) between %s and %s.", "这是同一起事件：作业 %[2]s 在 %[5]s 至 %[6]s 之间都因 %[3]s 失败（%[4]s）。").
		With(len(i.Jobs), jobs, i.Place(), c.Name, from, to)
}

// atSwitch is before the name of a switch that is where an incident struck.
const atSwitch = "switch "

// Place is Where in words.
func (i Incident) Place() lang.Text {
	if name, ok := strings.CutPrefix(i.Where, atSwitch); ok {
		return said("switch %s", "交换机 %s").With(name)
	}
	return lang.Same(i.Where)
}

// fabricClasses are what a switch does to jobs, on whichever of its nodes.
var fabricClasses = map[string]bool{
	outcome.NCCLIB: true, outcome.NCCLConnection: true, outcome.NCCLTimeout: true, outcome.Rendezvous: true, outcome.SlurmNodeFail: true,
}

// Incidents groups failures that have one cause: the same node, or for what a
// site shares the same file system or class, within window of each other.
// switches gives the switch of a node, where that is known: network failures on
// several nodes of one switch are its incident.
func Incidents(failures []Failure, window time.Duration, switches map[string]string) []Incident {
	several := incidents(failures, window, whereOf)
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
	for _, i := range incidents(fabric, window, onSwitch) {
		if len(nodes[i.Where]) < 2 {
			continue // that node's own
		}
		several = slices.DeleteFunc(several, func(one Incident) bool { return nodes[i.Where][one.Where] && fabricClasses[one.Class] })
		several = append(several, i)
	}
	slices.SortStableFunc(several, func(a, b Incident) int { return a.From.Compare(b.From) })
	return several
}

// incidents groups failures by where they struck.
func incidents(failures []Failure, window time.Duration, whereOf func(Report) string) []Incident {
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
			one := i.Class == f.Report.Class || strings.HasPrefix(where, atSwitch)
			if i.Where == where && (one || f.Report.RootNode != nil && *f.Report.RootNode == where) && f.At.Sub(i.To) <= window {
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

// whereOf names what a failure may have in common with others.
func whereOf(r Report) string {
	switch r.Class {
	case outcome.Success, outcome.Running, outcome.Hang, outcome.UserException, outcome.SlurmCancelled, outcome.SlurmTimeLimit, outcome.SlurmPreempted,
		outcome.ParallelConfig, outcome.BadArgs, outcome.ShapeMismatch, outcome.MaxConnections, outcome.NaNLoss:
		return ""
	}
	if shared[r.Class] {
		if m := mountOf.FindStringSubmatch(r.RootLine); m != nil && (r.Class == outcome.Filesystem || r.Class == outcome.DiskFull) {
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
