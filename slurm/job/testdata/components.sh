#!/bin/bash
# Rendered by megatron-ops v0.0.0 from specification sha256:011c2d99b609e40ce901532c542846b00684eed4df55128fd3ea4a3025350426
# shellcheck disable=SC1003,SC1112,SC2016,SC2088,SC2089,SC2090 # single quotes hold literal text, or text for the nodes
#SBATCH --job-name=two-kinds
#SBATCH --partition=h100
#SBATCH --constraint=h100
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=8
#SBATCH --cpus-per-task=96
#SBATCH --time=120
#SBATCH --nodelist=gpu[1-2]
#SBATCH --begin=now+1hour
#SBATCH --output=logs/%x-%j.out
#SBATCH --error=logs/%x-%j.err
#SBATCH hetjob
#SBATCH --partition=a100
#SBATCH --qos=low
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=8
#SBATCH --cpus-per-task=64
#SBATCH --mem=500G
#SBATCH --time=120

set -euo pipefail
cd /lustre/alice/Megatron-LM

# srun takes what each component has from the variables of that component.
unset SLURM_NTASKS SLURM_NPROCS SLURM_TRES_PER_TASK SLURM_CPUS_PER_TASK
MASTER_ADDR=$(set +o pipefail; scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n1)
export MASTER_ADDR
export MASTER_PORT=${MASTER_PORT:-29500}
export NNODES=$((SLURM_JOB_NUM_NODES_HET_GROUP_0 + SLURM_JOB_NUM_NODES_HET_GROUP_1))
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

# The image file, on every node.
if [[ -e /images/megatron.sqsh ]]; then
  srun --het-group=0,1 --ntasks-per-node=1 bash -c '[[ -r $1 ]] || {
    echo "guard: stop: ${SLURMD_NODENAME:-$HOSTNAME}: image $1 is on the first node and not here" >&2; exit 3; }
  ' _ /images/megatron.sqsh
else
  guard warning 'image /images/megatron.sqsh is not here'
fi

# The nodes and their slots, for the launcher.
scontrol show hostnames "$SLURM_JOB_NODELIST_HET_GROUP_0,$SLURM_JOB_NODELIST_HET_GROUP_1" | sed "s/\$/ slots=$GPUS_PER_NODE/" >logs/hostfile-"$SLURM_JOB_ID"
export HOSTFILE=/lustre/alice/Megatron-LM/logs/hostfile-$SLURM_JOB_ID

ARGS=(
  --tensor-model-parallel-size 8
)

# One task a node. The text in single quotes is read there, not here.
srun --het-group=0,1 --ntasks-per-node=1 --kill-on-bad-exit=1 --wait=60 --unbuffered --label \
  enroot start --rw \
  --mount /lustre/alice/Megatron-LM:/lustre/alice/Megatron-LM \
  --env MASTER_ADDR --env MASTER_PORT --env NNODES --env GPUS_PER_NODE --env WORLD_SIZE --env SLURM_JOB_ID \
  --env SLURM_NODEID --env SLURM_PROCID --env SLURM_NNODES --env SLURM_RESTART_COUNT --env SLURMD_NODENAME --env CUDA_VISIBLE_DEVICES \
  --env RUN_DIR --env DIRTY --env SEEN --env HOSTFILE --env PYTHONFAULTHANDLER --env NCCL_DEBUG \
  --env NCCL_DEBUG_FILE --env TORCH_NCCL_DUMP_ON_TIMEOUT --env TORCH_FR_BUFFER_SIZE --env TORCH_NCCL_TRACE_BUFFER_SIZE --env TORCH_FR_DUMP_TEMP_FILE --env TORCH_NCCL_DEBUG_INFO_TEMP_FILE \
  /images/megatron.sqsh \
  env --chdir=/lustre/alice/Megatron-LM \
  bash -c "$GUARDS$MARK"'
    ops_n=$1 ops_words=(); shift
    for ops_w in "${@:1:ops_n}"; do  # what a custom launcher may name
      ops_w=${ops_w//"{node_rank}"/"$SLURM_NODEID"}; ops_w=${ops_w//"{nnodes}"/"$NNODES"}; ops_w=${ops_w//"{world_size}"/"$WORLD_SIZE"}
      ops_w=${ops_w//"{gpus_per_node}"/"$GPUS_PER_NODE"}; ops_w=${ops_w//"{master_addr}"/"$MASTER_ADDR"}; ops_w=${ops_w//"{master_port}"/"$MASTER_PORT"}
      ops_w=${ops_w//"{hostfile}"/"${HOSTFILE:-}"}
      ops_words+=("$ops_w")
    done
    exec "${ops_words[@]}" "${@:ops_n+1}"
  ' _ 5 python -m mylauncher --hosts '{hostfile}' pretrain_gpt.py "${ARGS[@]}"

# The specification, for megatron-ops import; sha256 of the text above: 39fcece8cda77d9875bef27e843be6c3ed297476323b8b92a769dcfad6dd1a5b
#| name: two-kinds
#| gpus_per_node: 8
#| cpus_per_task: 96
#| time: 120
#| components:
#|   - "nodes=2 partition=h100 constraint=h100 nodelist=gpu[1-2]"
#|   - "partition=a100 cpus_per_task=64 mem=500G qos=low"
#| begin: now+1hour
#| worktree: /lustre/alice/Megatron-LM
#| args:
#|   - "--tensor-model-parallel-size"
#|   - 8
#| launcher: custom
#| launcher_argv:
#|   - python
#|   - "-m"
#|   - mylauncher
#|   - "--hosts"
#|   - "{hostfile}"
#| container:
#|   runtime: enroot
#|   image: /images/megatron.sqsh
