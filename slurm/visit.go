package slurm

import (
	"cmp"
	"math"
	"strconv"
	"strings"
	"time"
)

// A Visit is a short job of this program on named nodes, to inspect or clean them: a
// command that runs once on each node.
type Visit struct {
	Nodes     []string
	Partition string // empty: the default partition
	Argv      []string
	// GPUs and CPUs are per node, Memory is a value of --mem. The zero values mean no
	// GPU, one CPU and 100M.
	GPUs   int
	CPUs   int
	Memory string
	// Limit bounds the time to get the nodes and to run; zero means one minute.
	Limit time.Duration
}

// Args returns the arguments of srun for v. The visit asks for very little so that it
// fits beside other jobs, and gives up after 20 seconds instead of queueing.
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
