package lint

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/slurm/hostlist"
	"github.com/megatron-ops/megatron-ops/slurm/script"
)

// An endpoint is a value that the workers use as the address or the port of rank 0.
type endpoint struct {
	value script.Value
	line  int
	name  string
	start *script.Start
}

// cutPort splits host:port.
func cutPort(v script.Value) (host, port script.Value) {
	for i := len(v) - 1; i >= 0; i-- {
		if v[i].Ref != nil {
			continue
		}
		if at := strings.LastIndexByte(v[i].Text, ':'); at >= 0 {
			before, after := v[i], v[i]
			before.Text, after.Text = v[i].Text[:at], v[i].Text[at+1:]
			host = append(host, v[:i]...)
			if before.Text != "" {
				host = append(host, before)
			}
			if after.Text != "" {
				port = append(port, after)
			}
			return host, append(port, v[i+1:]...)
		}
	}
	return v, nil
}

// endpoints returns the addresses and ports that the job's starts use.
func (c *checker) endpoints() (hosts, ports []endpoint) {
	for _, s := range c.job.Starts {
		both := func(v script.Value, line int, name string) {
			h, p := cutPort(v)
			hosts, ports = append(hosts, endpoint{h, line, name, s}), append(ports, endpoint{p, line, name, s})
		}
		for _, f := range s.Flags {
			e := endpoint{f.Value, f.Line, f.Given, s}
			switch f.Name {
			case "master-addr", "main-process-ip":
				hosts = append(hosts, e)
			case "master-port", "main-process-port":
				ports = append(ports, e)
			case "rdzv-endpoint":
				both(f.Value, f.Line, f.Given)
			}
		}
		if o, has := s.ProgramFlag("--init-method", "--init_method", "--dist-url", "--dist_url"); has {
			if addr := slices.Clone(o.Value); len(addr) > 0 && strings.HasPrefix(addr[0].Text, "tcp://") {
				addr[0].Text = strings.TrimPrefix(addr[0].Text, "tcp://")
				both(addr, o.Line, o.Given)
			}
		}
		for _, prefix := range []string{"PET_", ""} {
			if prefix == "" && s.Launcher != script.Python && s.Launcher != script.Wrapper {
				break // a launcher does not read MASTER_ADDR and MASTER_PORT
			}
			if v, ok := s.Env.Env(prefix + "MASTER_ADDR"); ok {
				hosts = append(hosts, endpoint{v, v.Line(), prefix + "MASTER_ADDR", s})
			}
			if v, ok := s.Env.Env(prefix + "MASTER_PORT"); ok {
				ports = append(ports, endpoint{v, v.Line(), prefix + "MASTER_PORT", s})
			}
		}
	}
	return hosts, ports
}

func masterAddr(c *checker) {
	hosts, _ := c.endpoints()
	for _, h := range hosts {
		many := c.onSeveralNodes(h.start) || c.job.Several() && c.writtenNodes(h.start) > 1
		if many && !c.singleNode(h.start) && c.badHost(h.value) {
			c.report(cmp.Or(h.value.Line(), h.line), h.name+"="+h.value.String())
		}
	}
}

var (
	localAddress = lazy.New(`^(localhost|127\.\d+\.\d+\.\d+|0\.0\.0\.0|::1|\[::1\]|localhost\.localdomain)$`)
	otherLine    = lazy.New(`tail\s+-n?\s*1\b|tail\s+-1\b|\btail\s*$|sed\s+-n\s+['"]?([02-9]|1\d|\$)\d*p|NR\s*==\s*([02-9]|1\d)|` +
		`sort\s+-[a-zA-Z]*[rR]|\bshuf\b|\btac\b|\bEND\s*\{`)
	listVar = lazy.New(`SLURM_(JOB_)?NODELIST`)
)

// badHost reports whether v is certainly not an address of the first node that is the
// same for every task.
func (c *checker) badHost(v script.Value) bool {
	if s, ok := v.Literal(); ok {
		return localAddress.MatchString(s) || c.notFirst(s)
	}
	r := v.Only()
	if r == nil {
		// The name is composed of parts of the compressed hostlist.
		return slices.ContainsFunc(v.Refs(), func(r *script.Ref) bool { return r.Kind == script.Variable && listVar.MatchString(r.Name) })
	}
	switch r.Kind {
	case script.Output:
		return badHostOutput(r)
	case script.Variable:
		return badHostVariable(r)
	}
	return false
}

// notFirst reports whether --nodelist names the nodes and s is not the first of them.
func (c *checker) notFirst(s string) bool {
	o, has := c.job.Options.Get("nodelist")
	if !has {
		return false
	}
	names, err := hostlist.Expand(o.Text())
	return err == nil && slices.Contains(names, s) && slices.Min(names) != s
}

func badHostVariable(r *script.Ref) bool {
	switch {
	case listVar.MatchString(r.Name):
		return true // the compressed hostlist, or a part of it
	case r.Name == "HOSTNAME" || r.Name == "SLURMD_NODENAME" || r.Name == "SLURM_TOPOLOGY_ADDR":
		return r.Shell != nil && r.Shell.Step != nil
	case otherIndex.MatchString(r.Index):
		return listsHosts(r.Of)
	case r.Op != "" && !r.Guarded:
		// ${LIST%%,*} of a copy of the compressed hostlist.
		inner := r.Of.Only()
		return inner != nil && listVar.MatchString(inner.Name)
	}
	return false
}

// otherIndex matches an index other than that of the first element.
var otherIndex = lazy.New(`^0*[1-9]\d*$|- ?1`)

// listsHosts reports whether v is the output of a command that prints the hostlist.
func listsHosts(v script.Value) bool {
	return slices.ContainsFunc(v.Refs(), func(r *script.Ref) bool {
		return r.Kind == script.Output && (hostTools.MatchString(r.Source) || listVar.MatchString(r.Source))
	})
}

// hostTools matches commands that expand a hostlist.
var hostTools = lazy.New(`\b(scontrol|hostnames?|nodeset|hostlist)\b`)

func badHostOutput(r *script.Ref) bool {
	if len(r.Commands) == 0 {
		return false
	}
	first := r.Commands[0]
	inTask := r.Shell != nil && r.Shell.Step != nil
	for _, x := range r.Commands {
		switch x.Name() {
		case "hostname":
			return inTask && !oneNode(r)
		case "srun", "python", "python3", "nslookup", "getent", "dig", "host", "ssh":
			return false
		case "ip", "ifconfig":
			return inTask
		}
	}
	src := r.Source
	if first.Name() == "echo" || first.Name() == "printf" {
		for _, a := range first.Args[1:] {
			if listsHosts(a.Value) {
				return otherField.MatchString(src)
			}
		}
	}
	switch {
	case len(r.Commands) == 1 && first.Name() == "scontrol":
		return true // the output has all names, one per line
	case hostTools.MatchString(src) && strings.Contains(src, "head"):
		return wrongHead(src)
	case hostTools.MatchString(src):
		return otherLine.MatchString(src)
	}
	// echo $SLURM_JOB_NODELIST | cut … gives a part of the compressed hostlist.
	return listVar.MatchString(src) && slices.Contains([]string{"echo", "printf", "cut", "sed", "awk", "tr", "head"}, first.Name())
}

// otherField matches a command that selects a word other than the first of a list.
var otherField = lazy.New(`\$NF|print\s+\$([2-9]|1\d)|-f\s*([2-9]|1\d)|\btail\b|\bshuf\b|\btac\b|NR\s*==\s*([02-9]|1\d)|\brev\b`)

func oneNode(r *script.Ref) bool {
	st := r.Shell.Step
	o, has := st.Options.Get("nodes", "ntasks")
	return has && o.Text() == "1"
}

var headCount = lazy.New(`head\s+(?:-n\s*|-)(\d+)`)

// wrongHead reports whether head and tail together select a line other than the first.
func wrongHead(src string) bool {
	at := strings.Index(src, "head")
	tail := strings.Index(src, "tail")
	m := headCount.FindStringSubmatch(src)
	if tail >= 0 && tail < at {
		rest := src[tail:at]
		return !strings.Contains(rest, "+1")
	}
	if m != nil && m[1] != "1" {
		return true // head -n 2 | tail -n 1
	}
	return regexp.MustCompile(`sort\s+-[a-zA-Z]*[rR]|\bshuf\b|\btac\b`).MatchString(src[:max(at, 0)])
}

func masterPort(c *checker) {
	_, ports := c.endpoints()
	for _, a := range c.job.Assignments {
		if a.Name == "MASTER_PORT" && len(c.job.Starts) > 0 && !a.Trap { // an unknown launcher may use it
			ports = append(ports, endpoint{a.Var.Value, a.Line, a.Name, nil})
		}
	}
	for _, p := range ports {
		if c.badPort(p) {
			c.report(cmp.Or(p.value.Line(), p.line), p.name+"="+p.value.String())
		}
	}
}

// portSearch matches a command that finds a different port each time it runs.
var portSearch = lazy.New(`socket|bind\(|shuf|RANDOM|\bss\b|netstat|randint|free_port|freeport|/dev/urandom|\bod\b|ephemeral`)

// perTask are variables that have another value in each task.
var perTask = []string{"RANDOM", "SRANDOM", "$", "BASHPID", "SLURM_PROCID", "SLURM_NODEID", "SLURM_LOCALID", "SLURM_TASK_PID"}

// badPort reports whether the port is out of range or differs between tasks.
func (c *checker) badPort(p endpoint) bool {
	if s, ok := p.value.Literal(); ok {
		n, err := strconv.Atoi(s)
		return err == nil && (n < 1024 && n != 0 || n > 65535)
	}
	several := p.start != nil && c.onSeveralNodes(p.start)
	for _, r := range p.value.Refs() {
		inTask := r.Shell != nil && r.Shell.Step != nil && r.Shell.Remote == nil && several
		differs := r.Kind == script.Output && portSearch.MatchString(r.Source) || r.Kind == script.Variable && slices.Contains(perTask, r.Name)
		if inTask && differs {
			return true
		}
	}
	span, ok := c.job.Span(p.value)
	return ok && (span.Hi > 65535 || span.Lo < 1024)
}
