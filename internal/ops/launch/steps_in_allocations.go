package launch

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/job"
)

// A launcher is a cluster that starts scripts as steps of running jobs, without
// queueing.
type launcher interface {
	Launch(ctx context.Context, l slurm.Launch) (slurm.JobID, error)
	FindStep(ctx context.Context, job slurm.JobID, name string) (slurm.JobID, bool, error)
}

// A stepper is a cluster that knows single steps of a job.
type stepper interface {
	Step(ctx context.Context, id slurm.JobID) (slurm.Job, error)
}

// An allocation is a running job that serves as a cluster: what is submitted to it
// starts at once, as a step.
type allocation struct {
	ops.Cluster
	launcher launcher
	job      slurm.JobID
	spec     job.Spec
	// started is the mark of the launch that was started or found; empty until it is
	// known.
	started string
}

// mark returns a number that tells the launches in one allocation apart. It grows with
// time, and names the step and the folder of its traces.
func mark(at time.Time, token string) string {
	return fmt.Sprintf("%d%02d", at.UnixMilli(), (int(token[0])*31+int(token[1]))%100)
}

// Submit starts the script and returns the step's id.
func (a *allocation) Submit(ctx context.Context, s slurm.Submission) (slurm.JobID, error) {
	m := mark(s.At, s.Token)
	a.started = m
	return a.launcher.Launch(ctx, slurm.Launch{
		Job: a.job, Step: job.StepName(a.spec, m), Script: s.Script, Args: []string{m},
		Dir: s.Dir, Base: job.StepFiles(a.spec, a.job, m),
	})
}

// Find looks for the step that was started with token.
func (a *allocation) Find(ctx context.Context, token string, at time.Time) (slurm.JobID, bool, error) {
	a.started = mark(at, token)
	return a.launcher.FindStep(ctx, a.job, job.StepName(a.spec, a.started))
}

// allocationFor returns the allocation with that id, and the specification adapted to it: a
// number of nodes or GPUs that the specification leaves open becomes the allocation's.
func allocationFor(ctx context.Context, c *ops.Call, cl ops.Cluster, id slurm.JobID, s job.Spec) (*allocation, job.Spec, error) {
	l, ok := cl.(launcher)
	if !ok {
		why := lang.Text{EN: "cluster %s is the embedded back end, which has no allocations", ZH: "集群 %s 是内置后端，没有资源分配"}
		if cl.Kind() == "rest" {
			why = lang.Text{EN: "cluster %s is reached by slurmrestd, which starts jobs and no steps", ZH: "集群 %s 通过 slurmrestd 访问，只能启动作业，不能启动步骤"}
		}
		return nil, s, ops.InputError("into",
			why.With(cl.Name()),
			lang.Text{EN: "a cluster of kind cli or ssh; or submit it as a job of its own", ZH: "请使用类型为 cli 或 ssh 的集群，或作为单独的作业提交"})
	}
	_, held, err := c.Job(ctx, s.Cluster, id)
	if err != nil {
		e := ops.AsError(err)
		e.Field = "into"
		return nil, s, e
	}
	if err := c.MayChange(held); err != nil {
		return nil, s, err
	}
	if held.State != slurm.Running || len(held.Nodes) == 0 {
		return nil, s, ops.InputError("into",
			lang.Text{EN: "job %s is %s and has no nodes", ZH: "作业 %s 处于 %s，没有节点"}.With(id, held.State.Word()),
			lang.Text{EN: "take nodes first: `megatron-ops render --for session` shows how, with salloc --no-shell", ZH: "请先申请节点：`megatron-ops render --for session` 会给出 salloc --no-shell 的用法"})
	}
	nodes := len(held.Nodes)
	if s.Nodes == nil {
		s.Nodes = &nodes
	}
	if *s.Nodes != nodes {
		return nil, s, ops.InputError("nodes",
			lang.Text{EN: "this asks for %s, and job %s has %d", ZH: "要求 %s，而作业 %s 有 %d 个"}.With(ops.Counted(*s.Nodes, "node"), id, nodes),
			lang.Text{EN: "nodes: %d, or leave it out", ZH: "nodes: %d，或去掉它"}.With(nodes))
	}
	gpus := held.GPUs / nodes
	if s.GPUsPerNode == nil && gpus > 0 {
		s.GPUsPerNode = &gpus
	}
	if want := *s.WithDefaults().GPUsPerNode; gpus > 0 && want > gpus {
		return nil, s, ops.InputError("gpus_per_node",
			lang.Text{EN: "%d GPUs per node are requested, and job %s has %d", ZH: "要求每节点 %d 张 GPU，而作业 %s 有 %d 张"}.With(want, id, gpus),
			lang.Text{EN: "gpus_per_node: %d", ZH: "gpus_per_node: %d"}.With(gpus))
	}
	return &allocation{Cluster: cl, launcher: l, job: id, spec: s}, s, nil
}

// JobOrStep is ops.Call.ShownJob that also accepts a step's id.
func JobOrStep(ctx context.Context, c *ops.Call, on string, id slurm.JobID) (ops.Cluster, slurm.Job, error) {
	if !slurm.IsStepID(string(id)) {
		return c.ShownJob(ctx, on, id)
	}
	cl, err := c.Cluster(on)
	if err != nil {
		return nil, slurm.Job{}, err
	}
	s, err := ops.Capable[stepper](cl, lang.Text{EN: "tell of the steps in an allocation", ZH: "提供分配内步骤的信息"})
	if err != nil {
		return nil, slurm.Job{}, err
	}
	j, err := s.Step(ctx, id)
	if err != nil {
		return nil, slurm.Job{}, c.SlurmError(err, id)
	}
	j.Cluster = cl.Name()
	if j.State == slurm.Running && j.StartedAt != nil {
		j.ElapsedS = max(int64(c.Now().Sub(*j.StartedAt).Seconds()), 0)
	}
	if spec, at, ok := launchedSpec(ctx, c, cl.Name(), id); ok {
		base := job.StepFiles(spec, id.Job(), at)
		j.Stdout, j.Stderr, j.WorkDir = base+".out", base+".err", spec.Worktree
	}
	return cl, j, nil
}

// launchedSpec returns the specification that a step was started with, and its mark.
func launchedSpec(ctx context.Context, c *ops.Call, cluster string, id slurm.JobID) (job.Spec, string, bool) {
	sub, ok := c.Submission(ctx, cluster, id)
	if !ok {
		return job.Spec{}, "", false
	}
	s, ok := c.SpecOf(ctx, cluster, id)
	return s, mark(sub.CreatedAt, sub.Token), ok
}

// StepFiles returns the logs of a step that was started here.
func StepFiles(ctx context.Context, c *ops.Call, cluster string, j slurm.Job) []string {
	s, at, ok := launchedSpec(ctx, c, cluster, j.ID)
	if !ok {
		return nil
	}
	var found []string
	for _, p := range []string{j.Stdout, j.Stderr, job.StepTraces(s, j.ID.Job(), at)} {
		// A step could swap its log for a link to somebody else's file.
		if st, err := os.Lstat(p); err == nil && st.Mode()&fs.ModeSymlink == 0 {
			found = append(found, p)
		}
	}
	return found
}

// logPaths returns the files that a launch writes to.
func (a *allocation) logPaths(mark string) []string {
	base := job.StepFiles(a.spec, a.job, mark)
	return []string{base + ".out", base + ".err"}
}

// question says what a yes would start.
func (a *allocation) question(name string) lang.Text {
	return lang.Text{EN: "this starts %s as a step of job %s: %s, %s", ZH: "将把 %s 作为作业 %s 的一个步骤启动：%s，%s"}.
		With(name, a.job, ops.Counted(*a.spec.Nodes, "node"), ops.Counted(a.spec.WorldSize(), "GPU"))
}
