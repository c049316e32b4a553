pip install torch numpy wandb
