// Package operations combines the operations of all packages below internal/ops into
// the one table that every surface uses.
package operations

import (
	"context"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/near"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/answers"
	"github.com/megatron-ops/megatron-ops/internal/ops/fleet"
	"github.com/megatron-ops/megatron-ops/internal/ops/jobcontrol"
	"github.com/megatron-ops/megatron-ops/internal/ops/joblogs"
	"github.com/megatron-ops/megatron-ops/internal/ops/launch"
	"github.com/megatron-ops/megatron-ops/internal/ops/pipeline"
	"github.com/megatron-ops/megatron-ops/internal/ops/smoke"
)

// All returns every operation, in the order of the help.
func All() []ops.Op { return all }

var all = compose()

// compose builds the table. The operation ask receives the whole table, so that it can
// answer questions about the operations.
func compose() []ops.Op {
	var list []ops.Op
	list = []ops.Op{
		answers.Constants(),
		launch.Plan(),
		launch.Render(),
		launch.Submit(),
		launch.Sync(),
		pipeline.Submit(),
		pipeline.List(),
		jobcontrol.Status(),
		jobcontrol.List(),
		jobcontrol.Cancel(),
		joblogs.Logs(),
		joblogs.Diagnose(),
		joblogs.Metrics(),
		answers.Ask(func() []ops.Op { return list }),
		answers.Search(),
		answers.Knowledge(),
		answers.Card(),
		jobcontrol.Wait(),
		launch.Lint(),
		launch.Recommend(),
		launch.Memory(),
		launch.Recipes(),
		launch.Import(),
		launch.Diff(),
		joblogs.Compare(),
		joblogs.CheckpointFolder(),
		launch.Image(),
		answers.Rules(),
		jobcontrol.Hold(),
		jobcontrol.Release(),
		jobcontrol.Requeue(),
		jobcontrol.Update(),
		fleet.Nodes(),
		fleet.NodeCheck(),
		fleet.Avoid(),
		fleet.RunCommand(),
		answers.Explain(),
		ops.AuditTrail(),
		fleet.Hostlist(),
		jobcontrol.Queue(),
		jobcontrol.Priority(),
		fleet.Partitions(),
		jobcontrol.Accounts(),
		jobcontrol.History(),
		jobcontrol.KillSwitch(),
		fleet.Cleanup(),
		fleet.Resume(),
		smoke.Smoke(),
		jobcontrol.Events(),
	}
	return list
}

// Lookup returns the operation of that name.
func Lookup(name string) (ops.Op, bool) {
	for _, o := range All() {
		if o.Name == name {
			return o, true
		}
	}
	return ops.Op{}, false
}

// Run runs the operation of that name, which must be one of All's, and returns its output.
func Run[Out any](ctx context.Context, c *ops.Call, name string, in any) (out Out, err error) {
	op, _ := Lookup(name)
	result, err := op.Run(ctx, c, in)
	out, _ = result.(Out)
	return out, err
}

// Nearest returns the operation that word was probably meant to be, or "".
func Nearest(word string) string {
	var names []string
	for _, o := range All() {
		names = append(names, o.Name)
	}
	return near.Word(strings.ToLower(word), names, len(word)/3+2)
}
