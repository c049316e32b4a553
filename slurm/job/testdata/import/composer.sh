#!/bin/bash
#SBATCH --nodes=4 --ntasks-per-node=1 --gpus-per-node=4 --output=logs/%x-%j.out
cd /work/code
export MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n1) MASTER_PORT=29700
srun bash -c "composer --world_size $((SLURM_NNODES * 4)) --node_rank \$SLURM_NODEID --master_addr $MASTER_ADDR --master_port $MASTER_PORT -n 4 --stdout rank{rank}.txt main.py a.yaml"
