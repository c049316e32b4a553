package main

import (
	"context"
	"errors"
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
func alsoNotify(tell func(context.Context, follow.News) error, n *notify.Notifier, svc *ops.Service) func(context.Context, follow.News) error {
	return func(ctx context.Context, news follow.News) error {
		return errors.Join(tell(ctx, news), n.Tell(ctx, notify.Of(news, svc.JobPage, time.Now())...))
	}
}
