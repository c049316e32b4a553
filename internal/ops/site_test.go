package ops

import (
	"cmp"
	"context"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/store"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// A site is a cluster that answers from a map. It repeats opstest.Site, which these tests
// cannot import, because opstest imports this package.
type site struct {
	knownJobs map[slurm.JobID]slurm.Job
	submitted []slurm.Submission
	refuse    error
	found     slurm.JobID
	ofKind    string // empty means rest
	mu        sync.Mutex
}

func (s *site) Name() string { return "test" }

func (s *site) Kind() string { return cmp.Or(s.ofKind, "rest") }

func (s *site) Submit(_ context.Context, sub slurm.Submission) (slurm.JobID, error) {
	if s.refuse != nil {
		return "", s.refuse
	}
	s.submitted = append(s.submitted, sub)
	return slurm.JobID("470" + string(rune('0'+len(s.submitted)))), nil
}

func (s *site) Job(_ context.Context, id slurm.JobID) (slurm.Job, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	j, ok := s.knownJobs[id]
	if !ok {
		return slurm.Job{}, slurm.JobNotFound(id)
	}
	return j, nil
}

func (s *site) Jobs(_ context.Context, f slurm.Filter) ([]slurm.Job, error) {
	var out []slurm.Job
	for _, j := range s.knownJobs {
		if f.Match(j) {
			out = append(out, j)
		}
	}
	return out, nil
}

func (s *site) Cancel(_ context.Context, id slurm.JobID) error {
	j := s.knownJobs[id]
	j.State = slurm.Cancelled
	s.knownJobs[id] = j
	return nil
}

func (s *site) Find(context.Context, string, time.Time) (slurm.JobID, bool, error) {
	return s.found, s.found != "", nil
}

func newCall(t *testing.T, s *site) *Call {
	st, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "state.db"))
	require.NoError(t, err)
	t.Cleanup(func() { st.Close() })
	return &Call{
		Service: &Service{
			Clusters: map[string]Cluster{"test": s}, Default: "test", Now: time.Now,
			Store: func() (*store.Store, error) { return st, nil },
		},
		Who: Caller{Surface: Shell, ID: "alice", User: "alice"},
	}
}
