// Package preflight checks, before a submission, a job's surroundings: its folders and
// files, the rules of the documents, the cluster, and the caller's rights there.
package preflight

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/knowledge/megatron"
	"github.com/megatron-ops/megatron-ops/knowledge/rules"
	"github.com/megatron-ops/megatron-ops/slurm/job"
)

// A documentRule is a rule of the documents about a job's surroundings, such as its
// folders or its environment. check returns what is wrong, or "". Where the rules table
// has a row with that id, the row's fix, source and severity apply unless this rule has
// its own fix or severity.
type documentRule struct {
	id       string
	severity rules.Severity
	field    string
	check    func(*ops.Call, job.Spec) lang.Text
	fix      lang.Text
}

// A plain number of a time limit from secondsOfAnHour on looks like seconds: as minutes it
// is more than two days. One of whole days in minutes, and not of whole hours in seconds,
// does not.
const secondsOfAnHour, minutesOfADay = 3600, 1440

// documentRules returns all of them: placeRules are about where the job runs,
// launchRules about its launch, argumentRules about its arguments.
func documentRules() []documentRule { return slices.Concat(placeRules, launchRules, argumentRules) }

var placeRules = []documentRule{
	{
		id: "worktree-given", field: "worktree",
		check: func(_ *ops.Call, s job.Spec) lang.Text {
			if s.Worktree != "" {
				return lang.Text{}
			}
			return lang.Text{EN: "no worktree: the job would run wherever it was submitted", ZH: "没有给出工作树：作业会在提交时所在的目录运行"}
		},
	},
	{
		id: "worktree-exists", field: "worktree",
		check: func(c *ops.Call, s job.Spec) lang.Text {
			if s.Worktree == "" || !SharesFiles(c, s) {
				return lang.Text{}
			}
			if st, err := os.Stat(s.Worktree); err == nil && st.IsDir() || err != nil && !errors.Is(err, fs.ErrNotExist) {
				return lang.Text{}
			}
			return lang.Text{EN: s.Worktree + " does not exist here, or is not a directory", ZH: s.Worktree + " 在本机不存在，或不是目录"}
		},
	},
	{
		id: "script-exists", field: "script",
		check: func(c *ops.Call, s job.Spec) lang.Text {
			if s.OwnProgram() != "" || s.StartsModule() {
				return lang.Text{}
			}
			return noProgram(c, s, cmp.Or(s.Program(), givenScript(s.Script)))
		},
	},
	{
		id: "script-exists", field: "launcher_argv",
		check: func(c *ops.Call, s job.Spec) lang.Text { return noProgram(c, s, s.OwnProgram()) },
		fix:   lang.Text{EN: "name the program in launcher_argv by its path, relative to the worktree", ZH: "在 launcher_argv 中写程序相对于工作树的路径"},
	},
	{
		id: "environment-synced", severity: rules.Warning, field: "venv",
		check: func(c *ops.Call, s job.Spec) lang.Text {
			if s.Launcher != job.UV || s.Worktree == "" || inContainer(s) || filepath.IsAbs(s.Venv) || !SharesFiles(c, s) {
				return lang.Text{}
			}
			if _, err := os.Stat(s.Worktree); err != nil {
				return lang.Text{}
			}
			if _, err := os.Stat(filepath.Join(s.Worktree, s.Venv)); !errors.Is(err, fs.ErrNotExist) {
				return lang.Text{}
			}
			return lang.Text{EN: "no " + s.Venv + " in the worktree: every job would build it again, on GPU time", ZH: "工作树中没有 " + s.Venv + "：每个作业都会占用 GPU 时间重新构建它"}
		},
		fix: lang.Text{EN: "once, before submitting: uv sync --extra training --extra dev", ZH: "提交前执行一次：uv sync --extra training --extra dev"},
	},
	{
		id: "worktree-shared", severity: rules.Warning, field: "worktree",
		check: func(c *ops.Call, s job.Spec) lang.Text {
			if *s.Nodes < 2 || !nodeLocal(s.Worktree) || oneHost(c, s) {
				return lang.Text{}
			}
			return lang.Text{EN: s.Worktree + " looks local to one node, and " + strconv.Itoa(*s.Nodes) + " nodes must see it", ZH: s.Worktree + " 像是单个节点的本地路径，而 " + strconv.Itoa(*s.Nodes) + " 个节点都要访问它"}
		},
		fix: lang.Text{EN: "a path on NFS, Lustre or another shared file system", ZH: "放在 NFS、Lustre 等共享文件系统上"},
	},
	{
		id: "image-driver", field: "container.image",
		check: func(c *ops.Call, s job.Spec) lang.Text {
			driver := c.SiteOf(s).Driver
			branch, _, _ := strings.Cut(driver, ".")
			has, err := strconv.Atoi(branch)
			image, known := megatron.LookupImage(s.Container.Image)
			if err != nil || !known || has >= megatron.MinimalDriver(image.CUDA) {
				return lang.Text{}
			}
			return phrase("%s has CUDA %s, which needs driver %d or newer; the site's is %s", "%s 带有 CUDA %s，需要 %d 或更新的驱动；站点的驱动是 %s",
				image.Name(), image.CUDA, megatron.MinimalDriver(image.CUDA), driver)
		},
	},
	{
		id: "no-time-limit", field: "time",
		check: func(_ *ops.Call, s job.Spec) lang.Text {
			if s.Time != "" {
				return lang.Text{}
			}
			return lang.Text{EN: "no time limit: the partition's default decides when the job is killed", ZH: "没有设置时间上限：何时被终止由分区默认值决定"}
		},
	},
	{
		id: "time-in-minutes", field: "time",
		check: func(_ *ops.Call, s job.Spec) lang.Text {
			n, err := strconv.ParseInt(s.Time, 10, 64)
			if err != nil || n < secondsOfAnHour || n%minutesOfADay == 0 && n%secondsOfAnHour != 0 {
				return lang.Text{} // 10080 is a week
			}
			return phrase("%s is a number of minutes to Slurm: %s; if seconds are meant, write %s", "Slurm 把 %s 当作分钟数，即 %s；若指秒数，请写 %s",
				s.Time, ops.Duration(n*60), ops.Duration(n))
		},
	},
	{
		id: "training-without-gpus", field: "gpus_per_node",
		check: func(_ *ops.Call, s job.Spec) lang.Text {
			if *s.GPUsPerNode > 0 || s.OwnProgram() != "" {
				return lang.Text{}
			}
			for _, flag := range []string{"--train-iters", "--train-samples"} {
				if v, _ := megatron.ValueOf(s.Args, flag); v != "" {
					return phrase("the job asks for no GPU, and %s is for training", "作业没有申请 GPU，而 %s 用于训练", flag)
				}
			}
			return lang.Text{}
		},
	},
}

// givenScript returns the script if somebody named one, for a launcher that otherwise
// finds its program by itself.
func givenScript(script string) string {
	if script == job.TrainingProgram {
		return ""
	}
	return script
}

// noProgram reports a program that is not in the worktree, as far as this machine can
// tell.
func noProgram(c *ops.Call, s job.Spec, program string) lang.Text {
	if program == "" || s.Worktree == "" || !SharesFiles(c, s) || filepath.IsAbs(program) || inContainer(s) {
		return lang.Text{}
	}
	if _, err := os.Stat(s.Worktree); err != nil {
		return lang.Text{} // reported elsewhere
	}
	if _, err := os.Stat(filepath.Join(s.Worktree, program)); !errors.Is(err, fs.ErrNotExist) {
		return lang.Text{}
	}
	return lang.Text{EN: program + " is not in the worktree", ZH: "工作树中没有 " + program}
}

func (r documentRule) problem(said lang.Text, l lang.Lang) rules.Problem {
	p := rules.Problem{Rule: r.id, Severity: r.severity, Field: r.field, Message: said.In(l), Fix: r.fix.In(l), Effect: rules.PerformanceOnly}
	if row, ok := rules.Explain(r.id); ok {
		p.Severity, p.Fix, p.Source = cmp.Or(p.Severity, row.Severity), cmp.Or(p.Fix, row.Remedy.In(l)), row.Source
	}
	return p
}

var nodeLocalRoots = []string{"/tmp", "/var/tmp", "/dev/shm", "/local", "/scratch/local"}

func nodeLocal(p string) bool {
	for dir := filepath.Clean(p); dir != "/" && dir != "."; dir = filepath.Dir(dir) {
		if slices.Contains(nodeLocalRoots, dir) {
			return true
		}
	}
	return false
}

// SharesFiles reports whether the job's paths mean the same on this machine: the back
// end runs here, or submits from here as this person.
func SharesFiles(c *ops.Call, s job.Spec) bool {
	cl, err := c.Cluster(s.Cluster)
	if err != nil || cl.Kind() != "local" && cl.Kind() != "cli" {
		return false
	}
	// An agent on another machine must not learn which folders exist.
	return c.Who.Surface != ops.MCPHTTP || c.MayRead != nil && c.MayRead(s.Worktree) == nil
}

// oneHost reports whether all nodes of the job are this machine.
func oneHost(c *ops.Call, s job.Spec) bool {
	cl, err := c.Cluster(s.Cluster)
	return err == nil && cl.Kind() == "local"
}

// Surroundings returns the problems that the documents' rules find in s.
func Surroundings(c *ops.Call, s job.Spec) []rules.Problem {
	var ps []rules.Problem
	for _, r := range documentRules() {
		said := r.check(c, s)
		if said.EN == "" {
			continue
		}
		ps = append(ps, r.problem(said, c.Lang))
	}
	return ps
}

// inContainer reports whether the job's program runs in a container.
func inContainer(s job.Spec) bool {
	return s.Container.Runtime != job.NoContainer && s.Container.Runtime != ""
}
