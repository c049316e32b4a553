package slurm

import (
	"cmp"
	"math"
	"strconv"
	"strings"
	"time"
)

// A Visit is a short job of its own on named nodes, to look at them or to tidy
// up: a command that runs once on each.
type Visit struct {
	Nodes     []string
	Partition string // empty: the default one
	Argv      []string
	// GPUs and CPUs are of each node, Memory as --mem has it; zero: none of the
	// first, one, 100M.
	GPUs   int
	CPUs   int
	Memory string
	// Limit is how long it may take to get the nodes and to run; zero: one minute.
	Limit time.Duration
}

// Args is the command line of v after "srun". It asks for next to nothing, so
// that it fits beside other jobs, and does not queue.
func (v Visit) Args() []string {
	n := strconv.Itoa(len(v.Nodes))
	limit := max(2, int(math.Ceil(v.Limit.Minutes()))+1)
	args := []string{
		"--job-name=megatron-ops-visit", "--immediate=20", "--time=" + strconv.Itoa(limit), "--unbuffered", "--input=none",
		"--nodes=" + n, "--ntasks=" + n, "--ntasks-per-node=1", "--cpus-per-task=" + strconv.Itoa(max(1, v.CPUs)),
		"--mem=" + cmp.Or(v.Memory, "100M"), "--nodelist=" + strings.Join(v.Nodes, ","),
	}
	if v.GPUs > 0 {
		args = append(args, "--gpus-per-node="+strconv.Itoa(v.GPUs))
	}
	if v.Partition != "" {
		args = append(args, "--partition="+v.Partition)
	}
	return append(append(args, "--"), v.Argv...)
}
