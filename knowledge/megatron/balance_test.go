package megatron

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	small = "--num-layers 8 --hidden-size 1024 --ffn-hidden-size 4096 --num-attention-heads 8 --seq-length 2048 --max-position-embeddings 2048 " +
		"--vocab-size 65536 --micro-batch-size 1 --global-batch-size 64 --untie-embeddings-and-output-weights --bf16"
	nano = "--hybrid-layer-pattern MEM*- --hidden-size 2688 --ffn-hidden-size 1856 --num-attention-heads 32 --group-query-attention " +
		"--num-query-groups 2 --kv-channels 128 --num-experts 128 --moe-router-topk 6 --moe-ffn-hidden-size 1856 --mamba-num-heads 64 --mamba-head-dim " +
		"64 --mamba-num-groups 8 --mamba-state-dim 128 --squared-relu --normalization RMSNorm --untie-embeddings-and-output-weights " +
		"--disable-bias-linear --seq-length 8192 --max-position-embeddings 8192 --vocab-size 131072 --micro-batch-size 1 --bf16"
)

func TestOutputLayerAddsToTheLastStage(t *testing.T) {
	flat := effective(t, 4, small+" --pipeline-model-parallel-size 4")
	shape := flat.Shape()
	even := effective(t, 4, small+" --pipeline-model-parallel-size 1")
	require.Equal(t, 1.0, even.Imbalance(&shape, 5))
	require.InEpsilon(t, 4*(2+5)/(8+5.0), flat.Imbalance(&shape, 5), 1e-9, "two layers and five, of thirteen on four stages")
	few := strings.Replace(small, "65536", "16384", 1)
	accounted := effective(t, 5, few+" --pipeline-model-parallel-size 5 --account-for-embedding-in-pipeline-split --account-for-loss-in-pipeline-split")
	shape = accounted.Shape()
	require.Less(t, accounted.Imbalance(&shape, 1), 1.2, "a stage with one layer less has room for the output layer")
}

func TestOperationsOfAToken(t *testing.T) {
	shape := effective(t, 1, small).Shape()
	o := shape.Operations()
	all, active := shape.Params()
	require.Equal(t, all, active)
	require.InEpsilon(t, 6*(all-2*65536*1024), o.Linear, 1e-9)
	require.InEpsilon(t, 6*65536*1024, o.Output, 1e-9)
	require.InEpsilon(t, 6*8*1024*2048, o.Sequence, 1e-9, "causal attention counts half")
	require.Zero(t, o.Experts)
}

// Layers with a window attend only to the window; Context is the mean over all layers.
func TestWindowAttentionReducesContext(t *testing.T) {
	narrow := 128 - 128*127/(2*2048.0)
	for flags, context := range map[string]float64{
		"":                     1024,
		" --window-size 127,0": narrow,
		" --window-size 127,0 --window-attn-skip-freq 2":                 (1024 + narrow) / 2,
		" --window-size 127,0 --window-attn-skip-freq [1,1,1,1,1,1,1,0]": (1024 + 7*narrow) / 8,
		" --window-size=-1,0":   1024,
		" --window-size 4095,0": 1024,
	} {
		require.InEpsilon(t, context, effective(t, 1, small+flags).Shape().Context, 1e-9, flags)
	}
}

func TestOperationsOfAHybridPattern(t *testing.T) {
	c := effective(t, 8, nano+" --expert-model-parallel-size 8")
	shape := c.Shape()
	require.Equal(t, PartCounts{Attention: 1, MLP: 1, MoE: 1, Mamba: 2}, shape.Parts)
	require.Equal(t, MambaShape{Inner: 4096, Heads: 64, Groups: 8, State: 128}, shape.Mamba)
	h := 2688.0
	mamba := h*(2*4096+2*8*128+64) + 4096*h + (4096+2*8*128)*5 + 4096 + 3*64 + h
	attention := 2*h*(32*128+2*128) + h
	mlp := 2*h*1856 + h
	moe := 128*2*h*1856 + 128*h + h
	all, active := shape.Params()
	require.InEpsilon(t, 2*mamba+attention+mlp+moe+2*131072*h+h, all, 1e-9)
	require.InEpsilon(t, all-128*2*h*1856*(1-6.0/128), active, 1e-9)
	o := shape.Operations()
	require.Positive(t, o.Experts)
	// Megatron's log assumes that a mixer is twice as wide as the hidden size.
	require.InEpsilon(t, 3*2*((2*h-4096)*6*h+(2*h-4096)*7*128), o.Miscounted, 1e-9)
	older := strings.Replace(nano, "--hybrid-layer-pattern", "--num-layers 5 --hybrid-override-pattern", 1)
	args, _ := Parse(Run{Entry: "hybrid", Argv: strings.Fields(older + " --expert-model-parallel-size 8"), WorldSize: 8, Arch: 9, Release: V016})
	require.Equal(t, shape.Parts, args.Effective().Shape().Parts, "by the flag of older releases too")
	repeated := effective(t, 8, strings.Replace(nano, "MEM*-", "MEM*-/*E/*E", 1)+" --expert-model-parallel-size 8")
	twice := repeated.Memory().Part(PartParameters)
	repeated.MtpUseRepeatedLayer = true
	require.Less(t, repeated.Memory().Part(PartParameters), twice, "the depths share their weights")
	_, high := c.Band()
	require.Greater(t, high, 1.0)
}

func TestUsableMemoryIsLessThanNominal(t *testing.T) {
	for name, gib := range map[string]float64{"h100": 79.1, "h200": 139.8, "a100": 79.2, "b200": 178.4} {
		g, ok := LookupGPU(name)
		require.True(t, ok)
		require.Equal(t, gib, g.MemoryGiB, name)
	}
	g, _ := LookupGPU("GB200")
	require.Equal(t, 72, g.Domain)
	require.Equal(t, 5000.0, g.FP8)
	g, _ = LookupGPU("a100")
	require.Zero(t, g.FP8, "Ampere has no FP8")
}
