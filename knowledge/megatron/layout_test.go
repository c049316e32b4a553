package megatron

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParseStages(t *testing.T) {
	for layout, want := range map[string]string{
		"Et|tL":            "Et tL",
		"Ettt|(tt|)*3,m|L": "Ettt tt tt tt m L",
		"E|t*4|L":          "E tttt L",
		"(t|)*2tL":         "t t tL",
	} {
		stages, bad := ParseStages(layout)
		require.Zero(t, bad, layout)
		require.Equal(t, want, strings.Join(stages, " "), layout)
	}
	_, bad := ParseStages("Et|xL")
	require.Equal(t, 'x', bad)
	_, bad = ParseStages("(t|)*99999999999")
	require.NotZero(t, bad, "an absurd repetition is refused, not unrolled")
}

func TestLayoutOmitsSizesOfOne(t *testing.T) {
	for want, l := range map[string]Layout{
		"TP 1, PP 1, DP 8":                    {TP: 1, PP: 1, VPP: 1, CP: 1, EP: 1, ETP: 1, DP: 8},
		"TP 2, PP 1, DP 8":                    {TP: 2, PP: 1, EP: 1, ETP: 1, DP: 8},
		"TP 2, PP 4, VPP 2, CP 2, EP 8, DP 4": {TP: 2, PP: 4, VPP: 2, CP: 2, EP: 8, ETP: 2, DP: 4},
		"TP 2, PP 1, EP 4, ETP 1, DP 4":       {TP: 2, PP: 1, EP: 4, ETP: 1, DP: 4},
	} {
		require.Equal(t, want, l.String())
	}
}

func TestParseHybrid(t *testing.T) {
	h := parseHybrid("M-M*|M-ME/M*/M*")
	require.Equal(t, 8, h.Layers)
	require.Equal(t, 2, h.Segments)
	require.Equal(t, 2, h.Depths)
	require.Equal(t, "M*", h.MTP)
	require.Zero(t, h.Bad)
	require.Equal(t, 'x', parseHybrid("Mx").Bad)
	require.True(t, parseHybrid("M*M+").Mixed)
	require.True(t, parseHybrid("M/M/MM").Uneven)
}

func TestParseSchedule(t *testing.T) {
	s := parseSchedule("0:256 2.4B:320, 1T:512", 2048)
	require.Equal(t, []Step{{0, 256}, {1171875, 320}, {488281250, 512}}, s.Steps)
	require.Equal(t, 256, s.First())
	require.Equal(t, "512", parseSchedule("0:256 512", 0).NoColon)
	require.Equal(t, "x:1", parseSchedule("x:1", 0).BadNumber)
}

func TestEffectiveAppliesSilentChanges(t *testing.T) {
	config := func(world int, line string) *Config {
		a, errs := Parse(Run{Argv: strings.Fields(line), WorldSize: world, Arch: 9})
		require.Empty(t, errs)
		return a.Effective()
	}
	c := config(16, "--micro-batch-size 2 --sequence-parallel --bf16 --num-experts 0 --hidden-size 1024 --num-attention-heads 16 --swiglu")
	require.False(t, c.SequenceParallel, "switched off with TP 1")
	require.Equal(t, 32, c.GlobalBatchSize.V, "micro batch x DP")
	require.Equal(t, 1, c.Microbatches)
	require.True(t, c.AccumulateAllreduceGradsInFp32)
	require.False(t, c.NumExperts.OK, "0 experts is a dense model")
	require.Equal(t, 64, c.KvChannels.V)
	require.Equal(t, 2688, c.FfnHiddenSize.V, "8/3 of the width, in multiples of 64")

	c = config(16, "--num-layers 48 --tensor-model-parallel-size 2 --pipeline-model-parallel-size 4 --num-layers-per-virtual-pipeline-stage 3 "+
		"--micro-batch-size 1 --global-batch-size 64")
	require.Equal(t, Layout{TP: 2, PP: 4, VPP: 4, CP: 1, EP: 1, ETP: 2, DP: 2, EDP: 2}, c.Layout)
	require.Equal(t, 32, c.Microbatches)
	require.True(t, c.OverlapP2pComm)

	c = config(8, "--hybrid-layer-pattern M-M*|M-M*|M-M*|M-M* --pipeline-model-parallel-size 2 --num-layers 5")
	require.Equal(t, 16, c.Layers, "the pattern decides")
	require.Equal(t, 2, c.VPP)
}

func TestLookupGPU(t *testing.T) {
	for word, want := range map[string]struct {
		name string
		arch int
	}{
		"h100":                  {"h100", 9},
		"NVIDIA H100 80GB HBM3": {"h100", 9},
		"nvidia_h200":           {"h200", 9},
		"a100":                  {"a100", 8},
		"A100-SXM4-40GB":        {"a100-40g", 8},
		"gb200":                 {"gb200", 10},
		"B300":                  {"b300", 10},
		"gb300":                 {"gb300", 10},
		"l40s":                  {"l40s", 8},
		"l4":                    {"l4", 8},
		"Tesla V100":            {"v100", 7},
	} {
		g, ok := LookupGPU(word)
		require.True(t, ok, word)
		require.Equal(t, want.name, g.Name, word)
		arch, ok := GPUArch(word)
		require.True(t, ok)
		require.Equal(t, want.arch, arch, word)
		require.NotEmpty(t, g.Source)
	}
	_, ok := LookupGPU("mi300x")
	require.False(t, ok)
}

// A similar name differs by one letter, or by two in a longer word.
func TestNearestGPUs(t *testing.T) {
	for word, want := range map[string][]string{
		"h10":          {"a10", "h100", "h20"},
		"NVIDIA H1000": {"h100"},
		"gb20":         {"gb200"},
		"rtx4080":      {"rtx4090"},
		"rtxpro600":    {"rtxpro6000"},
		"mi300x":       nil,
		"h77":          nil,
		"trainium":     nil,
	} {
		require.Equal(t, want, NearestGPUs(word), word)
	}
}
