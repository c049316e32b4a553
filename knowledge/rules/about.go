package rules

import (
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/knowledge/megatron"
)

// About returns a sentence about what a flag of Megatron does. It knows the flags
// that people ask about, under any of their names.
func About(flag string) (lang.Text, bool) {
	f, ok := megatron.LookupFlag(flag)
	if !ok {
		return lang.Text{}, false
	}
	for _, a := range about {
		if a.flag == f.Name {
			return a.says, true
		}
	}
	return lang.Text{}, false
}

var about = []struct {
	flag string
	says lang.Text
}{
	{"--tensor-model-parallel-size", t("splits each layer's matrices over this many GPUs; it communicates in every layer and belongs within a node", "把每层的矩阵切分到这么多张 GPU；每层都要通信，宜限制在节点内")},
	{"--pipeline-model-parallel-size", t("splits the layers into this many stages, one after the other; microbatches fill the stages in turn", "把层切成这么多级依次执行；由多个微批轮流填满")},
	{"--context-parallel-size", t("splits every sequence over this many GPUs, for long sequences", "把每条序列切分到这么多张 GPU，用于长序列")},
	{"--expert-model-parallel-size", t("spreads the experts of a MoE layer over this many GPUs", "把 MoE 层的专家分布到这么多张 GPU")},
	{"--expert-tensor-parallel-size", t("the tensor-parallel size inside an expert; it is TP unless given, and 1 is usually best", "专家内部的张量并行度；不给时等于 TP，通常取 1 最好")},
	{"--sequence-parallel", t("splits what lies between the tensor-parallel parts along the sequence: less memory for the same traffic; needs TP > 1", "把张量并行之间的部分沿序列切分：通信量不变而显存更少；需要 TP > 1")},
	{"--num-layers-per-virtual-pipeline-stage", t("gives each rank several smaller stages of this many layers, which shrinks the pipeline bubble", "让每个 rank 承担多个这么多层的小级，从而缩小流水线气泡")},
	{"--num-virtual-stages-per-pipeline-rank", t("gives each rank this many smaller stages, which shrinks the pipeline bubble", "让每个 rank 承担这么多个小级，从而缩小流水线气泡")},
	{"--pipeline-model-parallel-layout", t("writes the stages out: E embedding, t layer, m MTP layer, L loss, | the next stage", "逐级写出布局：E 嵌入、t 层、m MTP 层、L 损失、| 下一级")},
	{"--decoder-first-pipeline-num-layers", t("the number of layers of the first stage, where stages are uneven", "首级的层数，用于不均匀分级")},
	{"--decoder-last-pipeline-num-layers", t("the number of layers of the last stage, where stages are uneven", "末级的层数，用于不均匀分级")},
	{"--account-for-embedding-in-pipeline-split", t("counts the embedding as one layer of the first stage", "把嵌入算作首级的一层")},
	{"--account-for-loss-in-pipeline-split", t("counts the loss as one layer of the last stage", "把损失算作末级的一层")},
	{"--micro-batch-size", t("samples of one forward and backward pass on one data-parallel rank; it decides the activation memory", "每个数据并行 rank 一次前向与反向的样本数；决定激活显存")},
	{"--global-batch-size", t("samples of one optimizer step over all ranks; microbatches = global / (micro × DP)", "所有 rank 一步优化的样本总数；微批数 = 全局 /（微批 × DP）")},
	{"--step-batch-size-schedule", t("grows the global batch at given numbers of tokens, such as \"0:256 100B:512\"", "按 token 数逐步增大全局批，例如 \"0:256 100B:512\"")},
	{"--rampup-batch-size", t("grows the global batch with the samples seen, up to 0.17; since 0.18 it is parsed and used by nothing", "0.17 及以前按样本数逐步增大全局批；自 0.18 起能解析但不再起作用")},
	{"--decrease-batch-size-if-needed", t("rounds the global batch down to a multiple of micro batch × DP", "把全局批向下取整为微批 × DP 的倍数")},
	{"--seq-length", t("tokens of a training sample", "每个训练样本的 token 数")},
	{"--max-position-embeddings", t("the largest position; at least --seq-length, also where positions are rotary", "最大位置数；不能小于 --seq-length，使用 RoPE 时也一样")},
	{"--num-layers", t("the number of transformer layers", "Transformer 层数")},
	{"--hidden-size", t("the width of the residual stream", "残差流的宽度")},
	{"--ffn-hidden-size", t("the inner width of the feed-forward layer; 4 × hidden unless given, 8/3 with --swiglu", "前馈层内部宽度；不给时为 4 × hidden，使用 --swiglu 时约为 8/3")},
	{"--num-attention-heads", t("the number of attention heads; a multiple of TP", "注意力头数；须为 TP 的倍数")},
	{"--group-query-attention", t("lets several query heads share a key and value head; see --num-query-groups", "让多个 query 头共享一组 key/value 头；见 --num-query-groups")},
	{"--num-query-groups", t("the number of key and value heads with --group-query-attention", "使用 --group-query-attention 时的 key/value 头数")},
	{"--kv-channels", t("the width of one head; hidden / heads unless given", "每个头的宽度；不给时为 hidden / 头数")},
	{"--multi-latent-attention", t("DeepSeek's latent attention: keys and values are kept in a small projection", "DeepSeek 的潜变量注意力：key/value 保存在低维投影中")},
	{"--position-embedding-type", t("how positions are told: learned_absolute (the default), rope, yarn, mrope, relative or none", "位置编码方式：learned_absolute（默认）、rope、yarn、mrope、relative 或 none")},
	{"--swiglu", t("uses the gated SiLU activation in the feed-forward layer", "前馈层使用带门控的 SiLU 激活")},
	{"--normalization", t("LayerNorm or RMSNorm", "LayerNorm 或 RMSNorm")},
	{"--disable-bias-linear", t("leaves the biases of the linear layers out, as Llama does", "去掉线性层的偏置，如 Llama")},
	{"--untie-embeddings-and-output-weights", t("gives the output layer weights of its own", "输出层使用独立权重")},
	{"--attention-backend", t("which attention kernel runs: flash, fused, unfused, local or auto", "注意力内核：flash、fused、unfused、local 或 auto")},
	{"--transformer-impl", t("which layers are used: transformer_engine (the default), local or inference_optimized", "层的实现：transformer_engine（默认）、local 或 inference_optimized")},
	{"--bf16", t("trains in bfloat16, with gradients summed in fp32 unless told otherwise", "以 bfloat16 训练，梯度默认以 fp32 累加")},
	{"--fp16", t("trains in float16 with loss scaling", "以 float16 训练并使用损失缩放")},
	{"--fp8-format", t("runs the matrix products in 8 bits: e4m3 or hybrid", "以 8 位进行矩阵乘：e4m3 或 hybrid")},
	{"--fp8-recipe", t("how fp8 scales are chosen: delayed (the default), tensorwise, blockwise, mxfp8 or custom", "fp8 缩放方式：delayed（默认）、tensorwise、blockwise、mxfp8 或 custom")},
	{"--fp8-param-gather", t("keeps and gathers parameters in fp8: half the traffic and memory", "以 fp8 保存并收集参数：通信与显存减半")},
	{"--fp4-format", t("runs the matrix products in 4 bits, on Blackwell", "以 4 位进行矩阵乘，需要 Blackwell")},
	{"--use-distributed-optimizer", t("spreads the optimizer's state over the data-parallel ranks: 12 bytes a weight become 12 / DP", "把优化器状态分散到数据并行的各 rank：每参数 12 字节变为 12 / DP")},
	{"--overlap-grad-reduce", t("reduces gradients while the backward pass is still running", "反向尚未结束时就归约梯度")},
	{"--overlap-param-gather", t("gathers parameters while the forward pass is already running; needs the distributed optimizer and --overlap-grad-reduce", "前向进行时收集参数；需要分布式优化器与 --overlap-grad-reduce")},
	{"--overlap-param-gather-with-optimizer-step", t("gathers parameters during the optimizer step; only with virtual stages and --ckpt-format torch", "在优化器步进时收集参数；只能与虚拟流水级和 --ckpt-format torch 同用")},
	{"--num-distributed-optimizer-instances", t("keeps this many copies of the sharded optimizer, to shorten its collectives", "把切分的优化器保留这么多份，以缩短其集合通信")},
	{"--use-torch-fsdp2", t("PyTorch's fully sharded data parallelism; no PP, no EP, and CUDA_DEVICE_MAX_CONNECTIONS must not be 1", "PyTorch 的全切分数据并行；不支持 PP、EP，且 CUDA_DEVICE_MAX_CONNECTIONS 不能为 1")},
	{"--use-megatron-fsdp", t("Megatron's own fully sharded data parallelism; needs --ckpt-format fsdp_dtensor, and CUDA_DEVICE_MAX_CONNECTIONS must not be 1", "Megatron 自己的全切分数据并行；需要 --ckpt-format fsdp_dtensor，且 CUDA_DEVICE_MAX_CONNECTIONS 不能为 1")},
	{"--data-parallel-sharding-strategy", t("what Megatron-FSDP shards: no_shard, optim, optim_grads or optim_grads_params", "Megatron-FSDP 切分什么：no_shard、optim、optim_grads 或 optim_grads_params")},
	{"--use-precision-aware-optimizer", t("lets the optimizer keep its states in narrower types", "允许优化器以更窄的类型保存状态")},
	{"--optimizer-cpu-offload", t("keeps the optimizer on the host", "把优化器放到主机内存")},
	{"--optimizer", t("adam (the default), sgd, or an emerging one: muon, lion, soap", "adam（默认）、sgd，或新式的 muon、lion、soap")},
	{"--lr", t("the learning rate at its peak; it has no default", "学习率峰值；没有默认值")},
	{"--min-lr", t("what the learning rate decays to", "学习率衰减到的最小值")},
	{"--lr-warmup-iters", t("iterations in which the learning rate rises; fewer than the decay", "学习率上升的迭代数；必须少于衰减长度")},
	{"--lr-decay-iters", t("iterations over which the learning rate decays; --train-iters unless given", "学习率衰减的迭代数；不给时等于 --train-iters")},
	{"--lr-decay-style", t("how the learning rate falls: linear (the default), cosine, constant, inverse-square-root or WSD", "学习率的衰减方式：linear（默认）、cosine、constant、inverse-square-root 或 WSD")},
	{"--train-iters", t("the number of optimizer steps", "优化器步数")},
	{"--train-samples", t("the number of samples to train on, instead of --train-iters", "训练样本总数，用来代替 --train-iters")},
	{"--clip-grad", t("clips the norm of the gradients to this value", "把梯度范数裁剪到该值")},
	{"--weight-decay", t("the L2 penalty of the optimizer", "优化器的权重衰减")},
	{"--recompute-activations", t("short for --recompute-granularity selective", "即 --recompute-granularity selective")},
	{"--recompute-granularity", t("computes activations again instead of keeping them: selective (chosen modules) or full (whole layers, a third more work)", "以重算代替保存激活：selective（选定模块）或 full（整层，计算量多三分之一）")},
	{"--recompute-method", t("with full recompute: uniform (a checkpoint every N layers) or block (the first N layers of each stage)", "完全重计算时：uniform（每 N 层一个检查点）或 block（每级的前 N 层）")},
	{"--recompute-num-layers", t("the N of --recompute-method", "--recompute-method 的 N")},
	{"--recompute-modules", t("what selective recompute computes again; core_attn unless given", "选择性重计算的模块；默认为 core_attn")},
	{"--cpu-offloading-num-layers", t("moves the activations of this many layers to the host; no PP, no recompute", "把这么多层的激活搬到主机；不能与 PP、重计算同用")},
	{"--fine-grained-activation-offloading", t("moves the activations of chosen modules to the host; see --offload-modules", "把选定模块的激活搬到主机；见 --offload-modules")},
	{"--num-experts", t("experts of a MoE layer; 0 means a dense model", "MoE 层的专家数；0 表示稠密模型")},
	{"--moe-router-topk", t("how many experts a token goes to", "每个 token 送往多少个专家")},
	{"--moe-grouped-gemm", t("computes all local experts in one kernel", "用一个内核计算本地全部专家")},
	{"--moe-token-dispatcher-type", t("how tokens travel to their experts: allgather (the default), alltoall or flex (DeepEP, HybridEP)", "token 如何送往专家：allgather（默认）、alltoall 或 flex（DeepEP、HybridEP）")},
	{"--moe-layer-freq", t("which layers have experts: every N-th, or a list such as ([0]*3+[1]*58)", "哪些层是专家层：每 N 层一个，或形如 ([0]*3+[1]*58) 的列表")},
	{"--moe-shared-expert-intermediate-size", t("the width of the expert that every token goes to", "所有 token 都会经过的共享专家的宽度")},
	{"--overlap-moe-expert-parallel-comm", t("hides the experts' all-to-all behind another microbatch; wants CUDA_DEVICE_MAX_CONNECTIONS=32", "把专家 all-to-all 藏在另一个微批之后；建议 CUDA_DEVICE_MAX_CONNECTIONS=32")},
	{"--tp-comm-overlap", t("overlaps the tensor-parallel collectives with the matrix products; needs --sequence-parallel", "让张量并行的集合通信与矩阵乘重叠；需要 --sequence-parallel")},
	{"--save", t("where checkpoints are written; needs --save-interval", "检查点写到哪里；需要 --save-interval")},
	{"--save-interval", t("iterations between two checkpoints", "两次检查点之间的迭代数")},
	{"--load", t("where a checkpoint is read from; where there is none, training starts anew", "从哪里读取检查点；没有时从头训练")},
	{"--ckpt-format", t("torch_dist (the default, can be read under another layout), torch, torch_dcp or fsdp_dtensor", "torch_dist（默认，可在其他布局下读取）、torch、torch_dcp 或 fsdp_dtensor")},
	{"--async-save", t("writes checkpoints beside training; dropped without --use-persistent-ckpt-worker", "边训练边写检查点；没有 --use-persistent-ckpt-worker 时会被丢弃")},
	{"--non-persistent-ckpt-type", t("checkpoints that are overwritten: global, or local to the node", "会被覆盖的检查点：global，或节点本地的 local")},
	{"--finetune", t("takes the weights of a checkpoint and starts at iteration 0", "只取检查点的权重，从第 0 次迭代开始")},
	{"--data-path", t("prefixes of .bin/.idx pairs, with a weight before each where there are several", ".bin/.idx 文件对的前缀；多个时每个前面写权重")},
	{"--mock-data", t("trains on made-up tokens: for trying a layout", "用伪造 token 训练：用于试布局")},
	{"--split", t("the shares of training, validation and test data, such as 949,50,1", "训练、验证、测试数据的比例，例如 949,50,1")},
	{"--tokenizer-type", t("which tokenizer is used", "使用哪种分词器")},
	{"--exit-duration-in-mins", t("ends training with a checkpoint after this many minutes: below the job's time limit", "运行这么多分钟后保存检查点并退出：应小于作业时限")},
	{"--exit-signal-handler", t("saves a checkpoint and ends when the exit signal comes", "收到退出信号时保存检查点并结束")},
	{"--distributed-timeout-minutes", t("how long a collective may take before the job is ended", "集合通信超过多久就结束作业")},
	{"--log-interval", t("iterations between two log lines", "两行日志之间的迭代数")},
	{"--eval-interval", t("iterations between two evaluations", "两次评估之间的迭代数")},
	{"--cuda-graph-impl", t("records kernels as CUDA graphs: none, local, transformer_engine or full_iteration", "把内核录制成 CUDA graph：none、local、transformer_engine 或 full_iteration")},
	{"--deterministic-mode", t("chooses kernels that give the same bits twice; slower", "选用可逐位复现的内核；较慢")},
	{"--use-mcore-models", t("has no effect: these models are the default", "不起作用：已是默认模型")},
	{"--use-dist-ckpt", t("has no effect: see --ckpt-format", "不起作用：见 --ckpt-format")},
	{"--seed", t("the random seed; must be above 0", "随机种子；必须大于 0")},
}
