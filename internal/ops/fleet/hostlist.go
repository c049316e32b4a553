package fleet

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/view"
	"github.com/megatron-ops/megatron-ops/slurm/hostlist"
)

// Hostlist returns the operation hostlist.
func Hostlist() ops.Op {
	return ops.Define(ops.Op{
		Name: "hostlist", Effect: ops.Read, Toolset: ops.NodesSet, Closed: true,
		Summary: lang.Text{EN: "expand node-[42,49-51] to names, or compress names", ZH: "展开 node-[42,49-51] 形式的节点列表，或压缩节点名"},
		Help:    lang.Text{EN: "Use instead of scontrol show hostnames, also without Slurm.", ZH: "可代替 scontrol show hostnames，没有 Slurm 也能用。"},
		Example: "hostlist 'node-[42,49-51]'",
	}, expandHosts)
}

// HostlistIn is a list of nodes in either form.
type HostlistIn struct {
	Nodes    []string `json:"nodes" arg:"" help:"node-[42,49-51], or names to compress" zh:"node-[42,49-51]，或要压缩的节点名"`
	Compress bool     `json:"compress,omitempty" help:"write the short form" zh:"输出压缩形式"`
	Slots    int      `json:"slots,omitempty" help:"write a hostfile with so many slots a node" zh:"输出 hostfile，每节点 slots 个"`
}

// HostlistOut is the list of nodes in both forms.
type HostlistOut struct {
	Nodes    []string `json:"nodes"`
	Hostlist string   `json:"hostlist"`
	Count    int      `json:"count"`
	Hostfile string   `json:"hostfile,omitempty"` // as MPI and DeepSpeed read it
	compress bool
}

// View shows the short form and the names.
func (o HostlistOut) View(lang.Lang) view.Doc {
	return view.Doc{Title: fmt.Sprintf("%s (%d)", o.Hostlist, o.Count), Sections: []view.Section{{Code: strings.Join(o.Nodes, "\n")}}}
}

func expandHosts(_ context.Context, _ *ops.Call, in HostlistIn) (HostlistOut, error) {
	names, err := hostlist.Expand(strings.Join(in.Nodes, ","))
	if err != nil {
		return HostlistOut{}, ops.InputError("nodes", lang.Said(err), lang.Text{EN: "for example gpu[01-04,07]", ZH: "例如 gpu[01-04,07]"})
	}
	out := HostlistOut{Nodes: names, Hostlist: hostlist.Compress(names), Count: len(names), compress: in.Compress}
	if in.Slots < 0 || in.Slots > 0 && in.Compress {
		return out, ops.InputError("slots",
			lang.Text{EN: "a hostfile has a line a node, each with its slots", ZH: "hostfile 每个节点一行，各带 slots"},
			lang.Text{EN: "a number such as 8, without compress", ZH: "数字，例如 8，并去掉 compress"})
	}
	if in.Slots > 0 {
		for _, n := range names {
			out.Hostfile += fmt.Sprintf("%s slots=%d\n", n, in.Slots)
		}
	}
	return out, nil
}

// nodeNames returns the names in a hostlist that a command on the cluster is to get:
// at least one, each a possible name of a node.
func nodeNames(list string) ([]string, error) {
	names, err := hostlist.Expand(list)
	message := lang.Text{EN: "%q is no list of nodes", ZH: "%q 不是节点列表"}.With(list)
	if err != nil {
		message = lang.Said(err)
	}
	if err != nil || len(names) == 0 || slices.ContainsFunc(names, func(n string) bool { return !ops.IsLogin(n) }) {
		return nil, ops.InputError("nodes", message, lang.Text{EN: "for example gpu[01-04,07]", ZH: "例如 gpu[01-04,07]"})
	}
	return names, nil
}

// Verbatim prints one name on each line, the short form, or a hostfile, as the call
// asked.
func (o HostlistOut) Verbatim() string {
	switch {
	case o.Hostfile != "":
		return o.Hostfile
	case o.compress:
		return o.Hostlist + "\n"
	}
	return strings.Join(o.Nodes, "\n") + "\n"
}
