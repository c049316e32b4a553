#!/bin/bash
# Rendered by megatron-ops v0.0.0 from specification sha256:e1b3d7de4639ea501b0ba2f0adf01c73a99e603e320d1ae8d825c2bac26ed845
# shellcheck disable=SC1003,SC1112,SC2016,SC2088,SC2089,SC2090 # single quotes hold literal text, or text for the nodes
#SBATCH --job-name=tricky_1.0
#SBATCH --constraint=[a100*2&h100*2]
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --gres=gpu:4
#SBATCH --exclude=gpu[07-09]
#SBATCH --begin="16:00 12/24/30"
#SBATCH --comment="said \"go\", it's 100%"
#SBATCH --output=logs/%x-%j.out
#SBATCH --error=logs/%x-%j.err

set -euo pipefail
cd '/lustre/a b/it'\''s'

MASTER_ADDR=$(set +o pipefail; scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n1)
export MASTER_ADDR
export MASTER_PORT=${MASTER_PORT:-29500}
export NNODES=$SLURM_NNODES
export GPUS_PER_NODE=4
export WORLD_SIZE=$((NNODES * GPUS_PER_NODE))

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
echo "start: attempt=${SLURM_RESTART_COUNT:-0} node=$SLURM_NODEID host=${SLURMD_NODENAME:-$HOSTNAME} ranks=$((SLURM_NODEID * GPUS_PER_NODE))-$(((SLURM_NODEID + 1) * GPUS_PER_NODE - 1)) \
commit=$(git rev-parse --short=12 HEAD 2>/dev/null || echo unknown) dirty=$DIRTY argv=$(printf "%s\0" "$@" | short) \
env=$(env | grep -E "^(CUDA_|NCCL_|TORCH_|PYTHON|UV_|OMP_|NVTE_)" | grep -v VISIBLE_DEVICES | LC_ALL=C sort | short)" | tee "$RUN_DIR/start-$SLURM_NODEID"
'

export NCCL_IB_HCA='=mlx5_0:1,mlx5_1:1'
export T_EMPTY=''
export T_LIST='a,b,c=d'

# Guards: proof of a fault stops the job, a doubt is one line (guards: false leaves them out).
guard() { echo "guard: $1: ${SLURMD_NODENAME:-$HOSTNAME}: $2" >&2; [[ $1 != stop ]] || { sleep 1; exit 3; }; }
[[ $NNODES == 2 ]] || guard stop "nodes: 2 asked for, $NNODES given"
getent hosts "$MASTER_ADDR" >/dev/null 2>&1 || guard warning "$MASTER_ADDR does not resolve, or getent is missing"
[[ $DIRTY != unknown ]] || guard warning "git is missing, or $PWD is no checkout: the start marks carry no commit"
! (: <"/dev/tcp/127.0.0.1/$MASTER_PORT") 2>/dev/null || guard stop "port $MASTER_PORT is taken on $MASTER_ADDR; choose another master_port"
[[ -x .venv/bin/python ]] || guard warning 'no virtual environment in .venv; without one uv run builds it on every node: run uv sync first'
case $(stat -f -c %T . 2>/dev/null) in tmpfs|overlayfs|ext2/ext3|xfs|btrfs|zfs) guard warning "$PWD looks local to this node" ;; esac
SEEN=
: >"$RUN_DIR/seen"
for SHARED in pretrain_gpt.py .venv "$RUN_DIR/seen"; do [[ ! -e $SHARED ]] || SEEN+=$SHARED$'\n'; done
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

ARGS=(
  --title 'it'\''s' '$HOME' '`id`' 'a\b' $'two\nlines' '' 'é' '中文' 'fi' 'a,b' -n
)

# One task a node. The text in single quotes is read there, not here.
srun --ntasks="$NNODES" --ntasks-per-node=1 --kill-on-bad-exit=1 --wait=60 --unbuffered --label \
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

# The specification, for megatron-ops import; sha256 of the text above: 7037b109759ecd974621df477282e58a1610511150c331fb2ad11ae0bda29fc2
#| name: tricky_1.0
#| constraint: "[a100*2&h100*2]"
#| nodes: 2
#| gpus_per_node: 4
#| gpu_request: gres
#| exclude: "gpu[07-09]"
#| begin: "16:00 12/24/30"
#| comment: "said \"go\", it's 100%"
#| worktree: "/lustre/a b/it's"
#| args:
#|   - "--title"
#|   - "it's"
#|   - "$HOME"
#|   - "`id`"
#|   - "a\\b"
#|   - "two\nlines"
#|   - ""
#|   - "é"
#|   - "中文"
#|   - fi
#|   - "a,b"
#|   - "-n"
#| env:
#|   NCCL_IB_HCA: "=mlx5_0:1,mlx5_1:1"
#|   T_EMPTY: ""
#|   T_LIST: "a,b,c=d"
