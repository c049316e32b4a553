package rules

import (
	"strconv"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/knowledge/megatron"
)

// A part is a version of a library in a container image, with the month of its
// release, such as 25.02. An older image cannot contain it.
type part struct{ version, since string }

// missing reports whether the image of a launch certainly lacks a part: a document
// names an older version in the image, or the image is older than the part.
func (p part) missing(c *cfg, version func(megatron.Image) string) bool {
	image := c.Asked.Run.Image
	if known, ok := megatron.LookupImage(image); ok && version(known) != "" {
		return olderVersion(version(known), p.version)
	}
	month, ok := megatron.ImageMonth(image)
	return ok && month < megatron.MonthOf(p.since)
}

// olderVersion reports whether version a, such as 1.10, is older than version b.
func olderVersion(a, b string) bool {
	as, bs := strings.Split(a, "."), strings.Split(b, ".")
	for i := range min(len(as), len(bs)) {
		x, _ := strconv.Atoi(as[i])
		y, _ := strconv.Atoi(bs[i])
		if x != y {
			return x < y
		}
	}
	return len(as) < len(bs)
}

const teRecipes = "NVIDIA/TransformerEngine transformer_engine/common/recipe/__init__.py, first in v"

// gpuOf returns the launch's kind of GPU; zero where it is not given.
func gpuOf(c *cfg) megatron.GPU {
	gpu, _ := megatron.LookupGPU(c.Asked.Run.GPU)
	return gpu
}

// imageRows compare what the flags need with the contents of the image and with the
// data types of the GPU. Megatron starts without them; Transformer Engine or CUDA
// ends the job at the first step.
func imageRows() []row {
	fp8 := func(recipe string) func(*cfg) bool {
		return func(c *cfg) bool { return c.Fp8.OK && c.Fp8Recipe == recipe }
	}
	fp4 := func(c *cfg) bool { return c.Fp4.OK }
	engine := func(i megatron.Image) string { return i.TransformerEngine }
	cuda := func(i megatron.Image) string { return i.CUDA }
	// needs returns a row for a part of the image; name is the library's name.
	needs := func(id, flags, source, name string, p part, versionOf func(megatron.Image) string, applies func(*cfg) bool) row {
		return row{
			id: id, flags: flags, source: source, stage: advising,
			when: t("a container image whose contents are known", "内容已知的容器镜像"),
			must: t("the image must have "+name+" "+p.version+" or newer", "镜像必须带有 "+name+" "+p.version+" 或更新版本"),
			why:  t("the job fails at its first step if the library does not support the data type or the GPU", "库不认识该数值类型或该 GPU，作业会在第一步退出"),
			do:   t("use an image of "+megatron.MonthOf(p.since).String()+" or later", "改用 "+megatron.MonthOf(p.since).String()+" 或之后的镜像"),
			fix: func(c *cfg) lang.Text {
				image, from := clip(c.Asked.Run.Image), megatron.MonthOf(p.since).String()
				if known, ok := megatron.LookupImage(c.Asked.Run.Image); ok && versionOf(known) != "" {
					return lang.Text{EN: "%s has %s: use an image of %s or later", ZH: "%s 中的版本是 %s：请改用 %s 或之后的镜像"}.With(image, versionOf(known), from)
				}
				month, _ := megatron.ImageMonth(c.Asked.Run.Image)
				return lang.Text{EN: "%s is of %s: use an image of %s or later", ZH: "%s 是 %s 的镜像：请改用 %s 或之后的镜像"}.With(image, month.String(), from)
			},
			broken: func(c *cfg) bool { return applies(c) && p.missing(c, versionOf) },
		}
	}
	// computes returns a row for a data type of the GPU.
	computes := func(id, flags string, name lang.Text, applies, can func(*cfg) bool, do lang.Text) row {
		return row{
			id: id, flags: flags, source: "Transformer Engine: datatype and hardware support matrix", stage: advising, effect: ChangesExperiment,
			when: name, must: t("the GPU must support this data type", "GPU 必须支持该数值类型"),
			why:    t("Transformer Engine refuses it on other GPUs, at the first step", "Transformer Engine 在其他 GPU 上会在第一步拒绝"),
			do:     do,
			broken: func(c *cfg) bool { return gpuOf(c).Name != "" && applies(c) && !can(c) },
		}
	}
	arch := func(from, to int) func(*cfg) bool {
		return func(c *cfg) bool { k := gpuOf(c); return from <= k.Arch && k.Arch <= to }
	}
	// Ada has FP8 and Ampere has not, although both have the major number 8.
	eight := func(c *cfg) bool { return gpuOf(c).FP8 > 0 }
	return append(topics("image", []row{
		needs("image-fp8", "--fp8-format", "Transformer Engine installation: in NVIDIA's PyTorch images since 22.09",
			"Transformer Engine", part{"0.1", "22.09"}, engine, func(c *cfg) bool { return c.Fp8.OK }),
		needs("image-mxfp8", "--fp8-recipe", teRecipes+"2.0: MXFP8BlockScaling", "Transformer Engine", part{"2.0", "25.02"}, engine, fp8("mxfp8")),
		needs("image-tensorwise", "--fp8-recipe", teRecipes+"2.2: Float8CurrentScaling", "Transformer Engine", part{"2.2", "25.04"}, engine, fp8("tensorwise")),
		needs("image-blockwise", "--fp8-recipe", teRecipes+"2.3: Float8BlockScaling", "Transformer Engine", part{"2.3", "25.04"}, engine, fp8("blockwise")),
		needs("image-nvfp4", "--fp4-format", teRecipes+"2.8: NVFP4BlockScaling", "Transformer Engine", part{"2.8", "25.10"}, engine, fp4),
		needs("image-blackwell", "gpu", "Transformer Engine installation: CUDA 12.8 for Blackwell", "CUDA", part{"12.8", "25.01"}, cuda, arch(10, 99)),
		{
			id: "image-driver", flags: "container.image", severity: Warning, broken: elsewhere,
			source: "docs.nvidia.com/deploy/cuda-compatibility/minor-version-compatibility.html",
			when:   t("an image whose CUDA is known, and a site that names its driver", "镜像的 CUDA 版本已知，且站点给出了驱动版本"),
			must:   t("the driver should be of the branch that the CUDA needs, or newer", "驱动应不低于该 CUDA 所需的分支"),
			why:    t("CUDA does not start, unless the image's own compatibility package takes over on a data center GPU", "CUDA 无法启动，除非镜像自带的兼容包在数据中心 GPU 上生效"),
			do:     t("an image with an older CUDA, or a newer driver on the nodes", "使用 CUDA 较旧的镜像，或升级节点驱动"),
		},
		needs("image-hopper", "gpu", "Transformer Engine installation: CUDA 11.8", "CUDA", part{"11.8", "22.09"}, cuda, arch(9, 9)),
	}), topics("GPU", []row{
		computes("gpu-fp8", "--fp8-format", t("--fp8-format", ""), func(c *cfg) bool { return c.Fp8.OK }, eight,
			t("train in bf16, or on Hopper or newer", "用 bf16 训练，或改用 Hopper 及以后的 GPU")),
		computes("gpu-blockwise", "--fp8-recipe", t("--fp8-recipe blockwise", ""), fp8("blockwise"), arch(9, 99),
			t("train in bf16, or on Hopper or newer", "用 bf16 训练，或改用 Hopper 及以后的 GPU")),
		computes("gpu-mxfp8", "--fp8-recipe", t("--fp8-recipe mxfp8", ""), fp8("mxfp8"), arch(10, 10),
			t("use --fp8-recipe tensorwise or blockwise before Blackwell", "Blackwell 之前用 --fp8-recipe tensorwise 或 blockwise")),
		computes("gpu-nvfp4", "--fp4-format", t("--fp4-format", ""), fp4, arch(10, 99),
			t("use --fp8-format before Blackwell", "Blackwell 之前用 --fp8-format")),
	})...)
}
