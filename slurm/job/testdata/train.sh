#!/bin/bash
# Rendered by megatron-ops v0.0.0 from specification sha256:a5cca697b159455ceabee714a2ebd9c10baa887f4361d40e1c2aa85dd8cd7efb
# shellcheck disable=SC1003,SC1112,SC2016,SC2088,SC2089,SC2090 # single quotes hold literal text, or text for the nodes
#SBATCH --job-name=tr8-104B
#SBATCH --partition=dev
#SBATCH --nodes=64
#SBATCH --ntasks-per-node=1
#SBATCH --gres=gpu:8
#SBATCH --cpus-per-task=96
#SBATCH --time=20:00:00
#SBATCH --array=1-50%1
#SBATCH --output=logs/%x-%A_%a.out
#SBATCH --error=logs/%x-%A_%a.err

set -euo pipefail
cd /lustre/alice/Megatron-LM

# The train: hold it with scontrol hold, edit the file, release it; no place in the queue is lost.
# shellcheck source=/dev/null
source ./tr8-104B-64.slurm

# The specification, for megatron-ops import; sha256 of the text above: 96895df202af8fcfc0ded6a3c4418f089ad9f5213703e5c8c069a4e0a96e6ce6
#| name: tr8-104B
#| partition: dev
#| nodes: 64
#| gpu_request: gres
#| cpus_per_task: 96
#| time: "20:00:00"
#| array: 1-50%1
#| train: tr8-104B-64.slurm
#| worktree: /lustre/alice/Megatron-LM
