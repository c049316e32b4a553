package bot

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/slack-go/slack"
	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/bot/incoming"
	"github.com/megatron-ops/megatron-ops/bot/people"
	"github.com/megatron-ops/megatron-ops/bot/record"
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/opstest"
	"github.com/megatron-ops/megatron-ops/internal/store"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// oneJob is a cluster with a single job.
type oneJob struct{ opstest.Bare }

func (oneJob) Name() string { return "slurm" }
func (oneJob) Kind() string { return "rest" }

func (oneJob) Jobs(context.Context, slurm.Filter) ([]slurm.Job, error) {
	return []slurm.Job{
		{ID: "4711", Name: "gpt-8b", User: "ada", State: slurm.Running, Nodes: []string{"gpu-01", "gpu-02"}, ElapsedS: 5025},
		{ID: "4712", Name: "moe", User: "ada", State: slurm.Pending, Reason: "Resources"},
	}, nil
}

func (oneJob) Nodes(context.Context) ([]slurm.Node, error) {
	return []slurm.Node{
		{Name: "gpu-01", State: "allocated", Partitions: []string{"gpu"}, GPUs: 8, GPUsUsed: 8},
		{Name: "gpu-02", State: "mixed", Partitions: []string{"gpu"}, GPUs: 8, GPUsUsed: 2},
		{Name: "gpu-03", State: "drained", Partitions: []string{"gpu"}, GPUs: 8, Reason: "row remap pending"},
	}, nil
}

func (oneJob) Partitions(context.Context) ([]slurm.Partition, error) {
	limit := int64(86400)
	return []slurm.Partition{{Name: "gpu", Default: true, Up: true, TimeLimitS: &limit, Allocated: 2, Other: 1, Total: 3, GPUs: 8}}, nil
}

// sampleHome draws the home tab of a person with two jobs and a failed one.
func sampleHome(t testing.TB, l lang.Lang) []slack.Block {
	t.Helper()
	st, err := store.Open(context.Background(), filepath.Join(t.TempDir(), "s.db"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, st.Close()) })
	svc := &ops.Service{Clusters: map[string]ops.Cluster{"slurm": oneJob{}}, Default: "slurm", Now: func() time.Time { return noon }}
	b, err := New(Config{
		SigningSecret: "s", BotToken: "xoxb-1", Service: svc, Store: st.Slack(), Now: func() time.Time { return noon },
		Policy: people.Policy{Links: map[string]string{"U1": "ada"}},
	})
	require.NoError(t, err)
	bad := sampleCard(slurm.Failed, l)
	bad.EndedAt = noon.Add(-time.Hour)
	require.NoError(t, st.Slack().Put(t.Context(), record.Card, "slurm/4700", bad, time.Time{}))
	require.NoError(t, st.Slack().Put(t.Context(), record.Settings, "T1/U1", people.Settings{Lang: l}, time.Time{}))
	a := incoming.Ask{Team: "T1", User: "U1", Kind: incoming.AsHome}
	return b.homeBlocks(t.Context(), a, b.people.Call(t.Context(), a))
}
