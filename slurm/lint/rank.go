package lint

import (
	"slices"

	"github.com/megatron-ops/megatron-ops/slurm/script"
)

// rankNames are the variables that Slurm sets for each task; in the batch
// shell they are those of its first one.
var rankNames = []string{"SLURM_PROCID", "SLURM_NODEID", "SLURM_LOCALID", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "PMI_RANK"}

// rankVariables are those that programs read their rank from.
var rankVariables = []string{"RANK", "LOCAL_RANK", "NODE_RANK", "GROUP_RANK", "PET_NODE_RANK", "MACHINE_RANK", "NODE_ID", "SLURM_NODEID"}

// early is a reference in v to a task's own number that the batch shell
// expands, or nil.
func early(v script.Value) *script.Ref {
	for _, r := range v.Refs() {
		if r.Kind == script.Variable && slices.Contains(rankNames, r.Name) && r.Shell != nil && r.Shell.Step == nil && r.Shell.Remote == nil {
			return r
		}
	}
	return nil
}

// earlyHost is the output of hostname taken in the batch shell, or nil.
func earlyHost(v script.Value) *script.Ref {
	for _, r := range v.Refs() {
		if r.Shell == nil || r.Shell.Step != nil {
			continue
		}
		if r.Kind == script.Variable && (r.Name == "HOSTNAME" || r.Name == "SLURMD_NODENAME") {
			return r
		}
		if r.Kind == script.Output && len(r.Commands) > 0 && r.Commands[0].Name() == "hostname" && r.Commands[0].Step == nil {
			return r
		}
	}
	return nil
}

// hostFlags take a name or rank that each task has of its own.
var hostFlags = []string{"role", "node-rank", "machine-rank", "local-addr"}

func earlyRank(c *checker) {
	lines := map[int]bool{}
	report := func(line int, what string) {
		if line > 0 && !lines[line] {
			lines[line] = true
			c.report(line, what)
		}
	}
	parallel := func(x *script.Command) bool {
		n, ok := c.tasks(x)
		if ok && n > 1 {
			return true
		}
		nodes, okN := c.nodesOf(x)
		return okN && nodes > 1
	}
	for _, x := range c.job.Commands {
		if x.Step == nil || x.Remote != nil || x.Trap || !parallel(x) || logs(x) {
			continue
		}
		if len(x.Starts) > 0 {
			continue // what it starts is judged by itself
		}
		for _, a := range x.Args {
			if r := early(a.Value); r != nil {
				report(refLine(r, a.Line), r.Source)
			}
		}
		for _, red := range x.Redirects {
			if r := early(red.Target); r != nil && x.Shell.Step != nil {
				report(refLine(r, red.Line), r.Source)
			}
		}
		for _, e := range x.Expansions {
			if e.Outer != nil && slices.Contains(rankVariables, e.Name) {
				if r := early(e.Outer.Value); r != nil {
					report(e.Outer.Line, e.Name+"="+r.Source)
				}
			}
		}
	}
	for _, a := range c.job.Assignments {
		if a.Shell.Step == nil || a.Shell.Kind == script.Direct {
			continue
		}
		if r := early(a.Var.Value); r != nil && c.parallelStep(a.Shell.Step) {
			report(a.Line, a.Name+"="+r.Source)
		}
	}
	for _, s := range c.job.Starts {
		if s.Step == nil || s.Remote != nil || !parallel(s.Command) {
			continue
		}
		for _, n := range rankVariables {
			if v, ok := s.Env.Env(n); ok {
				if r := early(v); r != nil {
					report(refLine(r, s.Line), n+"="+r.Source)
				}
			}
		}
		for _, f := range s.Flags {
			if slices.Contains(hostFlags, f.Name) {
				if r := earlyHost(f.Value); r != nil {
					report(f.Line, f.Given+" "+r.Source)
				}
			}
		}
	}
}

func (c *checker) parallelStep(st *script.Step) bool {
	x := *st.Command
	x.Step = st
	n, ok := c.tasks(&x)
	nodes, okN := c.nodesOf(&x)
	return ok && n > 1 || okN && nodes > 1
}

func refLine(r *script.Ref, line int) int {
	if r.Line > 0 {
		return r.Line
	}
	return line
}

// logs reports whether x only says something.
func logs(x *script.Command) bool {
	switch x.Name() {
	case "echo", "printf", "logger", "date", "[", "[[", "test":
		return true
	}
	return false
}
