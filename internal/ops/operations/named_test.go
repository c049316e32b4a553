package operations

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/opstest"
)

// do runs the operation of that name.
func do(t *testing.T, c *ops.Call, name string, words ...string) (any, error) {
	t.Helper()
	op, ok := Lookup(name)
	require.True(t, ok, name)
	return opstest.Do(t, c, op, words...)
}

// A word that is no operation is answered with the operation that was probably meant,
// if one is similar.
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
