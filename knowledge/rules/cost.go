package rules

import "math"

// The cost model that recommendations are ranked by. It is meant to be
// simple and said aloud, not exact:
//
//	step = (compute + exposed TP + exposed CP + exposed EP) × (1 + bubble) + exposed PP + exposed DP
//
// Compute is the model's operations at a share of the peak that falls with
// small GEMMs. A collective's time is its bytes over NVLink where its group
// fits in a node, else over the network; exposed is the share that Megatron's
// overlaps do not hide. Bubble is (PP-1) / (VPP × microbatches).
const (
	peakShare = 0.60 // of the peak, for large GEMMs

	// halfTokens is the number of tokens in a microbatch at which a GEMM runs at
	// half of its best speed; smallExperts is the same for an expert's GEMM.
	halfTokens   = 256
	smallExperts = 128

	tpGEMM = 0.96 // what each doubling of TP leaves of a GEMM's speed
	cpGEMM = 0.985
	ppOver = 0.004 // work of starting each virtual stage, as a share of compute

	exposedTP = 0.60
	exposedCP = 0.15
	exposedEP = 0.30
	exposedPP = 0.30
	exposedDP = 0.20

	linkShare = 0.75 // of a link's peak, that a collective reaches

	lightRecompute = 1.015   // norms, activation functions, up-projections
	heavyRecompute = 1.22    // the feed-forward part as well
	fullRecompute  = 4.0 / 3 // one more forward pass

	// nodeLatency is what each node more adds to an all-to-all, in seconds.
	nodeLatency = 6e-6

	// perNodeOnce is the share of tokens that still cross the network when a
	// token is sent to a node once and spread there over NVLink, as DeepEP does.
	perNodeOnce = 0.5
)

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

// cost estimates the seconds of a step and the model's operations that each
// GPU reaches.
func (s *search) cost(c *cfg, work float64) (seconds, tflops float64) {
	shape := s.shape
	micro, batches := float64(c.MicroBatchSize.V), float64(c.Microbatches)
	tokens := micro * float64(shape.Seq) / float64(c.CP) // of a microbatch, on a rank
	layers := float64(shape.Layers) / float64(c.PP)      // of a rank
	share := float64(shape.MoELayers) / float64(max(shape.Layers, 1))
	h := float64(shape.Hidden)
	tp, cp, ep := float64(c.TP), float64(c.CP), float64(c.EP)

	// Work: six operations for each weight and token, and causal attention.
	active := s.active
	if shape.Untied {
		active -= h * float64(shape.Vocab) // looking an embedding up is no GEMM
	}
	perToken := 6*active + 6*float64(shape.Layers)*float64(shape.QueryDim)*float64(shape.Seq)
	total := perToken * micro * float64(shape.Seq) * batches * float64(c.DP)
	perGPU := total / float64(s.world)

	speed := s.gpu.TFLOPS * 1e12 * peakShare * math.Pow(tpGEMM, math.Log2(tp)) * math.Pow(cpGEMM, math.Log2(cp))
	speed *= tokens / (tokens + halfTokens)
	if share > 0 {
		each := tokens / tp * float64(shape.TopK) * ep / float64(shape.Experts) // tokens of one expert
		speed *= (1 - 0.5*share) + 0.5*share*each/(each+smallExperts)
	}
	compute := work * perGPU / speed

	nvlink, network := s.gpu.NVLinkGBs/2*1e9*linkShare, networkGBs(s.gpu.Arch)*1e9*linkShare
	if nvlink == 0 {
		nvlink = 25e9 // PCIe
	}
	link := func(group int) float64 {
		if group <= s.perNode {
			return nvlink
		}
		return network
	}
	ring := func(bytes float64, n float64) float64 { return bytes * (n - 1) / n }

	// Within a layer: four gathers and four scatters for a forward and a backward pass.
	tpTime := exposedTP * batches * layers * 8 * ring(2*tokens*h, tp) / link(c.TP)
	cpTime := exposedCP * batches * layers * 3 * 2 * 2 * tokens * float64(shape.KVDim) * (cp - 1) / tp / link(c.TP*c.CP)
	epTime := 0.0
	if share > 0 {
		sent := ring(2*tokens/tp*float64(shape.TopK)*h, ep)
		if c.EP*c.ETP*c.TP > s.perNode {
			sent *= perNodeOnce
		}
		nodes := math.Ceil(float64(c.EP*c.ETP*c.TP) / float64(s.perNode))
		epTime = batches * layers * share * 4 * (exposedEP*sent/link(c.EP*c.ETP*c.TP) + nodeLatency*nodes)
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
		ppTime = exposedPP*batches*virtual*2*(2*tokens*h/sequence)/network + ppOver*virtual*compute
	}

	// Between steps: gradients reduced and parameters gathered once.
	dense, experts := s.stageParams(c)
	replicas := float64(c.DP * c.CP)
	dpTime := exposedDP * (ring(6*dense, replicas)/link(c.TP*c.CP*c.DP) + ring(6*experts, float64(max(c.EDP, 1)))/link(c.ETP*c.EP*c.EDP))

	seconds = (compute+tpTime+cpTime+epTime)*(1+bubble) + ppTime + dpTime
	return seconds, total / float64(s.world) / seconds / 1e12
}

// stageParams is the number of weights on a rank, outside the experts and in them.
func (s *search) stageParams(c *cfg) (dense, experts float64) {
	all, shape := s.all, s.shape
	expert := float64(shape.MoELayers) * float64(shape.Experts) * float64(shape.ExpertFFN) * float64(shape.Hidden) * 3
	if !shape.Gated {
		expert = expert / 3 * 2
	}
	expert = math.Min(expert, all)
	return (all - expert) / float64(c.TP*c.PP), expert / float64(c.ETP*c.EP*c.PP)
}
