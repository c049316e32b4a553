package logline_test

import (
	"strings"
	"testing"
	"time"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logline"
	"github.com/stretchr/testify/require"
)

// Programs write times in many forms.
func TestTimesOfLinesAreRead(t *testing.T) {
	at := func(year, month, day, h, m, s, ns int) time.Time {
		return time.Date(year, time.Month(month), day, h, m, s, ns, time.UTC)
	}
	for line, want := range map[string]time.Time{
		"2026-04-04 20:30:32,5 INFO":                         at(2026, 4, 4, 20, 30, 32, 500_000_000),
		"[2026-06-10T08:59:16] error":                        at(2026, 6, 10, 8, 59, 16, 0),
		"06/10/2026 08:59:16 x":                              at(2026, 6, 10, 8, 59, 16, 0),
		"23/11/2026 08:59:16 x":                              at(2026, 11, 23, 8, 59, 16, 0),
		"06-10 08:59:16 3: x":                                at(logline.Yearless, 6, 10, 8, 59, 16, 0),
		"[06/10 08:59:16] x":                                 at(logline.Yearless, 6, 10, 8, 59, 16, 0),
		"2026/06/10 08:59:16 x":                              at(2026, 6, 10, 8, 59, 16, 0),
		"2026-04-06_04:12:45 torchelastic":                   at(2026, 4, 6, 4, 12, 45, 0),
		"E0610 08:59:06.361206 12 x.cpp:7] m":                at(logline.Yearless, 6, 10, 8, 59, 6, 361_206_000),
		"Jun 10 08:59:16 gpu1 kernel: x":                     at(logline.Yearless, 6, 10, 8, 59, 16, 0),
		"Dec  1 23:59:60 gpu1 kernel: x":                     at(logline.Yearless, 12, 1, 23, 59, 60, 0),
		"Wed Jun 10 08:42:43 UTC 2026":                       at(2026, 6, 10, 8, 42, 43, 0),
		"Wed Jun 10 08:42:43 PM UTC 2026":                    at(2026, 6, 10, 20, 42, 43, 0),
		"Wed Jun 10 12:42:43 PM UTC 2026":                    at(2026, 6, 10, 12, 42, 43, 0),
		"Wed Jun 10 12:42:43 AM UTC 2026":                    at(2026, 6, 10, 0, 42, 43, 0),
		"Sat Dec 19 22:18:14 2020[1,3]<stdout>:x":            at(2020, 12, 19, 22, 18, 14, 0),
		"ratio 1:2: 2026-04-04 20:30:32":                     at(2026, 4, 4, 20, 30, 32, 0),
		"2026-04-04 20:30:32":                                at(2026, 4, 4, 20, 30, 32, 0),
		"2026-04-04 20:30:32.123456789123":                   at(2026, 4, 4, 20, 30, 32, 123_456_789),
		strings.Repeat("x", 90) + "2026-04-04 20:30:32 late": at(2026, 4, 4, 20, 30, 32, 0),
	} {
		got, ok := logline.ParseTime(line)
		require.True(t, ok, line)
		require.Equal(t, want, got, line)
	}
	for _, line := range []string{
		"", ":", "20:30:32", "no date 20:30:32", "2026-04-04 20:30", "2026-04-04 20:30:3", "13/13/2026 20:30:32", "13-04 20:30:32", "x6-10 20:30:32", "106-10 20:30:32", "2026-13-04 20:30:32", "2026-04-32 20:30:32",
		"2026-00-04 20:30:32", "2026-04-00 20:30:32", "2026-04/04 20:30:32", "2026-04-04 24:30:32", "2026-04-04 20:60:32", "2026-04-04 20:30:61",
		"2026-04-04 20:/9:32", "2026-04-04 20:1/:32", "2026-04-04 20:1::32", "2026-04-04 2x:30:32", "Jux 10 08:59:16", "e0610 08:59:16", "Jun 40 08:59:16", "anF 10 08:59:16", "2026-04-04 20:30-32:1",
		strings.Repeat("x", 102) + "2026-04-04 20:30:32 too late",
	} {
		_, ok := logline.ParseTime(line)
		require.False(t, ok, line)
	}
}

func TestTimesBeforeTagsAreCut(t *testing.T) {
	for line, task := range map[string]int{
		"Sat Dec 19 22:18:14 2026[1,3]<stderr>:ValueError: odd":    3, // mpirun --timestamp-output --tag-output
		"2026-06-02T16:13:40.100Z: [1,12]<stderr>:ValueError: odd": 12,
		"[5]<stderr>:ValueError: odd":                              5, // horovodrun
	} {
		tagged, text := logline.CutTag(line)
		require.Equal(t, task, tagged.Label)
		require.Equal(t, "ValueError: odd", text)
	}
	_, text := logline.CutTag("Sat Dec 19 22:18:14 2026 [a] b")
	require.Equal(t, "Sat Dec 19 22:18:14 2026 [a] b", text)
}
