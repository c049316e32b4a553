// Package job defines the job specification. It decodes and validates the
// specification that a person wrote, renders the specification to the batch script
// that Slurm runs, and imports existing scripts. The package is pure: it uses no
// clock, no files and no cluster.
package job

import "cmp"

// A Spec is one job as a person describes it. The same struct is decoded from YAML
// and JSON, and its tags define the command-line flags: name is the flag, help and
// zh document the field, ex is an example value. Fields lists all fields. A nil
// pointer is a field that was left out, which differs from an explicit 0 or false.
type Spec struct {
	Name        string `json:"name,omitempty" name:"name" short:"J" placeholder:"NAME" help:"job name" zh:"作业名" ex:"gpt-7b"`
	Cluster     string `json:"cluster,omitempty" name:"cluster" placeholder:"NAME" help:"cluster to run on, as the configuration names it" zh:"运行所在的集群（配置中的名称）" ex:"prod"`
	Team        string `json:"team,omitempty" name:"team" placeholder:"NAME" help:"team that the job is counted for; its members, a group of that name, may throw the kill switch" zh:"作业所属的团队；同名用户组的成员可触发停止开关" ex:"pretrain"`
	Account     string `json:"account,omitempty" name:"account" short:"A" placeholder:"ACCOUNT" help:"Slurm account" zh:"Slurm 账户" ex:"research"`
	Partition   string `json:"partition,omitempty" name:"partition" short:"p" placeholder:"PARTITION" help:"Slurm partition, or several with commas" zh:"Slurm 分区，多个用逗号分隔" ex:"prod"`
	QOS         string `json:"qos,omitempty" name:"qos" short:"q" placeholder:"QOS" help:"Slurm quality of service" zh:"Slurm 服务质量（QOS）" ex:"normal"`
	Reservation string `json:"reservation,omitempty" name:"reservation" placeholder:"NAME" help:"Slurm reservation" zh:"Slurm 预留" ex:"maint"`
	Constraint  string `json:"constraint,omitempty" name:"constraint" placeholder:"FEATURES" help:"node features, as --constraint takes them" zh:"节点特性，写法同 --constraint" ex:"h100&ib"`

	Nodes       *int   `json:"nodes,omitempty" name:"nodes" short:"N" placeholder:"N" help:"number of nodes" zh:"节点数" def:"1" ex:"2"`
	GPUsPerNode *int   `json:"gpus_per_node,omitempty" name:"gpus-per-node" placeholder:"N" help:"GPUs on each node, 0 for none" zh:"每个节点的 GPU 数，0 表示不用 GPU" def:"8" ex:"8"`
	GPURequest  string `json:"gpu_request,omitempty" name:"gpu-request" placeholder:"FORM" help:"how the site asks for GPUs: gpus-per-node, gres or gpus" zh:"本站点申请 GPU 的方式：gpus-per-node、gres 或 gpus" def:"gpus-per-node" ex:"gres"`
	GPU         string `json:"gpu,omitempty" name:"gpu" placeholder:"KIND" help:"kind of GPU, which decides the architecture" zh:"GPU 型号，决定其架构" ex:"h100"`
	CPUsPerTask *int   `json:"cpus_per_task,omitempty" name:"cpus-per-task" placeholder:"N" help:"CPUs for the one task of each node" zh:"每个节点上那一个任务的 CPU 数" ex:"96"`
	Mem         string `json:"mem,omitempty" name:"mem" placeholder:"SIZE" help:"memory for each node, 0 for all of it" zh:"每个节点的内存，0 表示全部" ex:"1000G"`
	MemPerGPU   string `json:"mem_per_gpu,omitempty" name:"mem-per-gpu" placeholder:"SIZE" help:"memory for each GPU, in place of mem" zh:"每个 GPU 的内存，代替 mem" ex:"120G"`
	Time        string `json:"time,omitempty" name:"time" short:"t" placeholder:"TIME" help:"time limit: minutes, HH:MM:SS or D-HH:MM:SS" zh:"时间上限：分钟数、HH:MM:SS 或 D-HH:MM:SS" ex:"04:00:00"`
	Exclusive   *bool  `json:"exclusive,omitempty" name:"exclusive" negatable:"" help:"share the nodes with no other job" zh:"独占节点" ex:"true"`
	Hint        string `json:"hint,omitempty" name:"hint" placeholder:"HINT" help:"multithread, nomultithread, compute_bound or memory_bound" zh:"multithread、nomultithread、compute_bound 或 memory_bound" ex:"nomultithread"`
	Segment     *int   `json:"segment,omitempty" name:"segment" placeholder:"N" help:"nodes that must lie together in one block of the topology, such as an NVLink domain" zh:"须位于拓扑同一块（如一个 NVLink 域）内的节点数" ex:"16"`
	Switches    string `json:"switches,omitempty" name:"switches" placeholder:"N[@TIME]" help:"most leaf switches, and how long to wait for so few" zh:"最多跨越的叶交换机数，以及为此最多等待多久" ex:"1@01:00:00"`
	Nodelist    string `json:"nodelist,omitempty" name:"nodelist" short:"w" placeholder:"NODES" help:"nodes that the job must have" zh:"必须使用的节点" join:"," ex:"gpu[01-04]"`
	Exclude     string `json:"exclude,omitempty" name:"exclude" short:"x" placeholder:"NODES" help:"nodes that the job must not have" zh:"必须避开的节点" join:"," ex:"gpu[07,09]"`

	Components []string `json:"components,omitempty" name:"components" sep:"none" scalar:"whole" pairs:"" placeholder:"WORDS" help:"components of a heterogeneous job: what each has of its own, as a map or as name=value words; the ranks run on all of them" zh:"异构作业的各组成部分：每部分自己的字段，写成映射或 name=value 词；所有部分共同运行各 rank" ex:"[{nodes: 2, partition: h100}, {nodes: 1, partition: a100}]"`

	Dependency string   `json:"dependency,omitempty" name:"dependency" placeholder:"EXPR" help:"jobs to wait for, such as afterok:4711" zh:"要等待的作业，如 afterok:4711" join:"," ex:"afterok:4711"`
	Begin      string   `json:"begin,omitempty" name:"begin" placeholder:"TIME" help:"earliest start, such as 16:00, now+2hours or 2030-01-20T12:34:00" zh:"最早开始时间，如 16:00、now+2hours 或 2030-01-20T12:34:00" ex:"now+2hours"`
	Array      string   `json:"array,omitempty" name:"array" placeholder:"RANGE" help:"array elements, such as 1-10%1 for ten, one at a time" zh:"作业数组，如 1-10%1 表示十个、每次一个" join:"," ex:"1-10%1"`
	Sweep      []string `json:"sweep,omitempty" name:"sweep" sep:"none" scalar:"whole" placeholder:"FLAG=VALUES" help:"a flag and the values to try, such as lr=1e-4,3e-4 or seed=1..4, also env.NAME=…; one array runs every combination" zh:"参数及要尝试的取值，如 lr=1e-4,3e-4 或 seed=1..4，也可写 env.NAME=…；一个数组运行所有组合" ex:"[\"lr=1e-4,3e-4\", seed=1..4]"`
	Chain      *int     `json:"chain,omitempty" name:"chain" placeholder:"N" help:"submit N jobs, each after the one before" zh:"依次提交 N 个作业，前一个结束后才开始下一个" ex:"5"`
	Train      string   `json:"train,omitempty" name:"train" placeholder:"FILE" help:"shell script in the worktree that every array element sources, so that it can be edited between elements" zh:"每个数组元素都会 source 的脚本（位于工作树中），可在元素之间修改" ex:"train-64.sh"`
	Every      string   `json:"every,omitempty" name:"every" placeholder:"PERIOD" help:"run again and again: hourly, daily, weekly or a period such as 12h" zh:"周期性运行：hourly、daily、weekly 或如 12h 的间隔" ex:"daily"`
	Signal     string   `json:"signal,omitempty" name:"signal" placeholder:"SIG@SECS" help:"signal before the time limit, so that Megatron saves and exits" zh:"到达时间上限前发送的信号，让 Megatron 保存并退出" ex:"USR1@300"`
	Requeue    *bool    `json:"requeue,omitempty" name:"requeue" negatable:"" help:"whether Slurm may start the job again after a node failure" zh:"节点故障后是否允许 Slurm 重新排队" ex:"true"`
	Nice       *int     `json:"nice,omitempty" name:"nice" placeholder:"N" help:"how far to step back in the queue; only operators may go forward" zh:"在队列中让后的程度；只有管理员可以取负值" ex:"100"`
	Comment    string   `json:"comment,omitempty" name:"comment" placeholder:"TEXT" help:"comment that Slurm keeps with the job" zh:"Slurm 随作业保存的备注" ex:"lr sweep"`
	MailUser   string   `json:"mail_user,omitempty" name:"mail-user" placeholder:"ADDRESS" help:"who gets Slurm's mail" zh:"Slurm 邮件的收件人" ex:"alice@example.org"`
	MailType   string   `json:"mail_type,omitempty" name:"mail-type" placeholder:"EVENTS" help:"events that Slurm mails about" zh:"Slurm 发邮件的事件" join:"," ex:"END,FAIL"`
	Sbatch     []string `json:"sbatch,omitempty" name:"sbatch" sep:"none" scalar:"whole" placeholder:"OPTION" help:"further options of sbatch, --name or --name=value, that have no field of their own" zh:"没有对应字段的其他 sbatch 选项，写成 --name 或 --name=value" ex:"[--licenses=fluent:2, --wckey=lab]"`

	Worktree string            `json:"worktree,omitempty" name:"worktree" placeholder:"DIR" help:"Megatron-LM checkout on a file system that every node sees" zh:"所有节点可见的文件系统上的 Megatron-LM 代码目录" ex:"/lustre/alice/Megatron-LM"`
	Venv     string            `json:"venv,omitempty" name:"venv" placeholder:"DIR" help:"virtual environment, relative to the worktree or inside the image; .venv where uv launches" zh:"虚拟环境，相对于工作树，或位于镜像内；launcher 为 uv 时默认 .venv" ex:"/opt/venv"`
	Script   string            `json:"script,omitempty" name:"script" placeholder:"FILE" help:"program to train with, relative to the worktree" zh:"训练程序，相对于工作树" def:"pretrain_gpt.py" ex:"pretrain_gpt.py"`
	Args     []string          `json:"args,omitempty" name:"args" sep:"none" placeholder:"ARG" help:"the program's arguments, one element each" zh:"程序的参数，每项一个" ex:"[--tensor-model-parallel-size, 4]"`
	Path     []string          `json:"path,omitempty" name:"path" scalar:"" placeholder:"DIR" help:"folders of programs, put before the PATH of the job" zh:"放在作业 PATH 最前面的程序目录" ex:"[/opt/uv/bin]"`
	Env      map[string]string `json:"env,omitempty" name:"env" mapsep:"none" placeholder:"NAME=VALUE" help:"environment variables of the ranks" zh:"各 rank 的环境变量" ex:"{NCCL_SOCKET_IFNAME: eth0}"`
	Preset   []string          `json:"preset,omitempty" name:"preset" placeholder:"NAME" help:"named sets of environment variables, such as debug-nccl; gpu-use notes how busy the GPUs are" zh:"按名称引用的环境变量组合，如 debug-nccl；gpu-use 记录 GPU 利用率" scalar:"" ex:"[debug-nccl]"`

	Megatron   string   `json:"megatron,omitempty" name:"megatron" placeholder:"VERSION" help:"Megatron-LM release that the arguments are judged by: 0.17.1, a range, a release's commit or main; found in the worktree or by the image where left out" zh:"判断参数所依据的 Megatron-LM 版本：0.17.1、版本范围、发布版的提交号或 main；省略时由工作树或镜像得出" ex:"0.17.1"`
	ExtraFlags []string `json:"extra_flags,omitempty" name:"extra-flags" scalar:"" placeholder:"FLAG" help:"flags of a fork that no release of Megatron-LM has: passed on and not judged" zh:"分支自有、Megatron-LM 各版本都没有的参数：原样传递，不做判断" ex:"[--our-own-flag]"`

	Launcher     string   `json:"launcher,omitempty" name:"launcher" placeholder:"NAME" help:"uv, python, accelerate or custom" zh:"uv、python、accelerate 或 custom" def:"uv" ex:"uv"`
	LauncherArgv []string `json:"launcher_argv,omitempty" name:"launcher-argv" sep:"none" placeholder:"WORD" help:"the words of a custom launcher, the program follows unless they name one; {node_rank} {nnodes} {gpus_per_node} {world_size} {master_addr} {master_port} {hostfile} are filled in on the node" zh:"custom 启动器的各个词，程序接在其后（其中已写出程序时除外）；{node_rank} {nnodes} {gpus_per_node} {world_size} {master_addr} {master_port} {hostfile} 在节点上替换" ex:"[python, -m, mylauncher]"`
	Rdzv         Rdzv     `json:"rdzv,omitzero" embed:"" prefix:"rdzv-" help:"how the nodes find one another" zh:"节点如何会合"`
	MasterPort   *int     `json:"master_port,omitempty" name:"master-port" placeholder:"PORT" help:"port of the first node that the ranks meet at" zh:"各 rank 在首节点上会合的端口" def:"29500" ex:"29500"`
	SrunArgs     []string `json:"srun_args,omitempty" name:"srun-args" sep:"none" placeholder:"OPTION" help:"options of srun, added to the usual ones or replacing them" zh:"srun 选项，追加或替换默认选项" ex:"[--cpu-bind=cores]"`

	Container Container `json:"container,omitzero" embed:"" prefix:"container-" help:"container that the ranks run in" zh:"各 rank 所在的容器"`

	LogDir     string   `json:"log_dir,omitempty" name:"log-dir" placeholder:"DIR" help:"folder of the logs, relative to the worktree, or absolute on a file system that every node sees" zh:"日志目录，相对于工作树，或为所有节点可见的文件系统上的绝对路径" def:"logs" ex:"logs"`
	Guards     *bool    `json:"guards,omitempty" name:"guards" negatable:"" help:"checks in the script that stop a job whose nodes differ" zh:"脚本内的检查：节点不一致时停止作业" def:"true" ex:"false"`
	NodeCheck  *bool    `json:"node_check,omitempty" name:"node-check" negatable:"" help:"test every node's GPUs and network before training" zh:"训练前检测每个节点的 GPU 与网络" def:"false" ex:"true"`
	Monitor    *bool    `json:"monitor,omitempty" name:"monitor" negatable:"" help:"per-rank logs, flight recorder and start markers, which diagnosis reads" zh:"每个 rank 的日志、flight recorder 与启动标记，供诊断读取" def:"true" ex:"false"`
	Artifact   Artifact `json:"artifact,omitzero" embed:"" prefix:"artifact-" help:"result file that says the job has done its work" zh:"表明作业已完成工作的结果文件"`
	Retry      Retry    `json:"retry,omitzero" embed:"" prefix:"retry-" help:"when to submit a failed job again" zh:"失败后何时重新提交"`
	KillSwitch string   `json:"kill_switch,omitempty" name:"kill-switch" placeholder:"FILE" help:"file whose presence makes the job save and end" zh:"该文件一旦出现，作业保存并结束" ex:"/lustre/alice/STOP"`
}

// A Container describes the container in which the ranks run.
type Container struct {
	Runtime string            `json:"runtime,omitempty" name:"runtime" placeholder:"NAME" help:"none, pyxis, enroot, singularity, apptainer or docker" zh:"none、pyxis、enroot、singularity、apptainer 或 docker" def:"none" ex:"pyxis"`
	Image   string            `json:"image,omitempty" name:"image" placeholder:"IMAGE" help:"image: a registry name, a .sqsh or a .sif file" zh:"镜像：仓库名、.sqsh 或 .sif 文件" ex:"/images/megatron.sqsh"`
	Mounts  Mounts            `json:"mounts,omitempty" name:"mounts" sep:"none" placeholder:"HOST:INSIDE" help:"folders of the node seen inside: host:inside[:flags]" zh:"容器内可见的节点目录：host:inside[:flags]" scalar:"whole" ex:"[\"/lustre:/lustre\"]"`
	Workdir string            `json:"workdir,omitempty" name:"workdir" placeholder:"DIR" help:"working directory inside the container" zh:"容器内的工作目录" ex:"/workspace"`
	Env     map[string]string `json:"env,omitempty" name:"env" mapsep:"none" placeholder:"NAME=VALUE" help:"environment variables that only the container gets" zh:"只在容器内设置的环境变量" ex:"{UV_PROJECT_ENVIRONMENT: /opt/venv}"`
}

// An Rdzv configures the rendezvous of torch.distributed.run's agents.
type Rdzv struct {
	Backend string            `json:"backend,omitempty" name:"backend" placeholder:"NAME" help:"static or c10d" zh:"static 或 c10d" def:"static" ex:"c10d"`
	Conf    map[string]string `json:"conf,omitempty" name:"conf" mapsep:"none" placeholder:"KEY=VALUE" help:"rendezvous options, and max_restarts" zh:"会合选项，以及 max_restarts" ex:"{join_timeout: 600}"`
}

// An Artifact is a file whose appearance means that the job's work is done.
type Artifact struct {
	Path   string `json:"path,omitempty" name:"path" placeholder:"FILE" help:"result file, relative to the worktree" zh:"结果文件，相对于工作树" ex:"out/metrics.json"`
	Cancel *bool  `json:"cancel,omitempty" name:"cancel" negatable:"" help:"cancel the job once the file is there" zh:"文件出现后取消作业" def:"false" ex:"true"`
	JSON   string `json:"json,omitempty" name:"json" placeholder:"KEY=VALUE" help:"what the file must hold as JSON, such as status=done" zh:"文件 JSON 内容须满足的条件，如 status=done" ex:"status=done"`
}

// A Retry says when and how often a failed job is submitted again.
type Retry struct {
	Max *int     `json:"max,omitempty" name:"max" placeholder:"N" help:"how many times at most; 3 where on says what for" zh:"最多几次；设置了 on 时默认 3" def:"0" ex:"2"`
	On  []string `json:"on,omitempty" name:"on" placeholder:"CLASS" help:"failure classes that may be tried again" zh:"允许重试的故障类别" scalar:"" ex:"[nccl_timeout, slurm_node_fail]"`
}

// Without max, a specification that lists failures to retry gets defaultRetries. No job is
// retried more than maxRetries times, whatever max says.
const (
	defaultRetries = 3
	maxRetries     = 20
)

// Limit returns how often a failed job may be submitted again.
func (r Retry) Limit() int {
	switch {
	case r.Max != nil:
		return max(0, min(*r.Max, maxRetries))
	case len(r.On) > 0:
		return defaultRetries
	}
	return 0
}

// The runtimes of a container.
const (
	NoContainer = "none"
	Pyxis       = "pyxis"
	Enroot      = "enroot"
	Singularity = "singularity"
	Apptainer   = "apptainer"
	Docker      = "docker"
)

// The launchers.
const (
	UV         = "uv"
	Python     = "python"
	Accelerate = "accelerate"
	Custom     = "custom"
)

// WithDefaults returns s with the fixed default in every field that was left out.
// It does not fill in the site's defaults; see Site.Fill.
func (s Spec) WithDefaults() Spec {
	s.Name = cmp.Or(s.Name, "megatron")
	if parts := s.Parts(); len(parts) > 1 {
		nodes := 0
		for _, p := range parts {
			nodes += *p.Nodes
		}
		s.Nodes = cmp.Or(s.Nodes, &nodes)
		s.GPUsPerNode = cmp.Or(s.GPUsPerNode, parts[0].GPUsPerNode)
	}
	s.Nodes = cmp.Or(s.Nodes, new(1))
	s.GPUsPerNode = cmp.Or(s.GPUsPerNode, new(8))
	s.GPURequest = cmp.Or(s.GPURequest, "gpus-per-node")
	s.Launcher = cmp.Or(s.Launcher, UV)
	if s.OwnProgram() == "" {
		s.Script = cmp.Or(s.Script, TrainingProgram)
	}
	if s.Launcher == UV {
		s.Venv = cmp.Or(s.Venv, ".venv")
	}
	s.Rdzv.Backend = cmp.Or(s.Rdzv.Backend, "static")
	s.Container.Runtime = cmp.Or(s.Container.Runtime, NoContainer)
	s.LogDir = cmp.Or(s.LogDir, "logs")
	s.Guards = cmp.Or(s.Guards, new(true))
	s.Monitor = cmp.Or(s.Monitor, new(true))
	s.NodeCheck = cmp.Or(s.NodeCheck, new(false))
	return s
}

// WorldSize returns the number of ranks: one per GPU, or one per node if the job
// has no GPUs.
func (s Spec) WorldSize() int {
	s = s.WithDefaults()
	return *s.Nodes * max(1, *s.GPUsPerNode)
}
