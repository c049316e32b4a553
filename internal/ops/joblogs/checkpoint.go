package joblogs

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/launch"
	"github.com/megatron-ops/megatron-ops/internal/ops/preflight"
	"github.com/megatron-ops/megatron-ops/internal/view"
	"github.com/megatron-ops/megatron-ops/knowledge/megatron"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/job"
	"github.com/megatron-ops/megatron-ops/slurm/watch"
)

// A CheckpointOut describes the checkpoints of a running job, and what would be lost if
// the job ended now. Unknown values are null.
type CheckpointOut struct {
	Iteration string     `json:"iteration"` // of the last complete checkpoint; empty: there is none yet
	At        *time.Time `json:"at"`
	AgeS      *int64     `json:"age_s"`
	// GPUHours is the work since the last checkpoint, or since the start.
	GPUHours float64 `json:"gpu_hours_at_risk"`
	EveryS   *int64  `json:"every_s"`
	NextS    *int64  `json:"next_s"` // until the next checkpoint is due
	LeftS    *int64  `json:"left_s"` // until the time limit
	// TooLate reports that the job ends before its next checkpoint. SavesAtEnd reports
	// that the job saves by itself before its time limit.
	TooLate    bool `json:"too_late,omitempty"`
	SavesAtEnd bool `json:"saves_at_end,omitempty"`
	// Resume is the command that goes on from the checkpoint of a job that failed, for those
	// who may submit it. It is empty where a retry or another run does so already.
	Resume     string `json:"-"`
	ended      bool   // the job has ended, and GPUHours are lost
	later      bool   // the checkpoint was saved after the job had ended, by another run
	killSwitch bool
	handler    bool
}

// lastCheckpoint returns the last complete checkpoint of a specification. seen is false
// where the job saves none, or saves to a folder that cannot be read from here.
func lastCheckpoint(ctx context.Context, c *ops.Call, s job.Spec) (last watch.Checkpoint, ok, seen bool) {
	full := s.WithDefaults()
	dir := megatron.LastOf(full.Args, "--save")
	if dir == "" {
		return last, false, false
	}
	dir, seen = full.OnHost(dir)
	if !seen {
		return last, false, false
	}
	if preflight.SharesFiles(c, s) {
		last, ok, err := watch.LastCheckpoint(dir)
		return last, ok && err == nil, err == nil
	}
	return lastRemoteCheckpoint(ctx, c, s.Cluster, dir)
}

// A remoteShell is a cluster on whose login node a shell command can look at files.
type remoteShell interface {
	RunShell(ctx context.Context, script string, args ...string) (string, error)
}

// A remote checkpoint's state is reused for this long. The watcher asks often, and a
// new checkpoint is rare.
const (
	maxAgeWatcher = 5 * time.Minute
	maxAgeAsked   = 30 * time.Second
)

// A remoteCheckpoint is a checkpoint on another machine, as it was seen at a time.
type remoteCheckpoint struct {
	Last     watch.Checkpoint
	OK, Seen bool
	At       time.Time
}

// docRemoteCheckpoint is the kind of document that holds a remoteCheckpoint.
const docRemoteCheckpoint = "far-checkpoint"

// lastRemoteCheckpoint is lastCheckpoint for the login node of a cluster of kind ssh.
// One short listing serves all calls within a while.
func lastRemoteCheckpoint(ctx context.Context, c *ops.Call, cluster, dir string) (last watch.Checkpoint, ok, seen bool) {
	cl, err := c.Cluster(cluster)
	far, can := cl.(remoteShell)
	if err != nil || !can || cl.Kind() != "ssh" || c.Who.Surface == ops.MCPHTTP {
		return last, false, false
	}
	fresh := maxAgeAsked
	if c.Who.Surface == ops.Watcher {
		fresh = maxAgeWatcher
	}
	var s remoteCheckpoint
	now, k := c.Now(), cl.Name()+" "+dir
	st, err := c.Store()
	if err != nil {
		return last, false, false
	}
	if had, err := st.Slack().Get(ctx, docRemoteCheckpoint, k, now, &s); err == nil && had && now.Sub(s.At) < fresh {
		return s.Last, s.OK, s.Seen
	}
	s = remoteCheckpoint{At: now}
	if said, err := far.RunShell(ctx, watch.Listing, dir); err == nil {
		s.Last, s.OK, err = watch.ReadListing(said)
		s.Seen = err == nil
	}
	_ = st.Slack().Put(ctx, docRemoteCheckpoint, k, s, now.Add(maxAgeWatcher)) // on an error the next call looks again
	return s.Last, s.OK, s.Seen
}

// Checkpoint reads the checkpoints of a job that runs, or that ended without completing. It
// returns nil where the job saves none, or saves to a folder that cannot be read from here.
func Checkpoint(ctx context.Context, c *ops.Call, cl ops.Cluster, j slurm.Job) *CheckpointOut {
	broke := j.State.Ended() && j.State != slurm.Completed && j.StartedAt != nil && j.EndedAt != nil && len(j.Tasks) == 0
	if j.State != slurm.Running && !broke {
		return nil
	}
	s, ok := c.SpecOfJob(ctx, cl.Name(), j)
	if !ok {
		return nil
	}
	s.Cluster = cl.Name()
	last, saved, seen := lastCheckpoint(ctx, c, s)
	if !seen {
		return nil
	}
	if broke {
		out := brokenOff(j, last, c.Now())
		if saved && !out.later && !retried(ctx, c, cl.Name(), j) && j.ID == j.ID.Array() && c.MayChange(j) == nil {
			next, _, _ := ResumeSpec(ctx, c, s)
			next.Cluster, s.Cluster = "", ""
			if p, ok := launch.PatchOf(j.ID, s, next); ok {
				out.Resume = p.Command()
			}
		}
		return out
	}
	if last.Every == 0 {
		last.Every = saveEvery(ctx, c, cl, j, s)
	}
	return checkpointOf(j, s, last, c.Now())
}

// LastSaved returns the iteration and time of the last complete checkpoint in the folder to which a job
// of megatron-ops saves. ok is false where there is none with a number, or where it cannot be read from
// here.
func LastSaved(ctx context.Context, c *ops.Call, cluster string, j slurm.Job) (iteration int, at time.Time, ok bool) {
	s, known := c.SpecOfJob(ctx, cluster, j)
	if !known {
		return 0, time.Time{}, false
	}
	s.Cluster = cluster
	last, ok, _ := lastCheckpoint(ctx, c, s)
	iteration, err := strconv.Atoi(last.Iteration)
	return iteration, last.At, ok && err == nil
}

// saveEvery returns the time between two checkpoints, according to the flags and the
// log; zero where these do not tell.
func saveEvery(ctx context.Context, c *ops.Call, cl ops.Cluster, j slurm.Job, s job.Spec) time.Duration {
	interval := megatron.NumberOf(s.Args, "--save-interval", 0)
	if interval == 0 {
		return 0
	}
	j.Cluster = cl.Name()
	run, err := RecentRun(ctx, c, j)
	ms := run.Summary().IterationMS
	if err != nil || ms == nil {
		return 0
	}
	return time.Duration(float64(interval) * *ms * float64(time.Millisecond))
}

func checkpointOf(j slurm.Job, s job.Spec, last watch.Checkpoint, now time.Time) *CheckpointOut {
	r := watch.RiskOf(j, last, last.Every, now)
	out := &CheckpointOut{Iteration: last.Iteration, GPUHours: r.GPUHours, TooLate: r.TooLate, killSwitch: s.KillSwitch != ""}
	_, out.handler = megatron.ValueOf(s.Args, "--exit-signal-handler")
	_, stops := megatron.ValueOf(s.Args, "--exit-duration-in-mins")
	if out.SavesAtEnd = s.Signal != "" || stops; out.SavesAtEnd {
		out.TooLate = false
	}
	seconds := func(d time.Duration) *int64 {
		if d < 0 {
			return nil
		}
		n := int64(d.Seconds())
		return &n
	}
	if !last.At.IsZero() {
		out.At, out.AgeS = &last.At, seconds(now.Sub(last.At))
	}
	if last.Every > 0 {
		out.EveryS = seconds(last.Every)
	}
	out.NextS, out.LeftS = seconds(r.Next), seconds(r.Left)
	return out
}

// killWait is how long after its end a job may still save: Slurm takes the time at which it asks
// a job to end for its end, and file systems have clocks of their own.
const killWait = 2 * time.Minute

// brokenOff returns what a job that ended without completing has saved and lost.
func brokenOff(j slurm.Job, last watch.Checkpoint, now time.Time) *CheckpointOut {
	out := &CheckpointOut{Iteration: last.Iteration, ended: true, later: last.At.After(j.EndedAt.Add(killWait))}
	since := *j.StartedAt
	if !last.At.IsZero() {
		age := int64(max(now.Sub(last.At), 0).Seconds())
		out.At, out.AgeS = &last.At, &age
		if last.At.After(since) {
			since = last.At
		}
	}
	out.GPUHours = max(j.EndedAt.Sub(since), 0).Hours() * float64(j.GPUs)
	return out
}

// says describes the last checkpoint and what is at risk, in one line.
func (o *CheckpointOut) says(l lang.Lang) string {
	text := lang.Text{EN: "none yet", ZH: "尚无检查点"}.In(l)
	if o.ended && o.Iteration == "" {
		return fmt.Sprintf(lang.Text{EN: "none; the %.1f GPU hours are lost", ZH: "没有；%.1f GPU 小时已损失"}.In(l), o.GPUHours)
	}
	if o.Iteration != "" && o.AgeS != nil {
		text = fmt.Sprintf(lang.Text{EN: "iteration %s, %s ago", ZH: "第 %s 次迭代，%s 前"}.In(l), o.Iteration, inWords(*o.AgeS).In(l))
	}
	switch {
	case o.later:
		return text + lang.Text{EN: "; saved after this job had ended", ZH: "；保存于该作业结束之后"}.In(l)
	case o.ended:
		return text + fmt.Sprintf(lang.Text{EN: "; the %.1f GPU hours since then are lost", ZH: "；此后的 %.1f GPU 小时已损失"}.In(l), o.GPUHours)
	}
	text += fmt.Sprintf(lang.Text{EN: "; %.1f GPU hours would be lost now", ZH: "；此刻结束会损失 %.1f GPU 小时"}.In(l), o.GPUHours)
	if o.NextS != nil {
		text += fmt.Sprintf(lang.Text{EN: "; the next is due in %s", ZH: "；下一个约在 %s后"}.In(l), inWords(*o.NextS).In(l))
	}
	return text
}

// inWords formats seconds to the nearest minute, and a short time to the second.
func inWords(seconds int64) lang.Text {
	d := time.Duration(seconds) * time.Second
	if d >= 90*time.Second {
		d = d.Round(time.Minute)
	}
	return lang.Span(d)
}

// Section shows the line, and what to do while one can still do something.
func (o *CheckpointOut) Section(j slurm.Job, l lang.Lang) view.Section {
	s := view.Section{Facts: []view.Fact{{Name: lang.Text{EN: "last checkpoint", ZH: "最近的检查点"}.In(l), Value: o.says(l)}}}
	if o.TooLate {
		a := o.alarm(j)
		s.Text = a.What.In(l) + "\n" + a.Fix.In(l)
	}
	return s
}

// alarm reports that the job ends before its next checkpoint.
func (o *CheckpointOut) alarm(j slurm.Job) Alarm {
	a := Alarm{ID: "checkpoint_late", Job: j.ID}
	word := func(l lang.Lang, s *int64) string {
		if s == nil {
			return "?"
		}
		return inWords(*s).In(l)
	}
	lost := o.GPUHours
	if o.LeftS != nil {
		lost += float64(*o.LeftS) / 3600 * float64(j.GPUs)
	}
	a.What = lang.Text{
		EN: fmt.Sprintf("Ends at its time limit in %s, and the next checkpoint is due in %s: %.1f GPU hours would be lost.", word(lang.EN, o.LeftS), word(lang.EN, o.NextS), lost),
		ZH: fmt.Sprintf("%s 后到达时限，而下一个检查点约在 %s 后：将损失 %.1f GPU 小时。", word(lang.ZH, o.LeftS), word(lang.ZH, o.NextS), lost),
	}
	switch {
	case o.killSwitch:
		a.Fix = lang.Text{
			EN: "`killswitch on %s` makes it save and end; an operator can give it more time (`update %s --time`).",
			ZH: "`killswitch on %s` 可让它保存并结束；管理员可延长时限（`update %s --time`）。",
		}.With(j.ID, j.ID)
	case o.handler:
		a.Fix = lang.Text{
			EN: "It saves and ends when it is signalled: `cancel %s --signal TERM`; an operator can give it more time (`update %s --time`).",
			ZH: "它收到信号会保存并结束：`cancel %s --signal TERM`；管理员可延长时限（`update %s --time`）。",
		}.With(j.ID, j.ID)
	default:
		a.Fix = lang.Text{
			EN: "An operator can give it more time (`update %s --time`). Next time: signal: USR1@300 saves before the limit, or a smaller --save-interval.",
			ZH: "管理员可延长时限（`update %s --time`）。下次可设置 signal: USR1@300 在时限前保存，或减小 --save-interval。",
		}.With(j.ID)
	}
	return a
}

// retried reports whether a retry of a job was submitted already.
func retried(ctx context.Context, c *ops.Call, cluster string, j slurm.Job) bool {
	sub, ok, _ := c.SubmissionOf(ctx, cluster, j)
	st, err := c.Store()
	if !ok || err != nil {
		return false
	}
	first, count, _ := strings.Cut(sub.Key, RetryMark)
	n, _ := strconv.Atoi(count) // none: the first submission
	_, err = st.Submission(ctx, first+RetryMark+strconv.Itoa(n+1))
	return err == nil
}

// RetryMark separates a first submission's key from the number of a retry.
const RetryMark = "/retry-"

// startsOver holds the flags with which a run does not continue from its checkpoint, or
// loads from another folder.
var startsOver = []string{"--load", "--ckpt-step", "--finetune", "--no-load-optim", "--no-load-rng"}

// ResumeSpec returns s changed so that it continues from its last complete checkpoint,
// and that checkpoint. Where no checkpoint can be seen, ok is false, and s loads what
// it may find in the folder that it saves to.
func ResumeSpec(ctx context.Context, c *ops.Call, s job.Spec) (_ job.Spec, last watch.Checkpoint, ok bool) {
	save := megatron.LastOf(s.Args, "--save")
	if save == "" {
		return s, last, false
	}
	last, ok, _ = lastCheckpoint(ctx, c, s)
	switch _, loads := megatron.ValueOf(s.Args, "--load"); {
	case ok:
		s.Args = append(megatron.WithoutFlags(s.Args, startsOver), "--load", save)
		if last.Step > 0 {
			s.Args = append(s.Args, "--ckpt-step", strconv.Itoa(last.Step))
		}
	case !loads:
		s.Args = append(slices.Clone(s.Args), "--load", save)
	}
	return s, last, ok
}

// checkpointAlarm returns the alarm of a job that ends before it saves.
func checkpointAlarm(ctx context.Context, c *ops.Call, cl ops.Cluster, j slurm.Job) []Alarm {
	if o := Checkpoint(ctx, c, cl, j); o != nil && o.TooLate {
		return []Alarm{o.alarm(j)}
	}
	return nil
}

// IdleAlarm reports an allocation in which nothing runs.
func IdleAlarm(idle slurm.IdleAllocation) Alarm {
	s := int64(idle.For.Seconds())
	return Alarm{
		ID: "idle", Job: idle.Job.ID, Node: strings.Join(idle.Job.Nodes, ","),
		What: lang.Text{
			EN: "Has held %s for %s without a running step: %.1f GPU hours.",
			ZH: "占用 %s 已 %s 而没有运行任何步骤：%.1f GPU 小时。",
		}.With(ops.Counted(idle.Job.GPUs, "GPU"), inWords(s), idle.GPUHours),
		Fix: lang.Text{
			EN: "`cancel %s` gives the nodes back.",
			ZH: "`cancel %s` 可归还节点。",
		}.With(idle.Job.ID),
	}
}
