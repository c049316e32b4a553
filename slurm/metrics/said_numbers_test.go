package metrics_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
)

// The numbers in a finding's text are those of the log.
func TestFindingsTellTheirNumbers(t *testing.T) {
	slower := read(t, run(160, func(i int) (string, string, string) {
		_, loss, grad := usual(i)
		if i > 120 {
			return "6000.0", loss, grad
		}
		return "4000.0", loss, grad
	})).Check()
	require.Len(t, slower, 1)
	require.Equal(t, "slower", slower[0].ID)
	require.Equal(t, "Iterations take 6000 ms now, 50 % longer than the 4000 ms before.", slower[0].What.In(lang.EN))

	slow := strings.ReplaceAll(run(60, usual), "GPU): 400.0", "GPU): 90.0")
	timer := "(min, max) time across ranks (ms):\n    forward-backward ...............................: (3200.10, 3200.90)\n" +
		"    batch-generator ................................: (900.20, 1200.00)\n"
	for had, asked := range map[string]string{"1": "--num-workers 4", "2": "--num-workers 4", "6": "--num-workers 12"} {
		log := fmt.Sprintf("  num_workers %s %s\n", strings.Repeat(".", 29), had) + slow + timer
		found := readAs(t, "h100", log).Check()
		require.Len(t, found, 1)
		fix := found[0].Fix.In(lang.EN)
		require.Contains(t, fix, "takes 30 % of an iteration", "of the slowest rank's 1200 ms in 4000")
		require.Contains(t, fix, asked+",")
	}
}

// The summary's memory is that of the rank with the most memory, in any order of lines.
func TestThePeakIsTheWorstRanks(t *testing.T) {
	of := func(rank int, mb float64) string {
		return fmt.Sprintf("[Rank %d] (after 2 iterations) memory (MB) | allocated: 1024.00 | max allocated: %.2f | reserved: 2048.00 | max reserved: %.2f\n",
			rank, mb, mb+100)
	}
	for _, log := range []string{of(0, 40000) + of(3, 52000.5) + of(5, 47000), of(3, 52000.5) + of(0, 40000)} {
		s := read(t, run(20, usual)+log).Summary()
		require.NotNil(t, s.MaxMemoryMB)
		require.InDelta(t, 52000.5, *s.MaxMemoryMB, 0.01)
	}
}
