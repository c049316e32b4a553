#!/bin/bash
#SBATCH --job-name=megatron              # 作业名称
#SBATCH --output=output_%j.log           # 标准输出日志 (%j 为作业ID)
#SBATCH --error=error_%j.log             # 错误输出日志
#SBATCH --partition=TEST1                # 指定计算分区
#SBATCH --account=test1267               # 账户名 (计费/权限)
#SBATCH --exclude=g[01-86,88-89,91]      # (可选) 排除特定节点
#SBATCH --gres=gpu:8                     # 每个节点申请 8 张 GPU
#SBATCH --ntasks=2                       # 总任务数 (此处等于节点数)
#SBATCH --nodes=2                        # 申请 2 个节点
#SBATCH --ntasks-per-node=1              # 每个节点启动 1 个任务 (即 1 个 Docker 容器)
#SBATCH --cpus-per-task=64               # 每个任务分配 64 个 CPU 核心
#SBATCH --mem=1000G                      # 每个节点分配 1000G 内存

# ==========================================
# 1. 环境变量与路径配置
# ==========================================
# Docker 镜像与路径映射
docker_image="megatron_pytorch:latest"
docker_workspace="/workspace/files"      # 容器内路径
host_workspace="/home/test/test06/qzk/"  # 宿主机路径 (将被挂载)

# 训练数据与模型路径 (相对于容器内路径)
load_path="${docker_workspace}/PLM/Megatron-DeepSeek-R1-Distill-Qwen-1.5B/"
save_path="data/Distill-Qwen-1.5B-OpenR1-Math-94k/checkpoints/"
tensorboard_path="data/Distill-Qwen-1.5B-OpenR1-Math-94k/tensorboard/"

# ==========================================
# 2. 动态生成训练脚本 (run_training.sh)
# ==========================================
# 注意:此脚本将在 Docker 容器内部执行
cat <<RUN_EOF > run_training.sh
#!/bin/bash
set -ex

# 2.1 安装特定依赖 (如需)
# pip install modelbest_sdk-0.2.5.7-py3-none-any.whl

# 2.2 获取分布式环境参数
# 自动检测当前节点 GPU 数量
GPUS_PER_NODE=\$(nvidia-smi --query-gpu=gpu_name --format=csv,noheader | wc -l)

# 从 Slurm 环境变量读取 World Info
WORLD_SIZE=\${SLURM_NTASKS}
RANK=\${SLURM_PROCID}
# 获取主节点 IP (取 hostlist 第一个)
MASTER_ADDR=\$(scontrol show hostname \$SLURM_NODELIST | head -n 1)
MASTER_PORT=6420

echo "Node Info: Rank \${RANK}/\${WORLD_SIZE} | Master: \${MASTER_ADDR}:\${MASTER_PORT} | GPUs: \${GPUS_PER_NODE}"

# 2.3 模型与数据配置
TOKENIZER_MODEL=${docker_workspace}/PLM/DeepSeek-R1-Distill-Qwen-1.5B
# 数据路径格式: "权重 路径"
DATA_PATH="1.0 ${docker_workspace}/Datasets/OpenR1-Math-prefix/OpenR1-Math-220k_deepseek_qwen-prefix"

# 2.4 构建 PyTorch Distributed 参数 (torchrun)
DISTRIBUTED_ARGS=(
    --nproc_per_node \$GPUS_PER_NODE
    --nnodes \$WORLD_SIZE
    --node_rank \$RANK
    --master_addr \$MASTER_ADDR
    --master_port \$MASTER_PORT
    --rdzv_backend c10d
    --rdzv_endpoint \$MASTER_ADDR:\$MASTER_PORT
)

# 2.5 Megatron 模型参数 (示例)
GPT_MODEL_ARGS=(
    --vocab-size 151936
    --make-vocab-size-divisible-by 1
    --num-layers 28
    --hidden-size 1536
    --num-attention-heads 16
    --seq-length 4096
    --max-position-embeddings 4096
    --untie-embeddings-and-output-weights
)

# 2.6 训练超参
TRAINING_ARGS=(
    --micro-batch-size 4
    --global-batch-size 512
    --lr 1e-5
    --lr-decay-style cosine
    --train-iters 500000
    --weight-decay 0.1
    --clip-grad 1.0
    --log-interval 10
    --save-interval 1000
    --eval-interval 1000
    --eval-iters 10
)

# 2.7 输出配置
OUTPUT_ARGS=(
    --save ${docker_workspace}/${save_path}
    --load ${load_path}
    --tensorboard-dir ${docker_workspace}/${tensorboard_path}
)

# 2.8 启动命令
torchrun \
    "\${DISTRIBUTED_ARGS[@]}" \
    pretrain_gpt.py \
    "\${GPT_MODEL_ARGS[@]}" \
    "\${TRAINING_ARGS[@]}" \
    "\${OUTPUT_ARGS[@]}" \
    --tokenizer-model \${TOKENIZER_MODEL} \
    --data-path \${DATA_PATH}
RUN_EOF

# 赋予脚本执行权限
chmod +x run_training.sh

# ==========================================
# 3. 提交任务到 Docker
# ==========================================
echo "Starting Docker container on all nodes..."

# srun 会在 Slurm 分配的每个节点上执行以下命令
srun bash -c "
docker run --rm \\
  --gpus all \\
  --network host \\
  --ipc=host \\
  --ulimit memlock=-1 \\
  --ulimit stack=67108864 \\
  --privileged=true \\
  -v ${host_workspace}:${docker_workspace} \\
  -w ${docker_workspace} \\
  ${docker_image} \\
  bash run_training.sh
"
