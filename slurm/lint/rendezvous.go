package lint

import (
	"slices"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/knowledge/rules"
	"github.com/megatron-ops/megatron-ops/slurm/script"
)

// rendezvousRules are about how the workers of several nodes find one another.
var rendezvousRules = []Rule{
	{
		ID: "missing-node-rank", Severity: rules.Error, check: missingNodeRank,
		Why: lang.Text{EN: "a static rendezvous on several nodes without a node rank: every node is rank 0", ZH: "多节点静态 rendezvous 没有给出节点序号：每个节点都是 rank 0"},
		Fix: lang.Text{
			EN: `add --node-rank=$SLURM_NODEID, expanded in the task (single quotes or \$)`,
			ZH: `加上 --node-rank=$SLURM_NODEID，并让它在任务里展开（单引号或 \$）`,
		},
	},
	{
		ID: "missing-rendezvous", Severity: rules.Error, check: missingRendezvous,
		Why: lang.Text{
			EN: "the launcher runs on several nodes without a master address or a rendezvous endpoint; it does not read MASTER_ADDR and falls back to 127.0.0.1",
			ZH: "多节点启动时没有给 launcher 主节点地址或 rendezvous endpoint；它不读取 MASTER_ADDR，默认使用 127.0.0.1",
		},
		Fix: lang.Text{EN: "pass --master-addr=$MASTER_ADDR --master-port=$MASTER_PORT", ZH: "传入 --master-addr=$MASTER_ADDR --master-port=$MASTER_PORT"},
	},
	{
		ID: "master-addr", Severity: rules.Error, check: masterAddr,
		Why: lang.Text{
			EN: "the other nodes cannot reach rank 0 at this address: it must be one name, the first node of the allocation, the same for every task",
			ZH: "其他节点无法通过这个地址找到 rank 0：它必须是分配到的第一个节点的主机名，并且所有任务相同",
		},
		Fix: lang.Text{
			EN: `MASTER_ADDR=$(set +o pipefail; scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n1), set in the batch shell`,
			ZH: `在批处理 shell 中设置 MASTER_ADDR=$(set +o pipefail; scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n1)`,
		},
	},
	{
		ID: "master-port", Severity: rules.Error, check: masterPort,
		Why: lang.Text{
			EN: "the port is refused (below 1024 or above 65535), or differs from task to task so that they wait for one another",
			ZH: "端口不可用（小于 1024 或大于 65535），或各任务得到的端口不同而互相等待",
		},
		Fix: lang.Text{
			EN: "set one port between 1024 and 65535 before srun, such as MASTER_PORT=$((20000 + SLURM_JOB_ID % 20000))",
			ZH: "在 srun 之前设置一个 1024–65535 之间的端口，例如 MASTER_PORT=$((20000 + SLURM_JOB_ID % 20000))",
		},
	},
	{
		ID: "independent-groups", Severity: rules.Error, check: independentGroups,
		Why: lang.Text{EN: "every node trains in a separate group, and they overwrite one another's checkpoints", ZH: "每个节点各自成组、单独训练，并互相覆盖检查点"},
		Fix: lang.Text{
			EN: "one group: --nnodes=$SLURM_NNODES with a rendezvous, without --standalone",
			ZH: "组成一个整体：去掉 --standalone，使用 --nnodes=$SLURM_NNODES 和 rendezvous 参数",
		},
	},
	{
		ID: "launcher-nested", Severity: rules.Error, check: launcherNested,
		Why: lang.Text{
			EN: "this command starts processes on all nodes by itself, and srun starts it on every node: the job runs once per node",
			ZH: "这个启动器自己会到达所有节点，而 srun 又在每个节点上各启动一次：整个作业会被重复启动",
		},
		Fix: lang.Text{EN: "start it once, without srun", ZH: "只启动一次，不要用 srun"},
	},
	{
		ID: "rank-env-missing", Severity: rules.Error, check: rankEnvMissing,
		Why: lang.Text{
			EN: "several tasks run a torch program without a launcher and without RANK, WORLD_SIZE and LOCAL_RANK: unless the program reads SLURM_PROCID itself, every process acts as rank 0 of 1",
			ZH: "直接用 srun 启动多个 torch 进程，却没有设置 RANK、WORLD_SIZE、LOCAL_RANK：除非程序自己读取 SLURM_PROCID，否则每个进程都以为自己是唯一的 rank 0",
		},
		Fix: lang.Text{
			EN: "start it through a wrapper: RANK=$SLURM_PROCID WORLD_SIZE=$SLURM_NTASKS LOCAL_RANK=$SLURM_LOCALID, set in the task",
			ZH: "在任务内设置：RANK=$SLURM_PROCID WORLD_SIZE=$SLURM_NTASKS LOCAL_RANK=$SLURM_LOCALID",
		},
	},
}

// onSeveralNodes reports whether srun certainly starts s on several nodes.
func (c *checker) onSeveralNodes(s *script.Start) bool {
	if s.Step == nil || s.Remote != nil {
		return false
	}
	n, ok := c.nodesOf(s.Command)
	return ok && n > 1
}

// hasEnv reports whether the environment of s has one of the variables.
func hasEnv(s *script.Start, names ...string) bool {
	return slices.ContainsFunc(names, func(n string) bool {
		_, ok := s.Env.Env(n)
		return ok
	})
}

// singleNode reports whether the launcher's flags make it a group of one node.
func (c *checker) singleNode(s *script.Start) bool {
	return hasFlag(s, "standalone") || c.writtenNodes(s) == 1
}

// dynamic reports whether the rendezvous backend assigns the ranks.
func dynamic(s *script.Start) bool {
	v, has := s.Flag("rdzv-backend")
	text := v.Text()
	if !has {
		if e, ok := s.Env.Env("PET_RDZV_BACKEND"); ok {
			text, has = e.String(), true
		}
	}
	return has && text != "static"
}

// reportGroups reports each launcher that forms a group over several nodes, and for which
// lacking returns true.
func (c *checker) reportGroups(lacking func(*script.Start) bool) {
	for _, s := range c.job.Starts {
		if c.onSeveralNodes(s) && !s.FlagsUnknown && !c.singleNode(s) && lacking(s) {
			c.report(s.Line, string(s.Launcher))
		}
	}
}

func missingNodeRank(c *checker) {
	c.reportGroups(func(s *script.Start) bool {
		switch {
		case s.Launcher.Elastic():
			address := hasFlag(s, "master-addr", "rdzv-endpoint", "rdzv-conf") || hasEnv(s, "PET_MASTER_ADDR", "PET_RDZV_ENDPOINT")
			return address && !dynamic(s) && !hasFlag(s, "node-rank") && !hasEnv(s, "GROUP_RANK", "PET_NODE_RANK")
		case s.Launcher == script.Accelerate:
			return hasFlag(s, "main-process-ip", "num-machines") && !hasFlag(s, "machine-rank", "config-file") && !dynamic(s)
		}
		return s.Launcher == script.DeepSpeed && hasFlag(s, "no-ssh") && !hasFlag(s, "node-rank")
	})
}

func missingRendezvous(c *checker) {
	c.reportGroups(func(s *script.Start) bool {
		if s.Launcher.Elastic() {
			endpoint := hasFlag(s, "rdzv-endpoint") || hasEnv(s, "PET_RDZV_ENDPOINT")
			return !endpoint && (dynamic(s) || !hasFlag(s, "master-addr") && !hasEnv(s, "PET_MASTER_ADDR"))
		}
		return s.Launcher == script.Accelerate && hasFlag(s, "num-machines") && !hasFlag(s, "main-process-ip", "config-file", "deepspeed-hostfile")
	})
}

func independentGroups(c *checker) {
	for _, s := range c.job.Starts {
		if !c.onSeveralNodes(s) || !s.Launcher.Forks() {
			continue
		}
		if o, has := s.Flag("standalone"); has {
			c.report(o.Line, "--standalone")
			continue
		}
		if o, has := s.Flag("nnodes", "num-machines"); has {
			if n, ok := c.job.Int(o.Value); ok && n == 1 || o.Text() == "1:1" {
				c.report(o.Line, o.Given+"="+o.Text())
			}
			continue
		}
		address := hasFlag(s, "master-addr", "rdzv-endpoint")
		if s.Launcher.Elastic() && address && !s.FlagsUnknown && !hasEnv(s, "PET_NNODES") {
			c.report(s.Line, lang.Text{EN: "no --nnodes, which means one node", ZH: "没有 --nnodes，即只有一个节点"}.In(c.lang))
		}
		if s.Launcher == script.DeepSpeed && !s.FlagsUnknown && !hasFlag(s, "hostfile", "H", "no-ssh", "node-rank", "num-nodes", "launcher", "include") {
			c.report(s.Line, "deepspeed")
		}
	}
}

// multiNodeStarters are commands that start the program on all nodes by themselves.
var multiNodeStarters = []string{"mpirun", "mpiexec", "mpiexec.hydra", "orterun", "horovodrun", "pdsh", "clush"}

func launcherNested(c *checker) {
	for _, x := range c.job.Commands {
		if x.Step == nil || x.Trap || len(x.Args) == 0 || x.By == nil && x.Name() == "srun" {
			continue
		}
		if n, ok := c.tasks(x); !ok || n < 2 {
			continue
		}
		if slices.Contains(multiNodeStarters, x.Name()) || x.Name() == "ray" && len(x.Args) > 1 && x.Args[1].Text() == "up" {
			c.report(x.Line, x.Name())
		}
	}
	for _, s := range c.job.Starts {
		if s.Launcher != script.DeepSpeed || s.Step == nil || hasFlag(s, "no-ssh") {
			continue
		}
		if n, ok := c.tasks(s.Command); ok && n > 1 && hasFlag(s, "hostfile", "H", "num-nodes", "launcher") {
			c.report(s.Line, "deepspeed")
		}
	}
}

var (
	// slurmAware matches words of programs that read SLURM_* themselves or get their rank from MPI.
	slurmAware = lazy.New(`lightning|nemo|trainer\.|--launcher[ =]slurm|mmdet|mmengine|pl_|submitit|composer|litgpt|jax|slurm_launch|--dist-backend slurm|` +
		`hydra/launcher|open_clip|open_lm|open_flamingo|--deepspeed|mpi4py|horovod|tensorflow`)
	// saysSlurmAware matches words of a comment which says that the program reads SLURM_*.
	saysSlurmAware = lazy.New(`lightning|nemo|slurm_procid|slurmenvironment|reads? slurm|from slurm|slurm variables|slurm_\*|自己读取|读取 slurm|slurm ?变量`)
)

// slurmAware reports whether the program probably gets its rank from Slurm or MPI.
func (c *checker) slurmAware(s *script.Start) bool {
	words := strings.ToLower(programName(s) + " " + s.Program.Text() + " " + strings.Join(script.Texts(s.ProgramArgs), " "))
	return aroundMegatron(s) || slurmAware.MatchString(words) || saysSlurmAware.MatchString(words+"\n"+c.comments())
}

func rankEnvMissing(c *checker) {
	for _, s := range c.job.Starts {
		if s.Launcher != script.Python || s.Step == nil || s.Remote != nil || s.Trap || s.Subst || !training(s) {
			continue
		}
		n, ok := c.tasks(s.Command)
		if !ok || n < 2 || s.Sourced {
			continue
		}
		if s.Container != nil && (s.Container.Runtime == "pyxis" || s.Container.Runtime == "enroot") {
			continue // enroot's hook for PyTorch sets the variables
		}
		if _, has := s.ProgramFlag("--rank", "--node_rank", "--node-rank", "--global_rank", "--global-rank", "--local_rank", "--local-rank", "--world-size", "--world_size"); has {
			continue
		}
		per, _ := c.tasksPerNode(s.Command)
		if hasEnv(s, "RANK") && hasEnv(s, "WORLD_SIZE") && (per <= 1 || hasEnv(s, "LOCAL_RANK", "CUDA_VISIBLE_DEVICES")) {
			continue
		}
		if hasEnv(s, "LOCAL_RANK", "RANK") && unknownProgram(s) || c.slurmAware(s) {
			continue
		}
		if ofMegatron(s) {
			c.report(s.Line, s.Program.Text())
			continue
		}
		c.warn(s.Line, s.Program.Text()) // other programs may read SLURM_PROCID
	}
}

// unknownProgram reports whether the script does not show the program's name.
func unknownProgram(s *script.Start) bool { return s.Program.Value.Unknown() && programName(s) == "" }
