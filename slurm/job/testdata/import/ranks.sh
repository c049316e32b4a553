#!/bin/bash
#SBATCH --job-name=ranks
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=8
#SBATCH --gpus-per-task=1
#SBATCH --cpus-per-task=12
#SBATCH --nice=10
#SBATCH --segment=2
#SBATCH --exclusive=user
#SBATCH --no-requeue
#SBATCH --output=/shared/tree/out/%x-%j.out
#SBATCH --error=errors.txt
#SBATCH --signal=B:USR1@120
cd /shared/tree
source /shared/tree/venv/bin/activate
. "$HOME/other/bin/activate"
module load nccl
trap 'echo stop' USR1 TERM
srun --wait=60 --kill-on-bad-exit=1 --cpu-bind=cores --mpi="$MPI" python3 pretrain_gpt.py --num-layers 2
