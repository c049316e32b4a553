package megatron

import (
	"cmp"
	"slices"
	"strings"
)

// A Config holds the arguments that Megatron really uses: the parsed values after
// every silent change, and the values derived from them. Megatron makes the changes
// in validate_args and then in its configuration objects; Effective makes them in
// the same order
// (megatron/training/arguments.py:388, megatron/core/transformer/transformer_config.py:1386).
type Config struct {
	Options
	Layout
	// Asked is the parsed command line before the changes.
	Asked *Args
	World int
	Arch  int
	Entry string
	// Release is the Megatron-LM release that makes these changes.
	Release Release

	// GTP and EGTP are the factors by which weights are sharded beyond TP and ETP.
	GTP, EGTP int
	// Layers is the number of decoder layers; 0 where none is given.
	Layers int
	// SplitLayers is Layers plus one for the embedding and one for the loss, each
	// where an --account-for-... flag counts it as a layer.
	SplitLayers int
	// Experts is the number of experts of a MoE layer; 0 for a dense model.
	Experts int
	// VP is the number of virtual pipeline stages, absent without them.
	VP Opt[int]
	// Batch is the number of samples in the first step. Microbatches is the number
	// of microbatches of that step in each pipeline; 0 where the batch does not
	// divide evenly.
	Batch, Microbatches int
	// Schedule is the parsed --step-batch-size-schedule.
	Schedule Schedule
	// ParamsDtype is the type of the parameters in torch's notation.
	ParamsDtype string
	// DistCkpt reports a distributed checkpoint format.
	DistCkpt bool
	// LayerWise reports that an emerging optimizer is sharded by whole layers.
	LayerWise bool
	// Hybrid is the parsed hybrid layer pattern; nil where none is given.
	Hybrid *HybridPattern
	// Stages is the parsed pipeline layout; nil where none is given. BadStage is
	// the layout's first unknown letter.
	Stages   Stages
	BadStage rune
	// Recompute is the recompute granularity after --moe-layer-recompute is
	// applied; empty without recompute.
	Recompute string
	// GraphModules are the CUDA graph modules as the model configuration holds
	// them, after the additions of --cuda-graph-impl local.
	GraphModules []string
	// GraphDeprecated are the deprecated module names that Megatron turns into
	// other flags.
	GraphDeprecated []string
	// Variant is the experimental attention variant under its current name.
	Variant string
	// BiasActivationFusion reports whether the fusion of the chosen activation
	// with its bias is on.
	BiasActivationFusion bool
	// Activation is gelu, silu, squared_relu or quick_gelu; Gated reports a gated
	// linear unit (GLU).
	Activation string
	Gated      bool
	// CPUOffload reports that whole layers are offloaded to the host.
	CPUOffload bool
}

// Env returns the value of an environment variable of the run.
func (c *Config) Env(name string) (string, bool) {
	v, ok := c.Asked.Run.Env[name]
	return v, ok
}

// Flag reports whether the command line contains the flag.
func (c *Config) Flag(name string) bool { return c.Asked.Given(name) }

// Trains reports whether Megatron builds an optimizer.
func (c *Config) Trains() bool { return !c.SkipTrain }

// Effective returns the arguments after Megatron's silent changes.
func (a *Args) Effective() *Config {
	c := &Config{Options: a.Options, Asked: a, World: a.Run.WorldSize, Arch: a.Run.Arch, Entry: a.Run.Entry, Release: a.Run.Release.OrNewest()}
	c.Entry = cmp.Or(c.Entry, "gpt")
	c.sizes()
	c.graphs()
	c.pattern()
	c.pipeline()
	c.batch()
	c.precision()
	c.model()
	c.sharding()
	c.offload()
	return c
}

// sizes derives the parallel sizes (arguments.py:413, parallel_state.py:850).
func (c *Config) sizes() {
	c.TP, c.PP, c.CP = c.TensorModelParallelSize, c.PipelineModelParallelSize, c.ContextParallelSize
	c.EP = c.ExpertModelParallelSize
	c.ETP = c.ExpertTensorParallelSize.Or(c.TP)
	c.GTP = shards(c.TensorParallelNumWeightShards, c.TP)
	c.EGTP = shards(c.ExpertTensorParallelNumWeightShards, c.ETP)
	c.DP = quotient(c.World, c.TP*c.PP*c.CP*c.GTP)
	c.EDP = quotient(c.World, c.ETP*c.EP*c.PP*c.EGTP)
	c.DistCkpt = c.CkptFormat != "torch"
	if c.RecomputeActivations {
		c.RecomputeGranularity = Some("selective")
	}
	c.Experts = c.NumExperts.Or(0)
	if c.Experts == 0 {
		c.NumExperts = Opt[int]{}
	}
	if c.TP == 1 {
		c.SequenceParallel = false
	}
}

// shards returns n divided by tp, the factor by which weights are sharded beyond
// tp; 1 where n is absent or no multiple of tp.
func shards(n Opt[int], tp int) int {
	if !n.OK || tp <= 0 || n.V < tp || n.V%tp != 0 {
		return 1
	}
	return n.V / tp
}

// quotient returns a/b rounded down, and 0 for b = 0.
func quotient(a, b int) int {
	if b == 0 {
		return 0
	}
	return a / b
}

// graphScope translates --cuda-graph-scope of the releases up to 0.17 into the
// current modules and implementation. In those releases the full iteration was a
// scope of the local implementation.
func (c *Config) graphScope() {
	if c.Release >= V018 {
		return
	}
	c.InferenceCudaGraphScope = Some("none")
	for _, m := range c.CudaGraphScope {
		switch {
		case m == "full":
		case m == "full_iteration" && c.CudaGraphImpl == "local":
			c.CudaGraphImpl = "full_iteration"
		case m == "full_iteration" || m == "full_iteration_inference":
		default:
			c.CudaGraphModules = append(c.CudaGraphModules, m)
		}
	}
}

// graphs applies the deprecated CUDA graph flags (arguments.py:611).
func (c *Config) graphs() {
	if c.EnableCudaGraph {
		c.CudaGraphImpl = "local"
	}
	if c.ExternalCudaGraph {
		c.CudaGraphImpl = "transformer_engine"
	}
	c.graphScope()
	if c.CudaGraphScopeDeprecated != nil {
		c.CudaGraphModules = c.CudaGraphScopeDeprecated
	}
	var modules []string
	for _, m := range c.CudaGraphModules {
		switch m {
		case "full":
		case "full_iteration":
			c.GraphDeprecated = append(c.GraphDeprecated, m)
			c.CudaGraphImpl = "full_iteration"
		case "full_iteration_inference":
			c.GraphDeprecated = append(c.GraphDeprecated, m)
			if c.CudaGraphImpl != "none" {
				c.InferenceCudaGraphScope = Some("block")
			}
		default:
			modules = append(modules, m)
		}
	}
	c.CudaGraphModules = modules
	if !c.InferenceCudaGraphScope.OK {
		c.InferenceCudaGraphScope = Some("none")
		if c.CudaGraphImpl == "local" {
			c.InferenceCudaGraphScope = Some("layer")
		}
	}
	c.GraphModules = slices.Clone(modules)
	if c.CudaGraphImpl == "local" && (slices.Contains(modules, "moe_router") || slices.Contains(modules, "moe_preprocess")) {
		for _, m := range []string{"moe_router", "moe_preprocess"} {
			if !slices.Contains(modules, m) {
				c.GraphModules = append(c.GraphModules, m)
			}
		}
	}
}

// pattern parses the hybrid layer pattern, which determines the number of layers
// (arguments.py:742).
func (c *Config) pattern() {
	if c.HybridOverridePattern.OK && !c.HybridLayerPattern.OK && c.Release >= V017 {
		c.HybridLayerPattern = c.HybridOverridePattern
	}
	if depth := c.MtpNumLayers.Or(0); c.MtpHybridOverridePattern.OK && depth > 0 && depth < 100 &&
		!strings.Contains(c.HybridLayerPattern.V, "/") {
		c.HybridLayerPattern = Some(c.HybridLayerPattern.V + strings.Repeat("/"+c.MtpHybridOverridePattern.V, depth))
		c.MtpHybridOverridePattern = Opt[string]{}
	}
	if c.HybridLayerPattern.OK {
		h := parseHybrid(c.HybridLayerPattern.V)
		c.Hybrid = &h
		c.NumLayers = Some(h.Layers)
		if h.MTP != "" {
			c.MtpNumLayers = Some(h.Depths)
		}
		latent := "+D"
		switch {
		case c.Release < V018:
			latent = ""
		case c.Release < V019:
			latent = "D"
		}
		if strings.ContainsAny(c.HybridLayerPattern.V, latent) {
			c.MultiLatentAttention = true
		}
	}
	if c.MtpHsm && c.MtpNumLayers.Or(0) < 2 {
		c.MtpHsm = false
	}
	c.NumLayers = cmp.Or(c.NumLayers, c.EncoderNumLayers)
	c.Layers = c.NumLayers.Or(0)
}

// pipeline derives the virtual pipeline stages (arguments.py:937).
func (c *Config) pipeline() {
	c.SplitLayers = c.Layers
	if !c.Asked.NumLayers.OK && c.Hybrid == nil && c.NumLayersPerVirtualPipelineStage.OK && c.DecoderNumLayers.OK {
		c.SplitLayers = c.DecoderNumLayers.V // T5 counts its encoder and decoder layers separately
	}
	if c.AccountForEmbeddingInPipelineSplit {
		c.SplitLayers++
	}
	if c.AccountForLossInPipelineSplit {
		c.SplitLayers++
	}
	switch {
	case c.PipelineModelParallelLayout.OK:
		c.Stages, c.BadStage = ParseStages(c.PipelineModelParallelLayout.V)
		c.VP = Some(quotient(len(c.Stages), c.PP))
	case c.NumVirtualStagesPerPipelineRank.OK:
		c.VP = c.NumVirtualStagesPerPipelineRank
	case c.NumLayersPerVirtualPipelineStage.OK:
		c.VP = Some(quotient(quotient(c.SplitLayers, c.PP), c.NumLayersPerVirtualPipelineStage.V))
	case c.Hybrid != nil && c.Hybrid.Segments > c.PP:
		c.VP = Some(quotient(c.Hybrid.Segments, c.PP))
	}
	if c.VP.V == 1 {
		c.VP = Opt[int]{}
	}
	c.VPP = c.VP.V
	if !c.VP.OK {
		c.OverlapP2pComm = false
	}
}

// batch derives the batch sizes and the number of microbatches
// (arguments.py:693, megatron/training/global_vars.py:148).
func (c *Config) batch() {
	mbs := c.MicroBatchSize.Or(0)
	c.GlobalBatchSize = cmp.Or(c.GlobalBatchSize, Some(mbs*c.DP))
	c.EvalGlobalBatchSize = cmp.Or(c.EvalGlobalBatchSize, c.GlobalBatchSize)
	c.EvalMicroBatchSize = cmp.Or(c.EvalMicroBatchSize, c.MicroBatchSize)
	c.SeqLength = cmp.Or(c.SeqLength, c.EncoderSeqLength)
	c.Batch = c.GlobalBatchSize.V
	if c.StepBatchSizeSchedule.OK {
		c.Schedule = parseSchedule(c.StepBatchSizeSchedule.V, c.SeqLength.Or(0))
		c.Batch = c.Schedule.First()
	}
	if c.Release < V018 && len(c.RampupBatchSize) == 3 {
		c.Batch = c.RampupBatchSize[0] // later releases accept the flag and ignore it
	}
	step := mbs * c.DP * c.GTP
	if step == 0 || !c.DecreaseBatchSizeIfNeeded && c.Batch%step != 0 && !c.StepBatchSizeSchedule.OK {
		return
	}
	c.Microbatches = c.Batch / step
}

// precision derives data types (arguments.py:1193).
func (c *Config) precision() {
	c.ParamsDtype = "torch.float32"
	switch {
	case c.Bf16:
		c.ParamsDtype = "torch.bfloat16"
		if c.GradReduceInBf16 {
			c.AccumulateAllreduceGradsInFp32 = false
		} else if c.MainGradsDtype == "fp32" {
			c.AccumulateAllreduceGradsInFp32 = true
		}
	case c.Fp16:
		c.ParamsDtype = "torch.float16"
	}
	if c.Fp16 && c.LossScale.Or(0) == 0 {
		c.CheckForNanInLossAndGrad = false
	}
	if c.UseTorchFsdp2 {
		c.Fp8ParamGather = false // not supported by Transformer Engine 2 (arguments.py:1051)
	}
}

// model derives the fields of the model configuration (arguments.py:1317,
// argument_utils.py:274).
func (c *Config) model() {
	hidden, heads := c.HiddenSize.Or(0), c.NumAttentionHeads.Or(0)
	if !c.FfnHiddenSize.OK {
		c.FfnHiddenSize = Some(4 * hidden)
		if c.Swiglu {
			c.FfnHiddenSize = Some(int(float64(4*hidden*2)/3/64) * 64)
		}
	}
	if !c.KvChannels.OK && heads > 0 {
		c.KvChannels = Some(hidden / heads)
	}
	if !c.GroupQueryAttention {
		c.NumQueryGroups = heads
	}
	if c.Experts > 0 && !c.MoeFfnHiddenSize.OK {
		c.MoeFfnHiddenSize = c.FfnHiddenSize
	}
	if !c.AddBiasLinear {
		c.BiasGeluFusion = false
	} else {
		c.AddQkvBias = true
	}
	if c.UseRotaryPositionEmbeddings {
		c.PositionEmbeddingType = "rope"
	}
	if c.PositionEmbeddingType != "rope" {
		c.ApplyRopeFusion = false
	}
	c.Activation, c.BiasActivationFusion = "gelu", c.BiasGeluFusion
	if c.Swiglu {
		c.Activation, c.Gated, c.BiasActivationFusion = "silu", true, c.BiasSwigluFusion
	}
	if c.SquaredRelu {
		c.Activation = "squared_relu"
	} else if c.QuickGeglu {
		c.Activation, c.Gated = "quick_gelu", true
	}
	c.Variant = c.ExperimentalAttentionVariant.V
	if c.Variant == "gated_delta_net" {
		c.Variant = "gdn"
	}
	if c.Hybrid != nil && strings.Contains(c.HybridLayerPattern.V, "D") {
		c.Variant = "dsa"
	}
	c.MoeUseGroupedTensor = c.MoeUseGroupedTensor || c.UseTransformerEngineOpFuser && c.MoeGroupedGemm
	if c.MoeEnableDeepep && c.MoeTokenDispatcherType == "flex" {
		c.MoeFlexDispatcherBackend = "deepep"
	}
	if c.MoeRouterPaddingForFp8 {
		c.MoeRouterPaddingForQuantization = true
	}
	c.Recompute = c.RecomputeGranularity.V
	if c.RecomputeModules == nil {
		c.RecomputeModules = []string{"core_attn"}
	}
	if c.MoeLayerRecompute {
		c.Recompute = "selective"
		if !slices.Contains(c.RecomputeModules, "moe") {
			c.RecomputeModules = append(slices.Clone(c.RecomputeModules), "moe")
		}
	}
}

// sharding derives how the optimizer is sharded (arguments.py:1118, 1727).
func (c *Config) sharding() {
	if c.Optimizer == "dist_muon" {
		c.Optimizer, c.LayerWise = "muon", true
	}
	if c.Release < V018 {
		if c.UseMegatronFsdp && c.FsdpManualRegistration {
			c.ReuseGradBufForMxfp8ParamAg = false
		}
		return
	}
	if c.UseMegatronFsdp {
		if c.MegatronFsdpVersion != 2 {
			c.UseDistributedOptimizer = true
		}
		c.ReuseGradBufForMxfp8ParamAg = false
		if c.NcclUb {
			c.FsdpManualRegistration = true
		}
	}
	if c.Optimizer != "sgd" && c.Optimizer != "adam" {
		if c.UseDistributedOptimizer {
			c.LayerWise, c.UseDistributedOptimizer = true, false
		}
	}
	if c.FreezeAllLayers {
		c.UseDistributedOptimizer, c.OverlapParamGather = false, false
	}
}

// offload derives asynchronous checkpoint saving and CPU offload (arguments.py:1814).
func (c *Config) offload() {
	if c.Release >= V016 && c.DistCkpt && c.AsyncSave && !c.UsePersistentCkptWorker {
		c.AsyncSave = false
	}
	c.CPUOffload = c.CpuOffloadingNumLayers > 0
}
