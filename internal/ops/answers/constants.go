package answers

import (
	"context"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/view"
	"github.com/megatron-ops/megatron-ops/knowledge/megatron"
	"github.com/megatron-ops/megatron-ops/knowledge/rules"
)

// ConstantsIn is the part of a configuration that the launch constants depend on.
type ConstantsIn struct {
	Nodes       int    `json:"nodes,omitempty" name:"nodes" help:"number of nodes" zh:"节点数"`
	GPUsPerNode int    `json:"gpus_per_node,omitempty" name:"gpus-per-node" help:"GPUs on each node" zh:"每个节点的 GPU 数"`
	GPU         string `json:"gpu,omitempty" help:"kind of GPU, such as h100 or gb200" zh:"GPU 型号，例如 h100、gb200"`
	TP          int    `json:"tp,omitempty" name:"tp" help:"tensor parallel size" zh:"张量并行大小"`
	CP          int    `json:"cp,omitempty" name:"cp" help:"context parallel size" zh:"上下文并行大小"`
	FSDP        string `json:"fsdp,omitempty" name:"fsdp" enum:",none,torch,megatron" default:"" help:"torch for --use-torch-fsdp2, megatron for --use-megatron-fsdp" zh:"torch 对应 --use-torch-fsdp2，megatron 对应 --use-megatron-fsdp"`
	MoEOverlap  bool   `json:"moe_overlap,omitempty" name:"moe-overlap" help:"--overlap-moe-expert-parallel-comm is on" zh:"是否启用 --overlap-moe-expert-parallel-comm"`
}

// ConstantsOut holds the launch constants, the most asked ones first.
type ConstantsOut struct {
	Constants []ConstantOut `json:"constants"`
}

// A ConstantOut is one launch constant with its reason.
type ConstantOut struct {
	Name   string `json:"name"`
	Value  string `json:"value"`
	Reason string `json:"reason"`
	Source string `json:"source,omitempty"`

	title lang.Text
}

// Constants returns the operation constants.
func Constants() ops.Op {
	return ops.Define(ops.Op{
		Name: "constants", Effect: ops.Read, Toolset: ops.PlanSet, Core: true, Closed: true,
		Summary: lang.Text{EN: "the launch constants for a configuration, each with its reason", ZH: "某个配置的启动常量及其理由"},
		Help: lang.Text{
			EN: "Use first for any question about how Megatron-LM is launched on Slurm: worktree, srun, torch.distributed.run, MASTER_ADDR, " +
				"WORLD_SIZE, CUDA_DEVICE_MAX_CONNECTIONS. For a whole script use render.",
			ZH: "关于如何在 Slurm 上启动 Megatron-LM 的问题先看这里：工作树、srun、torch.distributed.run、MASTER_ADDR、WORLD_SIZE、CUDA_DEVICE_MAX_CONNECTIONS。需要完整脚本时用 render。",
		},
		Example: "constants --nodes 2 --gpus-per-node 8 --gpu h100 --tp 4",
	}, constants)
}

func constants(_ context.Context, c *ops.Call, in ConstantsIn) (ConstantsOut, error) {
	arch := 0
	if in.GPU != "" {
		a, ok := megatron.GPUArch(in.GPU)
		if !ok {
			return ConstantsOut{}, ops.InputError("gpu",
				lang.Text{EN: "GPU %q is not known", ZH: "不认识 GPU %q"}.With(in.GPU),
				lang.Text{EN: "for example h100, h200, a100, b200, gb200", ZH: "例如 h100、h200、a100、b200、gb200"})
		}
		arch = a
	}
	for field, n := range map[string]int{"nodes": in.Nodes, "gpus_per_node": in.GPUsPerNode, "tp": in.TP, "cp": in.CP} {
		if n < 0 {
			return ConstantsOut{}, ops.NegativeError(field, n, lang.Text{EN: "a number of 1 or more", ZH: "大于等于 1 的数"})
		}
	}
	cfg := rules.Config{
		Nodes: in.Nodes, GPUsPerNode: in.GPUsPerNode, Arch: arch, TP: in.TP, CP: in.CP,
		TorchFSDP2: in.FSDP == "torch", MegatronFSDP: in.FSDP == "megatron", MoEOverlap: in.MoEOverlap,
	}
	out := ConstantsOut{Constants: []ConstantOut{}}
	for _, k := range rules.Constants(cfg) {
		out.Constants = append(out.Constants, ConstantOut{Name: k.Name, Value: k.Value, Reason: k.Reason.In(c.Lang), Source: k.Source, title: k.Title()})
	}
	return out, nil
}

// View lists the constants, each with its reason below.
func (o ConstantsOut) View(l lang.Lang) view.Doc {
	d := view.Doc{Title: lang.Text{EN: "launch constants", ZH: "启动常量"}.In(l)}
	s := view.Section{}
	for _, k := range o.Constants {
		s.Facts = append(s.Facts, view.Fact{Name: k.title.In(l), Value: k.Value + "\n" + k.Reason})
	}
	d.Sections = []view.Section{s}
	return d
}
