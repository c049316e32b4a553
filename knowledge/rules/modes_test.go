package rules

import (
	"slices"
	"strings"
	"testing"

	"github.com/megatron-ops/megatron-ops/knowledge/megatron"
)

// The rules for modes that training runs seldom use. Each row breaks its rule. The
// edits after it, separated by bars, each remove one condition of the rule.
func TestRulesOfSeldomUsedModes(t *testing.T) {
	const (
		opt   = "--transformer-impl inference_optimized "
		same  = "--batch-invariant-mode --attention-backend flash --flash-attention-version 3 --attention-dropout 0.0 "
		wide  = "--enable-mhc-connections "
		again = "--recompute-granularity selective --recompute-modules mhc "
		graph = "--cuda-graph-impl local --cuda-graph-modules attn "
		fim   = "--fim-data --fim-rate 0.5 --fim-spm-rate 0.5 "
	)
	for _, c := range []struct{ rule, base, breaks, keeps string }{
		{"optimized-moe-no-etp", "moe", opt + "--expert-tensor-parallel-size 2", opt + "| --expert-tensor-parallel-size 2"},
		{"optimized-moe-dropless", "moe", opt + "--moe-expert-capacity-factor 1.0", opt + "| --moe-expert-capacity-factor 1.0"},
		{"optimized-moe-no-padding", "moe", opt + "--moe-router-padding-for-quantization", opt + "| --moe-router-padding-for-quantization"},
		{"optimized-moe-router-dtype", "moe", opt, opt + "--moe-router-dtype fp32 | --seed 1"},
		{"optimized-moe-gated-backend", "moe", opt + "--inference-grouped-gemm-backend flashinfer", opt + "--inference-grouped-gemm-backend vllm |" + opt + "--inference-grouped-gemm-backend torch | " + opt + "--inference-grouped-gemm-backend flashinfer !--swiglu"},
		{"optimized-rmsnorm", "moe", opt, opt + "--normalization RMSNorm | --seed 1"},
		{"optimized-plain-gamma", "moe", opt + "--apply-layernorm-1p", opt + "| --apply-layernorm-1p"},
		{"optimized-no-bias", "dense", opt, opt + "--disable-bias-linear | --seed 1"},
		{"optimized-no-qkv-bias", "moe", opt + "--add-qkv-bias", opt + "| --add-qkv-bias"},
		{"fused-tp-needs-optimized", "dense", "--inference-fuse-tp-communication", opt + "--inference-fuse-tp-communication | --seed 1"},
		{"fused-tp-dense", "moe", opt + "--inference-fuse-tp-communication", opt},
		{"nvls-kernels-need-optimized", "dense", "--inference-disable-triton-nvls-kernels", opt + "--inference-disable-triton-nvls-kernels | --seed 1"},
		{"invariant-bf16", "moe", same + "!--bf16", same + "| !--bf16"},
		{"invariant-flash", "moe", same + "--attention-backend fused", same + "| --attention-backend fused"},
		{"invariant-flash-version", "moe", same + "--flash-attention-version 2", same + "|" + same + "--flash-attention-version 4 | --flash-attention-version 2"},
		{"invariant-flash-version", "moe", same + "!--flash-attention-version", "--seed 1"},
		{"invariant-no-cp", "moe", same + "--context-parallel-size 2", same + "| --context-parallel-size 2"},
		{"invariant-no-dropout", "moe", same + "--attention-dropout 0.1", same + "| --attention-dropout 0.1"},
		{"invariant-alltoall", "moe", same + "--moe-token-dispatcher-type allgather", same + "|" + same + opt + "--moe-token-dispatcher-type allgather | --moe-token-dispatcher-type allgather"},
		{"invariant-moe-bf16", "moe", same + "--fp8-format e4m3", same + "| --fp8-format e4m3"},
		{"invariant-moe-bf16", "moe", same + "--fp4-format e2m1", "--fp4-format e2m1"},
		{"invariant-moe-unfused", "moe", same + "--moe-permute-fusion", same + "| --moe-permute-fusion"},
		{"invariant-moe-unfused", "moe", same + "--moe-permute-fusion-into-hybridep", "--moe-permute-fusion-into-hybridep"},
		{"invariant-moe-dropless", "moe", same + "--moe-pad-expert-input-to-capacity", same + "| --moe-pad-expert-input-to-capacity"},
		{"invariant-moe-dropless", "moe", same + "--moe-pad-experts-for-cuda-graph-inference", "--moe-pad-experts-for-cuda-graph-inference"},
		{"mhc-recompute-needs-mhc", "llama", again, wide + again + "| --recompute-granularity selective --recompute-modules mlp | --recompute-modules mhc"},
		{"mhc-or-mlp-recompute", "llama", wide + again + "mlp", wide + again + "|" + again + "mlp |" + wide + "--recompute-granularity selective --recompute-modules mlp | " + wide + "--recompute-modules mhc mlp"},
		{"mhc-recompute-layers", "llama", wide + again + "--mhc-recompute-layer-num 0", wide + again + "|" + wide + again + "--mhc-recompute-layer-num 1 | " + wide + "--mhc-recompute-layer-num 0"},
		{"mhc-recompute-no-offload", "llama", wide + again + "--fine-grained-activation-offloading", wide + again + "| " + wide + "--fine-grained-activation-offloading"},
		{"mhc-no-mtp", "llama", wide + "--mtp-num-layers 1", wide + "| --mtp-num-layers 1"},
		{"mhc-no-full-recompute", "llama", wide + "--recompute-granularity full --recompute-method uniform --recompute-num-layers 1", wide + again + "| --recompute-granularity full --recompute-method uniform --recompute-num-layers 1"},
		{"mhc-no-fused-tp", "llama", wide + "--inference-fuse-tp-communication", wide + "| --inference-fuse-tp-communication"},
		{"mhc-no-pp", "llama", wide + "--pipeline-model-parallel-size 2", wide + "| --pipeline-model-parallel-size 2"},
		{"mhc-no-fp32-residual", "llama", wide + "--fp32-residual-connection", wide + "| --fp32-residual-connection"},
		{"mhc-sinkhorn", "llama", wide + "--mhc-sinkhorn-iterations 0", wide + "--mhc-sinkhorn-iterations 1 | --mhc-sinkhorn-iterations 0"},
		{"mhc-gating", "llama", wide + "--mhc-init-gating-factor -0.1", wide + "--mhc-init-gating-factor 0 | --mhc-init-gating-factor -0.1"},
		{"rl-packing-micro-batch", "dense", "--perform-rl-step --rl-use-sequence-packing", "--perform-rl-step | --rl-use-sequence-packing | --perform-rl-step --rl-use-sequence-packing --micro-batch-size 1"},
		{"graph-full-recompute", "llama", graph + "--recompute-granularity full", graph + again + "| --recompute-granularity full | --cuda-graph-impl full_iteration --recompute-granularity full"},
		{"no-rope-list-length", "llama", "--no-rope-freq [0,1]", "--no-rope-freq ([0]*3+[1])*8 | --no-rope-freq 4"},
		{"fim-rate", "dense", fim + "--fim-rate 0", fim + "| --fim-rate 0"},
		{"fim-rate", "dense", fim + "--fim-rate 0.0", "--fim-rate 0.0"},
		{"fim-spm-rate", "dense", fim + "--fim-spm-rate 0", fim + "| --fim-spm-rate 0"},
		{"fim-no-mock-data", "dense", fim, fim + "!--mock-data --data-path d | --seed 1"},
		{"retain-interval-multiple", "dense", "--save s --save-interval 100 --save-retain-interval 150", "--save s --save-interval 100 --save-retain-interval 200 | --save-interval 100 --save-retain-interval 150 | --save s --save-interval 100"},
		{"schedule-sizes-positive", "dense", "!--global-batch-size --step-batch-size-schedule 0:0,1M:256", "!--global-batch-size --step-batch-size-schedule 0:128,1M:256"},
		{"cp-comm-type-per-layer", "llama", "--cp-comm-type p2p a2a", "--cp-comm-type p2p | --cp-comm-type p2p a2a --context-parallel-size 1"},
		{"fake-group-no-flex", "moe", "--fake-process-group --moe-token-dispatcher-type flex", "--fake-process-group | --moe-token-dispatcher-type flex"},
		{"dsa-cp-allgather", "latent", "--experimental-attention-variant dsa --context-parallel-size 2 --cp-comm-type p2p", "--experimental-attention-variant dsa --context-parallel-size 2 --cp-comm-type all_gather | --experimental-attention-variant dsa --cp-comm-type p2p | --context-parallel-size 2 --cp-comm-type p2p"},
	} {
		told := func(edits string) bool {
			d := newDraft(bases[c.base])
			d.edit(edits)
			run := d.carried("", "", true, "")
			v := Check(megatron.Run{Entry: run.Entry, Argv: run.Argv, WorldSize: run.World, Arch: run.Arch, Env: run.Env, Release: megatron.Main})
			return slices.ContainsFunc(v.Problems, func(p Problem) bool { return p.Rule == c.rule })
		}
		if !told(c.breaks) {
			t.Errorf("%s is not told of %s", c.rule, c.breaks)
		}
		for keeps := range strings.SplitSeq(c.keeps, "|") {
			if told(keeps) {
				t.Errorf("%s is told of %s", c.rule, keeps)
			}
		}
	}
}
