torchrun --nproc_per_node=8 \
    megatron_core_training_example.py \
    --tensor-model-parallel-size=1 \
    --pipeline-model-parallel-size=2 \
    --batch-size=16 \
    --epochs=3 \
    --train-steps=1000 \
    --fp16
