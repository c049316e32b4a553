package cluster

import (
	"cmp"
	"context"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/hostlist"
)

// Visit runs a command once on each of the named nodes, as a job of its own. The
// returned output consists of whole lines of the nodes in any order, even where the
// command failed on some nodes, so the command itself must print its node's name.
func (c *CLI) Visit(ctx context.Context, v slurm.Visit) (string, error) {
	op := "visit " + hostlist.Compress(v.Nodes)
	if len(v.Nodes) == 0 {
		return "", &slurm.Error{Op: "visit", Kind: slurm.Rejected, Msg: lang.Text{EN: "no node is named", ZH: "没有指明节点"}}
	}
	v.Limit = cmp.Or(v.Limit, time.Minute)
	env := append(queryEnviron(JobEnviron(c.Environ())), "SLURM_EXPORT_ENV=ALL")
	r, err := c.run(ctx, command{argv: append([]string{"srun"}, v.Args()...), env: env, limit: v.Limit})
	if err != nil {
		return r.stdout, withOp(op, err)
	}
	if r.code != 0 {
		failed := srunFailed(op, r)
		failed.Fix = lang.Text{
			EN: "a node that is drained, down or full takes no visit: log in there, or ask the operators",
			ZH: "已排空、宕机或占满的节点无法访问：请登录该节点处理，或联系管理员",
		}
		return r.stdout, failed
	}
	return r.stdout, nil
}
