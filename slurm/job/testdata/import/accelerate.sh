#!/bin/bash
#SBATCH --nodes=1
#SBATCH --gpus=4
cd /lustre/kim/app
source .venv/bin/activate
pip install -r requirements.txt
accelerate launch --num_processes 4 --mixed_precision bf16 train.py --epochs 3
