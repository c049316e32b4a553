package pattern

import (
	"regexp"
	"strings"
	"testing"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/stretchr/testify/require"
)

// TestEveryRowIsWellFormed compiles all expressions, which a diagnosis compiles only on use, and checks
// that each literal can match.
func TestEveryRowIsWellFormed(t *testing.T) {
	for _, p := range append(append([]pattern(nil), patterns...), harmlessPatterns...) {
		_, err := regexp.Compile("(?i)" + p.re)
		require.NoError(t, err, p.re)
		require.NotEmpty(t, p.on)
		for _, w := range p.on {
			require.NotEmpty(t, w, p.re)
			require.Equal(t, strings.ToLower(w), w, "literals are compared in lower case")
		}
		if p.Class != "" {
			require.Equal(t, p.Class, outcome.Of(p.Class).ID)
		}
	}
}
