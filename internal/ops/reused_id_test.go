package ops_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/opstest"
	"github.com/megatron-ops/megatron-ops/internal/store"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// What is stored about a job is not taken for what another job has that got its id; without an
// answer of the cluster it stays true.
func TestAStoredJobIsNotTheOneThatHasItsID(t *testing.T) {
	now := time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	for name, tt := range map[string]struct {
		id          slurm.JobID
		age         time.Duration // of the submission
		on          string
		job         *slurm.Job // that has the id now
		ok          bool
		sure, again bool // of SubmissionOf
	}{
		"new":                        {id: "7", age: time.Hour, on: "test", job: &slurm.Job{ID: "7", SubmittedAt: new(now.Add(-time.Hour))}, ok: true, sure: true},
		"old":                        {id: "7", age: 90 * 24 * time.Hour, on: "test", job: &slurm.Job{ID: "7", SubmittedAt: new(now.Add(-90 * 24 * time.Hour))}, ok: true, sure: true},
		"old, and another has it":    {id: "7", age: 90 * 24 * time.Hour, on: "test", job: &slurm.Job{ID: "7", SubmittedAt: new(now.Add(-time.Hour))}, again: true},
		"old, and nobody knows it":   {id: "7", age: 90 * 24 * time.Hour, on: "test", ok: true, sure: true},
		"old, of another cluster":    {id: "7", age: 90 * 24 * time.Hour, on: "gone", ok: true, sure: true},
		"a task of an array":         {id: "7_3", age: time.Hour, on: "test", job: &slurm.Job{ID: "7_3", SubmittedAt: new(now.Add(-time.Hour))}, ok: true, sure: true},
		"one that was not from here": {id: "8", age: time.Hour, on: "test", job: &slurm.Job{ID: "8"}},
	} {
		site := &opstest.Site{KnownJobs: map[slurm.JobID]slurm.Job{}}
		c := opstest.NewCall(t, site)
		c.Now = func() time.Time { return now }
		st, err := c.Store()
		require.NoError(t, err)
		require.NoError(t, st.Adopt(t.Context(), store.Submission{
			Key: "k", Token: "k", Cluster: tt.on, JobID: "7", Owner: "alice", Spec: []byte(`{"name":"gpt"}`), CreatedAt: now.Add(-tt.age),
		}))
		j := slurm.Job{ID: tt.id}
		if tt.job != nil {
			j = *tt.job
			site.KnownJobs[tt.id] = j
		}
		_, ok := c.Submission(t.Context(), tt.on, tt.id)
		require.Equal(t, tt.ok, ok, name)
		spec, ok := c.SpecOf(t.Context(), tt.on, tt.id)
		require.Equal(t, tt.ok, ok, name)
		require.Equal(t, tt.ok, spec.Name == "gpt", name)
		sub, sure, again := c.SubmissionOf(t.Context(), tt.on, j)
		require.Equal(t, tt.sure, sure, name)
		require.Equal(t, tt.again, again, name)
		require.Equal(t, tt.sure, sub.Owner == "alice", name)
		_, sure = c.SpecOfJob(t.Context(), tt.on, j)
		require.Equal(t, tt.sure, sure, name)
	}
	c := opstest.NewCall(t, &opstest.Site{})
	c.Store = nil
	_, err := c.FindSubmission(t.Context(), "test", "7")
	require.ErrorIs(t, err, store.ErrNotFound, "a service without a store has no submissions")
}

// Numbers are said in the grammatical number, and of a long list the first.
func TestWhatIsCountedIsSaid(t *testing.T) {
	for _, c := range []struct {
		got    lang.Text
		en, zh string
	}{
		{ops.CountedHours(1, false), "1 hour", "1 小时"},
		{ops.CountedHours(2.5, false), "2.5 hours", "2.5 小时"},
		{ops.CountedHours(1, true), "1 GPU hour", "1 GPU 小时"},
		{ops.CountedHours(0, true), "0 GPU hours", "0 GPU 小时"},
		{ops.FirstFew([]string{"a", "b"}, 2), "a, b", "a、b"},
		{ops.FirstFew([]string{"a", "b", "c"}, 2), "a, b, and 1 more", "a、b，另有 1 个"},
		{ops.FirstFew([]string{"a"}, 2), "a", "a"},
	} {
		require.Equal(t, []string{c.en, c.zh}, []string{c.got.EN, c.got.ZH})
	}
}
