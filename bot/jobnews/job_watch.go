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
	"github.com/megatron-ops/megatron-ops/bot/wording"
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/jobcontrol"
	"github.com/megatron-ops/megatron-ops/internal/ops/joblogs"
	"github.com/megatron-ops/megatron-ops/internal/ops/launch"
	"github.com/megatron-ops/megatron-ops/internal/ops/operations"
	"github.com/megatron-ops/megatron-ops/internal/store"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/report"
	"github.com/megatron-ops/megatron-ops/slurm/watch"
)

// watchers holds the one watcher of each cluster.
type watchers struct {
	mu sync.Mutex
	by map[string]*watch.Watcher
}

// follow makes the job's watcher watch it from now on.
func (w *watchers) follow(j slurm.Job) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if x := w.by[j.Cluster]; x != nil {
		x.Watch(j)
	}
}

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

// Run watches jobs and sends digests until ctx ends.
func (nf *Notifier) Run(ctx context.Context) {
	var wg sync.WaitGroup
	wg.Go(func() { nf.digestLoop(ctx) })
	nf.watchLoop(ctx)
	wg.Wait()
}

// watchLoop follows every job that has a card or a follower until ctx ends. It makes one query
// to each cluster in an interval.
func (nf *Notifier) watchLoop(ctx context.Context) {
	var wg sync.WaitGroup
	defer wg.Wait()
	nf.watchers.mu.Lock()
	nf.watchers.by = map[string]*watch.Watcher{}
	for name, w := range nf.cfg.Watchers {
		nf.watchers.by[name] = w
		sub := w.Subscribe()
		wg.Go(func() {
			defer sub.Close()
			nf.handleEvents(ctx, name, sub)
		})
	}
	none := len(nf.watchers.by) == 0
	nf.watchers.mu.Unlock()
	if none {
		return
	}
	every := cmp.Or(nf.cfg.Interval, 30*time.Second)
	tick := time.NewTicker(every)
	defer tick.Stop()
	since := nf.discovered(ctx).Add(-lookBack)
	for takenUp := false; ; {
		if !takenUp { // repeated until the store has returned all jobs that have cards
			jobs, err := nf.unfinished(ctx)
			if takenUp = err == nil; !takenUp && ctx.Err() == nil {
				nf.log.Error("slack: cards", "err", err)
			}
			for _, j := range jobs {
				nf.watchers.follow(j)
			}
		}
		if looks := nf.now(); nf.discover(ctx, since) {
			since = looks.Add(-2 * every)
			nf.saveDiscovery(ctx, looks)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		nf.explainLate(ctx)
		nf.numbers(ctx)
	}
}

// handleEvents handles a watcher's events, those of several jobs at the same time.
func (nf *Notifier) handleEvents(ctx context.Context, cluster string, from *watch.Subscription) {
	from.Each(ctx, func(e watch.Event) {
		if e.Kind == watch.Changed || e.Kind == watch.Ended {
			nf.handleEvent(ctx, cluster, e)
		}
	})
}

// handleEvent handles a job's event. It diagnoses a failed job first, so that the report of the
// failure starts with the cause.
func (nf *Notifier) handleEvent(ctx context.Context, cluster string, e watch.Event) {
	n := card.News{Job: e.Job}
	n.Job.Cluster = cluster
	var numbers joblogs.MetricsOut
	var report *report.Report
	failed := false
	if e.Kind == watch.Ended && nf.followed(ctx, n.Job) {
		if failed = n.Job.State != slurm.Completed && n.Job.State != slurm.Cancelled; failed {
			report = nf.FindCause(ctx, &n, nf.cardLang(ctx, n.Job))
		}
		numbers, _ = nf.addNumbers(ctx, &n)
	}
	told := nf.insist(ctx, "slack: news", n.Job.ID, func() error { return nf.Tell(ctx, n) })
	if told && e.Kind == watch.Ended {
		if failed && report == nil {
			nf.lookForCause(ctx, card.ID(cluster, n.Job.ID), looksForCause)
		}
		nf.noteFailure(ctx, n.Job, report)
		nf.drawCurve(ctx, n, numbers, nf.cardLang(ctx, n.Job))
		nf.attachLog(ctx, n.Job)
	}
}

// insist repeats do until the store has taken what it writes.
func (nf *Notifier) insist(ctx context.Context, what string, job slurm.JobID, do func() error) bool {
	return store.Insist(ctx, do, func(err error) { nf.logError(slog.LevelError, what, err, "job", job) })
}

// lookBack is how long before the last discovery a job may have ended that a server which was
// then killed had not reported yet. longestOutage is how long the last discovery is remembered.
const lookBack, longestOutage = 10 * time.Minute, 24 * time.Hour

// discovered returns when this or another server last discovered all jobs; now, if it is not
// known.
func (nf *Notifier) discovered(ctx context.Context) time.Time {
	at := nf.now()
	_, err := nf.cfg.Store.Get(ctx, record.Discovered, "jobs", nf.now(), &at)
	nf.logError(slog.LevelWarn, "slack: jobs", err)
	return at
}

func (nf *Notifier) saveDiscovery(ctx context.Context, at time.Time) {
	err := nf.cfg.Store.Put(ctx, record.Discovered, "jobs", at, at.Add(longestOutage))
	nf.logError(slog.LevelWarn, "slack: jobs", err)
}

// leavesQueue is how soon after its end a job may have left the queue. MinJobAge in slurm.conf
// is 5 minutes by default, and less at some sites.
const leavesQueue = 2 * time.Minute

// jobsOf returns the jobs in a cluster's queue, and after an outage those of the accounts too
// that have ended since then.
func (nf *Notifier) jobsOf(ctx context.Context, cluster string, since time.Time) ([]slurm.Job, error) {
	of := nf.cfg.Service.Reader(cluster)
	if nf.now().Sub(since) > leavesQueue {
		jobs, err := of.Jobs(ctx, slurm.Filter{All: true, Since: since})
		if err == nil {
			return jobs, nil
		}
		nf.log.Warn("slack: jobs that have ended", "cluster", cluster, "err", err)
	}
	return of.Jobs(ctx, slurm.Filter{All: true})
}

// discover starts watching jobs that somebody follows without having submitted them here,
// including those that ended since then. It also checks the expected runs. It reports
// whether the store and every cluster answered.
func (nf *Notifier) discover(ctx context.Context, since time.Time) (complete bool) {
	var seen, ended []slurm.Job
	complete = true
	for name := range nf.cfg.Service.Clusters {
		jobs, err := nf.jobsOf(ctx, name, since)
		if err != nil {
			nf.log.Warn("slack: jobs", "cluster", name, "err", err)
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
	nf.followScriptRequests(ctx, seen)
	if err := nf.cardsOfAgents(ctx, since); err != nil {
		nf.log.Warn("slack: jobs of agents", "err", err)
		complete = false
	}
	all, err := nf.subscriptions(ctx)
	if err != nil {
		nf.log.Warn("slack: subscriptions", "err", err)
		return false
	}
	for i, j := range slices.Concat(seen, ended) {
		wanted := slices.ContainsFunc(all, func(s subscription) bool { return s.showsCards() && s.selects(j) })
		if wanted && (i < len(seen) || !nf.toldEnd(ctx, j)) {
			nf.watchers.follow(slurm.Job{ID: j.ID, Cluster: j.Cluster})
		}
	}
	if complete { // where a cluster does not answer, a run may exist unseen
		nf.checkExpected(ctx, all, seen)
	}
	return complete
}

func (nf *Notifier) toldEnd(ctx context.Context, j slurm.Job) bool {
	k, ok, err := nf.Card(ctx, j.Cluster, j.ID)
	return err == nil && ok && !k.EndedAt.IsZero()
}

// numbers updates the cards of running jobs with the numbers from their logs, and the cards of
// waiting jobs with their place in the queue.
func (nf *Notifier) numbers(ctx context.Context) {
	jobs, err := nf.unfinished(ctx)
	if err != nil {
		return
	}
	places := nf.queued(ctx, jobs)
	tell := func(n card.News) {
		nf.logError(slog.LevelError, "slack: news", nf.Tell(ctx, n), "job", n.Job.ID)
	}
	var waiting []card.News
	for _, j := range jobs {
		n := card.News{Job: nf.watchers.now(j)}
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
			numbers, ok := nf.addNumbers(ctx, &n)
			if !ok {
				continue
			}
			nf.drawProgress(ctx, n, numbers)
			tell(n)
		}
	}
	for _, n := range nf.rotation.next(waiting) {
		tell(n)
	}
}

// placesTold is how many waiting cards, counted from the front of the queue, are updated at
// each look, and how many of those behind them in rotation. With thousands of waiting jobs,
// updating all cards would delay the reports of ends, which matter more.
const placesTold = 100

// rotation is where in the queue the last look stopped.
type rotation int

// next returns the news of one look: for the front of the queue, and for the next part behind
// it.
func (t *rotation) next(waiting []card.News) []card.News {
	slices.SortStableFunc(waiting, func(x, y card.News) int { // a position of -1, which means not in line, sorts last
		return cmp.Compare(uint(x.Position), uint(y.Position))
	})
	front := min(len(waiting), placesTold)
	behind := waiting[front:]
	if len(behind) <= placesTold {
		return waiting
	}
	from := int(*t) % len(behind)
	*t = rotation(from + placesTold)
	return slices.Concat(waiting[:front], slices.Concat(behind, behind)[from:from+placesTold])
}

// queued returns the waiting jobs, with their places, of the clusters where a card's job waits.
// It makes one query to each cluster.
func (nf *Notifier) queued(ctx context.Context, cards []slurm.Job) map[string]jobcontrol.Waiting {
	places := map[string]jobcontrol.Waiting{}
	asked := map[string]bool{}
	for _, j := range cards {
		if asked[j.Cluster] || nf.watchers.now(j).State != slurm.Pending {
			continue
		}
		asked[j.Cluster] = true
		short, cancel := context.WithTimeout(ctx, 20*time.Second)
		q, err := operations.Run[jobcontrol.QueueOut](short, nf.Reader(ctx, j), "queue", &jobcontrol.QueueIn{OnCluster: ops.OnCluster{Cluster: j.Cluster}})
		cancel()
		if err != nil {
			nf.log.Debug("slack: no queue", "cluster", j.Cluster, "err", err)
			continue
		}
		for _, w := range q.Jobs {
			places[card.ID(j.Cluster, w.ID.Array())] = w
		}
	}
	return places
}

// Reader returns the call by which the bot itself reads what a card shows.
func (nf *Notifier) Reader(ctx context.Context, j slurm.Job) *ops.Call {
	return &ops.Call{Service: nf.cfg.Service, Lang: nf.cardLang(ctx, j), Who: ops.Caller{Surface: ops.Watcher, ID: "watcher", User: j.User, ReadOnly: true}}
}

// addNumbers adds the last checkpoint and the numbers of the training run's log to n and returns the
// numbers; ok is false where the log has none.
func (nf *Notifier) addNumbers(ctx context.Context, n *card.News) (m joblogs.MetricsOut, ok bool) {
	if iteration, at, saved := joblogs.LastSaved(ctx, nf.Reader(ctx, n.Job), n.Job.Cluster, n.Job); saved {
		n.Checkpoint, n.CheckpointAt = iteration, at
	}
	in := joblogs.MetricsIn{Runs: []string{string(n.Job.ID)}, OnCluster: ops.OnCluster{Cluster: n.Job.Cluster}}
	m, ok = readJob[joblogs.MetricsOut](ctx, nf, "metrics", n.Job, &in)
	if !ok || len(m.Runs) != 1 {
		return m, false
	}
	TakeNumbers(n, m)
	return m, true
}

// TakeNumbers adds a training run's numbers to the news.
func TakeNumbers(n *card.News, m joblogs.MetricsOut) {
	s := m.Runs[0]
	n.Iteration, n.Iterations, n.Loss, n.TFLOPs, n.MFU, n.Tracked = s.Last, s.Of, (*card.Number)(s.Loss), s.TFLOPs, s.MFU, s.Tracked
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

// FindCause adds the diagnosis to the news. It returns nil where there is none.
func (nf *Notifier) FindCause(ctx context.Context, n *card.News, l lang.Lang) *report.Report {
	within, cancel := context.WithTimeout(ctx, readWithin)
	defer cancel()
	d, err := joblogs.DiagnoseFailure(within, nf.Reader(ctx, n.Job), n.Job)
	if err != nil {
		nf.log.Debug("slack: no diagnosis", "err", err, "job", n.Job.ID)
		return nil
	}
	told := d
	if err := nf.findRemedy(ctx, n, d, l); err != nil {
		told.FixUnknown = lang.Said(err).In(l)
	}
	if len(n.Fix) > 0 { // a card shows the fix beside its button
		told.Report, told.Fix = d.Offered(), nil
	}
	doc := wording.Diagnosis(told, l)
	n.Says = lang.Text{EN: wording.Why(d.Report, lang.EN), ZH: wording.Why(d.Report, lang.ZH)}
	n.Why, n.Cause, n.Class, n.Exclude = n.Says.In(l), &doc, d.Class, d.ExcludeNodes
	return &d.Report
}

// findRemedy adds the change that a button can make, and stores it for that button.
func (nf *Notifier) findRemedy(ctx context.Context, n *card.News, d joblogs.DiagnoseOut, l lang.Lang) error {
	call := nf.Reader(ctx, n.Job)
	r, ok, err := launch.RemedyFor(ctx, call, n.Job.Cluster, n.Job.ID, d.Report)
	if !ok || err != nil {
		return err
	}
	if err := nf.cfg.Store.Put(ctx, record.Remedy, card.ID(n.Job.Cluster, n.Job.ID), r, nf.now().AddDate(0, 1, 0)); err != nil {
		nf.log.Warn("slack: remedy", "job", n.Job.ID, "err", err)
		return err
	}
	for _, x := range r.Changes {
		n.Fix, n.FixSays = append(n.Fix, x.In(l)), append(n.FixSays, x)
	}
	return nil
}

// readWithin is how long reading a job's logs may take.
const readWithin = 2 * time.Minute

// readJob runs a reading operation on one job.
func readJob[Out any](ctx context.Context, nf *Notifier, name string, j slurm.Job, in any) (Out, bool) {
	ctx, cancel := context.WithTimeout(ctx, readWithin)
	defer cancel()
	out, err := operations.Run[Out](ctx, nf.Reader(ctx, j), name, in)
	nf.logError(slog.LevelDebug, "slack: no "+name, err, "job", j.ID)
	return out, err == nil
}

// maxLog is how many bytes of a failed job's log are attached, from its end.
const maxLog = 1 << 20

// attachLog uploads the newest lines of a failed job's log, with secrets masked.
func (nf *Notifier) attachLog(ctx context.Context, j slurm.Job) {
	if j.State == slurm.Completed || j.State == slurm.Cancelled || !nf.followed(ctx, j) {
		return
	}
	read, _ := readJob[joblogs.LogsOut](ctx, nf, "logs", j, &joblogs.LogsIn{Job: j.ID, Tail: 2000, OnCluster: ops.OnCluster{Cluster: j.Cluster}})
	if len(read.Lines) == 0 {
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
	nf.logError(slog.LevelWarn, "slack: log", nf.attach(ctx, j, fmt.Sprintf("log/%s%d", j.State, j.Restarts), o), "job", j.ID)
}

// followed reports whether anybody follows a job, since a diagnosis reads many logs.
func (nf *Notifier) followed(ctx context.Context, j slurm.Job) bool {
	if _, ok, err := nf.Card(ctx, j.Cluster, j.ID); err == nil && ok {
		return true
	}
	followers, err := nf.followers(ctx, j)
	return err != nil || len(followers) > 0
}

// unfinished returns the jobs of the cards whose jobs have not ended.
func (nf *Notifier) unfinished(ctx context.Context) (jobs []slurm.Job, err error) {
	keys, err := nf.cfg.Store.Keys(ctx, record.Alive, nf.now())
	if err != nil {
		return nil, err
	}
	for _, key := range keys {
		k, ok, err := nf.cardAt(ctx, key)
		if err != nil {
			return nil, err
		}
		if ok {
			jobs = append(jobs, k.News.Job)
		}
	}
	return jobs, nil
}
