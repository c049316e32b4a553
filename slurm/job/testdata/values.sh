#!/bin/bash
# Rendered by megatron-ops v0.0.0 from specification sha256:e1b3d7de4639ea501b0ba2f0adf01c73a99e603e320d1ae8d825c2bac26ed845
# shellcheck disable=SC1003,SC1112,SC2016,SC2088 # single quotes hold literal text, or text for the nodes
#SBATCH --job-name=tricky_1.0
#SBATCH --constraint=[a100*2&h100*2]
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --gres=gpu:4
#SBATCH --exclude=gpu[07-09]
#SBATCH --begin="16:00 12/24/30"
#SBATCH --comment="said \"go\", it's 100%"
#SBATCH --output=logs/%x-%j.out
#SBATCH --error=logs/%x-%j.err

set -euo pipefail
cd '/lustre/a b/it'\''s'

MASTER_ADDR=$(set +o pipefail; scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n1)
export MASTER_ADDR
export MASTER_PORT=${MASTER_PORT:-29500}
export NNODES=$SLURM_NNODES
export GPUS_PER_NODE=4
export WORLD_SIZE=$((NNODES * GPUS_PER_NODE))

export NCCL_IB_HCA='=mlx5_0:1,mlx5_1:1'
export T_EMPTY=''
export T_LIST='a,b,c=d'

ARGS=(
  --title 'it'\''s' '$HOME' '`id`' 'a\b' $'two\nlines' '' 'é' '中文' 'fi' 'a,b' -n
)

# One task a node. The text in single quotes is read there, not here.
srun --ntasks="$NNODES" --ntasks-per-node=1 --kill-on-bad-exit=1 --wait=60 --unbuffered --label \
  bash -c '
    exec uv run python -m torch.distributed.run \
      --nnodes="$NNODES" \
      --nproc-per-node="$GPUS_PER_NODE" \
      --node-rank="$SLURM_NODEID" \
      --master-addr="$MASTER_ADDR" \
      --master-port="$MASTER_PORT" \
      "$@"
  ' _ pretrain_gpt.py "${ARGS[@]}"
