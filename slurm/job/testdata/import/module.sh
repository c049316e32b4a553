#!/bin/bash
#SBATCH --job-name=module
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=8
#SBATCH --open-mode=truncate
#SBATCH --output=logs/%x-%j.out
cd /work/code
: "${TOOLS:=/opt/tools}"
export PATH=$TOOLS/bin:$PATH
export PYTHONPATH=$PYTHONPATH:/work/code/src
MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
srun torchrun --nnodes=$SLURM_NNODES --nproc_per_node=8 --rdzv_backend=c10d --rdzv_endpoint=$MASTER_ADDR:29400 \
  --max-restarts=3 -m package.train --config a.yaml > run.log 2>&1
