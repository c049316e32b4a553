package ops

import (
	"context"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/knowledge/rules"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose"
	"github.com/megatron-ops/megatron-ops/slurm/lint"
)

// Table is every operation, in the order in which help shows them.
func Table() []Op { return table }

var table = []Op{
	define(Op{
		Name: "constants", Effect: Read, Toolset: PlanSet, Core: true, Idempotent: true, Closed: true,
		Summary: lang.Text{
			EN: "the launch constants for a configuration, each with its reason",
			ZH: "某个配置的启动常量及其理由",
		},
		Help: lang.Text{
			EN: "Use first for any question about how Megatron-LM is launched on Slurm: worktree, srun, torch.distributed.run, MASTER_ADDR, WORLD_SIZE, CUDA_DEVICE_MAX_CONNECTIONS. For a whole script use render.",
			ZH: "关于如何在 Slurm 上启动 Megatron-LM 的问题先看这里：工作树、srun、torch.distributed.run、MASTER_ADDR、WORLD_SIZE、CUDA_DEVICE_MAX_CONNECTIONS。需要完整脚本时用 render。",
		},
		Example: "constants --nodes 2 --gpus-per-node 8 --gpu h100 --tp 4",
	}, constants),
	define(Op{
		Name: "plan", Effect: Read, Toolset: PlanSet, Core: true, Idempotent: true,
		Summary: lang.Text{
			EN: "judge a job by Megatron's own rules before it queues, with a fix for each problem",
			ZH: "排队之前按 Megatron 自身的规则检查作业，并给出每个问题的修复办法",
		},
		Help: lang.Text{
			EN: "Use before submit, and whenever a layout or a flag is in doubt. It tells every problem at once: what Megatron would refuse (ok false), what the documents warn of, what Megatron changes silently. It submits nothing.",
			ZH: "提交之前使用，或在不确定并行配置、参数时使用。一次列出全部问题：Megatron 会拒绝的（ok 为 false）、文档提醒的、Megatron 会悄悄改动的。不会提交任何作业。",
		},
		Example: "plan -f job.yaml",
		Batch:   rules.PlanBatch,
	}, plan),
	define(Op{
		Name: "render", Effect: Read, Toolset: PlanSet, Core: true, Idempotent: true, Closed: true,
		Summary: lang.Text{
			EN: "write the sbatch script for a job",
			ZH: "为作业生成 sbatch 脚本",
		},
		Help: lang.Text{
			EN: "Use to see or keep the script. The same specification gives the same bytes; every value is quoted, none is interpreted. It submits nothing: use submit for that.",
			ZH: "用于查看或保存脚本。相同的规格得到完全相同的脚本；所有取值都会被引用，绝不会被解释执行。不会提交；提交请用 submit。",
		},
		Example: "render -f job.yaml > run.sbatch",
		Batch:   renderBatch,
	}, render),
	define(Op{
		Name: "submit", Effect: Write, Toolset: JobsSet, Core: true,
		Summary: lang.Text{
			EN: "plan, render and submit a job, exactly once",
			ZH: "检查、渲染并提交作业，且只提交一次",
		},
		Help: lang.Text{
			EN: "Use to start a run. Errors of the plan stop it. Give an idempotency key and a retry answers with the first job instead of starting a second. dry_run shows the script and submits nothing.",
			ZH: "用于启动训练。检查出的错误会阻止提交。给出幂等键后，重试会返回第一次的作业而不会再提交一次。dry_run 只显示脚本，不提交。",
		},
		Example: "submit -f job.yaml --yes",
	}, submit),
	define(Op{
		Name: "status", Effect: Read, Toolset: JobsSet, Core: true, Idempotent: true,
		Summary: lang.Text{
			EN: "one job: state in words, nodes, times, why it waits",
			ZH: "单个作业：状态说明、节点、时间、等待原因",
		},
		Help: lang.Text{
			EN: "Use for one job's state. For many use list; for why it failed use diagnose.",
			ZH: "查看单个作业的状态。查看多个用 list；查失败原因用 diagnose。",
		},
		Example: "status 4711",
	}, status),
	define(Op{
		Name: "list", Effect: Read, Toolset: JobsSet, Core: true, Idempotent: true,
		Summary: lang.Text{
			EN: "my jobs that wait or run; with all, those that ended too",
			ZH: "我排队和运行中的作业；加 all 也列出已结束的",
		},
		Help: lang.Text{
			EN: "Use to find a job's id. user all lists everybody's.",
			ZH: "用于查找作业号。user 为 all 时列出所有人的作业。",
		},
		Example: "list --all",
	}, list),
	define(Op{
		Name: "cancel", Effect: Destructive, Toolset: JobsSet, Core: true, Idempotent: true,
		Summary: lang.Text{
			EN: "end a job, or one task of an array",
			ZH: "结束作业，或数组中的一个任务",
		},
		Help: lang.Text{
			EN: "Use only when its owner wants it ended: what was computed since the last checkpoint is lost. Only owners and operators may.",
			ZH: "仅在作业所有者希望结束时使用：最后一个检查点之后的计算会丢失。只有所有者和管理员可以执行。",
		},
		Example: "cancel 4711 --yes",
	}, cancel),
	define(Op{
		Name: "logs", Effect: Read, Toolset: LogsSet, Core: true, Idempotent: true,
		Summary: lang.Text{
			EN: "a job's log lines over all ranks, by rank or node, newest last",
			ZH: "作业所有 rank 的日志，可按 rank 或节点筛选，最新的在最后",
		},
		Help: lang.Text{
			EN: "Use to read. To find what broke first use diagnose: it reads every rank.",
			ZH: "用于阅读日志。想知道最先出错的地方请用 diagnose：它会读取每个 rank。",
		},
		Example: "logs 4711 --tail 50 --rank 3",
	}, logs),
	define(Op{
		Name: "diagnose", Effect: Read, Toolset: LogsSet, Core: true, Idempotent: true,
		Summary: lang.Text{
			EN: "what broke first, on which rank and node, why, and what to do",
			ZH: "最先出错的是什么、在哪个 rank 和节点、原因以及处理办法",
		},
		Help: lang.Text{
			EN: "Use when a job failed or hangs. It takes a job id, or a file or folder of logs, reads every rank's log, and tells the first cause from its consequences. It says so when nothing failed.",
			ZH: "作业失败或卡住时使用。接受作业号、日志文件或目录，读取每个 rank 的日志，区分最初原因与连锁反应。没有失败时也会如实说明。",
		},
		Example: "diagnose 4711",
		Batch:   byLine(func(line []byte) []byte { return diagnose.Batch(context.Background(), line) }),
	}, diagnoseOp),
	define(Op{
		Name: "metrics", Effect: Read, Toolset: LogsSet, Idempotent: true,
		Summary: lang.Text{EN: "a run's loss, iteration time, TFLOP/s, MFU and time left, with the curve; several are compared", ZH: "训练的损失、迭代时间、TFLOP/s、MFU、剩余时间与曲线；可比较多个作业"},
		Help: lang.Text{
			EN: "Use to see how training goes and whether the time limit will suffice. It reads Megatron's iteration lines and TensorBoard event files.",
			ZH: "查看训练进展以及时间上限是否够用。读取 Megatron 的迭代日志与 TensorBoard 事件文件。",
		},
		Example: "metrics 4711",
	}, metricsOp),
	define(Op{
		Name: "ask", Effect: Read, Toolset: KnowledgeSet, Core: true, Idempotent: true, Closed: true,
		Summary: lang.Text{
			EN: "a set-up question, answered from the rules and the skills with its source",
			ZH: "依据规则与技能文档回答环境与启动问题，并给出来源",
		},
		Help: lang.Text{
			EN: "Use for questions about Megatron-LM on Slurm: launching, layout, arguments, containers, logs, errors. It says when it does not know. It never acts.",
			ZH: "用于 Megatron-LM 与 Slurm 的问题：启动、并行配置、参数、容器、日志、报错。不知道时会直说，从不执行操作。",
		},
		Example: `ask "how do I set MASTER_ADDR?"`,
		Batch:   byLine(askBatch),
	}, ask),
	define(Op{
		Name: "knowledge", Effect: Read, Toolset: AdminSet, Idempotent: true,
		Summary: lang.Text{EN: "questions that were answered badly or not at all; or note that an answer was good or wrong", ZH: "列出答错或答不上的问题；或评价一个回答是对是错"},
		Help: lang.Text{
			EN: "Use gaps to see what the site's pages should add. It counts the thumbs of chat, wrong, and questions below confidence.",
			ZH: "用 gaps 查看站点文档该补充什么：包括聊天中的评价、wrong，以及没有把握的问题。",
		},
		Example: "knowledge gaps",
	}, knowledgeOp),
	define(Op{
		Name: "wait", Effect: Read, Toolset: JobsSet, Core: true, Idempotent: true,
		Summary: lang.Text{EN: "wait for a job's result file, its start or its end", ZH: "等待作业的结果文件、开始或结束"},
		Help: lang.Text{
			EN: "Use instead of asking for the state again and again. With an artifact it returns as soon as the file is there and at rest; to cancel the job then gives its nodes back.",
			ZH: "代替反复查询状态。指定结果文件时，文件出现并稳定后立即返回；此时取消作业即可归还节点。",
		},
		Example: "wait 4711 --artifact results/metrics.json --cancel",
	}, wait),
	define(Op{
		Name: "lint", Effect: Read, Toolset: PlanSet, Idempotent: true, Closed: true,
		Summary: lang.Text{EN: "the faults of an existing sbatch or launch script, with line and fix", ZH: "检查现有的 sbatch 或启动脚本：问题所在行与修复办法"},
		Help: lang.Text{
			EN: "Use for a script that somebody already has. It reads the script as bash would and stays silent where the script does not show the facts. For a job specification use plan.",
			ZH: "用于检查已有脚本。它按 bash 的方式读取脚本，脚本中看不出的事实不会乱报。检查作业规格请用 plan。",
		},
		Example: "lint run.sbatch",
		Batch:   byLine(lint.Batch),
	}, lintOp),
	define(Op{
		Name: "recommend", Effect: Read, Toolset: PlanSet, Idempotent: true, Closed: true,
		Summary: lang.Text{EN: "the best TP, PP, CP, EP, micro batch and recompute for a model on so many GPUs", ZH: "为模型与 GPU 数量推荐 TP、PP、CP、EP、微批与重计算"},
		Help: lang.Text{
			EN: "Use for: I have N GPUs of this kind and this model, what layout? It tries all layouts that Megatron's rules allow, estimates memory and cost, and says why the first is first. Give the model as Megatron's arguments.",
			ZH: "用于回答：有 N 张某型号 GPU 和某个模型，该用什么并行配置？它尝试 Megatron 规则允许的全部配置，估算显存与代价，并说明理由。模型用 Megatron 参数给出。",
		},
		Example: "recommend --nodes 2 --gpu h100 --worktree /w -- --num-layers 32 --hidden-size 4096 --num-attention-heads 32 --seq-length 4096 --max-position-embeddings 4096 --global-batch-size 256 --swiglu",
	}, recommend),
	define(Op{
		Name: "memory", Effect: Read, Toolset: PlanSet, Idempotent: true, Closed: true,
		Summary: lang.Text{EN: "a job's estimated GPU memory, part by part", ZH: "估算作业的显存占用及各部分构成"},
		Help: lang.Text{
			EN: "Use to see whether a layout fits and what takes the memory. It is an estimate: fragmentation and NCCL's buffers come on top.",
			ZH: "查看某个配置能否放下、显存被什么占用。这是估算：碎片与 NCCL 缓冲区另计。",
		},
		Example: "memory -f job.yaml",
	}, memory),
	define(Op{
		Name: "import", Effect: Read, Toolset: PlanSet, Idempotent: true, Closed: true,
		Summary: lang.Text{EN: "turn an existing sbatch script or CI recipe into a job specification", ZH: "把现有 sbatch 脚本或 CI recipe 转成作业规格"},
		Help: lang.Text{
			EN: "Use to port a script. It notes what the specification could not carry.",
			ZH: "用于迁移已有脚本。规格无法表达的内容会逐条说明。",
		},
		Example: "import run.sbatch > job.yaml",
	}, importing),
	define(Op{
		Name: "diff", Effect: Read, Toolset: JobsSet, Idempotent: true,
		Summary: lang.Text{EN: "what changed between two submissions of a run", ZH: "同一训练两次提交之间的变化"},
		Help: lang.Text{
			EN: "Use first after a failure: what is different from the run that worked? It compares specification and script.",
			ZH: "失败后先看这里：与之前成功的那次相比改了什么？比较规格与脚本。",
		},
		Example: "diff 4711 4698",
	}, diff),
	define(Op{
		Name: "compare", Effect: Read, Toolset: LogsSet, Idempotent: true,
		Summary: lang.Text{EN: "a failed run beside the last good one: specification, nodes, environment, new log lines", ZH: "把失败的训练与最近一次正常的训练对比：规格、节点、环境、新出现的日志"},
		Help: lang.Text{
			EN: "Use when diagnose alone does not explain it: what is different from the run that worked?",
			ZH: "diagnose 还不足以解释时使用：与之前成功的那次有什么不同？",
		},
		Example: "compare 4711",
	}, compare),
	define(Op{
		Name: "image", Effect: Read, Toolset: KnowledgeSet, Idempotent: true, Closed: true,
		Summary: lang.Text{EN: "the commands that build, pull and enter Megatron's container image", ZH: "构建、拉取并进入 Megatron 容器镜像的命令"},
		Help:    lang.Text{EN: "Use for container set-up with Docker, pyxis/enroot or Singularity. It runs nothing.", ZH: "用于 Docker、pyxis/enroot、Singularity 的容器准备。不执行任何命令。"},
		Example: "image lts",
	}, image),
	define(Op{
		Name: "rules", Effect: Read, Toolset: KnowledgeSet, Idempotent: true, Closed: true,
		Summary: lang.Text{EN: "the rules table: what a launch must satisfy, and where Megatron checks it", ZH: "规则表：启动必须满足的条件，以及 Megatron 的检查位置"},
		Help: lang.Text{
			EN: "Use to look a rule up by topic, flag or word. To judge a job use plan.",
			ZH: "按主题、参数或关键词查规则。检查作业请用 plan。",
		},
		Example: "rules heads",
	}, listRules),
	define(Op{
		Name: "hold", Effect: Write, Toolset: JobsSet, Idempotent: true,
		Summary: lang.Text{EN: "keep a waiting job, or the rest of an array, from starting", ZH: "暂停排队中的作业或数组的剩余任务"},
		Help: lang.Text{
			EN: "Use to pause a train of jobs while a script is mended: it keeps its age. release lets it go on.",
			ZH: "修改脚本期间暂停作业序列：保留排队时长。用 release 继续。",
		},
		Example: "hold 4711",
	}, hold),
	define(Op{
		Name: "release", Effect: Write, Toolset: JobsSet, Idempotent: true,
		Summary: lang.Text{EN: "let a held job start again", ZH: "释放被暂停的作业"},
		Help:    lang.Text{EN: "Use after hold.", ZH: "在 hold 之后使用。"},
		Example: "release 4711",
	}, release),
	define(Op{
		Name: "requeue", Effect: Destructive, Toolset: JobsSet,
		Summary: lang.Text{EN: "end a job's run and put it back into the queue", ZH: "结束作业的本次运行并重新排队"},
		Help: lang.Text{
			EN: "Use when the same job should start over from its last checkpoint. What was computed since is lost.",
			ZH: "希望同一作业从最后一个检查点重新开始时使用。之后的计算会丢失。",
		},
		Example: "requeue 4711",
	}, requeue),
	define(Op{
		Name: "update", Effect: Write, Toolset: JobsSet, Idempotent: true,
		Summary: lang.Text{EN: "change a waiting job's nodes, partition, time limit, QOS or excluded nodes", ZH: "修改排队作业的节点数、分区、时限、QOS 或排除节点"},
		Help: lang.Text{
			EN: "Use to get a waiting job in sooner without losing its age. A running job's nodes cannot change.",
			ZH: "在不丢失排队时长的情况下让作业更早开始。运行中的作业不能改变节点。",
		},
		Example: "update 4711 --time 2:00:00",
	}, update),
	define(Op{
		Name: "nodes", Effect: Read, Toolset: NodesSet, Core: true, Idempotent: true,
		Summary: lang.Text{EN: "what is free by partition, and nodes with their states and drain reasons", ZH: "各分区的空闲情况，以及节点状态与下线原因"},
		Help: lang.Text{
			EN: "Use for: what is free, which partition, which nodes are drained and why.",
			ZH: "用于查看哪里有空闲、选哪个分区、哪些节点下线及原因。",
		},
		Example: "nodes --drained",
	}, nodes),
	define(Op{
		Name: "nodecheck", Effect: Write, Toolset: NodesSet,
		Summary: lang.Text{EN: "test nodes and the links between them; finds the odd ones out", ZH: "检测节点及其互联，找出异常节点"},
		Help: lang.Text{
			EN: "Use when a node is in doubt. A short job tests CUDA, memory, NCCL and connections against peers, reads ECC and Xid lines, and says what it could not test. Free nodes only.",
			ZH: "怀疑节点有问题时使用。短作业检测 CUDA、显存、NCCL 与连通性并互相比较，读取 ECC 与 Xid，并说明未能测试的项目。只能用空闲节点。",
		},
		Example: "nodecheck gpu[01-04]",
	}, nodecheck),
	define(Op{
		Name: "avoid", Effect: Write, Toolset: NodesSet, Idempotent: true,
		Summary: lang.Text{EN: "nodes that retries of my jobs leave out for a time, or spares", ZH: "重试时在一段时间内排除的节点，或备用节点"},
		Help:    lang.Text{EN: "Nodes that a diagnosis blames come on the list by themselves; nodes --avoided shows it.", ZH: "诊断判定有问题的节点会自动加入；用 nodes --avoided 查看。"},
		Example: "avoid gpu07 --hours 48",
	}, avoid),
	define(Op{
		Name: "run", Effect: Destructive, Toolset: NodesSet,
		Summary: lang.Text{EN: "run a command on every node of a running job, beside what runs there", ZH: "在运行中作业的每个节点上执行命令，不影响作业本身"},
		Help: lang.Text{
			EN: "Use for nvidia-smi, py-spy dump or df on the nodes of a job. It takes no GPU unless told to, and never waits for the job's own steps.",
			ZH: "在作业节点上执行 nvidia-smi、py-spy dump、df 等。除非指定，否则不占用 GPU，也不会等待作业自身的步骤。",
		},
		Example: "run 4711 -- nvidia-smi",
	}, runOn),
	define(Op{
		Name: "explain", Effect: Read, Toolset: KnowledgeSet, Idempotent: true, Closed: true,
		Summary: lang.Text{EN: "what a rule, flag, state, pending reason, failure class or field means", ZH: "解释规则、参数、状态、等待原因、故障类别或规格字段"},
		Help: lang.Text{
			EN: "Use for one word. For a question in words use ask.",
			ZH: "用于查一个词。完整的问题请用 ask。",
		},
		Example: "explain --tensor-model-parallel-size",
	}, explain),
	define(Op{
		Name: "audit", Effect: Read, Toolset: AdminSet, Idempotent: true,
		Summary: lang.Text{EN: "who changed what, from where, with what result", ZH: "谁在何处做了什么改动，结果如何"},
		Help: lang.Text{
			EN: "Use to see who submitted or cancelled. It also tells when the trail itself was changed.",
			ZH: "查看是谁提交或取消了作业。审计记录被改动时也会指出。",
		},
		Example: "audit --limit 20",
	}, auditTrail),
	define(Op{
		Name: "hostlist", Effect: Read, Toolset: NodesSet, Idempotent: true, Closed: true,
		Summary: lang.Text{EN: "expand node-[42,49-51] to names, or compress names", ZH: "展开 node-[42,49-51] 形式的节点列表，或压缩节点名"},
		Help:    lang.Text{EN: "Use instead of scontrol show hostnames, also without Slurm.", ZH: "可代替 scontrol show hostnames，没有 Slurm 也能用。"},
		Example: "hostlist 'node-[42,49-51]'",
	}, expandHosts),
	define(Op{
		Name: "queue", Effect: Read, Toolset: JobsSet, Idempotent: true,
		Summary: lang.Text{EN: "who waits: place in line, estimated start, and why, in words", ZH: "排队情况：排位、预计开始时间与原因说明"},
		Help:    lang.Text{EN: "Use to see when jobs start. For one job's priority use priority.", ZH: "查看作业何时开始。单个作业的优先级用 priority。"},
		Example: "queue --mine",
	}, queue),
	define(Op{
		Name: "priority", Effect: Read, Toolset: JobsSet, Idempotent: true,
		Summary: lang.Text{EN: "what a waiting job's priority is made of, and who is ahead", ZH: "排队作业的优先级构成，以及排在前面的作业"},
		Help:    lang.Text{EN: "Use for: why is mine behind others?", ZH: "用于回答：为什么我的作业排在后面？"},
		Example: "priority 4711",
	}, priority),
	define(Op{
		Name: "partitions", Effect: Read, Toolset: NodesSet, Idempotent: true,
		Summary: lang.Text{EN: "partitions: limits, features, nodes allocated, idle, other, total", ZH: "分区：限制、特性，以及已分配、空闲、其他、总节点数"},
		Help:    lang.Text{EN: "Use before choosing one. What is free: nodes.", ZH: "选择分区前查看。空闲情况用 nodes。"},
		Example: "partitions dev",
	}, partitions),
	define(Op{
		Name: "accounts", Effect: Read, Toolset: JobsSet, Idempotent: true,
		Summary: lang.Text{EN: "my accounts and QOS, their limits, and my fair share in words", ZH: "我的账户与 QOS、其限制，以及公平份额说明"},
		Help:    lang.Text{EN: "Use to choose account and qos, or to see why a limit holds a job.", ZH: "用于选择 account 与 qos，或查看作业受何限制。"},
		Example: "accounts",
	}, accounts),
	define(Op{
		Name: "history", Effect: Read, Toolset: JobsSet, Idempotent: true,
		Summary: lang.Text{EN: "jobs that ended, with GPU hours, by state and user", ZH: "已结束的作业与 GPU 小时，按状态和用户汇总"},
		Help:    lang.Text{EN: "Use for what was run and what it cost. What runs now: list.", ZH: "查看运行过什么、用了多少。当前作业用 list。"},
		Example: "history --days 30 --partition prod",
	}, history),
	define(Op{
		Name: "killswitch", Effect: Write, Toolset: JobsSet, Idempotent: true,
		Summary: lang.Text{EN: "make running jobs save and end by their kill switch, or remove it", ZH: "通过 kill switch 让作业保存并结束，或移除该开关"},
		Help:    lang.Text{EN: "Use to stop a train of jobs with a checkpoint. Off before the next start.", ZH: "用于保存检查点后停止一串作业。下次启动前要关闭。"},
		Example: "killswitch on 4711",
	}, killswitch),
	define(Op{
		Name: "cleanup", Effect: Destructive, Toolset: NodesSet, Idempotent: true,
		Summary: lang.Text{EN: "end processes that my ended jobs left on nodes; shown first", ZH: "清理我已结束作业在节点上遗留的进程；先列出再执行"},
		Help:    lang.Text{EN: "Use when a GPU is busy with no job on it. Running jobs are spared.", ZH: "GPU 上没有作业却被占用时使用。运行中的作业不受影响。"},
		Example: "cleanup gpu[07,09]",
	}, cleanup),
	define(Op{
		Name: "resume", Effect: Write, Toolset: AdminSet, Idempotent: true,
		Summary: lang.Text{EN: "give drained nodes back to the scheduler (operators)", ZH: "让已排空的节点恢复接收作业（管理员）"},
		Help:    lang.Text{EN: "Use after what drained them is mended.", ZH: "排除下线原因之后使用。"},
		Example: `resume --reason "Kill task failed"`,
	}, resume),
	define(Op{
		Name: "smoke", Effect: Write, Toolset: JobsSet,
		Summary: lang.Text{EN: "try a job in small: 1 GPU, 1 node, 2 nodes; names the first that fails", ZH: "小规模试跑：单卡、单节点、两节点；指出最先失败的一级"},
		Help:    lang.Text{EN: "Use before a large job, or when one fails and it is not clear why. Few layers, 10 iterations, 10 minutes; same image, mounts and data; saves nothing.", ZH: "大作业之前，或失败原因不明时使用。少量层、10 次迭代、10 分钟上限；镜像、挂载与数据不变；不保存检查点。"},
		Example: "smoke -f job.yaml",
	}, smoke),
}
