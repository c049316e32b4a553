package rules

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/knowledge/megatron"
)

// A Question is what a recommendation is asked for: a model and its training,
// as Megatron's flags, and the GPUs at hand. Flags that lay the model out are
// replaced, and the distributed optimizer is added where nothing else shards
// the optimizer.
type Question struct {
	Argv  []string
	Entry string
	GPUs  int
	// GPUsPerNode is 8 where it is 0.
	GPUsPerNode int
	// GPU is the kind of GPU, such as "h100".
	GPU string
	// NVLinkDomain is how many GPUs one NVLink switch joins; 0 for what the kind
	// of GPU has: 72 for GB200 NVL72 and GB300 NVL72, the node otherwise.
	NVLinkDomain int
	// Release is the Megatron-LM release that runs; Extra are the flags of a fork.
	Release megatron.Release
	Extra   []string
}

// An Option is one layout that Megatron would start and that fits.
type Option struct {
	megatron.Layout
	MicroBatch int `json:"micro_batch_size"`
	// Microbatches is how often a pipeline runs for one step.
	Microbatches int    `json:"num_microbatches"`
	Recompute    string `json:"recompute"`
	// Flags are the layout as Megatron's flags.
	Flags  []string        `json:"flags"`
	Memory megatron.Memory `json:"memory"`
	// Tight reports that the upper edge of the estimate does not fit; such
	// layouts come last.
	Tight bool `json:"tight,omitempty"`
	// StepSeconds is the cost that options are ranked by.
	StepSeconds float64 `json:"step_seconds"`
	Step        Step    `json:"step"`
	// TFLOPs is the model's operations per GPU and second, in 10^12. Low and High
	// are the band that runs of the kind were measured in; without them nothing was
	// measured that would bear the number, and it is not shown.
	TFLOPs float64 `json:"tflops_per_gpu"`
	Low    float64 `json:"tflops_low,omitempty"`
	High   float64 `json:"tflops_high,omitempty"`
	// Connections is the recommended CUDA_DEVICE_MAX_CONNECTIONS.
	Connections string      `json:"cuda_device_max_connections"`
	Reasons     []lang.Text `json:"reasons"`
}

// A Recommendation is every option, cheapest first.
type Recommendation struct {
	GPU megatron.GPU `json:"gpu"`
	// Considered counts the layouts tried, Legal those that the rules table
	// lets through among those that fit in memory.
	Considered int      `json:"considered"`
	Legal      int      `json:"legal"`
	Options    []Option `json:"options"`
	// Smallest is the least memory that any layout needs, told when none fits.
	Smallest float64 `json:"smallest_gib"`
}

// Best returns the first n options.
func (r Recommendation) Best(n int) []Option { return r.Options[:min(n, len(r.Options))] }

// The tokens of a sequence that context parallelism leaves on a rank: usually,
// and at least, where nothing fits otherwise.
const (
	usualTokens  = 4096
	fewestTokens = 1024
)

// headroom is the share of a GPU's memory that a layout may use.
const headroom = 0.96

// Recommend finds every layout of the model on the GPUs that the rules table
// lets through and that fits in memory, and ranks them by the cost model of
// cost.go.
func Recommend(q Question) (Recommendation, error) {
	gpu, ok := megatron.LookupGPU(q.GPU)
	if !ok {
		return Recommendation{}, fmt.Errorf("gpu %q is not known: give one of h100, h200, a100, b200, gb200, b300, gb300, l40s, v100", q.GPU)
	}
	if q.GPUs < 1 || q.GPUs > 1<<20 {
		return Recommendation{}, fmt.Errorf("gpus is %d: give 1 to %d", q.GPUs, 1<<20)
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
	slices.SortStableFunc(s.found.Options, func(a, b Option) int {
		return cmp.Or(compareBool(a.Tight, b.Tight), cmp.Compare(a.StepSeconds, b.StepSeconds))
	})
	for i := range s.found.Best(3) {
		s.finish(&s.found.Options[i])
	}
	if len(s.found.Options) > 1 {
		first := &s.found.Options[0]
		first.Reasons = append([]lang.Text{ahead(*first, s.found.Options[1])}, first.Reasons...)
	}
	return s.found, nil
}

// compareBool puts false before true.
func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// A search walks the layouts of one model.
type search struct {
	gpu            megatron.GPU
	perNode, world int
	base           *megatron.Args
	shape          megatron.Shape
	all            float64 // weights
	// work is what one token costs; domain is how many GPUs one NVLink switch joins.
	work   megatron.Operations
	domain int
	global int
	// tokens is the least of a sequence that context parallelism leaves on a rank.
	tokens int
	// sharded says that the distributed optimizer is our addition: it takes
	// memory off every rank and leaves the result as it is.
	sharded bool
	found   Recommendation
}

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
	if !o.UseDistributedOptimizer && !o.UseTorchFsdp2 && !o.UseMegatronFsdp && !o.FreezeAllLayers && (o.Optimizer == "adam" || o.Optimizer == "sgd") {
		s.sharded, o.UseDistributedOptimizer = true, true
	}
	c := s.base.Effective()
	s.shape = c.Shape()
	s.all, _ = s.shape.Params()
	s.work = s.shape.Operations()
	if s.shape.Layers < 1 || s.shape.Hidden < 1 || s.shape.Heads < 1 || s.shape.Seq < 1 {
		return errors.New("the model is not whole: give --num-layers, --hidden-size, --num-attention-heads, --seq-length")
	}
	if s.shape.Layers > largest || s.shape.Heads > largest || s.shape.Experts > largest {
		return fmt.Errorf("no model has %d layers, %d heads, %d experts: give at most %d of each", s.shape.Layers, s.shape.Heads, s.shape.Experts, largest)
	}
	s.global = o.GlobalBatchSize.Or(0)
	if s.global == 0 {
		s.global = c.Schedule.First()
	}
	s.found.GPU = s.gpu
	return nil
}

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

// widestTP is how far tensor parallelism may reach: a node, or where NVLink
// joins several nodes, eight GPUs of them.
func (s *search) widestTP() int {
	if s.domain > s.perNode {
		return max(s.perNode, min(8, s.domain))
	}
	return s.perNode
}

// contexts are the context-parallel sizes worth trying: a rank keeps so many
// tokens of a sequence that the communication does not outweigh the work.
func (s *search) contexts() []int {
	sizes := []int{1}
	for cp := 2; s.shape.Seq/cp >= s.tokens && s.shape.Seq%(2*cp) == 0 && cp <= s.world; cp *= 2 {
		sizes = append(sizes, cp)
	}
	return sizes
}

// stages tries the ways of cutting the layers into pp stages.
func (s *search) stages(pp int) {
	o := &s.base.Options
	reset := func() {
		o.NumVirtualStagesPerPipelineRank = megatron.Opt[int]{}
		o.AccountForEmbeddingInPipelineSplit, o.AccountForLossInPipelineSplit = false, false
		o.DecoderFirstPipelineNumLayers, o.DecoderLastPipelineNumLayers = megatron.Opt[int]{}, megatron.Opt[int]{}
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
		middle := (layers + pp - 1) / pp
		ends := layers - middle*(pp-2)
		if ends >= 2 && ends <= 2*middle {
			o.DecoderFirstPipelineNumLayers, o.DecoderLastPipelineNumLayers = megatron.Some((ends+1)/2), megatron.Some(ends/2)
			s.batches()
		}
	}
	reset()
}

// virtual tries one to sixteen virtual stages on a rank.
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

// batches chooses the micro-batch and the recompute mode of one layout: the
// cheapest that fits.
func (s *search) batches() {
	o := &s.base.Options
	s.found.Considered++
	dp := s.world / (o.TensorModelParallelSize * o.PipelineModelParallelSize * o.ContextParallelSize)
	o.RecomputeGranularity, o.RecomputeMethod, o.RecomputeNumLayers = megatron.Opt[string]{}, megatron.Opt[string]{}, megatron.Opt[int]{}
	o.MicroBatchSize = megatron.Some(1)
	c := s.base.Effective()

	modes := s.recomputes(c)
	best, mode, found := Option{}, recompute{}, false
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
			step, tflops := s.cost(c, r.work)
			if seconds := step.Seconds(); !found || seconds < best.StepSeconds {
				best = Option{
					Layout: c.Layout, MicroBatch: micro, Microbatches: c.Microbatches, Recompute: r.name,
					StepSeconds: seconds, Step: step, TFLOPs: tflops,
				}
				mode, found = r, true
			}
			break // a heavier recompute only costs more
		}
	}
	if !found {
		return
	}
	mode.set(c)
	c.MicroBatchSize, c.Microbatches = megatron.Some(best.MicroBatch), best.Microbatches
	if !s.legal(c) {
		return
	}
	best.Memory = c.MemoryOf(s.shape)
	if low, high, ok := s.measured(c); ok {
		best.Low, best.High = low*best.TFLOPs, high*best.TFLOPs
	}
	_, high := c.Band()
	best.Tight = best.Memory.GiB()*high > s.gpu.MemoryGiB
	s.found.Legal++
	best.Connections, _ = recommendedConnections(c)
	best.Flags = append(s.flags(c, best), mode.flags()...)
	s.found.Options = append(s.found.Options, best)
}

// legal asks the rules table, with the environment that we would set.
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
	return Legal(c)
}

// A recompute is one way of computing activations again instead of keeping them.
type recompute struct {
	name    string
	modules []string // selective
	layers  int      // block: of each virtual stage
	// work is the step's computation relative to none.
	work float64
}

// flags writes the mode as Megatron's flags.
func (r recompute) flags() []string {
	switch r.name {
	case "selective":
		return append([]string{"--recompute-granularity", "selective", "--recompute-modules"}, r.modules...)
	case "block":
		return []string{"--recompute-granularity", "full", "--recompute-method", "block", "--recompute-num-layers", strconv.Itoa(r.layers)}
	case "full":
		return []string{"--recompute-granularity", "full", "--recompute-method", "uniform", "--recompute-num-layers", "1"}
	}
	return nil
}

// set gives c the mode.
func (r recompute) set(c *cfg) {
	c.Recompute, c.RecomputeGranularity = "", megatron.Opt[string]{}
	c.RecomputeMethod, c.RecomputeNumLayers = megatron.Opt[string]{}, megatron.Opt[int]{}
	c.RecomputeModules = []string{"core_attn"}
	switch r.name {
	case "selective":
		c.Recompute, c.RecomputeGranularity = "selective", megatron.Some("selective")
		c.RecomputeModules = r.modules
	case "block":
		c.Recompute, c.RecomputeGranularity = "full", megatron.Some("full")
		c.RecomputeMethod, c.RecomputeNumLayers = megatron.Some("block"), megatron.Some(r.layers)
	case "full":
		c.Recompute, c.RecomputeGranularity = "full", megatron.Some("full")
		c.RecomputeMethod, c.RecomputeNumLayers = megatron.Some("uniform"), megatron.Some(1)
	}
}

// recomputes are the modes that are tried for a layout, lightest first: what
// costs next to nothing to compute again, whole layers one by one, the
// feed-forward part, and everything.
func (s *search) recomputes(c *cfg) []recompute {
	modes := []recompute{{name: "none", work: 1}}
	var light []string
	if !c.Fp8.OK || c.Fp8Recipe != "delayed" {
		light = append(light, "layernorm")
		if s.shape.MoELayers > 0 && c.MoeGroupedGemm {
			light = append(light, "moe_act")
		}
	}
	if c.MultiLatentAttention {
		light = append(light, "mla_up_proj")
	}
	if len(light) > 0 {
		modes = append(modes, recompute{name: "selective", modules: light, work: lightRecompute})
	}
	stages := max(c.PP*max(c.VP.V, 1), 1)
	perStage := (s.shape.Layers + stages - 1) / stages
	for k := 1; k < min(perStage, 64) && !c.OverlapMoeExpertParallelComm; k++ {
		modes = append(modes, recompute{name: "block", layers: k, work: 1 + (fullRecompute-1)*float64(k)/float64(perStage)})
	}
	heavy := append(slices.Clone(light), "mlp")
	if s.shape.Experts > 0 && !c.OverlapMoeExpertParallelComm {
		heavy = append(heavy, "moe")
	}
	modes = append(modes, recompute{name: "selective", modules: heavy, work: heavyRecompute})
	if !c.OverlapMoeExpertParallelComm {
		modes = append(modes, recompute{name: "full", work: fullRecompute})
	}
	slices.SortStableFunc(modes, func(a, b recompute) int { return cmp.Compare(a.work, b.work) })
	return modes
}

// flags writes an option as Megatron's flags.
func (s *search) flags(c *cfg, o Option) []string {
	flags := o.Layout.Flags()
	if c.SequenceParallel {
		flags = append(flags, "--sequence-parallel")
	}
	flags = append(flags, "--micro-batch-size", strconv.Itoa(o.MicroBatch))
	if c.AccountForEmbeddingInPipelineSplit {
		flags = append(flags, forEmbed, forLoss)
	}
	if c.DecoderFirstPipelineNumLayers.OK {
		flags = append(flags, ppFirst, strconv.Itoa(c.DecoderFirstPipelineNumLayers.V), ppLast, strconv.Itoa(c.DecoderLastPipelineNumLayers.V))
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
