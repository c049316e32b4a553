package jobnews

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/megatron-ops/megatron-ops/bot/answer"
	"github.com/megatron-ops/megatron-ops/bot/card"
	"github.com/megatron-ops/megatron-ops/bot/record"
	"github.com/megatron-ops/megatron-ops/bot/wording"
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/view"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// digestHour is the hour of the day, in the person's time zone, in which the digest is sent.
const digestHour = 9

// digestKept is how long an outage may last after which the day's digest is still sent.
const digestKept = 8 * 24 * time.Hour

var (
	textDigestTitle = lang.Text{EN: "Jobs of the last day", ZH: "过去一天的作业"}
	textDone        = lang.Text{EN: "Completed", ZH: "已完成"}
	textFailedN     = lang.Text{EN: "Failed", ZH: "失败"}
	textLost        = lang.Text{EN: "GPU hours of failed jobs", ZH: "失败作业消耗的 GPU 小时"}
	textStill       = lang.Text{EN: "Waiting or running", ZH: "排队或运行中"}
)

// mostNamed is how many jobs of a cause a digest names.
const mostNamed = 8

// digestLoop sends the daily digests that people have asked for.
func (nf *Notifier) digestLoop(ctx context.Context) {
	tick := time.NewTicker(5 * time.Minute)
	defer tick.Stop()
	for {
		nf.digests(ctx)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// digests queues each person's digest, and each place's, where their digest hour has come: once a
// day however often digests runs.
func (nf *Notifier) digests(ctx context.Context) {
	keys, err := nf.cfg.Store.Keys(ctx, record.Settings, nf.now())
	if err != nil {
		return
	}
	wanted := map[string]bool{}
	for _, key := range keys {
		team, user, _ := strings.Cut(key, "/")
		s, err := nf.people.ReadSettings(ctx, team, user)
		nf.logError(slog.LevelWarn, "slack: settings", err)
		if wanted[key] = s.Digest || err != nil; s.Digest {
			nf.digest(ctx, card.Place{Team: team, Channel: user}, key, s.Zone, func() (view.Doc, bool, error) { return nf.digestDoc(ctx, team, user, s.Lang) })
		}
	}
	all, err := nf.subscriptions(ctx)
	for _, s := range all {
		if wanted[s.key()] = slices.Contains(s.when, whenDigest); !wanted[s.key()] {
			continue
		}
		who, l, err := nf.setBy(ctx, s) // whose digest hour applies to the place
		if err != nil {
			continue
		}
		nf.digest(ctx, s.place, s.key(), who.Zone, func() (view.Doc, bool, error) { return nf.digestOfPlace(ctx, s, who.LangOr(l)) })
	}
	if err == nil {
		err = nf.forgetDigests(ctx, wanted)
	}
	nf.logError(slog.LevelWarn, "slack: subscriptions", err)
}

// forgetDigests forgets the last digest of whoever wants none any more: switched on again, it
// comes in the next digest hour, not at once for the days between.
func (nf *Notifier) forgetDigests(ctx context.Context, wanted map[string]bool) error {
	keys, err := nf.cfg.Store.Keys(ctx, record.Digested, nf.now())
	for _, key := range keys {
		if !wanted[key] {
			err = errors.Join(err, nf.cfg.Store.Delete(ctx, record.Digested, key))
		}
	}
	return err
}

// digest queues a digest in its hour, and later on the day where no server ran or no cluster
// answered in that hour.
func (nf *Notifier) digest(ctx context.Context, p card.Place, key, zone string, draw func() (doc view.Doc, any bool, err error)) {
	var last string // the day of the last one; empty for one that was just switched on
	had, err := nf.cfg.Store.Get(ctx, record.Digested, key, nf.now(), &last)
	now := nf.inZone(zone)
	today := now.Format(time.DateOnly)
	if err != nil || last == today || now.Hour() < digestHour || !had && now.Hour() > digestHour {
		return
	}
	doc, any, err := draw()
	if err != nil && !any { // draw it later
		nf.logError(slog.LevelWarn, "slack: digest", err, "of", key)
		return
	}
	if any {
		nf.announce(ctx, p, "digest/"+key+"/"+today, doc)
	}
	nf.logError(slog.LevelWarn, "slack: digest", nf.cfg.Store.Put(ctx, record.Digested, key, today, nf.now().Add(digestKept)))
}

// inZone returns the present time in a time zone, or in UTC where the zone is unknown.
func (nf *Notifier) inZone(zone string) time.Time {
	if loc, err := time.LoadLocation(zone); err == nil {
		return nf.now().In(loc)
	}
	return nf.now().UTC()
}

// digestOfPlace summarizes the last day of a subscription's jobs; any is false where there were
// none. It counts the jobs of the clusters that answer.
func (nf *Notifier) digestOfPlace(ctx context.Context, s subscription, l lang.Lang) (doc view.Doc, any bool, err error) {
	day := dayCounts{failed: map[string][]string{}}
	for name := range nf.cfg.Service.Clusters {
		jobs, e := nf.cfg.Service.Reader(name).Jobs(ctx, slurm.Filter{All: true, Since: nf.now().Add(-24 * time.Hour)})
		err = errors.Join(err, e)
		nf.logError(slog.LevelWarn, "slack: digest", e, "cluster", name)
		for _, j := range jobs {
			if j.Cluster = name; s.selects(j) {
				k, _, _ := nf.Card(ctx, name, j.ID) // for its diagnosis, where it has one
				day.add(j, k.News.Class)
			}
		}
	}
	doc = digestOf(day, l)
	doc.Title += " · " + s.shown(l)
	return doc, len(day.done)+len(day.failed)+day.still > 0, err
}

type dayCounts struct {
	done   []string
	failed map[string][]string // by failure class
	lost   float64             // GPU hours of the failed jobs
	still  int                 // pending or running jobs
}

func (day *dayCounts) add(j slurm.Job, class string) {
	switch {
	case !j.State.Ended():
		day.still++
	case j.State == slurm.Cancelled:
	case j.State == slurm.Completed:
		day.done = append(day.done, strings.TrimSpace(string(j.ID)+" "+j.Name))
	default:
		day.failed[class] = append(day.failed[class], strings.TrimSpace(string(j.ID)+" "+j.Name))
		day.lost += j.Last().GPUHours()
	}
}

// digestDoc summarizes the last day of a person's jobs; any is false where there were none.
func (nf *Notifier) digestDoc(ctx context.Context, team, user string, l lang.Lang) (doc view.Doc, any bool, err error) {
	day := dayCounts{failed: map[string][]string{}}
	for _, k := range nf.CardsEndedSince(ctx, nf.now().Add(-24*time.Hour)) {
		if k.Team == team && k.User == user {
			day.add(k.News.Job, k.News.Class)
		}
	}
	running, err := nf.unfinished(ctx)
	if err != nil {
		return doc, false, err
	}
	who, linked := nf.people.Linked(ctx, team, user)
	for _, j := range running {
		if linked && j.User == who.User {
			day.still++
		}
	}
	return digestOf(day, l), len(day.done)+len(day.failed)+day.still > 0, nil
}

func digestOf(day dayCounts, l lang.Lang) view.Doc {
	doc := view.Doc{Title: textDigestTitle.In(l), Next: []string{"list --all"}}
	doc.Sections = append(doc.Sections, view.Section{Facts: []view.Fact{
		{Name: textDone.In(l), Value: fmt.Sprint(len(day.done))},
		{Name: textFailedN.In(l), Value: fmt.Sprint(count(day.failed))},
		{Name: textLost.In(l), Value: fmt.Sprintf("%.1f", day.lost)},
		{Name: textStill.In(l), Value: fmt.Sprint(day.still)},
	}})
	var lines []string
	for _, class := range slices.Sorted(maps.Keys(day.failed)) {
		var names []string
		for _, name := range day.failed[class][:min(len(day.failed[class]), mostNamed)] {
			names = append(names, answer.Cut(name, 60))
		}
		if more := len(day.failed[class]) - mostNamed; more > 0 {
			names = append(names, textAndMore.With(more).In(l))
		}
		lines = append(lines, wording.CauseWords(class, l)+answer.Colon.In(l)+strings.Join(names, ", "))
	}
	if len(lines) > 0 {
		doc.Sections = append(doc.Sections, view.Section{Heading: wording.Failures.In(l), Items: lines})
	}
	return doc
}

func count(by map[string][]string) (n int) {
	for _, list := range by {
		n += len(list)
	}
	return n
}
