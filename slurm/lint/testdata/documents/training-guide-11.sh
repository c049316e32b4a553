#!/bin/bash
#SBATCH --job-name=megatron_train
#SBATCH --nodes=2               # 请求 2 个节点
#SBATCH --ntasks-per-node=1     # 每个节点 1 个任务
#SBATCH --cpus-per-task=12      # 每个任务 12 个 CPU 核心
#SBATCH --gres=gpu:4            # 每个节点 4 个 GPU
#SBATCH --time=12:00:00         # 最大运行时间
#SBATCH --output=%x-%j.out      # 输出文件格式

# 获取主节点信息
MASTER_ADDR=$(scontrol show hostnames $SLURM_JOB_NODELIST | head -n 1)
MASTER_PORT=29500

# 设置每个节点上的进程数
GPUS_PER_NODE=4
NNODES=$SLURM_NNODES

# 计算总 GPU 数
WORLD_SIZE=$(($GPUS_PER_NODE * $NNODES))

# 在每个节点上启动训练
srun --jobid $SLURM_JOBID bash -c "
    torchrun --nproc_per_node=$GPUS_PER_NODE \
        --nnodes=$NNODES \
        --node_rank=\$SLURM_PROCID \
        --master_addr=$MASTER_ADDR \
        --master_port=$MASTER_PORT \
        megatron_core_training_example.py \
        --tensor-model-parallel-size=2 \
        --pipeline-model-parallel-size=2 \
        --batch-size=16 \
        --epochs=3 \
        --train-steps=1000 \
        --init-method=tcp://$MASTER_ADDR:$MASTER_PORT \
        --world-size=$WORLD_SIZE \
        --fp16
"
