package metrics_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/slurm/metrics"
)

// looks is the file of GPU 0 with one sample every five minutes.
func looks(busy ...int) string {
	var b strings.Builder
	for i, v := range busy {
		fmt.Fprintf(&b, "%d, 0, %d, 40000\n", 1_780_000_000+300*i, v)
	}
	return b.String()
}

func TestLooksAreReadByGPU(t *testing.T) {
	got := metrics.ReadGPULooks("n1", "0, 4, 5\n1780000000, 0, 97, 40000\n1780000000, 1, 0, 3\n1780000300, 0, 12, 41000\n1780000300, x, 0, 3\n1780000300, 1, 101, 3\n1780000300, 1, -1, 3\n")
	at := time.Unix(1_780_000_000, 0)
	require.Equal(t, []metrics.WatchedGPU{
		{Node: "n1", GPU: 0, Looks: []metrics.GPULook{{At: at, BusyPct: 97, UsedMB: 40000}, {At: at.Add(5 * time.Minute), BusyPct: 12, UsedMB: 41000}}},
		{Node: "n1", GPU: 1, Looks: []metrics.GPULook{{At: at, BusyPct: 0, UsedMB: 3}}},
	}, got)
}

// A GPU is idle if every sample of twenty minutes shows it idle.
func TestAGPUIsIdleWhereNoLookFoundItBusy(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		idle bool
	}{
		"for twenty minutes":        {looks(97, 0, 0, 0, 0, 0), true},
		"from the beginning":        {looks(0, 0, 0, 0, 0, 0), true},
		"for a quarter of an hour":  {looks(97, 97, 0, 0, 0, 0), false},
		"but once":                  {looks(0, 0, 0, 1, 0, 0), false},
		"until now":                 {looks(0, 0, 0, 0, 0, 50), false},
		"by two looks far from one": {"1780000000, 0, 0, 3\n1780005000, 0, 0, 3\n", false},
	} {
		g := metrics.ReadGPULooks("n1", c.text)
		require.Len(t, g, 1)
		since, idle := g[0].Idle()
		require.Equal(t, c.idle, idle, name)
		if name == "for twenty minutes" {
			require.Equal(t, int64(1_780_000_300), since.Unix())
		}
	}
}
