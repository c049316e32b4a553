#!/bin/bash
#SBATCH --job-name=launcher
#SBATCH --nodes=2
#SBATCH --gpus-per-node=4
#SBATCH --exclusive
#SBATCH --requeue
#SBATCH --output=logs/%x-%j.out
cd /shared/tree
srun --wait=0 --kill-on-bad-exit=0 --ntasks-per-node=1 torchrun --nnodes=2 --nproc_per_node=8 --master-port=29501 --rdzv-backend=c10d --rdzv-endpoint=a:1 \
  --rdzv-conf=timeout=900,oops,read_timeout=60 --max-restarts=2 --tee=3 --log-dir=/tmp/l --no-python-here pretrain_gpt.py --num-layers 2
