package diagnose_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/klauspost/compress/zstd"
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logfile"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/report"
	"github.com/stretchr/testify/require"
)

const oomLog = "Traceback (most recent call last):\n  File \"/w/train.py\", line 3, in step\n" +
	"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.50 GiB.\n"

func diagnoseText(t *testing.T, text string) report.Report {
	t.Helper()
	src, err := logfile.Read("log", strings.NewReader(text))
	require.NoError(t, err)
	r, err := diagnose.Run(context.Background(), src, diagnose.Context{JobState: "ENDED"})
	require.NoError(t, err)
	return r
}

// TestOneLineOfAGigabyte is a sparse file of NUL bytes without a newline,
// followed by the failure.
func TestOneLineOfAGigabyte(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rank0.log")
	f, err := os.Create(path)
	require.NoError(t, err)
	size := int64(1 << 30)
	if testing.Short() {
		size = 1 << 28 // more than may be held, too
	}
	require.NoError(t, f.Truncate(size))
	_, err = f.Seek(0, io.SeekEnd)
	require.NoError(t, err)
	_, err = f.WriteString("\n" + oomLog)
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

func TestBytesThatActAreTakenAway(t *testing.T) {
	r := diagnoseText(t, "a\x00b\xff\xfe\n\x1b[31m[rank3]:\x1b[0m Traceback (most recent call last):\n"+
		"\x1b[31m[rank3]: torch.OutOfMemoryError: CUDA out of memory\u202e. \x1b]52;c;aGk=\x07Tried hf_"+strings.Repeat("aB3", 8)+"\x1b[0m\r\n")
	require.Equal(t, outcome.CUDAOOM, r.Class)
	require.Equal(t, 3, *r.RootRank)
	require.NotContains(t, r.RootLine, "\x1b")
	require.NotContains(t, r.RootLine, "\u202e")
	require.Contains(t, r.RootLine, "[redacted]")
	require.True(t, utf8.ValidString(r.RootLine))
}

func TestProgressBarsThatOverwriteThemselves(t *testing.T) {
	bar := strings.Repeat("Map: 10%|█▏| 10/100 [00:01<00:09]\r", 50000)
	r := diagnoseText(t, bar+"\n"+oomLog)
	require.Equal(t, outcome.CUDAOOM, r.Class)
}

func TestCompressedLogsAndArtifacts(t *testing.T) {
	dir := t.TempDir()
	var gz, zs, tgz, zp bytes.Buffer
	w := gzip.NewWriter(&gz)
	_, _ = w.Write([]byte(oomLog))
	require.NoError(t, w.Close())
	z, err := zstd.NewWriter(&zs)
	require.NoError(t, err)
	_, _ = z.Write([]byte(oomLog))
	require.NoError(t, z.Close())
	g := gzip.NewWriter(&tgz)
	a := tar.NewWriter(g)
	require.NoError(t, a.WriteHeader(&tar.Header{Name: "../../logs/rank7.log", Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(oomLog))}))
	_, _ = a.Write([]byte(oomLog))
	require.NoError(t, a.Close())
	require.NoError(t, g.Close())
	p := zip.NewWriter(&zp)
	m, err := p.Create("logs/rank7.log")
	require.NoError(t, err)
	_, _ = m.Write([]byte(oomLog))
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
	require.NoError(t, os.WriteFile(secret, []byte(oomLog), 0o644))
	require.NoError(t, os.Symlink(secret, filepath.Join(dir, "rank1.log")))
	_, err = logfile.Open(dir)
	require.ErrorIs(t, err, fs.ErrNotExist, "links out of a folder are not followed")
}

func TestGlobAndMissingPaths(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "slurm-5.out"), []byte(oomLog), 0o644))
	r, err := diagnose.Path(context.Background(), filepath.Join(dir, "slurm-*.out"), diagnose.Context{})
	require.NoError(t, err)
	require.Equal(t, outcome.CUDAOOM, r.Class)
	_, err = diagnose.Path(context.Background(), filepath.Join(dir, "none-*.out"), diagnose.Context{})
	require.ErrorIs(t, err, fs.ErrNotExist)
	_, err = diagnose.Path(context.Background(), filepath.Join(dir, "none"), diagnose.Context{})
	require.ErrorIs(t, err, fs.ErrNotExist)
}

func TestBatchAnswersEveryLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "slurm-5.out")
	require.NoError(t, os.WriteFile(path, []byte(oomLog), 0o644))
	q, err := json.Marshal(map[string]any{"id": 7, "path": path})
	require.NoError(t, err)
	for in, want := range map[string]string{
		string(q):                         `"class":"cuda_oom"`,
		`{"id":"a","path":"/none"}`:       `"code":"not_found"`,
		`{"id":"a","path":5}`:             `"code":"bad_input"`,
		`{"id":"a"}`:                      `"field":"path"`,
		`not json`:                        `"code":"bad_input"`,
		``:                                `"code":"bad_input"`,
		`{"id":{"x":[1]},"path":"/none"}`: `"id":{"x":[1]}`,
	} {
		out := diagnose.Batch(context.Background(), []byte(in))
		require.True(t, json.Valid(out), "%s", out)
		require.NotContains(t, string(out), "\n")
		require.Contains(t, string(out), want)
	}
	out := diagnose.Batch(context.Background(), q)
	for _, key := range []string{
		"id", "class", "retry", "root_file", "root_line_no", "root_line", "root_rank", "root_node", "exclude_nodes",
		"downstream_ranks", "summary", "advice",
	} {
		require.Contains(t, string(out), `"`+key+`":`)
	}
}

func TestTheReportSaysItselfInBothLanguages(t *testing.T) {
	r := diagnoseText(t, "  micro_batch_size ................ 4\n  seq_length ................ 8192\n"+oomLog)
	require.Equal(t, 2.5, r.Memory.TriedGiB)
	require.Equal(t, "/w/train.py", r.Traceback.File)
	b, err := json.Marshal(r)
	require.NoError(t, err)
	var back report.Report
	require.NoError(t, json.Unmarshal(b, &back))
	en, zh := back.View(lang.EN), back.View(lang.ZH)
	require.Equal(t, r.View(lang.EN), en, "a report that was sent says the same")
	require.Equal(t, len(en.Sections), len(zh.Sections))
	require.Contains(t, zh.Title, "显存")
	require.Contains(t, strings.Join(en.Sections[3].Items, " "), "--micro-batch-size 2")
}

func FuzzAnyBytes(f *testing.F) {
	f.Add([]byte(oomLog))
	f.Add([]byte("1: [default3]:[rank3]: Traceback (most recent call last):\n1: [default3]:KeyError\n1: [default3]:: \n1: [default3]:'x'\n" +
		"srun: error: n1: tasks 0-3,9: Killed\n"))
	f.Add([]byte("\x80\x02]q\x00."))
	f.Fuzz(func(t *testing.T, b []byte) {
		src, err := logfile.Read("log", bytes.NewReader(b))
		require.NoError(t, err)
		r, err := diagnose.Run(context.Background(), src, diagnose.Context{})
		if none := new(logfile.UnreadableError); errors.As(err, &none) {
			require.NotEmpty(t, none.Logs)
			return
		}
		require.NoError(t, err)
		out, err := json.Marshal(r)
		require.NoError(t, err)
		require.True(t, utf8.Valid(out))
		if r.RootLineNo != nil {
			require.GreaterOrEqual(t, *r.RootLineNo, 1)
			require.LessOrEqual(t, *r.RootLineNo, bytes.Count(b, []byte("\n"))+1)
		}
	})
}

func TestLinesMergeAllRanks(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"rank0.log": "[2026-06-11 10:00:01] zero\n[2026-06-11 10:00:05] same\n",
		"rank1.log": "[2026-06-11 10:00:02] one\nno time\n[2026-06-11 10:00:05] same\n",
		"rank2.log": "[2026-06-11 10:00:00] RuntimeError: two\n[2026-06-11 10:00:05] same\n",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	src, err := logfile.Open(dir)
	require.NoError(t, err)
	texts := func(f diagnose.Filter) (got []string) {
		lines := allLines(t, src, f)
		for _, l := range diagnose.Collapse(lines) {
			got = append(got, l.Text)
			if l.Ranks > 0 {
				require.Equal(t, 3, l.Ranks)
			}
		}
		return got
	}
	require.Equal(t, []string{
		"[2026-06-11 10:00:00] RuntimeError: two", "[2026-06-11 10:00:01] zero", "[2026-06-11 10:00:02] one", "no time",
		"[2026-06-11 10:00:05] same",
	}, texts(diagnose.Filter{}))
	one := 1
	require.Equal(t, []string{"[2026-06-11 10:00:02] one", "no time", "[2026-06-11 10:00:05] same"}, texts(diagnose.Filter{Rank: &one}))
	require.Equal(t, []string{"no time", "[2026-06-11 10:00:05] same"}, texts(diagnose.Filter{Rank: &one, Tail: 2}))
	require.Equal(t, []string{"[2026-06-11 10:00:00] RuntimeError: two"}, texts(diagnose.Filter{Level: "error"}))
}

// In one log of all ranks the newest lines of one are rarely the newest of all.
func TestTheNewestLinesOfOneRankAreFoundAmongOthers(t *testing.T) {
	dir := t.TempDir()
	text := ""
	for i := range 40 {
		text += fmt.Sprintf("%d: [rank%d]: line %d\n", i/20, i/20, i)
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "run.log"), []byte(text), 0o644))
	src, err := logfile.Open(dir)
	require.NoError(t, err)
	zero := 0
	lines := allLines(t, src, diagnose.Filter{Rank: &zero, Tail: 2})
	require.Len(t, lines, 2)
	require.Contains(t, lines[1].Text, "line 19")
	require.Equal(t, 20, lines[1].LineNo)
}

func TestEveryAnswerNamesAStepOfTheMethod(t *testing.T) {
	steps := map[string]bool{"no failure in the logs": true, "not started": true}
	for _, s := range diagnose.Method() {
		require.NotEmpty(t, s.How.EN)
		require.NotEmpty(t, s.How.ZH)
		steps[s.ID] = true
	}
	for _, text := range []string{
		oomLog, "srun: error: n1: task 3: Exited with exit code 7\n", "srun: error: Node failure on n7\n", "all is well\n",
		"[after training is done]\n",
	} {
		require.True(t, steps[diagnoseText(t, text).Why])
	}
}

// TestAPrivateKeyNeverLeaves has a rank that prints its key, between the lines
// of another one; and a rank that dies right after.
func TestAPrivateKeyNeverLeaves(t *testing.T) {
	key := []string{
		"-----BEGIN OPENSSH PRIVATE KEY-----", "b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAAAMwAAAAtzc2gtZW", "QyNTUxOQAAACB9tail",
		"-----END OPENSSH PRIVATE KEY-----",
	}
	var b strings.Builder
	for i, l := range key {
		fmt.Fprintf(&b, "[rank1]: %s\n[rank0]: step %d\n", l, i)
	}
	b.WriteString("[rank1]: WANDB_API_KEY=0123456789abcdef0123456789abcdef01234567\n")
	path := filepath.Join(t.TempDir(), "slurm-1.out")
	require.NoError(t, os.WriteFile(path, []byte(b.String()), 0o600))
	src, err := logfile.Open(path)
	require.NoError(t, err)
	var all strings.Builder
	require.NoError(t, diagnose.Lines(context.Background(), src, diagnose.Filter{}, func(l diagnose.Line) error {
		all.WriteString(l.Text + "\n")
		return nil
	}))
	w := diagnose.NewFollower(logfile.Source{}, diagnose.Filter{})
	lines, err := w.Look(context.Background(), nil, path)
	require.NoError(t, err)
	for _, l := range lines {
		all.WriteString(l.Text + "\n")
	}
	r, err := diagnose.Run(context.Background(), src, diagnose.Context{JobState: "FAILED"})
	require.NoError(t, err)
	for _, e := range r.Evidence {
		all.WriteString(e.Text + "\n")
	}
	for _, secret := range []string{"b3Blbn", "QyNTUx", "0123456789abcdef"} {
		require.NotContains(t, all.String(), secret)
	}
	require.GreaterOrEqual(t, strings.Count(all.String(), "step 3"), 2, "other ranks' lines stay")
}

// TestWhatUnpacksTooFarIsCut has a compressed file of a few hundred KiB that comes
// to 300 MiB: its beginning is read, and it is said that the rest was not.
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
	require.NoError(t, os.WriteFile(path, append(packed(oomLog), bytes.Repeat(filler, 75)...), 0o644))
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

// TestWhatCannotBeReadIsSaid has logs without permission, programs and empty
// files: alone they give no class, beside others they are named first.
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
	require.NoError(t, os.WriteFile(filepath.Join(dir, "rank0.log"), []byte(oomLog), 0o644))
	r, err = diagnose.Path(context.Background(), dir, diagnose.Context{JobState: "FAILED"})
	require.NoError(t, err)
	require.Equal(t, outcome.CUDAOOM, r.Class)
	require.Equal(t, "ls.log", r.Unreadable[0].Path)
	require.True(t, strings.HasPrefix(r.Summary, "1 log could not be read (ls.log: not text but a program)"), r.Summary)
}

// TestARunningJobTellsItsPace looks at a job of half a second an iteration that
// wrote its last line at different times ago.
func TestARunningJobTellsItsPace(t *testing.T) {
	r := &run{world: 8, perNode: 8}
	r.healthy(0, 3*time.Minute) // ten seconds an iteration
	dir := t.TempDir()
	layouts["label"](t, r, dir)
	for age, hangs := range map[int64]bool{4: false, 49: false, 50: true, 130: true} {
		got, err := diagnose.Path(context.Background(), dir, diagnose.Context{JobState: "RUNNING", SecondsSinceLastWrite: &age})
		require.NoError(t, err)
		require.Equal(t, outcome.Running, got.Class)
		require.Equal(t, hangs, got.MayHang, age)
		require.InDelta(t, 10.0, *got.StepS, 0.01)
		require.Equal(t, age, *got.AgeS)
		require.Equal(t, 117, *got.LastIter)
		require.Equal(t, hangs, strings.Contains(got.Summary, "perhaps a hang"), got.Summary)
		require.Equal(t, hangs, len(got.Advice) > 0)
	}
}
