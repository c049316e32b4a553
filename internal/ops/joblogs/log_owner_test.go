package joblogs

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/ops/opstest"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose"
)

// The job "gpt-12" has a log with 12 in its name, which is none of job 12's; the
// files of job 12's ranks are.
func TestALogOfAnotherJobIsLeftOut(t *testing.T) {
	dir := t.TempDir()
	write := func(name string) string {
		file := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(file, []byte(name+"\n"), 0o644))
		return file
	}
	s := &opstest.Site{OfKind: "cli", KnownJobs: map[slurm.JobID]slurm.Job{
		"12": {ID: "12", Name: "gpt", User: "alice", State: slurm.Failed, Stdout: write("gpt-12.out"), Stderr: write("gpt-12.err"), WorkDir: dir},
		"34": {ID: "34", Name: "gpt-12", User: "alice", State: slurm.Failed, Stdout: write("gpt-12-34.out"), WorkDir: dir},
		"7":  {ID: "7", Name: "other", User: "alice", State: slurm.Failed, Stdout: "/elsewhere", WorkDir: dir},
	}}
	write("gpt-12-rank7.out")
	write("gpt-120.out")
	files := func(id string) (names []string) {
		out, err := opstest.Do(t, opstest.NewCall(t, s), Logs(), id)
		require.NoError(t, err)
		for _, l := range out.(LogsOut).Lines {
			names = append(names, l.File)
		}
		return names
	}
	require.ElementsMatch(t, []string{"gpt-12.out", "gpt-12.err", "gpt-12-rank7.out"}, files("12"))
	require.ElementsMatch(t, []string{"gpt-12-34.out"}, files("34"))
}

func TestFollowedLinesComeOneByOneAsValues(t *testing.T) {
	dir := t.TempDir()
	log := filepath.Join(dir, "gpt-12.out")
	require.NoError(t, os.WriteFile(log, []byte("one\ntwo\n"), 0o644))
	c := opstest.NewCall(t, &opstest.Site{OfKind: "cli", KnownJobs: map[slurm.JobID]slurm.Job{"12": {ID: "12", User: "alice", State: slurm.Completed, Stdout: log}}})
	var lines []string
	c.Emit = func(v any) {
		b, err := json.Marshal(v.(diagnose.Line))
		require.NoError(t, err)
		lines = append(lines, string(b))
	}
	out, err := opstest.Do(t, c, Logs(), "12", "--follow", "--tail", "1")
	require.NoError(t, err)
	require.True(t, out.(LogsOut).Streamed())
	require.Equal(t, `{"file":"gpt-12.out","line_no":2,"rank":null,"node":"","text":"two"}`, strings.Join(lines, "\n"))
}
