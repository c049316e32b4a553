#!/bin/bash
# Rendered by megatron-ops v0.0.0 from specification sha256:53b6ca8f5d80da69967532a92ea6a602a75e4db88104cd3a8bebca856b21d702
# shellcheck disable=SC1003,SC1112,SC2016,SC2088,SC2089,SC2090 # single quotes hold literal text, or text for the nodes
#SBATCH --job-name=gpt-apptainer
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=8
#SBATCH --output=logs/%x-%j.out
#SBATCH --error=logs/%x-%j.err

set -euo pipefail
cd /lustre/alice/Megatron-LM

MASTER_ADDR=$(set +o pipefail; scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n1)
export MASTER_ADDR
export MASTER_PORT=${MASTER_PORT:-29500}
export NNODES=$SLURM_NNODES
export GPUS_PER_NODE=8
export WORLD_SIZE=$((NNODES * GPUS_PER_NODE))

# What a diagnosis reads, one folder for each attempt (monitor: false leaves it out).
RUN_DIR_HERE=logs/$SLURM_JOB_ID/attempt-${SLURM_RESTART_COUNT:-0}
mkdir -p "$RUN_DIR_HERE"
export RUN_DIR=/lustre/alice/Megatron-LM/$RUN_DIR_HERE
export PYTHONFAULTHANDLER=1 NCCL_DEBUG=WARN NCCL_DEBUG_FILE="$RUN_DIR/nccl.%h.%p.log"
export TORCH_NCCL_DUMP_ON_TIMEOUT=1 TORCH_FR_BUFFER_SIZE=2000 TORCH_NCCL_TRACE_BUFFER_SIZE=2000
export TORCH_FR_DUMP_TEMP_FILE="$RUN_DIR/flight-recorder-" TORCH_NCCL_DEBUG_INFO_TEMP_FILE="$RUN_DIR/flight-recorder-"
DIRTY=$(git diff --no-ext-diff --no-textconv HEAD 2>/dev/null | sha256sum | cut -c1-12) || DIRTY=unknown
export DIRTY
MARK='  # one line a node: what was started there
short() { sha256sum | cut -c1-12; }
echo "start: attempt=${SLURM_RESTART_COUNT:-0} node=$SLURM_NODEID host=${SLURMD_NODENAME:-$HOSTNAME} ranks=$((SLURM_NODEID * GPUS_PER_NODE))-$(((SLURM_NODEID + 1) * GPUS_PER_NODE - 1)) \
commit=$(git rev-parse --short=12 HEAD 2>/dev/null || echo unknown) dirty=$DIRTY argv=$(printf "%s\0" "$@" | short) \
env=$(env | grep -E "^(CUDA_|NCCL_|TORCH_|PYTHON|UV_|OMP_|NVTE_)" | grep -v VISIBLE_DEVICES | LC_ALL=C sort | short)" | tee "$RUN_DIR/start-$SLURM_NODEID"
'

# Guards: proof of a fault stops the job, a doubt is one line (guards: false leaves them out).
guard() { echo "guard: $1: ${SLURMD_NODENAME:-$HOSTNAME}: $2" >&2; [[ $1 != stop ]] || { sleep 1; exit 3; }; }
[[ $NNODES == 2 ]] || guard stop "nodes: 2 asked for, $NNODES given"
getent hosts "$MASTER_ADDR" >/dev/null 2>&1 || guard warning "$MASTER_ADDR does not resolve, or getent is missing"
[[ $DIRTY != unknown ]] || guard warning "git is missing, or $PWD is no checkout: the start marks carry no commit"
! (: <"/dev/tcp/127.0.0.1/$MASTER_PORT") 2>/dev/null || guard stop "port $MASTER_PORT is taken on $MASTER_ADDR; choose another master_port"
case $(stat -f -c %T . 2>/dev/null) in tmpfs|overlayfs|ext2/ext3|xfs|btrfs|zfs) guard warning "$PWD looks local to this node" ;; esac
SEEN=
[[ ! -e /lustre/alice/Megatron-LM ]] || SEEN+=/lustre/alice/Megatron-LM$'\n'
[[ ! -e pretrain_gpt.py ]] || SEEN+=/lustre/alice/Megatron-LM/pretrain_gpt.py$'\n'
[[ ! -e /lustre/data/text.idx ]] || SEEN+=/lustre/data/text.idx$'\n'
: >"$RUN_DIR_HERE/seen"; SEEN+=$RUN_DIR/seen
export SEEN
GUARDS='  # what every node looks at itself
guard() { echo "guard: $1: ${SLURMD_NODENAME:-$HOSTNAME}: $2" >&2; [[ $1 != stop ]] || { sleep 1; exit 3; }; }
look() {
  local p gpu used free=0 odd=
  while IFS= read -r p; do  # a file system may need a moment to show what is new
    [[ -z $p || -e $p ]] || { sleep 5; [[ -e $p ]]; } || guard stop "$p is seen by the first node and not here"
  done <<<"$SEEN"
  command -v uv >/dev/null || guard warning "uv is not on the PATH"
  while IFS=", " read -r gpu used; do  # a GPU with less than 2 GB in use counts as free
    if [[ ! $gpu$used =~ ^[0-9]+$ || -z $used ]]; then odd=1; elif ((10#$used < 2000)); then free=$((free + 1)); fi
  done <<<"$(nvidia-smi --query-gpu=index,memory.used --format=csv,noheader,nounits 2>/dev/null)"
  if [[ $odd ]]; then guard warning "nvidia-smi does not say which GPUs are free"
  elif ((free < GPUS_PER_NODE)); then guard stop "$free GPUs are free and $GPUS_PER_NODE are needed"; fi
  [[ $SLURM_NODEID == 0 ]] || (  # says so if the first node stays out of reach
    for _ in {1..60}; do
      sleep 2; kill -0 $$ 2>/dev/null || exit
      (: <"/dev/tcp/$MASTER_ADDR/$MASTER_PORT") 2>/dev/null && exit
    done
    guard warning "no answer from $MASTER_ADDR port $MASTER_PORT for two minutes") &
}
look
'

# The image file, on every node.
if [[ -e /lustre/images/megatron.sif ]]; then
  srun --ntasks="$NNODES" --ntasks-per-node=1 bash -c '[[ -r $1 ]] || {
    echo "guard: stop: ${SLURMD_NODENAME:-$HOSTNAME}: image $1 is on the first node and not here" >&2; exit 3; }
  ' _ /lustre/images/megatron.sif
else
  guard warning 'image /lustre/images/megatron.sif is not here'
fi

ARGS=(
  --num-layers 4
  --data-path /lustre/data/text
)

# One task a node. The text in single quotes is read there, not here.
srun --ntasks="$NNODES" --ntasks-per-node=1 --kill-on-bad-exit=1 --wait=60 --unbuffered --label \
  apptainer exec --nv \
  --bind /lustre:/lustre \
  --pwd /lustre/alice/Megatron-LM \
  /lustre/images/megatron.sif \
  env \
  UV_PROJECT_ENVIRONMENT=/opt/venv \
  bash -c "$GUARDS$MARK"'
    exec uv run python -m torch.distributed.run \
      --nnodes="$NNODES" \
      --nproc-per-node="$GPUS_PER_NODE" \
      --node-rank="$SLURM_NODEID" \
      --master-addr="$MASTER_ADDR" \
      --master-port="$MASTER_PORT" \
      --role="${SLURMD_NODENAME:-$HOSTNAME}:" --tee=3 --log-dir="$RUN_DIR/${SLURMD_NODENAME:-node-$SLURM_NODEID}" \
      "$@"
  ' _ pretrain_gpt.py "${ARGS[@]}" \
  > >(tee -a logs/"$SLURM_JOB_NAME-$SLURM_JOB_ID.log") 2>&1

# The specification, for megatron-ops import; sha256 of the text above: f357d5be34211d4b8ea83823890546471c4522bfb3cff79f46459f773f3cd17d
#| name: gpt-apptainer
#| nodes: 2
#| worktree: /lustre/alice/Megatron-LM
#| venv: /opt/venv
#| args:
#|   - "--num-layers"
#|   - 4
#|   - "--data-path"
#|   - /lustre/data/text
#| preset:
#|   - joined-log
#| container:
#|   runtime: apptainer
#|   image: /lustre/images/megatron.sif
#|   mounts:
#|     - "/lustre:/lustre"
