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
	for {
		asked, err := svc.Approvals(ctx)
		for _, a := range asked {
			err = errors.Join(err, n.Tell(ctx, notify.Asked(a, svc.ApprovalsPage())))
		}
		if err != nil && ctx.Err() == nil {
			n.Log.Warn("notify: requests for approval", "error", err)
		}
		if !ops.Pause(ctx, 5*time.Second) {
			return
		}
	}
}
