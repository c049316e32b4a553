package ops

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// 512 GPUs for a day: hours that are not a power of ten.
func TestHoursAreWrittenInFull(t *testing.T) {
	t.Parallel()
	for h, said := range map[float64]string{0.25: "0.25", 1.0 / 3: "0.33", 16: "16", 512 * 24: "12288", 5376000: "5376000"} {
		require.Equal(t, said, Hours(h))
	}
}

func TestSizesAreSaidInBinaryUnits(t *testing.T) {
	t.Parallel()
	for n, said := range map[int64]string{
		0: "0 B", 1023: "1023 B", 1024: "1.0 KiB", 1536: "1.5 KiB", 1<<20 - 1: "1.0 MiB", 1 << 20: "1.0 MiB", 5 << 40: "5.0 TiB", 3 << 60: "3072.0 PiB",
	} {
		require.Equal(t, said, Bytes(n))
	}
}

func TestCommandsStayOnTheCluster(t *testing.T) {
	commands := []string{"logs 7 --tail 20", "status 7 --cluster far", "submit --from 7 -- --lr 1e-4"}
	require.Equal(t, commands, CommandsOn("", commands))
	require.Equal(t,
		[]string{"logs 7 --tail 20 --cluster near", "status 7 --cluster far", "submit --from 7 --cluster near -- --lr 1e-4"},
		CommandsOn("near", commands))
}
