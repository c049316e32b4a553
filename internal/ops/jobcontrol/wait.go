package jobcontrol

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/joblogs"
	"github.com/megatron-ops/megatron-ops/internal/view"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/metrics"
	"github.com/megatron-ops/megatron-ops/slurm/watch"
)

// WaitIn says what to wait for.
type WaitIn struct {
	Job      slurm.JobID `json:"job" arg:"" help:"job id" zh:"作业号"`
	Artifact string      `json:"artifact,omitempty" placeholder:"FILE" help:"wait for this file of the job rather than its end; the specification's artifact where left out" zh:"等待该结果文件而不是作业结束；省略时用规格中的 artifact"`
	JSON     string      `json:"json,omitempty" name:"json" placeholder:"KEY=VALUE" help:"a condition on the file's JSON, such as status=done" zh:"对文件 JSON 内容的条件，例如 status=done"`
	End      bool        `json:"end,omitempty" help:"wait for the job's end, whatever its artifact" zh:"等待作业结束，不看结果文件"`
	Running  bool        `json:"running,omitempty" help:"wait until it runs" zh:"等到开始运行"`
	Timeout  ops.Seconds `json:"timeout_s,omitempty" name:"timeout" placeholder:"SECONDS" help:"give up after N seconds (or 10m); job goes on" zh:"最多等待的秒数（在命令中也可写 10m、2h）；作业不受影响"`
	// Agents have no Cancel: for them, waiting only reads.
	Cancel bool `json:"-" help:"cancel the job once the artifact is there, and give its nodes back" zh:"结果文件出现后取消作业，归还节点"`
	ops.OnCluster
}

// WaitOut says how the wait ended.
type WaitOut struct {
	slurm.Job
	Artifact string `json:"artifact,omitempty"` // the file that appeared
	// NoArtifact says why a job that has ended left no artifact.
	NoArtifact string `json:"no_artifact,omitempty"`
	// Cancelled reports that the job was cancelled because its artifact exists.
	// SavedGPUHours is what the job could still have used.
	Cancelled     bool    `json:"cancelled,omitempty"`
	SavedGPUHours float64 `json:"saved_gpu_hours,omitempty"`
	// TimedOut reports that the timeout came first.
	TimedOut bool `json:"timed_out,omitempty"`
	// Alarms holds the alarms while the job ran, each once.
	Alarms []string `json:"alarms,omitempty"`
	// SeenWithinS is the longest delay, in seconds, between the event and its
	// detection.
	SeenWithinS float64 `json:"seen_within_s"`
}

// Found reports whether the job ended badly or without its artifact, or never starts.
func (o WaitOut) Found() bool {
	return !o.Cancelled && o.State.Ended() && o.State != slurm.Completed || o.NoArtifact != "" || o.NeverStarts()
}

// Wait returns the operation wait.
func Wait() ops.Op {
	return ops.Define(ops.Op{
		Name: "wait", Effect: ops.Read, Toolset: ops.JobsSet, Core: true,
		Summary: lang.Text{EN: "wait for a job's result file, its start or its end", ZH: "等待作业的结果文件、开始或结束"},
		Help: lang.Text{
			EN: "Use instead of asking for the state repeatedly. With an artifact it returns once the file is at rest or the job ends; to cancel the job then gives its nodes back.",
			ZH: "代替反复查询状态。指定结果文件时，文件出现并稳定，或作业结束而没有该文件时返回；此时取消作业即可归还节点。",
		},
		Example: "wait 4711 --artifact results/metrics.json --cancel",
	}, wait)
}

func wait(ctx context.Context, c *ops.Call, in WaitIn) (WaitOut, error) {
	if in.Timeout < 0 {
		return WaitOut{}, ops.NegativeError("timeout_s", int(in.Timeout), lang.Text{EN: "seconds, such as 600", ZH: "秒数，例如 600"})
	}
	cl, j, err := c.Job(ctx, in.Cluster, in.Job)
	if err != nil {
		return WaitOut{}, err
	}
	if in.Cancel {
		if err := mayCancelLater(c, j); err != nil {
			return WaitOut{}, err
		}
	}
	if in.Timeout > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, in.Timeout.Duration())
		defer stop()
	}
	out := WaitOut{Job: j, SeenWithinS: ops.PollPause(cl).Seconds()}
	artifact := artifactOf(ctx, c, cl.Name(), j, in)
	if artifact.Path != "" && !in.End && !in.Running {
		return awaitArtifact(ctx, c, cl, artifact, in, out)
	}
	p := waitReporter{alarms: map[string]bool{}}
	p.look(ctx, c, &out)
	for !out.State.Ended() && !out.NeverStarts() && (!in.Running || out.State != slurm.Running) {
		if !ops.Pause(ctx, ops.PollPause(cl)) {
			return timedOut(ctx, c, cl, in, out)
		}
		if j, err := c.Look(ctx, cl, in.Job); err == nil {
			out.Job = j
			p.look(ctx, c, &out)
		}
	}
	return out, nil
}

// A waitReporter reports a job's progress while somebody waits for it, and each of its
// alarms once.
type waitReporter struct {
	read   time.Time // when the log was last read
	line   string    // the newest numbers of the log
	said   string
	saidAt time.Time
	alarms map[string]bool
}

const (
	// readPause is the pause between two reads of the log.
	readPause = 30 * time.Second
	// repeatPause is the pause before the same line is reported again.
	repeatPause = 15 * time.Second
)

// look reports news as a step, and adds alarms to the answer.
func (p *waitReporter) look(ctx context.Context, c *ops.Call, out *WaitOut) {
	now := c.Now()
	if now.Sub(p.read) >= readPause && out.State == slurm.Running {
		p.read = now
		if run, all, err := joblogs.LookAtRun(ctx, c, out.Job); err == nil { // after an error the next look tries again
			p.line = lastIteration(run).In(c.Lang)
			for _, a := range all {
				if !p.alarms[a.ID] {
					p.alarms[a.ID] = true
					says := a.Says(c.Lang) + " " + a.Fix.In(c.Lang)
					out.Alarms = append(out.Alarms, says)
					p.say(c, out.Job, now, says)
				}
			}
		}
	}
	line := out.State.Word().In(c.Lang)
	if why := out.Why(); out.State != slurm.Running && why != "" {
		line += " (" + why + ")"
	}
	if p.line != "" {
		line += lang.Text{EN: ", ", ZH: "，"}.In(c.Lang) + p.line
	}
	if line != p.said || now.Sub(p.saidAt) >= repeatPause {
		p.said = line
		p.say(c, out.Job, now, line)
	}
}

// say reports a step: how much of its time limit the job has used, and a text. In the
// shell the used time is part of the text, because a fraction would look like the
// progress of the wait itself.
func (p *waitReporter) say(c *ops.Call, j slurm.Job, now time.Time, words string) {
	p.saidAt = now
	limit := int64(0)
	if j.TimeLimitS != nil {
		limit = *j.TimeLimitS
	}
	if c.Who.Surface != ops.Shell {
		c.Step(int(j.ElapsedS), int(limit), words)
		return
	}
	if rest, running := strings.CutPrefix(words, string(slurm.Running)); running && j.ElapsedS > 0 {
		ran := lang.Text{EN: " for %s", ZH: " 已运行 %s"}.With(ops.Duration(j.ElapsedS))
		if limit > 0 {
			ran = lang.Text{EN: " for %s of %s", ZH: " 已运行 %s（时限 %s）"}.With(ops.Duration(j.ElapsedS), ops.Duration(limit))
		}
		words = string(slurm.Running) + ran.In(c.Lang) + rest
	}
	c.Step(0, 0, words)
}

// lastIteration describes a run's last iteration; "" where there is none.
func lastIteration(run metrics.Run) lang.Text {
	if len(run.Iterations) == 0 {
		return lang.Text{}
	}
	i := run.Iterations[len(run.Iterations)-1]
	said := lang.Text{EN: "iteration %d", ZH: "第 %d 次迭代"}.With(i.N)
	if run.Of > 0 {
		said = lang.Text{EN: "iteration %d of %d", ZH: "第 %d/%d 次迭代"}.With(i.N, run.Of)
	}
	if i.Loss != nil {
		said = lang.Text{EN: "%s, loss %.4g", ZH: "%s，损失 %.4g"}.With(said, *i.Loss)
	}
	if i.ElapsedMS != nil {
		said = lang.Text{EN: "%s, %.3g s each", ZH: "%s，每次 %.3g 秒"}.With(said, *i.ElapsedMS/1000)
	}
	return said
}

// lastLook is how long a wait that timed out asks for the job's current state.
const lastLook = 5 * time.Second

// timedOut returns the answer of a wait whose timeout is over, with the job's current
// state, and the context's error for a wait that was cancelled.
func timedOut(ctx context.Context, c *ops.Call, cl ops.Cluster, in WaitIn, out WaitOut) (WaitOut, error) {
	if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return out, ctx.Err()
	}
	late, done := context.WithTimeout(context.WithoutCancel(ctx), lastLook)
	defer done()
	if j, err := c.Look(late, cl, in.Job); err == nil {
		out.Job = j
	}
	out.TimedOut = !out.State.Ended() && !out.NeverStarts() && !(in.Running && out.State == slurm.Running)
	return out, nil
}

// artifactOf returns the artifact to wait for: the one that the call names, or the one
// of the job's specification.
func artifactOf(ctx context.Context, c *ops.Call, cluster string, j slurm.Job, in WaitIn) watch.Artifact {
	a := watch.Artifact{Path: in.Artifact, JSON: in.JSON, Stable: time.Second}
	if a.Path == "" {
		if s, ok := c.SpecOfJob(ctx, cluster, j); ok {
			a.Path = s.Artifact.Path
			a.JSON = cmp.Or(a.JSON, s.Artifact.JSON)
		}
	}
	return a
}

func awaitArtifact(ctx context.Context, c *ops.Call, cl ops.Cluster, a watch.Artifact, in WaitIn, out WaitOut) (WaitOut, error) {
	outside := func() error {
		if c.AtShell() || inJobFolders(out.Job, a.Path) {
			return nil
		}
		return ops.InputError("artifact",
			lang.Text{EN: "%s lies outside of the job's own folders", ZH: "%s 不在该作业自己的目录之内"}.With(a.Path),
			lang.Text{EN: "a path relative to the job's work directory", ZH: "相对于作业工作目录的路径"})
	}
	if err := outside(); err != nil {
		return out, err
	}
	out.SeenWithinS = (a.Stable + watch.FilePause).Seconds()
	_, unseen := os.Stat(out.WorkDir)
	if unseen != nil {
		out.SeenWithinS = ops.PollPause(cl).Seconds()
		out.Alarms = append(out.Alarms, lang.Text{
			EN: "the job's folder %s is not visible on this machine: its artifact is not seen here, only its end",
			ZH: "本机看不到作业目录 %s：这里看不到结果文件，只能看到作业结束",
		}.With(out.WorkDir).In(c.Lang))
	}
	p := waitReporter{alarms: map[string]bool{}}
	sight, err := a.Await(ctx, func() slurm.Job {
		if j, err := c.Look(ctx, cl, in.Job); err == nil {
			out.Job = j
			p.look(ctx, c, &out)
		}
		return out.Job
	}, ops.PollPause(cl))
	if ctx.Err() != nil {
		return timedOut(ctx, c, cl, in, out)
	}
	if err != nil {
		if out.State.Ended() || out.NeverStarts() {
			if unseen == nil && out.State.Ended() {
				out.NoArtifact = lang.Said(err).In(c.Lang)
			}
			return out, nil
		}
		return out, &ops.Error{Code: ops.Failed, Field: "artifact", Message: lang.Said(err)}
	}
	if err := outside(); err != nil { // its folder may have become a link meanwhile
		return out, err
	}
	out.Artifact = sight.Path
	if in.Cancel && !out.State.Ended() {
		saved := watch.Saved(out.Job)
		// Waiting only reads. The operation cancel ends the job, with the person's
		// rights and an entry in the audit trail.
		done, err := Cancel().Run(ctx, c, &CancelIn{Job: in.Job, Yes: true, OnCluster: in.OnCluster})
		if err != nil {
			return out, err
		}
		if done, ok := done.(CancelOut); ok && done.Cancelled {
			out.Cancelled, out.SavedGPUHours = true, saved
		}
	}
	return out, nil
}

// mayCancelLater refuses at the start what cancel would refuse at the end. A caller who
// asks through a server must confirm first; in the shell, the person typed the flag.
func mayCancelLater(c *ops.Call, j slurm.Job) error {
	own, err := c.For(Cancel())
	if err != nil {
		return err
	}
	if err := own.MayChange(j); err != nil {
		return err
	}
	if !c.OwnHands() && !c.Confirmed {
		return ops.ConfirmError(lang.Text{EN: "once its artifact exists, %s (%s) is cancelled, which cannot be undone", ZH: "结果文件出现后将取消 %s（%s），无法撤销"}.With(j.ID, j.Name))
	}
	return nil
}

// inJobFolders reports whether path, with links resolved, lies in the job's work
// directory. Neither the file nor the folders that the job makes for it need exist yet.
func inJobFolders(j slurm.Job, path string) bool {
	if !filepath.IsAbs(j.WorkDir) {
		return false
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(j.WorkDir, path)
	}
	root, err := resolved(filepath.Clean(j.WorkDir))
	if err != nil {
		return false
	}
	dir, err := resolved(filepath.Dir(filepath.Clean(path))) // the file itself is what the job makes of it
	if err != nil {
		return false
	}
	rel, err := filepath.Rel(root, dir)
	return err == nil && filepath.IsLocal(rel)
}

// resolved returns path with its links resolved as far as it exists.
func resolved(path string) (string, error) {
	rest := ""
	for missing(path) {
		path, rest = filepath.Dir(path), filepath.Join(filepath.Base(path), rest)
	}
	path, err := filepath.EvalSymlinks(path)
	return filepath.Join(path, rest), err
}

// missing reports whether nothing has the name path, not even a link that leads nowhere.
func missing(path string) bool {
	_, err := os.Lstat(path)
	return errors.Is(err, fs.ErrNotExist)
}

// View says how the wait ended.
func (o WaitOut) View(l lang.Lang) view.Doc {
	now := StatusOut{Job: o.Job}
	if o.State == slurm.Pending { // nobody knows a job by the reason's name alone
		now.explain(l)
	}
	d := now.View(l)
	if o.State != slurm.Completed { // how it ended says more than that the file is missing
		d.Add(view.Section{Text: o.NoArtifact})
	}
	d.Add(view.Section{Heading: lang.Text{EN: "while it ran", ZH: "运行期间"}.In(l), Items: o.Alarms})
	switch {
	case o.Cancelled:
		d.Tone = view.Good
		d.Title = fmt.Sprintf(lang.Text{
			EN: "%s %s: %s exists; cancelled, which saves up to %.1f GPU hours",
			ZH: "%s %s：%s 已出现；已取消作业，最多节省 %.1f GPU 小时",
		}.In(l), o.ID, o.Name, o.Artifact, o.SavedGPUHours)
	case o.Artifact != "":
		d.Tone = view.Good
		d.Title = fmt.Sprintf(lang.Text{EN: "%s %s: %s exists", ZH: "%s %s：%s 已出现"}.In(l), o.ID, o.Name, o.Artifact)
	case o.NoArtifact != "" && o.State == slurm.Completed:
		d.Tone, d.Next = view.Bad, []string{"logs " + string(o.ID) + " --tail 20"}
		d.Title = fmt.Sprintf("%s %s: %s", o.ID, o.Name, o.NoArtifact)
	case o.NeverStarts():
		d.Tone = view.Bad
		d.Title = fmt.Sprintf(lang.Text{EN: "%s %s: never starts", ZH: "%s %s：永远不会启动"}.In(l), o.ID, o.Name)
	case o.TimedOut:
		d.Tone = view.Warn
		d.Title = fmt.Sprintf(lang.Text{EN: "%s %s: still %s; the wait timed out", ZH: "%s %s：仍为 %s；等待时间已到"}.In(l), o.ID, o.Name, o.State)
	}
	return d
}
