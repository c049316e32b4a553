package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/config"
)

// scontrolOf returns a folder with an scontrol whose Slurm runs as the account uid.
func scontrolOf(t *testing.T, uid int) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"scontrol": fmt.Sprintf("#!/bin/sh\necho 'SlurmUser               = slurm(%d)'\n", uid),
		"sbatch":   "#!/bin/sh\n",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755)) //nolint:gosec // it is started
	}
	return dir
}

// A controller's account is read from the cluster's own scontrol, wherever that is.
func TestEverySlurmIsAskedWhoItRunsAs(t *testing.T) {
	own, other, gone := scontrolOf(t, 64030), scontrolOf(t, 401), t.TempDir()
	t.Setenv("PATH", own+":/bin")
	require.Equal(t, map[string]string{slurmCluster: "64030"}, slurmUsers(t.Context(), config.Config{}), "nobody named a cluster")
	require.Equal(t, map[string]string{slurmCluster: "64030", "new": "401"}, slurmUsers(t.Context(), config.Config{Clusters: map[string]config.Cluster{
		"new": {Kind: "cli", SlurmBin: other}, "away": {Kind: "cli", SlurmBin: gone}, "far": {Kind: "ssh", Host: "login"},
	}}))
	t.Setenv("PATH", "/nowhere")
	require.Equal(t, map[string]string{"new": "401"}, slurmUsers(t.Context(), config.Config{Clusters: map[string]config.Cluster{"new": {Kind: "cli", SlurmBin: other}}}))
}
