package main

import (
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/megatron-ops/megatron-ops/internal/notify"
	"github.com/megatron-ops/megatron-ops/internal/store"
)

// backlogMetrics exports how many messages are owed, and how long the oldest has waited.
type backlogMetrics struct {
	messages, age *prometheus.Desc
	// read calls tell for each of the backlogs.
	read func(ctx context.Context, tell tellBacklog) error
	log  *slog.Logger
}

// A tellBacklog takes one backlog: how many messages, since when, and the labels' values.
type tellBacklog func(messages int, oldest time.Time, labels ...string)

func outboxMetrics(st *store.Store, log *slog.Logger) backlogMetrics {
	return backlogMetrics{
		messages: prometheus.NewDesc("megatron_ops_outbox_messages", "Messages that are still owed to Slack.", nil, nil),
		age: prometheus.NewDesc("megatron_ops_outbox_oldest_age_seconds",
			"How long the oldest message that is still owed to Slack has waited.", nil, nil),
		read: func(ctx context.Context, tell tellBacklog) error {
			n, oldest, err := st.Slack().Backlog(ctx)
			if err == nil {
				tell(n, oldest)
			}
			return err
		},
		log: log,
	}
}

// notifyMetrics exports the backlog of notifications to services other than Slack.
func notifyMetrics(n *notify.Notifier) backlogMetrics {
	labels := []string{"target", "kind"}
	return backlogMetrics{
		messages: prometheus.NewDesc("megatron_ops_notify_messages", "Notifications that are still owed to a service.", labels, nil),
		age: prometheus.NewDesc("megatron_ops_notify_oldest_age_seconds",
			"How long the oldest notification that is still owed to a service has waited.", labels, nil),
		read: func(ctx context.Context, tell tellBacklog) error {
			all, err := n.Backlogs(ctx)
			for _, b := range all {
				tell(b.Messages, b.Oldest, b.Target, b.Kind)
			}
			return err
		},
		log: n.Log,
	}
}

// Describe announces both metrics.
func (m backlogMetrics) Describe(out chan<- *prometheus.Desc) {
	out <- m.messages
	out <- m.age
}

// Collect reads the metrics from the store.
func (m backlogMetrics) Collect(out chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	err := m.read(ctx, func(messages int, oldest time.Time, labels ...string) {
		age := 0.0
		if !oldest.IsZero() {
			age = max(0, time.Since(oldest).Seconds())
		}
		out <- prometheus.MustNewConstMetric(m.messages, prometheus.GaugeValue, float64(messages), labels...)
		out <- prometheus.MustNewConstMetric(m.age, prometheus.GaugeValue, age, labels...)
	})
	if err != nil {
		m.log.Warn("metrics: the store does not tell what is owed", "error", err)
	}
}
