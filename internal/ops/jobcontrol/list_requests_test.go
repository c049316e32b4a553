package jobcontrol

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops/opstest"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// A countingSite counts the requests that the cluster gets.
type countingSite struct {
	*opstest.Site
	asked int
}

func (s *countingSite) Job(ctx context.Context, id slurm.JobID) (slurm.Job, error) {
	s.asked++
	return s.Site.Job(ctx, id)
}

func (s *countingSite) Jobs(ctx context.Context, f slurm.Filter) ([]slurm.Job, error) {
	s.asked++
	if len(f.IDs) == 0 { // the queue and the accounts' last days
		f.All = false
	}
	return s.Site.Jobs(ctx, f)
}

// Jobs that ended long ago cost one request together, however many are named.
func TestJobsThatEndedLongAgoAreOneRequest(t *testing.T) {
	now := time.Now()
	ended := func(id, raw slurm.JobID) slurm.Job {
		at := now.AddDate(0, -2, 0)
		return slurm.Job{ID: id, RawID: raw, Name: "gpt", User: "alice", State: slurm.Completed, SubmittedAt: &at, EndedAt: &at}
	}
	s := &countingSite{Site: &opstest.Site{KnownJobs: map[slurm.JobID]slurm.Job{}}}
	for _, j := range []slurm.Job{ended("1", "1"), ended("2", "2"), ended("3_1", "31"), ended("4_2", "42"), ended("5_0", "50"), ended("5_1", "51")} {
		s.Put(j)
	}
	c := opstest.NewCall(t, s.Site)
	c.Clusters["test"] = s
	for _, row := range []struct {
		words []string
		want  []slurm.JobID
		asked int
	}{
		{[]string{"1"}, []slurm.JobID{"1"}, 2},
		{[]string{"1", "2", "3_1"}, []slurm.JobID{"1", "2", "3_1"}, 2},
		{[]string{"2", "42", "5"}, []slurm.JobID{"2", "4_2", "5"}, 2},
		{[]string{"1", "2", "99"}, []slurm.JobID{"1", "2"}, 3},
	} {
		s.asked = 0
		out, err := opstest.Do(t, c, List(), row.words...)
		require.NoError(t, err)
		var ids []slurm.JobID
		for _, j := range out.(ListOut).Jobs {
			ids = append(ids, j.ID)
		}
		require.ElementsMatch(t, row.want, ids, row.words)
		require.Equal(t, row.asked, s.asked, row.words)
	}
}

// A quietSite is a Slurm whose queue answers and whose accounts do not.
type quietSite struct{ *opstest.Site }

func (s quietSite) Jobs(ctx context.Context, f slurm.Filter) ([]slurm.Job, error) {
	if f.Since.IsZero() {
		return s.Site.Jobs(ctx, f)
	}
	f.All, f.Since = false, time.Time{}
	jobs, _ := s.Site.Jobs(ctx, f)
	failed := &slurm.Error{Op: "history", Kind: slurm.Unreachable, Msg: lang.Text{EN: "slurmdbd: Connection refused", ZH: "slurmdbd: Connection refused"}}
	return slurm.WithPast(jobs, nil, f.Match, failed)
}

// Without the accounts, the list is what the queue knows, and says what it lacks.
func TestAListWithoutTheAccounts(t *testing.T) {
	s := quietSite{&opstest.Site{KnownJobs: map[slurm.JobID]slurm.Job{}}}
	c := opstest.NewCall(t, s.Site)
	c.Clusters["test"] = s
	for _, queued := range []int{0, 1} {
		if queued == 1 {
			s.Put(slurm.Job{ID: "7", Name: "gpt", User: "alice", State: slurm.Running})
		}
		out, err := opstest.Do(t, c, List(), "--all")
		require.NoError(t, err)
		got := out.(ListOut)
		require.Len(t, got.Jobs, queued)
		require.Contains(t, got.Silent, "Connection refused")
		require.Contains(t, opstest.Text(t, got, lang.EN), "accounts do not answer")
		require.Contains(t, opstest.Text(t, got, lang.ZH), "没有应答")
	}
}

// Of jobs that were submitted in the same second, the newer one comes first; tasks keep their order.
func TestJobsOfOneSecondAreListedNewestFirst(t *testing.T) {
	at := time.Now()
	s := &opstest.Site{KnownJobs: map[slurm.JobID]slurm.Job{}}
	for _, id := range []slurm.JobID{"9", "10", "99", "100_1"} {
		s.Put(slurm.Job{ID: id, User: "alice", State: slurm.Running, SubmittedAt: &at})
	}
	out, err := opstest.Do(t, opstest.NewCall(t, s), List())
	require.NoError(t, err)
	var ids []slurm.JobID
	for _, j := range out.(ListOut).Jobs {
		ids = append(ids, j.ID)
	}
	require.Equal(t, []slurm.JobID{"100_1", "99", "10", "9"}, ids)
}
