package follow

import (
	"context"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/store"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// sooner is of which jobs it was told that less would start earlier.
const sooner = "sooner"

// between is the least time between two questions of what would start sooner:
// each makes the scheduler try five times.
const between = 10 * time.Second

// waiting says what there is to say of a job that waits: why it was put back, or
// what it could ask for to start sooner. The latter is said once.
func (f *Follower) waiting(ctx context.Context, st *store.Store, j slurm.Job) lang.Text {
	if len(j.Requeues) > 0 {
		return requeued(j)
	}
	if j.Reason != "Priority" && j.Reason != "Resources" {
		return lang.Text{}
	}
	f.mu.Lock()
	early := time.Since(f.tried) < between
	if !early {
		f.tried = time.Now()
	}
	f.mu.Unlock()
	k := key(j.Cluster, j.ID)
	var told bool
	if had, err := st.Slack().Get(ctx, sooner, k, time.Now(), &told); early || had || err != nil {
		return lang.Text{}
	}
	sub, err := st.ByJob(ctx, j.Cluster, j.ID)
	if err != nil {
		return lang.Text{}
	}
	call := &ops.Call{Service: f.Service, Who: owner(sub)}
	out, err := do[ops.StatusOut](ctx, call, "status", &ops.StatusIn{Job: j.ID, Earlier: true, OnCluster: ops.OnCluster{Cluster: j.Cluster}})
	if err != nil {
		f.Log.Debug("not known what would start sooner", "job", j.ID, "error", err)
		return lang.Text{}
	}
	says := out.Earlier.Says(j.ID)
	if says != (lang.Text{}) {
		if err := st.Slack().Put(ctx, sooner, k, true, time.Now().Add(memory)); err != nil {
			f.Log.Error("a hint could not be noted", "job", j.ID, "error", err)
		}
	}
	return says
}
