package lint

import (
	"path"
	"slices"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/knowledge/rules"
	"github.com/megatron-ops/megatron-ops/slurm/script"
)

// containerRules are about the parts of the host that a container can use.
var containerRules = []Rule{
	{
		ID: "scontrol-in-container", Severity: rules.Error, check: scontrolInContainer,
		Why: lang.Text{
			EN: "a Slurm command runs inside the container: the image has no Slurm client or no Slurm configuration",
			ZH: "在容器内执行 Slurm 命令：镜像里没有 Slurm 客户端或其配置",
		},
		Fix: lang.Text{
			EN: "compute it in the batch shell and pass the value in (export, or -e NAME for docker)",
			ZH: "在批处理 shell 里先算好，再传进容器（export，docker 用 -e NAME）",
		},
	},
	{
		ID: "container-env-missing", Severity: rules.Error, check: containerEnvMissing,
		Why: lang.Text{EN: "the container does not get this variable from outside: it is empty inside", ZH: "容器拿不到外面的这个变量：在容器里它是空的"},
		Fix: lang.Text{EN: "pass it with -e NAME (or --env-file)", ZH: "用 -e 变量名（或 --env-file）传入"},
	},
	{
		ID: "container-mount-missing", Severity: rules.Error, check: containerMountMissing,
		Why: lang.Text{
			EN: "this host path is used inside the container and no mount covers it: it is not found, or what is written there is lost",
			ZH: "容器里用到了这个宿主机路径，但没有挂载：要么找不到，要么写进去的内容会丢失",
		},
		Fix: lang.Text{EN: "add a mount for it", ZH: "为它加上挂载"},
	},
	{
		ID: "docker-privileged", Severity: rules.Warning, check: dockerPrivileged,
		Why: lang.Text{
			EN: "--privileged gives full rights on the host; GPUs and InfiniBand do not need it",
			ZH: "--privileged 会赋予宿主机的全部权限；使用 GPU 和 InfiniBand 并不需要它",
		},
		Fix: lang.Text{EN: "--gpus all --device /dev/infiniband --cap-add IPC_LOCK", ZH: "改为 --gpus all --device /dev/infiniband --cap-add IPC_LOCK"},
	},
	{
		ID: "docker-network-ipc", Severity: rules.Warning, check: dockerNetwork,
		Why: lang.Text{
			EN: "docker's own network breaks a rendezvous of several nodes, and its 64 MB of shared memory kill NCCL and data loaders",
			ZH: "docker 默认网络的 NAT 会破坏多节点 rendezvous，默认 64 MB 共享内存会让 NCCL 和 DataLoader 崩溃",
		},
		Fix: lang.Text{EN: "--network host --ipc=host", ZH: "加上 --network host --ipc=host"},
	},
}

var slurmClients = []string{"scontrol", "squeue", "sbatch", "sinfo", "sacct", "srun", "scancel", "sstat"}

func scontrolInContainer(c *checker) {
	for _, x := range c.job.Commands {
		if x.Container == nil || x.Env.Container == nil || !slices.Contains(slurmClients, x.Name()) {
			continue
		}
		if c.bringsSlurm(x.Container) {
			continue
		}
		c.report(x.Line, x.Name())
		return
	}
}

// bringsSlurm reports whether the container mounts Slurm's configuration or clients.
func (c *checker) bringsSlurm(box *script.Container) bool {
	return slices.ContainsFunc(box.Mounts, func(m script.Mount) bool {
		h := m.Host.String()
		return strings.Contains(h, "slurm") || strings.Contains(h, "scontrol") || strings.Contains(h, "munge")
	})
}

// trainingVariables matches variables of the host that a training in a container needs.
var trainingVariables = lazy.New(`^(CUDA_DEVICE_MAX_CONNECTIONS|NCCL_\w+|TORCH_NCCL_\w+|TORCH_DISTRIBUTED_\w+|GLOO_\w+|UCX_\w+|MASTER_ADDR|` +
	`MASTER_PORT|WORLD_SIZE|RANK|LOCAL_RANK|NODE_RANK|NVTE_\w+|WANDB_API_KEY|HF_TOKEN|HUGGING_FACE_HUB_TOKEN|HF_HOME|` +
	`PYTORCH_CUDA_ALLOC_CONF)$`)

// rendezvousNames are variables that only programs without a launcher read.
var rendezvousNames = []string{"MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "RANK", "LOCAL_RANK", "NODE_RANK"}

func containerEnvMissing(c *checker) {
	report := func(x *script.Command, line int, name string) {
		fix := lang.Text{EN: "-e " + name, ZH: "加上 -e " + name}
		if x != nil && slices.Contains(x.Assigns, "WORLD_SIZE") && slices.Contains(slurmCounts, name) {
			// The script uses WORLD_SIZE as the launcher's number of nodes, which is right.
			// But a program that reads WORLD_SIZE expects the number of ranks.
			fix.EN += ", and name it NNODES: it counts tasks or nodes, and the launcher sets WORLD_SIZE itself"
			fix.ZH += "，并改名为 NNODES：它数的是任务或节点，WORLD_SIZE 由启动器设置"
		}
		c.reportWithFix(line, "$"+name, fix)
	}
	for _, x := range c.job.Commands {
		box := x.Container
		if box == nil || box.PassesEnv || box.EnvFile || x.Shell.Container != box || x.Trap {
			continue
		}
		for _, e := range x.Expansions {
			_, passed := box.Env[e.Name]
			if e.Var != nil || e.Guarded || passed || c.setInside(x, e.Name) {
				continue
			}
			if e.Outer != nil || slurmOrRendezvous(e.Name) {
				report(x, e.Line, e.Name)
			}
		}
	}
	for _, s := range c.job.Starts {
		box := s.Container
		if box == nil || box.Command == nil || box.PassesEnv || box.EnvFile || !training(s) && s.Launcher != script.Wrapper {
			continue
		}
		for _, n := range box.Command.Env.Names() {
			if trainingVariables.MatchString(n) && !hasEnv(s, n) && (s.Launcher == script.Python || !slices.Contains(rendezvousNames, n)) {
				report(nil, box.Line, n)
			}
		}
	}
}

// slurmCounts are the variables in which Slurm sets the numbers of nodes and tasks.
var slurmCounts = []string{"SLURM_NNODES", "SLURM_JOB_NUM_NODES", "SLURM_NTASKS", "SLURM_NPROCS"}

func slurmOrRendezvous(name string) bool {
	return strings.HasPrefix(name, "SLURM_") || slices.Contains([]string{"MASTER_ADDR", "MASTER_PORT", "CUDA_DEVICE_MAX_CONNECTIONS", "NODE_RANK"}, name)
}

// setInside reports whether a shell in the container of x assigns name.
func (c *checker) setInside(x *script.Command, name string) bool {
	return slices.ContainsFunc(c.job.Assignments, func(a script.Assignment) bool { return a.Name == name && a.Shell.Container == x.Container })
}

// sharedRoots matches paths in top folders that are usually shared file systems.
var sharedRoots = lazy.New(`^/(home\w*|gpfs\w*|lustre\w*|fsx|efs|nfs\w*|share\w*|shared|scratch\w*|work\w{0,2}|works|proj\w*|projects?|p|` +
	`nas\w*|ceph\w*|beegfs|weka\w*|vast\w*|storage\w*|users?|fs\w*|lfs\w*|mnt|cluster|group\w*|store|archive|hpc\w*|` +
	`iopsstor|capstor|ssd\w*|data\d+|pfs|cfs|public|nvme\w*|raid|hdd\w*|blob|s3|afs|cpfs|oss|jfs|juicefs|volume\w*|` +
	`large_storage)(/|$)`)

// covered reports whether a mount of the container covers the path v.
func covered(box *script.Container, v script.Value) bool {
	p := path.Clean(v.String())
	for _, m := range box.Mounts {
		inside := path.Clean(m.Inside.String())
		if p == inside || strings.HasPrefix(p, strings.TrimRight(inside, "/")+"/") {
			return true
		}
	}
	return false
}

// defaultMount reports whether the runtime mounts p by default.
func (c *checker) defaultMount(box *script.Container, p string) bool {
	if box.Docker() {
		return false
	}
	if box.Runtime == "pyxis" || box.Runtime == "enroot" {
		_, home := box.Get("container-mount-home")
		return home && strings.HasPrefix(p, "/home") || strings.HasPrefix(p, "/tmp")
	}
	if _, has := box.Get("no-home", "contain", "c", "containall", "C", "no-mount"); has {
		return false
	}
	if strings.HasPrefix(p, "/home") || strings.HasPrefix(p, "/tmp") || strings.HasPrefix(p, "/root") {
		return true
	}
	if box.Command == nil {
		return false
	}
	dir, ok := box.Command.Env.Dir.Literal()
	return ok && dir != "" && (p == dir || strings.HasPrefix(p, strings.TrimRight(dir, "/")+"/"))
}

// hostPath reports whether p, used in box, certainly means a path of the host.
func (c *checker) hostPath(box *script.Container, p string) bool {
	return path.IsAbs(p) && !c.defaultMount(box, p) && (sharedRoots.MatchString(p) || c.namesOnHost(box, p))
}

// namesOnHost reports whether the script uses the top folder of p outside the container,
// in a command such as cd or as the host's side of a mount.
func (c *checker) namesOnHost(box *script.Container, p string) bool {
	first, _, below := strings.Cut(strings.TrimPrefix(p, "/"), "/")
	if !below {
		return false
	}
	top := "/" + first + "/"
	for _, m := range box.Mounts {
		h := m.Host.String()
		if strings.HasPrefix(h+"/", top) && path.Clean(h) != path.Clean(m.Inside.String()) {
			return true
		}
	}
	return slices.ContainsFunc(c.job.Commands, func(x *script.Command) bool {
		return x.Container == nil && (x.Name() == "cd" || x.Name() == "source" || x.Name() == "mkdir") && strings.HasPrefix(x.Args[len(x.Args)-1].Text(), top)
	})
}

func containerMountMissing(c *checker) {
	for _, box := range c.job.Containers {
		c.mountMissing(box)
	}
	for _, st := range c.job.Steps {
		for _, x := range st.Command.Starts {
			if x.Container != nil {
				c.mountMissing(x.Container)
			}
		}
	}
}

func (c *checker) mountMissing(box *script.Container) {
	if box.MountsUnknown {
		return
	}
	if !box.Docker() && box.Command != nil && c.commandBefore(box.Command.Seq, bindsByModule) {
		return
	}
	if _, has := box.Get("container-name"); has && len(box.Mounts) == 0 {
		return // the container may exist already, with its mounts
	}
	missing := func(v script.Value, line int) bool {
		p := v.String()
		// A path that is not fully known cannot be compared with the mounts.
		if v.Unknown() || strings.ContainsAny(p, ",;|()<>=: ") || !c.hostPath(box, p) || covered(box, v) || anyUnknown(box) {
			return false
		}
		c.report(line, p)
		return true
	}
	if (box.Docker() || box.Runtime == "pyxis") && missing(box.Workdir, box.Workdir.Line()) {
		return
	}
	for _, x := range c.job.Commands {
		if x.Container != box || x.Env.Container != box || len(x.Starts) > 0 && commandText(x) >= 0 { // the commands in the text are checked themselves
			continue
		}
		for _, a := range x.Args {
			if missing(a.AfterEquals(), a.Line) {
				return
			}
		}
	}
}

// bindsByModule reports whether x loads a module of the site for Singularity or Apptainer:
// such a module sets what they bind, as singularity-AI-bindings does.
func bindsByModule(x *script.Command) bool {
	words := strings.Join(script.Texts(x.Args), " ")
	return (x.Name() == "module" || x.Name() == "ml") && (strings.Contains(words, "singularity") || strings.Contains(words, "apptainer"))
}

// anyUnknown reports whether the inside path of a mount is unknown.
func anyUnknown(box *script.Container) bool {
	return slices.ContainsFunc(box.Mounts, func(m script.Mount) bool { return m.Inside.Unknown() })
}

func dockerPrivileged(c *checker) {
	for _, box := range c.job.Containers {
		if o, has := box.Get("privileged"); has && box.Docker() && o.Text() != "false" {
			c.report(o.Line, o.Given)
		}
	}
}

func dockerNetwork(c *checker) {
	for _, s := range c.job.Starts {
		box := s.Container
		if box == nil || !box.Docker() || !training(s) && s.Launcher != script.Wrapper || box.MountsUnknown {
			continue
		}
		net, hasNet := box.Get("network", "net")
		ipc, hasIPC := box.Get("ipc")
		_, hasShm := box.Get("shm-size")
		shm := hasShm || hasIPC && ipc.Text() == "host" || shmMounted(box)
		host := hasNet && net.Text() != "bridge" && net.Text() != "none"
		n, ok := c.nodesOf(s.Command)
		several := ok && n > 1
		if several && !host || !shm && (several || s.Launcher.Forks()) {
			c.report(box.Line, "docker run")
			return
		}
	}
}

func shmMounted(box *script.Container) bool {
	return slices.ContainsFunc(box.Mounts, func(m script.Mount) bool { return m.Inside.String() == "/dev/shm" })
}
