package scan_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/diagnosetest"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logfile"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/scan"
)

// digestOf is what a digest of logs leaves of them, as one of so many files.
func digestOf(t *testing.T, src logfile.Source, ofAll int) logfile.Source {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, scan.WriteDigest(context.Background(), src, ofAll, &b))
	digested, err := logfile.ReadDigests(&b)
	require.NoError(t, err)
	return digested
}

// TestDigestsTellWhatTheirLogsDo diagnoses the labelled cases from digests.
func TestDigestsTellWhatTheirLogsDo(t *testing.T) {
	want := diagnosetest.Reports(t)
	for n, c := range diagnosetest.Cases(t) {
		if n%4 > 0 {
			continue
		}
		src, err := logfile.Open(c.Path())
		require.NoError(t, err)
		got, err := diagnose.Run(context.Background(), digestOf(t, src, 0), c.Context)
		require.NoError(t, err)
		require.Equal(t, want[c.ID], got, c.ID)
	}
}

// TestADigestLeavesOutTheMiddle has a log whose middle is not read: the few iterations
// that are kept are its last, and what stood open before the middle does not go on behind it.
func TestADigestLeavesOutTheMiddle(t *testing.T) {
	at := time.Date(2026, 6, 11, 10, 0, 0, 0, time.UTC)
	var log strings.Builder
	log.WriteString("[2026-06-11 09:00:00] begin\nOSError: [Errno 28] No space left on device: '/a'\nTraceback (most recent call last):\n  File \"/w/a.py\", line 3, in f\n")
	const iterations = 9000
	for n := range iterations {
		fmt.Fprintf(&log, " [%s.000000] iteration %8d/  500000 | consumed samples: 64 | elapsed time per iteration (ms): 1000.0 | lm loss: 2.0E+00 |\n",
			at.Add(time.Duration(n)*time.Second).Format("2006-01-02 15:04:05"), n)
	}
	log.WriteString("[2026-06-11 18:00:00] end\nValueError: the last\n")
	file := filepath.Join(t.TempDir(), "slurm-7.out")
	require.NoError(t, os.WriteFile(file, []byte(log.String()), 0o600))
	src, err := logfile.Open(file)
	require.NoError(t, err)
	read := func(src logfile.Source) *scan.Facts {
		all, err := scan.All(context.Background(), src)
		require.NoError(t, err)
		return all[0]
	}
	whole, part := read(digestOf(t, src, 1)), read(digestOf(t, src, 1<<12))
	require.Less(t, len(digestOf(t, src, 1<<12).Logs[0].Digested.Lines), 40, "iterations that no verdict needs are left out")
	require.Len(t, whole.Events, 2)
	require.Equal(t, read(src).Progress, whole.Progress)
	require.Equal(t, 18, whole.Events[0].After.Hour(), "iterations tell no time to what stands among them")
	require.Len(t, part.Events, 2)
	require.True(t, part.Events[0].After.IsZero(), "what is not read may have named a time")
	require.Nil(t, part.Events[1].Stack)
	last := func(f *scan.Facts) string { return f.Progress[len(f.Progress)-1].Text }
	require.Contains(t, last(part), fmt.Sprint(iterations-1))
	require.Equal(t, last(whole), last(part))
	require.Less(t, len(part.Progress), len(whole.Progress))
	require.Less(t, part.Lines, whole.Lines)
}

// TestWhatIsNoLogIsSaid has a file of bytes, which is no log, read as it is and from its digest.
func TestWhatIsNoLogIsSaid(t *testing.T) {
	file := filepath.Join(t.TempDir(), "slurm-7.out")
	require.NoError(t, os.WriteFile(file, bytes.Repeat([]byte{0, 1, 2, 200, 0, 7}, 4000), 0o600))
	src, err := logfile.Open(file)
	require.NoError(t, err)
	for _, src := range []logfile.Source{src, digestOf(t, src, 1)} {
		all, err := scan.All(context.Background(), src)
		require.NoError(t, err)
		require.Len(t, all, 1)
		require.Error(t, all[0].Reads)
		require.Empty(t, all[0].Last)
	}
}

// TestADigestTellsWhatIsNoLog has an archive that is none and a dump of the flight recorder
// beside a log, and a log alone.
func TestADigestTellsWhatIsNoLog(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "slurm-7.out")
	require.NoError(t, os.WriteFile(file, []byte("begin\n"), 0o600))
	alone, err := logfile.Open(dir)
	require.NoError(t, err)
	alone = digestOf(t, alone, 1)
	require.Empty(t, alone.Unreadable)
	require.Equal(t, []string{"slurm-7.out"}, alone.Files())
	require.NoError(t, os.WriteFile(filepath.Join(dir, "rest.zip"), []byte("no archive"), 0o600))
	diagnosetest.Dump(t, dir, 3, 813, 811)
	src, err := logfile.Open(dir)
	require.NoError(t, err)
	src = digestOf(t, src, 1)
	require.Len(t, src.Unreadable, 1)
	require.Equal(t, "rest.zip", src.Unreadable[0].Path)
	recorded, unread := src.Recordings()
	require.Empty(t, unread)
	require.Len(t, recorded, 1)
	require.Equal(t, 3, recorded[0].Rank)
	require.NoError(t, os.Remove(file))
	require.NoError(t, os.Remove(filepath.Join(dir, "rest.zip")))
	src, err = logfile.Open(dir)
	require.NoError(t, err)
	recorded, _ = digestOf(t, src, 1).Recordings()
	require.Len(t, recorded, 1, "a dump alone is told too")
}
