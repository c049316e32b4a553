package diagnose

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logline"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/report"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/scan"
	"github.com/stretchr/testify/require"
)

// Every program writes its time in its own way.
func TestTimesOfLinesAreRead(t *testing.T) {
	at := func(year, month, day, h, m, s, ns int) time.Time {
		return time.Date(year, time.Month(month), day, h, m, s, ns, time.UTC)
	}
	for line, want := range map[string]time.Time{
		"2026-04-04 20:30:32,5 INFO":                         at(2026, 4, 4, 20, 30, 32, 500_000_000),
		"[2026-06-10T08:59:16] error":                        at(2026, 6, 10, 8, 59, 16, 0),
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
		"", ":", "20:30:32", "no date 20:30:32", "2026-04-04 20:30", "2026-04-04 20:30:3", "2026-13-04 20:30:32", "2026-04-32 20:30:32",
		"2026-00-04 20:30:32", "2026-04-00 20:30:32", "2026-04/04 20:30:32", "2026-04-04 24:30:32", "2026-04-04 20:60:32", "2026-04-04 20:30:61",
		"2026-04-04 2x:30:32", "Jux 10 08:59:16", "e0610 08:59:16", "Jun 40 08:59:16", "anF 10 08:59:16", "2026-04-04 20:30-32:1",
		strings.Repeat("x", 102) + "2026-04-04 20:30:32 too late",
	} {
		_, ok := logline.ParseTime(line)
		require.False(t, ok, line)
	}
}

func TestTimesBeforeTagsAreCut(t *testing.T) {
	for line, rank := range map[string]int{
		"Sat Dec 19 22:18:14 2026[1,3]<stderr>:ValueError: odd":    3, // mpirun --timestamp-output --tag-output
		"2026-06-02T16:13:40.100Z: [1,12]<stderr>:ValueError: odd": 12,
		"[5]<stderr>:ValueError: odd":                              5, // horovodrun
	} {
		tagged, text := logline.CutTag(line)
		require.Equal(t, rank, tagged.Rank)
		require.Equal(t, "ValueError: odd", text)
	}
	_, text := logline.CutTag("Sat Dec 19 22:18:14 2026 [a] b")
	require.Equal(t, "Sat Dec 19 22:18:14 2026 [a] b", text)
}

func TestListsOfTasksAndNodesAreReadOut(t *testing.T) {
	for list, want := range map[string][]int{
		"3": {3}, "0,2": {0, 2}, "0-3,7": {0, 1, 2, 3, 7}, "[0-1]": {0, 1}, "5-5": {5}, "5-4": nil, "": nil, "a-3": nil, "1-b": nil, "1,x,2": {1, 2},
	} {
		require.Equal(t, want, scan.TaskList(list), list)
	}
	require.Len(t, scan.TaskList("0-99999999"), 1<<14)
	require.Len(t, scan.TaskList("0-16383,1-9"), 1<<14)
	for list, want := range map[string][]string{
		"n1": {"n1"}, "n1,n2.cluster": {"n1", "n2.cluster"}, "n[08-10]": {"n08", "n09", "n10"}, "a[1,3-4]b,c": {"a1b", "a3b", "a4b", "c"},
		"n[3-2]": nil, "n[x-2],m": {"m"}, "n[1-y]": nil, "n 1": nil, "": nil, "n[1": {"n1"}, "n[9-11]": {"n9", "n10", "n11"},
	} {
		require.Equal(t, want, scan.ExpandNodes(list), list)
	}
	require.Len(t, scan.ExpandNodes("n[0-99999]"), 4096)
	require.Len(t, scan.ExpandNodes("n[0-4095],m"), 4096)
}

// A run has diverged where its last lines say so, and no earlier one that came back.
func TestALossThatStaysUpHasDiverged(t *testing.T) {
	for name, tt := range map[string]struct {
		losses string
		from   int // the line it began with, from 1; 0: it has not
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
	} {
		var lines []scan.Mark
		for i, loss := range strings.Fields(tt.losses) {
			lines = append(lines, scan.Mark{Off: int64(i + 1), Text: strings.ReplaceAll(fmt.Sprintf("iteration %d/ 99 | lm loss: %s | grad norm: 1.0 |", i+1, loss), "loss: -", "")})
		}
		m, ok := diverged(lines)
		require.Equal(t, tt.from > 0, ok, name)
		require.Equal(t, int64(tt.from), m.Off, name)
	}
}

// Each kind of import error has its own advice, and one without a kind names the
// worktree where the module is Megatron's own.
func TestAnImportErrorsAdviceNamesWhatToChange(t *testing.T) {
	for _, tt := range []struct {
		kind       report.ImportKind
		line, want string
	}{
		{report.WrongWorktree, "", "The script that ran lies in /root, not"},
		{report.StalePath, "", "imported from /root, another checkout"},
		{report.OldCheckout, "", "checkout in /root has no such module"},
		{report.NoSync, "ModuleNotFoundError: No module named 'einops'", "`einops` is not in the environment"},
		{report.NoSync, "ModuleNotFoundError: No module named einops.", "`einops` is not in the environment"},
		{report.NoSync, "ImportError: libcuda.so.1", ""},
		{"", "ModuleNotFoundError: No module named 'megatron'", "`megatron` is part of the worktree"},
		{"", "ModuleNotFoundError: No module named 'megatron.core'", "`megatron.core` is part of the worktree"},
		{"", "ModuleNotFoundError: No module named 'megatron_fsdp'", ""},
		{"", "ImportError: libcuda.so.1", ""},
	} {
		advice, ok := report.Report{ImportKind: tt.kind, ImportRoot: "/root", RootLine: tt.line}.ImportAdvice()
		require.Equal(t, tt.want != "", ok, "%s %s", tt.kind, tt.line)
		require.Contains(t, advice.EN, tt.want)
		require.Equal(t, tt.want != "", advice.ZH != "", tt.line)
	}
}
