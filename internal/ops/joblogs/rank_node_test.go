package joblogs

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/slurm"
)

// A rank's node is known where ranks lie node by node; otherwise the answer is all of
// the job's nodes.
func TestTheNodeOfARank(t *testing.T) {
	two, three := []string{"n1", "n2"}, []string{"n1", "n2", "n3"}
	for name, c := range map[string]struct {
		nodes       []string
		gpus, world int
		rank        int
		node        string
	}{
		"the first":                 {two, 16, 0, 0, "n1"},
		"the last of the first":     {two, 16, 0, 7, "n1"},
		"the first of the second":   {two, 16, 0, 8, "n2"},
		"the last":                  {two, 16, 0, 15, "n2"},
		"no such rank":              {two, 16, 0, 16, "n[1-2]"},
		"the log knows more ranks":  {two, 0, 32, 16, "n2"},
		"uneven":                    {three, 16, 0, 8, "n[1-3]"},
		"fewer ranks than nodes":    {three, 2, 0, 1, "n[1-3]"},
		"one on each":               {two, 2, 0, 1, "n2"},
		"nodes that nobody told of": {nil, 16, 0, 8, ""},
	} {
		require.Equal(t, c.node, nodeOf(slurm.Job{Nodes: c.nodes, GPUs: c.gpus}, c.world, c.rank), name)
	}
}
