#!/bin/bash
# Rendered by megatron-ops v0.0.0 from specification sha256:47008e33d3dbf5c9a45fd7c87ecc814824be17cba5f99df767ba4d6f807ecad8
# shellcheck disable=SC1003,SC1112,SC2016,SC2088,SC2089,SC2090 # single quotes hold literal text, or text for the nodes
#SBATCH --job-name=scheduled
#SBATCH --account=research
#SBATCH --partition=prod,spare
#SBATCH --qos=urgent
#SBATCH --reservation=maint
#SBATCH --constraint=h100&ib
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=1
#SBATCH --gpus=32
#SBATCH --gpus-per-node=8
#SBATCH --cpus-per-task=48
#SBATCH --mem=1000G
#SBATCH --time=1-12:00:00
#SBATCH --exclusive
#SBATCH --hint=nomultithread
#SBATCH --nodelist=gpu[01-04]
#SBATCH --exclude=gpu[07,09]
#SBATCH --dependency=afterok:4711,afterany:4712:4713
#SBATCH --array=1-8:2%1
#SBATCH --signal=USR1@600
#SBATCH --no-requeue
#SBATCH --mail-user=alice@example.org
#SBATCH --mail-type=END,FAIL,TIME_LIMIT_90
#SBATCH --output=logs/%x-%A_%a.out
#SBATCH --error=logs/%x-%A_%a.err

set -euo pipefail
cd /lustre/alice/Megatron-LM

MASTER_ADDR=$(set +o pipefail; scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n1)
export MASTER_ADDR
export MASTER_PORT=${MASTER_PORT:-29500}
export NNODES=$SLURM_NNODES
export GPUS_PER_NODE=8
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

export NCCL_IB_TIMEOUT=22
export NCCL_IB_RETRY_CNT=13

# Guards: proof of a fault stops the job, a doubt is one line (guards: false leaves them out).
guard() { echo "guard: $1: ${SLURMD_NODENAME:-$HOSTNAME}: $2" >&2; [[ $1 != stop ]] || { sleep 1; exit 3; }; }
[[ $NNODES == 4 ]] || guard stop "nodes: 4 asked for, $NNODES given"
getent hosts "$MASTER_ADDR" >/dev/null 2>&1 || guard warning "$MASTER_ADDR does not resolve, or getent is missing"
[[ $DIRTY != unknown ]] || guard warning "git is missing, or $PWD is no checkout: the start marks carry no commit"
! (: <"/dev/tcp/127.0.0.1/$MASTER_PORT") 2>/dev/null || guard stop "port $MASTER_PORT is taken on $MASTER_ADDR; choose another master_port"
[[ -x .venv/bin/python ]] || guard warning 'no virtual environment in .venv; without one uv run builds it on every node: run uv sync first'
case $(stat -f -c %T . 2>/dev/null) in tmpfs|overlayfs|ext2/ext3|xfs|btrfs|zfs) guard warning "$PWD looks local to this node" ;; esac
SEEN=
: >"$RUN_DIR/seen"
for SHARED in /lustre/alice/Megatron-LM pretrain_gpt.py .venv "$RUN_DIR/seen"; do [[ ! -e $SHARED ]] || SEEN+=$SHARED$'\n'; done
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
  --num-layers 4
  --exit-signal-handler
  --exit-signal SIGUSR1
)

# One task a node. The text in single quotes is read there, not here.
srun --ntasks="$NNODES" --ntasks-per-node=1 --cpus-per-task=48 --kill-on-bad-exit=1 --wait=60 --unbuffered --label --output=logs/%x-%A_%a-%N.out --error=logs/%x-%A_%a-%N.err \
  bash -c 'trap "echo told to end before the ranks started >&2; exit 0" USR1;'"$GUARDS$MARK"'
    trap "" USR1  # for the ranks alone: they save and end, their launcher waits
    exec uv run python -m torch.distributed.run \
      --nnodes="$NNODES" \
      --nproc-per-node="$GPUS_PER_NODE" \
      --node-rank="$SLURM_NODEID" \
      --master-addr="$MASTER_ADDR" \
      --master-port="$MASTER_PORT" \
      --role="${SLURMD_NODENAME:-$HOSTNAME}:" --tee=3 --log-dir="$RUN_DIR/${SLURMD_NODENAME:-node-$SLURM_NODEID}" \
      "$@"
  ' _ pretrain_gpt.py "${ARGS[@]}"

# The specification, for megatron-ops import; sha256 of the text above: a5ca8d7f0c3f93538639aca3e3295cb7784184325123f79782b56e4c11c074e4
#| name: scheduled
#| account: research
#| partition: "prod,spare"
#| qos: urgent
#| reservation: maint
#| constraint: "h100&ib"
#| nodes: 4
#| gpus_per_node: 8
#| gpu_request: gpus
#| cpus_per_task: 48
#| mem: 1000G
#| time: "1-12:00:00"
#| exclusive: true
#| hint: nomultithread
#| nodelist: "gpu[01-04]"
#| exclude: "gpu[07,09]"
#| dependency: "afterok:4711,afterany:4712:4713"
#| array: "1-8:2%1"
#| signal: USR1@600
#| requeue: false
#| mail_user: alice@example.org
#| mail_type: "END,FAIL,TIME_LIMIT_90"
#| worktree: /lustre/alice/Megatron-LM
#| args:
#|   - "--num-layers"
#|   - 4
#| preset:
#|   - per-node-logs
#|   - ib
