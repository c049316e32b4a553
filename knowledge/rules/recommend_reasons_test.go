package rules

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
)

func TestFirstOptionSaysWhyItRanksFirst(t *testing.T) {
	r, err := Recommend(Question{Argv: strings.Fields(models["Llama 3 70B"] + " --global-batch-size 256 --grad-reduce-in-bf16"), GPUs: 64, GPU: "h100"})
	require.NoError(t, err)
	first, second := r.Options[0], r.Options[1]
	require.InDelta(t, first.StepSeconds, first.Step.Seconds(), 1e-9)
	said := first.Reasons[0]
	require.Contains(t, said.EN, "faster than "+second.Layout.String())
	require.Contains(t, said.ZH, second.Layout.String())
	require.Equal(t, lang.ZH, lang.Of(said.ZH))
}

func TestAhead(t *testing.T) {
	a, b := Option{StepSeconds: 10}, Option{StepSeconds: 11}
	a.Step, b.Step = Step{Compute: 8, Bubble: 1, Data: 1}, Step{Compute: 8, Tensor: 2.5, Bubble: 0.5}
	b.TP, b.PP = 8, 1
	require.Equal(t, "10.0 % faster than "+b.Layout.String()+": 25.0 % less tensor-parallel communication, against 10.0 % more exchange of gradients and weights", ahead(a, b).EN)
	b.Tight = true
	require.Contains(t, ahead(a, b).EN, "only at the lower end")
	b.Tight, a.Tight = true, true
	require.Contains(t, ahead(a, b).EN, "faster")
}

func TestTightOptionIsNotFirst(t *testing.T) {
	for name, argv := range models {
		r, err := Recommend(Question{Argv: strings.Fields(argv + " --global-batch-size 2048"), GPUs: 512, GPU: "h100"})
		require.NoError(t, err)
		tight := false
		for _, o := range r.Options {
			require.False(t, tight && !o.Tight, "%s: %s", name, o.Layout)
			tight = o.Tight
		}
	}
}

func TestSpeedRangeNeedsMeasuredRuns(t *testing.T) {
	for _, c := range []struct {
		gpu, flags string
		told       bool
	}{
		{"h100", "", true},
		{"gb300", "--fp8-format e4m3 --fp8-recipe mxfp8", true},
		{"h200", "--fp8-format hybrid --fp8-recipe tensorwise", true},
		{"b200", "--fp4-format e2m1 --fp4-recipe nvfp4", true},
		{"h100", "--fp8-format e4m3 --fp8-recipe blockwise", false},
		{"a100", "", true},
		{"l40s", "", false},
	} {
		r, err := Recommend(Question{Argv: strings.Fields(models["Llama 3 8B"] + " --global-batch-size 128 " + c.flags), GPUs: 64, GPU: c.gpu})
		require.NoError(t, err, c.gpu)
		require.NotEmpty(t, r.Options, c.gpu)
		o := r.Options[0]
		require.Equal(t, c.told, o.High > 0, "%s %s", c.gpu, c.flags)
		if c.told {
			require.True(t, o.Low < o.TFLOPs && o.TFLOPs < o.High)
		}
	}
}

// No run in fp32 was published: the speed of bf16 would be wrong for it.
func TestNoSpeedIsToldInFP32(t *testing.T) {
	r, err := Recommend(Question{Argv: strings.Fields(strings.ReplaceAll(models["Llama 3 8B"], "--bf16", "") + " --global-batch-size 128"), GPUs: 64, GPU: "h100"})
	require.NoError(t, err)
	require.NotEmpty(t, r.Options)
	require.Zero(t, r.Options[0].High)
}

// Context parallelism leaves fewer tokens than usual on a rank where no layout fits
// otherwise.
func TestLongSequencesUseMoreContextParallelism(t *testing.T) {
	argv := strings.Fields(models["Llama 3 8B"] + " --global-batch-size 64")
	r, err := Recommend(Question{Argv: argv, GPUs: 64, GPU: "h100"})
	require.NoError(t, err)
	for _, o := range r.Options {
		require.GreaterOrEqual(t, 8192/o.CP, usualTokens, o.Layout)
	}
	r, err = Recommend(Question{Argv: argv, GPUs: 64, GPU: "t4", GPUsPerNode: 1})
	require.NoError(t, err)
	thinnest := math.MaxInt
	for _, o := range r.Options {
		thinnest = min(thinnest, 8192/o.CP)
	}
	require.True(t, len(r.Options) == 0 || thinnest >= fewestTokens)
}

// Of options that differ only in their virtual stages, only the best is kept, so that
// the second option is a real alternative.
func TestOptionsDifferInMoreThanVirtualStages(t *testing.T) {
	r, err := Recommend(Question{Argv: strings.Fields(models["Llama 3 70B"] + " --global-batch-size 256"), GPUs: 64, GPU: "h100"})
	require.NoError(t, err)
	require.Greater(t, r.Legal, len(r.Options))
	seen := map[[4]int]bool{}
	for _, o := range r.Options {
		key := [4]int{o.TP, o.PP, o.CP, o.EP}
		require.False(t, seen[key], o.Layout)
		seen[key] = true
	}
	require.NotContains(t, r.Options[0].Reasons[0].EN, "against 0.0 %")
}
