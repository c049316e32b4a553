package local

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/cluster"
	"github.com/megatron-ops/megatron-ops/slurm/hostlist"
)

// ofJob names variables of a job: whole names, or prefixes that end in "_". Where this
// process runs inside a job, that job's variables must not reach the new one.
var ofJob = []string{"SLURM_", "SBATCH_", "SLURMD_", "CUDA_VISIBLE_DEVICES"}

// inherited returns the part of environ that a new job inherits.
func inherited(environ []string) []string {
	return slurm.WithoutVariables(cluster.JobEnviron(environ), ofJob)
}

// An environ is a set of environment variables by name.
type environ map[string]string

func environOf(entries []string) environ {
	e := environ{}
	for _, entry := range entries {
		name, value, _ := strings.Cut(entry, "=")
		e[name] = value
	}
	return e
}

func (e environ) entries() []string {
	all := make([]string, 0, len(e))
	for name, value := range e {
		all = append(all, name+"="+value)
	}
	slices.Sort(all)
	return all
}

// export applies --export=[ALL|NONE|NIL|NAME[=value],...].
func (e environ) export(list string) environ {
	if list == "" || list == "ALL" {
		return e
	}
	kept, all := environ{}, false
	for item := range strings.SplitSeq(list, ",") {
		name, value, has := strings.Cut(item, "=")
		switch {
		case item == "ALL":
			all = true
		case item == "NONE", item == "NIL", name == "":
		case has:
			kept[name] = value
		default:
			if v, ok := e[name]; ok {
				kept[name] = v
			}
		}
	}
	for k, v := range e {
		// The variables that Slurm itself sets are always exported.
		always := strings.HasPrefix(k, "SLURM_") || strings.HasPrefix(k, storeVar) || k == "PATH" || k == "HOME" || k == "USER"
		if _, set := kept[k]; !set && (all || always) {
			kept[k] = v
		}
	}
	return kept
}

// storeVar tells the stand-ins inside a job the directory of their cluster's state.
const storeVar = "MEGATRON_LOCAL_DIR"

// batchEnviron returns the environment of the batch script, which runs on the first
// node.
func batchEnviron(sub submission, rec record, s store, bin string) []string {
	r, j := sub.Request, rec.Job
	e := environOf(sub.Env).export(r.Export)
	id := cmp.Or(string(j.RawID), string(j.ID))
	set := func(name string, value any) { e[name] = fmt.Sprint(value) }

	set("PATH", bin+":"+e["PATH"])
	set(storeVar, s.dir)
	set("MASTER_PORT", rec.Port)
	if e["GLOO_SOCKET_IFNAME"] == "" && nodeAddress(1) != "127.0.0.1" {
		set("GLOO_SOCKET_IFNAME", "lo") // all nodes are this machine
	}
	set("SLURM_CLUSTER_NAME", "local")
	set("SLURM_JOB_ID", id)
	set("SLURM_JOBID", id)
	set("SLURM_JOB_NAME", j.Name)
	set("SLURM_JOB_PARTITION", j.Partition)
	set("SLURM_JOB_USER", j.User)
	set("SLURM_JOB_UID", os.Getuid())
	set("SLURM_SUBMIT_DIR", sub.Dir)
	set("SLURM_SUBMIT_HOST", "localhost")
	set("SLURM_JOB_NODELIST", hostlist.Compress(j.Nodes))
	set("SLURM_NODELIST", hostlist.Compress(j.Nodes))
	set("SLURM_JOB_NUM_NODES", len(j.Nodes))
	set("SLURM_NNODES", len(j.Nodes))
	set("SLURM_TASKS_PER_NODE", perNode(max(r.TasksPerNode, 1), len(j.Nodes)))
	set("SLURM_JOB_CPUS_PER_NODE", perNode(r.CPUsPerTask*max(r.TasksPerNode, 1), len(j.Nodes)))
	set("SLURM_CPUS_ON_NODE", r.CPUsPerTask*max(r.TasksPerNode, 1))
	set("SLURM_JOB_START_TIME", j.StartedAt.Unix())
	set("SLURM_NODEID", 0)
	set("SLURM_PROCID", 0)
	set("SLURM_LOCALID", 0)
	set("SLURM_TASK_PID", os.Getpid())
	set("SLURM_GTIDS", 0)
	set("SLURMD_NODENAME", j.Nodes[0])
	set("SLURM_TOPOLOGY_ADDR", j.Nodes[0])
	set("ENVIRONMENT", "BATCH")
	if r.TimeLimit > 0 {
		set("SLURM_JOB_END_TIME", j.StartedAt.Add(r.TimeLimit).Unix())
	}
	for name, value := range map[string]string{
		"SLURM_JOB_ACCOUNT": r.Account, "SLURM_JOB_QOS": r.QOS, "SLURM_JOB_DEPENDENCY": r.Dependency,
	} {
		if value != "" {
			e[name] = value
		}
	}
	if r.NTasks > 0 || r.TasksPerNode > 0 {
		set("SLURM_NTASKS", r.tasks())
		set("SLURM_NPROCS", r.tasks())
	}
	if r.TasksPerNode > 0 {
		set("SLURM_NTASKS_PER_NODE", r.TasksPerNode)
	}
	set("SLURM_CPUS_PER_TASK", r.CPUsPerTask)
	setGPUs(e, r.GPUsPerNode)
	if r.GPUsPerNode > 0 {
		set("SLURM_GPUS_PER_NODE", r.GPUsPerNode)
		set("SLURM_JOB_GPUS", gpuList(r.GPUsPerNode))
	}
	if j.Restarts > 0 {
		set("SLURM_RESTART_COUNT", j.Restarts)
	}
	if n := len(r.Array); n > 0 {
		_, element, _ := strings.Cut(string(j.ID), "_")
		set("SLURM_ARRAY_JOB_ID", j.ID.Array())
		set("SLURM_ARRAY_TASK_ID", element)
		set("SLURM_ARRAY_TASK_COUNT", n)
		set("SLURM_ARRAY_TASK_MIN", r.Array[0])
		set("SLURM_ARRAY_TASK_MAX", r.Array[n-1])
		if n > 1 {
			set("SLURM_ARRAY_TASK_STEP", r.Array[1]-r.Array[0])
		}
	}
	return e.entries()
}

// setGPUs sets the variables that tell a program its GPUs. Without GPUs it removes
// them, as Slurm does.
func setGPUs(e environ, n int) {
	if n == 0 {
		delete(e, "CUDA_VISIBLE_DEVICES")
		delete(e, "GPU_DEVICE_ORDINAL")
		delete(e, "SLURM_GPUS_ON_NODE")
		return
	}
	e["CUDA_VISIBLE_DEVICES"], e["GPU_DEVICE_ORDINAL"] = gpuList(n), gpuList(n)
	e["SLURM_GPUS_ON_NODE"] = strconv.Itoa(n)
}

func gpuList(n int) string {
	all := make([]string, n)
	for i := range all {
		all[i] = strconv.Itoa(i)
	}
	return strings.Join(all, ",")
}

// perNode writes a number that holds for each node in Slurm's form: "8(x2)".
func perNode(n, nodes int) string {
	if nodes == 1 {
		return strconv.Itoa(n)
	}
	return fmt.Sprintf("%d(x%d)", n, nodes)
}
