// Package follow handles a job's life after its submission. It watches every job that
// was submitted here, diagnoses one that fails, releases the nodes once the result
// exists, and submits again where the specification allows it. It reports what it sees;
// others decide where to show it.
package follow

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/jobcontrol"
	"github.com/megatron-ops/megatron-ops/internal/ops/joblogs"
	"github.com/megatron-ops/megatron-ops/internal/ops/operations"
	"github.com/megatron-ops/megatron-ops/internal/store"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/report"
	"github.com/megatron-ops/megatron-ops/slurm/job"
	"github.com/megatron-ops/megatron-ops/slurm/watch"
)

// News is an observation of a job. Zero values are unknown.
type News struct {
	Job slurm.Job
	// Report is the diagnosis of a job that failed.
	Report *report.Report
	// Next is the job that was submitted in place of this one.
	Next slurm.JobID
	// Why says what was done beyond watching, or why nothing was done.
	Why lang.Text
	// Alarms are problems of a running job, each reported once.
	Alarms []joblogs.Alarm
	// Incident is what this failure has in common with failures of other jobs, reported
	// once.
	Incident *report.Incident
}

// A Follower follows the jobs of a service. It calls Tell for each piece of news: one
// at a time for one job, but concurrently for several jobs. If Tell fails, it calls
// Tell again.
type Follower struct {
	Service *ops.Service
	Tell    func(context.Context, News) error
	Log     *slog.Logger
	// Watchers are the running watchers, by cluster.
	Watchers map[string]*watch.Watcher
	// Interval is the pause between two polls of the store and of artifacts. Zero: 30
	// s.
	Interval time.Duration

	// stable is how long a result file must be unchanged. Zero: the default of package
	// watch.
	stable time.Duration

	adopting sync.Mutex // held while the next job of a chain is adopted
	deciding sync.Mutex // held while one failure is handled

	mu      sync.Mutex
	awaited map[string]bool      // jobs whose artifact is awaited
	live    map[string]slurm.Job // running and pending jobs
	asked   map[string]time.Time // when the scheduler was last asked what would start a pending job sooner
}

// lookback is how old submissions may be that are followed after a start.
const lookback = 14 * 24 * time.Hour

// clockSkew is by how much the clocks of servers that share a store may differ.
const clockSkew = 10 * time.Minute

// Run follows jobs until ctx ends.
func (f *Follower) Run(ctx context.Context) error {
	st, err := f.Service.Store()
	if err != nil {
		return err
	}
	f.Interval = cmp.Or(f.Interval, 30*time.Second)
	f.awaited, f.live, f.asked = map[string]bool{}, map[string]slurm.Job{}, map[string]time.Time{}
	var wg sync.WaitGroup
	for _, w := range f.Watchers {
		sub := w.Subscribe()
		wg.Go(func() { f.listen(ctx, st, sub) })
	}
	wg.Go(func() { f.watchSubmissions(ctx, st) })
	wg.Go(func() { f.checkLoop(ctx, st) })
	wg.Wait()
	return nil
}

// followedDocs is the kind of document that records the state in which a job was last
// reported, so that a restart does not report old news.
const followedDocs = "followed"

const followedKept = 2 * lookback

func key(cluster string, id slurm.JobID) string { return cluster + "/" + string(id) }

// watchSubmissions starts to follow what was submitted since the last poll.
func (f *Follower) watchSubmissions(ctx context.Context, st *store.Store) {
	seen := map[string]bool{}
	if err := f.Service.Recall(ctx); err != nil && ctx.Err() == nil {
		f.Log.Warn("what was begun and not answered could not be looked for", "error", err)
	}
	f.recallEnded(ctx, st)
	since := time.Now().Add(-lookback)
	for {
		asked := time.Now()
		subs, err := st.SubmittedSince(ctx, since)
		if err == nil {
			since = asked.Add(-clockSkew)
		} else if ctx.Err() == nil {
			f.Log.Error("submissions could not be read", "error", err)
		}
		for _, sub := range subs {
			if !slurm.IsJobID(string(sub.JobID)) || seen[sub.Key] {
				continue
			}
			seen[sub.Key] = true
			known := slurm.Job{ID: sub.JobID}
			if _, err := st.Slack().Get(ctx, followedDocs, key(sub.Cluster, sub.JobID), time.Now(), &known); err != nil {
				f.Log.Error("a followed job could not be read", "job", sub.JobID, "error", err)
			}
			if known.EndedAt != nil && known.EndedAt.Before(sub.CreatedAt.Add(-clockSkew)) {
				known = slurm.Job{ID: sub.JobID} // ids have begun anew: that job is another
			}
			if w := f.Watchers[sub.Cluster]; w != nil && !known.State.Ended() {
				w.Watch(known)
				known.Cluster = sub.Cluster
				f.track(known)
			}
		}
		if !ops.Pause(ctx, min(f.Interval, 2*time.Second)) {
			return
		}
	}
}

// recallEnded tells the watchers which jobs have ended lately, submitted here or not, so
// that a job is followed again that somebody requeued while no server ran.
func (f *Follower) recallEnded(ctx context.Context, st *store.Store) {
	now := time.Now()
	docs, err := st.Slack().Expiries(ctx, followedDocs, now)
	for k, expires := range docs {
		var j slurm.Job
		if ctx.Err() != nil {
			return
		}
		if expires.Before(now.Add(followedKept - watch.Requeueable)) {
			continue // it ended too long ago
		}
		_, e := st.Slack().Get(ctx, followedDocs, k, now, &j)
		err = errors.Join(err, e)
		if w := f.Watchers[j.Cluster]; w != nil && j.State.Ended() {
			w.Watch(j)
		}
	}
	if err != nil && ctx.Err() == nil {
		f.Log.Error("jobs that have ended could not be read", "error", err)
	}
}

// listen handles each event.
func (f *Follower) listen(ctx context.Context, st *store.Store, sub *watch.Subscription) {
	defer sub.Close()
	sub.Each(ctx, func(ev watch.Event) {
		switch ev.Kind {
		case watch.Changed, watch.Ended:
			ev.Job.Cluster = ev.Cluster
			f.handle(ctx, st, ev.Job)
		case watch.Idle:
			ev.Job.Cluster = ev.Cluster
			f.tell(ctx, News{Job: ev.Job, Alarms: []joblogs.Alarm{joblogs.IdleAlarm(ev.Idle)}})
		case watch.Lost:
			ev.Job.Cluster = ev.Cluster
			f.tell(ctx, News{Job: ev.Job, Why: lostText(ev.Job.ID)})
		case watch.Unreachable:
			f.Log.Warn("cluster does not answer", "cluster", ev.Cluster, "error", ev.Err)
			f.reportOutage(ctx, ev)
		case watch.Reachable:
			f.Log.Info("cluster answers again", "cluster", ev.Cluster)
			f.reportOutage(ctx, ev)
		}
	})
}

// lostText says that a job is no longer followed and that nobody knows how it ended.
func lostText(id slurm.JobID) lang.Text {
	return lang.Text{
		EN: fmt.Sprintf("neither the queue nor the accounts have known this job for a long time: how it ended is not known, and it is not followed any more; `diagnose %s` reads what it left", id),
		ZH: fmt.Sprintf("队列和记账数据库都已很久没有这个作业：结局未知，不再跟踪；`diagnose %s` 可读取它留下的日志", id),
	}
}

// handle reports a job's present state and does what its end demands. It stores the
// state after reporting: after a crash in between it reports again, but reports have
// keys of job and state, so that each appears once.
func (f *Follower) handle(ctx context.Context, st *store.Store, j slurm.Job) {
	n := News{Job: j}
	f.track(j)
	var known slurm.Job
	if had, err := st.Slack().Get(ctx, followedDocs, key(j.Cluster, j.ID), time.Now(), &known); err == nil && had && sameEnd(known, j) {
		// Another follower of the job was notified by this watcher, or the accounts settle the end.
		if known.Reason == slurm.ReasonUnsettled && j.Reason != known.Reason {
			f.keepFollowed(ctx, st, j)
		}
		return
	}
	if j.State == slurm.Running {
		f.awaitArtifact(ctx, st, j)
	}
	if j.State.Ended() && j.State != slurm.Completed && j.State != slurm.Cancelled {
		n.Report = f.diagnosis(ctx, j)
		f.handleFailure(ctx, st, &n)
	}
	if j.State == slurm.Pending && len(j.Requeues) > 0 {
		n.Why = requeuedText(j)
	}
	if j.State == slurm.Running || j.State.Ended() {
		f.adoptNext(ctx, st, j)
	}
	if !f.tell(ctx, n) {
		return // the next start reports it
	}
	f.keepFollowed(ctx, st, j)
}

// keepFollowed stores a job as it was reported. A start does not follow a job on whose end
// is settled.
func (f *Follower) keepFollowed(ctx context.Context, st *store.Store, j slurm.Job) {
	if err := st.Slack().Put(ctx, followedDocs, key(j.Cluster, j.ID), j, time.Now().Add(followedKept)); err != nil && ctx.Err() == nil {
		f.Log.Error("a followed job could not be written", "job", j.ID, "error", err)
	}
}

// handleFailure does what a failure demands. It considers the failures of other jobs,
// so failures are handled one at a time.
func (f *Follower) handleFailure(ctx context.Context, st *store.Store, n *News) {
	f.deciding.Lock()
	defer f.deciding.Unlock()
	f.blameNodes(ctx, st, n)
	f.recover(ctx, st, n)
	f.reportIncident(ctx, st, n)
}

// tell reports news, with retries, and returns whether it succeeded.
func (f *Follower) tell(ctx context.Context, n News) bool {
	return store.Insist(ctx, func() error { return f.Tell(ctx, n) }, func(err error) {
		f.Log.Error("news was not written down", "job", n.Job.ID, "error", err)
	})
}

// requeuedText says how the run before ended, and that another follows by itself.
func requeuedText(j slurm.Job) lang.Text {
	return lang.Text{
		EN: "%s. It waits in the queue again and starts by itself (restart %d).",
		ZH: "%s。作业已重新排队，会自动再次启动（第 %d 次）。",
	}.With(j.RunBefore(), j.Restarts)
}

func sameEnd(a, b slurm.Job) bool {
	return a.State.Ended() && a.State == b.State && a.Restarts == b.Restarts &&
		(a.SubmittedAt == nil || b.SubmittedAt == nil || a.SubmittedAt.Equal(*b.SubmittedAt))
}

// reader is the caller that reads logs here: this process, read-only.
func (f *Follower) reader() *ops.Call {
	return &ops.Call{Service: f.Service, Who: ops.Caller{Surface: ops.Watcher, ID: "follow", ReadOnly: true}}
}

func (f *Follower) diagnosis(ctx context.Context, j slurm.Job) *report.Report {
	out, err := joblogs.DiagnoseFailure(ctx, f.reader(), j)
	if err != nil {
		f.Log.Warn("no diagnosis", "job", j.ID, "error", err)
		return nil
	}
	return &out.Report
}

// awaitArtifact cancels a job once its artifact exists, if its specification asks for
// that, so that its nodes are free.
func (f *Follower) awaitArtifact(ctx context.Context, st *store.Store, j slurm.Job) {
	sub, s := specOf(ctx, st, j)
	if s.Artifact.Path == "" || s.Artifact.Cancel == nil || !*s.Artifact.Cancel {
		return
	}
	k := key(j.Cluster, j.ID)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.awaited[k] {
		return
	}
	f.awaited[k] = true
	go func() {
		a := watch.Artifact{Path: s.Artifact.Path, JSON: s.Artifact.JSON, Stable: f.stable}
		now := func() slurm.Job {
			if w, ok := f.Watchers[j.Cluster].Job(j.ID); ok {
				return w
			}
			return slurm.Job{ID: j.ID, State: slurm.Cancelled, WorkDir: j.WorkDir}
		}
		if _, err := a.Await(ctx, now, min(f.Interval, 10*time.Second)); err != nil {
			return // the job ended, which the watcher reports
		}
		call := &ops.Call{Service: f.Service, Who: owner(sub), Confirmed: true}
		saved := watch.Saved(now())
		in := jobcontrol.CancelIn{Job: j.ID, OnCluster: ops.OnCluster{Cluster: j.Cluster}}
		if _, err := operations.Run[jobcontrol.CancelOut](ctx, call, "cancel", &in); err != nil {
			f.Log.Error("the result is there and the job could not be cancelled", "job", j.ID, "error", err)
			return
		}
		f.tell(ctx, News{Job: j, Why: lang.Text{
			EN: fmt.Sprintf("%s is there: the nodes were given back, which saves up to %.1f GPU hours", s.Artifact.Path, saved),
			ZH: fmt.Sprintf("%s 已出现：节点已归还，最多节省 %.1f GPU 小时", s.Artifact.Path, saved),
		}})
	}()
}

// owner is the caller of a job's recovery: the person whose job it is.
func owner(sub store.Submission) ops.Caller {
	return ops.Caller{Surface: ops.Watcher, ID: sub.AskedBy, User: sub.Owner}
}

// specOf returns a job's submission and specification. The specification of a job that was
// not submitted here asks for nothing.
func specOf(ctx context.Context, st *store.Store, j slurm.Job) (sub store.Submission, s job.Spec) {
	sub, err := st.ByJob(ctx, j.Cluster, j.ID)
	if err != nil || !sub.Became(j) || json.Unmarshal(sub.Spec, &s) != nil {
		return sub, job.Spec{}
	}
	return sub, s
}

// reportOutage notifies the operators once that a cluster does not answer, and once
// that it answers again.
func (f *Follower) reportOutage(ctx context.Context, ev watch.Event) {
	n := ops.Notice{
		Key: fmt.Sprintf("outage/%s/%s/%d", ev.Cluster, ev.Kind, ev.At.Unix()), Cluster: ev.Cluster, Operators: true,
		Title: lang.Text{
			EN: fmt.Sprintf("%s does not answer since %s; jobs are looked after again as soon as it does", ev.Cluster, ev.At.Format(time.TimeOnly)),
			ZH: fmt.Sprintf("集群 %s 自 %s 起无响应；恢复后会继续跟踪作业", ev.Cluster, ev.At.Format(time.TimeOnly)),
		},
	}
	if ev.Kind == watch.Reachable {
		n.Title = lang.Text{EN: ev.Cluster + " answers again", ZH: "集群 " + ev.Cluster + " 已恢复响应"}
	}
	if err := f.Service.Notify(ctx, n); err != nil && ctx.Err() == nil {
		f.Log.Error("an outage could not be told", "cluster", ev.Cluster, "error", err)
	}
}
