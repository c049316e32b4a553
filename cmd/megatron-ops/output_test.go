package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// fullDisk is a file on a full disk.
type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) {
	return 0, &fs.PathError{Op: "write", Path: "/dev/stdout", Err: syscall.ENOSPC}
}

// runLost runs a command whose output cannot be written.
func runLost(ctx context.Context, words ...string) (code int, said string) {
	var errs strings.Builder
	code = run(ctx, words, streams{in: strings.NewReader(""), out: fullDisk{}, err: &errs})
	return code, errs.String()
}

// A command whose output is lost has failed, whichever it is, and says so in the reader's language.
func TestOutputThatIsLost(t *testing.T) {
	t.Setenv("MEGATRON_OPS_STATE_DIR", t.TempDir())
	t.Chdir(t.TempDir())
	require.NoError(t, os.WriteFile("broken.log", []byte("[rank3]: torch.OutOfMemoryError: CUDA out of memory.\n"), 0o600))
	for _, words := range []string{
		"", "help", "help plan", "version", "version -o json", "man", "completion bash", "slack manifest", "mcp config --client claude",
		"explain NODE_FAIL", "constants", "hostlist gpu[1-2]", "hostlist gpu[1-2] -o json", "hostlist gpu[1-2] -o yaml", "--cluster local list",
		"diagnose broken.log",
	} {
		code, said := runLost(t.Context(), strings.Fields(words)...)
		require.Equal(t, 1, code, words)
		require.Equal(t, "megatron-ops: output: could not be written: no space left on device\n", said, words)
	}
	_, said := runLost(t.Context(), "--lang", "zh", "version")
	require.Equal(t, "megatron-ops: output：无法写出：磁盘空间不足\n", said)
}

// Bad input stays bad input: it is explained on the standard error, and once.
func TestAnErrorWhoseDocumentIsLost(t *testing.T) {
	code, said := runLost(t.Context(), "-o", "json", "nonsense")
	require.Equal(t, 2, code)
	require.Equal(t, 1, strings.Count(said, "there is no command"), said)
}

// spec writes a job specification, job.yaml, that runs a command of the shell.
func spec(t *testing.T, command string) {
	t.Helper()
	dir, err := os.Getwd()
	require.NoError(t, err)
	text := fmt.Sprintf("name: one\ntime: \"1\"\nnodes: 1\ngpus_per_node: 0\nworktree: %s\nlauncher: custom\nlauncher_argv: [sh, -c, \"echo started; %s\"]\n", dir, command)
	require.NoError(t, os.WriteFile("job.yaml", []byte(text), 0o600))
}

// A job whose submission could not be reported is submitted all the same, and the person
// learns it before submitting a second one.
func TestAChangeWhoseReportIsLost(t *testing.T) {
	t.Setenv("MEGATRON_OPS_STATE_DIR", t.TempDir())
	t.Setenv("MEGATRON_OPS_CLUSTER", "local")
	t.Chdir(t.TempDir())
	spec(t, "true")
	code, said := runLost(t.Context(), "submit", "job.yaml", "--yes")
	require.Equal(t, 1, code)
	require.Contains(t, said, "could not be written")
	require.Contains(t, said, "was done all the same (job 1): see")
	var out strings.Builder
	require.Zero(t, run(t.Context(), []string{"list", "--all", "-o", "json"}, streams{in: strings.NewReader(""), out: &out, err: os.Stderr}))
	require.Contains(t, out.String(), `"one"`)
	_, said = runLost(t.Context(), "--lang", "zh", "cancel", "1", "--yes")
	require.Contains(t, said, "请求的操作仍已执行（作业 1）")
	code, _ = runLost(t.Context(), "wait", "1")
	require.Equal(t, 1, code)
}

// A submission that the plan refused has changed nothing, nor has a dry run.
func TestARefusalWhoseReportIsLost(t *testing.T) {
	t.Setenv("MEGATRON_OPS_STATE_DIR", t.TempDir())
	t.Setenv("MEGATRON_OPS_CLUSTER", "local")
	t.Chdir(t.TempDir())
	spec(t, "true")
	steps := "name: p\nsteps:\n- name: a\n  file: job.yaml\n"
	require.NoError(t, os.WriteFile("steps.yaml", []byte(steps), 0o600))
	for _, words := range []string{"submit job.yaml --dry-run", "submit job.yaml --nodes 99 --yes", "pipeline steps.yaml --dry-run"} {
		code, said := runLost(t.Context(), strings.Fields(words)...)
		require.Equal(t, 1, code, words)
		require.Equal(t, "megatron-ops: output: could not be written: no space left on device\n", said, words)
	}
}

// A command that would go on for ever ends when nobody can read it any more.
func TestFollowingEndsWithItsOutput(t *testing.T) {
	t.Setenv("MEGATRON_OPS_STATE_DIR", t.TempDir())
	t.Setenv("MEGATRON_OPS_CLUSTER", "local")
	t.Chdir(t.TempDir())
	spec(t, "sleep 60")
	var out strings.Builder
	require.Zero(t, run(t.Context(), []string{"submit", "job.yaml", "--yes", "-o", "json"}, streams{in: strings.NewReader(""), out: &out, err: os.Stderr}))
	var made struct {
		JobID string `json:"job_id"`
	}
	require.NoError(t, json.Unmarshal([]byte(out.String()), &made))
	defer func() { // a supervisor that still writes would keep the folder from being removed
		for _, command := range [][]string{{"cancel", made.JobID, "--yes"}, {"wait", made.JobID}} {
			run(context.Background(), command, streams{in: strings.NewReader(""), out: io.Discard, err: io.Discard})
		}
	}()
	ctx, done := context.WithTimeout(t.Context(), 30*time.Second)
	defer done()
	code, said := runLost(ctx, "logs", made.JobID, "--follow")
	require.NoError(t, ctx.Err(), "it goes on though its output is lost")
	require.Equal(t, 1, code)
	require.Contains(t, said, "could not be written")
}

// A specification that is redirected without saying so is not judged as an empty one.
func TestASpecificationThatIsRedirected(t *testing.T) {
	t.Setenv("MEGATRON_OPS_STATE_DIR", t.TempDir())
	t.Chdir(t.TempDir())
	spec(t, "true")
	for _, op := range []string{"plan", "render", "submit"} {
		in, err := os.Open("job.yaml")
		require.NoError(t, err)
		defer in.Close()
		var errs strings.Builder
		require.Equal(t, 2, run(t.Context(), []string{op}, streams{in: in, out: &errs, err: &errs}), op)
		require.Contains(t, errs.String(), "try: `megatron-ops "+op+" -` reads it")
	}
	in, err := os.Open("job.yaml")
	require.NoError(t, err)
	defer in.Close()
	var out strings.Builder
	require.Zero(t, run(t.Context(), []string{"--cluster", "local", "plan", "-"}, streams{in: in, out: &out, err: &out}), out.String())
}

// Of several calls in one, the first that fails gives the exit code, a verdict that is not good included.
func TestTheFirstFailureOfSeveralGivesTheExitCode(t *testing.T) {
	t.Setenv("MEGATRON_OPS_STATE_DIR", t.TempDir())
	const unknown, bad = `{"job":"99"}`, `{"job":"no id"}`
	const refused, good = `{"spec":{"gpu":"h100","nodes":1,"worktree":"/w","args":["--num-layers","3"]}}`, `{"word":"NODE_FAIL"}`
	for _, c := range []struct {
		command, documents string
		code               int
	}{
		{"status", unknown + bad, 5},
		{"status", bad + unknown, 2},
		{"plan", refused + `{"from":"99"}`, 3},
		{"plan", `{"from":"99"}` + refused, 5},
		{"explain", good + good, 0},
	} {
		for _, format := range []string{"text", "json"} {
			var out strings.Builder
			words := []string{"--cluster", "local", "-o", format, c.command, "--input", "-"}
			require.Equal(t, c.code, run(t.Context(), words, streams{in: strings.NewReader(c.documents), out: &out, err: &out}), "%s %s: %s", c.command, c.documents, out.String())
			if format == "json" && c.code == 0 {
				require.Equal(t, 2, strings.Count(out.String(), "\n"), "a line each")
			}
		}
	}
}

// Whoever interrupts a command reads no error for it.
func TestAnInterruptIsNoError(t *testing.T) {
	ctx, interrupt := context.WithCancelCause(t.Context())
	interrupt(signalExit(os.Interrupt))
	var said strings.Builder
	sh := &shell{streams: streams{out: &said, err: &said}}
	require.Equal(t, 130, sh.exit(ctx, fmt.Errorf("while it waits: %w", context.Canceled)))
	require.Empty(t, said.String())
}

// The flag that unfolds an answer may stand before and after the command; behind a dash it is the program's.
func TestAnAnswerIsUnfolded(t *testing.T) {
	for words, unfolded := range map[string]bool{"plan": false, "-v plan": true, "plan --verbose": true, "plan -- -v": false} {
		sh := &shell{}
		_, err := sh.globalFlags(strings.Fields(words))
		require.NoError(t, err)
		require.Equal(t, unfolded, sh.verbose, words)
	}
}
