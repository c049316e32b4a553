package lint

import (
	"path"
	"slices"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/knowledge/rules"
	"github.com/megatron-ops/megatron-ops/slurm/script"
)

// logRules are about the files that a job writes.
var logRules = []Rule{
	{
		ID: "log-dir-missing", Severity: rules.Warning, check: logDirMissing,
		Why: lang.Text{
			EN: "Slurm opens the log before the first line of the script runs, so this mkdir comes too late: the job dies without a log (exit 0:53)",
			ZH: "Slurm 在脚本第一行运行之前就要打开日志文件，这里的 mkdir 已经太晚：作业会在没有日志的情况下失败（0:53）",
		},
		Fix: lang.Text{EN: "mkdir -p the folder before sbatch", ZH: "在执行 sbatch 之前先 mkdir -p 该目录"},
	},
	{
		ID: "log-name-fixed", Severity: rules.Warning, check: logNameFixed,
		Why: lang.Text{EN: "the log has the same name every time: the next run or the next array task overwrites it", ZH: "日志文件名固定：下一次运行或另一个数组任务会把它覆盖"},
		Fix: lang.Text{EN: "%x-%j.out (in arrays %x-%A_%a.out)", ZH: "改为 %x-%j.out（数组作业用 %x-%A_%a.out）"},
	},
	{
		ID: "node-local-path", Severity: rules.Warning, check: nodeLocalPath,
		Why: lang.Text{
			EN: "this path is local to each node: what is written there is gone when the job ends, and other nodes do not see it",
			ZH: "这是节点本地路径：作业结束后内容会消失，其他节点也看不到",
		},
		Fix: lang.Text{EN: "use a path on shared storage", ZH: "改用共享存储上的路径"},
	},
	{
		ID: "requeue-log-truncated", Severity: rules.Warning, check: requeueLog,
		Why: lang.Text{EN: "a requeued job writes to the same log and truncates it: the output of the failed run is lost", ZH: "重新排队的作业会写同一个日志并把它清空：失败那一次的输出就丢了"},
		Fix: lang.Text{EN: "#SBATCH --open-mode=append", ZH: "加上 #SBATCH --open-mode=append"},
	},
	{
		ID: "restart-without-load", Severity: rules.Warning, check: restartWithoutLoad,
		Why: lang.Text{
			EN: "the job continues after a restart, but saves without loading: every part starts from step 0 and overwrites the checkpoints",
			ZH: "作业会重启接力，却只有 --save 没有 --load：每一段都从第 0 步开始并覆盖之前的结果",
		},
		Fix: lang.Text{EN: "add --load with the folder of --save", ZH: "加上 --load，指向与 --save 相同的目录"},
	},
}

func (c *checker) appends() bool {
	o, has := c.job.Options.Get("open-mode")
	return has && strings.HasPrefix(o.Text(), "a")
}

// outputs returns the options --output and --error of the job.
func (c *checker) outputs() []script.Option {
	var out []script.Option
	for _, n := range []string{"output", "error"} {
		if o, has := c.job.Options.Get(n); has && o.Has {
			out = append(out, o)
		}
	}
	return out
}

func logDirMissing(c *checker) {
	if !c.job.Batch() {
		return
	}
	for _, o := range c.outputs() {
		text := o.Text()
		dir := path.Clean(fixedFolder(strings.ReplaceAll(path.Dir(text), "%u", "$USER")))
		if dir == "." || variable.MatchString(text) {
			continue
		}
		for _, x := range c.job.Commands {
			if x.Name() != "mkdir" || x.Step != nil || x.Trap || c.beforeSubmission(x) {
				continue
			}
			for _, a := range x.Args[1:] {
				if creates(a.Value, dir) || len(x.Env.Dir) == 0 && inSubmitFolder(a.Value, dir) {
					c.report(o.Line, o.String()+", mkdir "+a.Text())
					return
				}
			}
		}
	}
}

// beforeSubmission reports whether x runs in the same branch as an sbatch after it, so that
// it runs before the job starts.
func (c *checker) beforeSubmission(x *script.Command) bool {
	return slices.ContainsFunc(c.job.Submissions, func(s *script.Submission) bool {
		return s.Command.Seq > x.Seq && len(x.Branch) > 0 && slices.Equal(s.Command.Branch, x.Branch)
	})
}

// fixedFolder returns the part of a folder before the first pattern such as %j.
func fixedFolder(dir string) string {
	if before, _, ok := strings.Cut(dir, "%"); ok {
		return strings.TrimRight(dir[:strings.LastIndexByte(before, '/')+1], "/")
	}
	return dir
}

// creates reports whether mkdir -p of v creates dir.
func creates(v script.Value, dir string) bool {
	made := path.Clean(strings.ReplaceAll(v.String(), "${USER}", "$USER"))
	if made == dir {
		return true
	}
	if strings.HasPrefix(made, dir+"/") { // an absolute folder may have been there long before, for other things
		return !path.IsAbs(dir) || v.Unknown()
	}
	// $SLURM_SUBMIT_DIR/logs
	return !path.IsAbs(dir) && v.Unknown() && strings.HasSuffix(made, "/"+dir) && strings.Contains(made, "SUBMIT_DIR")
}

// inSubmitFolder reports whether v is $PWD/dir or $(pwd)/dir. Without a cd before it, that is the
// folder from which sbatch ran.
func inSubmitFolder(v script.Value, dir string) bool {
	if len(v) != 2 || v[0].Ref == nil || path.Clean(v[1].Text) != "/"+dir {
		return false
	}
	r := v[0].Ref
	return r.Name == "PWD" || r.Kind == script.Output && len(r.Commands) == 1 && r.Commands[0].Name() == "pwd"
}

var (
	jobNumber   = lazy.New(`%\d*[jJA]`)
	arrayNumber = lazy.New(`%\d*[ajJ]`)
)

func logNameFixed(c *checker) {
	if !c.job.Batch() || c.appends() {
		return
	}
	array := c.job.Options.Has("array")
	for _, o := range c.outputs() {
		text := o.Text()
		if text == "" || variable.MatchString(text) || strings.Contains(text, "$") || text == "/dev/null" || text == "none" {
			continue
		}
		if array && !arrayNumber.MatchString(text) || !jobNumber.MatchString(text) {
			c.report(o.Line, o.String())
			return
		}
	}
}

var localPath = lazy.New(`^(/tmp|/var/tmp|/dev/shm|/local|/localscratch|/local_scratch|/local-scratch|/scratch/local|/scratch_local|` +
	`/lscratch|/nvme|/ssd|/mnt/nvme\w*|/mnt/local\w*|/raid/local|/run/user|/run/shm|/temp)(/|$)`)

// nodeLocal reports whether v is a path on a local disk of the node.
func nodeLocal(v script.Value) bool {
	if len(v) == 0 {
		return false
	}
	if r := v[0].Ref; r != nil {
		switch r.Name {
		case "TMPDIR", "SLURM_TMPDIR", "LOCAL_SCRATCH", "LOCALSCRATCH", "SLURM_JOB_TMP", "JOBSCRATCH_LOCAL", "TMP":
			return r.Op == "" || r.Guarded && r.Default == nil
		}
		return false
	}
	return localPath.MatchString(v.String())
}

// keptFlags matches the program's options for files that must outlive the job.
var keptFlags = lazy.New(`(?i)^--?(save|load|save[-_]dir|checkpoint[-_]?dir|checkpoint[-_]?path|ckpt[-_]?(dir|path)?|output|output[-_]dir|` +
	`out[-_]dir|log[-_]dir|logging[-_]dir|tensorboard[-_]dir|tb[-_]dir|tensorboard[-_]logdir|wandb[-_]save[-_]dir|` +
	`wandb[-_]dir|logdir|logs?|results?[-_]?dir|default[-_]root[-_]dir|save[-_]path|async[-_]save[-_]dir)$`)

// keptVariables matches variables for files that must outlive the job.
var keptVariables = lazy.New(`(?i)(^|_)(ckpt|checkpoint|save|tensorboard|tb|log|logs|output)s?(_?(dir|path|root|folder))?$|^(ckpt|checkpoint|` +
	`save|tensorboard|log|output)_?(dir|path|root|folder)$`)

func nodeLocalPath(c *checker) {
	options := c.outputs()
	if o, has := c.job.Options.Get("chdir"); has {
		options = append(options, o)
	}
	for _, o := range options {
		if nodeLocal(o.Value) {
			c.report(o.Line, o.String())
		}
	}
	for _, s := range c.job.Starts {
		if o, has := s.Flag("log-dir"); has && nodeLocal(o.Value) && !c.savedFrom(o.Value) {
			c.report(o.Line, o.Given+" "+o.Text())
		}
		for _, o := range s.ProgramFlags() {
			if keptFlags.MatchString(o.Given) && nodeLocal(o.Value) && !c.savedFrom(o.Value) && (s.Container == nil || !covered(s.Container, o.Value)) {
				c.report(o.Line, o.Given+" "+o.Text())
			}
		}
		if s.Container != nil {
			continue // the folder is a path in the container
		}
		if dir := s.Env.Dir; nodeLocal(dir) && relative(s.Program.Value) && !c.staged(dir) && !c.savedFrom(dir) {
			c.report(dir.Line(), "cd "+dir.String())
		}
		for _, x := range s.Chain() {
			for _, red := range x.Redirects {
				if strings.Contains(red.Op, ">") && nodeLocal(red.Target) && !c.savedFrom(red.Target) {
					c.report(red.Line, red.Op+red.Target.String())
				}
			}
		}
	}
	for _, a := range c.job.Assignments {
		v := c.job.Shell.Lookup(a.Name)
		if v == a.Var && v.Exported && keptVariables.MatchString(a.Name) && nodeLocal(v.Value) && !c.copiesFrom(v.Value) {
			c.report(a.Line, a.Name+"="+v.Value.String())
		}
	}
	for _, x := range c.job.Commands {
		if x.Name() == "tee" && x.PipedInto && x.Container == nil {
			if last := x.Args[len(x.Args)-1]; nodeLocal(last.Value) && !c.copiesFrom(last.Value) {
				c.report(x.Line, "tee "+last.Text())
			}
		}
		if x.Step == nil {
			continue
		}
		for _, n := range []string{"output", "error"} {
			if o, has := x.Step.Options.Get(n); has && nodeLocal(o.Value) {
				c.report(o.Line, "srun "+o.String())
			}
		}
	}
}

var copyCommands = []string{"cp", "rsync", "mv", "tar", "sbcast", "sgather", "rclone", "dcp", "mpifileutils", "aws", "gsutil", "hf", "scp"}

// copiesFrom reports whether a command copies v, a part of v, or a folder that has v.
func (c *checker) copiesFrom(v script.Value) bool {
	from := strings.TrimRight(v.String(), "/")
	return c.anyCommand(func(x *script.Command) bool {
		return slices.Contains(copyCommands, x.Name()) && slices.ContainsFunc(x.Args[:len(x.Args)-1], func(a script.Arg) bool {
			t := strings.TrimRight(a.Text(), "/.*")
			return strings.HasPrefix(t, from) || len(t) > len("/tmp") && strings.HasPrefix(from, t)
		})
	})
}

// savedFrom reports whether the job has one node and copies v to another place.
func (c *checker) savedFrom(v script.Value) bool { return !c.job.Several() && c.copiesFrom(v) }

// staged reports whether a step on every node copies files to dir.
func (c *checker) staged(dir script.Value) bool {
	d := strings.TrimRight(dir.String(), "/")
	return c.anyCommand(func(x *script.Command) bool {
		if x.Step == nil && c.job.Several() || !slices.Contains(copyCommands, x.Name()) && x.Name() != "git" && x.Name() != "unzip" {
			return false
		}
		last := strings.TrimRight(x.Args[len(x.Args)-1].Text(), "/")
		return strings.HasPrefix(last, "/") && (strings.HasPrefix(d, last) || strings.HasPrefix(last, d))
	})
}

// requeues returns the line and the text that request a requeue of the job, or 0.
func (c *checker) requeues() (line int, what string) {
	if o, has := c.job.Options.Get("requeue", "no-requeue"); has && o.Name == "requeue" {
		return o.Line, "--requeue"
	}
	for _, x := range c.job.Commands {
		if x.Name() == "scontrol" && len(x.Args) > 1 && strings.HasPrefix(x.Args[1].Text(), "requeue") {
			return x.Line, "scontrol requeue"
		}
	}
	return 0, ""
}

func requeueLog(c *checker) {
	if line, what := c.requeues(); line > 0 && !c.appends() && c.job.Batch() {
		c.report(line, what)
	}
}

// resumeFlags matches options with which programs continue a training.
var resumeFlags = lazy.New(`(?i)^--?(load|resume|restore|auto[-_]?resume|from[-_]checkpoint|init[-_]from|continue|ckpt[-_]path|` +
	`use[-_]checkpoint|load[-_]\w+|resume[-_]\w+)|resume|(^|\.)load`)

func restartWithoutLoad(c *checker) {
	again, _ := c.requeues()
	self := c.resubmits()
	array := false
	if o, has := c.job.Options.Get("array"); has && !c.usesIndex() {
		indexes, _, _ := strings.Cut(o.Text(), "%")
		array = strings.ContainsAny(indexes, "-,")
	}
	if again == 0 && !self && !array {
		return
	}
	for _, s := range c.starts {
		if s.Sourced || s.Launcher == script.Wrapper {
			continue
		}
		save, has := s.ProgramFlag("--save", "--save-dir", "--save_dir")
		if !has || slices.ContainsFunc(script.Texts(s.ProgramArgs), func(a string) bool {
			name, _, _ := strings.Cut(a, "=")
			return resumeFlags.MatchString(name)
		}) || hiddenWords(s) {
			continue
		}
		c.report(save.Line, "--save "+save.Text())
	}
}

// hiddenWords reports whether an unknown variable may hold arguments of the program.
func hiddenWords(s *script.Start) bool {
	return slices.ContainsFunc(s.ProgramArgs, func(a script.Arg) bool {
		r := a.Value.Only()
		return r != nil && r.Kind == script.Variable && !a.Value[0].Quoted
	})
}

// resubmits reports whether the script submits itself again.
func (c *checker) resubmits() bool {
	name := path.Base(c.job.Script.Name)
	return slices.ContainsFunc(c.job.Submissions, func(s *script.Submission) bool {
		f := s.File
		return f == "$0" || strings.Contains(f, "BASH_SOURCE") || name != "." && path.Base(f) == name
	})
}
