# 在单 GPU 上进行测试
CUDA_VISIBLE_DEVICES=0 python megatron_core_training_example.py \
    --tensor-model-parallel-size=1 --pipeline-model-parallel-size=1 
