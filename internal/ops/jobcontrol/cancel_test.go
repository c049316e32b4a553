package jobcontrol

import (
	"context"
	"errors"
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

// A job that waits in several partitions is listed under each, as squeue does, and cancelled only
// with all of them, as scancel does. The question and the answer name it.
func TestAJobThatWaitsInSeveralPartitions(t *testing.T) {
	s := &opstest.Site{KnownJobs: map[slurm.JobID]slurm.Job{
		"1": {ID: "1", Name: "gpt", User: "alice", State: slurm.Running, Partition: "dev"},
		"2": {ID: "2", User: "alice", State: slurm.Pending, Partition: "dev,prod"},
	}}
	c := opstest.NewCall(t, s)
	out, err := opstest.Do(t, c, List(), "--partition", "dev")
	require.NoError(t, err)
	require.Len(t, out.(ListOut).Jobs, 2)
	_, err = opstest.Do(t, c, Cancel(), "--mine", "--partition", "dev")
	require.True(t, ops.AsError(err).Confirm)
	require.ErrorContains(t, err, "this ends 1 job of alice, 1 of them running: 1 gpt; what waits in other partitions too goes on: 2")
	for _, title := range []string{"1 job cancelled", "you have no job to cancel"} {
		out, err = opstest.Do(t, c, Cancel(), "--mine", "--partition", "dev", "--yes")
		require.NoError(t, err)
		require.Equal(t, []slurm.JobID{"2"}, out.(CancelOut).kept)
		require.Contains(t, opstest.Text(t, out, lang.EN), title)
		require.Contains(t, opstest.Text(t, out, lang.ZH), "还在其他分区排队的作业保留：2")
	}
	require.Equal(t, slurm.Pending, s.KnownJobs["2"].State)
	// Of several partitions each counts, in any order. An array of which some tasks wait in other
	// partitions too loses the others only.
	s.Put(slurm.Job{ID: "3", User: "alice", State: slurm.Running, Partition: "prod"})
	s.Put(slurm.Job{ID: "4_0", User: "alice", State: slurm.Running, Partition: "dev"})
	s.Put(slurm.Job{ID: "4_1", User: "alice", State: slurm.Pending, Partition: "dev,big"})
	out, err = opstest.Do(t, c, Cancel(), "--mine", "--partition", "prod,dev", "--yes")
	require.NoError(t, err)
	require.Contains(t, opstest.Text(t, out, lang.EN), "what waits in other partitions too goes on: 4_1")
	for id, state := range map[slurm.JobID]slurm.State{"2": slurm.Cancelled, "3": slurm.Cancelled, "4_0": slurm.Cancelled, "4_1": slurm.Pending} {
		require.Equal(t, state, s.KnownJobs[id].State, id)
	}
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

// A cancellingSite ends jobs and steps, and refuses some.
type cancellingSite struct {
	opstest.Site
	rows      []slurm.Job
	refuses   slurm.JobID
	cancelled []string
}

func (s *cancellingSite) Jobs(context.Context, slurm.Filter) ([]slurm.Job, error) { return s.rows, nil }

func (s *cancellingSite) Cancel(_ context.Context, id slurm.JobID) error {
	if id == s.refuses {
		return errors.New("denied")
	}
	s.cancelled = append(s.cancelled, string(id))
	return nil
}

func (s *cancellingSite) CancelStep(_ context.Context, step string) error {
	if step == "7.5" {
		return slurm.JobNotFound("7.5")
	}
	s.cancelled = append(s.cancelled, step)
	return nil
}

// One's own jobs are ended together, those and no others that the question named, an array as a
// whole unless only what waits is to go.
func TestOnesOwnJobsAreEndedTogether(t *testing.T) {
	t.Parallel()
	rows := []slurm.Job{
		{ID: "7", Name: "gpt", User: "alice", State: slurm.Running, Partition: "prod"},
		{ID: "8_1", Name: "sweep", User: "alice", State: slurm.Running, Partition: "dev"},
		{ID: "8_2", Name: "sweep", User: "alice", State: slurm.Running, Partition: "dev"},
		{ID: "8_[3-9]", Name: "sweep", User: "alice", State: slurm.Pending, Partition: "dev"},
		{ID: "9", Name: "late", User: "alice", State: slurm.Pending, Partition: "prod"},
		{ID: "10", Name: "over", User: "alice", State: slurm.Completed, Partition: "prod"},
		{ID: "11", Name: "theirs", User: "bob", State: slurm.Running, Partition: "prod"},
	}
	for _, tt := range []struct {
		in      CancelIn
		asks    string
		shown   string
		agreed  string // what a person agreed to, as the question showed it; empty: yes was given
		ends    []string
		refuses slurm.JobID
	}{
		{in: CancelIn{Mine: true}, asks: "this ends 3 jobs of alice, 2 of them running: 7 gpt, 8 sweep, 9 late", shown: "7,8,9", ends: []string{"7", "8", "9"}},
		{in: CancelIn{Mine: true, Pending: true}, asks: "this ends 2 jobs of alice, 0 of them running: 8_[3-9] sweep, 9 late", shown: "8,9", ends: []string{"8_[3-9]", "9"}},
		{in: CancelIn{Mine: true, Partition: "dev"}, asks: "this ends 1 job of alice, 1 of them running: 8 sweep", shown: "8", ends: []string{"8"}},
		{in: CancelIn{Mine: true}, agreed: "7,8", ends: []string{"7", "8"}},
		{in: CancelIn{Mine: true}, refuses: "8", ends: []string{"7", "9"}},
		{in: CancelIn{Mine: true, Partition: "none"}},
	} {
		s := &cancellingSite{rows: rows, refuses: tt.refuses}
		c := opstest.NewCall(t, &s.Site)
		c.Clusters["test"] = s
		if tt.asks != "" {
			_, err := cancel(t.Context(), c, tt.in)
			e := ops.AsError(err)
			require.True(t, e.Confirm, "%+v", tt.in)
			require.Equal(t, tt.asks, e.Message.EN)
			require.Equal(t, tt.shown, e.Shown)
			require.Empty(t, s.cancelled)
		}
		tt.in.Yes = tt.agreed == ""
		c.Confirmed, c.Shown = tt.agreed != "", tt.agreed
		out, err := cancel(t.Context(), c, tt.in)
		require.Equal(t, tt.ends, s.cancelled)
		for _, j := range out.Jobs {
			require.Equal(t, j.JobID != tt.refuses, j.Cancelled, j.JobID)
		}
		require.Equal(t, len(tt.ends) > 0 && tt.refuses == "", out.Cancelled)
		if tt.refuses == "" {
			require.NoError(t, err)
			continue
		}
		require.ErrorContains(t, err, "1 job of 3 could not be ended")
		require.Equal(t, "denied", out.Jobs[1].Error)
	}
}

// A step is ended by its owner while its job runs, and the job goes on.
func TestAStepIsEnded(t *testing.T) {
	t.Parallel()
	s := &cancellingSite{Site: opstest.Site{KnownJobs: map[slurm.JobID]slurm.Job{
		"7": {ID: "7", Name: "gpt", User: "alice", State: slurm.Running}, "8": {ID: "8", User: "alice", State: slurm.Completed}, "9": {ID: "9", User: "bob", State: slurm.Running},
	}}}
	c := opstest.NewCall(t, &s.Site)
	c.Clusters["test"] = s
	for _, tt := range []struct {
		step slurm.JobID
		yes  bool
		says string
		ends bool
	}{
		{"7.0", false, "ending step 7.0 of gpt cannot be undone", false},
		{"7.0", true, "", true},
		{"7.5", true, "job 7 has no step 7.5 that runs", false},
		{"8.0", true, "", false},
		{"9.0", true, "belongs to bob", false},
		{"6.0", true, "not known", false},
	} {
		s.cancelled = nil
		out, err := cancel(t.Context(), c, CancelIn{Job: tt.step, Yes: tt.yes})
		require.Equal(t, tt.ends, len(s.cancelled) > 0, "%v: %v", tt.step, err)
		require.Equal(t, tt.ends, out.Cancelled)
		if tt.says == "" {
			require.NoError(t, err)
		} else {
			require.ErrorContains(t, err, tt.says)
		}
	}
	_, err := cancel(t.Context(), opstest.NewCall(t, &s.Site), CancelIn{Job: "7.0", Yes: true})
	require.ErrorContains(t, err, "end one step of a job", "a cluster that cannot")
}

// What is given wrong is named with what would work.
func TestWhatAnUpdateRefuses(t *testing.T) {
	t.Parallel()
	c := opstest.NewCall(t, &opstest.Site{KnownJobs: map[slurm.JobID]slurm.Job{"7": {ID: "7", User: "alice", State: slurm.Running, NumNodes: 2}}})
	for _, tt := range []struct {
		words []string
		field string
		says  string
	}{
		{[]string{"7"}, "", "there is nothing to change"},
		{[]string{"7", "--time", "soon"}, "time", `"soon" is not a time limit`},
		{[]string{"7", "--exclude", "gpu[1"}, "exclude", "gpu[1"},
		{[]string{"7", "--nodes=-1"}, "nodes", "-1 is negative"},
		{[]string{"7", "--nodes", "3"}, "nodes", "can be changed only while it waits"},
	} {
		_, err := opstest.Do(t, c, Update(), tt.words...)
		require.Error(t, err, "%v", tt.words)
		require.Equal(t, tt.field, ops.AsError(err).Field, "%v: %v", tt.words, err)
		require.Contains(t, ops.AsError(err).Message.EN, tt.says)
	}
}
