#!/bin/bash -l
#SBATCH --job-name=all --nodes=2-4
#SBATCH -n 8 --gres=gpu:a100:4,shm:1 # a remark
#SBATCH --mem 64G -t1:00:00 --exclusive=user
  #SBATCH --qos=late
#SBATCH --no-such=1
# SBATCH --partition=x
set -euo pipefail
#SBATCH --time=2
export A=1 B="two words" C
declare -x D=4; readonly E=5; local_only=6; unset C
cd "$SLURM_SUBMIT_DIR" && mkdir -p logs || exit 1
source ./env.sh
say() { local who=${1:-nobody}; echo "$who $#" >&2; return 0; }
say me 'and you' | tee -a log.txt
never() { echo never; }
for host in $(scontrol show hostnames "$SLURM_NODELIST"); do ssh "$host" nvidia-smi -L; done
for n in 1 2 3; do TOTAL=$((TOTAL + n)); done
while read -r line; do echo "$line"; done < hosts.txt
until [ -f ready ]; do sleep 1; done
case "$PARTITION" in gpu*|dev) GPUS=8 ;; cpu) GPUS=0 ;; *) GPUS=${GPUS:?no GPUs} ;; esac
if [[ $GPUS -gt 4 && -n "${WANDB:-}" ]]; then echo many; elif ((GPUS == 0)); then echo none; else echo few; fi
trap 'echo signalled; exit 3' TERM USR1
trap '' INT
trap - HUP
train &
wait $!
false || true
! grep -q x file
time -p sleep 1
HEAD=$(hostname -s) PORT=$((20000 + SLURM_JOB_ID % 10000))
read -r FIRST REST <<< "alpha beta gamma"
mapfile -t LINES < <(printf 'a\nb\n')
cat > run.sh <<EOF
export HEAD=$HEAD
torchrun --nnodes=\$SLURM_NNODES --node_rank=\$SLURM_NODEID --rdzv-endpoint="$HEAD:$PORT" train.py --x "\$1"
EOF
cat <<-'EOF' | tee other.sh
	python -u other.py $HOME
	EOF
chmod +x run.sh
srun --ntasks-per-node=1 --export=ALL,X=1 --container-image=nvcr.io/nvidia/pytorch:25.01-py3 --container-mounts=/data:/data:ro,$PWD:/work --container-workdir /work bash ./run.sh "$A"
srun -N1 -n1 --overlap env -u B Y=2 python3 -m torch.distributed.launch --nproc_per_node 4 pretrain_gpt.py --bf16 "${LINES[@]}" \
  --save /ckpt/$SLURM_JOB_ID \ 
  --load /ckpt
docker run --rm --gpus all -e A -e Z=9 --env-file vars.env -v /data:/data -w /data --network=host image:tag bash -c 'python pretrain_gpt.py --flag $A'
singularity exec --nv -B /a:/b,/c image.sif torchrun --standalone --nproc-per-node=gpu train.py
apptainer run --cleanenv --bind /a image.sif python x.py
podman run -it --mount type=bind,source=/s,target=/t img accelerate launch --num_processes 8 a.py
mpirun -np 8 -x A -H h1,h2 python pretrain_gpt.py
salloc -N 2 srun deepspeed --num_gpus 8 train.py --deepspeed
pdsh -w node[1-2] 'cd /x; python y.py'
nohup timeout 10m nice -n 5 numactl -N 0 python z.py > out.log 2>&1 &
xargs -n1 echo < list
eval "V=1; export W=\$V"
exec > >(tee all.log) 2>&1
sbatch --dependency=afterok:$SLURM_JOB_ID next.sh
sbatch --wrap "python post.py --in $A"
sbatch <<'EOF'
#!/bin/sh
#SBATCH -N 1
echo inner
EOF
while getopts "ab:" o; do echo "$o $OPTARG"; done
shift 2; echo "$@" "$1" "$#" "$?" "$$" "$!" "${0##*/}"
( cd /tmp; umask 077; echo "$PWD" ); { echo grouped; echo "${BASH_SOURCE[0]}"; }
printf -v STAMP '%(%F)T' -1; echo "$STAMP" "${STAMP//-/}" "${HEAD%%.*}" "${A:+yes}" "${UNSET:=given}" "$UNSET"
arr=(x "y z"); arr+=(w); echo "${arr[1]}" "${#arr[@]}" "${arr[@]:1:2}"
coproc C1 { cat; }
select s in a b; do break; done
echo done; exit 0
echo unreachable
