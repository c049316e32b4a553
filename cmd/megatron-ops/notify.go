package main

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/megatron-ops/megatron-ops/internal/config"
	"github.com/megatron-ops/megatron-ops/internal/follow"
	"github.com/megatron-ops/megatron-ops/internal/notify"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/store"
)

// notifier returns a notifier for the services that the configuration names.
func notifier(cfg config.Config, st *store.Store, log *slog.Logger) (*notify.Notifier, error) {
	for _, name := range slices.Sorted(maps.Keys(cfg.Notify)) {
		if err := cfg.Notify[name].Check("notify." + name); err != nil {
			return nil, err
		}
	}
	return &notify.Notifier{Targets: cfg.Notify, Docs: st.Slack(), Log: log, Now: time.Now}, nil
}

// alsoNotify makes tell report news to the services too. The notification links to the
// job's page if the page is served beyond this machine.
func alsoNotify(tell func(context.Context, follow.News) error, n *notify.Notifier, svc *ops.Service) func(context.Context, follow.News) error {
	return func(ctx context.Context, news follow.News) error {
		return errors.Join(tell(ctx, news), n.Tell(ctx, notify.Of(news, svc.JobPage, time.Now())...))
	}
}

// notifyApprovals notifies the services of requests that wait for an operator, until
// ctx ends.
func notifyApprovals(ctx context.Context, n *notify.Notifier, svc *ops.Service) {
	tick := time.NewTicker(5 * time.Second)
	defer tick.Stop()
	for {
		asked, err := svc.Approvals(ctx)
		for _, a := range asked {
			err = errors.Join(err, n.Tell(ctx, notify.Asked(a, svc.ApprovalsPage())))
		}
		if err != nil && ctx.Err() == nil {
			n.Log.Warn("notify: requests for approval", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// notifyMetrics exports the backlog of notifications to services other than Slack.
type notifyMetrics struct{ *notify.Notifier }

var (
	notifyMessages = prometheus.NewDesc("megatron_ops_notify_messages", "Notifications that are still owed to a service.", []string{"target", "kind"}, nil)
	notifyAge      = prometheus.NewDesc("megatron_ops_notify_oldest_age_seconds", "How long the oldest notification that is still owed to a service has waited.",
		[]string{"target", "kind"}, nil)
)

// Describe announces both metrics.
func (m notifyMetrics) Describe(out chan<- *prometheus.Desc) {
	out <- notifyMessages
	out <- notifyAge
}

// Collect reads the metrics from the store.
func (m notifyMetrics) Collect(out chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	all, err := m.Backlogs(ctx)
	if err != nil {
		m.Log.Warn("metrics: the store does not tell what is owed", "error", err)
		return
	}
	for _, b := range all {
		age := 0.0
		if !b.Oldest.IsZero() {
			age = max(0, m.Now().Sub(b.Oldest).Seconds())
		}
		out <- prometheus.MustNewConstMetric(notifyMessages, prometheus.GaugeValue, float64(b.Messages), b.Target, b.Kind)
		out <- prometheus.MustNewConstMetric(notifyAge, prometheus.GaugeValue, age, b.Target, b.Kind)
	}
}
