package main

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/config"
	"github.com/megatron-ops/megatron-ops/internal/follow"
	"github.com/megatron-ops/megatron-ops/internal/notify"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/store"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// The services beside Slack hear of jobs, even while Slack is away, and once of each request for an
// approval; how much they are owed, and for how long, is exported.
func TestServicesBesideSlackHearOfJobsAndRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "state.db"))
		require.NoError(t, err)
		defer st.Close()
		svc := &ops.Service{Now: time.Now, Store: func() (*store.Store, error) { return st, nil }}
		log := slog.New(slog.DiscardHandler)
		_, err = notifier(config.Config{Notify: map[string]notify.Target{"team": {Kind: "discord"}}}, st, log)
		require.ErrorContains(t, err, "notify.team.url")
		n, err := notifier(config.Config{Notify: map[string]notify.Target{
			"jobs": {Kind: "discord", URL: "http://none.example.org"}, "requests": {Kind: "discord", URL: "http://none.example.org", Events: []string{notify.Ask}},
		}}, st, log)
		require.NoError(t, err)

		tell := alsoNotify(func(context.Context, follow.News) error { return errors.New("slack is away") }, n, svc)
		require.ErrorContains(t, tell(t.Context(), follow.News{Job: slurm.Job{ID: "7", Cluster: "dev", State: slurm.Timeout}}), "slack is away")
		_, err = svc.Approved(t.Context(), ops.Approval{Who: ops.Caller{Surface: ops.MCP, ID: "alice", User: "alice"}, Op: "cancel", Digest: "digest"}, map[string]string{"job": "5"})
		require.NoError(t, err)
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		notifyApprovals(ctx, n, svc)

		registry := prometheus.NewRegistry()
		registry.MustRegister(notifyMetrics(n))
		found, err := registry.Gather()
		require.NoError(t, err)
		got := map[string]float64{}
		for _, family := range found {
			for _, m := range family.GetMetric() {
				for _, label := range m.GetLabel() {
					if label.GetName() == "target" {
						got[family.GetName()+" "+label.GetValue()] = m.GetGauge().GetValue()
					}
				}
			}
		}
		require.Equal(t, map[string]float64{
			"megatron_ops_notify_messages jobs": 1, "megatron_ops_notify_messages requests": 1,
			"megatron_ops_notify_oldest_age_seconds jobs": 60, "megatron_ops_notify_oldest_age_seconds requests": 60,
		}, got)
	})
}
