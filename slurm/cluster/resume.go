package cluster

import (
	"context"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/hostlist"
)

// ResumeNodes gives drained or failed nodes back to the scheduler. Slurm lets
// its operators only.
func (c *CLI) ResumeNodes(ctx context.Context, nodes []string) error {
	if len(nodes) == 0 {
		return &slurm.Error{Op: "resume", Kind: slurm.Rejected, Msg: lang.Text{EN: "no node is named", ZH: "没有指明节点"}}
	}
	list := hostlist.Compress(nodes)
	_, err := c.order(ctx, "resume "+list, queryEnviron(c.Environ()), "scontrol", "update", "NodeName="+list, "State=RESUME")
	return err
}
