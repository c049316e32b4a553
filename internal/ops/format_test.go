package ops

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
)

func TestATimeIsSaidInItsTwoLargestUnits(t *testing.T) {
	t.Parallel()
	for d, said := range map[time.Duration]lang.Text{
		0:                            {EN: "0 s", ZH: "0 秒"},
		59 * time.Second:             {EN: "59 s", ZH: "59 秒"},
		61 * time.Second:             {EN: "1 min", ZH: "1 分钟"},
		time.Hour:                    {EN: "1 h", ZH: "1 小时"},
		2*time.Hour + time.Second:    {EN: "2 h", ZH: "2 小时"},
		90 * time.Minute:             {EN: "1 h 30 min", ZH: "1 小时 30 分钟"},
		25*time.Hour + time.Minute:   {EN: "1 d 1 h", ZH: "1 天 1 小时"},
		48*time.Hour + 2*time.Minute: {EN: "2 d", ZH: "2 天"},
	} {
		require.Equal(t, said, Span(d))
	}
}

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
