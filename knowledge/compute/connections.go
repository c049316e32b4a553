package compute

import (
	"slices"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/knowledge/rules"
)

// A connectionCase is a case with its own value of CUDA_DEVICE_MAX_CONNECTIONS.
type connectionCase struct {
	named  *lazy.Pattern // matches questions that name the case
	en, zh string
}

var connectionCases = []connectionCase{
	{
		lazy.New(`\b(?:hopper|ampere|[ah][1-8]00s?|h20|ada|tp|cp)\b|pre-blackwell|tensor|context|张量|上下文`),
		"- Hopper, Ampere (pre-Blackwell) with TP>1 or CP>1, no FSDP: `1`; Megatron asserts on it at start. With TP=1 and CP=1: unset.",
		"- Hopper、Ampere(Blackwell 之前)且 TP>1 或 CP>1、非 FSDP:`1`,启动时有断言检查;TP=1 且 CP=1:不设。",
	},
	{
		lazy.New(`\bblackwell|\bg?b[23]00`),
		"- Blackwell (B200, GB200, …): unset; it is not required and has no effect.",
		"- Blackwell(B200、GB200 等):不用设,设了也没有效果。",
	},
	{
		lazy.New(`fsdp`),
		"- FSDP (Torch-FSDP2, Megatron-FSDP), any GPU: not 1; unset, or greater than 1 (8, 32).",
		"- FSDP(Torch-FSDP2、Megatron-FSDP),任何 GPU:不能为 1;不设,或大于 1(8、32)。",
	},
	{
		lazy.New(`\bmoe\b|expert|专家`),
		"- `--overlap-moe-expert-parallel-comm`: `32`, in all cases.",
		"- 开启 `--overlap-moe-expert-parallel-comm`(MoE 通信重叠):`32`,优先于其他情况。",
	},
}

var (
	// severalAsked matches questions about the difference between cases.
	severalAsked = lazy.New(`\beach\b|\brespectively\b|\bcases\b|\btable\b|\bmatrix\b|\boverview\b|\bsummary\b|\bsummari[sz]e\b|\bversus\b` +
		`|\bvs\b|\bwhen (?:should|must|do|is|to)\b|\bwhich (?:value )?(?:for|when)\b|\bdiffer\w*|\bcompare|分别|各自?(?:设|是` +
		`|要|用|取|该)|各种|几种|哪种|情况|一览|汇总|总结|对比|区别|对照`)
	// wholeTable matches questions about all cases.
	wholeTable = lazy.New(`\btable\b|\bmatrix\b|\boverview\b|\bsummary\b|\bsummari[sz]e\b|\bcheat ?sheet\b|\ball (?:the )?cases\b` +
		`|\brules?\b|\b(?:by|per|depending on) (?:the )?(?:gpu |hardware )?(?:generation|architecture|hardware|gpu` +
		`|mode)s?\b|各种|所有情况|全部|一览|汇总|总结|速查|不同(?:的)?(?:硬件|gpu|显卡|卡|架构|并行)`)
	// generations matches two GPU architectures in one sentence.
	generations = lazy.New(`\b(?:hopper|ampere|[ah][1-8]00s?)\b[^;?。]{0,40}\b(?:blackwell|g?b[23]00s?)\b|\b(?:blackwell` +
		`|g?b[23]00s?)\b[^;?。]{0,40}\b(?:hopper|ampere|[ah][1-8]00s?)\b`)
	// listed matches two cases separated by a comma or a slash.
	listed = lazy.New(`(?:hopper|ampere|blackwell|g?[abh][1-8]00s?|fsdp2?|\btp|\bcp|overlap|moe)\w* ?[/,|;] ?(?:and |or )?(?:hopper` +
		`|ampere|blackwell|g?[abh][1-8]00s?|(?:torch-|megatron-)?fsdp2?|\btp|\bcp|moe|ep)`)
)

// severalCases answers a question for the value in several cases.
func severalCases(q *question) string {
	var lines []string
	if !slices.ContainsFunc(connectionCases, func(r connectionCase) bool { return r.named.MatchString(q.low) }) {
		return "" // the table of all cases answers
	}
	for _, r := range connectionCases {
		if r.named.MatchString(q.low) || wholeTable.MatchString(q.low) {
			lines = append(lines, q.say(r.en, r.zh))
		}
	}
	switch {
	case len(lines) < 2:
		return ""
	case severalAsked.MatchString(q.low), wholeTable.MatchString(q.low):
	case generations.MatchString(q.low) && !moved.MatchString(q.low) && !compiled(`\bmov|\bswitch|\bmigrat|换|迁|升级|改用`).MatchString(q.low):
	case len(lines) > 2 && len(listed.FindAllString(q.low, -1)) > 1:
	default:
		return ""
	}
	return strings.Join(lines, "\n") + q.say("\nSet it (`export CUDA_DEVICE_MAX_CONNECTIONS=…`) or unset it in the sbatch script, before srun.",
		"\n在 sbatch 脚本里、srun 之前设置(`export CUDA_DEVICE_MAX_CONNECTIONS=…`)或 unset。")
}

// connections answers with CUDA_DEVICE_MAX_CONNECTIONS for a configuration.
func connections(q *question) string {
	c := q.cfg
	if !q.has("max-connections", "max connections", "连接数", "cdmc", "connection var", "connections var", "连接变量") {
		return ""
	}
	if t := severalCases(q); t != "" {
		return t
	}
	if q.has("assertionerror", "traceback") && c.FSDP {
		return "" // the card of the error message is a better answer
	}
	tp, cp := c.TP, c.CP
	if c.Tensor {
		tp = max(tp, 2)
	}
	if c.Contxt {
		cp = max(cp, 2)
	}
	hasSizes := c.TP > 0 || c.CP > 0 || c.Tensor || c.Contxt
	if !c.Overlap && !c.FSDP && (c.Arch == 0 || c.Arch < 10 && !hasSizes) {
		return "" // the table of all cases answers
	}
	if c.Arch >= 10 && !hasSizes && !c.FSDP && !c.Overlap && q.has("hang", "卡", "死锁", "deadlock") {
		return ""
	}
	if c.TP == 0 && c.CP == 0 && q.has("why", "为什么", "原理", "reason", "为啥") {
		return ""
	}
	value, _ := rules.Connections(orOne(c.Arch), tp, cp, c.TorchFSDP, c.FSDP && !c.TorchFSDP, c.Overlap)
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
		return q.say("32: with `--overlap-moe-expert-parallel-comm` set CUDA_DEVICE_MAX_CONNECTIONS=32 in the sbatch script before srun, whatever "+
			"the GPU, TP and CP are, so that the MoE exchange and the expert compute overlap.",
			"32:开启 `--overlap-moe-expert-parallel-comm`(MoE 专家通信重叠)时在 sbatch 脚本的 srun 之前设 CUDA_DEVICE_MAX_CONNECTIONS=32,与 GPU、TP、CP 无关,让 MoE 通信与专家计算重叠。")
	case c.FSDP:
		return q.say("Not 1: with FSDP leave CUDA_DEVICE_MAX_CONNECTIONS unset or make it greater than 1 (8, 32), on any GPU and whatever TP and "+
			"CP are. In the sbatch script take the export out, or write `unset CUDA_DEVICE_MAX_CONNECTIONS` before srun (an image or .bashrc may set "+
			"it too). FSDP overlaps its gathers with compute over several queues, and Megatron refuses 1 with an assertion.",
			"不能为 1:FSDP 下 CUDA_DEVICE_MAX_CONNECTIONS 不设,或设为大于 1 的值(8、32),与 GPU 型号、TP、CP 无关。在 sbatch 脚本里删掉那行 export,或在 srun 之前写 `unset "+
				"CUDA_DEVICE_MAX_CONNECTIONS`(镜像和 .bashrc 里也可能设了)。FSDP 靠多条队列让聚合与计算重叠,Megatron 会断言拒绝 1。")
	case c.Arch >= 10:
		return q.say("Leave it unset: it is not required on Blackwell (%sTP/CP do not matter); setting it has no effect and does no harm, so the "+
			"export in the sbatch script may go or stay. Exceptions: FSDP (not 1) and --overlap-moe-expert-parallel-comm (32).",
			"不用设:Blackwell(%s与 TP/CP 无关)不需要 CUDA_DEVICE_MAX_CONNECTIONS,设了也没有效果、也无害,sbatch 脚本里的 export 可删可留。例外:FSDP(不能为 1)和 "+
				"--overlap-moe-expert-parallel-comm(32)。", gpu)
	case value == "1":
		return q.say("CUDA_DEVICE_MAX_CONNECTIONS=1: %s%s is pre-Blackwell, and with TP>1 or CP>1 and no FSDP Megatron asserts on exactly 1 (it "+
			"stops at start, it does not deadlock). Put `export CUDA_DEVICE_MAX_CONNECTIONS=1` into the sbatch script before srun. (Hopper and Ampere alike.)",
			"CUDA_DEVICE_MAX_CONNECTIONS=1：%s%s 属于 Blackwell 之前的架构,TP>1 或 CP>1 且非 FSDP 时 Megatron 断言必须恰好为 1(启动时报错退出,不是死锁)。在 sbatch 脚本的 srun 之前写 "+
				"`export CUDA_DEVICE_MAX_CONNECTIONS=1`。(Hopper 与 Ampere 相同。)", gpu, family)
	default:
		return q.say("Leave it unset, it is not required: with TP = 1 and CP = 1 on %s%s nothing depends on CUDA_DEVICE_MAX_CONNECTIONS. It would "+
			"be 1 only with TP>1 or CP>1 (no FSDP).",
			"不用设:%s%s 上 TP = 1 且 CP = 1 时没有任何东西依赖 CUDA_DEVICE_MAX_CONNECTIONS。只有 TP>1 或 CP>1(非 FSDP)才需要 1。", gpu, family)
	}
}
