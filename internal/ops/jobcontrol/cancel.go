package jobcontrol

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/view"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// CancelIn names the job to cancel, or selects the caller's own jobs.
type CancelIn struct {
	Job       slurm.JobID `json:"job,omitempty" arg:"" optional:"" help:"job id; an array's id ends every task of it, 4711.0 one step" zh:"作业号；数组的作业号会结束其所有任务，4711.0 只结束一个步骤"`
	Mine      bool        `json:"mine,omitempty" help:"all of my jobs" zh:"我的所有作业"`
	Partition string      `json:"partition,omitempty" help:"with mine: only this partition's" zh:"配合 mine：只限该分区"`
	Pending   bool        `json:"pending,omitempty" help:"with mine: only those that wait" zh:"配合 mine：只限排队中的"`
	Signal    string      `json:"signal,omitempty" help:"signal its tasks instead: on TERM Megatron with --exit-signal-handler saves" zh:"改为向其任务发送该信号：带 --exit-signal-handler 的 Megatron 收到 TERM 会先保存"`
	Yes       bool        `json:"yes,omitempty" help:"do not ask before ending it" zh:"不再询问，直接结束"`
	ops.OnCluster
}

// CancelOut says what was cancelled.
type CancelOut struct {
	JobID     slurm.JobID `json:"job_id,omitempty"`
	Cancelled bool        `json:"cancelled"`
	// State is the job's state after the request. It shows where a job had ended by
	// itself.
	State slurm.State `json:"state,omitempty"`
	Name  string      `json:"name,omitempty"`
	// Step is the one step that was cancelled; the job goes on.
	Step string `json:"step,omitempty"`
	// Signal is the signal that was sent instead; the job ends when its program does.
	Signal string `json:"signal,omitempty"`
	// Jobs holds the result for each job, where the call selects several.
	Jobs []CancelledJob `json:"jobs,omitempty"`

	unsent string        // the signal that was not sent, since the job had ended
	kept   []slurm.JobID // the jobs that wait in the partition and in others: they go on
}

// A CancelledJob is one of several jobs that the call asks to cancel.
type CancelledJob struct {
	JobID     slurm.JobID `json:"job_id"`
	Name      string      `json:"name"`
	State     slurm.State `json:"state"` // the state before the call
	Cancelled bool        `json:"cancelled"`
	Error     string      `json:"error,omitempty"`
}

// Cancel returns the operation cancel.
func Cancel() ops.Op {
	return ops.Define(ops.Op{
		Name: "cancel", Effect: ops.Destructive, Toolset: ops.JobsSet, Core: true,
		Summary: lang.Text{EN: "end a job, or one task of an array", ZH: "结束作业，或数组中的一个任务"},
		Help: lang.Text{
			EN: "Use only when its owner wants it ended: all since the last checkpoint is lost.",
			ZH: "仅在作业所有者希望结束时使用：最后一个检查点之后的计算会丢失。",
		},
		Example:  "cancel 4711 --yes",
		Examples: []string{`cancel 4711 --signal TERM`, `cancel 4711 4712 4720_[3-5]`, `cancel --mine --pending`, `list -t PENDING -o json | megatron-ops cancel - --yes`},
	}, cancel)
}

// signals are the signals that a program may handle, and end by itself.
var signals = []string{"TERM", "INT", "HUP", "USR1", "USR2"}

func cancel(ctx context.Context, c *ops.Call, in CancelIn) (CancelOut, error) {
	name := slurm.SignalName(in.Signal)
	switch {
	case in.Signal != "" && !slices.Contains(signals, name):
		return CancelOut{}, ops.InputError("signal",
			lang.Text{EN: "%q is not a signal on which a program saves", ZH: "%q 不是可让程序保存的信号"}.With(in.Signal),
			lang.Text{EN: "one of %s; without a signal the job is ended", ZH: "可用：%s；不带信号则直接结束作业"}.With(strings.Join(signals, ", ")))
	case in.Signal != "" && (in.Mine || slurm.IsStepID(string(in.Job))):
		return CancelOut{}, ops.InputError("signal",
			lang.Text{EN: "goes to one job as a whole", ZH: "只能发给一个完整的作业"},
			lang.Text{EN: "for example: `cancel 4711 --signal TERM`", ZH: "例如：`cancel 4711 --signal TERM`"})
	case in.Mine && in.Job != "":
		return CancelOut{}, ops.InputError("mine",
			lang.Text{EN: "a job and mine cannot both be given", ZH: "不能同时给出作业号与 mine"},
			lang.Text{EN: "one of the two", ZH: "请二选一"})
	case in.Mine:
		return cancelMine(ctx, c, in)
	case in.Partition != "" || in.Pending:
		return CancelOut{}, ops.InputError("mine",
			lang.Text{EN: "partition and pending choose among one's own jobs", ZH: "partition 与 pending 只用于从自己的作业中筛选"},
			lang.Text{EN: "for example: `cancel --mine --partition dev`", ZH: "例如：`cancel --mine --partition dev`"})
	case in.Job == "":
		return CancelOut{}, ops.InputError("job",
			lang.Text{EN: "no job is named", ZH: "没有指明要结束什么"},
			lang.Text{EN: "for example: `cancel 4711`, or `cancel --mine`", ZH: "例如：`cancel 4711`，或 `cancel --mine`"})
	case slurm.IsStepID(string(in.Job)):
		return cancelStep(ctx, c, in, in.Job.Job())
	}
	cl, j, err := c.Job(ctx, in.Cluster, in.Job)
	if err != nil {
		return CancelOut{}, err
	}
	out := CancelOut{JobID: in.Job, State: j.State, Name: j.Name}
	if j.State.Ended() {
		made := func(was slurm.Job) bool { return !was.State.Ended() }
		if in.Signal != "" {
			made = nil // an end by itself looks alike
		}
		out.unsent = name
		already, err := c.BeginOn(ctx, j, made)
		out.Cancelled = already && !j.State.Failed() && j.State != slurm.Completed // else it ended before it could be cancelled
		return out, err
	}
	if cl, err = c.Changing(cl, j); err != nil {
		return out, err
	}
	size := ops.Counted(max(j.NumNodes, len(j.Nodes)), "node")
	if in.Signal != "" {
		in.Signal = name
		return signalTasks(ctx, c, cl, in, j, size)
	}
	would := lang.Text{
		EN: "cancelling %s (%s, %s, running for %s) cannot be undone",
		ZH: "取消 %s（%s，%s，已运行 %s）后无法撤销",
	}.With(in.Job, j.Name, size, ops.Duration(j.ElapsedS))
	if j.State == slurm.Pending {
		would = lang.Text{
			EN: "cancelling %s (%s, %s, which waits) gives up its place in the queue",
			ZH: "取消 %s（%s，%s，正在排队）会失去它在队列中的位置",
		}.With(in.Job, j.Name, size)
	}
	if err := c.RequireYes(in.Yes, would); err != nil {
		return out, err
	}
	if _, err := c.BeginOn(ctx, j, func(slurm.Job) bool { return false }); err != nil {
		return out, err
	}
	if err := cl.Cancel(ctx, in.Job); err != nil {
		return out, c.SlurmError(err, in.Job)
	}
	out.Cancelled = true
	// scancel reports nothing for a job that just ended, so the state comes from the
	// cluster afterwards.
	if after, err := cl.Job(ctx, in.Job); err == nil {
		out.State = after.State
	}
	return out, nil
}

// signalTasks sends a signal to the job's tasks; the job ends when its program does.
func signalTasks(ctx context.Context, c *ops.Call, cl ops.Cluster, in CancelIn, j slurm.Job, size lang.Text) (CancelOut, error) {
	out := CancelOut{JobID: in.Job, State: j.State, Name: j.Name}
	if j.State == slurm.Pending {
		return out, ops.InputError("signal",
			lang.Text{EN: "%s waits, and has no tasks yet", ZH: "%s 正在排队，还没有任务"}.With(in.Job),
			lang.Text{EN: "`cancel %s` without a signal takes it out of the queue", ZH: "不带信号的 `cancel %s` 会将其移出队列"}.With(in.Job))
	}
	s, err := ops.Capable[interface {
		Signal(ctx context.Context, id slurm.JobID, name string) error
	}](cl, lang.Text{EN: "send a signal to a job", ZH: "向作业发送信号"})
	if err != nil {
		return out, err
	}
	if err := c.RequireYes(in.Yes, lang.Text{
		EN: "sending SIG%s to the tasks of %s (%s, %s) ends a program that does not handle it",
		ZH: "向 %[2]s（%[3]s，%[4]s）的任务发送 SIG%[1]s，会结束未处理该信号的程序",
	}.With(in.Signal, in.Job, j.Name, size)); err != nil {
		return out, err
	}
	if _, err := c.BeginOn(ctx, j, nil); err != nil {
		return out, err
	}
	if err := s.Signal(ctx, in.Job, in.Signal); err != nil {
		return out, c.SlurmError(err, in.Job)
	}
	out.Signal = in.Signal
	return out, nil
}

// cancelMine cancels the caller's own jobs, each by its id. An operator cancels only
// their own, too.
func cancelMine(ctx context.Context, c *ops.Call, in CancelIn) (CancelOut, error) {
	cl, err := c.Cluster(in.Cluster)
	if err != nil {
		return CancelOut{}, err
	}
	me := c.Who.User
	all, err := cl.Jobs(ctx, slurm.Filter{User: me, Partition: in.Partition})
	if err != nil {
		return CancelOut{}, c.SlurmError(err, "")
	}
	out := CancelOut{Jobs: []CancelledJob{}}
	all = slices.DeleteFunc(slices.Clone(all), func(j slurm.Job) bool {
		return me == "" || j.User != me || j.State.Ended() || in.Pending && j.State != slurm.Pending || in.Partition != "" && !j.MayRunIn(in.Partition)
	})
	parts := map[slurm.JobID]bool{} // the arrays of which some tasks go on
	for _, j := range all {
		if in.Partition != "" && !j.RunsOnlyIn(in.Partition) {
			out.kept, parts[j.ID.Array()] = append(out.kept, j.ID), true
		}
	}
	running, asked := 0, strings.Split(c.Shown, ",")
	for _, j := range all {
		if slices.Contains(out.kept, j.ID) {
			continue
		}
		id := j.ID
		if !in.Pending && !parts[id.Array()] {
			id = id.Array() // the whole array, with its waiting tasks
		}
		if slices.ContainsFunc(out.Jobs, func(o CancelledJob) bool { return o.JobID == id }) {
			continue
		}
		if c.Confirmed && c.Shown != "" && !slices.Contains(asked, string(id.Array())) {
			continue // it began after the person was asked
		}
		if j.State != slurm.Pending {
			running++
		}
		out.Jobs = append(out.Jobs, CancelledJob{JobID: id, Name: j.Name, State: j.State})
	}
	if in.Yes || c.Confirmed {
		var first []CancelledJob
		switch again, err := c.Begin(ctx, out.Jobs, &first); {
		case err != nil:
			return out, err
		case again: // jobs that began since then are not meant
			out.Jobs = first
		}
	}
	if len(out.Jobs) == 0 {
		return out, nil
	}
	var names, ids []string
	for _, j := range out.Jobs {
		names, ids = append(names, string(j.JobID)+" "+j.Name), append(ids, string(j.JobID.Array()))
	}
	would := lang.Text{
		EN: "this ends %s of %s, %d of them running: %s",
		ZH: "将结束 %[2]s 的 %[1]s，其中 %[3]d 个正在运行：%[4]s",
	}.With(ops.Counted(len(out.Jobs), "job"), me, running, ops.FirstFew(names, 10))
	if left := out.left(); left != (lang.Text{}) {
		would = lang.Text{EN: "%s; %s", ZH: "%s；%s"}.With(would, left)
	}
	if !in.Yes && !c.Confirmed {
		e := ops.ConfirmError(would)
		slices.Sort(ids)
		e.Shown = strings.Join(slices.Compact(ids), ",")
		return out, e
	}
	failed := 0
	for i := range out.Jobs {
		o := &out.Jobs[i]
		if err := cl.Cancel(ctx, o.JobID); err != nil {
			o.Error = err.Error()
			failed++
			continue
		}
		o.Cancelled = true
		c.Step(i+1, len(out.Jobs), string(o.JobID))
	}
	out.Cancelled = failed == 0
	if failed > 0 {
		return out, &ops.Error{
			Code:    ops.Failed,
			Field:   "job",
			Message: lang.Text{EN: "%s of %d could not be ended", ZH: "共 %[2]d 个，有 %[1]s未能结束"}.With(ops.Counted(failed, "job"), len(out.Jobs)),
			Fix:     lang.Text{EN: "`list` shows the remaining jobs", ZH: "list 可查看剩余的作业"},
		}
	}
	return out, nil
}

// cancelStep cancels one step; the job goes on.
func cancelStep(ctx context.Context, c *ops.Call, in CancelIn, job slurm.JobID) (CancelOut, error) {
	cl, j, err := c.Job(ctx, in.Cluster, job)
	if err != nil {
		return CancelOut{}, err
	}
	out := CancelOut{JobID: job, State: j.State, Name: j.Name, Step: string(in.Job)}
	if cl, err = c.Changing(cl, j); err != nil {
		return out, err
	}
	if j.State.Ended() {
		return out, nil
	}
	s, err := ops.Capable[interface {
		CancelStep(ctx context.Context, step string) error
	}](cl, lang.Text{EN: "end one step of a job", ZH: "结束作业的单个步骤"})
	if err != nil {
		return out, err
	}
	if err := c.RequireYes(in.Yes, lang.Text{EN: "ending step %s of %s cannot be undone", ZH: "结束 %[2]s 的步骤 %[1]s 后无法撤销"}.With(in.Job, j.Name)); err != nil {
		return out, err
	}
	again, err := c.Begin(ctx, j, &slurm.Job{})
	if err != nil {
		return out, err
	}
	if err := s.CancelStep(ctx, string(in.Job)); err != nil && !(again && errors.Is(err, slurm.ErrNotFound)) {
		e := ops.AsError(c.SlurmError(err, job))
		if e.Code == ops.NotFound {
			e = ops.NotFoundError("job",
				lang.Text{EN: "job %s has no step %s that runs", ZH: "作业 %s 没有正在运行的步骤 %s"}.With(job, in.Job),
				lang.Text{EN: "steps count from 0: 4711.0", ZH: "步骤从 0 开始编号：4711.0"})
		}
		return out, e
	}
	out.Cancelled = true
	return out, nil
}

// left says which jobs go on since they wait in other partitions too; it is empty where none does.
func (o CancelOut) left() lang.Text {
	if len(o.kept) == 0 {
		return lang.Text{}
	}
	var ids []string
	for _, id := range o.kept {
		ids = append(ids, string(id))
	}
	return lang.Text{EN: "what waits in other partitions too goes on: %s", ZH: "还在其他分区排队的作业保留：%s"}.With(ops.FirstFew(ids, 10))
}

// View says what happened to the job, or to each of several jobs.
func (o CancelOut) View(l lang.Lang) view.Doc {
	switch {
	case o.JobID == "" && len(o.Jobs) == 0:
		d := view.Doc{Title: lang.Text{EN: "you have no job to cancel", ZH: "没有可结束的作业"}.In(l)}
		if text := o.left().In(l); text != "" {
			d.Add(view.Section{Text: text})
		}
		return d
	case len(o.Jobs) > 0:
		d := view.Doc{Tone: view.Good, Title: lang.Text{EN: "%s cancelled", ZH: "已取消 %s"}.With(ops.Counted(len(o.Jobs), "job")).In(l)}
		s := view.Section{}
		failed := 0
		for _, j := range o.Jobs {
			text := fmt.Sprintf("%s %s (%s)", j.JobID, j.Name, j.State)
			if j.Error != "" {
				text = l.Named(text, j.Error)
				failed++
			}
			s.Items = append(s.Items, text)
		}
		if failed > 0 {
			d.Tone = view.Bad
			d.Title = lang.Text{EN: "%d of %s cancelled", ZH: "已取消 %d / %s"}.With(len(o.Jobs)-failed, ops.Counted(len(o.Jobs), "job")).In(l)
		}
		d.Sections = []view.Section{s}
		if text := o.left().In(l); text != "" {
			d.Add(view.Section{Text: text})
		}
		return d
	case o.Signal != "":
		d := view.Doc{Tone: view.Good, Title: lang.Text{
			EN: "%s %s: SIG%s sent to its tasks; it ends when they do", ZH: "%s %s：已向其任务发送 SIG%s；任务结束后作业结束",
		}.With(o.JobID, o.Name, o.Signal).In(l), Next: []string{"wait " + string(o.JobID)}}
		if o.Signal == "TERM" {
			d.Add(view.Section{Text: lang.Text{
				EN: "torchrun kills its ranks 30 s after SIGTERM. A save that takes longer needs another signal, from the start: `signal` or `kill_switch` in the specification.",
				ZH: "收到 SIGTERM 30 秒后，torchrun 会强制结束各 rank。若保存更久，需从一开始就改用其他信号：规格中的 `signal` 或 `kill_switch`。",
			}.In(l)})
		}
		return d
	case o.unsent != "":
		return view.Doc{Tone: view.Warn, Title: lang.Text{
			EN: "%s had ended already: %s; SIG%s was not sent", ZH: "%s 此前已结束：%s；未发送 SIG%s",
		}.With(o.JobID, o.State, o.unsent).In(l)}
	case !o.Cancelled:
		return view.Doc{Tone: view.Warn, Title: fmt.Sprintf(lang.Text{EN: "%s had ended already: %s", ZH: "%s 此前已结束：%s"}.In(l), o.JobID, o.State)}
	case o.Step != "":
		return view.Doc{Tone: view.Good, Title: fmt.Sprintf(lang.Text{
			EN: "step %s of %s: cancelled; the job goes on", ZH: "%[2]s 的步骤 %[1]s：已取消；作业继续",
		}.In(l), o.Step, o.Name)}
	}
	return view.Doc{Tone: view.Good, Title: fmt.Sprintf(lang.Text{EN: "%s %s: cancelled", ZH: "%s %s：已取消"}.In(l), o.JobID, o.Name)}
}
