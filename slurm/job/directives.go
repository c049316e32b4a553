package job

import (
	"fmt"
	"slices"
	"strings"
)

// An option is one option of sbatch. value is empty if the option has none.
type option struct{ name, value string }

// line returns the option as a #SBATCH line.
func (o option) line() string {
	if o.value == "" {
		return "#SBATCH --" + o.name
	}
	return directive(o.name, o.value)
}

func (o option) word() string {
	if o.value == "" {
		return "--" + o.name
	}
	return "--" + o.name + "=" + quote(o.value)
}

// options returns the sbatch options of the job, in the order of the script. Every
// value must already have passed its field's grammar.
func (s Spec) options(site Site) []option {
	var ds []option
	add := func(name, value string) {
		if value != "" {
			ds = append(ds, option{name, value})
		}
	}
	number := func(option string, n *int) {
		if n != nil {
			add(option, fmt.Sprint(*n))
		}
	}
	flag := func(set *bool, yes, no string) {
		switch {
		case set != nil && *set && yes != "":
			ds = append(ds, option{name: yes})
		case set != nil && !*set && no != "":
			ds = append(ds, option{name: no})
		}
	}
	out, errLog := s.logPaths()
	add("job-name", s.Name)
	add("account", s.Account)
	add("partition", s.Partition)
	add("qos", s.QOS)
	add("reservation", s.Reservation)
	add("constraint", s.Constraint)
	number("nodes", s.Nodes)
	add("ntasks-per-node", "1")
	ds = append(ds, s.gpuOptions(site)...)
	number("cpus-per-task", s.CPUsPerTask)
	add("mem", s.Mem)
	add("mem-per-gpu", s.MemPerGPU)
	add("time", s.Time)
	flag(s.Exclusive, "exclusive", "")
	add("hint", s.Hint)
	number("segment", s.Segment)
	add("switches", s.Switches)
	add("nodelist", s.Nodelist)
	add("exclude", s.Exclude)
	add("dependency", s.Dependency)
	add("begin", s.Begin)
	add("array", s.Array)
	add("signal", s.Signal)
	flag(s.Requeue, "requeue", "no-requeue")
	if s.Requeue != nil && *s.Requeue {
		add("open-mode", "append") // otherwise a restart truncates the logs
	}
	number("nice", s.Nice)
	add("comment", s.Comment)
	add("mail-user", s.MailUser)
	add("mail-type", s.MailType)
	for _, word := range s.Sbatch {
		name, value, _ := strings.Cut(strings.TrimPrefix(word, "--"), "=")
		ds = append(ds, option{name, value})
	}
	add("output", out)
	add("error", errLog)
	return ds
}

// componentOptions are the options that each component of a heterogeneous job sets
// for itself. All other options apply to the whole job, and only the first component
// sets them.
var componentOptions = strings.Fields("account partition qos reservation constraint nodes ntasks-per-node gpus-per-node gres gpus cpus-per-task mem mem-per-gpu time exclusive hint segment switches nodelist exclude")

// directives returns the #SBATCH lines of the job. A "hetjob" line separates the
// components of a heterogeneous job.
func (s Spec) directives(site Site) []string {
	var lines []string
	parts := s.Parts()
	for i, part := range parts {
		if i > 0 {
			lines = append(lines, "#SBATCH hetjob")
		}
		for _, o := range part.options(site) {
			if i == 0 || slices.Contains(componentOptions, o.name) {
				lines = append(lines, o.line())
			}
		}
	}
	return lines
}

// gpuOptions returns the options that request GPUs, in the form that the site needs.
func (s Spec) gpuOptions(site Site) []option {
	n := *s.GPUsPerNode
	if n == 0 {
		return nil
	}
	kind := ""
	if site.GRESType != "" {
		kind = site.GRESType + ":"
	}
	perNode := option{"gpus-per-node", fmt.Sprintf("%s%d", kind, n)}
	switch {
	case s.GPURequest == "gres":
		return []option{{"gres", fmt.Sprintf("gpu:%s%d", kind, n)}}
	case s.GPURequest == "gpus" && *s.Nodes > 1:
		// With only a total, Slurm may give five GPUs on one node and one on another.
		return []option{{"gpus", fmt.Sprintf("%s%d", kind, n**s.Nodes)}, perNode}
	case s.GPURequest == "gpus":
		return []option{{"gpus", fmt.Sprintf("%s%d", kind, n)}}
	}
	return []option{perNode}
}
