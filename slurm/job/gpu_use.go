package job

import "slices"

// watched reports whether every node records the utilization of its GPUs.
func (r *rendering) watched() bool {
	return slices.Contains(r.Preset, gpuUse) && r.traced() && *r.GPUsPerNode > 0
}

// gpuWatch returns the part of the script that records GPU utilization on each node,
// for as long as the launcher lives. Each sample is one call of nvidia-smi. If
// nvidia-smi gives no usable answer, the node prints one warning; the watch never ends
// a job. The text runs on the nodes and is in single quotes here. On a shared node,
// nvidia-smi may also list the GPUs of other jobs: the watch leaves these out by their
// index, and writes nothing if it cannot tell which GPUs belong to the job.
func (r *rendering) gpuWatch() string {
	if !r.watched() {
		return ""
	}
	return `GPU_USE='  # how busy the GPUs are, every five minutes: time, GPU, percent, MiB in use
` + guardFunction + `watch_gpus() {
  local at line found odd= i mine=,${CUDA_VISIBLE_DEVICES:-},
  [[ $mine =~ ^(,[0-9]+)+,$ ]] || mine=
  while :; do
    at=$(date +%s); found=()
    while IFS= read -r line; do
      if [[ $line =~ ^([0-9]+),\ [0-9]+,\ [0-9]+$ ]] && [[ ! $mine || $mine == *,${BASH_REMATCH[1]},* ]]; then found+=("$at, $line"); fi
    done <<<"$(timeout 60 nvidia-smi --query-gpu=index,utilization.gpu,memory.used --format=csv,noheader,nounits 2>/dev/null)"
    if ((${#found[@]} == GPUS_PER_NODE)); then printf "%s\n" "${found[@]}" >>"$RUN_DIR/gpus-${SLURMD_NODENAME:-$HOSTNAME}.csv"
    elif [[ ! $odd ]]; then odd=1; guard warning "nvidia-smi does not say how busy the $GPUS_PER_NODE GPUs of this job are"; fi
    for ((i = 0; i < 60; i++)); do sleep 5; kill -0 $$ 2>/dev/null || exit; done
  done
}
watch_gpus &
'`
}
