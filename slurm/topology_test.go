package slurm

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTopologyGivesTheSwitchOfANode(t *testing.T) {
	of := ParseTopology("SwitchName=leaf1 Level=0 LinkSpeed=1 Nodes=gpu[01-02]\nSwitchName=leaf2 Level=0 LinkSpeed=1 Nodes=gpu03\nSwitchName=spine Level=1 LinkSpeed=1 Nodes=gpu[01-03] Switches=leaf[1-2]\n")
	require.Equal(t, map[string]string{"gpu01": "leaf1", "gpu02": "leaf1", "gpu03": "leaf2"}, of)
	require.Equal(t, map[string]string{"n1": "b1"}, ParseTopology("BlockName=b1 BlockIndex=0 Nodes=n1 BlockSize=1\n"))
	require.Empty(t, ParseTopology("No topology information available\n"))
}
