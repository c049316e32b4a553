package lint

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// One finding, on the line of the launch, names all arguments that Megatron would reject:
// a user who corrects only the first would wait in the queue to learn of the next.
func TestIllegalArgumentsAreToldAllAtOnce(t *testing.T) {
	got := Check("", []byte(`#!/bin/bash
#SBATCH --nodes=1
#SBATCH --gpus-per-node=8
#SBATCH --time=1:00:00
cd /lustre/megatron
srun uv run python -m torch.distributed.run --nproc-per-node 8 pretrain_gpt.py --tensor-model-parallel-size 8 --num-layers 4 --hidden-size 1000 \
  --num-attention-heads 12 --seq-length 4096 --max-position-embeddings 128 --micro-batch-size 1 --global-batch-size 8 --bf16 --lr 1e-4 --train-iters 9 --mock-data \
  --tokenizer-type NullTokenizer --vocab-size 100
`))
	var said []Finding
	for _, f := range got {
		if f.Rule == "illegal-layout" {
			said = append(said, f)
		}
	}
	require.Len(t, said, 1)
	for _, want := range []string{"--max-position-embeddings must be at least --seq-length", "--num-attention-heads must be a multiple of TP", "--hidden-size must be a multiple of --num-attention-heads"} {
		require.Contains(t, said[0].Message, want)
	}
	require.Contains(t, said[0].Fix, "--max-position-embeddings 4096")
	require.Contains(t, said[0].Fix, "TP 4")
}
