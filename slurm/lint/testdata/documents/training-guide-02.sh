# 使用 torch.distributed.launch
python -m torch.distributed.launch --nproc_per_node=NUM_GPUS \
    megatron_core_training_example.py \
    --tensor-model-parallel-size=TP_SIZE \
    --pipeline-model-parallel-size=PP_SIZE \
    [其他参数]

# 或使用 torchrun (推荐)
torchrun --nproc_per_node=NUM_GPUS \
    megatron_core_training_example.py \
    --tensor-model-parallel-size=TP_SIZE \
    --pipeline-model-parallel-size=PP_SIZE \
    [其他参数]
