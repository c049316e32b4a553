package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/config"
)

// This machine's Slurm under a name of the site's is one cluster, not two: its
// jobs would be told of twice.
func TestThisMachinesSlurmIsOneCluster(t *testing.T) {
	t.Setenv("SLURM_CONF", "/etc/slurm/prod.conf")
	for name, c := range map[string]struct {
		clusters map[string]config.Cluster
		builtIn  bool
	}{
		"none is named":                      {nil, true},
		"it has a name":                      {map[string]config.Cluster{"prod": {Kind: "cli"}}, false},
		"it has a name and its slurm.conf":   {map[string]config.Cluster{"prod": {Kind: "cli", SlurmConf: "/etc/slurm/prod.conf"}}, false},
		"another of this machine has one":    {map[string]config.Cluster{"dev": {Kind: "cli", SlurmConf: "/etc/slurm/dev.conf"}}, true},
		"its commands are others":            {map[string]config.Cluster{"new": {Kind: "cli", SlurmBin: "/opt/slurm/bin"}}, true},
		"one elsewhere has one":              {map[string]config.Cluster{"far": {Kind: "ssh", Host: "login"}}, true},
		"the site gives slurm another sense": {map[string]config.Cluster{"slurm": {Kind: "cli"}}, true},
	} {
		all, err := clusters(config.Config{Clusters: c.clusters}, t.TempDir())
		require.NoError(t, err, name)
		_, is := all[slurmCluster]
		require.Equal(t, c.builtIn, is, name)
		for n := range c.clusters {
			require.Contains(t, all, n, name)
		}
	}
}
