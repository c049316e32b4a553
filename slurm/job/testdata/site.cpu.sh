#!/bin/bash
# Rendered by megatron-ops v0.0.0 from specification sha256:6657c8be3794b8adedafc529288b167b697e1e6e39894f8fed06090301363887
# shellcheck disable=SC1003,SC1112,SC2016,SC2088,SC2089,SC2090 # single quotes hold literal text, or text for the nodes
#SBATCH --job-name=preprocess
#SBATCH --account=research
#SBATCH --partition=cpu
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=1
#SBATCH --time=1:00:00
#SBATCH --output=logs/%x-%j.out
#SBATCH --error=logs/%x-%j.err

set -euo pipefail
cd /lustre/alice/Megatron-LM

# Secrets: NAME=value lines of a file that only its owner may read.
SECRETS="$HOME"/.config/megatron-ops/secrets
if [[ -f $SECRETS ]]; then
  [[ -O $SECRETS && $(stat -c %a "$SECRETS") == 600 ]] || { echo "$SECRETS must be yours, with mode 600" >&2; exit 3; }
  while IFS= read -r SECRET || [[ -n $SECRET ]]; do
    case ${SECRET%%=*} in HF_TOKEN|HUGGING_FACE_HUB_TOKEN|WANDB_API_KEY|COMET_API_KEY|MLFLOW_TRACKING_TOKEN|NGC_API_KEY|AWS_ACCESS_KEY_ID|AWS_SECRET_ACCESS_KEY|AWS_SESSION_TOKEN) export "${SECRET?}" ;; esac
  done <"$SECRETS"
  unset SECRET
fi

MASTER_ADDR=$(set +o pipefail; scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n1)
export MASTER_ADDR
export MASTER_PORT=${MASTER_PORT:-29500}
export NNODES=$SLURM_NNODES
export GPUS_PER_NODE=0
export WORLD_SIZE=$NNODES

# What a diagnosis reads, one folder for each attempt (monitor: false leaves it out).
export RUN_DIR=$PWD/logs/$SLURM_JOB_ID/attempt-${SLURM_RESTART_COUNT:-0}
mkdir -p "$RUN_DIR"
export PYTHONFAULTHANDLER=1 NCCL_DEBUG=WARN NCCL_DEBUG_FILE="$RUN_DIR/nccl.%h.%p.log"
export TORCH_NCCL_DUMP_ON_TIMEOUT=1 TORCH_FR_BUFFER_SIZE=2000 TORCH_NCCL_TRACE_BUFFER_SIZE=2000
export TORCH_FR_DUMP_TEMP_FILE="$RUN_DIR/flight-recorder-" TORCH_NCCL_DEBUG_INFO_TEMP_FILE="$RUN_DIR/flight-recorder-"
DIRTY=$(git diff --no-ext-diff --no-textconv HEAD 2>/dev/null | sha256sum | cut -c1-12) || DIRTY=unknown
export DIRTY
MARK='  # one line a node: what was started there
short() { sha256sum | cut -c1-12; }
echo "start: attempt=${SLURM_RESTART_COUNT:-0} node=$SLURM_NODEID host=${SLURMD_NODENAME:-$HOSTNAME} ranks=$SLURM_NODEID-$SLURM_NODEID \
commit=$(git rev-parse --short=12 HEAD 2>/dev/null || echo unknown) dirty=$DIRTY argv=$(printf "%s\0" "$@" | short) \
env=$(env | grep -E "^(CUDA_|NCCL_|TORCH_|PYTHON|UV_|OMP_|NVTE_)" | grep -v VISIBLE_DEVICES | LC_ALL=C sort | short)" | tee "$RUN_DIR/start-$SLURM_NODEID"
'

# Guards: proof of a fault stops the job, a doubt is one line (guards: false leaves them out).
guard() { echo "guard: $1: ${SLURMD_NODENAME:-$HOSTNAME}: $2" >&2; [[ $1 != stop ]] || { sleep 1; exit 3; }; }
getent hosts "$MASTER_ADDR" >/dev/null 2>&1 || guard warning "$MASTER_ADDR does not resolve, or getent is missing"
[[ $DIRTY != unknown ]] || guard warning "git is missing, or $PWD is no checkout: the start marks carry no commit"
! (: <"/dev/tcp/127.0.0.1/$MASTER_PORT") 2>/dev/null || guard stop "port $MASTER_PORT is taken on $MASTER_ADDR; choose another master_port"

ARGS=(
  --input /lustre/data/text.jsonl
)

# One task a node. The text in single quotes is read there, not here.
srun --ntasks="$NNODES" --ntasks-per-node=1 --kill-on-bad-exit=1 --wait=60 --unbuffered --label \
  bash -c "$MARK"'
    exec python -m torch.distributed.run \
      --nnodes="$NNODES" \
      --nproc-per-node=1 \
      --node-rank="$SLURM_NODEID" \
      --master-addr="$MASTER_ADDR" \
      --master-port="$MASTER_PORT" \
      --role="${SLURMD_NODENAME:-$HOSTNAME}:" --tee=3 --log-dir="$RUN_DIR/${SLURMD_NODENAME:-node-$SLURM_NODEID}" \
      "$@"
  ' _ tools/preprocess_data.py "${ARGS[@]}"

# The specification, for megatron-ops import; sha256 of the text above: 74f64592cc3cc8908b2ba9236a64cf4cc87b1660c58d77bcf74b8cc2288da7a0
#| name: preprocess
#| account: research
#| partition: cpu
#| gpus_per_node: 0
#| gpu_request: gres
#| gpu: h100
#| time: "1:00:00"
#| worktree: /lustre/alice/Megatron-LM
#| script: tools/preprocess_data.py
#| args:
#|   - "--input"
#|   - /lustre/data/text.jsonl
#| launcher: python
