// Package opstest holds what the tests of the packages below internal/ops share: a
// cluster that answers from a map, and a caller in a shell.
package opstest

import (
	"cmp"
	"context"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/view"
	"github.com/megatron-ops/megatron-ops/slurm/slurmtest"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/store"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// A Site is a cluster that answers from a map and keeps the submissions that it gets.
type Site struct {
	Bare
	KnownJobs map[slurm.JobID]slurm.Job
	Submitted []slurm.Submission
	// Refuse is the error of each submission, if it is not nil.
	Refuse error
	// Found is the job that Find returns; empty: none.
	Found slurm.JobID
	// OfKind is the result of Kind; empty means rest.
	OfKind string

	mu sync.Mutex
}

// Name returns "test".
func (s *Site) Name() string { return "test" }

// Kind returns the back end's kind.
func (s *Site) Kind() string { return cmp.Or(s.OfKind, "rest") }

// Put changes a job while others read it.
func (s *Site) Put(j slurm.Job) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.KnownJobs[j.ID] = j
}

// Submit keeps the submission and returns 4701, 4702 and so on.
func (s *Site) Submit(_ context.Context, sub slurm.Submission) (slurm.JobID, error) {
	if s.Refuse != nil {
		return "", s.Refuse
	}
	s.Submitted = append(s.Submitted, sub)
	return slurm.JobID("470" + string(rune('0'+len(s.Submitted)))), nil
}

// Job returns the job from the map.
func (s *Site) Job(_ context.Context, id slurm.JobID) (slurm.Job, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	j, ok := s.KnownJobs[id]
	if !ok {
		return slurm.Job{}, slurm.JobNotFound(id)
	}
	return j, nil
}

// Jobs returns the jobs that match f.
func (s *Site) Jobs(_ context.Context, f slurm.Filter) ([]slurm.Job, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []slurm.Job
	for _, j := range s.KnownJobs {
		if f.Match(j) {
			out = append(out, j)
		}
	}
	return out, nil
}

// Past returns the jobs that match f, ended ones included.
func (s *Site) Past(ctx context.Context, f slurm.Filter) ([]slurm.Job, error) {
	f.All = f.All || f.Since.IsZero()
	return s.Jobs(ctx, f)
}

// Cancel marks the job as cancelled.
func (s *Site) Cancel(_ context.Context, id slurm.JobID) error {
	j := s.KnownJobs[id]
	j.State = slurm.Cancelled
	s.KnownJobs[id] = j
	return nil
}

// Find returns s.Found.
func (s *Site) Find(context.Context, string, time.Time) (slurm.JobID, bool, error) {
	return s.Found, s.Found != "", nil
}

// NewCall returns a call of alice's in a shell, on the cluster s, with its own store.
func NewCall(t testing.TB, s *Site) *ops.Call {
	t.Helper()
	file := filepath.Join(t.TempDir(), "state.db")
	var opened atomic.Pointer[store.Store]
	open := sync.OnceValues(func() (*store.Store, error) { // opened late, because most calls store nothing
		st, err := store.Open(context.Background(), file)
		opened.Store(st)
		return st, err
	})
	t.Cleanup(func() {
		if st := opened.Load(); st != nil {
			_ = st.Close()
		}
	})
	return &ops.Call{
		Service: &ops.Service{
			Clusters: map[string]ops.Cluster{"test": s}, Default: "test", Now: time.Now,
			Store: open,
		},
		Who: ops.Caller{Surface: ops.Shell, ID: "alice", User: "alice"},
	}
}

// Do runs op with the words that a person would type after its name.
func Do(t *testing.T, c *ops.Call, op ops.Op, words ...string) (any, error) {
	t.Helper()
	in := op.NewIn()
	if err := op.Words(in, words); err != nil {
		return nil, err
	}
	return op.Run(t.Context(), c, in)
}

// GoodJob is a job without problems in the plan, as words.
var GoodJob = []string{
	"--name", "gpt", "--nodes", "2", "--gpu", "h100", "--time", "1:00:00", "--worktree", "/lustre/m", "--",
	"--num-layers", "24", "--hidden-size", "1024", "--num-attention-heads", "16", "--seq-length", "2048",
	"--max-position-embeddings", "2048", "--micro-batch-size", "2", "--global-batch-size", "64", "--train-iters", "100", "--eval-interval", "100",
	"--lr", "1e-4", "--tensor-model-parallel-size", "4",
}

// Text returns an answer as a shell shows it.
func Text(t *testing.T, out any, l lang.Lang) string {
	t.Helper()
	var b strings.Builder
	require.NoError(t, view.Text(&b, out.(view.Viewer).View(l), view.Style{}))
	return b.String()
}

// OnSlurm returns a call of alice's on the real Slurm.
func OnSlurm(t *testing.T) (*ops.Call, *slurmtest.Cluster) {
	t.Helper()
	real := slurmtest.Start(t, slurmtest.Options{})
	c := NewCall(t, &Site{})
	c.Clusters, c.Default = map[string]ops.Cluster{"real": OwnCLI(t, real)}, "real"
	return c, real
}

// Sbatch submits a job as a user of the real Slurm, and returns its id.
func Sbatch(t *testing.T, real *slurmtest.Cluster, user string, words ...string) slurm.JobID {
	t.Helper()
	out, err := real.RunAs(t.Context(), user, append([]string{"sbatch", "--parsable", "--output=/dev/null"}, words...)...)
	require.NoError(t, err)
	t.Cleanup(func() { _, _ = real.Run(context.Background(), "scancel", out) })
	return slurm.JobID(out)
}
