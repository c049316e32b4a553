package main

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/cluster"
	"github.com/megatron-ops/megatron-ops/slurm/cluster/local"
)

// runIn runs a command line here.
func runIn(t *testing.T, words ...string) (code int, out, errs string) {
	t.Helper()
	var o, e strings.Builder
	code = run(t.Context(), words, streams{in: strings.NewReader(""), out: &o, err: &e})
	return code, o.String(), e.String()
}

// Without a home directory every command works that keeps nothing. The others say what to set, and write nothing
// into the folder that they are called in.
func TestWithoutAHomeDirectory(t *testing.T) {
	for _, name := range []string{"HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "MEGATRON_OPS_STATE_DIR"} {
		t.Setenv(name, "")
	}
	t.Chdir(t.TempDir())
	spec(t, "true")
	require.NoError(t, os.WriteFile("job.sh", []byte("#!/bin/bash\nsrun python train.py\n"), 0o600))
	for words, code := range map[string]int{
		"plan job.yaml": 0, "render job.yaml": 0, "lint job.sh": 0, "import job.sh": 0, "ask what is TP": 0, "explain NODE_FAIL": 0,
		"constants": 0, "diagnose job.sh": 0, "hostlist n[1-2]": 0, "recipes": 0, "nodes": 0,
	} {
		got, out, errs := runIn(t, append([]string{"--cluster", "local"}, strings.Fields(words)...)...)
		require.Equal(t, code, got, "%s\n%s%s", words, out, errs)
	}
	for _, words := range []string{
		"list", "status 3", "logs 3", "wait 3", "history", "submit job.yaml --yes", "cancel 3 --yes", "cancel --mine --yes", "chat",
		"--cluster slurm cancel 3 --yes", "--cluster slurm hold 3",
	} {
		code, _, errs := runIn(t, append([]string{"--cluster", "local"}, strings.Fields(words)...)...)
		require.Equal(t, 2, code, words)
		require.Contains(t, errs, "try: set MEGATRON_OPS_STATE_DIR", words)
	}
	left, err := os.ReadDir(".")
	require.NoError(t, err)
	require.Len(t, left, 2)
}

// Only the embedded back end needs the folder: Slurm keeps its jobs itself.
func TestOnlyTheEmbeddedBackEndRefusesJobs(t *testing.T) {
	why := errors.New("no folder")
	slurmAlone := cluster.NewCLI("real")
	all := map[string]ops.Cluster{"local": local.New("local", t.TempDir()), "real": slurmAlone}
	refuseJobs(all, why)
	require.Same(t, slurmAlone, all["real"])
	c := all["local"]
	_, err := c.Submit(t.Context(), slurm.Submission{})
	require.ErrorIs(t, err, why)
	_, found, err := c.Find(t.Context(), "token", time.Time{})
	require.ErrorIs(t, err, why)
	require.False(t, found)
	require.ErrorIs(t, c.Cancel(t.Context(), "3"), why)
}
