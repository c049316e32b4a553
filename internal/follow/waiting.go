package follow

import (
	"context"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/jobcontrol"
	"github.com/megatron-ops/megatron-ops/internal/ops/operations"
	"github.com/megatron-ops/megatron-ops/internal/store"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// hintDocs is the kind of document that records for which jobs a smaller request was
// suggested.
const hintDocs = "sooner"

// hintInterval is the pause before the scheduler is asked about the same job again:
// each question makes it try five times.
const hintInterval = time.Hour

// hint suggests, once, what a pending job could ask for to start sooner. It reports
// whether it asked the scheduler.
func (f *Follower) hint(ctx context.Context, st *store.Store, j slurm.Job) bool {
	if j.Reason != "Priority" && j.Reason != "Resources" {
		return false
	}
	k := key(j.Cluster, j.ID)
	f.mu.Lock()
	early := time.Since(f.asked[k]) < hintInterval
	f.mu.Unlock()
	var told bool
	if early {
		return false
	}
	if had, err := st.Slack().Get(ctx, hintDocs, k, time.Now(), &told); had || err != nil {
		return false
	}
	sub, err := st.ByJob(ctx, j.Cluster, j.ID)
	if err != nil || !sub.Became(j) {
		return false
	}
	f.mu.Lock()
	f.asked[k] = time.Now()
	f.mu.Unlock()
	call := &ops.Call{Service: f.Service, Who: owner(sub)}
	in := jobcontrol.StatusIn{Job: j.ID, Earlier: true, OnCluster: ops.OnCluster{Cluster: j.Cluster}}
	out, err := operations.Run[jobcontrol.StatusOut](ctx, call, "status", &in)
	if err != nil {
		f.Log.Debug("not known what would start sooner", "job", j.ID, "error", err)
		return true
	}
	says := out.Earlier.Says(j.ID)
	if says == (lang.Text{}) {
		return true
	}
	// Store first, as for alarms: no hint is better than the same hint again and again.
	if err := st.Slack().Put(ctx, hintDocs, k, true, time.Now().Add(lookback)); err != nil {
		f.Log.Error("a hint could not be noted", "job", j.ID, "error", err)
		return true
	}
	f.tell(ctx, News{Job: j, Why: says})
	return true
}
