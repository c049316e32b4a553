package lint

import (
	"slices"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
)

// formerFlags are the flags of Megatron-LM that were dropped before the oldest release of the flag table, by
// the last release that had them.
var formerFlags = []struct{ release, flags string }{
	{"1.0", "--min-scale"},
	{"2.0", "--faiss-use-gpu --fp32-allreduce --no-scaled-masked-softmax-fusion --report-topk-accuracies --scaled-upper-triang-masked-softmax-fusion"},
	{"2.5", "--checkpoint-num-layers --use-contiguous-buffers-in-ddp"},
	{
		"2.6",
		"--activations-checkpoint-method --activations-checkpoint-num-layers --distribute-checkpointed-activations " +
			"--img-dim --override-lr-scheduler --use-checkpoint-lr-scheduler",
	},
	{
		"23.06",
		"--DDP-impl --data-impl --embedding-weights-in-fp32 --fp8-e4m3 --fp8-hybrid " +
			"--layernorm-epsilon --mmap-warmup --no-contiguous-buffers-in-local-ddp --no-query-key-layer-scaling --overlap-p2p-communication",
	},
	{"core 0.5", "--retro-return-doc-ids --retro-workdir"},
	{"core 0.6", "--moe-token-dropping"},
	{"core 0.7", "--enable-one-logger --one-logger-entity"},
	{"core 0.8", "--delay-param-gather --log-batch-size-to-tensorboard --no-delay-grad-reduce --no-log-learnig-rate-to-tensorboard"},
	{"core 0.10", "--standalone-embedding-stage --renormalize-blend-weights"},
	{"core 0.12", "--s3-cache-path"},
	{
		"core 0.13",
		"--encoder-pipeline-model-parallel-size --encoder-tensor-model-parallel-size " +
			"--keep-fp8-transpose-cache-when-using-custom-fsdp --pipeline-model-parallel-split-rank --use-custom-fsdp",
	},
	{"core 0.14", "--inference-dynamic-batching-chunk-size --load-model-opt-format"},
}

// lastWith returns the last release that had a flag of formerFlags; empty for any other flag.
func lastWith(flag string) string {
	for _, f := range formerFlags {
		if slices.Contains(strings.Fields(f.flags), flag) {
			return f.release
		}
	}
	return ""
}

// old reports whether a flag shows that the program is older than the flag table. The
// rules on flags that newer releases replaced do not hold for it.
func (t *megatronStart) old() bool {
	for _, f := range t.flags {
		if lastWith(f.name) != "" {
			return true
		}
	}
	return false
}

// droppedFlag says that only older releases have a flag.
var droppedFlag = lang.Text{
	EN: "Megatron-LM had this flag up to release %s: the parser of a newer copy exits",
	ZH: "Megatron-LM 到 %s 版为止有这个参数：更新的代码会在解析时退出",
}

// addedValue says that no release has a value, of a program with flags of its own.
var addedValue = lang.Text{
	EN: "no release of Megatron-LM has this value: unless your copy adds it, as it adds flags, the parser exits",
	ZH: "Megatron-LM 各版本都没有这个取值：除非您的代码像增加参数那样增加了它，否则解析器会直接退出",
}

// addsFlags reports whether the program has flags that no release has, and so may accept
// other values, too.
func (t *megatronStart) addsFlags() bool {
	const several = 3
	n := 0
	for _, f := range t.flags {
		if !f.ok && strings.HasPrefix(f.name, "--") && lastWith(f.name) == "" {
			n++
		}
	}
	return n >= several
}
