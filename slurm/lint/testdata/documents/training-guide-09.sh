torchrun --nproc_per_node=4 --nnodes=2 --node_rank=0 --master_addr=MASTER_IP --master_port=MASTER_PORT \
    megatron_core_training_example.py \
    --tensor-model-parallel-size=2 \
    --pipeline-model-parallel-size=2 \
    --batch-size=16 \
    --epochs=3 \
    --train-steps=1000 \
    --init-method=tcp://MASTER_IP:MASTER_PORT \
    --world-size=8 \
    --fp16
