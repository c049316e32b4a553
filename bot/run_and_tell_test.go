package bot

import (
	"context"
	"sync"

	"github.com/megatron-ops/megatron-ops/bot/card"
)

// Run receives and works until ctx ends, as the only server does.
func (b *Bot) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	wg.Go(func() { b.receiver.Receive(ctx) })
	wg.Go(func() { b.Work(ctx) })
	wg.Wait()
	return nil
}

// Tell updates a job's cards with news of it.
func (b *Bot) Tell(ctx context.Context, n card.News) error { return b.news.Tell(ctx, n) }
