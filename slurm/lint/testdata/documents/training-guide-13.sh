torchrun --nproc_per_node=2 --nnodes=2 --node_rank=0 --master_addr=MASTER_IP --master_port=MASTER_PORT \
    megatron_core_training_example.py \
    --tensor-model-parallel-size=2 --pipeline-model-parallel-size=1 \
    --num-layers=2 --hidden-size=128 --train-steps=10 --batch-size=4
