package slurm

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOutputIsSortedByNode(t *testing.T) {
	got := Outputs("1: b\n0: a: x\n0:\n 1: bb\nsrun: error: lost\n2: no such task\n-1: nor this\nno label\n", []string{"gpu1", "gpu2"})
	require.Equal(t, []NodeOutput{
		{"gpu1", "a: x\n\n"}, {"gpu2", "b\nbb\n"}, {"", "srun: error: lost\n2: no such task\n-1: nor this\nno label\n"},
	}, got)
	require.Equal(t, []NodeOutput{{"gpu1", "a"}}, Outputs("0: a", []string{"gpu1"}))
}

func TestNodesToRunOn(t *testing.T) {
	j := Job{ID: "7", State: Running, Nodes: []string{"gpu1", "gpu2"}}
	nodes, err := ExecNodes(j, nil)
	require.NoError(t, err)
	require.Equal(t, j.Nodes, nodes)
	nodes, err = ExecNodes(j, []string{"gpu2"})
	require.NoError(t, err)
	require.Equal(t, []string{"gpu2"}, nodes)
	_, err = ExecNodes(j, []string{"gpu2", "gpu3"})
	require.ErrorContains(t, err, "gpu3 is not one of the job's nodes: gpu[1-2]")
	for _, j := range []Job{{ID: "7", State: Pending, Nodes: []string{"gpu1"}}, {ID: "7", State: Running}} {
		_, err = ExecNodes(j, nil)
		require.ErrorContains(t, err, "has no nodes")
	}
}
