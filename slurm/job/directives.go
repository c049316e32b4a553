package job

import "fmt"

// directives are the #SBATCH lines, one option each. Every value has passed
// its field's grammar.
func (s Spec) directives(site Site) []string {
	var ds []string
	add := func(option, value string) {
		if value != "" {
			ds = append(ds, directive(option, value))
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
			ds = append(ds, "#SBATCH --"+yes)
		case set != nil && !*set && no != "":
			ds = append(ds, "#SBATCH --"+no)
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
	add(s.gpuDirective(site))
	number("cpus-per-task", s.CPUsPerTask)
	add("mem", s.Mem)
	add("time", s.Time)
	flag(s.Exclusive, "exclusive", "")
	add("hint", s.Hint)
	add("nodelist", s.Nodelist)
	add("exclude", s.Exclude)
	add("dependency", s.Dependency)
	add("begin", s.Begin)
	add("array", s.Array)
	add("signal", s.batchSignal())
	flag(s.Requeue, "requeue", "no-requeue")
	flag(s.Requeue, "open-mode=append", "") // a restart truncates the logs otherwise
	add("comment", s.Comment)
	add("mail-user", s.MailUser)
	add("mail-type", s.MailType)
	add("output", out)
	add("error", errLog)
	return ds
}

// gpuDirective asks for GPUs in the site's form; no option where there are none.
func (s Spec) gpuDirective(site Site) (option, value string) {
	n := *s.GPUsPerNode
	if n == 0 {
		return "", ""
	}
	kind := ""
	if site.GRESType != "" {
		kind = site.GRESType + ":"
	}
	switch s.GPURequest {
	case "gres":
		return "gres", fmt.Sprintf("gpu:%s%d", kind, n)
	case "gpus":
		return "gpus", fmt.Sprintf("%s%d", kind, n**s.Nodes)
	}
	return "gpus-per-node", fmt.Sprintf("%s%d", kind, n)
}

// batchSignal is the value of --signal. The script itself handles the signal,
// so it must be sent to the batch shell alone, which B: asks for.
func (s Spec) batchSignal() string {
	return s.Signal
}
