package diagnose_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/diagnosetest"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logfile"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/stretchr/testify/require"
)

func TestBytesThatActAreTakenAway(t *testing.T) {
	r := diagnosetest.Text(t, "a\x00b\xff\xfe\n\x1b[31m[rank3]:\x1b[0m Traceback (most recent call last):\n"+
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
	r := diagnosetest.Text(t, bar+"\n"+diagnosetest.OOMLog)
	require.Equal(t, outcome.CUDAOOM, r.Class)
}

func TestBatchAnswersEveryLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "slurm-5.out")
	require.NoError(t, os.WriteFile(path, []byte(diagnosetest.OOMLog), 0o644))
	q, err := json.Marshal(map[string]any{"id": 7, "path": path})
	require.NoError(t, err)
	for in, want := range map[string]string{
		string(q):                   `"class":"cuda_oom"`,
		`{"id":"a","path":"/none"}`: `"code":"not_found"`,
		`{"id":"a","path":5}`:       `"code":"bad_input"`,
		`{"id":"a"}`:                `"field":"path"`,
		`not json`:                  `"code":"bad_input"`,
		``:                          `"code":"bad_input"`,
		`{"id":"a","path":"/none","job_state":"FAILED"}`:                      `"field":"job_state"`,
		`{"id":"a","path":"/none","seconds_since_last_write":9,"context":{}}`: `write \"context\":{\"seconds_since_last_write\":…}`,
		`{"id":"a","path":"/none","kind":"hang"}`:                             `"code":"not_found"`,
		`{"id":{"x":[1]},"path":"/none"}`:                                     `"id":{"x":[1]}`,
	} {
		out := diagnose.Batch(context.Background(), []byte(in))
		require.True(t, json.Valid(out), "%s", out)
		require.NotContains(t, string(out), "\n")
		require.Contains(t, string(out), want)
	}
	silent := filepath.Join(t.TempDir(), "silent.log")
	require.NoError(t, os.WriteFile(silent, []byte("setting up\n"), 0o644))
	for state, want := range map[string]string{ // as squeue and sacct print them
		"CANCELLED by 1001": outcome.SlurmCancelled, "CANCELLED+": outcome.SlurmCancelled, "CA": outcome.SlurmCancelled, "timeout": outcome.SlurmTimeLimit,
		"OUT_OF_ME+": outcome.HostOOM, "running": outcome.Running, "R": outcome.Running, "ENDED": outcome.UnknownExit,
		"BANANA": `"field":"context.job_state"`, "OUT+": `"field":"context.job_state"`,
	} {
		line, err := json.Marshal(map[string]any{"id": 1, "path": silent, "context": map[string]any{"job_state": state}})
		require.NoError(t, err)
		require.Contains(t, string(diagnose.Batch(t.Context(), line)), want, state)
	}
	out := diagnose.Batch(context.Background(), q)
	for _, key := range []string{
		"id", "class", "retry", "root_file", "root_line_no", "root_line", "root_rank", "root_node", "exclude_nodes",
		"downstream_ranks", "summary", "advice",
	} {
		require.Contains(t, string(out), `"`+key+`":`)
	}
}

func FuzzAnyBytes(f *testing.F) {
	f.Add([]byte(diagnosetest.OOMLog))
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

// In one log of all ranks, the newest lines of one rank are rarely the newest of all.
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
		diagnosetest.OOMLog, "srun: error: n1: task 3: Exited with exit code 7\n", "srun: error: Node failure on n7\n", "all is well\n",
		"[after training is done]\n",
	} {
		require.True(t, steps[diagnosetest.Text(t, text).Why])
	}
}

// A rank prints its private key, between another rank's lines; another dies right after that.
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

// A job with half a second per iteration wrote its last line at different times ago.
func TestARunningJobTellsItsPace(t *testing.T) {
	r := &diagnosetest.Run{World: 8, PerNode: 8}
	r.Healthy(0, 3*time.Minute) // ten seconds for each iteration
	dir := t.TempDir()
	diagnosetest.Layouts["label"](t, r, dir)
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
