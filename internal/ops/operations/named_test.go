package operations

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/opstest"
)

// do carries the operation of that name out.
func do(t *testing.T, c *ops.Call, name string, words ...string) (any, error) {
	t.Helper()
	op, ok := lookup(name)
	require.True(t, ok, name)
	return opstest.Do(t, c, op, words...)
}

func lookup(name string) (ops.Op, bool) { return Lookup(name) }
func operations() []ops.Op              { return All() }
