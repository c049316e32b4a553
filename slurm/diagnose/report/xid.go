package report

import (
	"fmt"
	"strconv"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
)

// An xid is an error number of the NVIDIA driver: its meaning, and the administrators' remedy.
type xid struct {
	means, act lang.Text
}

var (
	resetGPU = said("drain the node and reset the GPU (nvidia-smi --gpu-reset -i N, while nothing runs on it) or reboot",
		"将节点 drain，在空闲时重置 GPU（nvidia-smi --gpu-reset -i N）或重启节点")
	swapGPU   = said("drain the node; if it comes back after a reboot, the GPU must be replaced", "将节点 drain；重启后若再次出现，应更换该 GPU")
	checkLink = said("drain the node and check the NVLink bridge or switch (nvidia-smi nvlink -e, fabric manager's log)",
		"将节点 drain，检查 NVLink 桥或 NVSwitch（nvidia-smi nvlink -e 与 fabric manager 日志）")
	watchGPU  = said("the node can stay in use; reset the GPU when it is next idle, and drain the node if the count grows", "节点可继续使用；下次空闲时重置 GPU，若计数增长则 drain 节点")
	looksCode = said("usually the program's own fault: rerun once with CUDA_LAUNCH_BLOCKING=1; drain only if it always occurs on the same GPU",
		"多为程序自身问题：用 CUDA_LAUNCH_BLOCKING=1 重跑一次；仅当总出现在同一 GPU 时才 drain")
)

// xids are the numbers that occur in training, from NVIDIA's catalogue
// (https://docs.nvidia.com/deploy/xid-errors/).
var xids = map[int]xid{
	13:  {said("graphics engine exception, such as an index out of bounds in a kernel", "图形引擎异常，例如 kernel 越界访问"), looksCode},
	31:  {said("GPU memory page fault: a kernel used an illegal address", "GPU 显存缺页：kernel 访问了非法地址"), looksCode},
	32:  {said("invalid or corrupted push buffer", "push buffer 无效或损坏"), looksCode},
	43:  {said("the GPU stopped processing after the program's own error", "程序自身出错后 GPU 停止处理"), looksCode},
	45:  {said("preemptive clean-up after another error", "因先前错误而进行的清理"), looksCode},
	48:  {said("double-bit ECC error that cannot be corrected", "无法纠正的双比特 ECC 错误"), resetGPU},
	61:  {said("the GPU's internal micro-controller hit a breakpoint", "GPU 内部微控制器触发断点"), resetGPU},
	62:  {said("the GPU's internal micro-controller halted", "GPU 内部微控制器停止"), swapGPU},
	63:  {said("a row of memory was remapped or a page retired; it takes effect at the next reset", "显存行重映射或页退役，重置后生效"), watchGPU},
	64:  {said("row remapping or page retirement failed", "显存行重映射或页退役失败"), swapGPU},
	74:  {said("NVLink error", "NVLink 错误"), checkLink},
	79:  {said("the GPU has fallen off the bus", "GPU 已从总线掉线"), swapGPU},
	92:  {said("many correctable ECC errors", "可纠正 ECC 错误过多"), watchGPU},
	94:  {said("contained ECC error: only this program was hurt", "受控的 ECC 错误：只影响该程序"), resetGPU},
	95:  {said("uncontained ECC error: other programs on the GPU may be hurt too", "未受控的 ECC 错误：该 GPU 上其他程序也可能受影响"), resetGPU},
	119: {said("the GPU's system processor (GSP) did not answer in time", "GPU 系统处理器（GSP）响应超时"), resetGPU},
	120: {said("the GPU's system processor (GSP) failed", "GPU 系统处理器（GSP）出错"), resetGPU},
	121: {said("corrected error of the link between GPUs and CPU (C2C)", "CPU 与 GPU 互连（C2C）的可纠正错误"), watchGPU},
	140: {said("ECC error that could not be recovered from", "无法恢复的 ECC 错误"), resetGPU},
	145: {said("NVLink error that ended the traffic", "导致通信中断的 NVLink 错误"), checkLink},
	154: {said("the driver asks for the recovery that the line names", "驱动要求执行该行所写的恢复操作"), resetGPU},
	149: {said("NVLink error of the network link", "NVLink 网络链路错误"), checkLink},
}

var (
	xidNumber = lazy.New(`(?i)\bxid\b[^:]*(?:\([^)]*\))?:? *(\d{1,3})\b`)
	// causedBy matches the driver's reference to the error that it cleans up after.
	causedBy = lazy.New(`(?i)\bcaused by previous xid (\d{1,3})\b`)
	eccWords = lazy.New(`(?i)uncorrectable ecc|double.?bit|ecc error`)
)

// hardwareAdvice explains the driver's error number, or an ECC error, and what to do with the node.
func (r Report) hardwareAdvice() (lang.Text, bool) {
	node := "NODE"
	if r.RootNode != nil {
		node = *r.RootNode
	}
	lines := []string{r.RootLine}
	for _, e := range r.Evidence {
		lines = append(lines, e.Text)
	}
	for _, l := range lines {
		m := causedBy.FindStringSubmatch(l)
		if m == nil {
			m = xidNumber.FindStringSubmatch(l)
		}
		if m == nil {
			continue
		}
		n, _ := strconv.Atoi(m[1])
		x, ok := xids[n]
		if !ok {
			continue
		}
		return said(fmt.Sprintf("Xid %d on %s: %s. Administrators: %s.", n, node, x.means.EN, x.act.EN),
			fmt.Sprintf("%s 上的 Xid %d：%s。管理员：%s。", node, n, x.means.ZH, x.act.ZH)), true
	}
	if r.Class == outcome.GPUHardware && eccWords.MatchString(r.RootLine) {
		return said(fmt.Sprintf("An ECC error that cannot be corrected on %s: the memory of that GPU lost data. Administrators: %s; nvidia-smi -q -d "+
			"ECC,ROW_REMAPPER shows whether it must be replaced.", node, resetGPU.EN),
			fmt.Sprintf("%s 上出现无法纠正的 ECC 错误：该 GPU 的显存丢失了数据。管理员：%s；nvidia-smi -q -d ECC,ROW_REMAPPER 可判断是否需要更换。", node, resetGPU.ZH)), true
	}
	return lang.Text{}, false
}
