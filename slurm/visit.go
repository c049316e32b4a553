package slurm

import (
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
	// Limit is how long it may take to get the nodes and to run; zero: one minute.
	Limit time.Duration
}

// Args is the command line of v after "srun". It asks for next to nothing, so
// that it fits beside other jobs, and does not queue.
func (v Visit) Args() []string {
	n := strconv.Itoa(len(v.Nodes))
	args := []string{
		"--job-name=megatron-ops-visit", "--immediate=20", "--time=2", "--unbuffered", "--input=none",
		"--nodes=" + n, "--ntasks=" + n, "--ntasks-per-node=1", "--cpus-per-task=1", "--mem=100M", "--nodelist=" + strings.Join(v.Nodes, ","),
	}
	if v.Partition != "" {
		args = append(args, "--partition="+v.Partition)
	}
	return append(append(args, "--"), v.Argv...)
}
