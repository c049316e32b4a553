package jobcontrol

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/launch"
	"github.com/megatron-ops/megatron-ops/knowledge/rules"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/hostlist"
	"github.com/megatron-ops/megatron-ops/slurm/job"
)

// Slurm accepts another number of nodes for a waiting job without a word, even where
// the job then still asks for as many as before, or for what no nodes can provide.
// Therefore the job is read again after the change. And the script of a job that was
// submitted here is made for its number of nodes: another number needs another script.

// changeTimeout is how long Slurm's scheduler gets to report that the changed job
// cannot start.
const changeTimeout = 3 * time.Second

var submitItAnew = lang.Text{EN: "cancel it and submit it anew", ZH: "请取消后重新提交"}

// awaitChange returns the job after a change of its request, once Slurm has reported
// the result. A change after which the job could not start is undone.
func awaitChange(ctx context.Context, c *ops.Call, cl ops.Cluster, before slurm.Job, u slurm.Update) (slurm.Job, error) {
	var after slurm.Job
	var differs lang.Text
	for end := c.Now().Add(changeTimeout); ; {
		var err error
		if after, err = cl.Job(ctx, before.ID); err != nil {
			return after, c.SlurmError(err, before.ID)
		}
		differs = difference(after, u)
		if impossible(after) && !impossible(before) {
			back := slurm.Update{NumNodes: before.NumNodes, Partition: before.Partition, QOS: before.QOS}
			if before.TimeLimitS != nil {
				back.TimeLimit = time.Duration(*before.TimeLimitS) * time.Second
			}
			_ = cl.Update(ctx, before.ID, back) // the error below is the same where this fails
			return after, &ops.Error{
				Code: ops.Failed, Field: "job", Message: lang.Text{
					EN: "changed so, job %s could never start (%s), so it was changed back",
					ZH: "这样修改后作业 %s 永远无法启动（%s），已改回",
				}.With(before.ID, after.Reason),
				Fix: submitItAnew,
			}
		}
		if u.NumNodes == 0 && differs.EN == "" || !c.Now().Before(end) {
			break
		}
		if !ops.Pause(ctx, 300*time.Millisecond) {
			return after, ctx.Err()
		}
	}
	if differs.EN != "" {
		return after, &ops.Error{
			Code: ops.Failed, Field: "job", Message: lang.Text{
				EN: "Slurm took the change of job %s and did not make it: it has %s",
				ZH: "Slurm 接受了对作业 %s 的修改但没有生效：现为%s",
			}.With(before.ID, differs),
			Fix: submitItAnew,
		}
	}
	return after, nil
}

// impossible reports whether Slurm says that the job cannot start as it is.
func impossible(j slurm.Job) bool {
	return j.State == slurm.Pending && slices.Contains([]string{"BadConstraints", "PartitionNodeLimit", "PartitionTimeLimit"}, j.Reason)
}

// difference describes the first value of the job that differs from u; "" where none does.
// A value that the cluster does not tell counts as changed.
func difference(j slurm.Job, u slurm.Update) lang.Text {
	switch {
	case u.NumNodes > 0 && j.NumNodes > 0 && j.NumNodes != u.NumNodes:
		return ops.Counted(j.NumNodes, "node")
	case u.Partition != "" && j.Partition != "" && j.Partition != u.Partition:
		return lang.Text{EN: "partition %s", ZH: "分区 %s"}.With(j.Partition)
	case u.QOS != "" && j.QOS != "" && j.QOS != u.QOS:
		return lang.Text{EN: "QOS %s", ZH: " QOS %s"}.With(j.QOS)
	case u.TimeLimit > 0 && j.TimeLimitS != nil && *j.TimeLimitS > int64(u.TimeLimit.Seconds())+60:
		return lang.Text{EN: "time limit %s", ZH: "时限 %s"}.With(ops.Duration(*j.TimeLimitS))
	}
	return lang.Text{}
}

// changeWords describes what was changed.
func changeWords(u slurm.Update) lang.Text {
	var en, zh []string
	add := func(set bool, x lang.Text) {
		if set {
			en, zh = append(en, x.EN), append(zh, x.ZH)
		}
	}
	add(u.NumNodes > 0, lang.Text{EN: "nodes %d", ZH: "节点数 %d"}.With(u.NumNodes))
	add(u.Partition != "", lang.Text{EN: "partition %s", ZH: "分区 %s"}.With(u.Partition))
	add(u.TimeLimit > 0, lang.Text{EN: "time limit %s", ZH: "时限 %s"}.With(ops.Duration(int64(u.TimeLimit.Seconds()))))
	add(u.QOS != "", lang.Text{EN: "QOS %s", ZH: "QOS %s"}.With(u.QOS))
	add(len(u.Exclude) > 0, lang.Text{EN: "without %s", ZH: "避开 %s"}.With(hostlist.Compress(u.Exclude)))
	return lang.Text{EN: "changed: %[1]s", ZH: "已修改：%[2]s"}.With(strings.Join(en, ", "), strings.Join(zh, "，"))
}

// resubmit replaces a waiting job by one with a script for another number of nodes,
// which is planned first. The old job is held until the new one exists.
func resubmit(ctx context.Context, c *ops.Call, in UpdateIn, cl ops.Cluster, j slurm.Job, s job.Spec) (ChangeOut, error) {
	if s.Array != "" || s.Chain != nil && *s.Chain > 1 || s.Every != "" {
		return ChangeOut{}, ops.InputError("nodes",
			lang.Text{EN: "job %s is one of several, whose script is made for %s", ZH: "作业 %s 是一组作业之一，其脚本按 %s生成"}.With(j.ID, ops.Counted(j.NumNodes, "node")),
			lang.Text{EN: "cancel it, and submit it again: `submit --from %s --nodes %d`", ZH: "请取消后重新提交：`submit --from %s --nodes %d`"}.With(j.ID, in.Nodes))
	}
	next := launch.SubmitIn{SpecIn: changedSpec(in, j), IdempotencyKey: c.Key, DryRun: true}
	planned, err := launch.RunSubmit(ctx, c, next)
	if err != nil {
		return ChangeOut{}, err
	}
	if err := stopped(planned); err != nil {
		return ChangeOut{}, err
	}
	would := lang.Text{
		EN: "the script of job %s is made for %s: it is cancelled and submitted anew for %d, at the end of the queue",
		ZH: "作业 %s 的脚本按 %s生成：将取消它，并按 %d 个节点重新提交，排到队尾",
	}.With(j.ID, ops.Counted(j.NumNodes, "node"), in.Nodes)
	if err := c.RequireYes(in.Yes, would); err != nil {
		return ChangeOut{}, err
	}
	held := strings.HasPrefix(j.Reason, "JobHeld")       // by its user, who does not want it to start
	if _, err := c.Begin(ctx, held, &held); err != nil { // an earlier attempt of this call may have held it
		return ChangeOut{}, err
	}
	if !held && !j.State.Ended() {
		if err := cl.Hold(ctx, in.Job); err != nil {
			return ChangeOut{}, c.SlurmError(err, in.Job)
		}
	}
	next.DryRun, next.Yes = false, true
	made, err := launch.RunSubmit(ctx, c, next)
	if err == nil {
		err = stopped(made) // what the cluster has may have changed since the plan
	}
	if err != nil {
		if !held {
			_ = cl.Release(context.WithoutCancel(ctx), in.Job)
		}
		return ChangeOut{}, err
	}
	out := ChangeOut{JobID: *made.JobID, Replaces: in.Job, Name: j.Name, State: slurm.Pending}
	out.Did = lang.Text{EN: "submitted anew, nodes %d, in place of %s", ZH: "已按 %d 个节点重新提交，取代作业 %s"}.With(in.Nodes, in.Job).In(c.Lang)
	if err := cl.Cancel(ctx, in.Job); err != nil {
		return out, c.SlurmError(err, in.Job)
	}
	if after, err := cl.Job(ctx, out.JobID); err == nil {
		out.State = after.State
	}
	return out, nil
}

// stopped returns the error of a plan that keeps a job from being submitted.
func stopped(o launch.SubmitOut) error {
	if !o.Found() {
		return nil
	}
	p := o.Problems[slices.IndexFunc(o.Problems, func(p rules.Problem) bool { return p.Severity == rules.Error })]
	return &ops.Error{Code: ops.Preflight, Field: p.Field, Message: lang.Same(p.Message), Fix: lang.Same(p.Fix)}
}

// changedSpec returns the specification of j with the changes of an update. What earlier
// updates changed stays changed.
func changedSpec(in UpdateIn, j slurm.Job) launch.SpecIn {
	s := job.Spec{
		Cluster: j.Cluster, Nodes: &in.Nodes, Time: in.Time, Exclude: in.Exclude,
		Partition: cmp.Or(in.Partition, j.Partition), QOS: cmp.Or(in.QOS, j.QOS),
	}
	if s.Time == "" && j.TimeLimitS != nil {
		s.Time = ops.Duration(*j.TimeLimitS)
	}
	return launch.SpecIn{From: in.Job, Spec: s}
}

// Resubmission returns what update would submit in place of j, which the cluster has just
// reported. anew is false where update changes j itself.
func Resubmission(ctx context.Context, c *ops.Call, in UpdateIn, j slurm.Job) (next launch.SpecIn, anew bool) {
	if _, anew = submittedAnew(ctx, c, in, j); anew {
		next = changedSpec(in, j)
	}
	return next, anew
}

// submittedAnew reports whether an update submits a job in place of j: one with another
// number of nodes, where j's specification, which it returns, is known.
func submittedAnew(ctx context.Context, c *ops.Call, in UpdateIn, j slurm.Job) (s job.Spec, anew bool) {
	if in.Nodes <= 0 || in.Nodes == j.NumNodes {
		return s, false
	}
	return c.SpecOfJob(ctx, j.Cluster, j)
}
