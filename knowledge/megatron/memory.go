package megatron

import "math"

// The parts of the memory of a GPU.
const (
	PartParameters  = "parameters"
	PartGradients   = "gradients"
	PartOptimizer   = "optimizer"
	PartActivations = "activations"
	PartLogits      = "logits"
	PartFramework   = "framework"
)

// A MemoryPart is one use of a GPU's memory.
type MemoryPart struct {
	Name  string  `json:"name"`
	Bytes float64 `json:"bytes"`
}

// A Memory is the estimated use of one GPU of the fullest pipeline stage.
type Memory struct {
	// Stage counts pipeline stages from 0.
	Stage int          `json:"stage"`
	Parts []MemoryPart `json:"parts"`
	Bytes float64      `json:"bytes"`
	// InFlight is how many microbatches' activations the stage holds at once, in
	// units of its own layers.
	InFlight float64 `json:"in_flight"`
}

// Band is the least and the most that the use may really be, as shares of the
// estimate: tokens are spread unevenly over experts, kernels differ in what
// they keep, and the allocator loses more or less.
func (c *Config) Band() (low, high float64) {
	switch {
	case c.Experts > 0:
		return 0.88, 1.08
	case c.Hybrid != nil:
		return 0.90, 1.08
	}
	return 0.93, 1.05
}

// GiB is the whole use in GiB.
func (m Memory) GiB() float64 { return m.Bytes / (1 << 30) }

// frameworkBytes is what CUDA, NCCL's buffers and the libraries' workspaces
// take, and fragmentation the share that the allocator loses.
const (
	frameworkBytes = 3 << 30
	fragmentation  = 0.03
)

// Memory estimates the use of the fullest GPU. Parameters, gradients and
// optimizer are exact counts; activations follow Korthikanti et al.,
// arXiv:2205.05198, widened to gated and grouped layers, experts, context
// parallelism and recompute by module. What depends on kernels and allocator
// is a flat allowance.
func (c *Config) Memory() Memory { return c.MemoryOf(c.Shape()) }

// MemoryOf is Memory for a shape that is counted out already.
func (c *Config) MemoryOf(s Shape) Memory {
	var worst use
	for _, stage := range [...]int{0, min(1, c.PP-1), c.PP / 2, c.PP - 1} {
		if u := c.stageUse(&s, stage); u.total() > worst.total() {
			worst = u
		}
	}
	m := Memory{Stage: worst.stage, InFlight: worst.inFlight, Bytes: worst.total()}
	for i, name := range partNames {
		m.Parts = append(m.Parts, MemoryPart{name, worst.bytes[i]})
	}
	return m
}

// GiBOf is how many GiB the fullest GPU uses, without the break-down.
func (c *Config) GiBOf(s *Shape) float64 {
	most := 0.0
	for _, stage := range [...]int{0, min(1, c.PP-1), c.PP / 2, c.PP - 1} {
		u := c.stageUse(s, stage)
		most = max(most, u.total())
	}
	return most / (1 << 30)
}

var partNames = [...]string{PartParameters, PartGradients, PartOptimizer, PartActivations, PartLogits, PartFramework}

// A use is the memory of a stage, in the order of partNames.
type use struct {
	stage    int
	bytes    [len(partNames)]float64
	inFlight float64
}

func (u *use) total() float64 {
	sum := 0.0
	for _, b := range u.bytes {
		sum += b
	}
	return sum
}

func (c *Config) stageUse(s *Shape, stage int) use {
	params, experts := c.stageParams(s, stage)
	perParam, perGrad, perState := c.bytesPerParam()
	dp, edp := float64(max(c.DP*c.CP, 1)), float64(max(c.EDP, 1))
	stateShard, eStateShard := 1.0, 1.0
	if c.UseDistributedOptimizer || c.UseTorchFsdp2 || c.UseMegatronFsdp || c.LayerWise {
		stateShard, eStateShard = dp, edp
	}
	paramShard, gradShard := c.fsdpShards(dp)
	eParamShard, eGradShard := c.fsdpShards(edp)

	u := use{stage: stage}
	u.bytes[0] = perParam * (params/paramShard + experts/eParamShard)
	u.bytes[1] = perGrad * (params/gradShard + experts/eGradShard)
	u.bytes[2] = perState * (params/stateShard + experts/eStateShard)
	u.bytes[3], u.inFlight = c.activations(s, stage)
	u.bytes[4] = c.logits(s, stage)
	u.bytes[5] = frameworkBytes + fragmentation*u.total()
	return u
}

// stageLayers is how many layers a stage holds, and which share of them are
// expert layers.
func (c *Config) stageLayers(stage int) int {
	if c.Stages != nil && c.PP > 0 {
		n := 0
		for i, letters := range c.Stages {
			if i%c.PP == stage {
				n += Stages{letters}.Count('t')
			}
		}
		return n
	}
	first, last := c.DecoderFirstPipelineNumLayers, c.DecoderLastPipelineNumLayers
	switch {
	case stage == 0 && first.OK:
		return first.V
	case stage == c.PP-1 && last.OK:
		return last.V
	case first.OK || last.OK:
		left, stages := c.Layers, c.PP
		for _, n := range []Opt[int]{first, last} {
			if n.OK {
				left -= n.V
				stages--
			}
		}
		return quotient(left, stages)
	}
	n := c.Layers
	if c.AccountForEmbeddingInPipelineSplit {
		n++
	}
	if c.AccountForLossInPipelineSplit {
		n++
	}
	n = (n + c.PP - 1) / max(c.PP, 1)
	if stage == 0 && c.AccountForEmbeddingInPipelineSplit {
		n--
	}
	if stage == c.PP-1 && c.AccountForLossInPipelineSplit {
		n--
	}
	return n
}

// stageParams counts the weights on a rank of a stage: those outside the
// experts, and those of the experts.
func (c *Config) stageParams(s *Shape, stage int) (dense, experts float64) {
	tp, ep := float64(max(c.TP, 1)), float64(max(c.ETP*c.EP, 1))
	add := func(p layerParams, count float64) {
		dense += count * (p.split/tp + p.replicated)
		experts += count * p.experts / ep
	}
	add(s.sum(s.Parts), float64(c.stageLayers(stage))/float64(max(s.Layers, 1)))
	embedding := float64(s.Hidden) * float64(s.Vocab) / tp
	if stage == 0 {
		dense += embedding
	}
	if stage == c.PP-1 {
		if s.Untied || c.PP > 1 {
			dense += embedding // the output layer, its own or a copy of the embedding
		}
		dense += s.norm()
		depths := float64(s.MTP)
		if c.MtpUseRepeatedLayer { // all depths have the same weights
			depths = math.Min(depths, 1)
		}
		add(s.sum(s.MTPParts), depths)
		add(s.depth(), depths)
	}
	return dense, experts
}

// bytesPerParam are the bytes of a weight, of its gradient and of its
// optimizer state: the fp32 copy and the two moments of Adam.
func (c *Config) bytesPerParam() (param, grad, state float64) {
	state = dtypeBytes(c.ExpAvgDtype) + dtypeBytes(c.ExpAvgSqDtype)
	if c.ParamsDtype == "torch.float32" {
		return 4, 4, state
	}
	grad = 2
	if c.AccumulateAllreduceGradsInFp32 {
		grad = 4
	}
	if c.MainGradsDtype == "bf16" {
		grad = 2
	}
	state += dtypeBytes(c.MainParamsDtype)
	if c.OptimizerCpuOffload {
		state *= 1 - c.OptimizerOffloadFraction
	}
	return c.weightBytes(), grad, state
}

// weightBytes are the bytes of a weight that is trained in bf16: where products
// are computed in 8 or 4 bits, a copy in that type is kept beside it from one
// microbatch to the next, unless the weights themselves lie in 8 bits. Those have
// a transposed copy, but for one scale a tensor on Blackwell, which needs none.
func (c *Config) weightBytes() float64 {
	switch {
	case c.Fp8ParamGather && c.Fp8.OK && c.Arch >= 10 && c.Fp8Recipe != "mxfp8" && c.Fp8Recipe != "blockwise":
		return 1
	case c.Fp8.OK && !c.Fp8ParamGather:
		return 3
	case c.Fp4.OK && !c.Fp4ParamGather:
		return 2.5
	}
	return 2
}

func dtypeBytes(name string) float64 {
	switch name {
	case "bf16", "fp16":
		return 2
	case "fp8":
		return 1
	}
	return 4
}

// fsdpShards is over how many ranks FSDP spreads the parameters and gradients.
func (c *Config) fsdpShards(dp float64) (params, grads float64) {
	switch {
	case c.UseTorchFsdp2, c.UseMegatronFsdp && c.DataParallelShardingStrategy == "optim_grads_params":
		return dp, dp
	case c.UseMegatronFsdp && c.DataParallelShardingStrategy == "optim_grads":
		return 1, dp
	}
	return 1, 1
}

// tokens is the number of tokens of a microbatch on a rank.
func (c *Config) tokens(s *Shape) float64 {
	return float64(c.MicroBatchSize.Or(1)) * float64(s.Seq) / float64(max(c.CP, 1))
}

// activations is what a stage keeps for its backward passes.
func (c *Config) activations(s *Shape, stage int) (bytes, inFlight float64) {
	n := float64(c.stageLayers(stage))
	inFlight = c.inFlight(stage)
	checkpoint := c.checkpointBytes(s)
	layer := c.layerActivations(s) // of an average layer
	if c.CPUOffload {              // one more layer is on its way
		n = math.Min(n, math.Max(n-float64(c.CpuOffloadingNumLayers), 0)+1)
	}
	if c.Recompute != "full" {
		return inFlight * n * layer, inFlight
	}
	each := float64(max(c.RecomputeNumLayers.Or(1), 1))
	if c.RecomputeMethod.V == "block" {
		again := math.Min(each, n)
		return inFlight * (again*checkpoint + (n-again)*layer), inFlight
	}
	// One checkpoint for every group of layers, and the group that is being
	// computed again.
	return inFlight*math.Ceil(n/each)*checkpoint + each*layer, inFlight
}

// inFlight is how many microbatches a stage has begun and not finished at its
// peak, in units of all of its layers: PP - stage with one forward and one
// backward in turn, somewhat more when stages are interleaved
// (megatron/core/pipeline_parallel/schedules.py:1190).
func (c *Config) inFlight(stage int) float64 {
	m := float64(max(c.Microbatches, 1))
	if !c.VP.OK || c.VP.V <= 1 {
		return math.Min(m, float64(c.PP-stage))
	}
	v := float64(c.VP.V)
	chunks := 2*float64(c.PP-stage-1) + (v-1)*float64(c.PP) + 1
	return math.Min(m, chunks/v)
}

// checkpointBytes is the input of a layer, which full recompute keeps.
func (c *Config) checkpointBytes(s *Shape) float64 {
	b := 2 * c.tokens(s) * float64(s.Hidden)
	if c.SequenceParallel || c.DistributeSavedActivations {
		b /= float64(c.TP)
	}
	return b
}

// layerActivations is what an average layer keeps of one microbatch on a rank.
func (c *Config) layerActivations(s *Shape) float64 {
	// What a projection takes is kept in 8 bits where it is computed in 8 bits.
	taken := 2.0
	if c.Fp8.OK || c.Fp4.OK {
		taken = 1
	}
	n := s.Parts
	sum := n.Attention * c.attentionActivations(s, taken)
	if n.MLP > 0 {
		sum += n.MLP * c.mlpActivations(s, taken)
	}
	if n.MoE > 0 {
		sum += n.MoE * c.moeActivations(s, taken)
	}
	if n.Mamba > 0 {
		sum += n.Mamba * c.mambaActivations(s, taken)
	}
	return c.tokens(s) * sum / float64(max(s.Layers, 1))
}

// partInput is the input of a part's norm and what the norm gives to the
// projection, for a token; sequence parallelism spreads both.
func (c *Config) partInput(s *Shape, taken float64) float64 {
	h := float64(s.Hidden)
	input := 2 * h
	if !c.recomputes("layernorm") {
		input += taken * h
	}
	if s.Dropout {
		input += h
	}
	return input
}

// sequenceShards is over how many ranks what lies outside tensor parallelism
// is spread.
func (c *Config) sequenceShards() float64 {
	if c.SequenceParallel {
		return float64(max(c.TP, 1))
	}
	return 1
}

func (c *Config) attentionActivations(s *Shape, taken float64) float64 {
	outside := c.partInput(s, taken)
	qkv := 2 * float64(s.QueryDim+2*s.KVDim)
	out := taken * float64(s.QueryDim)
	if c.MultiLatentAttention {
		heads := float64(s.Heads)
		if c.recomputes("mla_up_proj") {
			qkv = 0
		}
		out = taken * heads * float64(c.VHeadDim)
		outside += 2 * float64(c.QLoraRank.Or(0)+c.KvLoraRank+c.QkPosEmbHeadDim)
	}
	inside := qkv + out
	if (c.AttentionBackend == "unfused" || c.AttentionBackend == "local") && !c.recomputes("core_attn") {
		inside += 5 * float64(s.Heads) * float64(s.Seq) / float64(max(c.CP, 1))
	}
	return outside/c.sequenceShards() + inside/float64(max(c.TP, 1))
}

// feedForwardWidth is what the first projection gives and what the second one
// takes, in bytes for each unit of width.
func feedForwardWidth(s *Shape, taken float64) float64 {
	if s.Gated {
		return 4 + taken
	}
	return 2 + taken
}

func (c *Config) mlpActivations(s *Shape, taken float64) float64 {
	inside := 0.0
	if !c.recomputes("mlp") {
		inside = feedForwardWidth(s, taken) * float64(s.FFN)
	}
	return c.partInput(s, taken)/c.sequenceShards() + inside/float64(max(c.TP, 1))
}

// moeActivations are those of a part with experts. Where the whole part is
// computed again, only its input is kept.
func (c *Config) moeActivations(s *Shape, taken float64) float64 {
	sequence := c.sequenceShards()
	if c.recomputes("moe") {
		return c.partInput(s, taken) / sequence
	}
	inside := 0.0
	if !c.recomputes("shared_experts") {
		inside = feedForwardWidth(s, taken) * float64(s.SharedFFN)
	}
	each := feedForwardWidth(s, taken) * float64(s.ExpertFFN)
	if c.recomputes("moe_act") {
		each -= taken * float64(s.ExpertFFN)
	}
	routed := float64(s.TopK) * (taken*s.RoutedWidth()*float64(max(c.ETP, 1)) + each)
	return (c.partInput(s, taken)+routed)/sequence + inside/float64(max(c.TP, 1))
}

// mambaActivations are those of a Mamba mixer: what the projection gives, the
// gated output, and the states at the ends of the scan's chunks.
func (c *Config) mambaActivations(s *Shape, taken float64) float64 {
	m := s.Mamba
	const chunk = 128 // tokens between two states that are kept
	states := 4 * float64(m.Inner*m.State) / chunk
	inside := 2*m.projected() + (2+taken)*float64(m.Inner) + states
	if !c.UseMambaMemEffPath {
		inside += 2*m.convolved() + 4*float64(m.Inner)
	}
	return c.partInput(s, taken)/c.sequenceShards() + inside/float64(max(c.TP, 1))
}

// logits is the peak of the last stage's loss: the logits in bf16 and in fp32,
// which become the softmax and then the gradient in place; of each further
// token that is predicted the softmax stays. Transformer Engine's fused loss
// makes the gradient of the bf16 logits in place.
func (c *Config) logits(s *Shape, stage int) float64 {
	if stage != c.PP-1 {
		return 0
	}
	bytes := 6 + 4*float64(s.MTP)
	if c.CrossEntropyLossFusion && c.CrossEntropyFusionImpl == "te" {
		bytes = 2 * float64(1+s.MTP)
	}
	return bytes * c.tokens(s) * float64(s.Vocab) / float64(max(c.TP, 1))
}
