package rules

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/knowledge/megatron"
)

var update = flag.Bool("update", false, "rewrite the files under testdata")

const carriedFile = "testdata/conformance.jsonl"

// A carried case is a launch whose verdict follows from one rule: the edit Because
// either breaks Rule or just does not.
type carried struct {
	ID      string            `json:"id"`
	Entry   string            `json:"entry"`
	Argv    []string          `json:"argv"`
	World   int               `json:"world_size"`
	Arch    int               `json:"arch"`
	Env     map[string]string `json:"env,omitempty"`
	OK      bool              `json:"ok"`
	Rule    string            `json:"rule"`
	Because string            `json:"because"`
}

// bases are launches that break no rule. Each is a text with flags, NAME=value for
// the environment, and @entry, @world and @arch for the other fields.
var bases = map[string]string{
	"dense": `@world=16 CUDA_DEVICE_MAX_CONNECTIONS=1 --num-layers 24 --hidden-size 2560 --num-attention-heads 32 --seq-length 2048
		--max-position-embeddings 2048 --micro-batch-size 2 --global-batch-size 64 --train-iters 1000 --lr 1e-4 --min-lr 1e-5 --lr-warmup-iters 100
		--bf16 --tensor-model-parallel-size 2 --pipeline-model-parallel-size 2 --mock-data`,
	"llama": `@world=32 CUDA_DEVICE_MAX_CONNECTIONS=1 --num-layers 32 --hidden-size 4096 --num-attention-heads 32 --group-query-attention --num-query-groups 8
		--ffn-hidden-size 14336 --swiglu --normalization RMSNorm --disable-bias-linear --position-embedding-type rope --seq-length 8192 --max-position-embeddings 8192
		--micro-batch-size 1 --global-batch-size 128 --train-iters 5000 --lr 3e-4 --min-lr 3e-5 --lr-warmup-iters 200 --bf16 --untie-embeddings-and-output-weights
		--tensor-model-parallel-size 4 --context-parallel-size 2 --sequence-parallel --use-distributed-optimizer --overlap-grad-reduce --overlap-param-gather --data-path d`,
	"deep": `@world=64 CUDA_DEVICE_MAX_CONNECTIONS=1 --num-layers 96 --hidden-size 12288 --num-attention-heads 96 --seq-length 2048 --max-position-embeddings 2048
		--micro-batch-size 1 --global-batch-size 32 --train-samples 100000 --lr 6e-5 --min-lr 6e-6 --lr-decay-samples 90000 --lr-warmup-samples 1000 --fp16
		--tensor-model-parallel-size 8 --pipeline-model-parallel-size 8 --num-virtual-stages-per-pipeline-rank 4 --sequence-parallel --mock-data --attention-dropout 0.0 --hidden-dropout 0.0`,
	"moe": `@world=16 CUDA_DEVICE_MAX_CONNECTIONS=1 --num-layers 32 --hidden-size 4096 --num-attention-heads 32 --group-query-attention --num-query-groups 8
		--ffn-hidden-size 14336 --swiglu --disable-bias-linear --position-embedding-type rope --seq-length 4096 --max-position-embeddings 32768
		--micro-batch-size 1 --global-batch-size 256 --train-iters 500 --lr 1e-4 --min-lr 1e-5 --bf16 --num-experts 8 --moe-router-topk 2 --moe-grouped-gemm
		--moe-token-dispatcher-type alltoall --tensor-model-parallel-size 2 --expert-model-parallel-size 4 --expert-tensor-parallel-size 1 --sequence-parallel --use-distributed-optimizer --mock-data`,
	"latent": `@world=32 @arch=10 --num-layers 28 --hidden-size 2048 --num-attention-heads 16 --multi-latent-attention --q-lora-rank 512 --kv-lora-rank 512
		--ffn-hidden-size 10944 --swiglu --disable-bias-linear --position-embedding-type rope --seq-length 4096 --max-position-embeddings 4096
		--micro-batch-size 1 --global-batch-size 512 --train-iters 2000 --lr 2e-4 --min-lr 2e-5 --bf16 --num-experts 64 --moe-router-topk 6 --moe-ffn-hidden-size 1408
		--moe-shared-expert-intermediate-size 2816 --moe-layer-freq ([0]+[1]*27) --moe-token-dispatcher-type alltoall --expert-model-parallel-size 8 --use-distributed-optimizer --mock-data`,
	"hybrid": `@entry=hybrid @world=8 CUDA_DEVICE_MAX_CONNECTIONS=1 --hybrid-layer-pattern M-M-M*-M-M-M*- --hidden-size 1024 --num-attention-heads 16 --seq-length 4096
		--max-position-embeddings 4096 --micro-batch-size 2 --global-batch-size 32 --train-iters 100 --lr 1e-3 --bf16 --tensor-model-parallel-size 2 --mock-data
		--spec megatron.core.models.mamba.mamba_layer_specs mamba_stack_spec`,
	"t5": `@entry=t5 @world=8 --encoder-num-layers 12 --decoder-num-layers 12 --hidden-size 768 --num-attention-heads 12 --kv-channels 64 --ffn-hidden-size 3072
		--encoder-seq-length 512 --decoder-seq-length 128 --max-position-embeddings 512 --micro-batch-size 8 --global-batch-size 128 --train-iters 1000 --lr 1e-4 --bf16 --mock-data`,
	"bert": `@entry=bert @world=8 --num-layers 24 --hidden-size 1024 --num-attention-heads 16 --seq-length 512 --max-position-embeddings 512
		--micro-batch-size 4 --global-batch-size 32 --train-iters 1000 --lr 1e-4 --min-lr 1e-5 --lr-warmup-fraction 0.01 --bf16 --mock-data`,
	"fsdp2": `@world=16 --num-layers 32 --hidden-size 4096 --num-attention-heads 32 --seq-length 4096 --max-position-embeddings 4096 --micro-batch-size 1 --global-batch-size 64
		--train-iters 300 --lr 1e-4 --bf16 --use-torch-fsdp2 --no-gradient-accumulation-fusion --untie-embeddings-and-output-weights --swiglu --disable-bias-linear --mock-data`,
	"mfsdp": `@world=16 --num-layers 32 --hidden-size 4096 --num-attention-heads 32 --seq-length 4096 --max-position-embeddings 4096 --micro-batch-size 1 --global-batch-size 64
		--train-iters 300 --lr 1e-4 --bf16 --use-megatron-fsdp --data-parallel-sharding-strategy optim_grads_params --ckpt-format fsdp_dtensor --swiglu --disable-bias-linear --mock-data`,
}

// A change is a pair of edits of a base: one breaks a rule, a similar one does not.
// In an edit, !--flag removes a flag and !NAME a variable.
type change struct {
	rule, bases, breaks, keeps string
}

const (
	everyGPT   = "dense llama deep moe latent fsdp2 mfsdp"
	everyModel = "dense llama deep moe latent hybrid t5 bert fsdp2 mfsdp"
	byIters    = "dense llama moe latent hybrid t5 bert fsdp2 mfsdp"
	plain      = "dense llama moe latent hybrid t5 bert"
)

var changes = []change{
	{"world-multiple-of-model-size", "dense llama deep moe", "@world=12 --pipeline-model-parallel-size 8", "--seed 7"},
	{"world-multiple-of-model-size", "latent t5 bert fsdp2", "--tensor-model-parallel-size 3", "--seed 8"},
	{"world-multiple-of-expert-size", "dense bert", "@world=8 --expert-tensor-parallel-size 16 --num-experts 16 --disable-bias-linear --global-batch-size 64", "--expert-tensor-parallel-size 1"},
	{"sizes-positive", everyModel, "--context-parallel-size 0", "--context-parallel-size 1"},
	{"heads-multiple-of-tp", "dense llama", "--num-attention-heads 31 --kv-channels 128", "--num-attention-heads 36 --kv-channels 128"},
	{"query-groups-fit-tp", "llama moe", "--num-query-groups 6 --tensor-model-parallel-size 4", "--num-query-groups 2"},
	{"hidden-multiple-of-heads", "dense deep bert fsdp2 mfsdp hybrid", "--hidden-size 2500", "--hidden-size 2500 --kv-channels 128"},
	{"max-position-covers-seq", everyModel, "--max-position-embeddings 100", "--max-position-embeddings 65536"},
	{"seq-length-for-cp", "llama dense", "--seq-length 2046 --context-parallel-size 2 --global-batch-size 128", "--seq-length 2048 --context-parallel-size 2 --global-batch-size 128"},
	{"seq-length-given", "dense llama deep moe latent hybrid bert", "!--seq-length", "!--seq-length --encoder-seq-length 512"},
	{"seq-length-given-once", "dense bert", "--encoder-seq-length 512", "--decoder-seq-length 128"},
	{"hidden-size-given", everyModel, "!--hidden-size", "--hidden-size 6144 --kv-channels 128"},
	{"attention-heads-given", everyModel, "!--num-attention-heads", "--num-attention-heads 64 --kv-channels 64"},
	{"max-position-given", everyModel, "!--max-position-embeddings", "--max-position-embeddings 16384"},
	{"layers-given", "dense llama moe bert fsdp2 mfsdp", "!--num-layers", "!--num-layers --encoder-num-layers 32"},
	{"layers-given-once", "dense bert t5", "--encoder-num-layers 24 --num-layers 24", "--clip-grad 1.0"},
	{"micro-batch-given", everyModel, "!--micro-batch-size", "--micro-batch-size 1"},
	{"micro-batch-positive", everyModel, "--micro-batch-size 0", "--micro-batch-size 1"},
	{"eval-batch-divisible", "dense llama moe latent fsdp2 mfsdp", "--global-batch-size 131", "--eval-iters 5"},
	{"global-batch-divisible", "dense moe bert", "--global-batch-size 97 --eval-global-batch-size 128 --eval-micro-batch-size 1", "--eval-global-batch-size 128 --eval-micro-batch-size 1"},
	{"global-batch-positive", everyModel, "--global-batch-size 0", "--global-batch-size 8192"},
	{"at-least-one-microbatch", "dense bert t5", "--global-batch-size 2 --decrease-batch-size-if-needed --eval-global-batch-size 1024", "--decrease-batch-size-if-needed"},
	{"step-schedule-no-global-batch", plain, "--step-batch-size-schedule 0:512", "!--global-batch-size --step-batch-size-schedule 0:512"},
	{"schedule-starts-at-zero", "dense llama bert", "!--global-batch-size --step-batch-size-schedule 1B:128,2B:256", "!--global-batch-size --step-batch-size-schedule 0:128,2B:256"},
	{"schedule-rises", "dense llama bert", "!--global-batch-size --step-batch-size-schedule 0:128,100:256", "!--global-batch-size --step-batch-size-schedule 0:128,1M:256"},
	{"schedule-entry-colon", "dense t5", "!--global-batch-size --step-batch-size-schedule 512", "!--global-batch-size --step-batch-size-schedule 0:512"},
	{"iters-no-train-samples", byIters, "--train-samples 1000", "--eval-interval 50"},
	{"iters-no-decay-samples", byIters, "--lr-decay-samples 1000", "--lr-decay-iters 100000"},
	{"iters-no-warmup-samples", byIters, "--lr-warmup-samples 10", "--lr-decay-iters 90000"},
	{"samples-no-decay-iters", "deep", "--lr-decay-iters 1000", "--lr-decay-samples 80000"},
	{"samples-no-warmup-iters", "deep", "--lr-warmup-iters 10", "--lr-warmup-samples 10"},
	{"warmup-fraction-or-iters", "dense llama", "--lr-warmup-fraction 0.1", "!--lr-warmup-iters --lr-warmup-fraction 0.1"},
	{"warmup-shorter-than-decay", "dense llama moe latent hybrid", "--lr-warmup-iters 90000", "--lr-warmup-iters 90 --lr-decay-iters 90000"},
	{"warmup-init-below-lr", byIters, "--lr-warmup-init 1", "--lr-warmup-init 0"},
	{"min-lr-below-lr", everyModel, "--min-lr 5", "--min-lr 0"},
	{"lr-given", byIters, "!--lr", "--lr 0.01"},
	{"training-length-given", byIters, "!--train-iters", "!--train-iters --train-samples 100000 !--lr-warmup-iters"},
	{"wsd-needs-decay", byIters, "--lr-decay-style WSD", "--lr-decay-style WSD --lr-wsd-decay-iters 10"},
	{"weight-decay-end-given", "dense llama bert", "--weight-decay-incr-style cosine --start-weight-decay 0.01", "--weight-decay-incr-style cosine --start-weight-decay 0.01 --end-weight-decay 0.1"},
	{"weight-decay-rises", "dense llama bert", "--weight-decay-incr-style linear --start-weight-decay 0.2 --end-weight-decay 0.1", "--weight-decay-incr-style linear --start-weight-decay 0.1 --end-weight-decay 0.2"},
	{"one-data-source", "dense deep moe bert t5", "--data-path d", "!--mock-data --data-path d"},
	{"batch-size-gone", everyModel, "--batch-size 4", "--eval-iters 1"},
	{"connections-one", "dense llama deep moe hybrid", "!CUDA_DEVICE_MAX_CONNECTIONS", "!CUDA_DEVICE_MAX_CONNECTIONS @arch=10"},
	{"connections-one", "dense llama deep moe hybrid", "CUDA_DEVICE_MAX_CONNECTIONS=8 @arch=8", "CUDA_DEVICE_MAX_CONNECTIONS=1 @arch=8"},
	{"connections-torch-fsdp2", "fsdp2", "CUDA_DEVICE_MAX_CONNECTIONS=1", "CUDA_DEVICE_MAX_CONNECTIONS=8"},
	{"connections-torch-fsdp2", "fsdp2", "CUDA_DEVICE_MAX_CONNECTIONS=1 @arch=10", "@arch=10"},
	{"connections-megatron-fsdp", "mfsdp", "CUDA_DEVICE_MAX_CONNECTIONS=1", "CUDA_DEVICE_MAX_CONNECTIONS=32"},
	{"connections-megatron-fsdp", "mfsdp", "CUDA_DEVICE_MAX_CONNECTIONS=1 @arch=12", "@arch=12"},
	{"torch-fsdp2-no-pp", "fsdp2", "--pipeline-model-parallel-size 2", "--pipeline-model-parallel-size 1"},
	{"torch-fsdp2-no-distributed-optimizer", "fsdp2", "--use-distributed-optimizer", "--clip-grad 0.5"},
	{"torch-fsdp2-no-gradient-fusion", "fsdp2", "!--no-gradient-accumulation-fusion", "--init-method-std 0.01"},
	{"torch-fsdp2-untied", "fsdp2", "!--untie-embeddings-and-output-weights", "--log-interval 10"},
	{"torch-fsdp2-ckpt-format", "fsdp2", "--ckpt-format torch", "--ckpt-format torch_dcp"},
	{"torch-fsdp2-no-fp16", "fsdp2", "--fp16 !--bf16", "!--bf16"},
	{"megatron-fsdp-ckpt-format", "mfsdp", "--ckpt-format torch_dist", "--ckpt-format fsdp_dtensor --seed 3"},
	{"megatron-fsdp-optimizer", "mfsdp", "--optimizer muon", "--optimizer sgd"},
	{"megatron-fsdp-2-no-distributed-optimizer", "mfsdp", "--megatron-fsdp-version 2 --use-distributed-optimizer", "--megatron-fsdp-version 2"},
	{"meta-device-needs-sharding", "mfsdp", "--init-model-with-meta-device --data-parallel-sharding-strategy no_shard", "--init-model-with-meta-device"},
	{"manual-registration-needs-nccl-ub", "mfsdp", "--fsdp-manual-registration", "--fsdp-manual-registration --use-nccl-ub"},
	{"manual-registration-needs-fsdp", "dense bert", "--fsdp-manual-registration --use-nccl-ub", "--use-nccl-ub"},
	{"ckpt-fsdp-dtensor-needs-fsdp", plain, "--ckpt-format fsdp_dtensor", "--ckpt-format torch"},
	{"ckpt-torch-dcp-needs-fsdp2", plain, "--ckpt-format torch_dcp", "--ckpt-format torch_dist"},
	{"tp-overlap-needs-sequence-parallel", "dense bert hybrid", "--tp-comm-overlap", "--tp-comm-overlap --sequence-parallel --tensor-model-parallel-size 2 CUDA_DEVICE_MAX_CONNECTIONS=1"},
	{"moe-tp-needs-sequence-parallel", "moe", "!--sequence-parallel", "--tensor-model-parallel-size 1"},
	{"saved-activations-need-full", "dense", "--distribute-saved-activations", "--distribute-saved-activations --recompute-granularity full --recompute-method uniform --recompute-num-layers 1"},
	{"saved-activations-no-sequence-parallel", "llama deep", "--distribute-saved-activations --recompute-granularity full --recompute-method block --recompute-num-layers 1", "--recompute-granularity full --recompute-method block --recompute-num-layers 1"},
	{"saved-activations-need-tp", "bert t5 latent", "--distribute-saved-activations --recompute-granularity full --recompute-method block --recompute-num-layers 1", "--recompute-granularity full --recompute-method block --recompute-num-layers 1"},
	{"deterministic-options", everyGPT, "--deterministic-mode --cross-entropy-loss-fusion", "--deterministic-mode"},
	{"deterministic-nccl-algo", "dense llama bert", "--deterministic-mode NCCL_ALGO=Tree", "--deterministic-mode NCCL_ALGO=Ring,^NVLS"},
	{"deterministic-te-env", "dense bert", "--deterministic-mode NVTE_ALLOW_NONDETERMINISTIC_ALGO=1", "--deterministic-mode NVTE_ALLOW_NONDETERMINISTIC_ALGO=0"},
	{"deterministic-cublas-env", "dense bert", "--deterministic-mode CUBLAS_WORKSPACE_CONFIG=:8:8", "--deterministic-mode CUBLAS_WORKSPACE_CONFIG=:16:8"},
	{"layers-multiple-of-pp", "dense", "--num-layers 25", "--num-layers 26"},
	{"virtual-layers-divide-stage", "dense", "--num-layers-per-virtual-pipeline-stage 5", "--num-layers-per-virtual-pipeline-stage 3"},
	{"virtual-layers-multiple-of-pp", "dense", "--num-layers-per-virtual-pipeline-stage 1 --num-layers 23", "--num-layers-per-virtual-pipeline-stage 1 --num-layers 22"},
	{"virtual-stages-need-pp-2", "llama bert fsdp2", "--num-virtual-stages-per-pipeline-rank 2", "--num-virtual-stages-per-pipeline-rank 1"},
	{"virtual-stages-need-pp-3", "dense", "--num-virtual-stages-per-pipeline-rank 2 --no-overlap-p2p-communication", "--no-overlap-p2p-communication"},
	{"virtual-stages-divide-rank", "dense", "--num-virtual-stages-per-pipeline-rank 5", "--num-virtual-stages-per-pipeline-rank 4"},
	{"virtual-stages-divide-rank", "deep", "--num-virtual-stages-per-pipeline-rank 5", "--num-virtual-stages-per-pipeline-rank 6"},
	{"pipeline-layers-build", "deep", "--num-layers 90", "--num-layers 64"},
	{"one-layout-flag", "dense", "--num-virtual-stages-per-pipeline-rank 2 --num-layers-per-virtual-pipeline-stage 6", "--num-virtual-stages-per-pipeline-rank 2"},
	{"uneven-needs-virtual-stages", "dense", "--decoder-first-pipeline-num-layers 8 --num-layers-per-virtual-pipeline-stage 4", "--decoder-first-pipeline-num-layers 8"},
	{"uneven-uses-up-layers", "dense", "--decoder-first-pipeline-num-layers 8 --decoder-last-pipeline-num-layers 8", "--decoder-first-pipeline-num-layers 8 --decoder-last-pipeline-num-layers 16"},
	{"first-stage-positive", "dense", "--decoder-first-pipeline-num-layers 0", "--decoder-first-pipeline-num-layers 1"},
	{"last-stage-positive", "dense", "--decoder-last-pipeline-num-layers 0", "--decoder-last-pipeline-num-layers 1"},
	{"middle-layers-multiple", "dense", "--pipeline-model-parallel-size 4 --decoder-first-pipeline-num-layers 5", "--pipeline-model-parallel-size 4 --decoder-first-pipeline-num-layers 6"},
	{"uneven-or-account", "dense", "--decoder-first-pipeline-num-layers 11 --account-for-embedding-in-pipeline-split", "--decoder-first-pipeline-num-layers 11"},
	{"layout-stages-multiple-of-pp", "dense", "--pipeline-model-parallel-layout Et*8|t*8|t*8L", "--pipeline-model-parallel-layout Et*12|t*12L"},
	{"layout-starts-with-embedding", "dense", "--pipeline-model-parallel-layout t*12|t*12L", "--pipeline-model-parallel-layout E|t*8|t*8|t*8L"},
	{"layout-ends-with-loss", "dense", "--pipeline-model-parallel-layout Et*12|t*12", "--pipeline-model-parallel-layout Et*11|t*13L"},
	{"layout-layer-count", "dense", "--pipeline-model-parallel-layout Et*12|t*11L", "--pipeline-model-parallel-layout (Et*4)*1|t*8|t*6|t*6L"},
	{"layout-alone", "dense", "--pipeline-model-parallel-layout Et*12|t*12L --decoder-first-pipeline-num-layers 12", "--pipeline-model-parallel-layout Et*10|t*14L"},
	{"microbatches-fill-last-group", "deep", "--global-batch-size 36", "--global-batch-size 40"},
	{"microbatches-fill-group", "deep", "--global-batch-size 4", "--global-batch-size 8"},
	{"defer-embedding-needs-pp", "llama bert", "--defer-embedding-wgrad-compute", "--cpu-offloading-num-layers 1"},
	{"warmup-flush-overlap-needs-interleaving", "dense llama bert", "--overlap-p2p-communication-warmup-flush", "--seed 21"},
	{"hybrid-no-virtual-stages", "hybrid", "--num-virtual-stages-per-pipeline-rank 1", "--is-hybrid-model"},
	{"hybrid-segments-multiple-of-pp", "hybrid", "--hybrid-layer-pattern M-M-|M-M*|M-M- --pipeline-model-parallel-size 2", "--hybrid-layer-pattern M-M-|M-M* --pipeline-model-parallel-size 2"},
	{"hybrid-layers-multiple-of-pp", "hybrid", "--hybrid-layer-pattern M-M-M --pipeline-model-parallel-size 2", "--hybrid-layer-pattern M-M-M* --pipeline-model-parallel-size 2"},
	{"hybrid-pipes-no-first-count", "hybrid", "--hybrid-layer-pattern M-M-|M-M* --pipeline-model-parallel-size 2 --decoder-first-pipeline-num-layers 4", "--decoder-first-pipeline-num-layers 14"},
	{"hybrid-pattern-letters", "hybrid", "--hybrid-layer-pattern M-X-", "--hybrid-layer-pattern M-M-"},
	{"mtp-position-type", "dense bert deep", "--mtp-num-layers 1", "--mtp-num-layers 1 --position-embedding-type rope"},
	{"ep-needs-experts", "dense llama bert", "--expert-model-parallel-size 2", "--expert-model-parallel-size 1"},
	{"experts-multiple-of-ep", "moe", "--num-experts 10", "--num-experts 16"},
	{"experts-multiple-of-ep", "latent", "--num-experts 60", "--num-experts 128"},
	{"moe-bias-needs-etp-1", "dense", "--num-experts 4 --sequence-parallel", "--num-experts 4 --sequence-parallel --expert-tensor-parallel-size 1"},
	{"topk-1-needs-pre-softmax", everyGPT, "--moe-router-topk 1", "--moe-router-topk 1 --moe-router-pre-softmax"},
	{"expert-bias-score-function", "moe latent", "--moe-router-enable-expert-bias", "--moe-router-enable-expert-bias --moe-router-score-function sigmoid"},
	{"group-topk-needs-groups", "moe latent", "--moe-router-group-topk 2", "--moe-router-group-topk 2 --moe-router-num-groups 4"},
	{"experts-multiple-of-groups", "moe latent", "--moe-router-group-topk 2 --moe-router-num-groups 3", "--moe-router-group-topk 1 --moe-router-num-groups 8"},
	{"group-topk-at-most-groups", "moe latent", "--moe-router-group-topk 5 --moe-router-num-groups 4", "--moe-router-group-topk 4 --moe-router-num-groups 4"},
	{"capacity-needs-aux-loss", "moe latent", "--moe-router-load-balancing-type sinkhorn --moe-expert-capacity-factor 1.0", "--moe-router-load-balancing-type none --moe-expert-capacity-factor 1.0"},
	{"padding-needs-capacity", "moe latent", "--moe-pad-expert-input-to-capacity", "--moe-pad-expert-input-to-capacity --moe-expert-capacity-factor 1.5"},
	{"aux-loss-per-balancing", "moe latent", "--moe-router-load-balancing-type aux_loss seq_aux_loss --moe-aux-loss-coeff 0.01", "--moe-router-load-balancing-type aux_loss seq_aux_loss --moe-aux-loss-coeff 0.01 0.02"},
	{"sinkhorn-no-aux-loss", "moe latent", "--moe-router-load-balancing-type sinkhorn --moe-aux-loss-coeff 0.01", "--moe-router-load-balancing-type sinkhorn"},
	{"deepep-needs-flex", "moe latent", "--moe-enable-deepep", "--moe-enable-deepep --moe-token-dispatcher-type flex"},
	{"deepep-no-padding", "moe latent", "--moe-token-dispatcher-type flex --moe-pad-expert-input-to-capacity --moe-expert-capacity-factor 1.0", "--moe-token-dispatcher-type flex --moe-expert-capacity-factor 1.0"},
	{"deepep-needs-several-ranks", "moe latent", "--moe-token-dispatcher-type flex --expert-model-parallel-size 1", "--moe-token-dispatcher-type flex"},
	{"shared-expert-overlap-dispatcher", "latent", "--moe-shared-expert-overlap --moe-token-dispatcher-type allgather", "--moe-shared-expert-overlap"},
	{"shared-expert-size-positive", "moe latent", "--moe-shared-expert-intermediate-size 0", "--moe-shared-expert-intermediate-size 512"},
	{"moe-pattern-length", "moe latent", "--moe-layer-freq [1]*5", "--moe-layer-freq 2"},
	{"moe-ffn-needs-experts", "dense llama", "--moe-ffn-hidden-size 1024", "--moe-ffn-hidden-size 1024 --moe-layer-freq 2"},
	{"grouped-gemm-no-fused-bias", "moe", "!--disable-bias-linear", "!--disable-bias-linear --no-bias-dropout-fusion"},
	{"router-padding-needs-quantization", "moe latent", "--moe-router-padding-for-quantization", "--moe-router-padding-for-quantization --fp8-format hybrid"},
	{"expert-overlap-needs-ep", "moe latent", "--overlap-moe-expert-parallel-comm --expert-model-parallel-size 1", "--overlap-moe-expert-parallel-comm"},
	{"expert-overlap-no-full-recompute", "moe latent", "--overlap-moe-expert-parallel-comm --recompute-granularity full --recompute-method uniform --recompute-num-layers 1", "--overlap-moe-expert-parallel-comm --recompute-granularity selective"},
	{"expert-overlap-dispatcher", "moe latent", "--overlap-moe-expert-parallel-comm --moe-token-dispatcher-type allgather", "--overlap-moe-expert-parallel-comm --moe-token-dispatcher-type flex"},
	{"delay-wgrad-needs-overlap", "moe latent dense", "--delay-wgrad-compute", "--recompute-granularity selective"},
	{"mla-no-gqa", "latent", "--group-query-attention", "--num-query-groups 4"},
	{"mla-no-rotary-interleaved", "latent", "--rotary-interleaved", "--no-rope-fusion"},
	{"latent-size-needs-experts", "dense llama", "--moe-latent-size 256", "--softmax-type vanilla"},
	{"bf16-or-fp16", "dense llama moe latent hybrid t5 bert mfsdp", "--fp16", "--fp16 !--bf16"},
	{"fp32-residual-needs-half", "dense llama bert", "--fp32-residual-connection !--bf16", "--fp32-residual-connection"},
	{"fp16-cross-entropy-needs-fp16", "dense bert", "--fp16-lm-cross-entropy", "--fp16-lm-cross-entropy --fp16 !--bf16"},
	{"fp8-gather-needs-sharding", "dense bert", "--fp8-format hybrid --fp8-param-gather", "--fp8-format hybrid --fp8-param-gather --use-distributed-optimizer"},
	{"fp8-gather-needs-fp8", "llama moe latent", "--fp8-param-gather", "--fp8-param-gather --fp8-format e4m3"},
	{"fp4-or-fp8", "dense llama", "--fp4-format e2m1 --fp8-format hybrid", "--fp4-format e2m1"},
	{"fp4-gather-needs-fp4", "dense llama", "--fp4-param-gather", "--fp4-param-gather --fp4-format e2m1"},
	{"delayed-no-bf16-layers", "dense llama bert", "--fp8-format hybrid --first-last-layers-bf16", "--fp8-format hybrid --first-last-layers-bf16 --fp8-recipe tensorwise"},
	{"main-grads-fp32", "dense llama bert", "--main-grads-dtype bf16", "--main-grads-dtype fp32"},
	{"exp-avg-fp32", "dense llama bert", "--exp-avg-dtype fp16", "--exp-avg-dtype fp16 --use-precision-aware-optimizer --use-distributed-optimizer"},
	{"precision-aware-needs-distributed", "dense bert t5", "--use-precision-aware-optimizer", "--use-precision-aware-optimizer --use-distributed-optimizer"},
	{"cpu-offload-needs-precision-aware", "llama moe", "--optimizer-cpu-offload", "--optimizer-cpu-offload --use-precision-aware-optimizer"},
	{"precision-aware-needs-adam", "llama moe", "--use-precision-aware-optimizer --optimizer sgd", "--optimizer sgd"},
	{"emerging-optimizer-no-fp16", "dense bert", "--optimizer muon --fp16 !--bf16", "--optimizer muon"},
	{"no-te-cross-entropy-fusion", "dense llama", "--cross-entropy-loss-fusion --cross-entropy-fusion-impl te", "--cross-entropy-loss-fusion"},
	{"buckets-by-number-or-size", "dense llama", "--ddp-num-buckets 4 --ddp-bucket-size 1000000", "--ddp-num-buckets 4"},
	{"full-needs-method", everyGPT, "--recompute-granularity full --recompute-num-layers 1", "--recompute-granularity full --recompute-num-layers 1 --recompute-method uniform"},
	{"full-needs-count", everyGPT, "--recompute-granularity full --recompute-method block", "--recompute-granularity full --recompute-method block --recompute-num-layers 2"},
	{"selective-no-method", "dense bert t5", "--recompute-activations --recompute-method uniform", "--recompute-activations"},
	{"selective-no-count", "dense bert t5", "--recompute-granularity selective --recompute-num-layers 1", "--recompute-granularity selective --recompute-modules mlp"},
	{"recompute-modules-known", "dense llama", "--recompute-granularity selective --recompute-modules attention", "--recompute-granularity selective --recompute-modules core_attn layernorm"},
	{"recompute-moe-act-needs-grouped-gemm", "latent", "--recompute-granularity selective --recompute-modules moe_act", "--recompute-granularity selective --recompute-modules moe_act --moe-grouped-gemm"},
	{"recompute-mla-needs-mla", "dense llama moe", "--recompute-granularity selective --recompute-modules mla_up_proj", "--recompute-granularity selective --recompute-modules mlp"},
	{"cpu-offload-layer-count", "llama bert", "--cpu-offloading-num-layers 99", "--cpu-offloading-num-layers 4"},
	{"cpu-offload-no-pp", "dense", "--cpu-offloading-num-layers 4", "--no-masked-softmax-fusion"},
	{"checkpoint-activations-gone", "dense bert", "--checkpoint-activations", "--recompute-activations"},
	{"graph-full-recompute", "dense", "--cuda-graph-impl local --recompute-granularity full --recompute-method uniform --recompute-num-layers 1", "--cuda-graph-impl local"},
	{"full-iteration-no-nan-check", "dense llama", "--cuda-graph-impl full_iteration", "--cuda-graph-impl full_iteration --no-check-for-nan-in-loss-and-grad"},
	{"graph-moe-needs-experts", "dense llama", "--cuda-graph-impl transformer_engine --cuda-graph-modules moe_router", "--cuda-graph-impl transformer_engine --cuda-graph-modules attn"},
	{"graph-preprocess-needs-router", "moe", "--cuda-graph-impl transformer_engine --cuda-graph-modules moe_preprocess", "--cuda-graph-impl local --cuda-graph-modules moe_preprocess"},
	{"one-graph-flag", "dense llama", "--enable-cuda-graph --cuda-graph-impl local", "--enable-cuda-graph"},
	{"te-graph-register", "dense", "--cuda-graph-impl transformer_engine PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True", "--cuda-graph-impl transformer_engine PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True NCCL_GRAPH_REGISTER=0"},
	{"save-interval-given", everyModel, "--save out", "--save out --save-interval 500"},
	{"save-interval-positive", "dense bert", "--save out --save-interval 0", "--save out --save-interval 1"},
	{"retain-interval-multiple", "dense bert", "--save out --save-interval 100 --save-retain-interval 250", "--save out --save-interval 100 --save-retain-interval 300"},
	{"memory-interval-multiple", "dense bert", "--log-memory-interval 150 --log-interval 100", "--log-memory-interval 200 --log-interval 100"},
	{"local-ckpt-needs-dir", "dense llama", "--non-persistent-ckpt-type local", "--non-persistent-ckpt-type local --non-persistent-local-ckpt-dir /tmp/c"},
	{"main-params-need-no-optim", "dense llama", "--load-main-params-from-ckpt", "--load-main-params-from-ckpt --no-load-optim"},
	{"override-iteration-no-finetune", "dense bert", "--override-ckpt-iteration 10 --finetune", "--override-ckpt-iteration 10"},
	{"verify-integrity-format", "dense bert", "--verify-integrity --ckpt-format torch", "--verify-integrity"},
	{"gather-overlap-needs-sharding", "dense bert t5", "--overlap-param-gather --overlap-grad-reduce", "--overlap-param-gather --overlap-grad-reduce --use-distributed-optimizer"},
	{"gather-overlap-needs-grad-overlap", "moe latent", "--overlap-param-gather", "--overlap-param-gather --overlap-grad-reduce"},
	{"step-overlap-no-dist-ckpt", "deep", "--use-distributed-optimizer --overlap-grad-reduce --overlap-param-gather --overlap-param-gather-with-optimizer-step", "--use-distributed-optimizer --overlap-grad-reduce --overlap-param-gather --overlap-param-gather-with-optimizer-step --ckpt-format torch"},
	{"squared-relu-no-swiglu", "llama fsdp2", "--squared-relu", "--squared-relu !--swiglu"},
	{"bias-fusion-activation", "dense bert", "--squared-relu", "--squared-relu --no-bias-gelu-fusion"},
	{"seed-positive", everyModel, "--seed 0", "--seed 1"},
	{"optimizer-instances-divide-dp", "llama dense", "--num-distributed-optimizer-instances 3", "--num-distributed-optimizer-instances 2"},
	{"weight-shards-at-least-tp", "llama deep", "--tensor-parallel-num-weight-shards 2", "--tensor-parallel-num-weight-shards 8 @world=128 --global-batch-size 256"},
	{"hierarchical-cp-product", "llama", "--hierarchical-context-parallel-sizes 2 2", "--hierarchical-context-parallel-sizes 2 1"},
	{"a2a-p2p-needs-hierarchy", "dense llama", "--cp-comm-type a2a+p2p", "--cp-comm-type a2a"},
	{"no-rope-divides-layers", "llama", "--no-rope-freq 5", "--no-rope-freq 4"},
	{"unknown-flag", everyModel, "--num-layer 4", "--log-throughput"},
	{"bad-value", everyModel, "--eval-interval ten", "--eval-interval 10"},
	{"bad-choice", everyModel, "--optimizer adamw", "--optimizer adam"},
	{"missing-value", everyModel, "--log-interval", "--log-interval=7"},
	{"value-for-switch", "dense bert", "--log-throughput=yes", "--log-throughput"},
	{"stray-value", "dense bert", "--log-throughput yes", "--log-params-norm"},
	{"hybrid-spec-given", "hybrid", "!--spec", "--spec module name"},
}

// A draft is a launch under construction.
type draft struct {
	flags [][]string
	env   map[string]string
	at    map[string]string
}

func newDraft(text string) *draft {
	d := &draft{env: map[string]string{}, at: map[string]string{"entry": "gpt", "world": "8", "arch": "9"}}
	d.edit(text)
	return d
}

func (d *draft) edit(text string) {
	words := strings.Fields(text)
	for i := 0; i < len(words); {
		w := words[i]
		i++
		switch {
		case strings.HasPrefix(w, "!--"):
			d.flags = slices.DeleteFunc(d.flags, func(f []string) bool { return f[0] == w[1:] })
		case strings.HasPrefix(w, "!"):
			delete(d.env, w[1:])
		case strings.HasPrefix(w, "@"):
			name, value, _ := strings.Cut(w[1:], "=")
			d.at[name] = value
		case strings.HasPrefix(w, "--"):
			f := []string{w}
			for i < len(words) && !strings.HasPrefix(words[i], "--") && !strings.HasPrefix(words[i], "!") && !strings.HasPrefix(words[i], "@") && !isEnv(words[i]) {
				f = append(f, words[i])
				i++
			}
			d.flags = slices.DeleteFunc(d.flags, func(old []string) bool { return old[0] == w })
			d.flags = append(d.flags, f)
		default:
			name, value, _ := strings.Cut(w, "=")
			d.env[name] = value
		}
	}
}

func isEnv(word string) bool {
	name, _, ok := strings.Cut(word, "=")
	return ok && name == strings.ToUpper(name) && len(name) > 3
}

func (d *draft) carried(id, rule string, ok bool, because string) carried {
	var argv []string
	for _, f := range d.flags {
		argv = append(argv, f...)
	}
	world, _ := strconv.Atoi(d.at["world"])
	arch, _ := strconv.Atoi(d.at["arch"])
	return carried{ID: id, Entry: d.at["entry"], Argv: argv, World: world, Arch: arch, Env: d.env, OK: ok, Rule: rule, Because: because}
}

// generate applies every change to each of its bases.
func generate() []carried {
	var cases []carried
	for _, c := range changes {
		for base := range strings.FieldsSeq(c.bases) {
			for _, half := range []struct {
				edit string
				ok   bool
			}{{c.breaks, false}, {c.keeps, true}} {
				d := newDraft(bases[base])
				d.edit(half.edit)
				id := fmt.Sprintf("%s/%s/%d", base, c.rule, len(cases))
				cases = append(cases, d.carried(id, c.rule, half.ok, half.edit))
			}
		}
	}
	return cases
}

// TestCarriedConformance judges a set of launches whose verdicts follow from the
// rules. -update rewrites the set from the changes above.
func TestCarriedConformance(t *testing.T) {
	var want bytes.Buffer
	for _, c := range generate() {
		line, err := json.Marshal(c)
		require.NoError(t, err)
		want.Write(append(line, '\n'))
	}
	if *update {
		require.NoError(t, os.MkdirAll(filepath.Dir(carriedFile), 0o755))
		require.NoError(t, os.WriteFile(carriedFile, want.Bytes(), 0o644))
	}
	file, err := os.ReadFile(carriedFile)
	require.NoError(t, err)
	require.Equal(t, want.String(), string(file), "run: go test ./knowledge/rules -run TestCarriedConformance -update")

	total, accepted := 0, 0
	byTopic := map[string]*[2]int{} // agreed, all
	lines := bufio.NewScanner(bytes.NewReader(file))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var c carried
		require.NoError(t, json.Unmarshal(lines.Bytes(), &c))
		total++
		if c.OK {
			accepted++
		}
		rule, ok := Explain(c.Rule)
		require.True(t, ok, "%s is no rule", c.Rule)
		if byTopic[rule.Topic] == nil {
			byTopic[rule.Topic] = &[2]int{}
		}
		byTopic[rule.Topic][1]++
		v := Check(megatron.Run{Entry: c.Entry, Argv: c.Argv, WorldSize: c.World, Arch: c.Arch, Env: c.Env})
		broken := brokenRules(v)
		assert.Equal(t, c.OK, v.OK, "%s: %s: broken %v", c.ID, c.Because, broken)
		if c.OK == v.OK {
			byTopic[rule.Topic][0]++
		}
		if !c.OK {
			assert.Contains(t, broken, c.Rule, "%s: %s", c.ID, c.Because)
		}
	}
	for _, topic := range slices.Sorted(maps.Keys(byTopic)) {
		t.Logf("%-30s %4d of %4d agree", topic, byTopic[topic][0], byTopic[topic][1])
	}
	require.GreaterOrEqual(t, total, 600)
	require.InDelta(t, 0.5, float64(accepted)/float64(total), 0.1, "balanced between accepted and refused")
}
