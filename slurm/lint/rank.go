package lint

import (
	"cmp"
	"slices"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/slurm/script"
)

// rankNames are variables with a rank that Slurm or MPI sets for each task. In the batch
// shell they have the values of the first task.
var rankNames = []string{"SLURM_PROCID", "SLURM_NODEID", "SLURM_LOCALID", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "PMI_RANK"}

// rankVariables are the variables from which programs read their rank.
var rankVariables = []string{"RANK", "LOCAL_RANK", "NODE_RANK", "GROUP_RANK", "PET_NODE_RANK", "MACHINE_RANK", "NODE_ID", "SLURM_NODEID"}

// rankInBatchShell returns a reference in v to a rank that the batch shell expands, or
// nil.
func rankInBatchShell(v script.Value) *script.Ref {
	for _, r := range v.Refs() {
		if r.Kind == script.Variable && slices.Contains(rankNames, r.Name) && r.Shell != nil && r.Shell.Step == nil && r.Shell.Remote == nil {
			return r
		}
	}
	return nil
}

// hostInBatchShell returns a reference in v to the host's name that the batch shell
// expands, or nil.
func hostInBatchShell(v script.Value) *script.Ref {
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

// hostFlags are launcher flags whose value must differ between tasks.
var hostFlags = []string{"role", "node-rank", "machine-rank", "local-addr"}

func earlyRank(c *checker) {
	check := func(v script.Value, line int, name string) {
		if r := rankInBatchShell(v); r != nil {
			c.report(cmp.Or(line, r.Line), name+r.Source)
		}
	}
	parallel := func(x *script.Command) bool {
		n, ok := c.tasks(x)
		nodes, okN := c.nodesOf(x)
		return x.Step != nil && (ok && n > 1 || okN && nodes > 1)
	}
	for _, x := range c.job.Commands {
		if len(x.Starts) > 0 || x.Remote != nil || onlyPrints(x) || !parallel(x) {
			continue // the commands that x starts are checked themselves
		}
		for _, a := range x.Args {
			check(a.Value, 0, "")
		}
		if x.Shell.Step != nil {
			for _, red := range x.Redirects {
				check(red.Target, 0, "")
			}
		}
		for _, e := range x.Expansions {
			if e.Outer != nil && slices.Contains(rankVariables, e.Name) {
				check(e.Outer.Value, e.Outer.Line, e.Name+"=")
			}
		}
	}
	for _, a := range c.job.Assignments {
		if st := a.Shell.Step; st != nil && a.Shell.Kind != script.Direct && parallel(st.Command) {
			check(a.Var.Value, a.Line, a.Name+"=")
		}
	}
	for _, s := range c.job.Starts {
		if s.Remote != nil || !parallel(s.Command) {
			continue
		}
		for _, n := range rankVariables {
			if v, ok := s.Env.Env(n); ok {
				check(v, 0, n+"=")
				if text, shown := v.Literal(); shown && strings.Contains(text, "$SLURM_") && !s.Launcher.Forks() {
					c.reportThat(v.Line(), n+"="+text, neverExpanded)
				}
			}
		}
		for _, f := range s.Flags {
			if text, shown := f.Value.Literal(); shown && strings.Contains(text, "$SLURM_") {
				c.reportThat(f.Line, f.Given+" "+text, neverExpanded)
			}
			if slices.Contains(hostFlags, f.Name) {
				switch r := hostInBatchShell(f.Value); {
				case r == nil:
				case f.Name == "role":
					c.warnThat(f.Line, f.Given+" "+r.Source, sameRole)
				default:
					c.report(f.Line, f.Given+" "+r.Source)
				}
			}
		}
	}
}

// neverExpanded says what happens to a variable behind a backslash or in single quotes
// if no shell in the task reads the word.
var neverExpanded = lang.Text{
	EN: "no shell expands this: the program gets the name of the variable, and no number",
	ZH: "没有任何 shell 会展开它：程序得到的是变量名，而不是数字",
}

// sameRole says what a role is that the batch shell expands. A role is only a label.
var sameRole = lang.Text{
	EN: "the batch shell expands this before the tasks start, so the log lines of every node carry the name of the first one",
	ZH: "它在任务启动之前就被批处理 shell 展开，所有节点的日志行都带第一个节点的名字",
}

// onlyPrints reports whether x only prints or tests something.
func onlyPrints(x *script.Command) bool {
	switch x.Name() {
	case "echo", "printf", "logger", "date", "[", "[[", "test":
		return true
	}
	return false
}
