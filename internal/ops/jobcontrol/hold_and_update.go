package jobcontrol

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/launch"
	"github.com/megatron-ops/megatron-ops/internal/ops/preflight"
	"github.com/megatron-ops/megatron-ops/internal/view"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/hostlist"
)

// A restarter is a cluster that can say beforehand that it would refuse to requeue a job,
// and that starts what it requeues without the pause of a real Slurm.
type restarter interface {
	MayRequeue(context.Context, slurm.JobID) error
}

// JobIn names one job.
type JobIn struct {
	Job slurm.JobID `json:"job" arg:"" help:"job id, or an array's id" zh:"作业号，或数组作业号"`
	ops.OnCluster
}

// ChangeOut is the job after a change.
type ChangeOut struct {
	JobID slurm.JobID `json:"job_id"`
	State slurm.State `json:"state"`
	Did   string      `json:"did"`
	Name  string      `json:"name,omitempty"`
	// Replaces is the job that this one replaces.
	Replaces slurm.JobID `json:"replaces,omitempty"`
	Reason   string      `json:"reason,omitempty"` // why the job waits
}

// View says what was done, and the job's state afterwards.
func (o ChangeOut) View(lang.Lang) view.Doc {
	state := string(o.State)
	if o.Reason != "" && o.Reason != "None" {
		state += ", " + o.Reason
	}
	return view.Doc{Tone: view.Good, Title: fmt.Sprintf("%s %s: %s (%s)", o.JobID, o.Name, o.Did, state)}
}

// change makes one change to a job of the caller's. allow, unless it is nil, refuses
// what the cluster or the job's state forbids, and asks for confirmation.
func change(
	ctx context.Context, c *ops.Call, in JobIn, did lang.Text, allow func(ops.Cluster, slurm.Job) error, do func(ops.Cluster) error,
) (ChangeOut, error) {
	cl, j, err := c.Job(ctx, in.Cluster, in.Job)
	if err != nil {
		return ChangeOut{}, err
	}
	if cl, err = c.Changing(cl, j); err != nil {
		return ChangeOut{}, err
	}
	if allow != nil {
		if err := allow(cl, j); err != nil {
			return ChangeOut{}, err
		}
	}
	if err := do(cl); err != nil {
		return ChangeOut{}, changeError(c, err, j)
	}
	out := ChangeOut{JobID: in.Job, Name: j.Name, State: j.State, Did: did.In(c.Lang)}
	if after, err := cl.Job(ctx, in.Job); err == nil {
		out.State = after.State
	}
	return out, nil
}

// changeError returns the error of a change of j that Slurm refused. Slurm forgets a job
// minutes after its end and then calls its id invalid, while the accounts still know it.
func changeError(c *ops.Call, err error, j slurm.Job) error {
	if !j.State.Ended() || !errors.Is(err, slurm.ErrNotFound) {
		return c.SlurmError(err, j.ID)
	}
	return &ops.Error{
		Code: ops.Failed, Field: "job", Message: lang.Text{EN: "job %s has ended (%s), and Slurm no longer keeps it to be changed", ZH: "作业 %s 已结束（%s），Slurm 已不再保留它，无法再修改"}.With(j.ID, j.State.Word()),
		Fix: lang.Text{EN: "submit it again: `megatron-ops submit --from %s`", ZH: "请重新提交：`megatron-ops submit --from %s`"}.With(j.ID),
	}
}

// Hold returns the operation hold.
func Hold() ops.Op {
	return ops.Define(ops.Op{
		Name: "hold", Effect: ops.Write, Toolset: ops.JobsSet, Idempotent: true,
		Summary: lang.Text{EN: "keep a waiting job, or the rest of an array, from starting", ZH: "暂停排队中的作业或数组的剩余任务"},
		Help: lang.Text{
			EN: "Use to pause a series of jobs while you fix a script: the job keeps its age. release lets it continue.",
			ZH: "修改脚本期间暂停作业序列：保留排队时长。用 release 继续。",
		},
		Example: "hold 4711",
	}, hold)
}

func hold(ctx context.Context, c *ops.Call, in JobIn) (ChangeOut, error) {
	return change(ctx, c, in, lang.Text{EN: "held; it keeps its age in the queue", ZH: "已暂停，保留排队时长"},
		func(_ ops.Cluster, j slurm.Job) error { return requireWaiting(ctx, c, in, j) }, func(cl ops.Cluster) error { return cl.Hold(ctx, in.Job) })
}

// requireWaiting refuses to hold a job that has nothing waiting. Slurm would accept the
// request and do nothing, and the person would believe that the job is held.
func requireWaiting(ctx context.Context, c *ops.Call, in JobIn, j slurm.Job) error {
	if j.State != slurm.Running || restWaits(ctx, c, in, j) {
		return nil
	}
	return &ops.Error{
		Code: ops.NotAllowed, Field: "job", Message: lang.Text{EN: "job %s is %s: hold keeps a waiting job from starting and does nothing to one that runs", ZH: "作业 %s 的状态是 %s：hold 只能阻止排队中的作业启动，对运行中的作业不起作用"}.With(j.ID, j.State.Word()),
		Fix: lang.Text{EN: "killswitch or cancel ends it; requeue ends it and lets it wait again", ZH: "用 killswitch 或 cancel 结束它；用 requeue 结束并重新排队"},
	}
}

// restWaits reports whether elements of the array j wait.
func restWaits(ctx context.Context, c *ops.Call, in JobIn, j slurm.Job) bool {
	cl, err := c.Cluster(in.Cluster)
	if err != nil {
		return false
	}
	rows, _ := cl.Jobs(ctx, slurm.Filter{IDs: []slurm.JobID{j.ID}})
	return slices.ContainsFunc(rows, func(r slurm.Job) bool { return r.ID.Array() == in.Job && r.State == slurm.Pending })
}

// Release returns the operation release.
func Release() ops.Op {
	return ops.Define(ops.Op{
		Name: "release", Effect: ops.Write, Toolset: ops.JobsSet, Idempotent: true,
		Summary: lang.Text{EN: "let a held job start again", ZH: "释放被暂停的作业"},
		Help:    lang.Text{EN: "Use after hold.", ZH: "在 hold 之后使用。"},
		Example: "release 4711",
	}, release)
}

func release(ctx context.Context, c *ops.Call, in JobIn) (ChangeOut, error) {
	runs := false
	look := func(_ ops.Cluster, j slurm.Job) error {
		runs = j.State == slurm.Running && !restWaits(ctx, c, in, j)
		return nil
	}
	out, err := change(ctx, c, in, lang.Text{EN: "released", ZH: "已释放"}, look, func(cl ops.Cluster) error { return cl.Release(ctx, in.Job) })
	if runs { // Slurm accepts the request and does nothing
		out.Did = lang.Text{EN: "had started already: there was nothing to release", ZH: "早已启动，无需释放"}.In(c.Lang)
	}
	return out, err
}

// RequeueIn names the job to requeue.
type RequeueIn struct {
	JobIn
	Yes bool `json:"yes,omitempty" help:"do not ask before ending its run" zh:"不再询问，直接结束本次运行"`
}

// Requeue returns the operation requeue.
func Requeue() ops.Op {
	return ops.Define(ops.Op{
		Name: "requeue", Effect: ops.Destructive, Toolset: ops.JobsSet,
		Summary: lang.Text{EN: "end a job's run and put it back into the queue", ZH: "结束作业的本次运行并重新排队"},
		Help: lang.Text{
			EN: "Use when the same job should start over from its last checkpoint. What was computed since is lost.",
			ZH: "希望同一作业从最后一个检查点重新开始时使用。之后的计算会丢失。",
		},
		Example: "requeue 4711 --yes",
	}, requeue)
}

func requeue(ctx context.Context, c *ops.Call, in RequeueIn) (ChangeOut, error) {
	atOnce, already := false, false
	allow := func(cl ops.Cluster, j slurm.Job) (err error) {
		if in.Yes || c.Confirmed {
			already, err = c.BeginOn(ctx, j, func(was slurm.Job) bool {
				return j.Restarts > was.Restarts || !j.State.Ended() && (was.State.Ended() || j.State == slurm.Pending && was.State != slurm.Pending)
			})
		}
		r, ok := cl.(restarter)
		atOnce = ok
		if err != nil || already {
			return err
		}
		if ok {
			if err := r.MayRequeue(ctx, in.Job); err != nil {
				return c.SlurmError(err, in.Job)
			}
		}
		if j.State.Ended() {
			return c.RequireYes(in.Yes, lang.Text{EN: "%s (%s) has ended: %s; it goes back into the queue as it was", ZH: "%s（%s）已结束：%s；将按原样重新排队"}.With(j.ID, j.Name, j.State))
		}
		return c.RequireYes(in.Yes, lang.Text{
			EN: "requeueing %s (%s, %s, running for %s) ends its run: what was computed since the last checkpoint is lost",
			ZH: "重新排队 %s（%s，%s，已运行 %s）会结束本次运行：最后一个检查点之后的计算会丢失",
		}.With(j.ID, j.Name, ops.Counted(max(j.NumNodes, len(j.Nodes)), "node"), ops.Duration(j.ElapsedS)))
	}
	out, err := change(ctx, c, in.JobIn, lang.Text{EN: "requeued; Slurm starts it again after about two minutes", ZH: "已重新排队；Slurm 约两分钟后再次启动"}, allow, func(cl ops.Cluster) error {
		if already {
			return nil
		}
		return cl.Requeue(ctx, in.Job)
	})
	if err == nil && atOnce {
		out.Did = lang.Text{EN: "requeued; it starts again as soon as there is room", ZH: "已重新排队；有空闲节点时立即再次启动"}.In(c.Lang)
	}
	return out, err
}

// UpdateIn holds the changes to a job that has not ended.
type UpdateIn struct {
	JobIn
	Nodes     int    `json:"nodes,omitempty" name:"nodes" help:"another number of nodes, while it waits" zh:"改变节点数（排队中）"`
	Partition string `json:"partition,omitempty" help:"another partition, while it waits" zh:"改变分区（排队中）"`
	Time      string `json:"time,omitempty" help:"another time limit; a running job's can only be shortened" zh:"改变时间上限；运行中的作业只能缩短"`
	QOS       string `json:"qos,omitempty" name:"qos" help:"another QOS" zh:"改变 QOS"`
	Exclude   string `json:"exclude,omitempty" help:"nodes to avoid, while it waits" zh:"要避开的节点（排队中）"`
	// Agents have no Yes: a person confirms each of their updates.
	Yes bool `json:"-" name:"yes" help:"do not ask before it is submitted anew, where its script is made for its number of nodes" zh:"脚本按节点数生成、需重新提交时不再询问"`
}

// Update returns the operation update.
func Update() ops.Op {
	return ops.Define(ops.Op{
		Name: "update", Effect: ops.Write, Toolset: ops.JobsSet, Idempotent: true,
		Summary: lang.Text{EN: "change a waiting job's nodes, partition, time limit, QOS or excluded nodes", ZH: "修改排队作业的节点数、分区、时限、QOS 或排除节点"},
		Help: lang.Text{
			EN: "Use to get a waiting job in sooner without losing its age. A running job's nodes cannot change.",
			ZH: "在不丢失排队时长的情况下让作业更早开始。运行中的作业不能改变节点。",
		},
		Example: "update 4711 --time 2:00:00",
	}, update)
}

func update(ctx context.Context, c *ops.Call, in UpdateIn) (ChangeOut, error) {
	u := slurm.Update{NumNodes: in.Nodes, Partition: in.Partition, QOS: in.QOS}
	if in.Nodes < 0 {
		return ChangeOut{}, ops.NegativeError("nodes", in.Nodes, lang.Text{EN: "a number of 1 or more", ZH: "大于等于 1 的数"})
	}
	if in.Time != "" {
		d, ok := slurm.ParseDuration(in.Time)
		if !ok {
			return ChangeOut{}, ops.InputError("time",
				lang.Text{EN: "%q is not a time limit", ZH: "%q 不是有效的时限"}.With(in.Time),
				lang.Text{EN: "minutes, HH:MM:SS or D-HH:MM:SS", ZH: "分钟数、HH:MM:SS 或 D-HH:MM:SS"})
		}
		u.TimeLimit = d
	}
	if in.Exclude != "" {
		nodes, err := hostlist.Expand(in.Exclude)
		if err != nil {
			return ChangeOut{}, ops.InputError("exclude", lang.Said(err), lang.Text{EN: "for example gpu[01-04,07]", ZH: "例如 gpu[01-04,07]"})
		}
		u.Exclude = nodes
	}
	if u.NumNodes == 0 && u.Partition == "" && u.TimeLimit == 0 && u.QOS == "" && len(u.Exclude) == 0 {
		return ChangeOut{}, ops.InputError("",
			lang.Text{EN: "there is nothing to change", ZH: "没有要修改的内容"},
			lang.Text{EN: "give one of nodes, partition, time, qos and exclude", ZH: "请给出 nodes、partition、time、qos、exclude 之一"})
	}
	cl, j, err := c.Job(ctx, in.Cluster, in.Job)
	if err != nil {
		return ChangeOut{}, err
	}
	if cl, err = c.Changing(cl, j); err != nil {
		return ChangeOut{}, err
	}
	anew := launch.SubmitIn{SpecIn: changedSpec(in, j), IdempotencyKey: c.Key} // an earlier attempt of this call may have ended j
	if in.Nodes > 0 && j.State != slurm.Pending && !launch.AlreadySubmitted(ctx, c, &anew) {
		return ChangeOut{}, &ops.Error{Code: ops.NotAllowed, Field: "nodes", Message: lang.Text{
			EN: "job %s is %s: its number of nodes can be changed only while it waits",
			ZH: "作业 %s 处于 %s：只有排队中的作业可以修改节点数",
		}.With(j.ID, j.State.Word())}
	}
	if s, anew := submittedAnew(ctx, c, in, j); anew {
		return resubmit(ctx, c, in, cl, j, s)
	}
	if err := preflight.FitsPartition(ctx, cl, j, u); err != nil {
		return ChangeOut{}, err
	}
	if err := cl.Update(ctx, in.Job, u); err != nil {
		return ChangeOut{}, changeError(c, err, j)
	}
	after, err := awaitChange(ctx, c, cl, j, u)
	if err != nil {
		return ChangeOut{}, err
	}
	return ChangeOut{JobID: in.Job, Name: j.Name, State: after.State, Reason: after.Reason, Did: changeWords(u).In(c.Lang)}, nil
}
