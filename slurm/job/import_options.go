package job

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/slurm/script"
)

// renderedOptions are the options that Render chooses by itself, so that the importer
// does not keep them.
var renderedOptions = strings.Fields("ntasks open-mode export chdir parsable wait-all-nodes")

func (m *importer) options(options script.Options) {
	texts := m.texts()
	for _, o := range options {
		value, literal := o.Value.Literal()
		field, known := texts[o.Name]
		switch {
		case o.Has && !literal:
			m.note(o.Line, "--"+o.Name+"="+o.Text(), "the file does not show this value", "文件没有给出该值")
		case known && strings.HasPrefix(o.Name, "mem"):
			*field = memoryUnit.ReplaceAllString(value, "$1")
		case o.Name == "mail-type" && *field != "":
			*field += "," + value // of this option, sbatch takes all and not the last
		case known:
			*field = value
		case o.Name == "nodes":
			m.nodes(o, value)
		case o.Name == "tres-per-node" && tresGPU.MatchString(value):
			o.Name = "gres" // has the same effect
			m.gpus(o, tresGPU.ReplaceAllString(value, "gpu"))
		case o.Name == "gpus-per-node" || o.Name == "gres" || o.Name == "gpus" || o.Name == "gpus-per-task":
			m.gpus(o, value)
		case o.Name == "cpus-per-task":
			m.spec.CPUsPerTask = m.perNode(wholeNumber(value))
		case o.Name == "segment":
			m.spec.Segment = wholeNumber(value)
		case o.Name == "nice" && o.Has:
			m.spec.Nice = wholeNumber(value)
		case o.Name == "exclusive" && o.Has:
			m.keepOption(o, value)
		case o.Name == "exclusive":
			m.spec.Exclusive = new(true)
		case o.Name == "requeue" || o.Name == "no-requeue":
			m.spec.Requeue = new(o.Name == "requeue")
		case o.Name == "output" || o.Name == "error":
			m.patterns = append(m.patterns, value)
		case o.Name == "open-mode" && strings.HasPrefix(value, "t"):
			m.note(o.Line, "--open-mode="+value, "the logs are appended to, so that a restart does not delete what the run before it wrote", "日志改为追加写入，重启不会清掉上一次的输出")
		case o.Name == "ntasks-per-node":
			if value != "1" {
				m.note(o.Line, "--ntasks-per-node="+value, "one task a node: the launcher starts the ranks", "每个节点一个任务：rank 由启动器创建")
			}
		case !slices.Contains(renderedOptions, o.Name):
			m.keepOption(o, value)
		}
	}
}

// memoryUnit matches a unit of memory written with B, as 64GB, which Slurm takes for 64G.
var memoryUnit = regexp.MustCompile(`(?i)([KMGT])B$`)

// keepOption adds an option that has no field of its own to the field sbatch.
func (m *importer) keepOption(o script.Option, value string) {
	m.spec.Sbatch = append(m.spec.Sbatch, "--"+o.Name+valueSuffix(o, value))
}

// valueSuffix returns "=value" if the script gives the option a value, else "".
func valueSuffix(o script.Option, value string) string {
	if o.Has {
		return "=" + value
	}
	return ""
}

// wholeNumber returns the integer in s, or nil if s is not an integer.
func wholeNumber(s string) *int {
	n, err := strconv.Atoi(strings.TrimSpace(s))
	if err != nil {
		return nil
	}
	return &n
}

// perNode converts a request per task to a request per node: a rendered script has
// only one task on each node, which needs the resources of all tasks there.
func (m *importer) perNode(n *int) *int {
	if tasks, known := m.job.TasksPerNode(m.job.Options); known && n != nil {
		return new(*n * max(tasks, 1))
	}
	return n
}

func (m *importer) nodes(o script.Option, value string) {
	m.spec.Nodes = wholeNumber(value)
	if lo, _, isRange := strings.Cut(value, "-"); isRange {
		m.spec.Nodes = wholeNumber(lo)
		m.note(o.Line, "--nodes="+value, "the layout of the ranks needs one number of nodes: the smaller one is taken", "rank 布局需要确定的节点数：取较小值")
	}
}

var (
	gpuCount = lazy.New(`^(?:gpu:)?(?:([0-9]*[A-Za-z][A-Za-z0-9_.-]*):)?([0-9]+)$`) // a kind may begin with a digit: 1080ti
	tresGPU  = lazy.New(`^gres[/:]gpu\b`)
)

// gpus reads a request for GPUs in any of its forms, and sets the GPUs per node.
func (m *importer) gpus(o script.Option, value string) {
	g := gpuCount.FindStringSubmatch(value)
	if g == nil || o.Name == "gres" && !strings.HasPrefix(value, "gpu:") {
		m.note(o.Line, "--"+o.Name+"="+value, "only GPUs of one kind are asked for", "只能申请一种 GPU")
		return
	}
	n, _ := strconv.Atoi(g[2])
	if o.Name == "gpus" {
		nodes := 1
		if given, _, ok := m.job.Nodes(); ok {
			nodes = max(1, given)
		}
		if n%nodes != 0 {
			m.note(o.Line, "--gpus="+value, "not the same number on every node", "各节点的 GPU 数不相同")
		}
		n /= nodes
	}
	if o.Name == "gpus-per-task" {
		n = *m.perNode(&n)
	}
	m.spec.GPUsPerNode = &n
	if o.Name == "gres" || o.Name == "gpus" {
		m.spec.GPURequest = o.Name
	}
	if g[1] != "" {
		m.spec.GPU = g[1]
	}
}

// withoutGPUs reports whether the file asks for no GPUs, for a program that is no training: Slurm gives none, but in
// a partition that is given by whole nodes.
func (m *importer) withoutGPUs(st *script.Start) bool {
	return m.spec.GPUsPerNode == nil && len(m.spec.Components) == 0 && m.job.Batch() && !st.Launcher.Forks() && !m.namesGPUs(st) &&
		(m.cpuPlace() || !m.job.Options.Has("exclusive") && !m.job.Options.Has("partition", "constraint", "qos", "nodelist", "reservation") && !trains(st))
}

// groupVariables are variables of a process group: a program that has one is a rank of it.
var groupVariables = strings.Fields("RANK LOCAL_RANK WORLD_SIZE MASTER_ADDR CUDA_DEVICE_MAX_CONNECTIONS")

// wholeNodes reports whether st starts ranks on nodes that are given whole: nothing names GPUs, and
// the program is a training and not one for CPUs, such as the tokenization of a dataset.
func (m *importer) wholeNodes(st *script.Start) bool {
	if m.spec.GPUsPerNode != nil || len(m.spec.Components) > 0 || m.cpuPlace() || m.namesGPUs(st) {
		return false
	}
	return trains(st)
}

func trains(st *script.Start) bool {
	return ownProgram(st.Program.Text()) || slices.ContainsFunc(groupVariables, func(name string) bool {
		_, ok := st.Env.Env(name)
		return ok
	})
}

// cpuPlace reports whether the job asks for a partition, or the like, that is named after CPUs.
func (m *importer) cpuPlace() bool {
	return slices.ContainsFunc(m.job.Options, func(o script.Option) bool {
		return slices.Contains([]string{"partition", "constraint", "qos", "account"}, o.Name) && strings.Contains(strings.ToLower(o.Text()), "cpu") &&
			!strings.Contains(strings.ToLower(o.Text()), "gpu")
	})
}

// namesGPUs reports whether an option of the job or of the step of st speaks of GPUs.
func (m *importer) namesGPUs(st *script.Start) bool {
	given := slices.Clone(m.job.Options)
	if st.Step != nil {
		given = append(given, st.Step.Options...)
	}
	return slices.ContainsFunc(given, func(o script.Option) bool {
		return strings.Contains(o.Name, "gpu") || o.Name == "gres" || strings.HasPrefix(o.Name, "tres-")
	})
}
