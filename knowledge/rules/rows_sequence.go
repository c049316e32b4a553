package rules

import (
	"slices"
	"strings"
)

func sequenceRows() []row {
	const saved = "--distribute-saved-activations"
	return topics("sequence parallel", []row{
		{
			id: "tp-overlap-needs-sequence-parallel", flags: "--sequence-parallel --tp-comm-overlap " + tpFlag, source: inArgs + "1442",
			when: t("--tp-comm-overlap", ""), must: t("--sequence-parallel must be on, with TP > 1", "必须启用 --sequence-parallel 且 TP > 1"),
			why: t("it overlaps the gathers and scatters of sequence parallelism; TP 1 switches that off first", "它重叠的是序列并行的收集与散发；TP 为 1 时序列并行会先被关闭"), do: t("add --sequence-parallel with TP > 1, or drop --tp-comm-overlap", "TP > 1 时加 --sequence-parallel，或去掉 --tp-comm-overlap"),
			broken: func(c *cfg) bool { return c.TpCommOverlap && !c.SequenceParallel },
		},
		{
			// Seen on a GPU without Apex.
			id: "local-sequence-parallel-needs-apex", flags: "--transformer-impl --sequence-parallel", source: "megatron/core/transformer/torch_norm.py:52", severity: Warning,
			when: t("--transformer-impl local with --sequence-parallel, without --spec", "--transformer-impl local 与 --sequence-parallel，未用 --spec"),
			must: t("the norm must be Apex's, which is LayerNorm only: without Apex, and always with --normalization RMSNorm, every rank ends while the model is built",
				"norm 必须是 Apex 的，而它只有 LayerNorm：没有 Apex，或用 --normalization RMSNorm 时，各 rank 会在构建模型时退出"),
			why: t("PyTorch's norms do not know sequence parallelism; Transformer Engine's do", "PyTorch 的 norm 不支持序列并行，Transformer Engine 的支持"),
			do: t("drop --transformer-impl local; or drop --sequence-parallel and, for PyTorch's norm, add --no-persist-layer-norm",
				"去掉 --transformer-impl local；或去掉 --sequence-parallel，用 PyTorch 的 norm 时再加 --no-persist-layer-norm"),
			broken: func(c *cfg) bool { return c.TransformerImpl == "local" && c.SequenceParallel && len(c.Spec) == 0 },
		},
		{
			id: "hybrid-cp-no-pp", flags: ppFlag + " --hybrid-context-parallel", source: inArgs + "1445",
			when: t("--hybrid-context-parallel", ""), must: t("PP must be 1", "PP 必须为 1"),
			why: t("its groups change from batch to batch, and stages must agree", "它的分组逐批变化，而各流水级必须一致"), do: t("use PP 1", "改用 PP 1"),
			broken: func(c *cfg) bool { return c.HybridContextParallel && c.PP > 1 },
		},
		{
			id: "hybrid-cp-no-cuda-graph", flags: "--enable-cuda-graph --hybrid-context-parallel", source: inArgs + "1446",
			when: t("--hybrid-context-parallel", ""), must: t("CUDA graphs must be off", "必须关闭 CUDA graph"),
			why: t("a graph fixes the shapes that this mode changes", "图会固定该模式要改变的形状"), do: t("drop --enable-cuda-graph", "去掉 --enable-cuda-graph"),
			broken: func(c *cfg) bool { return c.HybridContextParallel && c.EnableCudaGraph },
		},
		{
			id: "hybrid-cp-no-megatron-fsdp", flags: "--use-megatron-fsdp --hybrid-context-parallel", source: inArgs + "1447",
			when: t("--hybrid-context-parallel", ""), must: t("--use-megatron-fsdp must not be given", "不能使用 --use-megatron-fsdp"),
			why: t("its shards assume fixed data-parallel groups", "它的分片假定数据并行组固定"), do: t("drop one of the two", "去掉其中一个"),
			broken: func(c *cfg) bool { return c.HybridContextParallel && c.UseMegatronFsdp },
		},
		{
			id: "hybrid-cp-single-dataloader", flags: "--dataloader-type --hybrid-context-parallel", source: inArgs + "1448",
			when: t("--hybrid-context-parallel", ""), must: t("--dataloader-type must be single (the default)", "--dataloader-type 必须是 single（默认）"),
			why: t("only that loader packs sequences for it", "只有该加载器会为它打包序列"), do: t("drop --dataloader-type", "去掉 --dataloader-type"),
			broken: func(c *cfg) bool { return c.HybridContextParallel && c.DataloaderType.Or("single") != "single" },
		},
		{
			id: "hybrid-cp-token-loss", flags: "--calculate-per-token-loss --hybrid-context-parallel", source: inArgs + "1449", effect: ChangesExperiment,
			when: t("--hybrid-context-parallel", ""), must: t("--calculate-per-token-loss must be given", "必须加 --calculate-per-token-loss"),
			why: t("microbatches hold different numbers of tokens", "各微批的 token 数不同"), do: t("add --calculate-per-token-loss", "加上 --calculate-per-token-loss"),
			broken: func(c *cfg) bool { return c.HybridContextParallel && !c.CalculatePerTokenLoss },
		},
		{
			id: "saved-activations-need-tp", flags: tpFlag + " " + saved, source: inArgs + "1411",
			when: t(saved, ""), must: t("TP must be above 1", "TP 必须大于 1"),
			why: t("the activations are spread over the tensor-parallel ranks", "激活分散在张量并行的各 rank 上"), do: t("drop "+saved, "去掉 "+saved),
			broken: func(c *cfg) bool { return c.DistributeSavedActivations && c.TP <= 1 },
		},
		{
			id: "saved-activations-need-full", flags: "--recompute-granularity " + saved, source: inArgs + "1414",
			when: t(saved, ""), must: t("--recompute-granularity must be full", "--recompute-granularity 必须是 full"),
			why: t("only whole-layer checkpoints are spread", "只有整层检查点会被分散存放"), do: t("use --recompute-granularity full, or drop "+saved, "改用 --recompute-granularity full，或去掉 "+saved),
			broken: func(c *cfg) bool { return c.DistributeSavedActivations && c.RecomputeGranularity.V != "full" },
		},
		{
			id: "saved-activations-need-method", flags: "--recompute-method " + saved, source: inArgs + "1417",
			when: t(saved, ""), must: t("--recompute-method must be given", "必须给 --recompute-method"),
			why: t("it says which layers are checkpointed", "它决定哪些层做检查点"), do: t("add --recompute-method uniform", "加上 --recompute-method uniform"),
			broken: func(c *cfg) bool { return c.DistributeSavedActivations && !c.RecomputeMethod.OK },
		},
		{
			id: "saved-activations-no-sequence-parallel", flags: saved + " --sequence-parallel", source: inConfig + "1935",
			when: t(saved+" with recompute", saved+" 且启用重计算"), must: t("--sequence-parallel must be off", "必须关闭 --sequence-parallel"),
			why: t("sequence parallelism spreads the activations already", "序列并行已经把激活分散了"), do: t("drop "+saved, "去掉 "+saved),
			broken: func(c *cfg) bool {
				return c.RecomputeGranularity.OK && c.DistributeSavedActivations && c.SequenceParallel
			},
		},
		{
			id: "deterministic-options", flags: "--deterministic-mode --tp-comm-overlap --cross-entropy-loss-fusion", source: inDeterm + "146", at: 1706,
			when: t("--deterministic-mode", ""), must: t("--tp-comm-overlap and --cross-entropy-loss-fusion must be off", "必须关闭 --tp-comm-overlap 与 --cross-entropy-loss-fusion"),
			why: t("both sum in an order that differs from run to run", "两者的求和顺序每次运行都不同"), do: t("drop them, or --deterministic-mode", "去掉它们，或去掉 --deterministic-mode"),
			broken: func(c *cfg) bool { return c.DeterministicMode && (c.TpCommOverlap || c.CrossEntropyLossFusion) },
		},
		{
			id: "deterministic-nccl-algo", flags: "NCCL_ALGO --deterministic-mode", source: inDeterm + "91", at: 1707,
			when: t("--deterministic-mode with NCCL_ALGO set", "--deterministic-mode 且设置了 NCCL_ALGO"), must: t("each token of NCCL_ALGO must be Ring, CollnetDirect, CollnetChain or ^NVLS", "NCCL_ALGO 的每一项必须是 Ring、CollnetDirect、CollnetChain 或 ^NVLS"),
			why: t("Tree and the rest do not promise the same sums twice", "Tree 等算法不保证两次求和结果相同"), do: t("export NCCL_ALGO=Ring, or unset it", "export NCCL_ALGO=Ring，或取消设置"),
			broken: func(c *cfg) bool {
				algo, ok := c.Env("NCCL_ALGO")
				return c.DeterministicMode && ok && !knownAlgorithms(algo)
			},
		},
		{
			id: "deterministic-te-env", flags: "NVTE_ALLOW_NONDETERMINISTIC_ALGO --deterministic-mode", source: inDeterm + "100", at: 1708,
			when: t("--deterministic-mode", ""), must: t("NVTE_ALLOW_NONDETERMINISTIC_ALGO must be 0 or unset", "NVTE_ALLOW_NONDETERMINISTIC_ALGO 必须为 0 或不设置"),
			why: t("any other value lets Transformer Engine choose kernels that differ between runs", "其他取值会让 Transformer Engine 选用每次结果不同的内核"), do: t("unset it", "取消设置"),
			broken: func(c *cfg) bool {
				v, ok := c.Env("NVTE_ALLOW_NONDETERMINISTIC_ALGO")
				return c.DeterministicMode && ok && v != "0"
			},
		},
		{
			id: "deterministic-cublas-env", flags: "CUBLAS_WORKSPACE_CONFIG --deterministic-mode", source: inDeterm + "100", at: 1709,
			when: t("--deterministic-mode", ""), must: t("CUBLAS_WORKSPACE_CONFIG must be :4096:8, :16:8 or unset", "CUBLAS_WORKSPACE_CONFIG 必须为 :4096:8、:16:8 或不设置"),
			why: t("only these two workspaces make cuBLAS repeatable", "只有这两种工作区能让 cuBLAS 可复现"), do: t("export CUBLAS_WORKSPACE_CONFIG=:4096:8", "export CUBLAS_WORKSPACE_CONFIG=:4096:8"),
			broken: func(c *cfg) bool {
				v, ok := c.Env("CUBLAS_WORKSPACE_CONFIG")
				return c.DeterministicMode && ok && v != ":4096:8" && v != ":16:8"
			},
		},
		{
			id: "deterministic-mamba-env", flags: "MAMBA_DETERMINISTIC CAUSAL_CONV1D_DETERMINISTIC --deterministic-mode", source: inDeterm + "109", at: 1710,
			when: t("--deterministic-mode", ""), must: t("MAMBA_DETERMINISTIC and CAUSAL_CONV1D_DETERMINISTIC must be 1 or unset", "MAMBA_DETERMINISTIC 与 CAUSAL_CONV1D_DETERMINISTIC 必须为 1 或不设置"),
			why: t("another value switches the deterministic kernels off", "其他取值会关闭确定性内核"), do: t("unset them", "取消设置"),
			broken: func(c *cfg) bool {
				return c.DeterministicMode && slices.ContainsFunc([]string{"MAMBA_DETERMINISTIC", "CAUSAL_CONV1D_DETERMINISTIC"}, func(name string) bool {
					v := env(c, name)
					return v != "" && v[0] != '1'
				})
			},
		},
	})
}

// knownAlgorithms follows Megatron's list of deterministic NCCL algorithms
// (megatron/training/determinism.py:50).
func knownAlgorithms(list string) bool {
	any := false
	for token := range strings.SplitSeq(list, ",") {
		if token = strings.TrimSpace(token); token == "" {
			continue
		}
		any = true
		if !slices.Contains([]string{"Ring", "CollnetDirect", "CollnetChain", "^NVLS"}, token) {
			return false
		}
	}
	return any
}
