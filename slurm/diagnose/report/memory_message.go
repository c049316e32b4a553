package report

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/lazy"
)

// Memory holds the numbers of an out-of-memory message, in GiB.
type Memory struct {
	TriedGiB     float64 `json:"tried_gib,omitempty"`
	TotalGiB     float64 `json:"total_gib,omitempty"`
	FreeGiB      float64 `json:"free_gib,omitempty"`
	AllocatedGiB float64 `json:"allocated_gib,omitempty"`
	ReservedGiB  float64 `json:"reserved_unallocated_gib,omitempty"`
	OthersGiB    float64 `json:"other_processes_gib,omitempty"`
}

var memoryFields = []struct {
	re  *lazy.Pattern
	set func(*Memory, float64)
}{
	{lazy.New(`Tried to allocate ([\d.]+) (\w+)`), func(m *Memory, v float64) { m.TriedGiB = v }},
	{lazy.New(`total capac\w+ of ([\d.]+) (\w+)`), func(m *Memory, v float64) { m.TotalGiB = v }},
	{lazy.New(`([\d.]+) (\w+) total capacity`), func(m *Memory, v float64) { m.TotalGiB = v }},
	{lazy.New(`of which ([\d.]+) (\w+) is free`), func(m *Memory, v float64) { m.FreeGiB = v }},
	{lazy.New(`([\d.]+) (\w+) free;`), func(m *Memory, v float64) { m.FreeGiB = v }},
	{lazy.New(`([\d.]+) (\w+) is allocated by PyTorch`), func(m *Memory, v float64) { m.AllocatedGiB = v }},
	{lazy.New(`([\d.]+) (\w+) already allocated`), func(m *Memory, v float64) { m.AllocatedGiB = v }},
	{lazy.New(`([\d.]+) (\w+) is reserved by PyTorch but unallocated`), func(m *Memory, v float64) { m.ReservedGiB = v }},
}

var otherProcess = lazy.New(`Process \d+ has ([\d.]+) (\w+) memory in use`)

// MemoryOf parses the message of PyTorch's caching allocator (CUDACachingAllocator.cpp).
func MemoryOf(text string) *Memory {
	var m Memory
	for _, f := range memoryFields {
		if g := f.re.FindStringSubmatch(text); g != nil {
			f.set(&m, gib(g[1], g[2]))
		}
	}
	namesItself := strings.Contains(text, "this process has")
	if all := otherProcess.FindAllStringSubmatch(text, -1); len(all) > 1 || len(all) == 1 && namesItself {
		largest := 0.0
		for _, g := range all {
			held := gib(g[1], g[2])
			m.OthersGiB, largest = m.OthersGiB+held, max(largest, held)
		}
		if !namesItself {
			m.OthersGiB -= largest // the rank itself
		}
	}
	if m == (Memory{}) {
		return nil
	}
	return &m
}

func gib(number, unit string) float64 {
	v, _ := strconv.ParseFloat(number, 64)
	switch unit {
	case "MiB":
		v /= 1 << 10
	case "KiB":
		v /= 1 << 20
	case "bytes":
		v /= 1 << 30
	}
	return float64(int(v*1000+0.5)) / 1000
}

// outsidePool matches failed allocations of CUDA and its libraries, as opposed to PyTorch's own.
var outsidePool = lazy.New(`CUDA error: out of memory|CUBLAS_STATUS_ALLOC_FAILED|Failed to CUDA (?:calloc|malloc)|Cuda failure (?:2 )?'out of memory'`)

// memoryAdvice returns remedies with the run's own numbers.
func (r Report) memoryAdvice() (out []lang.Text) {
	if m := r.Memory; m != nil && m.OthersGiB > 1 {
		out = append(out, said("Another process holds memory on this GPU: find it with nvidia-smi, and ask for the node with --exclusive.",
			"该 GPU 上另有进程占用显存：用 nvidia-smi 查出该进程，并用 --exclusive 独占节点。"))
	}
	if r.Memory == nil && outsidePool.MatchString(r.RootLine) {
		out = append(out, said("What failed is an allocation of CUDA, NCCL or cuBLAS outside PyTorch's pool, because the GPU was full: look with nvidia-smi for other processes on it first.",
			"失败的是 CUDA、NCCL 或 cuBLAS 在 PyTorch 显存池之外的申请，因为该 GPU 显存已满：先用 nvidia-smi 查看是否另有进程占用。"))
	}
	if y := r.Layout; y != nil && y.MicroBatchSize > 1 && r.Fit == nil {
		half := y.MicroBatchSize / 2
		out = append(out, said(fmt.Sprintf("The run used --micro-batch-size %d with sequence length %d, TP %d, PP %d, CP %d: try --micro-batch-size %d.",
			y.MicroBatchSize, y.SeqLength, y.TP, y.PP, max(1, y.CP), half),
			fmt.Sprintf("本次运行使用 --micro-batch-size %d，序列长度 %d，TP %d、PP %d、CP %d：可先试 --micro-batch-size %d。", y.MicroBatchSize, y.SeqLength, y.TP, y.PP, max(1,
				y.CP), half)))
	}
	return out
}
