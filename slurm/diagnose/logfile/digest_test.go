package logfile_test

import (
	"bytes"
	"context"
	"io"
	"testing"
	"time"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/diagnosetest"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logfile"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/scan"
	"github.com/stretchr/testify/require"
)

// TestDigestsGiveTheSameAnswer digests jobs in three parts and diagnoses them from the digests alone.
func TestDigestsGiveTheSameAnswer(t *testing.T) {
	for name, layout := range diagnosetest.Layouts {
		causes := diagnosetest.Causes[:4]
		if testing.Short() {
			causes = causes[:2] // with and without a dump
		}
		for i, c := range causes {
			r := &diagnosetest.Run{World: 32, PerNode: 8}
			r.Healthy(0, 2*time.Hour) // more iterations than are kept
			c.Do(r, 7205*time.Second, 11)
			r.Victims(7206*time.Second, map[int]bool{11: true})
			r.Summaries(7220*time.Second, map[int]int{11: c.Code})
			dir := t.TempDir()
			layout(t, r, dir)
			if i == 0 {
				diagnosetest.Dump(t, dir, 3, 813, 811)
			}
			beside(t, dir, "slurm-3.out", "slurm-4.out", "notes.md", "a.json")
			src, err := logfile.Open(dir)
			require.NoError(t, err)
			require.Contains(t, src.OtherJobs, "slurm-3.out")
			given := diagnose.Context{JobState: "FAILED"}
			want, err := diagnose.Run(context.Background(), src, given)
			require.NoError(t, err)
			var parts []io.Reader
			for k := range 3 {
				var b bytes.Buffer
				part, err := logfile.OpenPart(k, 3, dir)
				require.NoError(t, err)
				require.NoError(t, scan.WriteDigest(context.Background(), part, len(src.Files()), &b))
				parts = append(parts, &b)
			}
			digested, err := logfile.ReadDigests(parts...)
			require.NoError(t, err)
			require.Equal(t, src.Files(), digested.Files())
			require.Equal(t, src.LeftOut, digested.LeftOut)
			require.Equal(t, src.OtherJobs, digested.OtherJobs)
			count, err := logfile.Count(dir)
			require.NoError(t, err)
			if i > 0 {
				require.Len(t, src.Files(), count)
			}
			got, err := diagnose.Run(context.Background(), digested, given)
			require.NoError(t, err)
			require.Equal(t, want, got, "%s %d", name, i)
		}
	}
	_, err := logfile.ReadDigests(bytes.NewReader([]byte("no gzip")))
	require.Error(t, err)
}
