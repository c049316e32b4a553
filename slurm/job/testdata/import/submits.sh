#!/bin/bash
# A script that asks sbatch itself, with what it was given.
SIZE=${SIZE:-8b}
case $SIZE in
  8b) MODEL="--num-layers 32 --hidden-size 4096 --num-attention-heads 32" ;;
  *) echo "unknown size" >&2; exit 1 ;;
esac
sbatch <<EOF
#!/bin/bash
#SBATCH --job-name=submits-$SIZE
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=8
#SBATCH --time=04:00:00
srun --container-image=/images/mcore.sqsh --container-mounts=/lustre:/lustre,relative:/x --container-workdir=/lustre/team/Megatron-LM \
  bash -c "torchrun --nnodes 2 --nproc-per-node 8 --rdzv-backend c10d --rdzv-conf join_timeout=900 pretrain_gpt.py $MODEL --micro-batch-size 1"
EOF
