package logfile_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/diagnosetest"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/stretchr/testify/require"
)

// packed writes the files of a folder as a zip and as a tar.gz, inside a folder as in CI artifacts.
func packed(t *testing.T, dir string) (paths []string) {
	t.Helper()
	out := t.TempDir()
	var zipped, tarred bytes.Buffer
	z, g := zip.NewWriter(&zipped), gzip.NewWriter(&tarred)
	a := tar.NewWriter(g)
	require.NoError(t, filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(p)
		require.NoError(t, err)
		rel, err := filepath.Rel(dir, p)
		require.NoError(t, err)
		w, err := z.Create("assets_dir/" + rel)
		require.NoError(t, err)
		_, err = w.Write(text)
		require.NoError(t, err)
		require.NoError(t, a.WriteHeader(&tar.Header{Name: "./assets_dir/" + rel, Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(text))}))
		_, err = a.Write(text)
		return err
	}))
	require.NoError(t, z.Close())
	require.NoError(t, a.Close())
	require.NoError(t, g.Close())
	for name, b := range map[string][]byte{"logs.zip": zipped.Bytes(), "logs.tar.gz": tarred.Bytes()} {
		paths = append(paths, filepath.Join(out, name))
		require.NoError(t, os.WriteFile(paths[len(paths)-1], b, 0o600))
	}
	return paths
}

// TestAnArtifactOfTwoRanksSaysSo has a typical CI artifact: torchrun's folders of local ranks 0 and 3
// of a node with eight.
func TestAnArtifactOfTwoRanksSaysSo(t *testing.T) {
	r := &diagnosetest.Run{World: 8, PerNode: 8}
	for rank := range 8 {
		r.Say(0, rank, "> initializing torch distributed ...")
	}
	r.Healthy(0, 5*time.Minute)
	r.Raise(301*time.Second, 3, "backward_step",
		"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.50 GiB. GPU 3 has a total capacity of 79.10 GiB of which 1.20 GiB is free.")
	dir := t.TempDir()
	diagnosetest.Layouts["tdir"](t, r, dir)
	for _, rank := range []string{"1", "2", "4", "5", "6", "7"} {
		kept, err := filepath.Glob(filepath.Join(dir, "logs", "*", "none_ab12cd34", "attempt_0", rank))
		require.NoError(t, err)
		for _, p := range kept {
			require.NoError(t, os.RemoveAll(p))
		}
	}
	for _, path := range packed(t, dir) {
		got, err := diagnose.Path(context.Background(), path, diagnose.Context{})
		require.NoError(t, err, path)
		require.Equal(t, outcome.CUDAOOM, got.Class, path)
		require.Equal(t, []int{0, 3}, got.OnlyRanks, path)
		require.Contains(t, got.Summary, "Only the logs of ranks 0 and 3 are available.")
		require.Contains(t, got.View(lang.ZH).Sections[0].Text, "这里只有 rank 0、3 的日志。")
		require.Equal(t, 3, *got.RootRank)
	}
	whole := t.TempDir()
	diagnosetest.Layouts["tdir"](t, r, whole)
	got, err := diagnose.Path(context.Background(), whole, diagnose.Context{})
	require.NoError(t, err)
	require.Empty(t, got.OnlyRanks)
}

// Flight recorder dumps inside an archive are read.
func TestArtifactsHoldFlightRecorderDumps(t *testing.T) {
	r := &diagnosetest.Run{World: 4, PerNode: 4}
	r.Healthy(0, time.Minute)
	dir := t.TempDir()
	diagnosetest.Layouts["ranks"](t, r, dir)
	for rank := range 4 {
		enqueued := 813
		if rank == 2 {
			enqueued = 811
		}
		diagnosetest.Dump(t, dir, rank, enqueued, 811)
	}
	silent := int64(5400)
	for _, path := range packed(t, dir) {
		got, err := diagnose.Path(context.Background(), path, diagnose.Context{JobState: "RUNNING", SecondsSinceLastWrite: &silent})
		require.NoError(t, err)
		require.Equal(t, 2, *got.RootRank, path)
		require.Contains(t, got.Summary, "never entered all_reduce #812")
	}
}
