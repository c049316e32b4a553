package compute

import (
	"slices"
	"strings"

	"github.com/megatron-ops/megatron-ops/knowledge/rules"
)

// connections answers with CUDA_DEVICE_MAX_CONNECTIONS for a configuration.
func connections(q *question) string {
	c := q.cfg
	if !q.has("max-connections", "max connections", "连接数", "cdmc", "connection var", "connections var", "连接变量") {
		return ""
	}
	if q.has("assertionerror", "traceback") && c.FSDP {
		return "" // the card of the error message says more
	}
	tp, cp := c.TP, c.CP
	if c.Tensor {
		tp = max(tp, 2)
	}
	if c.Contxt {
		cp = max(cp, 2)
	}
	said := c.TP > 0 || c.CP > 0 || c.Tensor || c.Contxt
	switch {
	case c.Overlap, c.FSDP:
	case c.Arch == 0 || c.Arch < 10 && !said:
		return "" // the table of all cases answers
	}
	if c.Arch >= 10 && !said && !c.FSDP && !c.Overlap && q.has("hang", "卡", "死锁", "deadlock") {
		return ""
	}
	if c.TP == 0 && c.CP == 0 && q.has("why", "为什么", "原理", "reason", "为啥") {
		return ""
	}
	value, _ := rules.Connections(one(c.Arch), tp, cp, c.TorchFSDP, c.FSDP && !c.TorchFSDP, c.Overlap)
	gpu := strings.ToUpper(c.GPU)
	if slices.Contains([]string{"HOPPER", "AMPERE", "BLACKWELL", "ADA", "VOLTA"}, gpu) {
		gpu = ""
	} else if gpu != "" {
		gpu += ", "
	}
	family := map[int]string{7: "Volta", 8: "Ampere", 9: "Hopper"}[c.Arch]
	if strings.HasPrefix(c.GPU, "l4") || strings.HasPrefix(strings.ReplaceAll(c.GPU, " ", ""), "rtx4") || c.GPU == "ada" {
		family = "Ada"
	}
	switch {
	case value == "32":
		return q.say("32: with `--overlap-moe-expert-parallel-comm` set CUDA_DEVICE_MAX_CONNECTIONS=32 in the sbatch script, whatever the GPU, TP and CP are, so that the MoE exchange and the expert compute overlap.",
			"32:开启 `--overlap-moe-expert-parallel-comm`(MoE 专家通信重叠)时在 sbatch 脚本里设 CUDA_DEVICE_MAX_CONNECTIONS=32,与 GPU、TP、CP 无关,让 MoE 通信与专家计算重叠。")
	case c.FSDP:
		return q.say("Not 1: with FSDP leave CUDA_DEVICE_MAX_CONNECTIONS unset or make it greater than 1 (8, 32), on any GPU and whatever TP and CP are. FSDP overlaps its gathers with compute over several queues, and Megatron refuses 1 with an assertion.",
			"不能为 1:FSDP 下 CUDA_DEVICE_MAX_CONNECTIONS 不设,或设为大于 1 的值(8、32),与 GPU 型号、TP、CP 无关。FSDP 靠多条队列让聚合与计算重叠,Megatron 会断言拒绝 1。")
	case c.Arch >= 10:
		return q.say("Leave it unset: it is not required on Blackwell (%sTP/CP do not matter); setting it has no effect and does no harm. Exceptions: FSDP (not 1) and --overlap-moe-expert-parallel-comm (32).",
			"不用设:Blackwell(%s与 TP/CP 无关)不需要 CUDA_DEVICE_MAX_CONNECTIONS,设了也没有效果、也无害。例外:FSDP(不能为 1)和 --overlap-moe-expert-parallel-comm(32)。", gpu)
	case value == "1":
		return q.say("CUDA_DEVICE_MAX_CONNECTIONS=1: %s%s is pre-Blackwell, and with TP>1 or CP>1 and no FSDP Megatron asserts on exactly 1 (it stops at start, it does not deadlock). Put `export CUDA_DEVICE_MAX_CONNECTIONS=1` into the sbatch script before srun. (Hopper and Ampere alike.)",
			"CUDA_DEVICE_MAX_CONNECTIONS=1:%s%s 属于 Blackwell 之前的架构,TP>1 或 CP>1 且非 FSDP 时 Megatron 断言必须恰好为 1(启动时报错退出,不是死锁)。在 sbatch 脚本的 srun 之前写 `export CUDA_DEVICE_MAX_CONNECTIONS=1`。(Hopper 与 Ampere 相同。)", gpu, family)
	default:
		return q.say("Leave it unset, it is not required: with TP = 1 and CP = 1 on %s%s nothing depends on CUDA_DEVICE_MAX_CONNECTIONS. It would be 1 only with TP>1 or CP>1 (no FSDP).",
			"不用设:%s%s 上 TP = 1 且 CP = 1 时没有任何东西依赖 CUDA_DEVICE_MAX_CONNECTIONS。只有 TP>1 或 CP>1(非 FSDP)才需要 1。", gpu, family)
	}
}
