package cluster_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/cluster"
)

// A guess is a cluster that gives a start only for requests of one node.
type guess struct{ at time.Time }

func (g guess) Test(_ context.Context, s slurm.Submission) (slurm.Estimate, error) {
	if slices.Contains(s.Args, "--nodes=1") {
		return slurm.Estimate{Start: g.at}, nil
	}
	return slurm.Estimate{}, nil
}

func TestAStartThatIsKnownIsSoonerThanNone(t *testing.T) {
	g := guess{time.Now().Add(time.Hour)}
	given, sooner, err := cluster.Earlier(t.Context(), g, slurm.Submission{Script: "#!/bin/sh\n#SBATCH --nodes=4 --time=60\n"})
	require.NoError(t, err)
	require.True(t, given.Start.IsZero())
	require.Equal(t, []cluster.Variant{{Nodes: 1, Estimate: slurm.Estimate{Start: g.at}}}, sooner)
}
