package jobcontrol

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
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
		{"signal", []string{"1", "--signal", "KILL", "--yes"}},
		{"signal", []string{"--mine", "--signal", "TERM", "--yes"}},
		{"signal", []string{"1.0", "--signal", "TERM", "--yes"}},
		{"signal", []string{"2", "--signal", "TERM", "--yes"}},  // it has no tasks yet
		{"cluster", []string{"1", "--signal", "TERM", "--yes"}}, // this cluster sends no signals
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

// A signalSite is a cluster that sends signals.
type signalSite struct {
	*opstest.Site
	sent []string
}

func (s *signalSite) Signal(_ context.Context, id slurm.JobID, name string) error {
	s.sent = append(s.sent, name+" to "+string(id))
	return nil
}

// A signal needs the rights and the confirmation of a cancellation, and the job goes on.
func TestASignalIsSentAsAJobIsCancelled(t *testing.T) {
	s := &signalSite{Site: &opstest.Site{KnownJobs: map[slurm.JobID]slurm.Job{
		"1": {ID: "1", Name: "gpt", User: "alice", State: slurm.Running, NumNodes: 2},
		"3": {ID: "3", User: "bob", State: slurm.Running},
		"4": {ID: "4", User: "alice", State: slurm.Completed},
	}}}
	c := opstest.NewCall(t, s.Site)
	c.Clusters["test"] = s
	_, err := opstest.Do(t, c, Cancel(), "1", "--signal", "TERM")
	require.True(t, ops.AsError(err).Confirm)
	require.ErrorContains(t, err, "sending SIGTERM to the tasks of 1 (gpt, 2 nodes) ends a program that does not handle it")
	_, err = opstest.Do(t, c, Cancel(), "3", "--signal", "TERM", "--yes")
	require.Equal(t, ops.NotAllowed, ops.AsError(err).Code)
	require.Empty(t, s.sent)
	for field, words := range map[string][]string{"signal": {"1", "--signal", ""}, "partition": {"--mine", "--partition="}} {
		_, err = opstest.Do(t, c, Cancel(), append(words, "--yes")...)
		require.Error(t, err, field)
		require.Equal(t, ops.BadInput, ops.AsError(err).Code, field)
		require.Equal(t, field, ops.AsError(err).Field)
		require.False(t, s.KnownJobs["1"].State.Ended(), field)
	}
	out, err := opstest.Do(t, c, Cancel(), "1", "--signal", "sigterm", "--yes")
	require.NoError(t, err)
	require.Equal(t, []string{"TERM to 1"}, s.sent)
	require.Equal(t, CancelOut{JobID: "1", Name: "gpt", State: slurm.Running, Signal: "TERM"}, out)
	require.Equal(t, "1 gpt: SIGTERM sent to its tasks; it ends when they do", out.(CancelOut).View(lang.EN).Title)
	require.Contains(t, out.(CancelOut).View(lang.ZH).Sections[0].Text, "30 秒")
	// Another call is another signal, and no client may repeat the call by itself.
	_, err = opstest.Do(t, c, Cancel(), "1", "--signal", "TERM", "--yes")
	require.NoError(t, err)
	require.Equal(t, []string{"TERM to 1", "TERM to 1"}, s.sent)
	require.False(t, Cancel().Idempotent)
	out, err = opstest.Do(t, c, Cancel(), "4", "--signal", "USR1", "--yes")
	require.NoError(t, err)
	require.Equal(t, "4 had ended already: COMPLETED; SIGUSR1 was not sent", out.(CancelOut).View(lang.EN).Title)
	require.Equal(t, "4 此前已结束：COMPLETED；未发送 SIGUSR1", out.(CancelOut).View(lang.ZH).Title)
}
