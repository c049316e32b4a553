package rules

import "math"

// The cost model that recommendations are ranked by. It is meant to be
// simple and said aloud, not exact:
//
//	step = (compute + exposed TP + exposed CP + exposed EP) × imbalance × (1 + bubble) + exposed PP + exposed DP
//
// Compute is the model's operations at a share of the peak of the type that
// they run in, which falls with small GEMMs, and what the experts' tokens cost
// in memory traffic. A collective's time is its bytes over NVLink as far as its
// group lies in one NVLink domain, else over the network; exposed is the share
// that Megatron's overlaps do not hide. Imbalance is the fullest stage over the
// mean; bubble is (PP-1) / (VPP × microbatches).
const (
	// Shares of the peak that large GEMMs reach, and attention. FP8 with one
	// scale for a tensor, with a scale for each block, and FP4: the shorter the
	// product, the more the casts between types weigh.
	peakShare     = 0.68
	fp8Share      = 0.60
	fp8BlockShare = 0.50
	fp4Share      = 0.36

	// groupedGEMM is what the products of the experts reach of others: their
	// tokens differ from rank to rank. groupedCast is the same for the shorter
	// types, where each expert's few rows are cast and padded by themselves.
	groupedGEMM = 0.7
	groupedCast = 0.45

	tpGEMM = 0.96 // what each doubling of TP leaves of a GEMM's speed
	cpGEMM = 0.985
	ppOver = 0.004 // work of starting each virtual stage, as a share of compute

	exposedTP = 0.60
	exposedCP = 0.15
	exposedPP = 0.30
	exposedDP = 0.20
	// The shared expert and the dispatcher's own stream hide a part of the
	// all-to-all of the experts, --overlap-moe-expert-parallel-comm most of it.
	exposedEP    = 0.20
	overlappedEP = 0.10

	linkShare = 0.75 // of a link's peak, that a collective reaches

	lightRecompute = 1.015   // norms, activation functions, up-projections
	heavyRecompute = 1.22    // the feed-forward part as well
	fullRecompute  = 4.0 / 3 // one more forward pass

	// nodeLatency is what each node more adds to an all-to-all, in seconds.
	nodeLatency = 6e-6

	// routingPasses is how often a routed token's vector is read or written in
	// memory by the permutation, the casts and the weighted sum of a layer.
	routingPasses = 16
	// routingSeconds is what each layer of experts costs each microbatch whatever
	// its size: the router, sorting, and the host waiting for the counts.
	routingSeconds = 2.5e-3
	// plainPasses is the same for the norms, residuals and casts around a part,
	// scanPasses for the convolution and the scan of a Mamba mixer.
	plainPasses = 20
	scanPasses  = 40
	// weightBytes is what a microbatch reads and writes for each weight of an
	// expert and its gradient, as far as the products do not hide it.
	weightBytes = 6
)

// roofline is the share of its best speed that a product reaches: below, what
// is read and written for it takes longer than its operations.
func (s *search) roofline(rows, inner, columns float64) float64 {
	balance := s.gpu.TFLOPS * 1e3 / s.gpu.HBMGBs // operations for each byte of memory traffic
	return 1 / (1 + balance*(1/math.Max(rows, 1)+1/math.Max(inner, 1)+1/math.Max(columns, 1)))
}

// remoteCopies is to how many other NVLink domains a token is sent, of as many
// as the expert group spans: once to each, and spread there over NVLink, as
// DeepEP and HybridEP do. Group-limited routing bounds it.
func (s *search) remoteCopies(c *cfg, domains float64) float64 {
	hit := 1 - math.Pow(1-1/domains, float64(s.shape.TopK))
	copies := (domains - 1) * hit
	if groups := c.MoeRouterGroupTopk.Or(0); groups > 0 {
		copies = math.Min(copies, float64(groups))
	}
	return copies
}

// networkGBs is the bandwidth of a GPU's share of the node's network in one
// direction, in GB a second: one 400 Gb/s port for each GPU since Hopper, 200
// on Ampere, 100 before.
func networkGBs(arch int) float64 {
	switch {
	case arch >= 9:
		return 50
	case arch == 8:
		return 25
	}
	return 12.5
}

// speeds are the operations a second that GEMMs with weights and attention
// reach at best: in the type that the flags choose, where the GPU has it.
func (s *search) speeds(c *cfg) (linear, attention float64) {
	attention = s.gpu.TFLOPS * 1e12 * peakShare
	switch {
	case c.Fp4.OK && s.gpu.FP4 > 0:
		return s.gpu.FP4 * 1e12 * fp4Share, attention
	case c.Fp8.OK && s.gpu.FP8 > 0 && (c.Fp8Recipe == "mxfp8" || c.Fp8Recipe == "blockwise"):
		return s.gpu.FP8 * 1e12 * fp8BlockShare, attention
	case c.Fp8.OK && s.gpu.FP8 > 0:
		return s.gpu.FP8 * 1e12 * fp8Share, attention
	}
	return attention, attention
}

// cost estimates the parts of a step and the model's operations that each GPU
// reaches.
func (s *search) cost(c *cfg, work float64) (step Step, tflops float64) {
	shape := s.shape
	micro, batches := float64(c.MicroBatchSize.V), float64(c.Microbatches)
	tokens := micro * float64(shape.Seq) / float64(c.CP) // of a microbatch, on a rank
	perRank := func(count float64) float64 { return count / float64(c.PP) }
	h := float64(shape.Hidden)
	tp, cp, ep := float64(c.TP), float64(c.CP), float64(c.EP)

	total := s.work.Total() * micro * float64(shape.Seq) * batches * float64(c.DP)
	perGPU := total / float64(s.world)

	linear, attention := s.speeds(c)
	slower := math.Pow(tpGEMM, math.Log2(tp)) * math.Pow(cpGEMM, math.Log2(cp))
	each := tokens / tp * float64(shape.TopK) * ep / float64(max(shape.Experts, 1)) // tokens of one expert
	width := float64(max(shape.FFN, shape.QueryDim, shape.Mamba.Inner)) / tp
	// The output layer stays in bf16.
	compute := s.work.Linear/(linear*s.roofline(tokens, h, width)) + s.work.Sequence/attention + s.work.Output/(attention*s.roofline(tokens, h, float64(shape.Vocab)/tp))
	if s.work.Experts > 0 {
		grouped := groupedGEMM
		if linear > attention {
			grouped = groupedCast
		}
		compute += s.work.Experts / (grouped * linear * s.roofline(each, h, float64(shape.ExpertFFN)))
	}
	compute *= perGPU / s.work.Total() / slower
	again := compute * (work - 1)

	// What passes through memory beside the products: norms, activations and
	// residuals, the routing of tokens, and each microbatch the weights and
	// gradients of the experts on the rank.
	hbm := s.gpu.HBMGBs * 1e9 * linkShare
	routed := tokens / tp * float64(shape.TopK) * 2 * h // bytes of a layer's routed tokens
	_, expertParams := s.stageParams(c)
	traffic := perRank(shape.Parts.Attention+shape.Parts.MLP+shape.Parts.MoE+shape.Parts.Mamba) * plainPasses * 2 * h * tokens / tp
	traffic += perRank(shape.Parts.Mamba) * scanPasses * 2 * float64(shape.Mamba.Inner) * tokens / tp
	traffic += perRank(shape.Parts.MoE)*routingPasses*routed + weightBytes*expertParams
	compute += batches * (traffic/hbm + perRank(shape.Parts.MoE)*routingSeconds)

	nvlink, network := s.gpu.NVLinkGBs/2*1e9*linkShare, networkGBs(s.gpu.Arch)*1e9*linkShare
	if nvlink == 0 {
		nvlink = 25e9 // PCIe
	}
	link := func(group int) float64 {
		if group <= s.domain {
			return nvlink
		}
		return network
	}
	ring := func(bytes float64, n float64) float64 { return bytes * (n - 1) / n }

	// Two gathers and two scatters for each part that tensor parallelism splits.
	split := shape.Parts.Attention + shape.Parts.MLP + shape.Parts.Mamba
	if shape.SharedFFN > 0 {
		split += shape.Parts.MoE
	}
	tpTime := exposedTP * batches * perRank(split) * 4 * ring(2*tokens*h, tp) / link(c.TP)
	cpTime := exposedCP * batches * perRank(shape.Parts.Attention) * 3 * 2 * 2 * tokens * float64(shape.KVDim) * (cp - 1) / tp / link(c.TP*c.CP)
	epTime := 0.0
	if group := c.EP * c.ETP; shape.Parts.MoE > 0 && group > 1 {
		exposed := exposedEP
		if c.OverlapMoeExpertParallelComm {
			exposed = overlappedEP
		}
		domains := math.Ceil(float64(group) / float64(s.domain))
		remote := s.remoteCopies(c, domains) / float64(shape.TopK) * routed / network
		epTime = batches * perRank(shape.Parts.MoE) * 4 * (exposed*(ring(routed, float64(group))/domains/nvlink+remote) + nodeLatency*domains)
	}

	virtual := math.Max(float64(c.VP.V), 1)
	bubble := (float64(c.PP) - 1) / (virtual * math.Max(batches, 1))
	if !c.VP.OK && batches < float64(c.PP) {
		bubble = (float64(c.PP) - 1) / math.Max(batches, 1)
	}
	sequence := 1.0
	if c.SequenceParallel {
		sequence = tp
	}
	ppTime := 0.0
	if c.PP > 1 {
		ppTime = exposedPP*batches*virtual*2*(2*tokens*h/sequence)/link(c.TP*c.CP*c.DP*c.PP) + ppOver*virtual*(compute+again)
	}

	// Between steps: gradients reduced and parameters gathered once.
	dense, experts := s.stageParams(c)
	replicas := float64(c.DP * c.CP)
	dpTime := exposedDP * (ring(6*dense, replicas)/link(c.TP*c.CP*c.DP) + ring(6*experts, float64(max(c.EDP, 1)))/link(c.ETP*c.EP*c.EDP))

	inner := compute + again + tpTime + cpTime + epTime
	uneven := inner * (c.Imbalance(&s.shape) - 1)
	step = Step{
		Compute: compute, Recompute: again, Tensor: tpTime, Context: cpTime, Expert: epTime, Uneven: uneven,
		Bubble: (inner + uneven) * bubble, Pipeline: ppTime, Data: dpTime,
	}
	return step, total / float64(s.world) / step.Seconds() / 1e12
}

// stageParams is the number of weights on a rank, outside the experts and in them.
func (s *search) stageParams(c *cfg) (dense, experts float64) {
	all, shape := s.all, s.shape
	expert := shape.Parts.MoE * float64(shape.Experts) * float64(shape.ExpertFFN) * float64(shape.Hidden) * 3
	if !shape.Gated {
		expert = expert / 3 * 2
	}
	expert = math.Min(expert, all)
	return (all - expert) / float64(c.TP*c.PP), expert / float64(c.ETP*c.EP*c.PP)
}

// measured is the band, as shares of the estimate, that published speeds of the
// kind lie in; false where none was published: docs/accuracy.md has them all.
// They are of Hopper's and Blackwell's GPUs with NVLink, in bf16, FP8 with one
// scale for a tensor and MXFP8.
func (s *search) measured(c *cfg) (low, high float64, ok bool) {
	switch {
	case s.gpu.Arch < 9 || s.gpu.Arch > 10 || s.gpu.NVLinkGBs < 400 || c.Fp4.OK:
		return 0, 0, false
	case c.Fp8.OK && c.Fp8Recipe == "blockwise":
		return 0, 0, false
	case c.Experts > 0:
		return 0.70, 1.05, true
	}
	return 0.85, 1.25, true
}
