package main

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/config"
	"github.com/megatron-ops/megatron-ops/internal/follow"
	"github.com/megatron-ops/megatron-ops/internal/notify"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/store"
)

// notifier tells the services that the configuration names.
func notifier(cfg config.Config, st *store.Store, log *slog.Logger) (*notify.Notifier, error) {
	for _, name := range slices.Sorted(maps.Keys(cfg.Notify)) {
		if err := cfg.Notify[name].Check("notify." + name); err != nil {
			return nil, err
		}
	}
	return &notify.Notifier{Targets: cfg.Notify, Docs: st.Slack(), Log: log, Now: time.Now}, nil
}

// alsoNotify tells news to the services too, with a link to the page where one is
// served to others.
func alsoNotify(tell func(context.Context, follow.News), n *notify.Notifier, svc *ops.Service, log *slog.Logger) func(context.Context, follow.News) {
	return func(ctx context.Context, news follow.News) {
		tell(ctx, news)
		if err := n.Tell(ctx, notify.Of(news, svc.JobPage, time.Now())...); err != nil && ctx.Err() == nil {
			log.Error("a notification was not written down", "job", news.Job.ID, "error", err)
		}
	}
}
