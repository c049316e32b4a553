package jobnews

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/megatron-ops/megatron-ops/bot/answer"
	"github.com/megatron-ops/megatron-ops/bot/card"
	"github.com/megatron-ops/megatron-ops/bot/outbox"
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops/joblogs"
)

// ended stands in place of a quarter for a run that has ended.
const ended = 4

// drawCurve posts the loss curve of a job that has ended.
func (nf *Notifier) drawCurve(ctx context.Context, n card.News, m joblogs.MetricsOut, l lang.Lang) {
	if len(n.Curve) < 2 || !nf.followed(ctx, n.Job) {
		return
	}
	nf.postCurve(ctx, n, m, ended, "loss.png", l)
}

// drawProgress posts the loss curve so far at each quarter of a run, where the card's workspace
// does not draw the chart on the card and shows a line of text instead.
func (nf *Notifier) drawProgress(ctx context.Context, n card.News, m joblogs.MetricsOut) {
	if n.Iterations <= 0 || len(n.Curve) < card.FewestPoints {
		return
	}
	quarter := 4 * n.Iteration / n.Iterations
	if quarter < 1 || quarter >= ended {
		return
	}
	k, ok, err := nf.Card(ctx, n.Job.Cluster, n.Job.ID)
	due := slices.ContainsFunc(k.Places, func(p card.Place) bool { return p.Pictured < quarter })
	if err != nil || !ok || !due || !nf.out.Plain(k.Team) {
		return
	}
	nf.postCurve(ctx, n, m, quarter, fmt.Sprintf("loss-%d.png", 25*quarter), nf.langOfCard(ctx, &k))
}

// postCurve posts the loss as a picture below each card of a job. While the job runs there is
// one message, whose picture is replaced. At the end the picture replaces that message's too
// or, where there is no such message, becomes a file.
func (nf *Notifier) postCurve(ctx context.Context, n card.News, m joblogs.MetricsOut, quarter int, name string, l lang.Lang) {
	var png bytes.Buffer
	if err := m.WriteLossPNG(&png); err != nil {
		nf.log.Warn("slack: curve", "job", n.Job.ID, "err", err)
		return
	}
	id, title := card.ID(n.Job.Cluster, n.Job.ID), card.CurveTitle(n, l)
	sum := sha256.Sum256(png.Bytes())
	nf.withCard(ctx, n.Job.Cluster, n.Job.ID, func(k *card.Card) {
		for i := range k.Places {
			p := &k.Places[i]
			if p.Pictured >= quarter && quarter != ended {
				continue
			}
			key := p.Key(id)
			first := key + "/curve"
			what := fmt.Sprintf("%s/%d/%s", first, quarter, hex.EncodeToString(sum[:8]))
			o := outbox.Message{
				Do: outbox.Post, Team: p.Team, ThreadOf: key, Instead: k.User, Text: answer.Escape(title),
				Bytes: png.Bytes(), File: &answer.File{Name: name, Title: title},
			}
			_, stands, err := nf.cfg.Store.Ref(ctx, first)
			switch {
			case err != nil:
				nf.log.Warn("slack: curve", "job", n.Job.ID, "err", err)
				return
			case stands:
				o.Do, o.Ref = outbox.Update, first
			case quarter == ended || p.Pictured > 0: // this workspace shows no file in a message
				o.Do, o.Text = outbox.Upload, ""
			default:
				what = first
			}
			owed := nf.out.Owe(what, key+outbox.LaneOfFiles, o)
			owed.NotBefore = nf.notBefore(ctx, *p, k.User)
			if err := nf.cfg.Store.Enqueue(ctx, owed); err != nil { // the next quarter shows it
				nf.log.Warn("slack: curve", "job", n.Job.ID, "err", err)
				return
			}
			if quarter != ended {
				p.Pictured = quarter
			}
		}
	})
}
