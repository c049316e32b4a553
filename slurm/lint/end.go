package lint

import (
	"slices"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/knowledge/rules"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/script"
)

// endRules are about the exit status of a job and the signals it receives.
var endRules = []Rule{
	{
		ID: "missing-pipefail", Severity: rules.Warning, check: missingPipefail,
		Why: lang.Text{
			EN: "a pipe has the status of its last command: the job is COMPLETED although the training failed",
			ZH: "管道的返回值取最后一个命令：训练失败了，作业仍显示 COMPLETED",
		},
		Fix: lang.Text{EN: "set -o pipefail", ZH: "加上 set -o pipefail"},
	},
	{
		ID: "exit-status-lost", Severity: rules.Warning, check: exitStatusLost,
		Why: lang.Text{
			EN: "this command sets the job's exit status, and the status of the training is lost: a failed training looks COMPLETED, and afterok jobs start",
			ZH: "作业的返回值由它决定，训练的返回值被丢弃：失败的训练看起来是 COMPLETED，afterok 的作业也会继续",
		},
		Fix: lang.Text{EN: "set -e, or rc=$? after the launch and exit $rc at the end", ZH: "使用 set -e，或在启动后 rc=$?，最后 exit $rc"},
	},
	{
		ID: "signal-without-handler", Severity: rules.Warning, check: signalWithoutHandler,
		Why: lang.Text{
			EN: "nothing handles the signal of --signal where Slurm sends it: the job is killed early, or nothing happens",
			ZH: "--signal 指定的信号没有人处理：作业会被提前杀掉，或什么也不发生",
		},
		Fix: lang.Text{
			EN: "--signal=B:SIGNAL@seconds with a trap in the script, or --exit-signal-handler for the trainer",
			ZH: "使用 --signal=B:信号@秒数 并在脚本里写 trap，或给训练程序加 --exit-signal-handler",
		},
	},
	{
		ID: "trap-blocked", Severity: rules.Warning, check: trapBlocked,
		Why: lang.Text{EN: "bash runs a trap only after the command in the foreground has ended: too late", ZH: "前台命令结束之后 bash 才会执行 trap：那时已经太晚"},
		Fix: lang.Text{EN: "start the launch with & and wait for it: srun … & wait $!", ZH: "把启动命令放到后台再等待：srun … & wait $!"},
	},
}

func missingPipefail(c *checker) {
	if c.readsPipeStatus() {
		return
	}
	for _, s := range c.starts {
		for _, x := range s.Chain() {
			if x.Pipe == nil || x.Pipe.Safe || x.Background > 0 && x.Pipe.Reader == "" {
				continue
			}
			switch x.Pipe.Reader {
			case "grep", "head", "wc", "awk", "cut":
				if s.Launcher == script.Wrapper {
					continue
				}
			}
			c.report(x.Line, "| "+x.Pipe.Reader)
			return
		}
	}
}

func (c *checker) readsPipeStatus() bool {
	return c.anyCommand(func(x *script.Command) bool {
		return slices.ContainsFunc(x.Expansions, func(e script.Expansion) bool { return e.Name == "PIPESTATUS" })
	})
}

func exitStatusLost(c *checker) {
	if !c.job.Batch() || len(c.job.Refusals) > 0 || len(c.starts) == 0 {
		return
	}
	for _, s := range c.starts {
		for _, x := range s.Chain() {
			if x.Masked > 0 {
				c.report(x.Masked, "|| …")
				return
			}
		}
	}
	last := c.starts[len(c.starts)-1]
	for _, x := range last.Chain() {
		if x.By != nil && sameShell(x.By, x) {
			continue // a command of the same shell starts x
		}
		if line, what := c.lostAfter(x); line > 0 {
			c.report(line, what)
			return
		}
	}
}

// lostAfter returns the later command of the same shell whose status replaces that of x
// as the status of the script, or 0.
func (c *checker) lostAfter(x *script.Command) (line int, what string) {
	if x.Condition && x.Loop == nil && !x.ErrExit && !c.endsBadly(x) {
		last := c.job.Commands[len(c.job.Commands)-1]
		return last.Line, "if " + x.Name()
	}
	if x.Loop != nil || x.Checked || x.ErrExit || x.Name() == "exec" {
		return 0, ""
	}
	background := x.Background > 0
	waited := false
	var others []string // variables with the status of a later command
	for _, y := range c.job.Commands {
		if y.Seq <= x.Seq || !sameShell(x, y) || y.By != nil && sameShell(y.By, y) || y.Trap || y.Subst || y.PipedInto || exclusive(x, y) {
			continue
		}
		switch y.Name() {
		case "wait":
			waited = background
			continue // wait does not replace the status of the launch
		case "exit", "return":
			if len(y.Args) > 1 {
				t := y.Args[1].Text()
				if t == "0" && len(y.Branch) == 0 {
					return y.Line, "exit 0"
				}
				if t != "0" && (t != "$?" || line == 0) && !expands(y, others) {
					return 0, ""
				}
			}
			continue
		case "declare", "local", "export", "typeset":
			if savesStatus(y) && line == 0 {
				return 0, ""
			}
		case "":
			// An assignment may save the status: rc=$?.
			switch {
			case savesStatus(y) && line > 0:
				others = append(others, y.Assigns...)
			case savesStatus(y) && c.statusUsed(y):
				return 0, ""
			}
			continue
		case "[", "[[", "test":
			continue
		}
		if background && !waited {
			continue
		}
		line, what = y.Line, y.Name()
	}
	return line, what
}

// savesStatus reports whether y uses $? or PIPESTATUS, as an assignment does to save it.
func savesStatus(y *script.Command) bool {
	return slices.ContainsFunc(y.Expansions, func(e script.Expansion) bool { return e.Name == "?" || e.Name == "PIPESTATUS" })
}

// expands reports whether y expands one of the variables.
func expands(y *script.Command, names []string) bool {
	return slices.ContainsFunc(y.Expansions, func(e script.Expansion) bool { return slices.Contains(names, e.Name) })
}

// statusUsed reports whether the script later uses a variable that y assigns as its exit
// status, or in a condition before an exit.
func (c *checker) statusUsed(y *script.Command) bool {
	return c.anyCommand(func(z *script.Command) bool {
		if z.Seq <= y.Seq {
			return false
		}
		uses := expands(z, y.Assigns)
		switch z.Name() {
		case "exit", "return":
			return uses
		case "[", "[[", "test", "case", "":
			return uses && c.endsBadly(z)
		}
		return false
	})
}

// endsBadly reports whether the script may exit with a status other than 0 after y, or
// requeue or cancel the job.
func (c *checker) endsBadly(y *script.Command) bool {
	return c.anyCommand(func(z *script.Command) bool {
		switch z.Name() {
		case "exit", "return":
			return z.Seq > y.Seq && len(z.Args) > 1 && z.Args[1].Text() != "0"
		case "scontrol", "false", "scancel":
			return z.Seq > y.Seq
		}
		return false
	})
}

// signal returns the option --signal, the signal's name, and whether it goes to the
// batch shell alone.
func (c *checker) signal() (o script.Option, name string, toBatch, has bool) {
	o, has = c.job.Options.Get("signal")
	if !has {
		return o, "", false, false
	}
	ahead, _ := slurm.ParseSignal(o.Text())
	return o, slurm.SignalName(ahead.Name), ahead.BatchOnly, true
}

// signalHandlers matches arguments that make programs handle signals.
var signalHandlers = lazy.New(`(?i)exit[-_]signal|signal[-_]handler|preempt|graceful|sigusr|sigterm|interruptible|stop[-_]file`)

// handlesSignals reports whether the program probably handles signals, according to its
// arguments or its framework.
func (c *checker) handlesSignals(s *script.Start) bool {
	return slices.ContainsFunc(script.Texts(s.ProgramArgs), signalHandlers.MatchString) || c.slurmAware(s)
}

var aboutSignals = lazy.New(`(?i)signal|usr1|sigterm|信号`)

func signalWithoutHandler(c *checker) {
	o, name, toBatch, has := c.signal()
	if !has || strings.HasPrefix(name, "$") {
		return
	}
	trapped := func(inBatch bool) bool {
		return slices.ContainsFunc(c.job.Handlers, func(h script.Handler) bool {
			return (h.Shell.Kind == script.Batch) == inBatch && !h.Resets && slices.Contains(h.Signals, name)
		})
	}
	if toBatch {
		if !trapped(true) && !c.execs() && !c.job.Shell.Sourced {
			c.report(o.Line, "--signal="+o.Text())
		}
		return
	}
	if trapped(false) {
		return
	}
	// The handlers of a wrapper are unknown, and a comment may tell who handles the signal.
	handled := slices.ContainsFunc(c.starts, func(s *script.Start) bool { return s.Launcher == script.Wrapper || c.handlesSignals(s) })
	if len(c.starts) == 0 || handled || !slices.ContainsFunc(c.starts, ofMegatron) && !trapped(true) && aboutSignals.MatchString(c.comments()) {
		return
	}
	c.report(o.Line, "--signal="+o.Text())
}

// execs reports whether the batch shell runs exec with a command, which replaces it.
func (c *checker) execs() bool {
	return c.anyCommand(func(x *script.Command) bool { return x.Name() == "exec" && len(x.Args) > 1 && x.Shell == c.job.Shell })
}

func trapBlocked(c *checker) {
	if !c.job.Batch() {
		return
	}
	for _, h := range c.job.Handlers {
		if h.Shell.Kind != script.Batch || h.Ignores || h.Resets || !slices.ContainsFunc(h.Signals, catchable) {
			continue
		}
		for _, s := range c.starts {
			if s.Seq < h.Seq || chainBackground(s.Command) || slices.ContainsFunc(s.Chain(), func(x *script.Command) bool { return x.Name() == "exec" }) {
				continue
			}
			c.report(h.Line, "trap … "+strings.Join(h.Signals, " "))
			return
		}
	}
}

// catchable reports whether name is a signal, unlike the names EXIT, ERR, DEBUG and
// RETURN of trap.
func catchable(name string) bool {
	return !slices.Contains([]string{"EXIT", "ERR", "DEBUG", "RETURN"}, name)
}
