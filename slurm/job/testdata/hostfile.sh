#!/bin/bash
# Rendered by megatron-ops v0.0.0 from specification sha256:efadccf31afd56a14001442a856bc0036415ce3062d764d59674212b055a3c1f
# shellcheck disable=SC1003,SC1112,SC2016,SC2088,SC2089,SC2090 # single quotes hold literal text, or text for the nodes
#SBATCH --job-name=deepspeed
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=8
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

# The nodes and their slots, for the launcher.
scontrol show hostnames "$SLURM_JOB_NODELIST" | sed "s/\$/ slots=$GPUS_PER_NODE/" >logs/hostfile-"$SLURM_JOB_ID"
export HOSTFILE=/lustre/alice/Megatron-LM/logs/hostfile-$SLURM_JOB_ID

ARGS=()

# One task a node. The text in single quotes is read there, not here.
srun --ntasks="$NNODES" --ntasks-per-node=1 --kill-on-bad-exit=1 --wait=60 --unbuffered --label \
  bash -c '
    ops_n=$1 ops_words=(); shift
    for ops_w in "${@:1:ops_n}"; do  # what a custom launcher may name
      ops_w=${ops_w//"{node_rank}"/"$SLURM_NODEID"}; ops_w=${ops_w//"{nnodes}"/"$NNODES"}; ops_w=${ops_w//"{world_size}"/"$WORLD_SIZE"}
      ops_w=${ops_w//"{gpus_per_node}"/"$GPUS_PER_NODE"}; ops_w=${ops_w//"{master_addr}"/"$MASTER_ADDR"}; ops_w=${ops_w//"{master_port}"/"$MASTER_PORT"}
      ops_w=${ops_w//"{hostfile}"/"${HOSTFILE:-}"}
      ops_words+=("$ops_w")
    done
    exec "${ops_words[@]}" "${@:ops_n+1}"
  ' _ 5 mylauncher --hostfile '{hostfile}' --rank '{node_rank}' pretrain_gpt.py "${ARGS[@]}"

# The specification, for megatron-ops import; sha256 of the text above: f9a1fbdca4846ff4d4318f9030c65067d8d0adb2fff436a9c7491edf9f11dca3
#| name: deepspeed
#| nodes: 2
#| worktree: /lustre/alice/Megatron-LM
#| launcher: custom
#| launcher_argv:
#|   - mylauncher
#|   - "--hostfile"
#|   - "{hostfile}"
#|   - "--rank"
#|   - "{node_rank}"
#| guards: false
#| monitor: false
