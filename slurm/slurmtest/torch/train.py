"""A small real training: torch on CPU with gloo, real gradients averaged over all
ranks, and the lines that Megatron-LM prints. It knows two variables:

    TRAIN_ITERS   how many iterations (10)
    FAIL_AT       "RANK:ITERATION": this rank meets a wrong shape there
"""

import os
import sys
import time

import torch
import torch.distributed as dist
from torch import nn


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    iters = int(os.environ.get("TRAIN_ITERS", "10"))
    fail_rank, fail_iter = (int(n) for n in os.environ.get("FAIL_AT", "-1:-1").split(":"))
    torch.manual_seed(1234)
    model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 8))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    print(f"rank {rank} of {world} on {os.uname().nodename}", file=sys.stderr, flush=True)
    for iteration in range(1, iters + 1):
        began = time.monotonic()
        batch = torch.randn(4, 8)
        if (rank, iteration) == (fail_rank, fail_iter):
            batch = batch[:, :5]
        loss = nn.functional.mse_loss(model(batch), batch)
        optimizer.zero_grad()
        loss.backward()
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad)
            parameter.grad /= world
        optimizer.step()
        if rank == world - 1:
            milliseconds = 1000 * (time.monotonic() - began)
            print(
                f" [{time.strftime('%Y-%m-%d %H:%M:%S')}] iteration {iteration:8d}/{iters:8d} |"
                f" consumed samples: {iteration * 4 * world:12d} |"
                f" elapsed time per iteration (ms): {milliseconds:.1f} | learning rate: 5.000000E-02 |"
                f" global batch size: {4 * world:5d} | lm loss: {loss.item():.6E} | loss scale: 1.0 |"
                f" number of skipped iterations:   0 | number of nan iterations:   0 |",
                flush=True,
            )
    dist.barrier()
    if rank == 0:
        print(f"[after training is done] datetime: {time.strftime('%Y-%m-%d %H:%M:%S')}", flush=True)
    sys.stderr.flush()
    # gloo's threads of PyTorch 1.13 now and then abort while Python takes itself down.
    os._exit(0)


main()
