package diagnose_test

import (
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

// writeLog writes a log whose last change was at a time.
func writeLog(t *testing.T, file string, changed time.Time, lines ...string) {
	t.Helper()
	require.NoError(t, os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o644))
	require.NoError(t, os.Chtimes(file, changed, changed))
}

// allLines are the lines that a filter chooses.
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

// A traceback names no time, and the node's clock is set to another zone than
// this machine's: what was written last stands last all the same.
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

// Slurm's own word at the end of a log names a time; the traceback before it does
// not, and is no beginning.
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

// The files of a copy tell when they were copied; then a log without any time is
// the one that ended the job.
func TestACopyKeepsTheLastWordsLast(t *testing.T) {
	t.Parallel()
	dir, copied := t.TempDir(), time.Date(2026, 8, 1, 0, 0, 0, 0, time.UTC)
	writeLog(t, filepath.Join(dir, "x.err"), copied, "ValueError: bad")
	writeLog(t, filepath.Join(dir, "x.out"), copied.Add(time.Second), "[2026-06-11 10:00:00] iteration 1", "saving")
	require.Equal(t, []string{"saving", "ValueError: bad"}, tailOf(t, dir, diagnose.Filter{Tail: 2}))
}

// Empty lines are none, and what ends a line is no part of it.
func TestEmptyLinesAreNotTold(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeLog(t, filepath.Join(dir, "x.out"), time.Now(), "one", "", "  ", "two \r", "")
	require.Equal(t, []string{"one", "two"}, tailOf(t, dir, diagnose.Filter{}))
	require.Equal(t, []string{"two"}, tailOf(t, dir, diagnose.Filter{Tail: 1}))
	writeLog(t, filepath.Join(dir, "x.out"), time.Now())
	require.Empty(t, tailOf(t, dir, diagnose.Filter{Tail: 1}))
}

// What several ranks wrote in the same words is one line with its count; what one of them, or nobody known, wrote twice is not.
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
