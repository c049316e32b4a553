package joblogs

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/launch"
	"github.com/megatron-ops/megatron-ops/internal/view"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logfile"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/report"
	"github.com/megatron-ops/megatron-ops/slurm/hostlist"
	"github.com/megatron-ops/megatron-ops/slurm/metrics"
)

// An Alarm is a problem of a running job that a person should hear of once, while they
// can still act on it.
type Alarm struct {
	// ID is hang, gpus_unused, gpus_idle, checkpoint_late, idle, or the id of a finding
	// in the metrics: not_finite, loss_spike, straggler, slower, slow_start. It stays
	// the same for as long as the problem lasts.
	ID   string
	Job  slurm.JobID
	Node string // the node to look at, or all nodes of the job as a hostlist
	What lang.Text
	Fix  lang.Text
}

// Says describes the alarm in one or two sentences, with the node.
func (a Alarm) Says(l lang.Lang) string {
	s := a.What.In(l)
	if a.Node != "" && !strings.Contains(s, a.Node) {
		if l == lang.ZH {
			return s + "节点：" + a.Node + "。"
		}
		return s + " Node: " + a.Node + "."
	}
	return s
}

// View shows the alarm and then what to do.
func (a Alarm) View(l lang.Lang) view.Doc {
	return view.Doc{Title: l.Named(string(a.Job), alarmTitles[a.ID].In(l)), Tone: view.Warn, Sections: []view.Section{
		{Text: a.Says(l)}, {Text: a.Fix.In(l)},
	}, Next: []string{"diagnose " + string(a.Job), "metrics " + string(a.Job)}}
}

// Notice returns the alarm as a notice for the job's people. If the same problem occurs
// again later, that is another notice.
func (a Alarm) Notice(j slurm.Job) ops.Notice {
	return ops.Notice{
		Key: fmt.Sprintf("%s/%s/%d/%s/%d", j.Cluster, j.ID, j.Restarts, a.ID, j.ElapsedS), Cluster: j.Cluster, Job: j.ID, Owner: j.User, Alarm: true,
		Title: lang.Text{EN: string(j.ID) + ": " + alarmTitles[a.ID].EN, ZH: string(j.ID) + "：" + alarmTitles[a.ID].ZH},
		Text:  lang.Text{EN: a.Says(lang.EN) + " " + a.Fix.EN, ZH: a.Says(lang.ZH) + a.Fix.ZH},
	}
}

var alarmTitles = map[string]lang.Text{
	"hang":            {EN: "no progress", ZH: "没有进展"},
	"not_finite":      {EN: "the loss is not a number", ZH: "损失不是有限值"},
	"loss_spike":      {EN: "the loss jumped", ZH: "损失突增"},
	"straggler":       {EN: "one rank holds up all others", ZH: "有 rank 拖慢全部"},
	"slower":          {EN: "training became slower", ZH: "训练变慢"},
	"checkpoint_late": {EN: "ends before its next checkpoint", ZH: "将在下一个检查点之前结束"},
	"idle":            {EN: "nothing runs on its nodes", ZH: "节点上没有任何步骤在运行"},
	"gpus_unused":     {EN: "its GPUs are not used", ZH: "GPU 未被使用"},
	"gpus_idle":       {EN: "GPUs do nothing", ZH: "有 GPU 没有在计算"},
	"slow_start":      {EN: "slow from the start", ZH: "从一开始就偏慢"},
}

// AlarmTitle returns the short title of the alarm with that id.
func AlarmTitle(id string) lang.Text { return alarmTitles[id] }

// Alarms reads a running job's newest log lines and reports whether the job hangs, and
// what is wrong with its numbers. A job that does not run or writes nothing has none.
func Alarms(ctx context.Context, c *ops.Call, j slurm.Job) ([]Alarm, error) {
	_, all, err := LookAtRun(ctx, c, j)
	return all, err
}

// LookAtRun is Alarms, and also returns the numbers in which it found them.
func LookAtRun(ctx context.Context, c *ops.Call, j slurm.Job) (run metrics.Run, all []Alarm, err error) {
	if j.State != slurm.Running {
		return run, nil, nil
	}
	cl, err := c.Cluster(j.Cluster)
	if err != nil {
		return run, nil, err
	}
	all = checkpointAlarm(ctx, c, cl, j)
	paths := logFiles(ctx, c, cl.Name(), j)
	if len(paths) == 0 {
		return run, all, nil
	}
	folders, err := openFolders(c, j, paths)
	if err != nil {
		return run, all, err
	}
	defer folders.Close()
	if a, ok := gpuWatch(folders, paths, j, c.Now()).idleAlarm(j); ok {
		all = append(all, a)
	}
	if run, err = metrics.Recent(ctx, folders, paths, gpuOf(ctx, c, cl.Name(), j)); err != nil {
		return run, all, err
	}
	for _, f := range run.Check() {
		a := Alarm{ID: f.ID, Job: j.ID, Node: hostlist.Compress(j.Nodes), What: f.What, Fix: f.Fix}
		if f.Rank != nil {
			a.Node = nodeOf(j, run.WorldSize, *f.Rank)
		}
		all = append(all, a)
	}
	src, err := logfile.OpenIn(folders, paths...)
	if err != nil {
		return run, all, nil //nolint:nilerr // a log that was removed in the meantime has no news
	}
	r, err := diagnose.Run(ctx, src, diagnose.FromJob(j))
	if err != nil {
		return run, all, err
	}
	switch {
	case r.Class == outcome.Hang:
		all = append(all, hangAlarm(j, r, run))
	case len(run.Iterations) == 0 && unused(ctx, c, cl, j):
		all = append(all, unusedAlarm(j))
	}
	return run, all, nil
}

// unusedAfter is how long a job may take until its first iteration. The largest models
// are loaded and compiled in less time.
const unusedAfter = 30 * time.Minute

// unused reports whether a training job has held its GPUs for longer than unusedAfter.
func unused(ctx context.Context, c *ops.Call, cl ops.Cluster, j slurm.Job) bool {
	if j.GPUs == 0 || time.Duration(j.ElapsedS)*time.Second < unusedAfter {
		return false
	}
	s, ok := c.SpecOfJob(ctx, cl.Name(), j)
	return ok && launch.Trains(s.WithDefaults())
}

// unusedAlarm reports GPUs that no iteration has used, with their cost.
func unusedAlarm(j slurm.Job) Alarm {
	return Alarm{
		ID: "gpus_unused", Job: j.ID, Node: hostlist.Compress(j.Nodes),
		What: lang.Text{
			EN: "Has held %s for %s without one logged iteration: %.1f GPU hours.", ZH: "占用 %s 已 %s，没有记录任何迭代：%.1f GPU 小时。",
		}.With(ops.Counted(j.GPUs, "GPU"), ops.Duration(j.ElapsedS), j.Last().GPUHours()),
		Fix: lang.Text{
			EN: "`logs %[1]s --tail 20` shows what it waits for, `metrics %[1]s --sample 5` whether its GPUs hold anything; `cancel %[1]s` gives them back.",
			ZH: "`logs %[1]s --tail 20` 可查看它在等什么，`metrics %[1]s --sample 5` 可查看 GPU 是否被使用；`cancel %[1]s` 可归还。",
		}.With(j.ID),
	}
}

// RecentRun reads the newest numbers in a running job's logs.
func RecentRun(ctx context.Context, c *ops.Call, j slurm.Job) (metrics.Run, error) {
	paths := logFiles(ctx, c, j.Cluster, j)
	folders, err := openFolders(c, j, paths)
	if err != nil {
		return metrics.Run{}, err
	}
	defer folders.Close()
	return metrics.Recent(ctx, folders, paths, gpuOf(ctx, c, j.Cluster, j))
}

// gpuOf returns the kind of GPU that a job was submitted for; "" where that is not
// known.
func gpuOf(ctx context.Context, c *ops.Call, cluster string, j slurm.Job) string {
	s, ok := c.SpecOfJob(ctx, cluster, j)
	if !ok {
		return ""
	}
	return c.SiteOf(s).Fill(s).GPU
}

// hangAlarm reports since when there is no progress, how long an iteration took before,
// and which ranks are behind.
func hangAlarm(j slurm.Job, r report.Report, run metrics.Run) Alarm {
	a := Alarm{ID: "hang", Job: j.ID, Node: hostlist.Compress(j.Nodes)}
	age := time.Duration(0)
	if r.SinceS != nil {
		age = time.Duration(*r.SinceS) * time.Second
	}
	a.What = lang.Text{EN: "No progress for " + ops.Duration(int64(age.Seconds())), ZH: "已有 " + ops.Duration(int64(age.Seconds())) + " 没有进展"}
	if ms := run.Summary().IterationMS; ms != nil {
		a.What.EN += fmt.Sprintf(", where an iteration took %.1f s", *ms/1000)
		a.What.ZH += fmt.Sprintf("（此前每次迭代 %.1f 秒）", *ms/1000)
	}
	if r.LastIter != nil {
		a.What.EN += "; the last one was " + strconv.Itoa(*r.LastIter)
		a.What.ZH += fmt.Sprintf("，最后一次迭代为第 %d 次", *r.LastIter)
	}
	a.What.EN, a.What.ZH = a.What.EN+".", a.What.ZH+"。"
	if b := r.Behind; b != nil {
		if a.Node = b.Node; a.Node == "" {
			a.Node = nodeOf(j, run.WorldSize, b.Ranks[0])
		}
		says := b.Says()
		a.What.EN += " " + says.EN
		a.What.ZH += says.ZH
	}
	a.Fix = lang.Text{
		EN: "See where each rank stands: megatron-ops run %s -- sh -c 'for p in $(pgrep -f pretrain); do py-spy dump --pid $p; done'; then cancel or requeue it, without that node if it stays the same one.",
		ZH: "查看各 rank 停在哪里：megatron-ops run %s -- sh -c 'for p in $(pgrep -f pretrain); do py-spy dump --pid $p; done'；之后取消或重新排队，若总是同一节点则将其排除。",
	}.With(j.ID)
	return a
}

// nodeOf returns the node of a rank, where ranks are laid out node by node, as torchrun
// and srun do by default.
func nodeOf(j slurm.Job, world, rank int) string {
	world = cmp.Or(world, j.GPUs)
	if n := len(j.Nodes); n > 0 && world >= n && world%n == 0 && rank < world {
		return j.Nodes[rank/(world/n)]
	}
	return hostlist.Compress(j.Nodes)
}
