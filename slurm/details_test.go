package slurm

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOnlyARunningJobWithNodesRunsCommands(t *testing.T) {
	running := Job{ID: "7", State: Running, Nodes: []string{"gpu1", "gpu2"}}
	nodes, err := ExecNodes(running, nil)
	require.NoError(t, err)
	require.Equal(t, []string{"gpu1", "gpu2"}, nodes)
	nodes, err = ExecNodes(running, []string{"gpu2"})
	require.NoError(t, err)
	require.Equal(t, []string{"gpu2"}, nodes)
	_, err = ExecNodes(running, []string{"gpu3"})
	require.ErrorContains(t, err, "gpu3 is not one of the job's nodes: gpu[1-2]")
	for _, j := range []Job{{ID: "7", State: Pending, Nodes: []string{"gpu1"}}, {ID: "7", State: Running}, {ID: "7", State: Completed, Nodes: []string{"gpu1"}}} {
		_, err := ExecNodes(j, nil)
		require.ErrorIs(t, err, ErrRejected)
	}
}

func TestTheTypeOfANodesGPUs(t *testing.T) {
	for gres, want := range map[string]string{
		"gpu:h100:8(S:0-1)": "h100", "gpu:8": "", "shm:1,gpu:a100:4": "a100", "nic:mlx:2": "", "": "", "gpu:h100:8:x": "",
	} {
		require.Equal(t, want, gpuType(gres), gres)
	}
}

// An option that takes no value leaves the next word alone; any other takes it.
func TestOptionsTakeTheirValues(t *testing.T) {
	for _, name := range []string{
		"contiguous", "exclusive", "get-user-env", "hold", "ignore-pbs", "no-kill", "no-requeue", "nodes-from-file",
		"overcommit", "oversubscribe", "parsable", "reboot", "requeue", "spread-job", "test-only", "use-min-nodes", "verbose", "wait",
	} {
		opts, err := ReadDirectives("#!/bin/bash\n#SBATCH --" + name + " --nodes 2\n")
		require.NoError(t, err, name)
		require.Equal(t, "2", opts.Value("nodes"), name)
	}
	for _, name := range []string{"account", "array", "chdir", "comment", "constraint", "gres", "job-name", "mem", "output", "partition", "time"} {
		opts, err := ReadDirectives("#!/bin/bash\n#SBATCH --" + name + " x1\n")
		require.NoError(t, err, name)
		require.Equal(t, "x1", opts.Value(name), name)
		_, err = ReadDirectives("#!/bin/bash\n#SBATCH --" + name + "\n")
		require.ErrorContains(t, err, "option '--"+name+"' requires an argument", name)
	}
}
