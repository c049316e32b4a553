package job

import "slices"

// watched reports whether every node looks at its GPUs while they train.
func (r *rendering) watched() bool {
	return slices.Contains(r.Preset, gpuUse) && r.traced() && *r.GPUsPerNode > 0
}

// gpuWatch is how busy a node's GPUs are, looked at beside the ranks for as long as
// their launcher lives. One look is one nvidia-smi, and what it cannot say is one
// warning: nothing here ends a job. Its text is for the nodes, in single quotes. On
// a node that is shared nvidia-smi may show the GPUs of other jobs too: these are
// left out by their numbers, and where that cannot be told nothing is written.
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
