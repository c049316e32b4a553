torchrun --nproc_per_node=2 \
    megatron_core_training_example.py \
    --tensor-model-parallel-size=2 \
    --pipeline-model-parallel-size=1 \
    --num-layers=2 \
    --hidden-size=128 \
    --num-attention-heads=4 \
    --batch-size=4 \
    --train-steps=10 \
    --dataset-size=100 \
    --monitor-memory-continuously
