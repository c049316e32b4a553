#!/bin/bash
#SBATCH -J distill
#SBATCH --output=out_%j.log
#SBATCH --error=err_%j.log
#SBATCH -p gpu -A lab12
#SBATCH --gres=gpu:8
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=64
#SBATCH --mem=1000G
#SBATCH --licenses=ansys:1

IMAGE="megatron:25.04"
WORK=/workspace
export NCCL_SOCKET_IFNAME=ib0 WANDB_API_KEY=abcdef
module load cuda/12.4
cd /home/kim/Megatron-LM

MODEL_ARGS=(--num-layers 28 --hidden-size 1536)
MASTER_ADDR=$(scontrol show hostname $SLURM_NODELIST | head -n 1)

srun --label --cpu-bind=cores docker run --rm --gpus all --network host --ipc=host \
  -v /home/kim:/workspace -w $WORK/Megatron-LM $IMAGE \
  torchrun --nproc_per_node 8 --nnodes 2 --node_rank $SLURM_NODEID --master_addr $MASTER_ADDR --master_port 6420 \
  pretrain_gpt.py "${MODEL_ARGS[@]}" --data-path "1.0 /workspace/data" --save $CKPT
