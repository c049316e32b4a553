package megatron

import "math"

// The names of the parts of a GPU's memory.
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

// A Memory is the estimated memory use of one GPU of the fullest pipeline stage.
type Memory struct {
	// Stage counts pipeline stages from 0.
	Stage int          `json:"stage"`
	Parts []MemoryPart `json:"parts"`
	Bytes float64      `json:"bytes"`
	// InFlight is the number of microbatches whose activations the stage holds at
	// its peak. It is a fraction where only some layers hold a microbatch.
	InFlight float64 `json:"in_flight"`
}

// Band returns the lower and upper bound of the real use, relative to the
// estimate. The use varies because tokens spread unevenly over experts, kernels
// keep different tensors, and the allocator loses more or less to fragmentation.
func (c *Config) Band() (low, high float64) {
	switch {
	case c.Experts > 0:
		return 0.88, 1.08
	case c.Hybrid != nil:
		return 0.90, 1.08
	}
	return 0.93, 1.05
}

// GiB returns the total use in GiB.
func (m Memory) GiB() float64 { return m.Bytes / (1 << 30) }

// frameworkBytes is the memory of CUDA, NCCL's buffers and the libraries'
// workspaces. fragmentation is the share that the allocator loses.
const (
	frameworkBytes = 3 << 30
	fragmentation  = 0.03
)

// Memory estimates the use of the fullest GPU. Parameters, gradients and
// optimizer state are exact counts. Activations follow Korthikanti et al.,
// arXiv:2205.05198, extended to gated and grouped layers, experts, context
// parallelism and recompute by module. A flat allowance covers the use of
// kernels and the allocator.
func (c *Config) Memory() Memory { return c.MemoryOf(c.Shape()) }

// MemoryOf is Memory for a shape that c.Shape returned earlier.
func (c *Config) MemoryOf(s Shape) Memory {
	worst := c.fullest(&s)
	m := Memory{Stage: worst.stage, InFlight: worst.inFlight, Bytes: worst.total()}
	for i, name := range partNames {
		m.Parts = append(m.Parts, MemoryPart{name, worst.bytes[i]})
	}
	return m
}

// GiBOf returns the use of the fullest GPU in GiB, without the breakdown.
func (c *Config) GiBOf(s *Shape) float64 {
	worst := c.fullest(s)
	return worst.total() / (1 << 30)
}

// fullest returns the use of the fullest pipeline stage. Only the first, second,
// middle and last stage can be the fullest.
func (c *Config) fullest(s *Shape) use {
	var worst use
	for _, stage := range [...]int{0, min(1, c.PP-1), c.PP / 2, c.PP - 1} {
		if u := c.stageUse(s, stage); u.total() > worst.total() {
			worst = u
		}
	}
	return worst
}

var partNames = [...]string{PartParameters, PartGradients, PartOptimizer, PartActivations, PartLogits, PartFramework}

// A use is the memory use of one stage; bytes is in the order of partNames.
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
	if c.Optimizer == "muon" { // Megatron leaves the embedding and the output layer to Adam
		u.bytes[2] += (c.adamsMoments() - 4) * c.embeddingParams(s, stage) / stateShard
	}
	if c.LayerWise && c.Release < V018 && c.embeddingParams(s, stage) > 0 {
		// Whole tensors are dealt out to the ranks in the order of their sizes: one rank has all of
		// the embedding beside its share of the others.
		u.bytes[2] += (perState + c.adamsMoments() - 4) * max(0, c.vocabularyParams(s)-c.embeddingParams(s, stage)/stateShard)
	}
	u.bytes[3], u.inFlight = c.activations(s, stage)
	u.bytes[4] = c.logits(s, stage)
	// The backward pass of the last layer begins where the logits are freed.
	u.bytes[3] += max(0, c.scoresInUse(s)-u.bytes[4])
	u.bytes[5] = frameworkBytes + fragmentation*u.total()
	return u
}

// stageLayers returns how many decoder layers a stage holds.
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

// stageParams counts the weights on one rank of a stage: the weights outside the
// experts, and the weights of the experts.
func (c *Config) stageParams(s *Shape, stage int) (dense, experts float64) {
	tp, ep := float64(max(c.TP, 1)), float64(max(c.ETP*c.EP, 1))
	add := func(p layerParams, count float64) {
		dense += count * (p.split/tp + p.replicated)
		experts += count * p.experts / ep
	}
	add(s.sum(s.Parts), float64(c.stageLayers(stage))/float64(max(s.Layers, 1)))
	dense += c.embeddingParams(s, stage)
	if stage == c.PP-1 {
		dense += s.norm()
		depths := float64(s.MTP)
		if c.MtpUseRepeatedLayer { // all depths share the same weights
			depths = math.Min(depths, 1)
		}
		add(s.sum(s.MTPParts), depths)
		add(s.mtpExtra(), depths)
	}
	return dense, experts
}

// vocabularyParams counts the weights of the embedding, or of the output layer, on one rank.
func (c *Config) vocabularyParams(s *Shape) float64 {
	return float64(s.Hidden) * float64(s.Vocab) / float64(max(c.TP, 1))
}

// embeddingParams counts the weights of the embedding and of the output layer on one rank of a stage.
func (c *Config) embeddingParams(s *Shape, stage int) (params float64) {
	each := c.vocabularyParams(s)
	if stage == 0 {
		params += each
	}
	if stage == c.PP-1 && (s.Untied || c.PP > 1) { // the output layer: separate weights, or a copy of the embedding
		params += each
	}
	return params
}

// fsdpShards returns the number of ranks over which FSDP shards the parameters
// and the gradients.
func (c *Config) fsdpShards(dp float64) (params, grads float64) {
	switch {
	case c.UseTorchFsdp2, c.UseMegatronFsdp && c.DataParallelShardingStrategy == "optim_grads_params":
		return dp, dp
	case c.UseMegatronFsdp && c.DataParallelShardingStrategy == "optim_grads":
		return 1, dp
	}
	return 1, 1
}

// tokens returns the number of tokens of a microbatch on one rank.
func (c *Config) tokens(s *Shape) float64 {
	return float64(c.MicroBatchSize.Or(1)) * float64(s.Seq) / float64(max(c.CP, 1))
}

// activations returns the bytes that a stage keeps for its backward passes.
func (c *Config) activations(s *Shape, stage int) (bytes, inFlight float64) {
	n := float64(c.stageLayers(stage))
	inFlight = c.inFlight(stage)
	checkpoint := c.checkpointBytes(s)
	layer := c.layerActivations(s)
	if c.FP32() { // the counts are those of two bytes an element
		checkpoint, layer = 2*checkpoint, 2*layer
	}
	if c.CPUOffload { // one more layer is in transfer
		n = math.Min(n, math.Max(n-float64(c.CpuOffloadingNumLayers), 0)+1)
	}
	if c.Recompute != "full" {
		return inFlight * n * layer, inFlight
	}
	each := float64(max(c.RecomputeNumLayers.Or(1), 1))
	if c.RecomputeMethod.V == "block" {
		recomputed := math.Min(each, n)
		kept := n - recomputed
		// Where every layer is recomputed, the backward pass still holds one of them.
		return inFlight*(recomputed*checkpoint+kept*layer) + max(0, 1-kept)*layer, inFlight
	}
	// Memory holds one checkpoint for every group of layers, and the activations of
	// the group that the backward pass is recomputing.
	return inFlight*math.Ceil(n/each)*checkpoint + each*layer, inFlight
}

// inFlight returns how many microbatches a stage has begun and not finished at
// its peak. The 1F1B schedule holds PP - stage microbatches, the interleaved
// schedule somewhat more: it holds model chunks of microbatches, and a chunk
// counts as 1/VPP of a microbatch
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

// checkpointBytes returns the size of a layer's input, which full recompute keeps.
func (c *Config) checkpointBytes(s *Shape) float64 {
	b := 2 * c.tokens(s) * float64(s.Hidden)
	if c.SequenceParallel || c.DistributeSavedActivations {
		b /= float64(c.TP)
	}
	return b
}

// layerActivations returns the bytes that an average layer keeps of one
// microbatch on one rank.
func (c *Config) layerActivations(s *Shape) float64 {
	// inputBytes is the size of one element of a projection's input. A projection
	// that computes in 8 or 4 bits keeps its input in 8 bits.
	inputBytes := 2.0
	if c.Fp8.OK || c.Fp4.OK {
		inputBytes = 1
	}
	n := s.Parts
	sum := n.Attention*c.attentionActivations(s, inputBytes) + n.MLP*c.mlpActivations(s, inputBytes) +
		n.MoE*c.moeActivations(s, inputBytes) + n.Mamba*c.mambaActivations(s, inputBytes)
	return c.tokens(s) * sum / float64(max(s.Layers, 1))
}

// partInput returns the bytes, for each token, of the norm's input and of the
// norm's output, which is the input of the first projection. Sequence parallelism
// shards both.
func (c *Config) partInput(s *Shape, inputBytes float64) float64 {
	h := float64(s.Hidden)
	input := 2 * h
	if !c.recomputes("layernorm") {
		input += inputBytes * h
	}
	if s.Dropout {
		input += h
	}
	return input
}

// sequenceShards returns the number of ranks over which sequence parallelism
// shards the activations outside tensor-parallel regions.
func (c *Config) sequenceShards() float64 {
	if c.SequenceParallel {
		return float64(max(c.TP, 1))
	}
	return 1
}

func (c *Config) attentionActivations(s *Shape, inputBytes float64) float64 {
	outside := c.partInput(s, inputBytes)
	qkv := 2 * float64(s.QueryDim+2*s.KVDim)
	out := inputBytes * float64(s.QueryDim)
	if c.MultiLatentAttention {
		heads := float64(s.Heads)
		if c.recomputes("mla_up_proj") {
			qkv = 0
		}
		out = inputBytes * heads * float64(c.VHeadDim)
		outside += 2 * float64(c.QLoraRank.Or(0)+c.KvLoraRank+c.QkPosEmbHeadDim)
	}
	inside := qkv + out
	if c.unfusedAttention() && !c.recomputes("core_attn") {
		inside += c.keptScoreBytes() * float64(s.Heads) * float64(s.Seq) / float64(max(c.CP, 1))
	}
	return outside/c.sequenceShards() + inside/float64(max(c.TP, 1))
}

// unfusedAttention reports whether the attention scores exist in memory, one for each
// head and pair of tokens. Megatron's own layers know no other attention, and
// Transformer Engine's other kernels take neither fp32 nor a GPU before Ampere.
func (c *Config) unfusedAttention() bool {
	return c.AttentionBackend == "unfused" || c.AttentionBackend == "local" || c.TransformerImpl == "local" ||
		c.FP32() || c.Arch > 0 && c.Arch < 8
}

// scoreBytesInUse is the bytes of an attention score in the layer whose backward pass
// runs. It was measured on an H100 (docs/accuracy.md).
const scoreBytesInUse = 10

// keptScoreBytes returns the bytes of an attention score that a layer keeps for its
// backward pass: the softmax, and with dropout its mask and result.
func (c *Config) keptScoreBytes() float64 {
	if c.AttentionDropout > 0 {
		return 5
	}
	return 2
}

// scoresInUse returns the memory that unfused attention takes in the layer whose
// backward pass runs, beyond what activations counts.
func (c *Config) scoresInUse(s *Shape) float64 {
	if !c.unfusedAttention() || s.Parts.Attention == 0 {
		return 0
	}
	each := float64(scoreBytesInUse)
	if !c.recomputes("core_attn") {
		each -= c.keptScoreBytes()
	}
	if c.FP32() {
		each *= 2
	}
	return each * float64(s.Heads) * float64(s.Seq) / float64(max(c.CP, 1)) * c.tokens(s) / float64(max(c.TP, 1))
}

// feedForwardBytes returns, for each unit of the feed-forward width, the bytes of
// the first projection's output and of the second projection's input.
func feedForwardBytes(s *Shape, inputBytes float64) float64 {
	if s.Gated {
		return 4 + inputBytes
	}
	return 2 + inputBytes
}

func (c *Config) mlpActivations(s *Shape, inputBytes float64) float64 {
	inside := 0.0
	if !c.recomputes("mlp") {
		inside = feedForwardBytes(s, inputBytes) * float64(s.FFN)
	}
	return c.partInput(s, inputBytes)/c.sequenceShards() + inside/float64(max(c.TP, 1))
}

// moeActivations returns the bytes for each token of a part with experts. A part
// that is recomputed as a whole keeps only its input.
func (c *Config) moeActivations(s *Shape, inputBytes float64) float64 {
	shards := c.sequenceShards()
	if c.recomputes("moe") {
		return c.partInput(s, inputBytes) / shards
	}
	inside := 0.0
	if !c.recomputes("shared_experts") {
		inside = feedForwardBytes(s, inputBytes) * float64(s.SharedFFN)
	}
	each := feedForwardBytes(s, inputBytes) * float64(s.ExpertFFN)
	if c.recomputes("moe_act") {
		each -= inputBytes * float64(s.ExpertFFN)
	}
	routed := float64(s.TopK) * (inputBytes*s.RoutedWidth()*float64(max(c.ETP, 1)) + each)
	return (c.partInput(s, inputBytes)+routed)/shards + inside/float64(max(c.TP, 1))
}

// mambaActivations returns the bytes for each token of a Mamba mixer: the
// projection's output, the gated output, and the states at the ends of the scan's
// chunks.
func (c *Config) mambaActivations(s *Shape, inputBytes float64) float64 {
	m := s.Mamba
	const chunk = 128 // tokens between two kept states
	states := 4 * float64(m.Inner*m.State) / chunk
	inside := 2*m.projected() + (2+inputBytes)*float64(m.Inner) + states
	if !c.UseMambaMemEffPath {
		inside += 2*m.convolved() + 4*float64(m.Inner)
	}
	return c.partInput(s, inputBytes)/c.sequenceShards() + inside/float64(max(c.TP, 1))
}

// logits returns the peak memory of the last stage's loss: the logits in bf16 and
// in fp32. The fp32 logits become the softmax and then the gradient in place. Each
// further predicted token keeps its softmax. Transformer Engine's fused loss turns
// the bf16 logits into the gradient in place; Megatron's own fused loss takes more
// than the unfused one (measured, docs/accuracy.md).
func (c *Config) logits(s *Shape, stage int) float64 {
	if stage != c.PP-1 {
		return 0
	}
	each := 2.0
	if c.FP32() {
		each = 4
	}
	bytes := each + 4*float64(1+s.MTP)
	switch {
	case c.CrossEntropyLossFusion && c.CrossEntropyFusionImpl == "te":
		bytes = each * float64(1+s.MTP)
	case c.CrossEntropyLossFusion:
		bytes += 4
	}
	return bytes * c.tokens(s) * float64(s.Vocab) / float64(max(c.TP, 1))
}
