package follow

import (
	"context"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/jobcontrol"
	"github.com/megatron-ops/megatron-ops/internal/store"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// sooner is of which jobs it was told that less would start earlier.
const sooner = "sooner"

// hintAgain is how long after the scheduler was asked about a job it is asked
// again: each question makes it try five times.
const hintAgain = time.Hour

// hint tells, once, what a waiting job could ask for to start sooner. It reports
// whether the scheduler was asked.
func (f *Follower) hint(ctx context.Context, st *store.Store, j slurm.Job) bool {
	if j.Reason != "Priority" && j.Reason != "Resources" {
		return false
	}
	k := key(j.Cluster, j.ID)
	f.mu.Lock()
	early := time.Since(f.asked[k]) < hintAgain
	f.mu.Unlock()
	var told bool
	if early {
		return false
	}
	if had, err := st.Slack().Get(ctx, sooner, k, time.Now(), &told); had || err != nil {
		return false
	}
	sub, err := st.ByJob(ctx, j.Cluster, j.ID)
	if err != nil {
		return false
	}
	f.mu.Lock()
	f.asked[k] = time.Now()
	f.mu.Unlock()
	call := &ops.Call{Service: f.Service, Who: owner(sub)}
	out, err := do[jobcontrol.StatusOut](ctx, call, "status", &jobcontrol.StatusIn{Job: j.ID, Earlier: true, OnCluster: ops.OnCluster{Cluster: j.Cluster}})
	if err != nil {
		f.Log.Debug("not known what would start sooner", "job", j.ID, "error", err)
		return true
	}
	says := out.Earlier.Says(j.ID)
	if says == (lang.Text{}) {
		return true
	}
	// Written down first, as alarms are: not told is better than told again and again.
	if err := st.Slack().Put(ctx, sooner, k, true, time.Now().Add(memory)); err != nil {
		f.Log.Error("a hint could not be noted", "job", j.ID, "error", err)
		return true
	}
	f.tell(ctx, News{Job: j, Why: says})
	return true
}
