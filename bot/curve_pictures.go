package bot

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/megatron-ops/megatron-ops/bot/answer"
	"github.com/megatron-ops/megatron-ops/bot/card"
	"github.com/megatron-ops/megatron-ops/bot/outbox"
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops/joblogs"
)

// drawCurve posts the loss curve of a job that has ended.
func (b *Bot) drawCurve(ctx context.Context, n card.News, m joblogs.MetricsOut, l lang.Lang) {
	if len(n.Curve) < 2 || !b.followed(ctx, n.Job) {
		return
	}
	b.postCurve(ctx, n, m, "", "loss.png", l)
}

// drawProgress posts the loss so far at each quarter of a run, where the workspace of
// its card does not draw the chart on it: there the card has a line in words alone.
func (b *Bot) drawProgress(ctx context.Context, n card.News, m joblogs.MetricsOut) {
	if n.Iterations <= 0 || len(n.Curve) < card.FewestPoints {
		return
	}
	quarter := 4 * n.Iteration / n.Iterations
	if quarter < 1 || quarter > 3 {
		return
	}
	var k card.Card
	ok, err := b.cfg.Store.Get(ctx, docCard, card.ID(n.Job.Cluster, n.Job.ID), b.now(), &k)
	if err != nil || !ok || k.Pictured >= quarter || !b.out.Plain(k.Team) {
		return
	}
	b.withCard(ctx, n.Job.Cluster, n.Job.ID, func(k *card.Card) { k.Pictured = quarter })
	b.postCurve(ctx, n, m, fmt.Sprintf("%d/", quarter), fmt.Sprintf("loss-%d.png", 25*quarter), b.langOfCard(ctx, &k))
}

// postCurve posts the loss as a picture below the cards of a job.
func (b *Bot) postCurve(ctx context.Context, n card.News, m joblogs.MetricsOut, when, name string, l lang.Lang) {
	var png bytes.Buffer
	if err := m.WriteLossPNG(&png); err != nil {
		b.log.Warn("slack: curve", "job", n.Job.ID, "err", err)
		return
	}
	sum := sha256.Sum256(png.Bytes())
	if err := b.attach(ctx, n.Job, "curve/"+when+hex.EncodeToString(sum[:8]), outbox.Message{
		Bytes: png.Bytes(), File: &answer.File{Name: name, Title: card.CurveTitle(n, l)},
	}); err != nil {
		b.log.Warn("slack: curve", "job", n.Job.ID, "err", err)
	}
}
