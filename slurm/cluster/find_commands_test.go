package cluster_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/cluster"
)

func TestFolderOfItsOwnComesFirst(t *testing.T) {
	old := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(old, "sbatch"), []byte("#!/bin/sh\n"), 0o755))
	for _, c := range []struct {
		given []string
		bin   string
		want  []string
	}{
		{[]string{"A=b", "PATH=/usr/bin:/bin"}, "/opt/slurm/bin", []string{"A=b", "PATH=/opt/slurm/bin:/usr/bin:/bin"}},
		{[]string{"PATH=/venv/bin:/opt/slurm/bin"}, "/opt/slurm/bin", []string{"PATH=/venv/bin:/opt/slurm/bin"}},
		{[]string{"PATH=" + old + ":/opt/slurm/bin"}, "/opt/slurm/bin", []string{"PATH=/opt/slurm/bin:" + old + ":/opt/slurm/bin"}},
		{[]string{"PATH=/venv/bin:" + old}, old, []string{"PATH=/venv/bin:" + old}},
		{[]string{"PATH=/opt/slurm/bin2"}, "/opt/slurm/bin", []string{"PATH=/opt/slurm/bin:/opt/slurm/bin2"}},
		{nil, "/opt/slurm/bin", []string{"PATH=/opt/slurm/bin:/usr/local/bin:/usr/bin:/bin"}},
		{[]string{"PATH=/bin"}, "", []string{"PATH=/bin"}},
	} {
		require.Equal(t, c.want, cluster.WithFolder(c.given, c.bin))
	}
}

func TestCommandsAreFoundOnThePath(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "sbatch"), []byte("#!/bin/sh\n"), 0o755))
	bin, onPath := cluster.FindCommands([]string{"PATH=/nowhere:" + dir})
	require.True(t, onPath)
	require.Equal(t, dir, bin)
	_, onPath = cluster.FindCommands([]string{"PATH=/nowhere"})
	require.False(t, onPath)
}

// What would be submitted is tested with the environment that it would have.
func TestATestHasTheSubmissionsEnvironment(t *testing.T) {
	c := withScripts(t, map[string]string{"sbatch": `echo "$WANDB_MODE" >"$PWD/mode"`})
	dir := t.TempDir()
	_, err := c.Test(t.Context(), slurm.Submission{Script: "#!/bin/sh\n", Dir: dir, Env: []string{"PATH=/usr/bin:/bin", "WANDB_MODE=offline"}})
	require.NoError(t, err)
	mode, err := os.ReadFile(filepath.Join(dir, "mode"))
	require.NoError(t, err)
	require.Equal(t, "offline\n", string(mode))
}

// A job of a Slurm in its own prefix finds that Slurm's srun, whatever PATH its
// submission has.
func TestJobsFindTheSrunOfTheirSlurm(t *testing.T) {
	c := withScripts(t, map[string]string{"sbatch": `echo "$PATH" >"$PWD/path"; echo 7`})
	bin, _ := cluster.FindCommands(c.Environ())
	for _, env := range [][]string{nil, {"PATH=/usr/bin:/bin"}, {"A=b"}} {
		dir := t.TempDir()
		_, err := c.Submit(t.Context(), slurm.Submission{Script: "#!/bin/sh\n", Dir: dir, Env: env})
		require.NoError(t, err)
		path, err := os.ReadFile(filepath.Join(dir, "path"))
		require.NoError(t, err)
		require.Contains(t, filepath.SplitList(string(path)), bin)
	}
	_, s := replayed(t, "24.11")
	s.backend.(*cluster.REST).Bin = "/opt/slurm/bin" //nolint:forcetypeassert // made so
	id := s.submit(t, "--time=5 --output=logs/%j.out", `echo "$PATH"`)
	s.state(t, id, slurm.Completed)
	require.Contains(t, s.log(t, "logs/"+string(id)+".out"), "/opt/slurm/bin:")
}
