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

// A word that is no operation is answered with the one that was likely meant; a word that is near to none, with none.
func TestAWordThatIsNoOperation(t *testing.T) {
	t.Parallel()
	for word, near := range map[string]string{"Submt": "submit", "diagnos": "diagnose", "staus": "status", "zq": "", "xqzvwjkyqzv": "", "sbatch-hold": ""} {
		_, is := Lookup(word)
		require.False(t, is, word)
		require.Equal(t, near, Nearest(word), word)
	}
	o, is := Lookup("submit")
	require.True(t, is)
	require.Equal(t, "submit", o.Name)
}
