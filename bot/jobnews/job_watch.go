package jobnews

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/megatron-ops/megatron-ops/bot/answer"
	"github.com/megatron-ops/megatron-ops/bot/card"
	"github.com/megatron-ops/megatron-ops/bot/outbox"
	"github.com/megatron-ops/megatron-ops/bot/record"
	"github.com/megatron-ops/megatron-ops/bot/typed"
	"github.com/megatron-ops/megatron-ops/bot/wording"
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/jobcontrol"
	"github.com/megatron-ops/megatron-ops/internal/ops/joblogs"
	"github.com/megatron-ops/megatron-ops/internal/ops/launch"
	"github.com/megatron-ops/megatron-ops/internal/ops/operations"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/report"
	"github.com/megatron-ops/megatron-ops/slurm/watch"
)

// watchers are the clusters' watchers, one each whatever the number of cards.
type watchers struct {
	mu sync.Mutex
	by map[string]*watch.Watcher
}

// follow asks for news of a job from now on.
func (w *watchers) follow(j slurm.Job) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if x := w.by[j.Cluster]; x != nil {
		x.Watch(j)
	}
}

// now is the job as its watcher has seen it last.
func (w *watchers) now(j slurm.Job) slurm.Job {
	w.mu.Lock()
	defer w.mu.Unlock()
	if x := w.by[j.Cluster]; x != nil {
		if seen, ok := x.Job(j.ID); ok && seen.State != "" {
			seen.Cluster = j.Cluster
			return seen
		}
	}
	return j
}

// Seen is a job as its watcher has seen it last.
func (b *Board) Seen(j slurm.Job) slurm.Job { return b.watchers.now(j) }

// Run watches jobs and sends digests until ctx ends.
func (b *Board) Run(ctx context.Context) {
	var wg sync.WaitGroup
	wg.Go(func() { b.digestLoop(ctx) })
	b.watchLoop(ctx)
	wg.Wait()
}

// watchLoop follows every job that has a card or a follower until ctx ends:
// one question to each cluster in an interval.
func (b *Board) watchLoop(ctx context.Context) {
	var wg sync.WaitGroup
	defer wg.Wait()
	b.watchers.mu.Lock()
	b.watchers.by = map[string]*watch.Watcher{}
	for name, w := range b.cfg.Watchers {
		b.watchers.by[name] = w
		sub := w.Subscribe()
		wg.Go(func() {
			defer sub.Close()
			b.hear(ctx, name, sub)
		})
	}
	none := len(b.watchers.by) == 0
	b.watchers.mu.Unlock()
	if none {
		return
	}
	every := cmp.Or(b.cfg.Interval, 30*time.Second)
	tick := time.NewTicker(every)
	defer tick.Stop()
	since := b.now().Add(-lately)
	for takenUp := false; ; {
		if !takenUp { // until the store has told of all that have cards
			jobs, err := b.unfinished(ctx)
			if takenUp = err == nil; !takenUp && ctx.Err() == nil {
				b.log.Error("slack: cards", "err", err)
			}
			for _, j := range jobs {
				b.watchers.follow(j)
			}
		}
		if looks := b.now(); b.discover(ctx, since) {
			since = looks.Add(-2 * every)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		b.explainLate(ctx)
		b.numbers(ctx)
	}
}

// hear brings what a watcher tells to the cards, of several jobs at once.
func (b *Board) hear(ctx context.Context, cluster string, from *watch.Subscription) {
	from.Each(ctx, func(e watch.Event) {
		if e.Kind == watch.Changed || e.Kind == watch.Ended {
			b.heard(ctx, cluster, e)
		}
	})
}

// heard tells what has become of a job. One that failed is diagnosed first, so that the
// news begins with the cause.
func (b *Board) heard(ctx context.Context, cluster string, e watch.Event) {
	n := card.News{Job: e.Job}
	n.Job.Cluster = cluster
	var numbers joblogs.MetricsOut
	var report *report.Report
	failed := false
	if e.Kind == watch.Ended && b.followed(ctx, n.Job) {
		if failed = n.Job.State != slurm.Completed && n.Job.State != slurm.Cancelled; failed {
			report = b.FindCause(ctx, &n, b.cardLang(ctx, n.Job))
		}
		numbers, _ = b.addNumbers(ctx, &n)
	}
	told := b.surely(ctx, "slack: news", n.Job.ID, func() error { return b.Tell(ctx, n) })
	if told && e.Kind == watch.Ended {
		if failed && report == nil {
			b.lookForCause(ctx, card.ID(cluster, n.Job.ID), looksForCause)
		}
		b.noteFailure(ctx, n.Job, report)
		b.drawCurve(ctx, n, numbers, b.cardLang(ctx, n.Job))
		b.attachLog(ctx, n.Job)
	}
}

// surely does what the store has to take, and again while it does not: nobody asks
// for it a second time. It reports whether it was taken.
func (b *Board) surely(ctx context.Context, what string, job slurm.JobID, do func() error) bool {
	for i := range 12 { // some four minutes, in which a database is started again
		err := do()
		if err == nil || ctx.Err() != nil {
			return err == nil
		}
		b.log.Error(what, "job", job, "err", err)
		select {
		case <-ctx.Done():
		case <-time.After(min(time.Second<<i, 30*time.Second)):
		}
	}
	return false
}

// lately is how long ago a job may have ended that a first look still takes up: for
// some five minutes the queue shows what has ended.
const lately = 10 * time.Minute

// discover begins to watch jobs that somebody follows without having submitted
// them here, those among them that ended since the last look too, and looks whether
// the runs that are expected are there. It reports whether every cluster and the
// store answered.
func (b *Board) discover(ctx context.Context, since time.Time) (complete bool) {
	var seen, ended []slurm.Job
	complete = true
	for name := range b.cfg.Service.Clusters {
		jobs, err := b.cfg.Service.Reader(name).Jobs(ctx, slurm.Filter{All: true})
		if err != nil {
			b.log.Warn("slack: jobs", "cluster", name, "err", err)
			complete = false
			continue
		}
		for _, j := range jobs {
			j.Cluster = name
			switch {
			case !j.State.Ended():
				seen = append(seen, j)
			case j.EndedAt != nil && j.EndedAt.After(since):
				ended = append(ended, j)
			}
		}
	}
	b.followAsScriptsAsk(ctx, seen)
	if err := b.cardsOfAgents(ctx, since); err != nil {
		b.log.Warn("slack: jobs of agents", "err", err)
		complete = false
	}
	all, err := b.subscriptions(ctx)
	if err != nil {
		b.log.Warn("slack: subscriptions", "err", err)
		return false
	}
	for i, j := range slices.Concat(seen, ended) {
		wanted := slices.ContainsFunc(all, func(s subscription) bool { return s.byCards() && s.isAbout(j) })
		if wanted && (i < len(seen) || !b.toldEnd(ctx, j)) {
			b.watchers.follow(slurm.Job{ID: j.ID, Cluster: j.Cluster})
		}
	}
	if complete { // where a cluster does not answer, nothing is known to be missing
		b.lookForExpected(ctx, all, seen)
	}
	return complete
}

// toldEnd reports whether the end of a job stands on its card.
func (b *Board) toldEnd(ctx context.Context, j slurm.Job) bool {
	k, ok, err := b.Card(ctx, j.Cluster, j.ID)
	return err == nil && ok && !k.EndedAt.IsZero()
}

// numbers brings what the trainings say of themselves to the cards of running
// jobs, and their place in line to those of waiting ones.
func (b *Board) numbers(ctx context.Context) {
	jobs, err := b.unfinished(ctx)
	if err != nil {
		return
	}
	places := b.queued(ctx, jobs)
	tell := func(n card.News) {
		b.noted(slog.LevelError, "slack: news", b.Tell(ctx, n), "job", n.Job.ID)
	}
	var waiting []card.News
	for _, j := range jobs {
		n := card.News{Job: b.watchers.now(j)}
		w, waits := places[card.ID(j.Cluster, j.ID.Array())]
		switch {
		case n.Job.State == slurm.Pending && waits:
			n.Position, n.InLine = w.Position, w.InLine
			if n.Position == 0 {
				n.Position = -1
			}
			if w.EstStart != nil {
				n.Job.EstStart = w.EstStart
			}
			waiting = append(waiting, n)
		case n.Job.State == slurm.Running:
			numbers, ok := b.addNumbers(ctx, &n)
			if !ok {
				continue
			}
			b.drawProgress(ctx, n, numbers)
			tell(n)
		}
	}
	for _, n := range b.turns.next(waiting) {
		tell(n)
	}
}

// placesTold is how many waiting cards have their place told anew at each look for
// standing in front, and how many of those behind them by turns: with thousands in
// line, what they would all be told is worth less than the ends that wait behind it.
const placesTold = 100

// turns remembers where in line the last look left off.
type turns int

// next are the news of a look: of those in front, and of the next ones behind them.
func (t *turns) next(waiting []card.News) []card.News {
	slices.SortStableFunc(waiting, func(x, y card.News) int { // -1, not in line, comes last
		return cmp.Compare(uint(x.Position), uint(y.Position))
	})
	front := min(len(waiting), placesTold)
	behind := waiting[front:]
	if len(behind) <= placesTold {
		return waiting
	}
	from := int(*t) % len(behind)
	*t = turns(from + placesTold)
	return slices.Concat(waiting[:front], slices.Concat(behind, behind)[from:from+placesTold])
}

// queued are the waiting jobs of the clusters where a card waits, each with its
// place in line: one question to a cluster.
func (b *Board) queued(ctx context.Context, cards []slurm.Job) map[string]jobcontrol.Waiting {
	places := map[string]jobcontrol.Waiting{}
	asked := map[string]bool{}
	op, ok := operations.Lookup("queue")
	if !ok {
		return places
	}
	for _, j := range cards {
		if asked[j.Cluster] || b.watchers.now(j).State != slurm.Pending {
			continue
		}
		asked[j.Cluster] = true
		short, cancel := context.WithTimeout(ctx, 20*time.Second)
		result, err := op.Run(short, b.Reader(ctx, j), &jobcontrol.QueueIn{OnCluster: ops.OnCluster{Cluster: j.Cluster}})
		cancel()
		q, ok := result.(jobcontrol.QueueOut)
		if err != nil || !ok {
			b.log.Debug("slack: no queue", "cluster", j.Cluster, "err", err)
			continue
		}
		for _, w := range q.Jobs {
			places[card.ID(j.Cluster, w.ID.Array())] = w
		}
	}
	return places
}

// Reader is the watcher's own call: it reads what a card shows.
func (b *Board) Reader(ctx context.Context, j slurm.Job) *ops.Call {
	return &ops.Call{Service: b.cfg.Service, Lang: b.cardLang(ctx, j), Who: ops.Caller{Surface: ops.Watcher, ID: "watcher", User: j.User, ReadOnly: true}}
}

// addNumbers adds what the training says of itself, and returns it; ok is false
// where it says nothing.
func (b *Board) addNumbers(ctx context.Context, n *card.News) (m joblogs.MetricsOut, ok bool) {
	result, ok := b.readJob(ctx, "metrics", n.Job)
	m, isMetrics := result.(joblogs.MetricsOut)
	if !ok || !isMetrics || len(m.Runs) != 1 {
		return m, false
	}
	TakeNumbers(n, m)
	return m, true
}

// TakeNumbers adds what a training says of itself to the news.
func TakeNumbers(n *card.News, m joblogs.MetricsOut) {
	s := m.Runs[0]
	n.Iteration, n.Iterations, n.Loss, n.TFLOPs, n.MFU, n.Tracked = s.Last, s.Of, s.Loss, s.TFLOPs, s.MFU, s.Tracked
	if s.IterationMS != nil {
		n.SecondsEach = *s.IterationMS / 1000
	}
	if s.ETASeconds != nil {
		n.ETA = time.Duration(*s.ETASeconds) * time.Second
	}
	if len(m.Curves) == 1 {
		n.Curve = m.Curves[0]
	}
	if log, err := os.Stat(n.Job.Stdout); err == nil {
		n.LineAt = log.ModTime()
	}
}

// FindCause adds the diagnosis to the news. Without one the news goes all the
// same.
func (b *Board) FindCause(ctx context.Context, n *card.News, l lang.Lang) *report.Report {
	result, ok := b.readJob(ctx, "diagnose", n.Job)
	d, isDiagnosis := result.(joblogs.DiagnoseOut)
	if !ok || !isDiagnosis {
		return nil
	}
	told := d
	if err := b.findRemedy(ctx, n, d, l); err != nil {
		told.FixUnknown = lang.Said(err).In(l)
	}
	if len(n.Fix) > 0 { // it stands beside its button
		told.Report, told.Fix = d.Offered(), nil
	}
	doc := wording.Diagnosis(told, l)
	n.Why, n.Cause, n.Class, n.Exclude = wording.Why(d.Report, l), &doc, d.Class, d.ExcludeNodes
	return &d.Report
}

// findRemedy adds what a button could mend, and keeps it for that button.
func (b *Board) findRemedy(ctx context.Context, n *card.News, d joblogs.DiagnoseOut, l lang.Lang) error {
	call := b.Reader(ctx, n.Job)
	r, ok, err := launch.RemedyFor(ctx, call, n.Job.Cluster, n.Job.ID, d.Report)
	if !ok || err != nil {
		return err
	}
	if err := b.cfg.Store.Put(ctx, record.Remedy, card.ID(n.Job.Cluster, n.Job.ID), r, b.now().AddDate(0, 1, 0)); err != nil {
		b.log.Warn("slack: remedy", "job", n.Job.ID, "err", err)
		return err
	}
	for _, x := range r.Changes {
		n.Fix = append(n.Fix, x.In(l))
	}
	return nil
}

// readJob runs a reading operation on one job.
func (b *Board) readJob(ctx context.Context, name string, j slurm.Job, words ...string) (result any, ok bool) {
	op, ok := operations.Lookup(name)
	if !ok {
		return nil, false
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	in, err := typed.Fill(op, typed.Call{Words: append([]string{string(j.ID)}, words...), Cluster: j.Cluster})
	if err != nil {
		return nil, false
	}
	result, err = op.Run(ctx, b.Reader(ctx, j), in)
	b.noted(slog.LevelDebug, "slack: no "+name, err, "job", j.ID)
	return result, err == nil
}

// maxLog is how much of a failed job's log is attached, from its end.
const maxLog = 1 << 20

// attachLog posts the newest lines of a job that failed as a file, secrets
// masked.
func (b *Board) attachLog(ctx context.Context, j slurm.Job) {
	if j.State == slurm.Completed || j.State == slurm.Cancelled || !b.followed(ctx, j) {
		return
	}
	result, _ := b.readJob(ctx, "logs", j, "--tail", "2000")
	read, ok := result.(joblogs.LogsOut)
	if !ok || len(read.Lines) == 0 {
		return
	}
	var text strings.Builder
	for _, l := range read.Lines {
		fmt.Fprintf(&text, "%s:%d: %s\n", l.File, l.LineNo, l.Text)
	}
	content := answer.Clean(text.String())
	if over := len(content) - maxLog; over > 0 {
		content = content[over:]
		content = content[strings.IndexByte(content, '\n')+1:]
	}
	o := outbox.Message{File: &answer.File{Name: string(j.ID) + ".log", Title: j.Name, Content: content}}
	b.noted(slog.LevelWarn, "slack: log", b.attach(ctx, j, fmt.Sprintf("log/%s%d", j.State, j.Restarts), o), "job", j.ID)
}

// followed reports whether anybody looks on: a diagnosis reads many logs.
func (b *Board) followed(ctx context.Context, j slurm.Job) bool {
	if _, ok, err := b.Card(ctx, j.Cluster, j.ID); err == nil && ok {
		return true
	}
	followers, err := b.followers(ctx, j)
	return err != nil || len(followers) > 0
}

// unfinished lists the jobs whose cards wait for an end.
func (b *Board) unfinished(ctx context.Context) (jobs []slurm.Job, err error) {
	keys, err := b.cfg.Store.Keys(ctx, record.Alive, b.now())
	if err != nil {
		return nil, err
	}
	for _, key := range keys {
		k, ok, err := b.cardAt(ctx, key)
		if err != nil {
			return nil, err
		}
		if ok {
			jobs = append(jobs, k.News.Job)
		}
	}
	return jobs, nil
}
