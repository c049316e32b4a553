package logline_test

import (
	"strings"
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
			"I 1127 20:38:30 [rank 0/4] ", "I1127 20:38:30.123456 4711 train.cc:12] ", "[rank 0] ", "[2026-06-11 10:00:00] (rank 3) ", "10:00:00.5 ",
			"[2026-06-11 10:00:00,123] {training.py:72} INFO rank0/4 - ", "[2026-06-11 10:00:00,123] {training.py:72} INFO - ",
		} {
			require.Equal(t, said, logline.CutLogger(prefix+said), "%q", prefix)
		}
	}
	for _, line := range []string{
		"ERROR: [after training is done]", `say("INFO: [after training is done]")`, "INFORMATION: [after training is done]",
		"E 1127 20:38:30 [rank 0/4] [after training is done]", "[rank 0] [ERROR] [after training is done]", "[exiting program at iteration 9]",
	} {
		require.True(t, strings.HasSuffix(line, logline.CutLogger(line)))
		require.NotRegexp(t, `^\[after`, logline.CutLogger(line))
	}
}
