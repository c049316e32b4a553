#!/bin/bash
#SBATCH --job-name=podman
#SBATCH --nodes=1
#SBATCH --chdir=/shared/tree
#SBATCH --gpus=8
podman run --rm --env-file=/etc/env -v /shared:/shared -v "$DATA":/data -w /shared/tree docker.io/a/b:1 numactl python -m torch.distributed.run --standalone --nproc-per-node=8 /shared/tree/pretrain_gpt.py --num-layers 2
python tools/other.py
