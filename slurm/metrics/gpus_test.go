package metrics_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/slurm/metrics"
)

func TestGPUSamplesAreReadByGPU(t *testing.T) {
	got := metrics.ReadGPUs("n1", "0, 40000, 81559, 97\n1, 41000, 81559, [N/A]\nNo devices were found\n0, 60000, 81559, 12\n1, 39000, 81559, 99\n")
	require.Equal(t, []metrics.GPUUse{
		{Node: "n1", GPU: 0, UsedMB: []float64{40000, 60000}, PeakMB: 60000, TotalMB: 81559, BusyPct: 12},
		{Node: "n1", GPU: 1, UsedMB: []float64{41000, 39000}, PeakMB: 41000, TotalMB: 81559, BusyPct: 99},
	}, got)
	require.Equal(t, "▁█", got[0].Trend(8))
	require.Empty(t, metrics.ReadGPUs("n1", "bash: nvidia-smi: command not found\n0, [N/A], 81559, 1\nx, 7, 81559, 1\n"))
}
