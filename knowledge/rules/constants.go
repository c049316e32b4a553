package rules

import (
	"fmt"

	"github.com/megatron-ops/megatron-ops/internal/lang"
)

// A Config holds the values that determine a launch's constants.
type Config struct {
	Nodes, GPUsPerNode int
	TP, CP             int
	// Arch is the major number of the CUDA compute capability; 0 means unknown.
	Arch         int
	TorchFSDP2   bool
	MegatronFSDP bool
	MoEOverlap   bool
}

// A Constant is one fixed value of a launch. It is stated before any script is
// shown.
type Constant struct {
	Name   string    `json:"name"`
	Value  string    `json:"value"`
	Reason lang.Text `json:"reason"`
	Source string    `json:"source"`
}

// titles are the names of constants that are words and not a variable or a flag.
var titles = map[string]lang.Text{
	"worktree":       {EN: "worktree", ZH: "工作树"},
	"tasks per node": {EN: "tasks per node", ZH: "每节点任务数"},
	"launch command": {EN: "launch command", ZH: "启动命令"},
}

// Title returns the constant's name for a reader.
func (k Constant) Title() lang.Text {
	if t, ok := titles[k.Name]; ok {
		return t
	}
	return lang.Text{EN: k.Name, ZH: k.Name}
}

const skillSource = "skill run-on-slurm"

// Constants returns the constants of a configuration, in the order in which a
// launch script needs them. An answer about a launch states them first.
func Constants(c Config) []Constant {
	count := func(n int, variable string) string {
		if n > 0 {
			return fmt.Sprint(n)
		}
		return variable
	}
	world := "$((NNODES * GPUS_PER_NODE))"
	if c.Nodes > 0 && c.GPUsPerNode > 0 {
		world = fmt.Sprint(c.Nodes * c.GPUsPerNode)
	}
	value, reason := Connections(c.Arch, c.TP, c.CP, c.TorchFSDP2, c.MegatronFSDP, c.MoEOverlap)
	if c.Arch == 0 && value == "1" {
		reason = t(reason.EN+" (not needed on Blackwell, where it does no harm)", reason.ZH+"（Blackwell 不需要，但设置也无害）")
	}
	return []Constant{
		{"worktree", "cd <worktree>", t("every node imports the same code: a work tree on a shared file system, entered before srun", "每个节点导入同一份代码：工作树放在共享文件系统上，并在 srun 之前进入"), skillSource},
		{"tasks per node", "--ntasks-per-node=1", t("the launcher forks one process for each GPU itself; more tasks would start it several times on a node", "启动器自己为每张 GPU 派生一个进程；任务更多会在同一节点上重复启动"), skillSource},
		{"launch command", "srun uv run python -m torch.distributed.run", t("not bare torchrun: it may belong to a Python that does not see the work tree's .venv", "不用裸 torchrun：它可能属于另一个看不到工作树 .venv 的 Python"), skillSource},
		{"MASTER_ADDR", `$(set +o pipefail; scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n1)`, t("the first node of the allocation, expanded to a real host name, on the batch host and not inside a container", "取分配中的第一个节点，展开为真实主机名；在批处理节点上求值，而不是在容器里"), skillSource},
		{"MASTER_PORT", "29500", t("one port for the whole job; another one where two jobs share a host", "整个作业共用一个端口；两个作业同在一台主机时要换一个"), skillSource},
		{"NNODES", count(c.Nodes, "$SLURM_NNODES"), t("equal to the allocation, or the rendezvous waits for nodes that never come", "与分配一致，否则会合会一直等待不存在的节点"), skillSource},
		{"GPUS_PER_NODE", count(c.GPUsPerNode, "$SLURM_GPUS_ON_NODE"), t("equal to the GPUs that Slurm gives on each node", "与 Slurm 在每个节点上给的 GPU 数一致"), skillSource},
		{"WORLD_SIZE", world, t("NNODES × GPUS_PER_NODE, never SLURM_NTASKS: with one task per node that is the number of nodes", "等于 NNODES × GPUS_PER_NODE，绝不是 SLURM_NTASKS：每节点一个任务时后者只是节点数"), skillSource},
		{"--nnodes", "--nnodes=$NNODES", t("how many launchers meet", "有多少个启动器会合"), skillSource},
		{"--nproc-per-node", "--nproc-per-node=$GPUS_PER_NODE", t("how many ranks each launcher forks", "每个启动器派生多少个 rank"), skillSource},
		{"--node-rank", `--node-rank=$SLURM_NODEID`, t("evaluated on each node: in single quotes under srun, or every node believes that it is node 0", "在每个节点上求值：srun 里用单引号，否则每个节点都以为自己是 0 号"), skillSource},
		{"--master-addr", "--master-addr=$MASTER_ADDR", t("the launcher does not read MASTER_ADDR from the environment", "启动器不会从环境变量读取 MASTER_ADDR"), skillSource},
		{"--master-port", "--master-port=$MASTER_PORT", t("the launcher does not read MASTER_PORT from the environment", "启动器不会从环境变量读取 MASTER_PORT"), skillSource},
		{connections, value, reason, inArgs + "1477"},
	}
}
