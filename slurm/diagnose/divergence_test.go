package diagnose

import (
	"fmt"
	"strings"
	"testing"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose/scan"
	"github.com/stretchr/testify/require"
)

// A run has diverged if its last lines say so; earlier bad values that recovered do not count.
func TestALossThatStaysUpHasDiverged(t *testing.T) {
	for name, tt := range map[string]struct {
		losses string
		from   int // line of the beginning, from 1; 0 for none
	}{
		"NaN three times":          {"2 2 2 nan nan nan", 4},
		"NaN twice":                {"2 2 2 2 nan nan", 0},
		"NaN twice and no more":    {"nan nan", 1},
		"NaN once and no more":     {"nan", 0},
		"NaN that ended":           {"2 2 nan nan nan 2", 0},
		"a jump that stays":        {"2 2 2 9 9 9", 4},
		"a jump of two lines":      {"2 2 2 2 9 9", 0},
		"a jump in five lines":     {"2 2 9 9 9", 0},
		"a jump that comes back":   {"2 2 2 9 9 9 2", 0},
		"twice as much":            {"2 2 2 4 4 4", 0},
		"a little more than twice": {"2 2 2 4.1 4.1 4.1", 4},
		"a jump that wavers":       {"2 2 2 9 3 9 9 9", 6},
		"a longer jump":            {"2 2 2 2 2 9 9 9 9", 6},
		"a line without its loss":  {"2 2 2 - 9 9 9", 0},
		"a run that learns":        {"9 7 5 4 3 2", 0},
		"negative":                 {"-2 -2 -3 -2 -2 -2", 0},
		"negative, and it learns":  {"-2 -3 -4 -5 -6 -7", 0},
		"it rises a little":        {"-9 -8 -9 -7 -7 -7", 0},
		"around 0":                 {"0.1 -0.2 0.1 0.4 0.5 0.4", 0},
		"from 0":                   {"0 1 0 1.9 1.9 1.9", 0},
		"a jump from below 0":      {"-2 -2 -3 9 9 9", 4},
		"twice the range":          {"-1 1 -1 3 3 3", 0},
		"more than that":           {"-1 1 -1 3.1 3.1 3.1", 4},
		"minus infinity":           {"-2 -2 -2 -inf -inf -inf", 4},
	} {
		var lines []scan.Mark
		for i, loss := range strings.Fields(tt.losses) {
			text := fmt.Sprintf("iteration %d/ 99 | lm loss: %s | grad norm: 1.0 |", i+1, loss)
			lines = append(lines, scan.Mark{Off: int64(i + 1), Text: strings.ReplaceAll(text, "loss: - ", "")})
		}
		m, ok := diverged(lines)
		require.Equal(t, tt.from > 0, ok, name)
		require.Equal(t, int64(tt.from), m.Off, name)
	}
}
