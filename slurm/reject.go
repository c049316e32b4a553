package slurm

import (
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
)

// A Rejection is a sentence with which Slurm refuses a request, and advice for the
// person.
type Rejection struct {
	// Text is a part of the sentence, compared without regard to case. The texts come
	// from slurm_errno.c, sbatch and slurmctld of versions 22.05 to 25.05.
	Text string
	Kind ErrorKind
	Fix  lang.Text
}

// Match reports whether said contains the rejection's text.
func (r Rejection) Match(said string) bool {
	return strings.Contains(strings.ToLower(said), strings.ToLower(r.Text))
}

// NoConfiguration is what to do on a machine that has Slurm's commands and no
// configuration for them.
var NoConfiguration = lang.Text{
	EN: "this machine has Slurm's commands but no slurm.conf: set SLURM_CONF to the cluster's, run this on a login node, or use --cluster local",
	ZH: "本机有 Slurm 命令但没有 slurm.conf：请把 SLURM_CONF 设为集群的 slurm.conf，在登录节点上运行，或使用 --cluster local",
}

var accountsSilent = lang.Text{
	EN: "the accounting database does not answer; running jobs are not affected, history comes back later",
	ZH: "记账数据库没有响应；运行中的作业不受影响，历史记录稍后恢复",
}

// Rejections lists the sentences with which Slurm refuses, the more specific ones
// first: "Requested node configuration is not available" often comes together with a
// line that gives the cause.
func Rejections() []Rejection { return rejections }

var rejections = []Rejection{
	// The cluster could not be reached.
	{"Unable to contact slurm controller", Unreachable, lang.Text{
		EN: "the controller does not answer; try again in a minute, and tell the operators if it lasts",
		ZH: "控制器没有响应；请一分钟后重试，若持续请联系管理员",
	}},
	{"Socket timed out on send/recv operation", Unreachable, lang.Text{
		EN: "the controller is too busy or stopped; what was asked may still have been done, so look before asking again",
		ZH: "控制器过载或已停止；请求可能已经生效，重试前请先查询",
	}},
	{"Problem talking to the database", Unreachable, accountsSilent},
	{"failed to open persistent connection", Unreachable, accountsSilent},
	{"Unable to contact slurmdbd", Unreachable, accountsSilent},
	{"Connection refused", Unreachable, lang.Text{
		EN: "nothing listens where Slurm should be; check SLURM_CONF and whether the controller runs (`scontrol ping`)",
		ZH: "Slurm 的地址无人监听；请检查 SLURM_CONF 以及控制器是否运行（`scontrol ping`）",
	}},
	{"Zero Bytes were transmitted or received", Unreachable, lang.Text{
		EN: "the controller closed the connection; try again in a minute",
		ZH: "控制器关闭了连接；请一分钟后重试",
	}},
	{"Rate limit exceeded", RateLimited, lang.Text{
		EN: "the controller limits requests per user; wait and ask less often",
		ZH: "控制器按用户限流；请稍候并降低查询频率",
	}},
	// Without a slurm.conf the commands ask the network for the server of a site that keeps
	// none on its machines. A name server that is down is not an answer; any other failure
	// is: there is no such server, and another try will not find one.
	{"Host name lookup failure", Unreachable, lang.Text{
		EN: "no slurm.conf was found, and the name server that may know of another source does not answer; set SLURM_CONF, or try again in a minute",
		ZH: "找不到 slurm.conf，且可能给出配置来源的域名服务器没有响应；请设置 SLURM_CONF，或一分钟后重试",
	}},
	{"DNS SRV lookup failed", Missing, NoConfiguration},
	{"establish a configuration source", Unreachable, lang.Text{
		EN: "the server that keeps slurm.conf did not hand it out; try again in a minute, and tell the operators if it lasts",
		ZH: "保存 slurm.conf 的服务器没有给出配置；请一分钟后重试，若持续请联系管理员",
	}},
	{"Unable to process configuration file", Missing, lang.Text{
		EN: "Slurm's commands cannot use the slurm.conf that SLURM_CONF names, or else that of this machine: correct SLURM_CONF, or run this on a login node",
		ZH: "Slurm 命令无法使用 SLURM_CONF 所指（或本机默认）的 slurm.conf：请改正 SLURM_CONF，或在登录节点上运行",
	}},

	// The person lacks the right.
	{"Access/permission denied", Denied, lang.Text{
		EN: "only the job's owner or an operator may do this; lengthening a time limit needs an operator",
		ZH: "只有作业所有者或管理员可以执行此操作；延长时限需要管理员",
	}},
	{"Invalid user id", Denied, lang.Text{
		EN: "only the job's owner or an operator may do this",
		ZH: "只有作业所有者或管理员可以执行此操作",
	}},
	{"only permitted by root", Denied, lang.Text{
		EN: "leave this option out: it is for root only",
		ZH: "请去掉该选项：仅 root 可用",
	}},
	{"Invalid authentication credential", Denied, lang.Text{
		EN: "the token or munge credential is not accepted; get a new token (`scontrol token`) or check the clocks",
		ZH: "令牌或 munge 凭据未被接受；请重新获取令牌（`scontrol token`）或检查时钟",
	}},
	{"Authentication failure", Denied, lang.Text{
		EN: "the token is missing, wrong or has expired; get a new one with `scontrol token`",
		ZH: "令牌缺失、错误或已过期；请用 `scontrol token` 重新获取",
	}},
	{"Protocol authentication error", Denied, lang.Text{
		EN: "munge refuses the credential: its key or clock differs from the cluster's",
		ZH: "munge 拒绝凭据：密钥或时钟与集群不一致",
	}},

	// There is no such job.
	{"Invalid job id specified", NotFound, lang.Text{
		EN: "check the number with `list`; a job that ended long ago is only in the accounting",
		ZH: "用 `list` 核对作业号；结束较久的作业只在记账数据库中",
	}},

	{"Invalid job id: ", NotFound, lang.Text{
		EN: "a job id is a number, such as 4711, 4711_3 or 4711+1", ZH: "作业号是数字，如 4711、4711_3 或 4711+1",
	}},
	{"Nothing found", NotFound, lang.Text{
		EN: "the accounting has no such record; check the number with `list`",
		ZH: "记账数据库中没有该记录；请用 `list` 核对作业号",
	}},

	// Partition, account, QOS.
	{"invalid partition", Rejected, lang.Text{
		EN: "name a partition that `nodes` (sinfo -s) lists, or leave it out for the default",
		ZH: "请使用 `nodes`（sinfo -s）列出的分区名，或留空使用默认分区",
	}},
	{"Invalid account or account/partition combination", Rejected, lang.Text{
		EN: "name an account that you belong to (`accounts`, or sacctmgr show assoc user=$USER) and that may use this partition",
		ZH: "请使用您所属且可用于该分区的账户（`accounts`，或 sacctmgr show assoc user=$USER）",
	}},
	{"Invalid account", Rejected, lang.Text{
		EN: "name an account that you belong to: `accounts` lists them",
		ZH: "请使用您所属的账户：`accounts` 会列出",
	}},
	{"Invalid qos", Rejected, lang.Text{
		EN: "name a QOS that your account may use (sacctmgr show assoc user=$USER format=account,qos), or leave it out",
		ZH: "请使用账户允许的 QOS（sacctmgr show assoc user=$USER format=account,qos），或留空",
	}},
	{"User's group not permitted to use this partition", Rejected, lang.Text{
		EN: "choose another partition, or ask for membership in a group of its AllowGroups",
		ZH: "请更换分区，或申请加入该分区 AllowGroups 中的用户组",
	}},
	{"Required partition not available", Rejected, lang.Text{
		EN: "the partition is drained or inactive; choose another or wait for the operators",
		ZH: "该分区已被排空或停用；请更换分区或等待管理员",
	}},

	// Limits.
	{"QOSMaxGRESPerUser", Rejected, lang.Text{
		EN: "you would hold more GPUs than the QOS allows one user; ask for fewer, wait, or use another QOS",
		ZH: "您占用的 GPU 将超过该 QOS 的单用户上限；请减少申请、等待或更换 QOS",
	}},
	{"QOSMaxWallDurationPerJobLimit", Rejected, lang.Text{
		EN: "the time limit is longer than the QOS allows; shorten `time` or use another QOS",
		ZH: "时限超过该 QOS 的允许值；请缩短 `time` 或更换 QOS",
	}},
	{"QOSMaxSubmitJob", Rejected, lang.Text{
		EN: "you have as many jobs in the queue as the QOS allows; wait until some end",
		ZH: "排队作业数已达 QOS 上限；请等待部分作业结束",
	}},
	{"AssocMaxSubmitJob", Rejected, lang.Text{
		EN: "your account has as many jobs in the queue as it may; wait until some end",
		ZH: "账户的排队作业数已达上限；请等待部分作业结束",
	}},
	{"Job violates accounting/QOS policy", Rejected, lang.Text{
		EN: "the job is over a limit of your QOS or account: ask for fewer nodes, GPUs or less time, or use another QOS (sacctmgr show qos)",
		ZH: "作业超出 QOS 或账户限制：请减少节点、GPU 或时间，或更换 QOS（sacctmgr show qos）",
	}},
	{"Requested time limit is invalid", Rejected, lang.Text{
		EN: "shorten `time` to the partition's limit: `nodes` shows it",
		ZH: "请把 `time` 缩短到分区上限以内：`nodes` 可查看",
	}},
	{"Node count specification invalid", Rejected, lang.Text{
		EN: "ask for a number of nodes between 1 and the partition's limit: `nodes` shows it",
		ZH: "节点数应在 1 与分区上限之间：`nodes` 可查看",
	}},
	{"is not a valid node count", Rejected, lang.Text{
		EN: "give `nodes` as a whole number from 1 on", ZH: "`nodes` 应为不小于 1 的整数",
	}},
	{"More processors requested than permitted", Rejected, lang.Text{
		EN: "ask for fewer CPUs: nodes × cpus_per_task is over the limit",
		ZH: "请减少 CPU：nodes × cpus_per_task 超过上限",
	}},
	{"Memory specification can not be satisfied", Rejected, lang.Text{
		EN: "lower `mem` below a node's memory: `nodes` shows it; mem: 0 takes all of a node",
		ZH: "请把 `mem` 降到节点内存以下：`nodes` 可查看；mem: 0 表示占用整个节点内存",
	}},
	{"CPU count per node can not be satisfied", Rejected, lang.Text{
		EN: "lower `cpus_per_task` below a node's CPUs: `nodes` shows them",
		ZH: "请把 `cpus_per_task` 降到节点 CPU 数以下：`nodes` 可查看",
	}},
	{"Requested node configuration is not available", Rejected, lang.Text{
		EN: "no node has what is asked for: check gpus_per_node, the GPU type, constraint and mem against `nodes`",
		ZH: "没有节点满足要求：请对照 `nodes` 检查 gpus_per_node、GPU 型号、constraint 与 mem",
	}},

	// Names of things that do not exist.
	{"Invalid feature specification", Rejected, lang.Text{
		EN: "name a feature that `nodes` lists in `constraint`, or leave it out",
		ZH: "`constraint` 请使用 `nodes` 列出的特性，或留空",
	}},
	{"Invalid node name specified", Rejected, lang.Text{
		EN: "nodelist or exclude names a node that the cluster does not have: `nodes` lists them",
		ZH: "nodelist 或 exclude 中有集群不存在的节点：`nodes` 会列出",
	}},
	{"Requested reservation is invalid", Rejected, lang.Text{
		EN: "the reservation does not exist or is over: scontrol show reservation lists them",
		ZH: "预留不存在或已结束：scontrol show reservation 会列出",
	}},
	{"Access denied to requested reservation", Rejected, lang.Text{
		EN: "you are not among the reservation's users; leave `reservation` out or ask its owner",
		ZH: "您不在该预留的用户列表中；请去掉 `reservation` 或联系其所有者",
	}},
	{"Invalid generic resource (gres) specification", Rejected, lang.Text{
		EN: "this cluster has no such GRES: sinfo -o %G shows them; gpu_request chooses how GPUs are asked for",
		ZH: "集群没有该 GRES：用 sinfo -o %G 查看；gpu_request 决定 GPU 的申请方式",
	}},
	{"Invalid license specification", Rejected, lang.Text{
		EN: "the licence is not known: scontrol show licenses lists them",
		ZH: "许可证名称未知：scontrol show licenses 会列出",
	}},
	{"known by database", Rejected, lang.Text{
		EN: "there is no such Slurm cluster: sacctmgr show clusters lists them",
		ZH: "没有这个 Slurm 集群：sacctmgr show clusters 会列出",
	}},
	{"Job dependency problem", Rejected, lang.Text{
		EN: "write dependency as afterok:ID, afterany:ID, afternotok:ID, after:ID or singleton, with ids that exist",
		ZH: "dependency 应写为 afterok:ID、afterany:ID、afternotok:ID、after:ID 或 singleton，且作业号存在",
	}},
	{"Invalid job array specification", Rejected, lang.Text{
		EN: "write array as 0-15, 1,3,7 or 0-15%4, below the cluster's MaxArraySize",
		ZH: "array 应写为 0-15、1,3,7 或 0-15%4，且小于集群的 MaxArraySize",
	}},

	// Options and scripts.
	{"Invalid --time specification", Rejected, lang.Text{
		EN: "write time as minutes, HH:MM:SS or D-HH:MM:SS", ZH: "time 应写为分钟数、HH:MM:SS 或 D-HH:MM:SS",
	}},
	{"Invalid --begin specification", Rejected, lang.Text{
		EN: "write begin as 2026-01-31T22:00, 22:00, now+2hours or tomorrow",
		ZH: "begin 应写为 2026-01-31T22:00、22:00、now+2hours 或 tomorrow",
	}},
	{"Invalid --signal specification", Rejected, lang.Text{
		EN: "write signal as [B:]NAME[@seconds], such as B:USR1@300",
		ZH: "signal 应写为 [B:]信号名[@秒数]，如 B:USR1@300",
	}},
	{"Invalid --mail-type specification", Rejected, lang.Text{
		EN: "use mail types such as BEGIN, END, FAIL, REQUEUE, TIME_LIMIT_90 or ALL",
		ZH: "邮件类型可用 BEGIN、END、FAIL、REQUEUE、TIME_LIMIT_90 或 ALL",
	}},
	{"Invalid --exclusive specification", Rejected, lang.Text{
		EN: "write exclusive alone, or with user, mcs or topo", ZH: "exclusive 应单独书写，或取 user、mcs、topo",
	}},
	{"Invalid --mem specification", Rejected, lang.Text{
		EN: "write mem as a number with K, M, G or T, such as 64G", ZH: "mem 应为带 K、M、G 或 T 的数字，如 64G",
	}},
	{"Invalid --nice value", Rejected, lang.Text{
		EN: "give nice as a number from 0 on: only operators raise a priority", ZH: "nice 应为不小于 0 的数字：只有管理员可以提高优先级",
	}},
	{"unrecognized option", Rejected, lang.Text{
		EN: "this Slurm does not know the option: it needs a plugin (pyxis for --container-image; apptainer, singularity, enroot and docker as container.runtime need none) or a newer version",
		ZH: "当前 Slurm 不认识该选项：可能需要插件（--container-image 需要 pyxis；container.runtime 为 apptainer、singularity、enroot、docker 时不需要）或更新的版本",
	}},
	{"invalid option", Rejected, lang.Text{
		EN: "this Slurm does not know the option; see sbatch --help", ZH: "当前 Slurm 不认识该选项；参见 sbatch --help",
	}},
	{"This does not look like a batch script", Rejected, lang.Text{
		EN: "the script's first line must be #!/bin/bash or another interpreter",
		ZH: "脚本首行必须是 #!/bin/bash 或其他解释器",
	}},
	{"contains DOS line breaks", Rejected, lang.Text{
		EN: "save the script with Unix line ends (dos2unix)", ZH: "请把脚本保存为 Unix 换行（dos2unix）",
	}},
	{"Batch script is empty", Rejected, lang.Text{
		EN: "give a script that is not empty", ZH: "脚本不能为空",
	}},
	{"Invalid directive found in batch script", Rejected, lang.Text{
		EN: "a #SBATCH line has a stray word; quote values with blanks", ZH: "#SBATCH 行中有多余的词；含空格的值请加引号",
	}},
	{"Unmatched `", Rejected, lang.Text{
		EN: "a #SBATCH line has an open quote", ZH: "#SBATCH 行的引号未闭合",
	}},

	// Changes that come too late.
	{"Job is no longer pending execution", Rejected, lang.Text{
		EN: "this can be changed only while the job is pending", ZH: "只有排队中的作业可以修改该项",
	}},
	{"Requested operation is presently disabled", Rejected, lang.Text{
		EN: "the job does not allow it (submitted with --no-requeue), or the site has it switched off",
		ZH: "作业不允许此操作（提交时带 --no-requeue），或站点已禁用",
	}},
	{"Job/step already completing or completed", Rejected, lang.Text{
		EN: "the job has ended already", ZH: "作业已经结束",
	}},
	{"Job is pending execution", Rejected, lang.Text{
		EN: "the job waits already; requeue is for one that runs or has ended", ZH: "作业已在排队；requeue 只用于运行中或已结束的作业",
	}},
	{"Requested operation not supported on this system", Rejected, lang.Text{
		EN: "a running job cannot be changed in this way; nodes can only be given back", ZH: "运行中的作业不能这样修改；只能归还节点",
	}},
	{"You must specify a reason", Rejected, lang.Text{
		EN: "give a reason with the drain", ZH: "排空节点时必须给出原因",
	}},
}
