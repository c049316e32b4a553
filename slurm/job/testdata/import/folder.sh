#!/bin/bash
#SBATCH --nodes=2 --ntasks-per-node=1 --gpus-per-node=8 --output=logs/%x-%j.out
srun ft_launcher --nnodes=2 --nproc_per_node=8 --rdzv_backend=c10d --rdzv_endpoint=n1:29400 --ft-log-level=INFO /work/code/train.py --lr 1
