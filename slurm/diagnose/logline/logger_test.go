package logline_test

import (
	"testing"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logline"
	"github.com/stretchr/testify/require"
)

func TestCutLogger(t *testing.T) {
	for _, said := range []string{"[after training is done] datetime: 2026-06-11 10:00:00", "using world size: 4, data-parallel size: 4"} {
		for _, prefix := range []string{
			"", "INFO: ", "[INFO] ", "INFO:megatron.training:", "2026-06-11 10:00:00,123 - megatron.training - INFO - ",
			"2026-06-11 10:00:00,123 [rank 0] INFO: ", "[2026-06-11 10:00:00] [INFO] [training.py:12] ",
			"2026-06-11 10:00:00.123 | INFO     | megatron.training:train:12 - ", "[2026-06-11 10:00:00,123][megatron.training][INFO] - ",
		} {
			require.Equal(t, said, logline.CutLogger(prefix+said), "%q", prefix)
		}
	}
	for _, line := range []string{"ERROR: [after training is done]", `say("INFO: [after training is done]")`, "INFORMATION: [after training is done]"} {
		require.Equal(t, line, logline.CutLogger(line))
	}
}
