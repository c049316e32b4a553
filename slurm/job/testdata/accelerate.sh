#!/bin/bash
# Rendered by megatron-ops v0.0.0 from specification sha256:b4d9ccff10d179f702f850bca6c37986a63e27314494588846ae2201df959772
# shellcheck disable=SC1003,SC1112,SC2016,SC2088,SC2089,SC2090 # single quotes hold literal text, or text for the nodes
#SBATCH --job-name=accel
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=4
#SBATCH --output=logs/%x-%j.out
#SBATCH --error=logs/%x-%j.err

set -euo pipefail
cd /lustre/alice/Megatron-LM

MASTER_ADDR=$(set +o pipefail; scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n1)
export MASTER_ADDR
export MASTER_PORT=${MASTER_PORT:-29500}
export NNODES=$SLURM_NNODES
export GPUS_PER_NODE=4
export WORLD_SIZE=$((NNODES * GPUS_PER_NODE))

ARGS=()

# One task a node. The text in single quotes is read there, not here.
srun --ntasks="$NNODES" --ntasks-per-node=1 --kill-on-bad-exit=1 --wait=60 --unbuffered --label \
  bash -c '
    exec python -m accelerate.commands.launch \
      --num_machines="$NNODES" \
      --num_processes="$WORLD_SIZE" \
      --machine_rank="$SLURM_NODEID" \
      --main_process_ip="$MASTER_ADDR" \
      --main_process_port="$MASTER_PORT" \
      --rdzv_backend=static \
      "$@"
  ' _ myprogram.py "${ARGS[@]}"

# The specification, for megatron-ops import; sha256 of the text above: c6897ff48d5d148ff5308607672886b74bb62a51e5466aa271980a3b83aa54ff
#| name: accel
#| nodes: 2
#| gpus_per_node: 4
#| worktree: /lustre/alice/Megatron-LM
#| script: myprogram.py
#| launcher: accelerate
#| guards: false
#| monitor: false
