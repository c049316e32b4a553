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

// BenchmarkMatchHarmlessLine measures a line that has a literal of the largest expressions and matches
// none, such as a data loader writes for each of its files.
func BenchmarkMatchHarmlessLine(b *testing.B) {
	table := LoadTable()
	for b.Loop() {
		if table.Match("loading shard 7 of the corpus, file /data/part-77.bin") != nil {
			b.Fatal("a harmless line matches")
		}
	}
}
