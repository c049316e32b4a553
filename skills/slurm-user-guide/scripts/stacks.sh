#!/bin/bash
# Writes the Python stacks of every process of a job, one file for each node.
# The step takes no GPUs, so it does not wait for the job's own.
# usage: stacks.sh JOB_ID [FOLDER]
# exit: that of srun, 2 bad usage
set -euo pipefail
if [ $# -lt 1 ]; then
  echo "usage: stacks.sh JOB_ID [FOLDER]" >&2
  exit 2
fi
job=$1 folder=${2:-stacks-$1}
mkdir -p "$folder"
nodes=$(squeue -h -j "$job" -o %D)
srun --jobid="$job" --overlap --gres=gpu:0 --nodes="$nodes" --ntasks-per-node=1 \
  --output="$folder/%N.txt" \
  sh -c 'pgrep -u "$(id -u)" python | xargs -r -I {} py-spy dump --native --pid {}'
echo "$folder"
