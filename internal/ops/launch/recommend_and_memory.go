package launch

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/chart"
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/shellword"
	"github.com/megatron-ops/megatron-ops/internal/view"
	"github.com/megatron-ops/megatron-ops/knowledge/megatron"
	"github.com/megatron-ops/megatron-ops/knowledge/rules"
	"github.com/megatron-ops/megatron-ops/slurm/job"
)

// RecommendIn is a model and the GPUs to train it on. The model is given by Megatron's
// own arguments; a layout among them is replaced.
type RecommendIn struct {
	SpecIn
	Model string `json:"model,omitempty" name:"model" placeholder:"MODEL" help:"a model by name, such as llama3-70b; recipes lists them" zh:"用名称代替模型参数，例如 llama3-70b；recipes 列出全部"`
	Show  int    `json:"show,omitempty" default:"3" help:"how many layouts to show" zh:"显示多少种并行配置"`
}

// RecommendOut holds the best layouts.
type RecommendOut struct {
	Considered int            `json:"considered"`
	Legal      int            `json:"legal"`
	GPU        string         `json:"gpu"`
	GPUGiB     float64        `json:"gpu_gib"`
	Options    []rules.Option `json:"options"`
	// SmallestGiB is the least memory that any layout needs, where none fits.
	SmallestGiB float64 `json:"smallest_gib,omitempty"`
	// Megatron is the release by which the layouts were judged.
	Megatron *Judged `json:"megatron,omitempty"`
}

// Found reports whether no layout fits.
func (o RecommendOut) Found() bool { return len(o.Options) == 0 }

// Recommend returns the operation recommend.
func Recommend() ops.Op {
	return ops.Define(ops.Op{
		Name: "recommend", Effect: ops.Read, Toolset: ops.PlanSet, Closed: true,
		Summary: lang.Text{EN: "the best TP, PP, CP, EP, micro batch and recompute for a model on so many GPUs", ZH: "为模型与 GPU 数量推荐 TP、PP、CP、EP、微批与重计算"},
		Help: lang.Text{
			EN: "Use for: I have N GPUs of this kind and this model, what layout? It tries all layouts that Megatron's rules allow, estimates memory and cost, and says why the first is first.",
			ZH: "用于回答：有 N 张某型号 GPU 和某个模型，该用什么并行配置？它尝试 Megatron 规则允许的全部配置，估算显存与代价，并说明理由。模型用 Megatron 参数给出。",
		},
		Example: "recommend --nodes 2 --gpu h100 --worktree /w -- --num-layers 32 --hidden-size 4096 --num-attention-heads 32 --seq-length 4096 --max-position-embeddings 4096 --global-batch-size 256 --swiglu",
	}, recommend)
}

func recommend(_ context.Context, c *ops.Call, in RecommendIn) (RecommendOut, error) {
	if in.Model != "" {
		in.Recipe, in.modelOnly = in.Model, true
	}
	s, err := modelSpec(c, in.SpecIn)
	if err != nil {
		return RecommendOut{}, err
	}
	if in.Show < 1 {
		return RecommendOut{}, ops.InputError("show",
			lang.Text{EN: "%d is less than 1", ZH: "%d 小于 1"}.With(in.Show),
			lang.Text{EN: "a number of 1 or more", ZH: "大于等于 1 的数"})
	}
	full, judged := withRelease(c, s.WithDefaults())
	full.GPU = cmp.Or(full.GPU, "h100")
	if _, err := kindOfGPU(full.GPU); err != nil {
		return RecommendOut{}, err
	}
	run := full.Run()
	run.Argv = withRequiredFlags(run)
	r, err := rules.Recommend(rules.Question{
		Entry:        run.Entry,
		Argv:         run.Argv,
		GPUs:         full.WorldSize(),
		GPUsPerNode:  *full.GPUsPerNode,
		GPU:          full.GPU,
		NVLinkDomain: c.SiteOf(s).NVLinkDomain,
		Release:      run.Release,
		Extra:        run.Extra,
	})
	if err != nil {
		return RecommendOut{}, ops.InputError("args",
			lang.Said(err),
			lang.Text{EN: "give the model: --num-layers, --hidden-size, --num-attention-heads, --seq-length, --max-position-embeddings, --global-batch-size", ZH: "请给出模型：--num-layers、--hidden-size、--num-attention-heads、--seq-length、--max-position-embeddings、--global-batch-size"})
	}
	out := RecommendOut{
		Considered: r.Considered,
		Legal:      r.Legal,
		GPU:        r.GPU.Name,
		GPUGiB:     r.GPU.MemoryGiB,
		Megatron:   judged,
		Options:    append([]rules.Option{}, r.Best(in.Show)...),
	}
	if len(out.Options) == 0 {
		out.SmallestGiB = r.Smallest
		if r.Smallest < out.GPUGiB {
			return out, notLegal(run)
		}
	}
	return out, nil
}

// modelSpec returns a specification of which only the model and the GPUs matter: it may
// have no worktree yet, and may come from a script that hides its folders.
func modelSpec(c *ops.Call, in SpecIn) (job.Spec, error) {
	in.Spec.Worktree = cmp.Or(in.Spec.Worktree, "/worktree")
	s, err := draft(c, in)
	if err != nil {
		return s, err
	}
	return s, validate(s)
}

// notLegal returns the error about the rule of Megatron that every layout breaks.
func notLegal(run megatron.Run) error {
	zh := rules.CheckIn(run, lang.ZH).Problems
	for i, p := range rules.CheckIn(run, lang.EN).Problems {
		if p.Severity == rules.Error {
			return ops.InputError(p.Field,
				lang.Text{EN: "no layout that fits is legal: %s", ZH: "放得下的并行布局都不合法：%s"}.With(lang.Text{EN: p.Message, ZH: zh[i].Message}),
				lang.Text{EN: p.Fix, ZH: zh[i].Fix})
		}
	}
	return ops.InputError("args",
		lang.Text{EN: "no layout that fits is legal", ZH: "放得下的并行布局都不合法"},
		lang.Text{EN: "`plan` tells what is wrong", ZH: "`plan` 会指出问题所在"})
}

// withRequiredFlags adds flags that Megatron requires but no layout depends on, where
// they are missing: people ask for a layout before they have chosen a learning rate.
func withRequiredFlags(run megatron.Run) []string {
	args, _ := megatron.Parse(run)
	argv := slices.Clone(run.Argv)
	needs := [][]string{{"--lr", "1e-4"}, {"--train-iters", "1000"}, {"--micro-batch-size", "1"}}
	if run.Entry == "hybrid" {
		needs = append(needs, append([]string{"--spec"}, megatron.HybridSpec(run.Release)...))
	}
	for _, need := range needs {
		if !args.Given(need[0]) {
			argv = append(argv, need...)
		}
	}
	return argv
}

// View shows the layouts in their order, and why the first one is first.
func (o RecommendOut) View(l lang.Lang) view.Doc {
	if len(o.Options) == 0 {
		return view.Doc{Tone: view.Bad, Title: fmt.Sprintf(lang.Text{
			EN: "no layout fits into %.0f GiB: the smallest needs %.1f GiB; take more GPUs", ZH: "没有任何并行配置能放进 %.0f GiB：最小也需要 %.1f GiB；请增加 GPU",
		}.In(l), o.GPUGiB, o.SmallestGiB)}
	}
	d := view.Doc{Tone: view.Good, Title: fmt.Sprintf(lang.Text{
		EN: "%d layouts are legal and fit, of %d tried; the cheapest by estimate:", ZH: "尝试了 %[2]d 种并行配置，%[1]d 种合法且放得下；估算代价最低的是：",
	}.In(l), o.Legal, o.Considered)}
	t := &view.Table{Header: view.Columns(l, "layout|MBS|microbatches|recompute|GiB|TFLOP/s/GPU", "并行配置|MBS|微批次数|重计算|GiB|TFLOP/s/GPU"), Spare: []int{2}}
	for _, op := range o.Options {
		t.Rows = append(t.Rows, []string{
			op.Layout.String(), strconv.Itoa(op.MicroBatch), strconv.Itoa(op.Microbatches), op.Recompute,
			fmt.Sprintf("%.1f", op.Memory.GiB()), speed(op),
		})
	}
	d.Sections = []view.Section{{Table: t}}
	for i, op := range o.Options {
		s := view.Section{Heading: op.Layout.String(), Code: shellword.Line(op.Flags), Fold: i > 0}
		if s.Fold { // the heading alone is shown, with the number of reasons
			s.Heading = lang.Text{EN: "the reasons for %s, with its flags", ZH: "%s 的理由（附参数）"}.With(s.Heading).In(l)
		}
		for _, r := range op.Reasons {
			s.Items = append(s.Items, r.In(l))
		}
		d.Sections = append(d.Sections, s)
	}
	if o.Megatron != nil {
		d.Sections = append(d.Sections, o.Megatron.section(l))
	}
	return d
}

// speed formats the estimated speed and the range of measured speeds of that kind; "–"
// where none was measured.
func speed(o rules.Option) string {
	if o.High == 0 {
		return "–"
	}
	return fmt.Sprintf("%.0f (%.0f–%.0f)", o.TFLOPs, o.Low, o.High)
}

// MemoryIn is the job whose memory is estimated.
type MemoryIn struct {
	SpecIn
	PNG string `json:"-" name:"png" placeholder:"FILE" help:"draw the parts there" zh:"把各部分画到该文件"`
}

// MemoryOut is the estimated memory of the fullest GPU.
type MemoryOut struct {
	megatron.Memory
	TotalGiB float64 `json:"total_gib"`
	// LowGiB and HighGiB are the bounds of the range in which the real use may lie.
	LowGiB  float64 `json:"low_gib"`
	HighGiB float64 `json:"high_gib"`
	GPU     string  `json:"gpu,omitempty"`
	GPUGiB  float64 `json:"gpu_gib,omitempty"`
	// FP32 says that neither --bf16 nor --fp16 is given, which more than doubles the memory.
	FP32 bool `json:"-"`
	// Megatron is the release by which the arguments were read.
	Megatron *Judged `json:"megatron,omitempty"`
}

// Found reports whether the job does not fit.
func (o MemoryOut) Found() bool { return o.GPUGiB > 0 && o.TotalGiB > o.GPUGiB }

// Memory returns the operation memory.
func Memory() ops.Op {
	return ops.Define(ops.Op{
		Name: "memory", Effect: ops.Read, Toolset: ops.PlanSet, Closed: true,
		Summary: lang.Text{EN: "a job's estimated GPU memory, part by part", ZH: "估算作业的显存占用及各部分构成"},
		Help: lang.Text{
			EN: "Use to see whether a layout fits and what takes the memory. It is an estimate: fragmentation and NCCL's buffers come on top.",
			ZH: "查看某个配置能否放下、显存被什么占用。这是估算：碎片与 NCCL 缓冲区另计。",
		},
		Example: "memory -f job.yaml",
	}, memory)
}

func memory(_ context.Context, c *ops.Call, in MemoryIn) (MemoryOut, error) {
	s, err := modelSpec(c, in.SpecIn)
	if err != nil {
		return MemoryOut{}, err
	}
	full, judged := withRelease(c, s.WithDefaults())
	args, faults := megatron.Parse(full.Run())
	if len(faults) > 0 {
		return MemoryOut{}, ops.InputError("args",
			lang.Text{EN: "the arguments are not Megatron's: %s", ZH: "不是 Megatron 的参数：%s"}.With(faults[0].Flag),
			lang.Text{EN: "`plan` tells all that is wrong", ZH: "`plan` 会指出所有问题"})
	}
	out := MemoryOut{Megatron: judged}
	if full.GPU != "" {
		g, err := kindOfGPU(full.GPU)
		if err != nil {
			return MemoryOut{}, err
		}
		out.GPU, out.GPUGiB = g.Name, g.MemoryGiB
	}
	config := args.Effective()
	if err := rules.CheckModelSize(config.Shape()); err != nil {
		return MemoryOut{}, ops.InputError("args", lang.Said(err),
			lang.Text{EN: "give these in the specification, or a model by name: `memory --recipe llama3-8b`", ZH: "请在作业规格中给出这些参数，或按名称指定模型：`memory --recipe llama3-8b`"})
	}
	low, high := config.Band()
	out.Memory, out.FP32 = config.Memory(), config.FP32()
	out.TotalGiB = out.GiB()
	out.LowGiB, out.HighGiB = out.TotalGiB*low, out.TotalGiB*high
	return out, c.WriteFile("png", in.PNG, func(w io.Writer) error {
		var bars []chart.Bar
		for _, p := range out.Parts {
			bars = append(bars, chart.Bar{Name: p.Name, Value: p.Bytes / (1 << 30)})
		}
		return chart.WriteBars(w, fmt.Sprintf("%s: %.1f GiB on the fullest GPU", full.Name, out.TotalGiB), "GiB", append(bars, chart.Bar{Name: "all", Value: out.TotalGiB}), out.GPUGiB, out.GPU)
	})
}

// View shows the parts of the memory.
func (o MemoryOut) View(l lang.Lang) view.Doc {
	d := view.Doc{Tone: view.Good, Title: fmt.Sprintf(lang.Text{EN: "about %.1f GiB on the fullest GPU (%.0f to %.0f)", ZH: "占用最多的 GPU 约需 %.1f GiB（%.0f 至 %.0f）"}.In(l), o.TotalGiB, o.LowGiB, o.HighGiB)}
	if o.GPUGiB > 0 {
		d.Title += fmt.Sprintf(lang.Text{EN: ", of %.1f GiB usable", ZH: "，可用 %.1f GiB"}.In(l), o.GPUGiB)
	}
	if o.Found() {
		d.Tone = view.Bad
	}
	var s view.Section
	for _, p := range o.Parts {
		s.Facts = append(s.Facts, view.Fact{Name: cmp.Or(partNames[p.Name].In(l), p.Name), Value: fmt.Sprintf("%8.2f GiB  %s", p.Bytes/(1<<30), bar(p.Bytes, o.Bytes))})
	}
	d.Sections = []view.Section{s}
	if o.FP32 {
		d.Sections = append(d.Sections, view.Section{Text: textFP32.In(l)})
	}
	if o.Megatron != nil {
		d.Sections = append(d.Sections, o.Megatron.section(l))
	}
	return d
}

var textFP32 = lang.Text{
	EN: "Neither --bf16 nor --fp16 is given: weights and activations are in fp32, and no attention kernel keeps the scores out of memory.",
	ZH: "没有使用 --bf16 或 --fp16：权重与激活值均为 fp32，且没有注意力内核能避免在显存中保存注意力分数。",
}

var partNames = map[string]lang.Text{
	megatron.PartParameters:  {EN: "parameters", ZH: "参数"},
	megatron.PartGradients:   {EN: "gradients", ZH: "梯度"},
	megatron.PartOptimizer:   {EN: "optimizer", ZH: "优化器状态"},
	megatron.PartActivations: {EN: "activations", ZH: "激活值"},
	megatron.PartLogits:      {EN: "logits", ZH: "logits"},
	megatron.PartFramework:   {EN: "framework", ZH: "框架与预留"},
}

// bar draws a share of the whole, at most 40 columns wide.
func bar(part, whole float64) string {
	if whole <= 0 {
		return ""
	}
	return strings.Repeat("█", int(part/whole*40+0.5))
}
