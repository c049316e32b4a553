package diagnose_test

import (
	"archive/tar"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logfile"
	"github.com/stretchr/testify/require"
)

// writeLog writes a log with the given modification time.
func writeLog(t *testing.T, file string, changed time.Time, lines ...string) {
	t.Helper()
	require.NoError(t, os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o644))
	require.NoError(t, os.Chtimes(file, changed, changed))
}

// allLines returns the lines that a filter selects.
func allLines(t *testing.T, src logfile.Source, f diagnose.Filter) (lines []diagnose.Line) {
	t.Helper()
	require.NoError(t, diagnose.Lines(context.Background(), src, f, func(l diagnose.Line) error {
		lines = append(lines, l)
		return nil
	}))
	return lines
}

func tailOf(t *testing.T, dir string, f diagnose.Filter) []string {
	t.Helper()
	src, err := logfile.Open(dir)
	require.NoError(t, err)
	lines := allLines(t, src, f)
	var texts []string
	for _, l := range lines {
		texts = append(texts, l.Text)
	}
	return texts
}

// A traceback has no times, and the node's clock has another zone than this machine's; still the lines
// written last are last.
func TestTheNewestLinesOfAJobAreThoseWrittenLast(t *testing.T) {
	t.Parallel()
	end := time.Date(2026, 6, 11, 10, 0, 30, 0, time.UTC)
	for zone, local := range map[string]string{"UTC": "10", "UTC+8": "18", "UTC-7": "03"} {
		dir := t.TempDir()
		writeLog(t, filepath.Join(dir, "gpt-7.out"), end.Add(-2*time.Second),
			"starting", "["+"2026-06-11 "+local+":00:00] iteration 1", "[2026-06-11 "+local+":00:20] iteration 2", "saving")
		writeLog(t, filepath.Join(dir, "gpt-7.err"), end, "a warning without a time", "Traceback (most recent call last):", "ValueError: bad")
		require.Equal(t, []string{"saving", "a warning without a time", "Traceback (most recent call last):", "ValueError: bad"}, tailOf(t, dir,
			diagnose.Filter{Tail: 4}), zone)

		writeLog(t, filepath.Join(dir, "gpt-7.err"), end, "[2026-06-11 "+local+":00:10] a warning", "Traceback (most recent call last):", "ValueError: bad")
		require.Equal(t, []string{
			"starting", "[2026-06-11 " + local + ":00:00] iteration 1", "[2026-06-11 " + local + ":00:10] a warning",
			"[2026-06-11 " + local + ":00:20] iteration 2", "saving", "Traceback (most recent call last):", "ValueError: bad",
		}, tailOf(t, dir, diagnose.Filter{}), zone)
	}
}

// Slurm's message at the end of a log has a time. The traceback before it has none, and is not sorted
// to the beginning.
func TestATracebackStandsBeforeTheEndsThatItCaused(t *testing.T) {
	t.Parallel()
	dir, end := t.TempDir(), time.Date(2026, 6, 11, 10, 0, 30, 0, time.UTC)
	writeLog(t, filepath.Join(dir, "x.out"), end.Add(-5*time.Second), "[2026-06-11 10:00:00] iteration 1", "[2026-06-11 10:00:20] iteration 2")
	writeLog(t, filepath.Join(dir, "x.err"), end, "hello", "1: Traceback (most recent call last):", "1: ValueError: bad",
		"0: slurmstepd: error: *** STEP 7.0 ON n1 CANCELLED AT 2026-06-11T10:00:28 ***")
	require.Equal(t, []string{
		"hello", "[2026-06-11 10:00:00] iteration 1", "[2026-06-11 10:00:20] iteration 2", "1: Traceback (most recent call last):", "1: ValueError: bad",
		"0: slurmstepd: error: *** STEP 7.0 ON n1 CANCELLED AT 2026-06-11T10:00:28 ***",
	}, tailOf(t, dir, diagnose.Filter{}))
}

// The modification times of copied files are those of copying. Then a log without any time counts as
// written last.
func TestACopyKeepsTheLastWordsLast(t *testing.T) {
	t.Parallel()
	dir, copied := t.TempDir(), time.Date(2026, 8, 1, 0, 0, 0, 0, time.UTC)
	writeLog(t, filepath.Join(dir, "x.err"), copied, "ValueError: bad")
	writeLog(t, filepath.Join(dir, "x.out"), copied.Add(time.Second), "[2026-06-11 10:00:00] iteration 1", "saving")
	require.Equal(t, []string{"saving", "ValueError: bad"}, tailOf(t, dir, diagnose.Filter{Tail: 2}))
}

// The lines of logs in an archive are sorted by their times too. An archive does not grow.
func TestLinesOfAnArchiveAreSorted(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "logs.tar")
	f, err := os.Create(file)
	require.NoError(t, err)
	w := tar.NewWriter(f)
	for name, text := range map[string]string{
		"x.out": "[2026-06-11 10:00:00] iteration 1\n[2026-06-11 10:00:20] iteration 2\n",
		"x.err": "[2026-06-11 10:00:10] a warning\nValueError: bad\n[2026-06-11 10:00:15] it ends\n",
	} {
		require.NoError(t, w.WriteHeader(&tar.Header{Name: name, Size: int64(len(text)), Mode: 0o600, ModTime: time.Date(2026, 6, 11, 10, 0, 30, 0, time.UTC)}))
		_, err = w.Write([]byte(text))
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	require.NoError(t, f.Close())
	require.Equal(t, []string{
		"[2026-06-11 10:00:00] iteration 1", "[2026-06-11 10:00:10] a warning", "ValueError: bad", "[2026-06-11 10:00:15] it ends",
		"[2026-06-11 10:00:20] iteration 2",
	}, tailOf(t, file, diagnose.Filter{}))
	lines, err := diagnose.NewFollower(logfile.Source{}, diagnose.Filter{}).Look(t.Context(), nil, file)
	require.NoError(t, err)
	require.Empty(t, lines)
}

// Empty lines are skipped, and line ends are cut off.
func TestEmptyLinesAreNotTold(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeLog(t, filepath.Join(dir, "x.out"), time.Now(), "one", "", "  ", "two \r", "")
	require.Equal(t, []string{"one", "two"}, tailOf(t, dir, diagnose.Filter{}))
	require.Equal(t, []string{"two"}, tailOf(t, dir, diagnose.Filter{Tail: 1}))
	writeLog(t, filepath.Join(dir, "x.out"), time.Now())
	require.Empty(t, tailOf(t, dir, diagnose.Filter{Tail: 1}))
}

// Equal lines of several ranks become one line with their number; equal lines of one rank or of unknown
// ranks do not.
func TestTheSameWordsOfSeveralRanksAreOneLine(t *testing.T) {
	t.Parallel()
	zero, one := 0, 1
	var got []string
	for _, l := range diagnose.Collapse([]diagnose.Line{
		{Text: "nobody's"},
		{Text: "nobody's"},
		{Text: "[rank0]: all's", Rank: &zero},
		{Text: "[rank1]: all's", Rank: &one},
		{Text: "all's"},
		{Text: "[rank0]: twice", Rank: &zero},
		{Text: "[rank0]: twice", Rank: &zero},
		{Text: "new"},
		{Text: "[rank1]: new", Rank: &one},
	}) {
		got = append(got, fmt.Sprint(l.Text, " ", l.Ranks))
	}
	require.Equal(t, []string{"nobody's 0", "nobody's 0", "[rank0]: all's 3", "[rank0]: twice 0", "[rank0]: twice 0", "new 2"}, got)
	for between, told := range map[int]int{4094: 4095, 4095: 4097} { // far apart they are two
		lines := []diagnose.Line{{Text: "all's", Rank: &zero}}
		for i := range between {
			lines = append(lines, diagnose.Line{Text: fmt.Sprint(i), Rank: &zero})
		}
		require.Len(t, diagnose.Collapse(append(lines, diagnose.Line{Text: "all's", Rank: &one})), told)
	}
}

// srun's labels are tasks, and tasks fill the job's nodes in order.
func TestALabelTellsTheNode(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeLog(t, filepath.Join(dir, "x.out"), time.Now(), "batch", "0: one", "1: two", "1: three")
	require.Equal(t, []string{"1: two", "1: three"}, tailOf(t, dir, diagnose.Filter{Node: "n2", Nodes: []string{"n1", "n2"}}))
	require.Equal(t, []string{"0: one"}, tailOf(t, dir, diagnose.Filter{Node: "n1", Nodes: []string{"n1", "n2"}}))
	writeLog(t, filepath.Join(dir, "x.out"), time.Now(), "0: one", "1: two", "2: three", "3: four")
	require.Equal(t, []string{"2: three", "3: four"}, tailOf(t, dir, diagnose.Filter{Node: "n2", Nodes: []string{"n1", "n2"}}))
	writeLog(t, filepath.Join(dir, "x.out"), time.Now(), "using world size: 2, data-parallel size: 2, context-parallel size: 1, tensor-model-parallel size: 1, pipeline-model-parallel size: 1", "[rank0]: one", "[rank1]: two")
	require.Equal(t, []string{"[rank0]: one"}, tailOf(t, dir, diagnose.Filter{Node: "n1", Nodes: []string{"n1", "n2"}}))
	require.Equal(t, []string{"[rank1]: two"}, tailOf(t, dir, diagnose.Filter{Node: "n2", Nodes: []string{"n1", "n2"}}))
}

// A node's start line gives its first rank, also for the lines of the node's other log.
func TestLinesOfANodeWhoseFirstRankIsKnownHaveRanks(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	start := "start: attempt=0 node=%d host=gpu%d ranks=%d-%d commit=- dirty=- argv=a env=b"
	writeLog(t, filepath.Join(dir, "gpt-7.out"), time.Now(), fmt.Sprintf(start, 0, 1, 0, 3), fmt.Sprintf(start, 1, 2, 4, 7))
	writeLog(t, filepath.Join(dir, "gpt-7-gpu2.err"), time.Now(), "[default1]:a line of rank 5", "[default2]:a line of rank 6")
	five := 5
	require.Equal(t, []string{"[default1]:a line of rank 5"}, tailOf(t, dir, diagnose.Filter{Rank: &five}))
}
