package joblogs

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/opstest"
	"github.com/megatron-ops/megatron-ops/slurm"
)

const doomed = "[rank0]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate %s GiB. GPU 0 has a total capacity of 79 GiB\n"

// What an agent may read is decided before it is opened; replacing the file by a link
// in between gains nothing.
func TestALinkSwappedInAfterTheCheckIsNotRead(t *testing.T) {
	t.Parallel()
	for _, op := range []struct {
		op    ops.Op
		input func(path string) any
	}{
		{Diagnose(), func(p string) any { return &DiagnoseIn{Target: p} }},
		{Metrics(), func(p string) any { return &MetricsIn{Runs: []string{p}} }},
		{Compare(), func(p string) any { return &CompareIn{Failed: p, Good: p} }},
	} {
		for _, when := range []string{"before the path is resolved", "after the path is resolved"} {
			top := t.TempDir()
			root, secret := filepath.Join(top, "root"), filepath.Join(top, "secret.log")
			logs := filepath.Join(root, "run")
			require.NoError(t, os.MkdirAll(logs, 0o755))
			log := filepath.Join(logs, "a.log")
			iteration := " [2025-11-20 10:00:00.000000] iteration %d/ 100 | consumed samples: 64 | elapsed time per iteration (ms): 500.0 | global batch size: 64 | lm loss: %s | \n"
			require.NoError(t, os.WriteFile(log, fmt.Appendf(nil, doomed+iteration, "1.25", 7, "2.5E+00"), 0o600))
			require.NoError(t, os.WriteFile(secret, fmt.Appendf(nil, doomed+iteration, "3.75", 9, "7.7E+00"), 0o600))
			require.NoError(t, os.Symlink("a.log", filepath.Join(logs, "latest")))

			swap := func() {
				require.NoError(t, os.Symlink(secret, filepath.Join(top, "next")))
				require.NoError(t, os.Rename(filepath.Join(top, "next"), log))
			}
			target := logs
			if when == "before the path is resolved" {
				target = log
			}
			call := &ops.Call{
				Service: &ops.Service{Clusters: map[string]ops.Cluster{"test": &opstest.Site{OfKind: "cli"}}, Default: "test"}, Who: ops.Caller{Surface: ops.MCPHTTP, ID: "x", User: "alice"}, Roots: []string{root},
				MayRead: func(path string) error {
					// The path itself is checked first, then each link below it.
					if _, err := os.Readlink(log); err != nil && (target == log || strings.HasSuffix(path, "latest")) {
						swap()
					}
					return nil
				},
			}
			out, err := op.op.Run(t.Context(), call, op.input(target))
			raw, jerr := json.Marshal(out)
			require.NoError(t, jerr)
			said := fmt.Sprint(string(raw), err)
			require.NotContains(t, said, "3.75", "%s, %s", op.op.Name, when)
			require.NotContains(t, said, "7.7", "%s, %s", op.op.Name, when)
			link, err := os.Readlink(log)
			require.NoError(t, err, "the link was put there")
			require.Equal(t, secret, link)
		}
	}
}

// A server reads for others: a file that --output was pointed at counts as a log only
// where it belongs to the job's user. A person's own process reads what the person may
// read.
func TestAServerReadsOnlyTheLogsOfTheJobsUser(t *testing.T) {
	t.Parallel()
	log := filepath.Join(t.TempDir(), "1.out")
	for _, c := range []struct {
		surface    ops.Surface
		user, self string
		owner      int
	}{
		{ops.Slack, "root", "megatron", 0},
		{ops.MCPHTTP, "root", "megatron", 0},
		{ops.Watcher, "root", "megatron", 0},
		{ops.Slack, "root", "root", -1},
		{ops.Shell, "root", "alice", -1},
		{ops.MCP, "root", "alice", -1},
	} {
		call := &ops.Call{Service: &ops.Service{Self: c.self}, Who: ops.Caller{Surface: c.surface}}
		in, err := openFolders(call, slurm.Job{User: c.user}, []string{log})
		require.NoError(t, err)
		require.Equal(t, c.owner, in.Owner, "%+v", c)
		in.Close()
	}
	// Where the user is unknown, no file is read.
	call := &ops.Call{Service: &ops.Service{Self: "megatron"}, Who: ops.Caller{Surface: ops.MCPHTTP}}
	_, err := openFolders(call, slurm.Job{User: "nobody-here-has-this-name"}, []string{log})
	require.ErrorContains(t, err, "not known to this machine")
	require.Equal(t, ops.NotAllowed, ops.AsError(err).Code)
}

func TestALogThatBelongsToSomebodyElseIsRefused(t *testing.T) {
	t.Parallel()
	log := filepath.Join(t.TempDir(), "1.out")
	require.NoError(t, os.WriteFile(log, fmt.Appendf(nil, doomed, "3.75"), 0o600))
	who := "daemon" // exists on every Unix, and never runs the tests
	call := &ops.Call{Service: &ops.Service{Self: "megatron"}, Who: ops.Caller{Surface: ops.MCPHTTP, User: who}}
	_, _, err := openLogs(call, slurm.Job{ID: "1", User: who}, []string{log})
	require.ErrorContains(t, err, "1.out does not belong to daemon, whose job it is")
	require.Zero(t, Bytes(call, slurm.Job{ID: "1", User: who}, []string{log}), "nor is its size told")
	call.Self = who
	require.EqualValues(t, len(fmt.Appendf(nil, doomed, "3.75")), Bytes(call, slurm.Job{ID: "1", User: who}, []string{log, log + ".gone"}))
	src, done, err := openLogs(call, slurm.Job{ID: "1", User: who}, []string{log})
	require.NoError(t, err)
	require.Equal(t, []string{"1.out"}, src.Files())
	done()
}
