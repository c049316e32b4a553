package logfile_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/diagnosetest"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logfile"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/report"
	"github.com/stretchr/testify/require"
)

// TestOneLineOfAGigabyte has a sparse file of NUL bytes without a newline, followed by the failure.
func TestOneLineOfAGigabyte(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rank0.log")
	f, err := os.Create(path)
	require.NoError(t, err)
	size := int64(1 << 30)
	if testing.Short() {
		size = 1 << 28 // still more than may be held in memory
	}
	require.NoError(t, f.Truncate(size))
	_, err = f.Seek(0, io.SeekEnd)
	require.NoError(t, err)
	_, err = f.WriteString("\n" + diagnosetest.OOMLog)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	r, err := diagnose.Path(context.Background(), path, diagnose.Context{})
	require.NoError(t, err)
	require.Equal(t, outcome.CUDAOOM, r.Class)
	require.Equal(t, 4, *r.RootLineNo)
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	require.Less(t, m.Sys, uint64(200<<20))
}

func TestCompressedLogsAndArtifacts(t *testing.T) {
	dir := t.TempDir()
	var gz, zs, tgz, zp bytes.Buffer
	w := gzip.NewWriter(&gz)
	_, _ = w.Write([]byte(diagnosetest.OOMLog))
	require.NoError(t, w.Close())
	z, err := zstd.NewWriter(&zs)
	require.NoError(t, err)
	_, _ = z.Write([]byte(diagnosetest.OOMLog))
	require.NoError(t, z.Close())
	g := gzip.NewWriter(&tgz)
	a := tar.NewWriter(g)
	require.NoError(t, a.WriteHeader(&tar.Header{Name: "../../logs/rank7.log", Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(diagnosetest.OOMLog))}))
	_, _ = a.Write([]byte(diagnosetest.OOMLog))
	require.NoError(t, a.Close())
	require.NoError(t, g.Close())
	p := zip.NewWriter(&zp)
	m, err := p.Create("logs/rank7.log")
	require.NoError(t, err)
	_, _ = m.Write([]byte(diagnosetest.OOMLog))
	require.NoError(t, p.Close())
	for name, b := range map[string][]byte{"rank7.log.gz": gz.Bytes(), "rank7.log.zst": zs.Bytes(), "artifact.tar.gz": tgz.Bytes(), "artifact.zip": zp.Bytes()} {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, b, 0o644))
		r, err := diagnose.Path(context.Background(), path, diagnose.Context{})
		require.NoError(t, err, name)
		require.Equal(t, outcome.CUDAOOM, r.Class, name)
		require.Equal(t, 3, *r.RootLineNo, name)
		require.Equal(t, 7, *r.RootRank, name)
		require.NotContains(t, r.RootFile, "..")
	}
	cut := filepath.Join(dir, "cut.log.gz")
	require.NoError(t, os.WriteFile(cut, gz.Bytes()[:gz.Len()-9], 0o644))
	_, err = diagnose.Path(context.Background(), cut, diagnose.Context{})
	require.NoError(t, err, "what is there of a truncated file is read")
}

func TestOnlyRegularFilesAreOpened(t *testing.T) {
	dir := t.TempDir()
	fifo := filepath.Join(dir, "rank0.log")
	require.NoError(t, syscall.Mkfifo(fifo, 0o644))
	_, err := logfile.Open(fifo)
	require.Error(t, err)
	_, err = logfile.Open(dir)
	require.ErrorIs(t, err, fs.ErrNotExist, "a folder with a FIFO alone has no log")
	secret := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(secret, []byte(diagnosetest.OOMLog), 0o644))
	require.NoError(t, os.Symlink(secret, filepath.Join(dir, "rank1.log")))
	_, err = logfile.Open(dir)
	require.ErrorIs(t, err, fs.ErrNotExist, "links out of a folder are not followed")
}

func TestGlobAndMissingPaths(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "slurm-5.out"), []byte(diagnosetest.OOMLog), 0o644))
	r, err := diagnose.Path(context.Background(), filepath.Join(dir, "slurm-*.out"), diagnose.Context{})
	require.NoError(t, err)
	require.Equal(t, outcome.CUDAOOM, r.Class)
	_, err = diagnose.Path(context.Background(), filepath.Join(dir, "none-*.out"), diagnose.Context{})
	require.ErrorIs(t, err, fs.ErrNotExist)
	_, err = diagnose.Path(context.Background(), filepath.Join(dir, "none"), diagnose.Context{})
	require.ErrorIs(t, err, fs.ErrNotExist)
}

// A compressed file of a few hundred KiB unpacks to 300 MiB: its beginning is read, and the rest is
// reported as cut.
func TestWhatUnpacksTooFarIsCut(t *testing.T) {
	packed := func(text string) []byte {
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		_, err := io.WriteString(w, text)
		require.NoError(t, err)
		require.NoError(t, w.Close())
		return b.Bytes()
	}
	filler := packed(strings.Repeat("a line of nothing but filler\n", 4<<20/29))
	path := filepath.Join(t.TempDir(), "rank0.log.gz")
	require.NoError(t, os.WriteFile(path, append(packed(diagnosetest.OOMLog), bytes.Repeat(filler, 75)...), 0o644))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	r, err := diagnose.Path(context.Background(), path, diagnose.Context{JobState: "FAILED"})
	runtime.ReadMemStats(&after)
	require.NoError(t, err)
	require.Len(t, r.Unreadable, 1)
	require.Contains(t, r.Unreadable[0].Reason, "only its beginning was read")
	require.Contains(t, r.Summary, "could not be read (rank0.log.gz")
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(256<<20))
}

// Logs without permission, programs and empty files are reported: alone they give no class, beside
// readable logs they are named first.
func TestWhatCannotBeReadIsSaid(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "ls.log")
	require.NoError(t, os.WriteFile(program, append([]byte("\x7fELF\x02\x01"), make([]byte, 4096)...), 0o644))
	empty := filepath.Join(dir, "empty.log")
	require.NoError(t, os.WriteFile(empty, nil, 0o644))
	none := new(logfile.UnreadableError)
	for path, reason := range map[string]string{program: "a program", empty: "empty"} {
		_, err := diagnose.Path(context.Background(), path, diagnose.Context{JobState: "ENDED"})
		require.ErrorAs(t, err, &none, path)
		require.Contains(t, none.Logs[0].Reason, reason)
		line, err := json.Marshal(map[string]string{"id": "1", "path": path})
		require.NoError(t, err)
		require.Contains(t, string(diagnose.Batch(context.Background(), line)), `"error":{"code":"failed"`)
		require.NotContains(t, string(diagnose.Batch(context.Background(), line)), `"class"`)
	}
	require.Contains(t, string(diagnose.Batch(context.Background(), []byte(`{"id":1,"path":"/nowhere/x"}`))), `"code":"not_found"`)
	r, err := diagnose.Path(context.Background(), empty, diagnose.Context{JobState: "TIMEOUT"})
	require.NoError(t, err, "Slurm's word holds without a line")
	require.Equal(t, outcome.SlurmTimeLimit, r.Class)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "rank0.log"), []byte(diagnosetest.OOMLog), 0o644))
	r, err = diagnose.Path(context.Background(), dir, diagnose.Context{JobState: "FAILED"})
	require.NoError(t, err)
	require.Equal(t, outcome.CUDAOOM, r.Class)
	require.Equal(t, "ls.log", r.Unreadable[0].Path)
	require.True(t, strings.HasPrefix(r.Summary, "1 log could not be read (ls.log: not text but a program)"), r.Summary)
	text, err := json.Marshal(r)
	require.NoError(t, err)
	var elsewhere report.Report
	require.NoError(t, json.Unmarshal(text, &elsewhere))
	require.Contains(t, elsewhere.View(lang.ZH).Sections[0].Text, "（ls.log：不是文本，而是程序）", "logs that were read elsewhere are told in Chinese too")
}
