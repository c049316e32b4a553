package rules

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/knowledge/megatron"
)

const imageModel = "--num-layers 8 --hidden-size 1024 --num-attention-heads 8 --seq-length 1024 --max-position-embeddings 1024 " +
	"--micro-batch-size 1 --global-batch-size 8 --bf16 --lr 1e-4 --train-iters 1 --tokenizer-type NullTokenizer --vocab-size 1000 --mock-data "

// The rules that flags break because of the image or the GPU.
func TestFlagsAreCheckedAgainstImageAndGPU(t *testing.T) {
	for _, c := range []struct{ image, gpu, flags, rules string }{
		{"nvcr.io/nvidia/pytorch:23.04-py3", "b200", "--fp8-format e4m3 --fp8-recipe mxfp8", "image-mxfp8 image-blackwell"},
		{"nvcr.io/nvidia/pytorch:23.04-py3", "h100", "--fp8-format hybrid --fp8-recipe tensorwise", "image-tensorwise"},
		{"nvcr.io/nvidia/pytorch:23.04-py3", "h100", "--fp8-format hybrid", ""},
		{"nvcr.io/nvidia/pytorch:22.08-py3", "h100", "--fp8-format hybrid", "image-fp8 image-hopper"},
		{"nvcr.io/nvidia/pytorch:22.09-py3", "h100", "--fp8-format hybrid", ""},
		{"nvcr.io/nvidia/pytorch:25.01-py3", "b200", "", ""},
		{"nvcr.io/nvidia/pytorch:24.12-py3", "b200", "", "image-blackwell"},
		{"nvcr.io/nvidia/pytorch:25.02-py3", "gb200", "--fp8-format e4m3 --fp8-recipe mxfp8", ""},
		{"nvcr.io/nvidia/pytorch:25.01-py3", "gb200", "--fp8-format e4m3 --fp8-recipe mxfp8", "image-mxfp8"},
		{"nvcr.io/nvidia/pytorch:25.03-py3", "h200", "--fp8-format e4m3 --fp8-recipe blockwise", "image-blockwise"},
		{"nvcr.io/nvidia/pytorch:25.09-py3", "gb300", "--fp4-format e2m1 --fp4-recipe nvfp4", "image-nvfp4"},
		{"nvcr.io/nvidia/nemo:25.09", "gb300", "--fp4-format e2m1 --fp4-recipe nvfp4", "image-nvfp4"},
		{"nvcr.io/nvidia/nemo:25.11", "gb300", "--fp4-format e2m1 --fp4-recipe nvfp4", ""},
		{"nvcr.io/nvidia/nemo:24.09", "h100", "--fp8-format hybrid --fp8-recipe tensorwise", "image-tensorwise"},
		{"/images/nvidia+pytorch+23.04-py3.sqsh", "b200", "--fp8-format e4m3 --fp8-recipe mxfp8", "image-mxfp8 image-blackwell"},
		{"pytorch/pytorch:2.1.0-cuda12.1", "b200", "--fp8-format e4m3 --fp8-recipe mxfp8", ""},
		{"registry.example.org/ai/trainer:23.04", "b200", "--fp8-format e4m3 --fp8-recipe mxfp8", ""},
		{"", "h100", "--fp8-format e4m3 --fp8-recipe mxfp8", "gpu-mxfp8"},
		{"", "h100", "--fp4-format e2m1 --fp4-recipe nvfp4", "gpu-nvfp4"},
		{"", "a100", "--fp8-format hybrid", "gpu-fp8"},
		{"", "l40s", "--fp8-format hybrid", ""},
		{"", "l40s", "--fp8-format e4m3 --fp8-recipe blockwise", "gpu-blockwise"},
		{"", "b200", "--fp4-format e2m1 --fp4-recipe nvfp4", ""},
		{"", "", "--fp8-format e4m3 --fp8-recipe mxfp8", ""},
		{"", "rtxpro6000", "--fp8-format e4m3 --fp8-recipe mxfp8", "gpu-mxfp8"},
	} {
		arch, ok := megatron.GPUArch(c.gpu)
		require.True(t, ok || c.gpu == "", c.gpu)
		v := Check(megatron.Run{Argv: strings.Fields(imageModel + c.flags), WorldSize: 8, Arch: arch, Image: c.image, GPU: c.gpu})
		require.True(t, v.OK, "Megatron itself starts: %v", v.Problems)
		var found []string
		for _, p := range v.Problems {
			if strings.HasPrefix(p.Rule, "image-") || strings.HasPrefix(p.Rule, "gpu-") {
				require.Equal(t, Error, p.Severity)
				found = append(found, p.Rule)
			}
		}
		require.Equal(t, c.rules, strings.Join(found, " "), "%s on %s with %s", c.flags, c.image, c.gpu)
	}
}

func TestImageProblemNamesTheImageAndANewerOne(t *testing.T) {
	run := megatron.Run{
		Argv: strings.Fields(imageModel + "--fp8-format e4m3 --fp8-recipe mxfp8"), WorldSize: 8, Arch: 10,
		GPU: "b200", Image: "nvcr.io/nvidia/nemo:24.09",
	}
	fixes := func(l lang.Lang) (all []string) {
		for _, p := range CheckIn(run, l).Problems {
			if strings.HasPrefix(p.Rule, "image-") {
				all = append(all, p.Fix)
			}
		}
		return all
	}
	require.Equal(t, []string{
		"nvcr.io/nvidia/nemo:24.09 has 1.10: use an image of 2025-02 or later",
		"nvcr.io/nvidia/nemo:24.09 is of 2024-09: use an image of 2025-01 or later",
	}, fixes(lang.EN))
	require.Equal(t, []string{
		"nvcr.io/nvidia/nemo:24.09 中的版本是 1.10：请改用 2025-02 或之后的镜像",
		"nvcr.io/nvidia/nemo:24.09 是 2024-09 的镜像：请改用 2025-01 或之后的镜像",
	}, fixes(lang.ZH))
}
