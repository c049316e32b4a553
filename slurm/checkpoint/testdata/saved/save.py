"""Saves a small checkpoint by Megatron-LM's own dist_checkpointing, on CPU, one process a rank:

    python3 save.py MEGATRON FOLDER RANK WORLD STORE

MEGATRON is a checkout of the release, FOLDER the iteration's folder, STORE a file that both ranks meet at. The
samples here are of core_v0.12.0, 0.15.0, 0.18.0 and 0.19.0 by PyTorch 2.6 with two ranks.
"""
def main():
    import argparse, inspect, os, sys, types
    root, folder, rank, world, store = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5]
    sys.path.insert(0, root)
    import torch
    from pathlib import Path
    for name in ("megatron", "megatron.core"):  # without what imports CUDA
        m = types.ModuleType(name); m.__path__ = [os.path.join(root, *name.split("."))]; sys.modules[name] = m
    torch.cuda.current_device = lambda: "cpu"
    torch.cuda.synchronize = lambda *a: None
    torch.distributed.init_process_group("gloo", init_method="file://" + store, rank=rank, world_size=world)
    import megatron.core.parallel_state
    from megatron.core import dist_checkpointing as dc
    from megatron.core.dist_checkpointing import ShardedObject, ShardedTensor
    from megatron.core.dist_checkpointing.strategies.torch import TorchDistSaveShardedStrategy
    torch.manual_seed(rank)
    args = argparse.Namespace(
        tensor_model_parallel_size=world, pipeline_model_parallel_size=1, expert_model_parallel_size=1, context_parallel_size=1, data_parallel_size=1,
        world_size=world, num_layers=2, hidden_size=8, ffn_hidden_size=16, num_attention_heads=2, num_query_groups=2, seq_length=16,
        max_position_embeddings=16, padded_vocab_size=32, bf16=True, use_distributed_optimizer=True, ckpt_format="torch_dist", ckpt_fully_parallel_save=True)
    def piece(key, *shape):
        return ShardedTensor.from_rank_offsets(key, torch.randn(*shape), (0, rank, world))
    state = {
        "args": args, "checkpoint_version": 3.0, "iteration": 7,
        "model": {"embedding.word_embeddings.weight": piece("embedding.word_embeddings.weight", 16, 8),
                  "decoder.layers.mlp.linear_fc1.weight": piece("decoder.layers.mlp.linear_fc1.weight", 8, 8),
                  "decoder.final_layernorm.weight": ShardedTensor.from_rank_offsets("decoder.final_layernorm.weight", torch.ones(8), replica_id=rank)},
        "optimizer": {"exp_avg": piece("optimizer.state.exp_avg.embedding.word_embeddings.weight", 16, 8)},
        "rng_state": ShardedObject("rng_state", [{"random": rank}], (1, world), (0, rank), replica_id=0),
    }
    kw = {}
    if "content_metadata" in inspect.signature(dc.save).parameters:
        kw["content_metadata"] = {"distrib_optim_sharding_type": "fully_reshardable", "singleton_local_shards": False}
    try:
        strategy = TorchDistSaveShardedStrategy("torch_dist", 1)
    except TypeError:
        strategy = TorchDistSaveShardedStrategy()
    dc.save(state, Path(folder) if root.endswith("core_v0.12.0") else folder, strategy, **kw)
    print(rank, sorted(os.listdir(folder)))


if __name__ == "__main__":
    main()
