package lint

import (
	"cmp"
	"slices"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/knowledge/rules"
	"github.com/megatron-ops/megatron-ops/slurm/script"
)

// stepRules are about srun steps and the commands around them.
var stepRules = []Rule{
	{
		ID: "no-worktree-cd", Severity: rules.Warning, check: noWorktree,
		Why: lang.Text{
			EN: "the program is named by a relative path and nothing sets the folder: it runs wherever sbatch was typed",
			ZH: "程序用的是相对路径，脚本又没有切换目录：它会在提交 sbatch 时所在的目录里运行",
		},
		Fix: lang.Text{EN: "cd to the shared work tree before the launch (or set #SBATCH --chdir)", ZH: "启动前先 cd 到共享的代码目录（或使用 #SBATCH --chdir）"},
	},
	{
		ID: "background-no-wait", Severity: rules.Error, check: backgroundNoWait,
		Why: lang.Text{
			EN: "the training runs in the background and nothing waits for it: the batch script ends and Slurm kills it",
			ZH: "训练放在后台运行却没有 wait：批处理脚本随即结束，Slurm 会把训练杀掉",
		},
		Fix: lang.Text{EN: "add wait at the end", ZH: "在末尾加上 wait"},
	},
	{
		ID: "step-without-overlap", Severity: rules.Error, check: stepWithoutOverlap,
		Why: lang.Text{
			EN: "a second step needs the same resources as a running step, so it waits until that one ends",
			ZH: "另一个 step 与正在运行的 step 抢同一份资源，会一直等到前者结束才启动",
		},
		Fix: lang.Text{
			EN: "srun --overlap --gres=gpu:0 for a helper step; give steps that all need GPUs a share each (--exact --gpus-per-node=N), or run them one after the other",
			ZH: "给辅助 step 加上 srun --overlap --gres=gpu:0；都要用 GPU 的 step 各取一份（--exact --gpus-per-node=N），或依次运行",
		},
	},
	{
		ID: "tty-in-batch", Severity: rules.Error, check: ttyInBatch,
		Why: lang.Text{
			EN: `a batch job has no terminal: "the input device is not a TTY"`,
			ZH: "批处理作业没有终端：会报 “the input device is not a TTY”",
		},
		Fix: lang.Text{EN: "drop -t, -it or --pty", ZH: "去掉 -t、-it 或 --pty"},
	},
}

func noWorktree(c *checker) {
	if !c.job.Batch() || c.job.Options.Has("chdir") {
		return
	}
	for _, s := range c.starts {
		if s.Module || !relative(s.Program.Value) || s.Env.Dir != nil {
			continue
		}
		if s.Remote != nil && strings.Contains(strings.Join(script.Texts(s.Remote.Args), " "), "wdir") {
			continue
		}
		if (s.Launcher == script.Wrapper || s.Flags.Has("no-python")) && !strings.Contains(s.Program.Text(), "/") && (s.Name() == s.Program.Text() || s.Flags.Has("no-python")) {
			continue // the PATH has the program
		}
		line := cmp.Or(s.Program.Line, s.Line)
		if box := s.Container; box == nil || !box.Docker() && box.Runtime != "pyxis" && box.Runtime != "enroot" {
			c.report(line, s.Program.Text())
			return
		}
		c.reportThat(line, s.Program.Text(), lang.Text{
			EN: "the program is named by a relative path and nothing sets the folder in the container: it is sought where the image starts, whatever folder the script is in",
			ZH: "程序用的是相对路径，又没有指定容器内的工作目录：会在镜像的默认目录里查找，与脚本所在目录无关",
		})
		c.out[len(c.out)-1].Fix = lang.Text{
			EN: "give --container-workdir (docker: -w), or the program's whole path in the container",
			ZH: "加上 --container-workdir（docker 用 -w），或写出程序在容器内的完整路径",
		}.In(c.lang)
		return
	}
}

// relative reports whether v is certainly a relative path.
func relative(v script.Value) bool {
	s, ok := v.Literal()
	if !ok {
		return len(v) > 0 && v[0].Ref == nil && v[0].Text != "" && v[0].Text[0] != '/' && v[0].Text[0] != '~'
	}
	return s != "" && s[0] != '/' && s[0] != '~' && s[0] != '-'
}

// waits reports whether x waits for background processes.
func waits(x *script.Command) bool {
	return waiting.MatchString(strings.Join(script.Texts(x.Args), " "))
}

var waiting = lazy.New(`^(wait|fg|tail .*--pid|kill -0|sleep inf(inity)?)\b`)

func backgroundNoWait(c *checker) {
	if !c.job.Batch() {
		return
	}
	for _, s := range c.starts {
		for _, x := range s.Chain() {
			waited := c.anyCommand(func(y *script.Command) bool { return y.Seq > x.Seq && waits(y) && sameShell(y, x) })
			front := slices.ContainsFunc(c.job.Starts, func(y *script.Start) bool { return y.Seq > s.Seq && !chainBackground(y.Command) })
			if x.Background > 0 && !waited && !front {
				c.report(cmp.Or(x.CallLine, x.Background), "&")
			}
		}
	}
}

// sameShell reports whether both commands are in the text of one shell.
func sameShell(a, b *script.Command) bool { return a.Shell.Same(b.Shell) }

func stepWithoutOverlap(c *checker) {
	var steps []*script.Command
	for _, x := range c.job.Commands {
		if x.Name() == "srun" && !x.Trap && (x.By == nil || x.By.Name() != "srun") && x.Step != nil && !x.Step.OptionsUnknown && len(x.Starts) > 0 {
			if o, has := x.Step.Options.Get("jobid"); has && !strings.HasPrefix(o.Text(), "$") {
				continue
			}
			steps = append(steps, x)
		}
	}
	for i, a := range steps {
		if !chainBackground(a) || a.Subst {
			continue
		}
		if a.Loop != nil && a.Loop.Name != "" && len(a.Loop.Items) != 1 && c.clash(a, a) && a.Step.Options.Has("nodes") == c.job.Several() && !c.waitsIn(a) {
			if n, ok := c.nodesOf(a); !ok || n > 1 || !c.job.Several() {
				c.report(a.Line, "srun")
			}
		}
		for _, b := range steps[i+1:] {
			if !sameShell(a, b) && chainTop(a) == chainTop(b) || exclusive(a, b) || !c.clash(a, b) {
				continue
			}
			if slices.ContainsFunc(c.job.Commands, func(y *script.Command) bool {
				return y.Seq > a.Seq && y.Seq < b.Seq && waits(y) && !y.Trap && y.Shell.Step == nil
			}) {
				break
			}
			c.report(c.helper(a, b).Line, "srun")
		}
	}
}

func (c *checker) waitsIn(a *script.Command) bool {
	return c.anyCommand(func(y *script.Command) bool { return y.Name() == "wait" && y.Loop == a.Loop })
}

func chainTop(x *script.Command) *script.Command {
	ch := x.Chain()
	return ch[len(ch)-1]
}

// exclusive reports whether two commands are in different branches of one if or case.
func exclusive(a, b *script.Command) bool {
	for _, x := range a.Branch {
		for _, y := range b.Branch {
			if x.Node == y.Node && x.Arm != y.Arm {
				return true
			}
		}
	}
	return false
}

// helper returns the one of two steps that does not train, or else the second.
func (c *checker) helper(a, b *script.Command) *script.Command {
	if launches(b, c.starts) && !launches(a, c.starts) {
		return a
	}
	return b
}

// clash reports whether two steps certainly need the same resources.
func (c *checker) clash(a, b *script.Command) bool {
	for _, x := range []*script.Command{a, b} {
		o := x.Step.Options
		if o.Has("overlap", "het-group", "pack-group") || noGPUs(o) {
			return false
		}
		if o.Has("exact") && o.Has("gpus-per-node", "gres", "gpus-per-task") {
			return false
		}
		if v, ok := x.Env.Env("SLURM_OVERLAP"); ok && len(v) > 0 {
			return false
		}
	}
	oa, ob := a.Step.Options, b.Step.Options
	if oa.Has("nodelist", "relative", "exclude") && ob.Has("nodelist", "relative", "exclude") {
		return false
	}
	na, okA := c.nodesOf(a)
	nb, okB := c.nodesOf(b)
	if n, _, ok := c.job.Nodes(); ok && oa.Has("nodes") && ob.Has("nodes") && okA && okB && na+nb <= n && a != b {
		return false
	}
	return true
}

// noGPUs reports whether the options explicitly request no GPU.
func noGPUs(o script.Options) bool {
	for _, n := range []string{"gres", "gpus", "gpus-per-node", "gpus-per-task"} {
		if x, has := o.Get(n); has {
			switch x.Text() {
			case "gpu:0", "0", "none", "NONE", "gpu:none":
				return true
			}
		}
	}
	return false
}

func ttyInBatch(c *checker) {
	if !c.job.Batch() {
		return
	}
	for _, x := range c.job.Commands {
		if x.Name() == "srun" && x.Step != nil && x.Step.Command == x {
			if o, has := x.Step.Options.Get("pty"); has && o.Text() != "0" {
				c.report(o.Line, "--pty")
			}
		}
	}
	for _, box := range c.job.Containers {
		if !box.Docker() {
			continue
		}
		if o, has := box.Get("t", "it", "ti", "tty"); has && o.Text() != "false" {
			c.report(o.Line, o.Given)
		}
	}
}
