package jobcontrol

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/opstest"
	"github.com/megatron-ops/megatron-ops/slurm"
)

func TestCancelNamesWhatItEnds(t *testing.T) {
	s := &opstest.Site{KnownJobs: map[slurm.JobID]slurm.Job{
		"1": {ID: "1", User: "alice", Partition: "dev", State: slurm.Running},
		"2": {ID: "2", User: "alice", Partition: "dev", State: slurm.Pending},
		"3": {ID: "3", User: "bob", Partition: "dev", State: slurm.Pending},
	}}
	c := opstest.NewCall(t, s)
	for _, tt := range []struct {
		field string
		words []string
	}{
		{"job", []string{"--yes"}},
		{"mine", []string{"--partition", "dev", "--yes"}},
		{"mine", []string{"1", "--mine", "--yes"}},
		{"cluster", []string{"1.0", "--yes"}}, // this cluster has no steps
		{"job", []string{"1.batch", "--yes"}},
	} {
		_, err := opstest.Do(t, c, Cancel(), tt.words...)
		require.Equal(t, tt.field, ops.AsError(err).Field, "%v: %v", tt.words, err)
		require.Equal(t, ops.BadInput, ops.AsError(err).Code, tt.words)
	}
	out, err := opstest.Do(t, c, Cancel(), "--mine", "--pending", "--yes")
	require.NoError(t, err)
	require.Len(t, out.(CancelOut).Jobs, 1)
	require.Equal(t, slurm.Running, s.KnownJobs["1"].State)
	require.Equal(t, slurm.Cancelled, s.KnownJobs["2"].State)
	require.Equal(t, slurm.Pending, s.KnownJobs["3"].State)
	out, err = opstest.Do(t, c, Cancel(), "--mine", "--partition", "nosuch", "--yes")
	require.NoError(t, err)
	require.Empty(t, out.(CancelOut).Jobs)
}
