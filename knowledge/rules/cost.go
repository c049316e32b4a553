package rules

import (
	"cmp"
	"math"

	"github.com/megatron-ops/megatron-ops/knowledge/megatron"
)

// The cost model that ranks recommendations. It is simple and documented rather
// than exact:
//
//	step = (compute + exposed TP + exposed CP + exposed EP) × imbalance × (1 + bubble) + exposed PP + exposed DP
//
// Compute is the time of the model's operations, plus memory traffic and the host's
// work. Operations run at a share of the data type's peak; small GEMMs reach a
// smaller share. A collective moves its bytes over NVLink where its group fits in
// one NVLink domain, else over the network. Exposed is the share that Megatron's
// overlaps do not hide. Imbalance is the slowest stage divided by the mean stage.
// Bubble is (PP-1) / (VPP × microbatches).
const (
	// The shares of the peak that large GEMMs reach: in bf16, in FP8 with one scale
	// for each tensor, in FP8 with one scale for each block, and in FP4. The faster
	// the GEMM, the greater is the share of the casts between types.
	peakShare     = 0.65
	fp8Share      = 0.60
	fp8BlockShare = 0.53
	fp4Share      = 0.40

	// attentionShare is the share of the bf16 peak that causal attention reaches,
	// forward and backward. With softmax sinks it runs at sinkShare of that speed,
	// because the fused kernels are slow with sinks.
	attentionShare = 0.48
	sinkShare      = 0.07

	// groupedGEMM is the speed of the experts' grouped GEMMs relative to other GEMMs
	// in bf16, groupedCast the same in FP8 and FP4. Experts are as fast in FP4 as in
	// FP8, because the casts limit both.
	groupedGEMM = 0.87
	groupedCast = 0.95

	tpGEMM = 0.96 // factor on a GEMM's speed for each doubling of TP
	cpGEMM = 0.985
	ppOver = 0.002 // overhead of each virtual stage, as a share of compute

	exposedTP = 0.48
	exposedCP = 0.15
	exposedPP = 0.30
	exposedDP = 0.20
	// exposedEP is the exposed share of the experts' all-to-all within an NVLink
	// domain, exposedNet the share beyond it. The rest is hidden behind shared
	// experts, the dispatcher's own stream and other all-to-alls. With
	// --overlap-moe-expert-parallel-comm only overlappedEP of the exposed share
	// remains.
	exposedEP    = 0.50
	exposedNet   = 0.46
	overlappedEP = 0.35

	linkShare = 0.75 // share of a link's peak that a collective reaches

	// The computation of a step relative to no recompute.
	lightRecompute = 1.015   // norms, activation functions, up-projections
	fullRecompute  = 4.0 / 3 // one more forward pass

	// routingPasses is how often a layer's permutation, casts and weighted sum read
	// or write the vector of a routed token in memory.
	routingPasses = 21
	// plainPasses counts the same for the norms, residuals and casts around a part.
	// innerPasses counts it for the inner width of a part: activation functions,
	// positions and their gradients. scanPasses counts it for the convolution and
	// the scan of a Mamba mixer.
	plainPasses = 27
	innerPasses = 3
	scanPasses  = 84
	// weightBytes is the memory traffic of a microbatch for each weight of an expert
	// and its gradient, as far as the GEMMs do not hide it.
	weightBytes = 6
)

// A hostTime is the time, in seconds, that the GPU waits for the host in each expert
// layer of a microbatch: layer once, and expert for each expert on the rank, because
// every expert needs kernels of its own to cast and multiply its rows.
type hostTime struct{ layer, expert float64 }

// bf16Launches is the share of hostTime.expert that remains in bf16, where nothing
// is cast.
const bf16Launches = 0.2

// hostTimes returns the host's times. They are shorter on Blackwell, where CUDA
// graphs cover most of a layer and grouped kernels compute all experts of a rank.
func hostTimes(arch int) hostTime {
	if arch >= 10 {
		return hostTime{1.6e-3, 0.03e-3}
	}
	return hostTime{1.5e-3, 0.6e-3}
}

// sustained returns the speed of a GPU under load relative to other GPUs of its
// generation with the same peak on the data sheet. A higher power limit keeps the
// clocks higher.
func sustained(gpu string) float64 {
	switch gpu {
	case "b300":
		return 1.05
	case "gb300":
		return 1.22
	}
	return 1
}

// roofline returns the share of the best speed that a GEMM of these sizes reaches.
// In a small GEMM the memory traffic takes longer than the operations.
func (s *search) roofline(rows, inner, columns float64) float64 {
	balance := s.gpu.TFLOPS * 1e3 / s.gpu.HBMGBs // operations for each byte of memory traffic
	return 1 / (1 + balance*(1/math.Max(rows, 1)+1/math.Max(inner, 1)+1/math.Max(columns, 1)))
}

// remoteCopies returns the mean number of other NVLink domains to which a token is
// sent, given how many domains the expert group spans. A token is sent once to each
// domain and distributed there over NVLink, as DeepEP and HybridEP do. Group-limited
// routing limits the number.
func (s *search) remoteCopies(c *cfg, domains float64) float64 {
	hit := 1 - math.Pow(1-1/domains, float64(s.shape.TopK))
	copies := (domains - 1) * hit
	if groups := c.MoeRouterGroupTopk.Or(0); groups > 0 {
		copies = math.Min(copies, float64(groups))
	}
	return copies
}

// routingSpread is the standard deviation of an expert's number of tokens, as a
// share of the mean, when a load-balancing loss is used.
const routingSpread = 0.05

// unevenRouting returns the load of the rank with the most tokens divided by the
// mean. All ranks of the expert group wait for that rank. The ratio grows with the
// number of ranks and falls with the number of experts on each.
func (s *search) unevenRouting(c *cfg) float64 {
	local := float64(s.shape.Experts) / float64(c.EP)
	return 1 + routingSpread*math.Sqrt(2*math.Log(float64(c.EP))/math.Max(local, 1))
}

// networkGBs returns each GPU's share of the node's network bandwidth in one
// direction, in GB a second. It assumes one port for each GPU: 800 Gb/s in the B300
// generation, 400 since Hopper, 200 on Ampere, 100 before.
func networkGBs(gpu megatron.GPU) float64 {
	switch arch := gpu.Arch; {
	case gpu.Name == "b300" || gpu.Name == "gb300":
		return 100
	case arch >= 9:
		return 50
	case arch == 8:
		return 25
	}
	return 12.5
}

// feedForward returns the feed-forward parts' share of all operations.
func (s *search) feedForward() float64 {
	width := s.shape.Parts.MLP*float64(s.shape.FFN) + s.shape.Parts.MoE*float64(s.shape.SharedFFN)
	gate := 2.0
	if s.shape.Gated {
		gate = 3
	}
	return (s.work.Experts + 6*gate*float64(s.shape.Hidden)*width) / s.work.Total()
}

// speeds returns the operations a second that large GEMMs reach: linear in the data
// type that the flags choose, if the GPU supports it, and plain in bf16.
func (s *search) speeds(c *cfg) (linear, plain float64) {
	peak := 1e12 * sustained(s.gpu.Name)
	plain = s.gpu.TFLOPS * peak * peakShare
	switch {
	case c.Fp4.OK && s.gpu.FP4 > 0:
		// The casts limit FP4, so a peak above twice that of FP8 has no effect.
		return math.Min(s.gpu.FP4, 2*s.gpu.FP8) * peak * fp4Share, plain
	case c.Fp8.OK && s.gpu.FP8 > 0 && (c.Fp8Recipe == "mxfp8" || c.Fp8Recipe == "blockwise"):
		return s.gpu.FP8 * peak * fp8BlockShare, plain
	case c.Fp8.OK && s.gpu.FP8 > 0:
		return s.gpu.FP8 * peak * fp8Share, plain
	}
	return plain, plain
}

func (s *search) microbatchTokens(c *cfg) float64 {
	return float64(c.MicroBatchSize.V) * float64(s.shape.Seq) / float64(c.CP)
}

// routedBytes returns the bytes of a layer's routed tokens on one rank, in one microbatch.
func (s *search) routedBytes(c *cfg) float64 {
	return s.microbatchTokens(c) / float64(c.TP) * float64(s.shape.TopK) * 2 * float64(s.shape.Hidden)
}

// gemmTime returns the time of a step's GEMMs and attention, and the output layer's part
// of it. operations is the number of the model's operations per GPU.
func (s *search) gemmTime(c *cfg, operations float64) (all, output float64) {
	shape, tokens := s.shape, s.microbatchTokens(c)
	h, tp, cp := float64(shape.Hidden), float64(c.TP), float64(c.CP)
	linear, plain := s.speeds(c)
	attention := plain * attentionShare / peakShare
	if c.SoftmaxType != "vanilla" {
		attention *= sinkShare
	}
	width := float64(max(shape.FFN, shape.QueryDim, shape.Mamba.Inner)) / tp
	output = s.work.Output / (plain * s.roofline(tokens, h, float64(shape.Vocab)/tp)) // the output layer stays in bf16
	all = s.work.Linear/(linear*s.roofline(tokens, h, width)) + s.work.Sequence/attention + output
	if s.work.Experts > 0 {
		grouped := groupedGEMM * plain
		if linear > plain {
			grouped = groupedCast * math.Min(linear, s.gpu.FP8*1e12*sustained(s.gpu.Name)*fp8BlockShare)
		}
		each := tokens / tp * float64(shape.TopK) * float64(c.EP) / float64(max(shape.Experts, 1)) // tokens of one expert
		all += s.unevenRouting(c) * s.work.Experts / (grouped * s.roofline(each, h, float64(shape.ExpertFFN)))
	}
	slower := math.Pow(tpGEMM, math.Log2(tp)) * math.Pow(cpGEMM, math.Log2(cp))
	share := operations / s.work.Total() / slower
	return all * share, output * share
}

// memoryAndHostTime returns the time of a step's memory traffic outside the GEMMs, and of
// the host's work. The traffic is norms, activations and residuals, the routing of tokens,
// and, in each microbatch, the weights and gradients of the rank's experts.
func (s *search) memoryAndHostTime(c *cfg) float64 {
	shape, parts, tokens := s.shape, s.shape.AllParts(), s.microbatchTokens(c)
	perRank := func(count float64) float64 { return count / float64(c.PP) }
	h, tp := float64(shape.Hidden), float64(c.TP)
	_, expertParams := s.stageParams(c)
	traffic := perRank(parts.Attention+parts.MLP+parts.MoE+parts.Mamba) * plainPasses * 2 * h * tokens / tp
	traffic += perRank(parts.Mamba) * scanPasses * 2 * float64(shape.Mamba.Inner) * tokens / tp
	gate := 1.0 // a gated part is 1.5 times as wide inside
	if shape.Gated {
		gate = 1.5
	}
	inner := perRank(parts.MLP)*gate*float64(shape.FFN) + perRank(parts.Attention)*float64(shape.QueryDim+2*shape.KVDim) +
		perRank(parts.MoE)*gate*float64(shape.ExpertFFN*shape.TopK+shape.SharedFFN)
	traffic += innerPasses * 2 * inner * tokens / tp
	traffic += perRank(parts.MoE)*routingPasses*s.routedBytes(c) + weightBytes*expertParams

	host := hostTimes(s.gpu.Arch)
	if linear, plain := s.speeds(c); linear <= plain {
		host.expert *= bf16Launches
	}
	hbm := s.gpu.HBMGBs * 1e9 * linkShare
	return float64(c.Microbatches) * (traffic/hbm + perRank(parts.MoE)*(host.layer+host.expert*float64(shape.Experts)/float64(c.EP)))
}

// nvlink returns the bandwidth of a GPU's NVLink, or of PCIe without NVLink, in bytes a
// second.
func (s *search) nvlink() float64 { return cmp.Or(s.gpu.NVLinkGBs/2*1e9*linkShare, 25e9) }

// network returns the bandwidth of a GPU's share of the network, in bytes a second.
func (s *search) network() float64 { return networkGBs(s.gpu) * 1e9 * linkShare }

// link returns the bandwidth for a collective of a group of GPUs.
func (s *search) link(group int) float64 {
	if group <= s.domain {
		return s.nvlink()
	}
	return s.network()
}

// ring returns the bytes that each of n GPUs sends in a ring collective over bytes.
func ring(bytes, n float64) float64 { return bytes * (n - 1) / n }

// expertTime returns the exposed time of a step's all-to-all between experts.
func (s *search) expertTime(c *cfg) float64 {
	group, layers := c.EP*c.ETP, s.shape.AllParts().MoE
	if layers == 0 || group <= 1 {
		return 0
	}
	near, far := exposedEP, exposedNet
	if c.OverlapMoeExpertParallelComm {
		near, far = near*overlappedEP, far*overlappedEP
	}
	routed := s.routedBytes(c)
	domains := math.Ceil(float64(group) / float64(s.domain))
	remote := s.remoteCopies(c, domains) / float64(s.shape.TopK) * routed / s.network()
	return s.unevenRouting(c) * float64(c.Microbatches) * (layers / float64(c.PP)) * 4 * (near*ring(routed, float64(group))/domains/s.nvlink() + far*remote)
}

// cost estimates the parts of a step and the model's operations per GPU and second,
// in 10^12.
func (s *search) cost(c *cfg, r recompute) (step Step, tflops float64) {
	shape, parts := s.shape, s.shape.AllParts()
	micro, batches := float64(c.MicroBatchSize.V), float64(c.Microbatches)
	tokens := s.microbatchTokens(c)
	perRank := func(count float64) float64 { return count / float64(c.PP) }
	h, tp, cp := float64(shape.Hidden), float64(c.TP), float64(c.CP)
	total := s.work.Total() * micro * float64(shape.Seq) * batches * float64(c.DP)

	compute, output := s.gemmTime(c, total/float64(s.world))
	compute += s.memoryAndHostTime(c)
	again := compute * (r.work - 1)

	// Each part that tensor parallelism splits needs two gathers and two scatters.
	split := parts.Attention + parts.MLP + parts.Mamba
	if shape.SharedFFN > 0 {
		split += parts.MoE
	}
	tpTime := exposedTP * batches * perRank(split) * 4 * ring(2*tokens*h, tp) / s.link(c.TP)
	cpTime := exposedCP * batches * perRank(parts.Attention) * 3 * 2 * 2 * tokens * float64(shape.KVDim) * (cp - 1) / tp / s.link(c.TP*c.CP)
	epTime := s.expertTime(c)

	// Recompute repeats a layer's gathers and dispatches: three times instead of two.
	tpTime, epTime = tpTime*(1+r.passes/2), epTime*(1+r.passes/2)

	virtual := math.Max(float64(c.VP.V), 1)
	bubble := (float64(c.PP) - 1) / (virtual * math.Max(batches, 1))
	sequence := 1.0
	if c.SequenceParallel {
		sequence = tp
	}
	ppTime := 0.0
	if c.PP > 1 {
		ppTime = exposedPP*batches*virtual*2*(2*tokens*h/sequence)/s.link(c.TP*c.CP*c.DP*c.PP) + ppOver*virtual*(compute+again)
	}

	// Once in each step gradients are reduced and parameters gathered.
	dense, experts := s.stageParams(c)
	replicas := float64(c.DP * c.CP)
	dpTime := exposedDP * (ring(6*dense, replicas)/s.link(c.TP*c.CP*c.DP) + ring(6*experts, float64(max(c.EDP, 1)))/s.link(c.ETP*c.EP*c.EDP))

	pass := compute + again + tpTime + cpTime + epTime
	layers := float64(shape.Layers + shape.MTP)
	uneven := pass * (c.Imbalance(&s.shape, output*layers/(pass-output)) - 1)
	step = Step{
		Compute: compute, Recompute: again, Tensor: tpTime, Context: cpTime, Expert: epTime, Uneven: uneven,
		Bubble: (pass + uneven) * bubble, Pipeline: ppTime, Data: dpTime,
	}
	return step, total / float64(s.world) / step.Seconds() / 1e12
}

// stageParams returns the number of weights on a rank, outside the experts and in
// them.
func (s *search) stageParams(c *cfg) (dense, experts float64) {
	shape := s.shape
	expert := shape.AllParts().MoE * float64(shape.Experts) * float64(shape.ExpertFFN) * shape.RoutedWidth() * 3
	if !shape.Gated {
		expert = expert / 3 * 2
	}
	expert = math.Min(expert, s.params)
	return (s.params - expert) / float64(c.TP*c.PP), expert / float64(c.ETP*c.EP*c.PP)
}

// measured returns the range of published speeds of similar runs, as shares of the
// estimate; false where no such speed was published. docs/accuracy.md lists them
// all. They cover Hopper and Blackwell GPUs with NVLink in bf16, FP8 with one scale
// for each tensor, MXFP8 and NVFP4, and dense models in bf16 on Ampere.
func (s *search) measured(c *cfg) (low, high float64, ok bool) {
	switch {
	case s.gpu.Arch < 8 || s.gpu.Arch > 10 || s.gpu.NVLinkGBs < 400:
		return 0, 0, false
	case s.gpu.Arch == 8 && c.Experts > 0, c.Fp8.OK && c.Fp8Recipe == "blockwise", c.FP32():
		return 0, 0, false
	case c.Experts > 0:
		return 0.75, 1.35, true
	}
	return 0.85, 1.20, true
}
