#!/bin/bash
# Rendered by megatron-ops v0.0.0 from specification sha256:bde004a1419dcde59c53f409f256fdb427b687f9c039b6a63b0673b6c0e150ad
# shellcheck disable=SC1003,SC1112,SC2016,SC2088,SC2089,SC2090 # single quotes hold literal text, or text for the nodes
#SBATCH --job-name=clean-up
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=1
#SBATCH --time=0:30:00
#SBATCH --output=logs/%x-%j.out
#SBATCH --error=logs/%x-%j.err

set -euo pipefail
cd /lustre/alice/jobs

# Runs again daily; the next run is queued first, so that a failure does not end the series.
# List: squeue --me --name=clean-up   Stop: touch logs/clean-up.stop (or scancel the queued one)
if [[ ! -e logs/clean-up.stop && ${SLURM_RESTART_COUNT:-0} == 0 ]]; then
  scontrol write batch_script "$SLURM_JOB_ID" - | sbatch --begin=now+1day >&2 ||
    echo "the next run could not be queued: the series ends here" >&2
fi
find logs -maxdepth 1 -name 'clean-up-*' -mtime +7 -delete  # old logs of the series

MASTER_ADDR=$(set +o pipefail; scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n1)
export MASTER_ADDR
export MASTER_PORT=${MASTER_PORT:-29500}
export NNODES=$SLURM_NNODES
export GPUS_PER_NODE=0
export WORLD_SIZE=$NNODES

# Guards: proof of a fault stops the job, a doubt is one line (guards: false leaves them out).
guard() { echo "guard: $1: ${SLURMD_NODENAME:-$HOSTNAME}: $2" >&2; [[ $1 != stop ]] || { sleep 1; exit 3; }; }
[[ $NNODES == 1 ]] || guard stop "nodes: 1 asked for, $NNODES given"
getent hosts "$MASTER_ADDR" >/dev/null 2>&1 || guard warning "$MASTER_ADDR does not resolve, or getent is missing"
! (: <"/dev/tcp/127.0.0.1/$MASTER_PORT") 2>/dev/null || guard stop "port $MASTER_PORT is taken on $MASTER_ADDR; choose another master_port"

ARGS=(
  --older-than 7d
)

# One task a node. The text in single quotes is read there, not here.
srun --ntasks="$NNODES" --ntasks-per-node=1 --kill-on-bad-exit=1 --wait=60 --unbuffered --label \
  bash -c '
    exec "$@"
  ' _ mylauncher clean.sh "${ARGS[@]}"

# The specification, for megatron-ops import; sha256 of the text above: fd6f5726055d1474003eafbcb85886a14da76c8f7ca23586300a6feb7e74cd17
#| name: clean-up
#| nodes: 1
#| gpus_per_node: 0
#| time: "0:30:00"
#| every: daily
#| worktree: /lustre/alice/jobs
#| script: clean.sh
#| args:
#|   - "--older-than"
#|   - 7d
#| launcher: custom
#| launcher_argv:
#|   - mylauncher
#| monitor: false
