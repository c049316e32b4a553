package bot

import (
	"context"

	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/operations"
)

// runOperation runs the operation of that name, which the table of operations must have, and
// returns its output.
func runOperation[Out any](ctx context.Context, c *ops.Call, name string, in any) (out Out, err error) {
	op, _ := operations.Lookup(name)
	result, err := op.Run(ctx, c, in)
	out, _ = result.(Out)
	return out, err
}
