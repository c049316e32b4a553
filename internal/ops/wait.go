package ops

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/view"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/watch"
)

// WaitIn says what to wait for.
type WaitIn struct {
	Job      slurm.JobID `json:"job" arg:"" help:"job id" zh:"作业号"`
	Artifact string      `json:"artifact,omitempty" placeholder:"FILE" help:"wait for this file of the job rather than its end; the specification's artifact where left out" zh:"等待该结果文件而不是作业结束；省略时用规格中的 artifact"`
	JSON     string      `json:"json,omitempty" name:"json" placeholder:"KEY=VALUE" help:"a condition on the file's JSON, such as status=done" zh:"对文件 JSON 内容的条件，例如 status=done"`
	End      bool        `json:"end,omitempty" help:"wait for the job's end, whatever its artifact" zh:"等待作业结束，不看结果文件"`
	Running  bool        `json:"running,omitempty" help:"wait until it runs" zh:"等到开始运行"`
	Timeout  int         `json:"timeout_s,omitempty" name:"timeout" placeholder:"SECONDS" help:"give up after so many seconds; the job goes on" zh:"最多等待的秒数；作业不受影响"`
	// Cancel is not offered to agents: to them, waiting only reads.
	Cancel bool `json:"-" help:"cancel the job once the artifact is there, and give its nodes back" zh:"结果文件出现后取消作业，归还节点"`
	OnCluster
}

// WaitOut is how the wait ended.
type WaitOut struct {
	slurm.Job
	Artifact string `json:"artifact,omitempty"` // the file that was seen
	// Cancelled says that the job was cancelled because its artifact is there, and
	// SavedGPUHours what it could still have used.
	Cancelled     bool    `json:"cancelled,omitempty"`
	SavedGPUHours float64 `json:"saved_gpu_hours,omitempty"`
	// TimedOut says that the time was up first.
	TimedOut bool `json:"timed_out,omitempty"`
	// Alarms are what was wrong with it while it ran, each told once.
	Alarms []string `json:"alarms,omitempty"`
}

// Found reports that the job ended badly.
func (o WaitOut) Found() bool {
	return !o.Cancelled && o.State.Ended() && o.State != slurm.Completed
}

// Wait is the operation wait.
func Wait() Op {
	return Define(Op{
		Name: "wait", Effect: Read, Toolset: JobsSet, Core: true, Idempotent: true,
		Summary: lang.Text{EN: "wait for a job's result file, its start or its end", ZH: "等待作业的结果文件、开始或结束"},
		Help: lang.Text{
			EN: "Use instead of asking for the state again and again. With an artifact it returns as soon as the file is there and at rest; to cancel the job then gives its nodes back.",
			ZH: "代替反复查询状态。指定结果文件时，文件出现并稳定后立即返回；此时取消作业即可归还节点。",
		},
		Example: "wait 4711 --artifact results/metrics.json --cancel",
	}, wait)
}

func wait(ctx context.Context, c *Call, in WaitIn) (WaitOut, error) {
	if in.Timeout < 0 {
		return WaitOut{}, InputError("timeout_s", "seconds, such as 600", "%d is negative", in.Timeout)
	}
	cl, j, err := c.Job(ctx, in.Cluster, in.Job)
	if err != nil {
		return WaitOut{}, err
	}
	if in.Cancel {
		if err := c.mayCancelLater(j); err != nil {
			return WaitOut{}, err
		}
	}
	if in.Timeout > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, time.Duration(in.Timeout)*time.Second)
		defer stop()
	}
	out := WaitOut{Job: j}
	artifact := c.artifactOf(ctx, cl.Name(), j, in)
	if artifact.Path != "" && !in.End && !in.Running {
		return c.awaitArtifact(ctx, cl, artifact, in, out)
	}
	ring := bell{told: map[string]bool{}}
	ring.look(ctx, c, &out)
	for !out.State.Ended() && (!in.Running || out.State != slurm.Running) {
		select {
		case <-ctx.Done():
			return c.timedOut(ctx, out)
		case <-time.After(PollPause(cl)):
		}
		if j, err := c.look(ctx, cl, in.Job); err == nil {
			out.Job = j
			c.Step(int(j.ElapsedS), 0, string(j.State))
			ring.look(ctx, c, &out)
		}
	}
	return out, nil
}

// A bell tells of a job's alarms while it is waited for.
type bell struct {
	looked time.Time
	told   map[string]bool
}

// bellPause is between two looks at the numbers of a job that is waited for.
const bellPause = 30 * time.Second

// look rings for what is new, as a step that the person sees at once, and adds
// it to the answer.
func (b *bell) look(ctx context.Context, c *Call, out *WaitOut) {
	if c.Now().Sub(b.looked) < bellPause {
		return
	}
	b.looked = c.Now()
	all, err := c.Alarms(ctx, out.Job)
	if err != nil {
		return // the next look asks again
	}
	for _, a := range all {
		if !b.told[a.ID] {
			b.told[a.ID] = true
			says := a.Says(c.Lang) + " " + a.Fix.In(c.Lang)
			out.Alarms = append(out.Alarms, says)
			c.Step(int(out.ElapsedS), 0, says)
		}
	}
}

// timedOut tells a wait that ran out of time from one that was broken off.
func (c *Call) timedOut(ctx context.Context, out WaitOut) (WaitOut, error) {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		out.TimedOut = true
		return out, nil
	}
	return out, ctx.Err()
}

// artifactOf is what the wait is for: as asked, or as the job's specification
// has it.
func (c *Call) artifactOf(ctx context.Context, cluster string, j slurm.Job, in WaitIn) watch.Artifact {
	a := watch.Artifact{Path: in.Artifact, JSON: in.JSON, Stable: 2 * time.Second}
	if a.Path == "" {
		if s, ok := c.specOf(ctx, cluster, j.ID); ok {
			a.Path = s.Artifact.Path
			if a.JSON == "" {
				a.JSON = s.Artifact.JSON
			}
		}
	}
	return a
}

func (c *Call) awaitArtifact(ctx context.Context, cl Cluster, a watch.Artifact, in WaitIn, out WaitOut) (WaitOut, error) {
	if c.Who.Surface != Shell && c.Who.Surface != Chat && !c.inJobFolders(out.Job, a.Path) {
		return out, InputError("artifact", "a path relative to the job's work directory", "%s lies outside of the job's own folders", a.Path)
	}
	ring := bell{told: map[string]bool{}}
	sight, err := a.Await(ctx, func() slurm.Job {
		if j, err := c.look(ctx, cl, in.Job); err == nil {
			out.Job = j
			c.Step(int(j.ElapsedS), 0, string(j.State))
			ring.look(ctx, c, &out)
		}
		return out.Job
	}, PollPause(cl))
	if ctx.Err() != nil {
		return c.timedOut(ctx, out)
	}
	if err != nil {
		if out.State.Ended() {
			return out, nil // how it ended says more than that the file is not there
		}
		return out, &Error{Code: Failed, Field: "artifact", Message: err.Error()}
	}
	out.Artifact = sight.Path
	if in.Cancel && !out.State.Ended() {
		saved := watch.Saved(out.Job)
		// Waiting only reads: what ends the job is the operation cancel, as the person
		// and with its audit.
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

// mayCancelLater refuses, before anything is waited for, what cancel would refuse
// in the end. Whoever asks through a server says yes first; in the shell the flag
// was typed by the person.
func (c *Call) mayCancelLater(j slurm.Job) error {
	own := *c
	own.effect = Destructive
	if err := own.authorise(Cancel()); err != nil {
		return err
	}
	if err := own.MayChange(j); err != nil {
		return err
	}
	if !c.OwnHands() && !c.Confirmed {
		return &Error{
			Code: NotAllowed, Confirm: true, Fix: "say yes: --yes",
			Message: fmt.Sprintf("once its artifact is there, %s (%s) is cancelled, which cannot be undone", j.ID, j.Name),
		}
	}
	return nil
}

// inJobFolders reports whether path, once resolved, lies in the job's work
// directory.
func (c *Call) inJobFolders(j slurm.Job, path string) bool {
	if !filepath.IsAbs(path) {
		path = filepath.Join(j.WorkDir, path)
	}
	root, err := filepath.EvalSymlinks(j.WorkDir)
	if err != nil {
		return false
	}
	// The folder is resolved, so that no link leads out; the file itself may not be
	// there yet.
	dir, err := filepath.EvalSymlinks(filepath.Dir(filepath.Clean(path)))
	if err != nil {
		return false
	}
	rel, err := filepath.Rel(root, dir)
	return err == nil && filepath.IsLocal(rel)
}

// View says how the wait ended.
func (o WaitOut) View(l lang.Lang) view.Doc {
	d := StatusOut{Job: o.Job}.View(l)
	if len(o.Alarms) > 0 {
		d.Sections = append(d.Sections, view.Section{Heading: lang.Text{EN: "while it ran", ZH: "运行期间"}.In(l), Items: o.Alarms})
	}
	switch {
	case o.Cancelled:
		d.Tone = view.Good
		d.Title = fmt.Sprintf(lang.Text{
			EN: "%s %s: %s is there; cancelled, which saves up to %.1f GPU hours",
			ZH: "%s %s：%s 已出现；已取消作业，最多节省 %.1f GPU 小时",
		}.In(l), o.ID, o.Name, o.Artifact, o.SavedGPUHours)
	case o.Artifact != "":
		d.Tone = view.Good
		d.Title = fmt.Sprintf(lang.Text{EN: "%s %s: %s is there", ZH: "%s %s：%s 已出现"}.In(l), o.ID, o.Name, o.Artifact)
	case o.TimedOut:
		d.Tone = view.Warn
		d.Title = fmt.Sprintf(lang.Text{EN: "%s %s: still %s; the time to wait is up", ZH: "%s %s：仍为 %s；等待时间已到"}.In(l), o.ID, o.Name, o.State)
	}
	return d
}
