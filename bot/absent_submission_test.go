package bot

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/store"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// finder is a cluster that looks for a job by its token.
type finder struct {
	ops.Cluster
	found bool
	err   error
}

func (f finder) Find(context.Context, string, time.Time) (slurm.JobID, bool, error) {
	return "1", f.found, f.err
}

// A submission is offered again only where its cluster answers, to its owner, that it has no
// such job.
func TestWhenASubmissionIsSurelyAbsent(t *testing.T) {
	away := errors.New("the cluster does not answer")
	for name, c := range map[string]struct {
		here  finder
		owner string
		as    func(ops.Cluster, string) (ops.Cluster, error)
		want  bool
	}{
		"it is there":      {here: finder{found: true}, owner: "me"},
		"it is not":        {here: finder{}, owner: "me", want: true},
		"nobody knows":     {here: finder{err: away}, owner: "me"},
		"as the owner":     {here: finder{}, owner: "ada", as: func(ops.Cluster, string) (ops.Cluster, error) { return finder{found: true}, nil }},
		"not as the owner": {here: finder{}, owner: "ada", as: func(ops.Cluster, string) (ops.Cluster, error) { return nil, away }},
		"as oneself":       {here: finder{}, owner: "me", as: func(ops.Cluster, string) (ops.Cluster, error) { return nil, away }, want: true},
		"as nobody else":   {here: finder{}, owner: "ada", want: true},
	} {
		b := &Bot{cfg: Config{Service: &ops.Service{Self: "me", As: c.as, Clusters: map[string]ops.Cluster{"yard": c.here}}}}
		require.Equal(t, c.want, b.surelyAbsent(t.Context(), store.Submission{Cluster: "yard", Owner: c.owner}), name)
		require.False(t, b.surelyAbsent(t.Context(), store.Submission{Cluster: "gone", Owner: c.owner}), name)
	}
}
