package cluster

import (
	"context"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/slurm"
)

var nodeForm = lazy.New(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

// NodeProcesses lists processes that jobs may have left on a node. It uses ssh from the
// machine where Slurm's commands run, because a drained node accepts no job for the
// inspection.
func (c *CLI) NodeProcesses(ctx context.Context, node string) ([]slurm.Process, error) {
	op := "processes of " + node
	if !nodeForm.MatchString(node) {
		return nil, &slurm.Error{Op: op, Kind: slurm.Rejected, Msg: lang.Text{EN: "%q is not a node name", ZH: "%q 不是节点名"}.With(node)}
	}
	r, err := c.run(ctx, command{
		argv:  []string{"ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=5", "-o", "ClearAllForwardings=yes", "--", node, "ps", "-eo", slurm.ProcessFormat},
		env:   c.Environ(),
		limit: 15 * time.Second,
	})
	if err != nil {
		return nil, withOp(op, err)
	}
	if r.code != 0 {
		e := refusal(op, r)
		e.Kind, e.Fix = slurm.Unreachable, lang.Text{
			EN: "log in to the node by hand: ssh needs a key there, and many sites let people in only while they have a job on it",
			ZH: "请手动登录该节点：需要 ssh 密钥，且许多站点只允许在有作业时登录",
		}
		return nil, e
	}
	return slurm.ParseProcesses(r.stdout), nil
}
