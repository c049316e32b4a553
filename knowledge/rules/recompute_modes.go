package rules

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/megatron-ops/megatron-ops/knowledge/megatron"
)

// A recompute is one mode of activation recomputation.
type recompute struct {
	name    string
	modules []string // selective
	layers  int      // block: the recomputed layers of each virtual stage
	// work is the step's computation relative to the mode "none". passes is the
	// share of the layers that repeat their communication too.
	work, passes float64
}

// flags returns the mode as Megatron's flags.
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

// set applies the mode to c.
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

// recomputes returns the modes to try for a layout, lightest first: none, modules
// that cost next to nothing to recompute, one or more whole layers, the
// feed-forward part, and all layers.
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
		modes = append(modes, recompute{
			name: "block", layers: k,
			work: 1 + (fullRecompute-1)*float64(k)/float64(perStage), passes: float64(k) / float64(perStage),
		})
	}
	heavy := append(slices.Clone(light), "mlp")
	if s.shape.Experts > 0 && !c.OverlapMoeExpertParallelComm {
		heavy = append(heavy, "moe")
	}
	modes = append(modes, recompute{name: "selective", modules: heavy, work: lightRecompute + s.feedForward()/3, passes: 1})
	if !c.OverlapMoeExpertParallelComm {
		modes = append(modes, recompute{name: "full", work: fullRecompute, passes: 1})
	}
	slices.SortStableFunc(modes, func(a, b recompute) int { return cmp.Compare(a.work, b.work) })
	return modes
}
