#!/bin/bash
#SBATCH --job-name=branches
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=4
#SBATCH --gpus-per-node=4
#SBATCH --cpus-per-task=72
#SBATCH --time=12:00:00
# A site's script: defaults that the environment may overrule, extras in
# branches, one task for each GPU, and a program named by where the shell stands.
set -euo pipefail
TP=${TP:-2}
: "${MBS:=1}"
ROOT=${1:-/lustre/team/Megatron-LM}
cd "$ROOT"
export OMP_NUM_THREADS=$SLURM_CPUS_PER_TASK
MODEL=(--num-layers 32 --hidden-size 4096 --num-attention-heads 32)
BATCH="--micro-batch-size $MBS --global-batch-size $((MBS * SLURM_NNODES * 4))"
if [ "${LONG:-}" = 1 ]; then SEQ=32768; else SEQ=8192; fi
CMD="python3 `pwd`/pretrain_gpt.py ${MODEL[*]} $BATCH --seq-length $SEQ --max-position-embeddings $SEQ --tensor-model-parallel-size $TP --train-iters 100 --bf16"
if [ -n "${WANDB_API_KEY:-}" ]; then
  CMD="$CMD --wandb-project gpt"
fi
srun -l bash -c "RANK=\$SLURM_PROCID numactl --membind=0-3 $CMD ${WANDB_DIR:+--wandb-save-dir $WANDB_DIR} --data-path $DATA/text $EXTRA_ARGS"
