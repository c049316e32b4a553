package fleet

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/redact"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// loginsAtOnce is how many nodes are checked at the same time.
const loginsAtOnce = 8

// checkLeftovers looks on each node for leftover processes: a node that was drained because
// a task could not be killed has often recovered by now.
func checkLeftovers(ctx context.Context, c *ops.Call, cl ops.Cluster, nodes []NodeOut) error {
	if !c.OwnHands() && !c.Who.Operator {
		return &ops.Error{Code: ops.NotAllowed, Field: "check", Message: lang.Text{EN: "looking into nodes is the operators'", ZH: "查看节点内部情况需要管理员权限"}, Fix: lang.Text{EN: "ask one, or use your own shell", ZH: "请联系管理员，或在自己的 shell 中执行"}}
	}
	p, err := ops.Capable[interface {
		NodeProcesses(context.Context, string) ([]slurm.Process, error)
	}](cl, lang.Text{EN: "look for processes on its nodes", ZH: "检查节点上的进程"})
	if err != nil {
		return err
	}
	var all sync.WaitGroup
	gate := make(chan struct{}, loginsAtOnce)
	for i := range nodes {
		n := &nodes[i]
		all.Go(func() {
			gate <- struct{}{}
			defer func() { <-gate }()
			var err error
			n.checked = true
			if n.Left, err = p.NodeProcesses(ctx, n.Name); err != nil {
				n.Unseen = redact.Text(redact.Clean(err.Error()))
			}
			for i := range n.Left { // other people's, whose commands may hold their passwords
				n.Left[i].Command = redact.Text(redact.Clean(n.Left[i].Command))
			}
		})
	}
	all.Wait()
	return nil
}

// leftoverText describes the processes that were found on the node.
func (n NodeOut) leftoverText(l lang.Lang) string {
	const few = 5
	switch {
	case !n.checked:
		return ""
	case n.Unseen != "":
		return lang.Text{EN: "; not checked: ", ZH: "；未检查："}.In(l) + n.Unseen
	case len(n.Left) == 0:
		return lang.Text{EN: "; nothing was left there", ZH: "；没有遗留进程"}.In(l)
	}
	var words []string
	for _, p := range n.Left[:min(len(n.Left), few)] {
		words = append(words, fmt.Sprintf("%s %d %s %s", p.User, p.PID, p.State, p.Command))
	}
	return fmt.Sprintf(lang.Text{EN: "; %d left: ", ZH: "；遗留 %d 个："}.In(l), len(n.Left)) + strings.Join(words, "; ")
}
