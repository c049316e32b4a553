#!/bin/bash
# Rendered by megatron-ops v0.0.0 from specification sha256:ae5661c7f90d2b0f00217a26647831720de4bec0125a90f3614b4a3d82c5dbf3
# shellcheck disable=SC1003,SC1112,SC2016,SC2088,SC2089,SC2090 # single quotes hold literal text, or text for the nodes
#SBATCH --job-name=gpt-7b-bare
#SBATCH --account=research
#SBATCH --partition=prod
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=8
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
#SBATCH --error=logs/%x-%j.err

set -euo pipefail
cd /lustre/alice/Megatron-LM

MASTER_ADDR=$(set +o pipefail; scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n1)
export MASTER_ADDR
export MASTER_PORT=${MASTER_PORT:-29500}
export NNODES=$SLURM_NNODES
export GPUS_PER_NODE=8
export WORLD_SIZE=$((NNODES * GPUS_PER_NODE))

# Megatron: on Ampere and Hopper, tensor and context parallelism rely on kernels starting in the order of launch; Megatron refuses to start without exactly 1.
export CUDA_DEVICE_MAX_CONNECTIONS=1
export NCCL_SOCKET_IFNAME=eth0

ARGS=(
  --tensor-model-parallel-size 4
  --lr 3e-4
  --data-path 1.0 '/data/it'\''s'
)

# One task a node. The text in single quotes is read there, not here.
srun --ntasks="$NNODES" --ntasks-per-node=1 \
  bash -c '
    exec uv run python -m torch.distributed.run \
      --nnodes="$NNODES" \
      --nproc-per-node="$GPUS_PER_NODE" \
      --node-rank="$SLURM_NODEID" \
      --master-addr="$MASTER_ADDR" \
      --master-port="$MASTER_PORT" \
      "$@"
  ' _ pretrain_gpt.py "${ARGS[@]}"
