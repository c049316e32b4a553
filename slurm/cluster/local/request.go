package local

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// A request holds the options of a script's directives and of sbatch's arguments that
// have a meaning on this machine.
type request struct {
	Name             string
	Account          string
	Partition        string
	QOS              string
	Comment          string
	Nodes            int
	NTasks           int // 0: not given
	TasksPerNode     int // 0: not given
	CPUsPerTask      int
	GPUsPerNode      int
	GPUsPerTask      int
	TimeLimit        time.Duration // 0: none
	Begin            time.Time
	Hold             bool
	Requeue          bool
	Append           bool // --open-mode=append
	Dependency       string
	KillOnInvalidDep bool // cancels a job whose dependency can never be satisfied
	Output, Error    string
	Chdir            string
	Export           string
	Signal           slurm.SignalAhead
	Array            []int
	ArrayLimit       int
}

// readers set the fields of a request for the options that have a meaning here. Other
// options of sbatch are ignored.
var readers = map[string]func(r *request, v string) error{
	"job-name":  func(r *request, v string) error { r.Name = v; return nil },
	"account":   func(r *request, v string) error { r.Account = v; return nil },
	"partition": func(r *request, v string) error { r.Partition = v; return nil },
	"qos":       func(r *request, v string) error { r.QOS = v; return nil },
	"comment":   func(r *request, v string) error { r.Comment = v; return nil },
	"output":    func(r *request, v string) error { r.Output = v; return nil },
	"error":     func(r *request, v string) error { r.Error = v; return nil },
	"chdir":     func(r *request, v string) error { r.Chdir = v; return nil },
	"export":    func(r *request, v string) error { r.Export = v; return nil },
	"kill-on-invalid-dep": func(r *request, v string) error {
		if v != "yes" && v != "no" {
			return slurm.Sayf("Invalid --kill-on-invalid-dep specification")
		}
		r.KillOnInvalidDep = v == "yes"
		return nil
	},
	"hold":            func(r *request, _ string) error { r.Hold = true; return nil },
	"requeue":         func(r *request, _ string) error { r.Requeue = true; return nil },
	"no-requeue":      func(r *request, _ string) error { r.Requeue = false; return nil },
	"nodes":           readNodes,
	"ntasks":          count("ntasks", func(r *request) *int { return &r.NTasks }),
	"ntasks-per-node": count("ntasks-per-node", func(r *request) *int { return &r.TasksPerNode }),
	"cpus-per-task":   count("cpus-per-task", func(r *request) *int { return &r.CPUsPerTask }),
	"gpus-per-node":   func(r *request, v string) (err error) { r.GPUsPerNode, err = gpuCount(v); return err },
	"gres":            func(r *request, v string) error { return gpusOf(v, &r.GPUsPerNode) },
	"gpus": func(r *request, v string) error {
		n, err := gpuCount(v)
		r.GPUsPerNode = -n // negative: deriveSizes divides it among the nodes
		return err
	},
	"gpus-per-task": func(r *request, v string) (err error) { r.GPUsPerTask, err = gpuCount(v); return err },
	"open-mode": func(r *request, v string) error {
		r.Append = strings.HasPrefix(v, "a")
		return nil
	},
	"time": func(r *request, v string) error {
		if slices.Contains([]string{"UNLIMITED", "infinite", "-1"}, v) {
			r.TimeLimit = 0
			return nil
		}
		d, ok := slurm.ParseDuration(v)
		if !ok {
			return slurm.Sayf("Invalid --time specification")
		}
		r.TimeLimit = d
		return nil
	},
	"begin": func(r *request, v string) (err error) {
		r.Begin, err = slurm.ParseBegin(v, time.Now())
		return err
	},
	"signal": func(r *request, v string) error {
		var ok bool
		if r.Signal, ok = slurm.ParseSignal(v); !ok || r.Signal.Reservation {
			return slurm.Sayf("Invalid --signal specification")
		}
		return nil
	},
	"dependency": readDependency,
	"array":      readArray,
}

// count returns a reader of a whole number from 1 on, for an option of a request or a step.
func count[T any](name string, field func(*T) *int) func(*T, string) error {
	return func(r *T, v string) error {
		n, err := strconv.Atoi(v)
		if err != nil || n < 1 {
			return slurm.Sayf("Invalid numeric value %q for --%s.", v, name)
		}
		*field(r) = n
		return nil
	}
}

// gpusOf sets gpus to the number of GPUs in a value of --gres, if it has any.
func gpusOf(gres string, gpus *int) (err error) {
	for item := range strings.SplitSeq(gres, ",") {
		if kind, n, _ := strings.Cut(strings.TrimPrefix(item, "gres:"), ":"); kind == "gpu" && err == nil {
			*gpus, err = gpuCount(n)
		}
	}
	return err
}

// gpuCount reads "8", "h100:8" or "", which means 1.
func gpuCount(v string) (int, error) {
	if _, n, typed := strings.Cut(v, ":"); typed {
		v = n
	}
	if v == "" {
		return 1, nil
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < 0 {
		return 0, slurm.Sayf("Invalid generic resource (gres) specification")
	}
	return n, nil
}

func readNodes(r *request, v string) error {
	low, _, _ := strings.Cut(v, "-")
	n, err := strconv.Atoi(low)
	if err != nil {
		return slurm.Sayf("%q is not a valid node count", v)
	}
	if n < 1 {
		return slurm.Sayf("Node count specification invalid")
	}
	r.Nodes = n
	return nil
}

// maxArray is Slurm's default MaxArraySize less one.
const maxArray = 1000

func readArray(r *request, v string) error {
	bad := slurm.Sayf("Invalid job array specification")
	list, limit, has := strings.Cut(v, "%")
	if has {
		n, err := strconv.Atoi(limit)
		if err != nil || n < 1 {
			return bad
		}
		r.ArrayLimit = n
	}
	var ok bool
	if r.Array, ok = slurm.ParseArray(list, maxArray); !ok {
		return bad
	}
	return nil
}

// newRequest reads the options of s for a machine that stands for that many nodes with
// gpus GPUs each.
func newRequest(s slurm.Submission, nodes, gpus int) (request, error) {
	r := request{Name: "sbatch", Partition: "local", CPUsPerTask: 1, Requeue: true, Export: "ALL"}
	if err := checkScript(s.Script); err != nil {
		return r, err
	}
	components, err := slurm.ReadComponents(s.Script)
	if err != nil {
		return r, err
	}
	if len(components) > 1 {
		return r, lang.Text{
			EN: "heterogeneous jobs are not supported by the embedded back end: it stands for nodes of one kind",
			ZH: "内置后端不支持异构作业：它只代表一种节点",
		}.Err()
	}
	directives := components[0]
	args, err := slurm.ReadOptions(s.Args)
	if err != nil {
		return r, err
	}
	for _, o := range append(directives, args...) {
		if read := readers[o.Name]; read != nil {
			if err := read(&r, o.Value); err != nil {
				return r, err
			}
		} else if _, _, known := slurm.BatchOption(o.Name); !known {
			return r, slurm.Sayf("unrecognized option '--%s'", o.Name)
		}
	}
	r.deriveSizes()
	if s.Name != "" && directives.Value("job-name") == "" && args.Value("job-name") == "" {
		r.Name = s.Name
	}
	if r.Nodes > nodes || r.GPUsPerNode > gpus {
		return r, slurm.Sayf("Requested node configuration is not available: this machine stands for %d nodes with %d GPUs each", nodes, gpus)
	}
	return r, nil
}

// deriveSizes sets the numbers that follow from other numbers.
func (r *request) deriveSizes() {
	if r.Nodes == 0 {
		r.Nodes = 1
		if r.TasksPerNode > 0 && r.NTasks > 0 {
			r.Nodes = int(math.Ceil(float64(r.NTasks) / float64(r.TasksPerNode)))
		}
	}
	if r.GPUsPerNode < 0 {
		r.GPUsPerNode = int(math.Ceil(float64(-r.GPUsPerNode) / float64(r.Nodes)))
	}
	if r.GPUsPerNode == 0 {
		r.GPUsPerNode = r.GPUsPerTask * int(math.Ceil(float64(r.tasks())/float64(r.Nodes)))
	}
}

// tasks returns the number of tasks that an srun without a number of its own starts.
func (r request) tasks() int {
	switch {
	case r.NTasks > 0:
		return r.NTasks
	case r.TasksPerNode > 0:
		return r.TasksPerNode * r.Nodes
	}
	return r.Nodes
}

// checkScript returns an error for a text that sbatch refuses as a script.
func checkScript(script string) error {
	switch {
	case strings.TrimSpace(script) == "":
		return slurm.Sayf("Batch script is empty!")
	case !strings.HasPrefix(script, "#!"):
		return slurm.Sayf("This does not look like a batch script. The first line must start with #! followed by the path to an interpreter")
	case strings.Contains(script, "\r\n"):
		return slurm.Sayf(`Batch script contains DOS line breaks (\r\n)`)
	case strings.Contains(script, "\x00"):
		return slurm.Sayf("The Slurm controller does not allow scripts that contain a NULL character '\\0'.")
	}
	return nil
}
