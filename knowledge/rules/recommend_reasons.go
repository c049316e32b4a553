package rules

import (
	"fmt"

	"github.com/megatron-ops/megatron-ops/internal/lang"
)

// A Step holds the estimated seconds of a training step, part by part.
type Step struct {
	Compute   float64 `json:"compute"`
	Recompute float64 `json:"recompute,omitempty"`
	// Tensor, Context, Expert, Pipeline and Data are the exposed communication of
	// each kind of parallelism: the part that no overlap hides.
	Tensor   float64 `json:"tensor,omitempty"`
	Context  float64 `json:"context,omitempty"`
	Expert   float64 `json:"expert,omitempty"`
	Pipeline float64 `json:"pipeline,omitempty"`
	Data     float64 `json:"data,omitempty"`
	// Uneven is the wait for the slowest stage, Bubble the wait while the pipeline
	// fills and drains.
	Uneven float64 `json:"uneven,omitempty"`
	Bubble float64 `json:"bubble,omitempty"`
}

// Seconds returns the time of the whole step.
func (s Step) Seconds() float64 {
	sum := 0.0
	for _, p := range s.parts() {
		sum += p.seconds
	}
	return sum
}

type stepPart struct {
	name    lang.Text
	seconds float64
}

func (s Step) parts() []stepPart {
	return []stepPart{
		{t("time in slow or small matrix products", "花在低效或过小矩阵乘上的时间"), s.Compute},
		{t("recomputation", "重计算"), s.Recompute},
		{t("tensor-parallel communication", "张量并行通信"), s.Tensor},
		{t("context-parallel communication", "上下文并行通信"), s.Context},
		{t("all-to-all between experts", "专家间的 all-to-all"), s.Expert},
		{t("communication between stages", "流水线级间通信"), s.Pipeline},
		{t("exchange of gradients and weights", "梯度与权重交换"), s.Data},
		{t("waiting for the fullest stage", "等待最满的一级"), s.Uneven},
		{t("pipeline bubble", "流水线气泡"), s.Bubble},
	}
}

// ahead says in one line why the first option ranks before the second.
func ahead(first, second Option) lang.Text {
	name := second.Layout.String()
	slower := 100 * (second.StepSeconds/first.StepSeconds - 1)
	if second.Tight && !first.Tight {
		return lang.Text{EN: "before %s: that one fits only at the lower end of the memory estimate", ZH: "排在 %s 之前：后者只有按显存估算的下限才放得下"}.With(name)
	}
	more, less := stepPart{}, stepPart{}
	ours := first.Step.parts()
	for i, p := range second.Step.parts() {
		switch d := p.seconds - ours[i].seconds; {
		case d > less.seconds:
			less = stepPart{p.name, d}
		case d < more.seconds:
			more = stepPart{p.name, d}
		}
	}
	percent := func(d float64) string { return fmt.Sprintf("%.1f", 100*d/first.StepSeconds) }
	const negligible = 0.0005 // of a step; a smaller share would read as 0.0 %
	said := lang.Text{EN: "%s %% faster than %s: %s %% less %s", ZH: "比 %[2]s 快 %[1]s %%：%[4]s少 %[3]s %%"}.
		With(fmt.Sprintf("%.1f", slower), name, percent(less.seconds), less.name)
	if -more.seconds > negligible*first.StepSeconds {
		said = lang.Text{EN: "%s, against %s %% more %s", ZH: "%[1]s，而%[3]s多 %[2]s %%"}.With(said, percent(-more.seconds), more.name)
	}
	return said
}

func (s *search) addReasons(o *Option) {
	add := func(en, zh string, args ...any) {
		o.Reasons = append(o.Reasons, t(fmt.Sprintf(en, args...), fmt.Sprintf(zh, args...)))
	}
	if o.TP > 1 {
		if o.TP > s.perNode {
			add("TP %d spans nodes of %d GPUs within an NVLink domain of %d", "TP %d 跨越 %d 卡的节点，但仍在 %d 卡的 NVLink 域内", o.TP, s.perNode, s.domain)
		} else {
			add("TP %d stays within a node of %d GPUs, where NVLink carries it", "TP %d 限制在 %d 卡的节点内，由 NVLink 承载", o.TP, s.perNode)
		}
	} else {
		add("TP 1: no communication within a layer (GPUs of a node: %d)", "TP 1：层内没有通信（每节点 %d 卡）", s.perNode)
	}
	if o.PP > 1 {
		bubble := 100 * float64(o.PP-1) / float64(max(o.VPP, 1)*o.Microbatches)
		if o.VPP > 1 {
			add("PP %d with %d microbatches and %d virtual stages leaves a pipeline bubble of %.1f %%", "PP %d、%d 个微批、%d 个虚拟级，流水线气泡为 %.1f %%", o.PP, o.Microbatches, o.VPP, bubble)
		} else {
			add("PP %d with %d microbatches leaves a pipeline bubble of %.1f %%", "PP %d、%d 个微批，流水线气泡为 %.1f %%", o.PP, o.Microbatches, bubble)
		}
	}
	if o.CP > 1 {
		add("CP %d leaves %d tokens of a sequence on a rank", "CP %d：每个 rank 只留 %d 个 token", o.CP, s.shape.Seq/o.CP)
	}
	if o.EP > 1 {
		add("EP %d puts %d of %d experts on a rank", "EP %d：每个 rank 有 %d 个专家（共 %d 个）", o.EP, s.shape.Experts/o.EP, s.shape.Experts)
	}
	if s.sharded && o.DP*o.CP > 1 {
		add("--use-distributed-optimizer is added: the optimizer's state is spread over %d ranks, and the result stays the same", "加上了 --use-distributed-optimizer：优化器状态分散到 %d 个 rank，训练结果不变", o.DP*o.CP)
	}
	switch o.Recompute {
	case "none":
		add("everything fits without recompute: %.0f of %.0f GiB", "无需重计算即可放下：%.0f / %.0f GiB", o.Memory.GiB(), s.gpu.MemoryGiB)
	case "selective":
		add("selective recompute brings the fullest stage to %.0f of %.0f GiB", "选择性重计算使最满的一级降到 %.0f / %.0f GiB", o.Memory.GiB(), s.gpu.MemoryGiB)
	case "block":
		add("recompute of some layers of each stage brings the fullest to %.0f of %.0f GiB", "重计算每级的部分层，使最满的一级降到 %.0f / %.0f GiB", o.Memory.GiB(), s.gpu.MemoryGiB)
	default:
		add("full recompute brings the fullest stage to %.0f of %.0f GiB at a third more work", "完全重计算使最满的一级降到 %.0f / %.0f GiB，计算量多三分之一", o.Memory.GiB(), s.gpu.MemoryGiB)
	}
	_, why := Connections(s.gpu.Arch, o.TP, o.CP, s.base.UseTorchFsdp2, s.base.UseMegatronFsdp, s.base.OverlapMoeExpertParallelComm)
	o.Reasons = append(o.Reasons, t(connections+" "+o.Connections+": "+why.EN, connections+" "+o.Connections+"："+why.ZH))
}
