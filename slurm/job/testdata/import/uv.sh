#!/bin/bash
#SBATCH --job-name=small
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=h100:4
#SBATCH --time=1-00:00:00
#SBATCH --signal=B:USR1@300
#SBATCH --output=logs/%x-%j.out
set -euo pipefail
cd /lustre/kim/mlm
export MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n1)
export MASTER_PORT=29777
srun --wait=10 bash -c 'uv run python -m torch.distributed.run --nnodes=2 --nproc-per-node=4 \
  --node-rank=$SLURM_NODEID --master-addr=$MASTER_ADDR --master-port=$MASTER_PORT --rdzv_backend=c10d \
  --max_restarts 0 pretrain_gpt.py --lr 3e-4 --title "it'"'"'s"'
