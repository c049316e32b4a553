package rules

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/knowledge/megatron"
)

// A Question is the input of a recommendation: a model and its training, as
// Megatron's flags, and the available GPUs. Recommend replaces the flags of the
// layout. It adds the distributed optimizer where nothing else shards the
// optimizer.
type Question struct {
	Argv  []string
	Entry string
	GPUs  int
	// GPUsPerNode is the number of GPUs of a node; 0 means 8.
	GPUsPerNode int
	// GPU is the kind of GPU, such as "h100".
	GPU string
	// NVLinkDomain is the number of GPUs in an NVLink domain. 0 means the default of
	// the kind of GPU: 72 for GB200 NVL72 and GB300 NVL72, the node otherwise.
	NVLinkDomain int
	// Release is the Megatron-LM release that runs; Extra are the flags of a fork.
	Release megatron.Release
	Extra   []string
}

// An Option is one layout that Megatron would start and that fits in memory.
type Option struct {
	megatron.Layout
	MicroBatch int `json:"micro_batch_size"`
	// Microbatches is the number of microbatches of a step in each pipeline.
	Microbatches int    `json:"num_microbatches"`
	Recompute    string `json:"recompute"`
	// Flags is the layout as Megatron's flags.
	Flags  []string        `json:"flags"`
	Memory megatron.Memory `json:"memory"`
	// Tight reports that the upper bound of the memory estimate does not fit. Tight
	// layouts come last.
	Tight bool `json:"tight,omitempty"`
	// StepSeconds is the cost by which options are ranked.
	StepSeconds float64 `json:"step_seconds"`
	Step        Step    `json:"step"`
	// TFLOPs is the model's operations per GPU and second, in 10^12. Low and High
	// are the range of measured runs of the same kind. They are 0 where no such run
	// was measured; then nothing supports TFLOPs, and views do not show it.
	TFLOPs float64 `json:"tflops_per_gpu"`
	Low    float64 `json:"tflops_low,omitempty"`
	High   float64 `json:"tflops_high,omitempty"`
	// Connections is the recommended CUDA_DEVICE_MAX_CONNECTIONS.
	Connections string      `json:"cuda_device_max_connections"`
	Reasons     []lang.Text `json:"reasons"`
}

// A Recommendation holds every option. The cheapest comes first.
type Recommendation struct {
	GPU megatron.GPU `json:"gpu"`
	// Considered counts the tried layouts. Legal counts those that fit in memory and
	// break no rule.
	Considered int      `json:"considered"`
	Legal      int      `json:"legal"`
	Options    []Option `json:"options"`
	// Smallest is the least memory that any layout needs. Views show it where no
	// layout fits.
	Smallest float64 `json:"smallest_gib"`
}

// Best returns the first n options.
func (r Recommendation) Best(n int) []Option { return r.Options[:min(n, len(r.Options))] }

// The least number of tokens of a sequence that context parallelism leaves on a
// rank: usualTokens, or fewestTokens where no layout fits otherwise.
const (
	usualTokens  = 4096
	fewestTokens = 1024
)

// headroom is the share of a GPU's memory that a layout may use.
const headroom = 0.96

// CheckModelSize returns an error where a size of the model is not given.
func CheckModelSize(m megatron.Shape) error {
	if m.Layers < 1 || m.Hidden < 1 || m.Heads < 1 || m.Seq < 1 {
		return lang.Text{
			EN: "the model is incomplete: give --num-layers, --hidden-size, --num-attention-heads, --seq-length",
			ZH: "模型不完整：请给出 --num-layers、--hidden-size、--num-attention-heads、--seq-length",
		}.Err()
	}
	return nil
}

// Recommend finds every layout of the model on the GPUs that fits in memory and
// breaks no rule, and ranks the layouts by the cost model of cost.go.
func Recommend(q Question) (Recommendation, error) {
	gpu, ok := megatron.LookupGPU(q.GPU)
	if !ok {
		return Recommendation{}, lang.Text{
			EN: "gpu %q is not known: give one of h100, h200, a100, b200, gb200, b300, gb300, l40s, v100",
			ZH: "不认识 GPU %q：请给出 h100、h200、a100、b200、gb200、b300、gb300、l40s、v100 之一",
		}.Err(q.GPU)
	}
	if q.GPUs < 1 || q.GPUs > 1<<20 {
		return Recommendation{}, lang.Text{EN: "gpus is %d: give 1 to %d", ZH: "gpus 为 %d：请给出 1 到 %d"}.Err(q.GPUs, 1<<20)
	}
	perNode := q.GPUsPerNode
	if perNode < 1 {
		perNode = 8
	}
	perNode = min(perNode, q.GPUs)
	args, faults := megatron.Parse(megatron.Run{
		Entry: q.Entry, Argv: q.Argv, WorldSize: q.GPUs, Arch: gpu.Arch, Env: map[string]string{},
		Release: q.Release, Extra: q.Extra,
	})
	for _, f := range faults {
		if megatron.KnownEntry(q.Entry) || f.Known.Name != "" {
			return Recommendation{}, fmt.Errorf("%s", parserProblem(f, args.Effective(), lang.EN).Message)
		}
	}
	s := search{gpu: gpu, perNode: perNode, world: q.GPUs, base: args, domain: perNode, tokens: usualTokens}
	if domain := cmp.Or(q.NVLinkDomain, gpu.Domain); domain > 0 && gpu.NVLinkGBs > 0 {
		s.domain = min(max(domain, perNode), q.GPUs)
	}
	if err := s.prepare(); err != nil {
		return Recommendation{}, err
	}
	s.run()
	if s.found.Legal == 0 && s.shape.Seq >= 2*fewestTokens {
		s.tokens, s.found.Considered = fewestTokens, 0
		s.run()
	}
	if s.sharded && s.found.Legal == 0 {
		s.sharded, s.base.Options.UseDistributedOptimizer = false, false
		s.found.Considered = 0
		s.run()
	}
	slices.SortStableFunc(s.found.Options, Option.compare)
	s.found.Options = bestOfEach(s.found.Options)
	for i := range s.found.Best(3) {
		s.addReasons(&s.found.Options[i])
	}
	if len(s.found.Options) > 1 {
		first := &s.found.Options[0]
		first.Reasons = append([]lang.Text{ahead(*first, s.found.Options[1])}, first.Reasons...)
	}
	return s.found, nil
}

// bestOfEach keeps the first option of each combination of TP, PP, CP and EP. The
// others differ only in their virtual stages.
func bestOfEach(options []Option) []Option {
	seen := map[[4]int]bool{}
	return slices.DeleteFunc(options, func(o Option) bool {
		d := [4]int{o.TP, o.PP, o.CP, o.EP}
		duplicate := seen[d]
		seen[d] = true
		return duplicate
	})
}

// A search enumerates the layouts of one model.
type search struct {
	gpu            megatron.GPU
	perNode, world int
	base           *megatron.Args // rewritten for each layout
	shape          megatron.Shape
	params         float64             // weights of the whole model
	work           megatron.Operations // for one token
	domain         int                 // GPUs in an NVLink domain
	global         int                 // global batch size; 0 means not given
	// tokens is the least number of tokens of a sequence that context parallelism
	// leaves on a rank.
	tokens int
	// sharded reports that Recommend added the distributed optimizer. It saves
	// memory on every rank and does not change the result.
	sharded bool
	found   Recommendation
}

// prepare removes the layout from the flags and measures the model.
func (s *search) prepare() error {
	o := &s.base.Options
	o.ExpertTensorParallelSize = megatron.Opt[int]{}
	o.TensorParallelNumWeightShards, o.ExpertTensorParallelNumWeightShards = megatron.Opt[int]{}, megatron.Opt[int]{}
	o.NumLayersPerVirtualPipelineStage, o.NumVirtualStagesPerPipelineRank = megatron.Opt[int]{}, megatron.Opt[int]{}
	o.PipelineModelParallelLayout = megatron.Opt[string]{}
	o.DecoderFirstPipelineNumLayers, o.DecoderLastPipelineNumLayers = megatron.Opt[int]{}, megatron.Opt[int]{}
	o.AccountForEmbeddingInPipelineSplit, o.AccountForLossInPipelineSplit = false, false
	o.RecomputeActivations, o.MoeLayerRecompute = false, false
	o.RecomputeMethod, o.RecomputeNumLayers = megatron.Opt[string]{}, megatron.Opt[int]{}
	if !o.MicroBatchSize.OK {
		o.MicroBatchSize = megatron.Some(1)
	}
	o.TensorModelParallelSize, o.PipelineModelParallelSize, o.ContextParallelSize, o.ExpertModelParallelSize = 1, 1, 1, 1
	if !o.UseDistributedOptimizer && !o.UseTorchFsdp2 && !o.UseMegatronFsdp && !o.FreezeAllLayers && o.Optimizer == "adam" {
		s.sharded, o.UseDistributedOptimizer = true, true
	}
	c := s.base.Effective()
	s.shape = c.Shape()
	s.params, _ = s.shape.Params()
	s.work = s.shape.Operations()
	if err := CheckModelSize(s.shape); err != nil {
		return err
	}
	if s.shape.Layers > largest || s.shape.Heads > largest || s.shape.Experts > largest {
		return lang.Text{
			EN: "no model has %d layers, %d heads, %d experts: give at most %d of each",
			ZH: "没有模型有 %d 层、%d 个头、%d 个专家：每项最多 %d",
		}.Err(s.shape.Layers, s.shape.Heads, s.shape.Experts, largest)
	}
	s.global = cmp.Or(o.GlobalBatchSize.Or(0), c.Schedule.First())
	s.found.GPU = s.gpu
	return nil
}

// run tries every combination of TP, CP, PP and EP.
func (s *search) run() {
	o := &s.base.Options
	experts := []int{1}
	if s.shape.Experts > 0 {
		experts = divisorsUpTo(s.shape.Experts, s.world)
	}
	for _, tp := range divisorsUpTo(s.shape.Heads, s.widestTP()) {
		if s.widestTP()%tp != 0 {
			continue
		}
		for _, cp := range s.contexts() {
			for _, pp := range divisorsUpTo(s.world, min(s.shape.Layers, 64)) {
				if s.world%(tp*cp*pp) != 0 {
					continue
				}
				for _, ep := range experts {
					if s.world%(ep*pp) != 0 {
						continue
					}
					o.TensorModelParallelSize, o.ContextParallelSize, o.PipelineModelParallelSize, o.ExpertModelParallelSize = tp, cp, pp, ep
					o.SequenceParallel = tp > 1
					o.ExpertTensorParallelSize = megatron.Opt[int]{}
					if s.shape.Experts > 0 {
						o.ExpertTensorParallelSize = megatron.Some(1)
					}
					s.stages(pp)
				}
			}
		}
	}
}

// widestTP returns the largest allowed tensor-parallel size: the GPUs of a node, or
// up to eight GPUs where an NVLink domain spans nodes.
func (s *search) widestTP() int {
	if s.domain > s.perNode {
		return max(s.perNode, min(8, s.domain))
	}
	return s.perNode
}

// contexts returns the context-parallel sizes worth trying. With a larger size a
// rank would have too few tokens to hide the communication.
func (s *search) contexts() []int {
	sizes := []int{1}
	for cp := 2; s.shape.Seq/cp >= s.tokens && s.shape.Seq%(2*cp) == 0 && cp <= s.world; cp *= 2 {
		sizes = append(sizes, cp)
	}
	return sizes
}

// stages tries the ways of splitting the layers into pp stages.
func (s *search) stages(pp int) {
	o := &s.base.Options
	reset := func() {
		o.NumVirtualStagesPerPipelineRank = megatron.Opt[int]{}
		o.AccountForEmbeddingInPipelineSplit, o.AccountForLossInPipelineSplit = false, false
	}
	reset()
	layers := s.shape.Layers
	switch {
	case o.HybridLayerPattern.OK || pp == 1:
		s.batches()
		return
	case layers%pp == 0:
		s.virtual(layers/pp, pp)
	case (layers+2)%pp == 0:
		o.AccountForEmbeddingInPipelineSplit, o.AccountForLossInPipelineSplit = true, true
		s.virtual((layers+2)/pp, pp)
	default:
		s.placed(layers, pp)
	}
	reset()
}

// placed tries layouts that list each stage's layers. They serve models whose
// number of layers pp does not divide. All stages between the first and the last
// have the same number of layers. The last stage has fewer, because it also has
// the output layer and the multi-token prediction. The first stage has the rest.
func (s *search) placed(layers, pp int) {
	o := &s.base.Options
	for _, v := range []int{1, 2, 4, 8} {
		if v > 1 && s.global == 0 {
			break
		}
		each, stages := (layers+s.shape.MTP+pp*v)/(pp*v), pp*v
		last := max(each-s.shape.MTP-1, 0)
		first := layers - last - each*(stages-2)
		if first < 1 || first > each {
			continue
		}
		repeated := func(letter string, n int) string {
			if n == 0 {
				return ""
			}
			return fmt.Sprintf("%s*%d", letter, n)
		}
		o.PipelineModelParallelLayout = megatron.Some(fmt.Sprintf("E%s|(t*%d|)*%d%s%sL", repeated("t", first), each, stages-2, repeated("t", last), repeated("m", s.shape.MTP)))
		s.batches()
	}
	o.PipelineModelParallelLayout = megatron.Opt[string]{}
}

// virtual tries one to sixteen virtual stages for each rank.
func (s *search) virtual(layersPerRank, pp int) {
	o := &s.base.Options
	for _, v := range divisorsUpTo(layersPerRank, 16) {
		o.NumVirtualStagesPerPipelineRank = megatron.Opt[int]{}
		if v > 1 {
			if pp < 2 || s.global == 0 {
				break
			}
			o.NumVirtualStagesPerPipelineRank = megatron.Some(v)
		}
		s.batches()
	}
}

// batches adds the option with the cheapest micro-batch and recompute mode of one
// layout, if any fits.
func (s *search) batches() {
	o := &s.base.Options
	s.found.Considered++
	o.RecomputeGranularity, o.RecomputeMethod, o.RecomputeNumLayers = megatron.Opt[string]{}, megatron.Opt[string]{}, megatron.Opt[int]{}
	o.MicroBatchSize = megatron.Some(1)
	c := s.base.Effective()

	best, ok := s.cheapest(c)
	if !ok {
		return
	}
	best.Memory = c.MemoryOf(s.shape)
	if low, high, ok := s.measured(c); ok {
		best.Low, best.High = low*best.TFLOPs, high*best.TFLOPs
	}
	s.found.Legal++
	best.Connections, _ = recommendedConnections(c)
	best.Flags = append(s.flags(c, best.Option), best.mode.flags()...)
	s.found.Options = append(s.found.Options, best.Option)
}

// A candidate is an option with its recompute mode.
type candidate struct {
	Option
	mode recompute
}

// compare orders options: tight options last, then by time.
func (o Option) compare(p Option) int {
	if o.Tight != p.Tight {
		if p.Tight {
			return -1
		}
		return 1
	}
	return cmp.Compare(o.StepSeconds, p.StepSeconds)
}

// cheapest finds the cheapest micro-batch and recompute mode of c's layout and sets
// them in c. It returns false where nothing fits or a rule is broken.
func (s *search) cheapest(c *cfg) (best candidate, found bool) {
	dp := c.DP
	modes := s.recomputes(c)
	_, high := c.Band()
	for _, micro := range []int{1, 2, 4, 8} {
		if s.global != 0 && s.global%(micro*dp) != 0 {
			continue
		}
		c.MicroBatchSize = megatron.Some(micro)
		c.Microbatches = 1
		if s.global != 0 {
			c.Microbatches = s.global / (micro * dp)
		}
		for _, r := range modes {
			r.set(c)
			gib := c.GiBOf(&s.shape)
			if s.found.Smallest == 0 || gib < s.found.Smallest {
				s.found.Smallest = gib
			}
			if gib > headroom*s.gpu.MemoryGiB {
				continue
			}
			step, tflops := s.cost(c, r)
			option := Option{
				Layout: c.Layout, MicroBatch: micro, Microbatches: c.Microbatches, Recompute: r.name,
				StepSeconds: step.Seconds(), Step: step, TFLOPs: tflops, Tight: gib*high > s.gpu.MemoryGiB,
			}
			if !found || option.compare(best.Option) < 0 {
				best, found = candidate{option, r}, true
			}
			if !option.Tight {
				break // heavier modes only cost more
			}
		}
	}
	if !found {
		return best, false
	}
	best.mode.set(c)
	c.MicroBatchSize, c.Microbatches = megatron.Some(best.MicroBatch), best.Microbatches
	return best, s.legal(c)
}

// legal reports whether c breaks no rule in the environment that a rendered script
// would set.
func (s *search) legal(c *cfg) bool {
	value, _ := recommendedConnections(c)
	delete(c.Asked.Run.Env, connections)
	if value != Unset {
		c.Asked.Run.Env[connections] = value
	}
	if s.global != 0 {
		c.GlobalBatchSize, c.Batch = megatron.Some(s.global), s.global
		c.EvalGlobalBatchSize, c.EvalMicroBatchSize = c.GlobalBatchSize, c.MicroBatchSize
	}
	return legal(c) && !splitsUnevenly(c)
}

// flags returns an option as Megatron's flags.
func (s *search) flags(c *cfg, o Option) []string {
	layout := o.Layout
	if c.PipelineModelParallelLayout.OK {
		layout.VPP = 0 // the pipeline layout contains the virtual stages
	}
	flags := layout.Flags()
	if c.PipelineModelParallelLayout.OK {
		flags = append(flags, "--pipeline-model-parallel-layout", c.PipelineModelParallelLayout.V)
	}
	if c.SequenceParallel {
		flags = append(flags, "--sequence-parallel")
	}
	flags = append(flags, "--micro-batch-size", strconv.Itoa(o.MicroBatch))
	if c.AccountForEmbeddingInPipelineSplit {
		flags = append(flags, forEmbed, forLoss)
	}
	if s.sharded && o.DP*o.CP > 1 {
		flags = append(flags, "--use-distributed-optimizer")
	}
	return flags
}

// divisorsUpTo lists the divisors of n that are at most top.
func divisorsUpTo(n, top int) []int {
	var list []int
	for d := 1; d <= min(n, top); d++ {
		if n%d == 0 {
			list = append(list, d)
		}
	}
	return list
}
