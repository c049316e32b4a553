"""Writes the checkpoints of these tests as Megatron-LM's formats lay them out.

The classes of torch.distributed.checkpoint are stood in for under their own names and
with their own fields, since a pickle holds nothing else of them; torch.save is
PyTorch's own. Run it with a Python that has torch: python3 make.py
"""
import argparse, io, json, os, pickle, sys, types
from collections import OrderedDict
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Optional
import torch

meta = types.ModuleType("torch.distributed.checkpoint.metadata")
disk = types.ModuleType("torch.distributed.checkpoint.filesystem")
for m in (types.ModuleType("torch.distributed.checkpoint"), meta, disk):
    sys.modules[m.__name__] = m


def there(module):
    def move(cls):
        cls.__module__ = module.__name__
        cls.__qualname__ = cls.__name__
        setattr(module, cls.__name__, cls)
        return cls
    return move


@there(meta)
class _MEM_FORMAT_ENCODING(Enum):
    TORCH_CONTIGUOUS_FORMAT = 0


@there(meta)
@dataclass
class TensorProperties:
    dtype: Any = torch.float32
    layout: Any = torch.strided
    requires_grad: bool = False
    memory_format: Any = torch.contiguous_format
    pin_memory: bool = False

    def __getstate__(self):
        return (self.dtype, self.layout, self.requires_grad, _MEM_FORMAT_ENCODING.TORCH_CONTIGUOUS_FORMAT, self.pin_memory)


@there(meta)
@dataclass
class ChunkStorageMetadata:
    offsets: Any
    sizes: Any


@there(meta)
@dataclass
class TensorStorageMetadata:
    properties: TensorProperties
    size: Any
    chunks: list


@there(meta)
@dataclass
class BytesStorageMetadata:
    pass


@there(meta)
@dataclass(frozen=True)
class MetadataIndex:
    fqn: str
    offset: Optional[Any] = None
    index: Optional[int] = field(hash=False, compare=False, default=None)


@there(meta)
@dataclass
class Metadata:
    state_dict_metadata: dict
    planner_data: Any = None
    storage_data: Any = None
    storage_meta: Any = None
    version: Any = None


@there(disk)
@dataclass
class _StorageInfo:
    relative_path: str
    offset: int
    length: int
    transform_descriptors: Any = None


def args(**over):
    values = dict(
        tensor_model_parallel_size=2, pipeline_model_parallel_size=2, expert_model_parallel_size=1, context_parallel_size=1,
        data_parallel_size=4, world_size=16, num_layers=4, hidden_size=64, ffn_hidden_size=256, num_attention_heads=8,
        num_query_groups=8, seq_length=128, max_position_embeddings=128, padded_vocab_size=1024, bf16=True, swiglu=True,
        use_distributed_optimizer=True, lr=3e-4, params_dtype=torch.bfloat16, load=None, data_path=["/data/a", "/data/b"],
    )
    values.update(over)
    return argparse.Namespace(**values)


def index(folder, tensors, blobs=(), files=2):
    """Writes .distcp files and the index over them."""
    names, data, at = {}, {}, [0] * files
    parts = [b""] * files
    for n, (name, size, cuts) in enumerate(tensors):
        chunks = []
        for k in range(cuts):
            rows = size[0] // cuts
            offset, cut = torch.Size((k * rows,) + size[1:][:0] + tuple(0 for _ in size[1:])), torch.Size((rows,) + size[1:])
            chunks.append(ChunkStorageMetadata(offset, cut))
            f = (n + k) % files
            raw = bytes(16)  # what is in a tensor nobody reads here
            data[MetadataIndex(name, offset, k)] = _StorageInfo(f"__{f}_0.distcp", len(parts[f]), len(raw))
            parts[f] += raw
        names[name] = TensorStorageMetadata(TensorProperties(), torch.Size(size), chunks)
    for name, value in blobs:
        raw = io.BytesIO()
        torch.save(value, raw)
        data[MetadataIndex(name)] = _StorageInfo("__0_0.distcp", len(parts[0]), len(raw.getvalue()))
        parts[0] += raw.getvalue()
        names[name] = BytesStorageMetadata()
    for f, raw in enumerate(parts):
        with open(os.path.join(folder, f"__{f}_0.distcp"), "wb") as out:
            out.write(raw)
    with open(os.path.join(folder, ".metadata"), "wb") as out:
        pickle.dump(Metadata(names, None, data), out)


MODEL = [
    ("embedding.word_embeddings.weight", (1024, 64), 2), ("decoder.layers.self_attention.linear_qkv.weight", (4, 192, 64), 4),
    ("decoder.layers.mlp.linear_fc1.weight", (4, 512, 64), 4), ("decoder.final_layernorm.weight", (64,), 1),
]
OPTIMIZER = [("optimizer.state.exp_avg.embedding.word_embeddings.weight", (1024, 64), 2)]


def torch_dist(root, iteration, sharding, **over):
    folder = os.path.join(root, f"iter_{iteration:07d}")
    os.makedirs(folder)
    with open(os.path.join(folder, "metadata.json"), "w") as out:
        json.dump({"sharded_backend": "torch_dist", "sharded_backend_version": 1, "common_backend": "torch", "common_backend_version": 1}, out)
    common = {"args": args(**over), "checkpoint_version": 3.0, "iteration": iteration, "num_floating_point_operations_so_far": 1e18}
    if sharding:
        common["content_metadata"] = {"distrib_optim_sharding_type": sharding, "singleton_local_shards": False}
    torch.save(common, os.path.join(folder, "common.pt"))
    index(folder, MODEL + OPTIMIZER)


def legacy(root, iteration, tp, pp, ep=1):
    for t in range(tp):
        for p in range(pp):
            for e in range(ep):
                name = f"mp_rank_{t:02d}" + (f"_{p:03d}" if pp > 1 else "") + (f"_{e:03d}" if ep > 1 else "")
                folder = os.path.join(root, f"iter_{iteration:07d}", name)
                os.makedirs(folder)
                state = {
                    "args": args(tensor_model_parallel_size=tp, pipeline_model_parallel_size=pp, expert_model_parallel_size=ep, use_distributed_optimizer=False),
                    "checkpoint_version": 3.0, "iteration": iteration, "model": OrderedDict(w=torch.zeros(4)), "optimizer": {"state": {0: torch.zeros(4)}},
                }
                torch.save(state, os.path.join(folder, "model_optim_rng.pt"))


def latest(root, word):
    os.makedirs(root, exist_ok=True)
    with open(os.path.join(root, "latest_checkpointed_iteration.txt"), "w") as out:
        out.write(str(word))


torch_dist("dist", 50, "dp_reshardable")
torch_dist("dist", 100, "dp_reshardable")
latest("dist", 100)
torch_dist("reshardable", 30, "fully_reshardable")
latest("reshardable", 30)
legacy("torch", 20, 2, 2)
latest("torch", 20)
legacy("experts", 20, 1, 1, ep=2)
latest("experts", 20)
folder = os.path.join("fsdp", "iter_0000010")
os.makedirs(folder)
index(folder, [("model.module." + n, s, c) for n, s, c in MODEL] + OPTIMIZER, [("args", args(tensor_model_parallel_size=1, pipeline_model_parallel_size=1, data_parallel_size=16)), ("iteration", 10)])
latest("fsdp", 10)
folder = os.path.join("dcp", "iter_0000010")
os.makedirs(folder)
saved = args(tensor_model_parallel_size=1, pipeline_model_parallel_size=1, data_parallel_size=16, use_distributed_optimizer=False, use_torch_fsdp2=True, ckpt_format="torch_dcp")
index(folder, [("model.module." + n, s, c) for n, s, c in MODEL] + OPTIMIZER, [("args", saved), ("iteration", 10)])
latest("dcp", 10)
