package ops

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/slurm"
)

func TestCancelNamesWhatItEnds(t *testing.T) {
	s := &site{knownJobs: map[slurm.JobID]slurm.Job{
		"1": {ID: "1", User: "alice", Partition: "dev", State: slurm.Running},
		"2": {ID: "2", User: "alice", Partition: "dev", State: slurm.Pending},
		"3": {ID: "3", User: "bob", Partition: "dev", State: slurm.Pending},
	}}
	c := newCall(t, s)
	for _, tt := range []struct {
		field string
		words []string
	}{
		{"job", []string{"--yes"}},
		{"mine", []string{"--partition", "dev", "--yes"}},
		{"mine", []string{"1", "--mine", "--yes"}},
		{"cluster", []string{"1.0", "--yes"}}, // this one has no steps
		{"job", []string{"1.batch", "--yes"}},
	} {
		_, err := do(t, c, Cancel(), tt.words...)
		require.Equal(t, tt.field, AsError(err).Field, "%v: %v", tt.words, err)
		require.Equal(t, BadInput, AsError(err).Code, tt.words)
	}
	out, err := do(t, c, Cancel(), "--mine", "--pending", "--yes")
	require.NoError(t, err)
	require.Len(t, out.(CancelOut).Jobs, 1)
	require.Equal(t, slurm.Running, s.knownJobs["1"].State)
	require.Equal(t, slurm.Cancelled, s.knownJobs["2"].State)
	require.Equal(t, slurm.Pending, s.knownJobs["3"].State)
	out, err = do(t, c, Cancel(), "--mine", "--partition", "nosuch", "--yes")
	require.NoError(t, err)
	require.Empty(t, out.(CancelOut).Jobs)
}
