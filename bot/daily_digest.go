package bot

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/megatron-ops/megatron-ops/bot/answer"
	"github.com/megatron-ops/megatron-ops/bot/outbox"
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/view"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// digestHour is when the digest is sent, in the person's own zone.
const digestHour = 9

var (
	textDigestTitle = lang.Text{EN: "Your jobs of the last day", ZH: "过去一天的作业"}
	textDone        = lang.Text{EN: "Completed", ZH: "已完成"}
	textFailedN     = lang.Text{EN: "Failed", ZH: "失败"}
	textLost        = lang.Text{EN: "GPU hours of failed jobs", ZH: "失败作业消耗的 GPU 小时"}
	textStill       = lang.Text{EN: "Waiting or running", ZH: "排队或运行中"}
)

// digestLoop sends the daily digests that people have asked for.
func (b *Bot) digestLoop(ctx context.Context) {
	tick := time.NewTicker(5 * time.Minute)
	defer tick.Stop()
	for {
		b.Digests(ctx)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// Digests queues each person's digest when it is their hour. Its key holds the
// date, so that it is sent once however often this runs.
func (b *Bot) Digests(ctx context.Context) {
	keys, err := b.cfg.Store.Keys(ctx, docSettings, b.now())
	if err != nil {
		return
	}
	for _, key := range keys {
		team, user, _ := strings.Cut(key, "/")
		s := b.settings(ctx, team, user)
		now := b.now()
		if loc, err := time.LoadLocation(s.Zone); err == nil {
			now = now.In(loc)
		}
		if !s.Digest || now.Hour() != digestHour {
			continue
		}
		doc, any := b.digestDoc(ctx, team, user, s.Lang)
		if !any {
			continue
		}
		r := answer.Render(doc, s.Lang)
		m := b.out.Owe("digest/"+key+"/"+now.Format(time.DateOnly), "digest/"+key,
			outbox.Message{Do: outbox.Post, Team: team, Channel: user, Text: r.Text, Blocks: answer.BlocksJSON(r.Messages[0])})
		if err := b.cfg.Store.Enqueue(ctx, m); err != nil {
			b.log.Warn("slack: digest", "err", err)
		}
	}
	b.out.Wake()
}

// sums are a day of somebody's jobs.
type sums struct {
	done   []string
	failed map[string][]string // by the class of the cause
	lost   float64             // GPU hours of those that failed
	still  int                 // wait or run
}

// digestDoc sums up the last day of a person's jobs; any is false where there
// was none.
func (b *Bot) digestDoc(ctx context.Context, team, user string, l lang.Lang) (doc view.Doc, any bool) {
	day := sums{failed: map[string][]string{}}
	for _, k := range b.cardsEndedSince(ctx, b.now().Add(-24*time.Hour)) {
		j := k.News.Job
		switch {
		case k.Team != team || k.User != user || j.State == slurm.Cancelled:
		case j.State == slurm.Completed:
			day.done = append(day.done, string(j.ID)+" "+j.Name)
		default:
			day.failed[k.News.Class] = append(day.failed[k.News.Class], string(j.ID)+" "+j.Name)
			day.lost += float64(j.GPUs) * float64(j.ElapsedS) / 3600
		}
	}
	running, err := b.unfinished(ctx)
	if err != nil {
		return doc, false
	}
	who, linked := b.linked(ctx, team, user)
	for _, j := range running {
		if linked && j.User == who.User {
			day.still++
		}
	}
	return digestOf(day, l), len(day.done)+len(day.failed)+day.still > 0
}

func digestOf(day sums, l lang.Lang) view.Doc {
	doc := view.Doc{Title: textDigestTitle.In(l), Next: []string{"list --all"}}
	doc.Sections = append(doc.Sections, view.Section{Facts: []view.Fact{
		{Name: textDone.In(l), Value: fmt.Sprint(len(day.done))},
		{Name: textFailedN.In(l), Value: fmt.Sprint(count(day.failed))},
		{Name: textLost.In(l), Value: fmt.Sprintf("%.1f", day.lost)},
		{Name: textStill.In(l), Value: fmt.Sprint(day.still)},
	}})
	var lines []string
	for _, class := range slices.Sorted(maps.Keys(day.failed)) {
		lines = append(lines, causeWords(class, l)+answer.Colon.In(l)+strings.Join(day.failed[class], ", "))
	}
	if len(lines) > 0 {
		doc.Sections = append(doc.Sections, view.Section{Heading: textFailures.In(l), Items: lines})
	}
	return doc
}

func count(by map[string][]string) (n int) {
	for _, list := range by {
		n += len(list)
	}
	return n
}
