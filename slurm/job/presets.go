package job

import (
	"slices"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/near"
)

// A setting is one variable of a preset.
type setting struct {
	name, value string
	older       string // another name of the same variable, which older releases read
	inRunDir    bool   // value is a file name in the folder of the run
}

// shell returns the value as a shell word.
func (s setting) shell() string {
	if s.inRunDir {
		return `"$RUN_DIR/` + s.value + `"`
	}
	return quote(s.value)
}

// A Preset is a named set of environment variables, or an option of the launch.
type Preset struct {
	Name string
	Doc  lang.Text
	// Sets are the variables, as NAME=value.
	Sets []string
}

// These presets change the launch and set no variable.
const (
	joinedLog   = "joined-log"
	perNodeLogs = "per-node-logs"
	gpuUse      = "gpu-use"
	privileged  = "docker-privileged"
)

// presets are the presets that exist at every site.
var presets = []Preset{
	preset("debug-nccl", "what NCCL sees of the network, and which rank desynchronised", "NCCL 看到的网络情况，以及哪个 rank 失去同步",
		"NCCL_DEBUG=INFO", "NCCL_DEBUG_SUBSYS=INIT,NET,GRAPH,ENV", "TORCH_NCCL_DESYNC_DEBUG=1"),
	preset("debug-torch", "torch checks its collectives and shows C++ stacks", "torch 检查集合通信并显示 C++ 调用栈",
		"TORCH_DISTRIBUTED_DEBUG=DETAIL", "TORCH_SHOW_CPP_STACKTRACES=1", "TORCH_CPP_LOG_LEVEL=INFO"),
	preset("debug-cuda", "kernels run one after the other, so that a traceback names the right one; slow", "内核逐个执行，回溯能指到正确的内核；较慢",
		"CUDA_LAUNCH_BLOCKING=1", "TORCH_SHOW_CPP_STACKTRACES=1"),
	preset("offline", "nothing is fetched: for nodes without a way out", "不联网获取任何内容：用于不能访问外网的节点",
		"HF_HUB_OFFLINE=1", "HF_DATASETS_OFFLINE=1", "TRANSFORMERS_OFFLINE=1", "WANDB_MODE=offline", "UV_OFFLINE=1"),
	preset("memory", "less fragmentation of the GPU's memory", "减少显存碎片", "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"),
	preset("ib", "InfiniBand links that flap are given more time", "给抖动的 InfiniBand 链路更多时间", "NCCL_IB_TIMEOUT=22", "NCCL_IB_RETRY_CNT=13"),
	preset("ethernet", "NCCL keeps off InfiniBand", "NCCL 不使用 InfiniBand", "NCCL_IB_DISABLE=1"),
	preset(joinedLog, "all ranks in one file as well, NAME-JOBID.log", "所有 rank 另外合并写入一个文件 NAME-JOBID.log"),
	preset(perNodeLogs, "a pair of logs for each node, NAME-JOBID-NODE", "每个节点一对日志 NAME-JOBID-NODE"),
	preset(gpuUse, "every node notes how busy its GPUs are, every five minutes, beside the traces", "每个节点每五分钟把 GPU 利用率记录在诊断文件旁"),
	preset(privileged, "docker run --privileged, which most sites forbid", "docker run --privileged，多数站点禁止"),
}

func preset(name, en, zh string, sets ...string) Preset {
	return Preset{Name: name, Doc: lang.Text{EN: en, ZH: zh}, Sets: sets}
}

// Presets lists the presets that exist at every site.
func Presets() []Preset { return slices.Clone(presets) }

// PresetFaults returns the faults in a specification's presets at a site. Validate
// cannot check them, because it does not know the presets of the site.
func (site Site) PresetFaults(s Spec) []*FieldError {
	_, err := expandPresets(s.Preset, site)
	return AsFieldErrors(err)
}

// expandPresets returns the variables of the named presets. A preset of the site
// replaces the built-in preset of the same name. If several presets set a variable,
// the last one wins. Every error is FieldErrors.
func expandPresets(names []string, site Site) ([]setting, error) {
	var out []setting
	at := map[string]int{}
	for _, n := range names {
		row := slices.IndexFunc(presets, func(p Preset) bool { return p.Name == n })
		ok := row >= 0
		var set []setting
		if ok {
			for _, s := range presets[row].Sets {
				k, v, _ := strings.Cut(s, "=")
				set = append(set, setting{name: k, value: v})
			}
		}
		if own, is := site.Presets[n]; is {
			set, ok = nil, true
			for _, k := range sorted(own) {
				if envNameGrammar.check(k) != fine || isDenied(k) || slices.Contains(internalNames, k) || setByScript[k] != fine {
					return nil, FieldErrors{{Field: "preset", Value: n, Msg: phrase("sets %q, which a script may not set", "设置了脚本不允许设置的 %q", k), Fix: phrase("mend the preset in the configuration", "请修正配置中的 preset")}}
				}
				set = append(set, setting{name: k, value: own[k]})
			}
		}
		if !ok {
			known := sorted(site.Presets)
			for _, p := range presets {
				known = append(known, p.Name)
			}
			fix := oneOfThese(known)
			if meant := near.Word(n, known, min(3, len(n)/2)); meant != "" {
				fix = phrase("did you mean %s?", "您是不是要用 %s？", meant)
			}
			return nil, FieldErrors{{Field: "preset", Value: n, Msg: phrase("is not a preset", "不是已有的 preset"), Fix: fix}}
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
