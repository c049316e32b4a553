package job

import (
	"slices"
	"strconv"
	"strings"
)

// A setting is one variable of a preset.
type setting struct {
	name, value string
	inRunDir    bool // value is a plain file name below the run's own folder
}

// shell is the value as the script writes it.
func (s setting) shell() string {
	if s.inRunDir {
		return `"$RUN_DIR/` + s.value + `"`
	}
	return quote(s.value)
}

// presets are the sets of variables that every site has, by name.
var presets = map[string][]setting{
	"debug-nccl": {
		{name: "NCCL_DEBUG", value: "INFO"},
		{name: "NCCL_DEBUG_SUBSYS", value: "INIT,NET,GRAPH,ENV"},
		{name: "TORCH_NCCL_DESYNC_DEBUG", value: "1"},
	},
	"debug-torch": {
		{name: "TORCH_DISTRIBUTED_DEBUG", value: "DETAIL"},
		{name: "TORCH_SHOW_CPP_STACKTRACES", value: "1"},
		{name: "TORCH_CPP_LOG_LEVEL", value: "INFO"},
	},
	"debug-cuda": {
		{name: "CUDA_LAUNCH_BLOCKING", value: "1"},
		{name: "TORCH_SHOW_CPP_STACKTRACES", value: "1"},
	},
	"offline": {
		{name: "HF_HUB_OFFLINE", value: "1"},
		{name: "HF_DATASETS_OFFLINE", value: "1"},
		{name: "TRANSFORMERS_OFFLINE", value: "1"},
		{name: "WANDB_MODE", value: "offline"},
		{name: "UV_OFFLINE", value: "1"},
	},
	"memory": {
		{name: "PYTORCH_CUDA_ALLOC_CONF", value: "expandable_segments:True"},
	},
	"ib": {
		{name: "NCCL_IB_TIMEOUT", value: "22"},
		{name: "NCCL_IB_RETRY_CNT", value: "13"},
	},
	joinedLog:   {},
	perNodeLogs: {},
	privileged:  {},
	"ethernet": {
		{name: "NCCL_IB_DISABLE", value: "1"},
	},
}

// The presets that change the launch and set no variable.
const (
	joinedLog   = "joined-log"        // all ranks in one file as well
	perNodeLogs = "per-node-logs"     // a pair of logs for each node
	privileged  = "docker-privileged" // docker run --privileged
)

// expandPresets looks up presets, the site's own first. A later one wins.
func expandPresets(names []string, site Site) ([]setting, error) {
	var out []setting
	at := map[string]int{}
	for _, n := range names {
		set, ok := presets[n]
		if own, is := site.Presets[n]; is {
			set, ok = nil, true
			for _, k := range sorted(own) {
				if envNameGrammar.check(k) != "" || isDenied(k) || slices.Contains(taken, k) || ours[k] != "" {
					return nil, FieldErrors{{Field: "preset", Value: n, Msg: "sets " + strconv.Quote(k) + ", which a script may not set", Fix: "mend the preset in the configuration"}}
				}
				set = append(set, setting{name: k, value: own[k]})
			}
		}
		if !ok {
			known := append(sorted(presets), sorted(site.Presets)...)
			return nil, FieldErrors{{Field: "preset", Value: n, Msg: "is not a preset", Fix: "one of " + strings.Join(known, ", ")}}
		}
		for _, s := range set {
			if i, twice := at[s.name]; twice {
				out[i] = s
				continue
			}
			at[s.name] = len(out)
			out = append(out, s)
		}
	}
	return out, nil
}
