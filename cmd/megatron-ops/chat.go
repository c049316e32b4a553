package main

import (
	"context"
	"log/slog"
	"os"

	"github.com/megatron-ops/megatron-ops/bot"
	"github.com/megatron-ops/megatron-ops/bot/chat"
	"github.com/megatron-ops/megatron-ops/internal/ops"
)

// chatCommand runs the Slack bot at this terminal.
func chatCommand(ctx context.Context, sh *shell, _ none) error {
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	svc, err := sh.service()
	if err != nil {
		return err
	}
	st, err := svc.Store()
	if err != nil {
		return err
	}
	b, err := bot.NewLocal(bot.Config{Service: svc, Store: st.Slack(), Site: siteValues(svc), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	t := chat.Terminal{In: sh.in, Out: sh.out, Lang: sh.lang, Width: sh.width}
	if isTerminal(sh.in) {
		t.Prompt = "> "
	}
	return chat.Run(ctx, b.Local(osUser(ops.Chat).User, dir, sh.lang), t)
}
