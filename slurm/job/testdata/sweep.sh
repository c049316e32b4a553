#!/bin/bash
# Rendered by megatron-ops v0.0.0 from specification sha256:893c433f2a07fe109ff8f97b24a9acad4122aed1a1028795abc3f28a44b7a6ce
# shellcheck disable=SC1003,SC1112,SC2016,SC2088,SC2089,SC2090 # single quotes hold literal text, or text for the nodes
#SBATCH --job-name=lr-sweep
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=8
#SBATCH --array=0-7%4
#SBATCH --output=logs/%x-%A_%a.out
#SBATCH --error=logs/%x-%A_%a.err

set -euo pipefail
cd /lustre/alice/Megatron-LM

# One run for whoever tracks it, over requeues and the jobs of a chain.
export WANDB_RUN_ID=${WANDB_RUN_ID:-lr-sweep-${SLURM_ARRAY_JOB_ID:-$SLURM_JOB_ID}_$SLURM_ARRAY_TASK_ID}
export WANDB_RESUME=${WANDB_RESUME:-allow}

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
[[ -x .venv/bin/python ]] || guard warning 'no virtual environment in .venv; without one uv run builds it on every node: run uv sync first'
case $(stat -f -c %T . 2>/dev/null) in tmpfs|overlayfs|ext2/ext3|xfs|btrfs|zfs) guard warning "$PWD looks local to this node" ;; esac
SEEN=
[[ ! -e /lustre/alice/Megatron-LM ]] || SEEN+=/lustre/alice/Megatron-LM$'\n'
[[ ! -e pretrain_gpt.py ]] || SEEN+=/lustre/alice/Megatron-LM/pretrain_gpt.py$'\n'
[[ ! -e .venv ]] || SEEN+=/lustre/alice/Megatron-LM/.venv$'\n'
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

# The image, on every node, pulled where it is missing.
srun --ntasks="$NNODES" --ntasks-per-node=1 bash -c '
  command -v docker >/dev/null || { echo "guard: warning: ${SLURMD_NODENAME:-$HOSTNAME}: docker is not on the PATH" >&2; exit 0; }
  docker image inspect "$1" >/dev/null 2>&1 || docker pull --quiet "$1" >&2 || {
    echo "guard: stop: ${SLURMD_NODENAME:-$HOSTNAME}: image $1 is neither here nor can be pulled" >&2; exit 3; }
' _ megatron:dev

ARGS=(
  --lr 1e-3
  --save /lustre/alice/ckpt
  --load=/lustre/alice/ckpt
  --wandb-project lr
)

# A sweep: each element of the array is one point; the last value of a flag counts.
case $SLURM_ARRAY_TASK_ID in
  0)
    ARGS+=(--lr 1e-4 --seed 1 --save /lustre/alice/ckpt/lr-1e-4_seed-1_NVTE_FLASH_ATTN-0 --load /lustre/alice/ckpt/lr-1e-4_seed-1_NVTE_FLASH_ATTN-0)
    export NVTE_FLASH_ATTN=0
    echo 'sweep: point 0: lr=1e-4 seed=1 env.NVTE_FLASH_ATTN=0' ;;
  1)
    ARGS+=(--lr 1e-4 --seed 1 --save /lustre/alice/ckpt/lr-1e-4_seed-1_NVTE_FLASH_ATTN-1 --load /lustre/alice/ckpt/lr-1e-4_seed-1_NVTE_FLASH_ATTN-1)
    export NVTE_FLASH_ATTN=1
    echo 'sweep: point 1: lr=1e-4 seed=1 env.NVTE_FLASH_ATTN=1' ;;
  2)
    ARGS+=(--lr 1e-4 --seed 2 --save /lustre/alice/ckpt/lr-1e-4_seed-2_NVTE_FLASH_ATTN-0 --load /lustre/alice/ckpt/lr-1e-4_seed-2_NVTE_FLASH_ATTN-0)
    export NVTE_FLASH_ATTN=0
    echo 'sweep: point 2: lr=1e-4 seed=2 env.NVTE_FLASH_ATTN=0' ;;
  3)
    ARGS+=(--lr 1e-4 --seed 2 --save /lustre/alice/ckpt/lr-1e-4_seed-2_NVTE_FLASH_ATTN-1 --load /lustre/alice/ckpt/lr-1e-4_seed-2_NVTE_FLASH_ATTN-1)
    export NVTE_FLASH_ATTN=1
    echo 'sweep: point 3: lr=1e-4 seed=2 env.NVTE_FLASH_ATTN=1' ;;
  4)
    ARGS+=(--lr 3e-4 --seed 1 --save /lustre/alice/ckpt/lr-3e-4_seed-1_NVTE_FLASH_ATTN-0 --load /lustre/alice/ckpt/lr-3e-4_seed-1_NVTE_FLASH_ATTN-0)
    export NVTE_FLASH_ATTN=0
    echo 'sweep: point 4: lr=3e-4 seed=1 env.NVTE_FLASH_ATTN=0' ;;
  5)
    ARGS+=(--lr 3e-4 --seed 1 --save /lustre/alice/ckpt/lr-3e-4_seed-1_NVTE_FLASH_ATTN-1 --load /lustre/alice/ckpt/lr-3e-4_seed-1_NVTE_FLASH_ATTN-1)
    export NVTE_FLASH_ATTN=1
    echo 'sweep: point 5: lr=3e-4 seed=1 env.NVTE_FLASH_ATTN=1' ;;
  6)
    ARGS+=(--lr 3e-4 --seed 2 --save /lustre/alice/ckpt/lr-3e-4_seed-2_NVTE_FLASH_ATTN-0 --load /lustre/alice/ckpt/lr-3e-4_seed-2_NVTE_FLASH_ATTN-0)
    export NVTE_FLASH_ATTN=0
    echo 'sweep: point 6: lr=3e-4 seed=2 env.NVTE_FLASH_ATTN=0' ;;
  7)
    ARGS+=(--lr 3e-4 --seed 2 --save /lustre/alice/ckpt/lr-3e-4_seed-2_NVTE_FLASH_ATTN-1 --load /lustre/alice/ckpt/lr-3e-4_seed-2_NVTE_FLASH_ATTN-1)
    export NVTE_FLASH_ATTN=1
    echo 'sweep: point 7: lr=3e-4 seed=2 env.NVTE_FLASH_ATTN=1' ;;
  *) echo "sweep: no point $SLURM_ARRAY_TASK_ID" >&2; exit 3 ;;
esac

# One task a node. The text in single quotes is read there, not here.
srun --ntasks="$NNODES" --ntasks-per-node=1 --kill-on-bad-exit=1 --wait=60 --unbuffered --label \
  docker run --rm --init \
  --gpus all --network host --ipc=host --ulimit memlock=-1 --ulimit stack=67108864 \
  -v /lustre/alice/Megatron-LM:/lustre/alice/Megatron-LM \
  -w /lustre/alice/Megatron-LM \
  -e MASTER_ADDR -e MASTER_PORT -e NNODES -e GPUS_PER_NODE -e WORLD_SIZE -e SLURM_JOB_ID \
  -e SLURM_NODEID -e SLURM_PROCID -e SLURM_NNODES -e SLURM_RESTART_COUNT -e SLURMD_NODENAME -e CUDA_VISIBLE_DEVICES \
  -e RUN_DIR -e DIRTY -e SEEN -e PYTHONFAULTHANDLER -e NCCL_DEBUG -e NCCL_DEBUG_FILE \
  -e TORCH_NCCL_DUMP_ON_TIMEOUT -e TORCH_FR_BUFFER_SIZE -e TORCH_NCCL_TRACE_BUFFER_SIZE -e TORCH_FR_DUMP_TEMP_FILE -e TORCH_NCCL_DEBUG_INFO_TEMP_FILE -e WANDB_RUN_ID \
  -e WANDB_RESUME -e NVTE_FLASH_ATTN \
  megatron:dev \
  bash -c "$GUARDS$MARK"'
    exec uv run python -m torch.distributed.run \
      --nnodes="$NNODES" \
      --nproc-per-node="$GPUS_PER_NODE" \
      --node-rank="$SLURM_NODEID" \
      --master-addr="$MASTER_ADDR" \
      --master-port="$MASTER_PORT" \
      --role="${SLURMD_NODENAME:-$HOSTNAME}:" --tee=3 --log-dir="$RUN_DIR/${SLURMD_NODENAME:-node-$SLURM_NODEID}" \
      "$@"
  ' _ pretrain_gpt.py "${ARGS[@]}"

# The specification, for megatron-ops import; sha256 of the text above: a2dc9c419071171d233a823a25b6ea12ceb991603e2abc3db581764a2991fbab
#| name: lr-sweep
#| nodes: 2
#| gpus_per_node: 8
#| array: 0-7%4
#| sweep:
#|   - "lr=1e-4,3e-4"
#|   - seed=1..2
#|   - "env.NVTE_FLASH_ATTN=0,1"
#| worktree: /lustre/alice/Megatron-LM
#| args:
#|   - "--lr"
#|   - 1e-3
#|   - "--save"
#|   - /lustre/alice/ckpt
#|   - "--load=/lustre/alice/ckpt"
#|   - "--wandb-project"
#|   - lr
#| container:
#|   runtime: docker
#|   image: "megatron:dev"
