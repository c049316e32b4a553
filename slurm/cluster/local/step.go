package local

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/hostlist"
)

// A step holds the options of one srun.
type step struct {
	Nodes        []string
	NTasks       int
	TasksPerNode int
	Argv         []string
	Label        bool
	KillOnBad    bool
	Wait         time.Duration // 0: without limit
	Output       string
	Error        string
	Input        string
	Chdir        string
	Export       string
	GPUs         int // -1: as many as the job has
	CPUs         int
	Limit        time.Duration
	Quiet        bool
	nodesSet     int
}

// stepFlags are srun's options without a value that have a meaning here.
var stepFlags = map[string]func(*step){
	"label":            func(s *step) { s.Label = true },
	"kill-on-bad-exit": func(s *step) { s.KillOnBad = true },
	"quiet":            func(s *step) { s.Quiet = true },
}

// cannotIgnore reports whether a step without that option would be another step: one
// outside of its container, of one program in place of several, or one that starts where
// srun itself would only answer.
func cannotIgnore(option string) bool {
	return strings.HasPrefix(option, "container-") || slices.Contains([]string{"multi-prog", "test-only", "help", "usage", "version"}, option)
}

// stepValues set the fields of a step for srun's options with a value.
var stepValues = map[string]func(s *step, v string) error{
	"ntasks":          count("ntasks", func(s *step) *int { return &s.NTasks }),
	"ntasks-per-node": count("ntasks-per-node", func(s *step) *int { return &s.TasksPerNode }),
	"cpus-per-task":   count("cpus-per-task", func(s *step) *int { return &s.CPUs }),
	"nodes": func(s *step, v string) error {
		v, _, _ = strings.Cut(v, "-")
		return count("nodes", func(s *step) *int { return &s.nodesSet })(s, v)
	},
	"nodelist": func(s *step, v string) error {
		nodes, err := hostlist.Expand(v)
		if err != nil {
			return err
		}
		for i, node := range nodes {
			n, ok := nodeNumber(node)
			if !ok {
				return slurm.Sayf("Invalid node name specified: %s", node)
			}
			nodes[i] = nodeName(n)
		}
		s.Nodes = nodes
		return nil
	},
	"wait": func(s *step, v string) error {
		n, err := strconv.Atoi(v)
		s.Wait = time.Duration(n) * time.Second
		return err
	},
	"output": func(s *step, v string) error { s.Output = v; return nil },
	"error":  func(s *step, v string) error { s.Error = v; return nil },
	"input":  func(s *step, v string) error { s.Input = v; return nil },
	"chdir":  func(s *step, v string) error { s.Chdir = v; return nil },
	"export": func(s *step, v string) error { s.Export = v; return nil },
	"gres": func(s *step, v string) error {
		if v == "none" {
			s.GPUs = 0
			return nil
		}
		return gpusOf(v, &s.GPUs)
	},
	"gpus-per-node": func(s *step, v string) (err error) { s.GPUs, err = gpuCount(v); return err },
	"gpus-per-task": func(s *step, v string) (err error) { s.GPUs, err = gpuCount(v); return err },
	"time": func(s *step, v string) error {
		d, ok := slurm.ParseDuration(v)
		if !ok {
			return slurm.Sayf("Invalid --time specification")
		}
		s.Limit = d
		return nil
	},
}

// readStep reads the command line of an srun inside a job that holds the allocated
// nodes.
func readStep(args []string, env environ, allocated []string) (step, error) {
	s := step{Export: "ALL", GPUs: -1}
	for i := 0; i < len(args); i++ {
		arg := args[i]
		if arg == "--" {
			s.Argv = args[i+1:]
			break
		}
		if !strings.HasPrefix(arg, "-") || arg == "-" {
			s.Argv = args[i:]
			break
		}
		name, value, has := strings.Cut(strings.TrimPrefix(arg, "--"), "=")
		var takes slurm.Argument
		var known bool
		if strings.HasPrefix(arg, "--") {
			name, takes, known = slurm.StepOption(name)
		} else {
			name, takes = slurm.StepLetter(arg[1])
			known = name != ""
			value, has = arg[2:], len(arg) > 2
			if takes == slurm.NoArgument && has {
				// Flags may be joined, as in -lu.
				args = slices.Insert(slices.Clone(args), i+1, "-"+value)
			}
		}
		read, set := stepValues[name], stepFlags[name]
		if !known || cannotIgnore(name) {
			return s, slurm.Sayf("unrecognized option '%s'", arg)
		}
		if set != nil && value != "0" {
			set(&s)
		}
		if takes == slurm.NeedsArgument && !has {
			if i++; i == len(args) {
				return s, slurm.Sayf("option '%s' requires an argument", arg)
			}
			value = args[i]
		}
		if read != nil {
			if err := read(&s, value); err != nil {
				return s, err
			}
		}
	}
	if len(s.Argv) == 0 {
		return s, slurm.Sayf("fatal: No command given to execute.")
	}
	return s, s.place(env, allocated)
}

// place determines the number of tasks and their nodes, first from the options and then
// from the job's variables.
func (s *step) place(env environ, allocated []string) error {
	fromJob := func(name string) int {
		n, _ := strconv.Atoi(env[name])
		return n
	}
	s.TasksPerNode = cmp.Or(s.TasksPerNode, fromJob("SLURM_NTASKS_PER_NODE"))
	for _, node := range s.Nodes {
		if !slices.Contains(allocated, node) {
			return slurm.Sayf("Unable to create step for job %s: Requested nodes not in the allocation: %s", env["SLURM_JOB_ID"], node)
		}
	}
	if s.nodesSet > len(allocated) {
		return slurm.Sayf("Only allocated %d nodes asked for %d", len(allocated), s.nodesSet)
	}
	explicit := s.NTasks > 0
	want := len(allocated)
	switch {
	case s.nodesSet > 0:
		want = s.nodesSet
	case len(s.Nodes) > 0:
		want = len(s.Nodes)
	case explicit && s.TasksPerNode > 0:
		want = min(want, int(math.Ceil(float64(s.NTasks)/float64(s.TasksPerNode))))
	case explicit:
		want = min(want, s.NTasks)
	}
	for _, node := range allocated {
		if len(s.Nodes) < want && !slices.Contains(s.Nodes, node) {
			s.Nodes = append(s.Nodes, node)
		}
	}
	switch narrowed := len(s.Nodes) < len(allocated); {
	case explicit:
	case s.TasksPerNode > 0:
		s.NTasks = s.TasksPerNode * len(s.Nodes)
	case !narrowed && fromJob("SLURM_NTASKS") > 0:
		s.NTasks = fromJob("SLURM_NTASKS")
	default:
		s.NTasks = len(s.Nodes)
	}
	if s.NTasks < len(s.Nodes) {
		s.Nodes = s.Nodes[:s.NTasks]
	}
	if s.GPUs < 0 {
		s.GPUs = fromJob("SLURM_GPUS_ON_NODE")
	}
	return nil
}

// A task is one process of a step.
type task struct {
	Proc, Node, Local int
	Name              string // the node's name
}

// tasks distributes the step's tasks in blocks: it fills the nodes in order, as evenly
// as possible.
func (s step) tasks() []task {
	counts := make([]int, len(s.Nodes))
	left := s.NTasks
	for i := range counts {
		n := int(math.Ceil(float64(left) / float64(len(s.Nodes)-i)))
		if s.TasksPerNode > 0 && s.TasksPerNode*len(s.Nodes) >= s.NTasks {
			n = min(s.TasksPerNode, left)
		}
		counts[i] = n
		left -= n
	}
	var all []task
	for node, n := range counts {
		for local := range n {
			all = append(all, task{len(all), node, local, s.Nodes[node]})
		}
	}
	return all
}
