#!/bin/bash
# Rendered by megatron-ops v0.0.0 from specification sha256:b28372b6321ae094ee7041f2850f605a0d35d206a68fa1e6ad7e843a4f3538a3
# shellcheck disable=SC1003,SC1112,SC2016,SC2088,SC2089,SC2090 # single quotes hold literal text, or text for the nodes
#SBATCH --job-name=gpt-scratch
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=8
#SBATCH --mem-per-gpu=120G
#SBATCH --segment=2
#SBATCH --switches=1@01:00:00
#SBATCH --nice=100
#SBATCH --comment="lr sweep"
#SBATCH --licenses=fluent:2
#SBATCH --gres=nvme:1
#SBATCH --kill-on-invalid-dep=yes
#SBATCH --contiguous
#SBATCH --output=/scratch/alice/logs/%x-%j.out
#SBATCH --error=/scratch/alice/logs/%x-%j.err

set -euo pipefail
export PATH='/opt/slurm/bin:/opt/my tools/bin':$PATH
cd /lustre/alice/Megatron-LM

MASTER_ADDR=$(set +o pipefail; scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n1)
export MASTER_ADDR
export MASTER_PORT=${MASTER_PORT:-29500}
export NNODES=$SLURM_NNODES
export GPUS_PER_NODE=8
export WORLD_SIZE=$((NNODES * GPUS_PER_NODE))

# What a diagnosis reads, one folder for each attempt (monitor: false leaves it out).
RUN_DIR_HERE=/scratch/alice/logs/$SLURM_JOB_ID/attempt-${SLURM_RESTART_COUNT:-0}
mkdir -p "$RUN_DIR_HERE"
export RUN_DIR=/scratch/alice/logs/$SLURM_JOB_ID/attempt-${SLURM_RESTART_COUNT:-0}
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
: >"$RUN_DIR_HERE/seen"; SEEN+=$RUN_DIR/seen
export SEEN
GUARDS='  # what every node looks at itself
guard() { echo "guard: $1: ${SLURMD_NODENAME:-$HOSTNAME}: $2" >&2; [[ $1 != stop ]] || { sleep 1; exit 3; }; }
look() {
  local p gpu used free=0 odd=
  while IFS= read -r p; do  # a file system may need a moment to show what is new
    [[ -z $p || -e $p ]] || { sleep 5; [[ -e $p ]]; } || guard stop "$p is seen by the first node and not here"
  done <<<"$SEEN"
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

ARGS=()

# One task a node. The text in single quotes is read there, not here.
srun --ntasks="$NNODES" --ntasks-per-node=1 --kill-on-bad-exit=1 --wait=60 --unbuffered --label \
  docker run --rm --init \
  --gpus all --network host --ipc=host --ulimit memlock=-1 --ulimit stack=67108864 \
  -v /lustre:/lustre \
  -v '/data/sets:/data:ro,z' \
  -v /opt/venv:/opt/venv \
  -v /scratch/alice/logs:/scratch/alice/logs \
  -w /lustre/alice/Megatron-LM \
  -e MASTER_ADDR -e MASTER_PORT -e NNODES -e GPUS_PER_NODE -e WORLD_SIZE -e SLURM_JOB_ID \
  -e SLURM_NODEID -e SLURM_PROCID -e SLURM_NNODES -e SLURM_RESTART_COUNT -e SLURMD_NODENAME -e CUDA_VISIBLE_DEVICES \
  -e RUN_DIR -e DIRTY -e SEEN -e PYTHONFAULTHANDLER -e NCCL_DEBUG -e NCCL_DEBUG_FILE \
  -e TORCH_NCCL_DUMP_ON_TIMEOUT -e TORCH_FR_BUFFER_SIZE -e TORCH_NCCL_TRACE_BUFFER_SIZE -e TORCH_FR_DUMP_TEMP_FILE -e TORCH_NCCL_DEBUG_INFO_TEMP_FILE \
  megatron:dev \
  bash -c "$GUARDS$MARK"'
    exec python -m torch.distributed.run \
      --nnodes="$NNODES" \
      --nproc-per-node="$GPUS_PER_NODE" \
      --node-rank="$SLURM_NODEID" \
      --master-addr="$MASTER_ADDR" \
      --master-port="$MASTER_PORT" \
      --role="${SLURMD_NODENAME:-$HOSTNAME}:" --tee=3 --log-dir="$RUN_DIR/${SLURMD_NODENAME:-node-$SLURM_NODEID}" \
      "$@"
  ' _ pretrain_gpt.py "${ARGS[@]}"

# The specification, for megatron-ops import; sha256 of the text above: f44c5d0a115b5f0eeaba5e4a66d4d6242508f8c8a9f0198219bea4e3312c7ef6
#| name: gpt-scratch
#| nodes: 2
#| gpus_per_node: 8
#| mem_per_gpu: 120G
#| segment: 2
#| switches: "1@01:00:00"
#| nice: 100
#| comment: "lr sweep"
#| sbatch:
#|   - "--licenses=fluent:2"
#|   - "--gres=nvme:1"
#|   - "--kill-on-invalid-dep=yes"
#|   - "--contiguous"
#| worktree: /lustre/alice/Megatron-LM
#| path:
#|   - /opt/slurm/bin
#|   - "/opt/my tools/bin"
#| launcher: python
#| container:
#|   runtime: docker
#|   image: "megatron:dev"
#|   mounts:
#|     - "/lustre:/lustre, /data/sets:/data:ro,z /opt/venv"
#| log_dir: /scratch/alice/logs
