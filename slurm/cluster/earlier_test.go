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

// A guess is a cluster that estimates a start only for requests of one node.
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

// A starts is a cluster that estimates a start for each request by the request's last
// option.
type starts map[string]time.Time

func (s starts) Test(_ context.Context, asked slurm.Submission) (slurm.Estimate, error) {
	last := ""
	if n := len(asked.Args); n > 0 {
		last = asked.Args[n-1]
	}
	return slurm.Estimate{Start: s[last]}, nil
}

func TestAStartIsSoonerByAMinuteAtLeast(t *testing.T) {
	at := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	_, sooner, err := cluster.Earlier(t.Context(), starts{
		"":         at,
		"--time=8": at.Add(-time.Minute), "--time=4": at.Add(-59 * time.Second),
		"--nodes=2": at.Add(-time.Hour), "--nodes=1": at.Add(time.Hour),
	}, slurm.Submission{Script: "#!/bin/sh\n#SBATCH --nodes=4 --time=16\n"})
	require.NoError(t, err)
	require.Equal(t, []cluster.Variant{
		{Time: 8 * time.Minute, Estimate: slurm.Estimate{Start: at.Add(-time.Minute)}},
		{Nodes: 2, Estimate: slurm.Estimate{Start: at.Add(-time.Hour)}},
	}, sooner)
}
