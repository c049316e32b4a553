sbatch --dependency=CURRENTLY_RUNNING_JOB_ID tr1-13B-round1.slurm
