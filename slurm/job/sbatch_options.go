package job

import (
	"cmp"
	"slices"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// sbatchWord matches one long option of sbatch, with or without a value.
var sbatchWord = lazy.New(`^--([a-z][a-z0-9-]*)(=.+)?$`)

// fieldOf maps a long option of sbatch to the field with the same effect.
var fieldOf = map[string]string{
	"job-name": "name", "account": "account", "partition": "partition", "qos": "qos", "reservation": "reservation", "constraint": "constraint",
	"nodes": "nodes", "gpus-per-node": "gpus_per_node", "gpus": "gpus_per_node", "cpus-per-task": "cpus_per_task", "mem": "mem", "mem-per-gpu": "mem_per_gpu",
	"time": "time", "hint": "hint", "nodelist": "nodelist", "exclude": "exclude", "dependency": "dependency", "begin": "begin", "array": "array",
	"signal": "signal", "requeue": "requeue", "no-requeue": "requeue", "comment": "comment", "mail-user": "mail_user", "mail-type": "mail_type",
	"segment": "segment", "switches": "switches", "nice": "nice", "output": "log_dir", "error": "log_dir", "chdir": "worktree",
	"clusters": "cluster", "export": "env", "export-file": "env", "open-mode": "requeue",
}

// FieldOf returns the field with the effect of a long option of sbatch, or "" if there
// is none.
func FieldOf(option string) string { return fieldOf[option] }

// taskOptions are options that change the number of tasks from one per node, or that
// distribute the GPUs over tasks.
var taskOptions = strings.Fields("ntasks ntasks-per-node ntasks-per-core ntasks-per-socket ntasks-per-gpu ntasks-per-tres gpus-per-task gpus-per-socket tres-per-task overcommit")

// perTRES are options whose value may name GPUs, gres/gpu:8, as --gres may.
var perTRES = strings.Fields("tres-per-job tres-per-node tres-per-socket")

// atSubmission are options for the caller of sbatch. They would disturb this program,
// which calls sbatch for the user.
var atSubmission = strings.Fields("wrap wait test-only parsable quiet verbose help usage version autocomplete uid gid input get-user-env ignore-pbs")

// sbatch validates the field sbatch: each element must be an option that Slurm may
// know and that does not conflict with what the script itself sets.
func (v *validator) sbatch(s Spec) {
	seen := map[string]bool{}
	for _, word := range s.Sbatch {
		m := sbatchWord.FindStringSubmatch(word)
		if m == nil || unprintable(word) != fine {
			v.add("sbatch", word, cmp.Or(unprintable(word), phrase("is not one long option of sbatch", "不是一个 sbatch 长选项")), phrase("give --option or --option=value, one element each", "请写 --option 或 --option=value，每项一个"))
			continue
		}
		name, value := m[1], strings.TrimPrefix(m[2], "=")
		if why, fix := s.refusesOption(name, value); why != fine {
			v.add("sbatch", word, why, fix)
			continue
		}
		if seen[name] {
			v.add("sbatch", word, phrase("is given twice", "重复给出"), phrase("keep one", "只保留一个"))
		}
		seen[name] = true
	}
}

// refusesOption returns why an option is not allowed in the field sbatch, and what
// would work. why is fine if the option is allowed.
func (s Spec) refusesOption(name, value string) (why, fix lang.Text) {
	leave := phrase("leave it out", "请去掉")
	switch full, takes, ok := slurm.BatchOption(name); {
	case full != "" && full != name:
		return phrase("is a short or old form, which sbatch completes", "是简写或旧写法，sbatch 会自行补全"), phrase("write --%s", "请写 --%s", full)
	case ok && takes == slurm.NeedsArgument && value == "":
		return phrase("lacks its value", "缺少取值"), phrase("write --%s=value", "请写 --%s=取值", name)
	case ok && takes == slurm.NoArgument && value != "":
		return phrase("takes no value", "不带取值"), phrase("write --%s", "请写 --%s", name)
	case slices.Contains(taskOptions, name):
		return phrase("changes the number of tasks: the launch needs one a node", "会改变任务数：启动需要每个节点一个任务"), leave
	case slices.Contains(atSubmission, name):
		return phrase("is for whoever calls sbatch, not for the job", "是给调用 sbatch 的人用的，与作业无关"), leave
	case name == "gres" && !strings.Contains(value, "gpu") && s.GPURequest != "gres", name == "exclusive" && value != "" && s.Exclusive == nil:
		return fine, fine
	case name == "gres", slices.Contains(perTRES, name):
		return phrase("would replace the request for GPUs", "会取代 GPU 申请"), use("gpus_per_node")
	case name == "exclusive":
		return phrase("has a field of its own", "有专门的字段"), use("exclusive")
	case name == "cpus-per-gpu" && s.CPUsPerTask != nil:
		return phrase("does not go together with %s", "不能与 %s 同时使用", "cpus_per_task"), phrase("keep one of them", "只保留其中一个")
	case name == "mem-per-cpu" && (s.Mem != "" || s.MemPerGPU != ""):
		return phrase("does not go together with %s", "不能与 %s 同时使用", "mem"), phrase("keep one of them", "只保留其中一个")
	case fieldOf[name] != "":
		return phrase("has a field of its own", "有专门的字段"), use(fieldOf[name])
	}
	if near, ok := slurm.NearestOption(name); ok {
		return phrase("is not an option of sbatch", "不是 sbatch 的选项"), phrase("did you mean %s?", "是否想写 %s？", "--"+near)
	}
	return fine, fine
}
