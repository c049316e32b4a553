// Package jobcontrol shows jobs and changes them: their states, the queue, waiting for
// a job, the history, and kill switches.
package jobcontrol

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/joblogs"
	"github.com/megatron-ops/megatron-ops/internal/ops/launch"
	"github.com/megatron-ops/megatron-ops/internal/redact"
	"github.com/megatron-ops/megatron-ops/internal/view"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/cluster"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/report"
	"github.com/megatron-ops/megatron-ops/slurm/hostlist"
	"github.com/megatron-ops/megatron-ops/slurm/job"
)

// StatusIn names one job.
type StatusIn struct {
	Job     slurm.JobID `json:"job" arg:"" help:"job id as squeue prints it: 4711, 4711_3, or a step such as 4711.0" zh:"squeue 显示的作业号：4711、4711_3，或步骤如 4711.0"`
	Steps   bool        `json:"steps,omitempty" help:"its steps too, and the command line that started each" zh:"同时列出步骤及其启动命令"`
	Earlier bool        `json:"earlier,omitempty" help:"for a waiting job: try whether less time or fewer nodes would start sooner" zh:"排队作业：试算更短时限或更少节点能否更早开始"`
	ops.OnCluster
}

// StatusOut is one job, and the meaning of its state.
type StatusOut struct {
	slurm.Job
	// Meaning explains the state and reason, and Do says what one can do about it.
	Meaning string `json:"meaning,omitempty"`
	Do      string `json:"do,omitempty"`
	// CancelledBy is who cancelled the job, where Slurm's accounts tell.
	CancelledBy string `json:"cancelled_by,omitempty"`
	// Earlier is set where the call asks for it. Checkpoint is set for a running job
	// that saves checkpoints.
	Earlier    *launch.EarlierOut     `json:"earlier,omitempty"`
	Checkpoint *joblogs.CheckpointOut `json:"checkpoint,omitempty"`
	// Pulse says whether a running job still writes output.
	Pulse *report.Pulse `json:"pulse,omitempty"`
	// GPUUse is how busy the GPUs of a running job are, where the job measures that
	// itself.
	GPUUse *joblogs.GPUWatch `json:"gpu_use,omitempty"`
	Steps  []slurm.Step      `json:"steps,omitempty"`
	// NodesAway holds the nodes out of service that a waiting job waits for.
	NodesAway []AwayNodes `json:"nodes_away,omitempty"`
	// Spec is the specification of a job that was submitted here. Only the shell's
	// answer has it; elsewhere it is a separate question.
	Spec *job.Spec `json:"spec,omitempty"`
	// Page is the address of the job's page, where browsers reach one.
	Page string `json:"page,omitempty"`
	// Tracked is the run's address at its experiment tracker, as its output prints it.
	Tracked string `json:"tracked,omitempty"`
	// Source is the code that the job was submitted with, for its owner and operators.
	// Only the shell's answer holds the diff.
	Source *cluster.GitSource `json:"source,omitempty"`
	asked  bool               // the call asks for steps
}

// Status returns the operation status.
func Status() ops.Op {
	return ops.Define(ops.Op{
		Name: "status", Effect: ops.Read, Toolset: ops.JobsSet, Core: true,
		Summary:  lang.Text{EN: "one job: state in words, nodes, times, why it waits", ZH: "单个作业：状态说明、节点、时间、等待原因"},
		Help:     lang.Text{EN: "Use for one job. For many use list; for why it failed diagnose.", ZH: "查看单个作业的状态。查看多个用 list；查失败原因用 diagnose。"},
		Example:  "status 4711",
		Examples: []string{`status last`, `status 4711 4712 -o json`, `status 4711 -o yaml`},
	}, status)
}

func status(ctx context.Context, c *ops.Call, in StatusIn) (StatusOut, error) {
	cl, j, err := launch.JobOrStep(ctx, c, in.Cluster, in.Job)
	if err != nil {
		return StatusOut{}, err
	}
	j.Requeues = joblogs.Requeues(ctx, cl, j)
	if len(j.Tasks) > 0 {
		j.AddEndedTasks(joblogs.InAccounts(ctx, cl, j.ID))
	}
	by := joblogs.CancelledBy(ctx, cl, j)
	if j.CancelledBy() != "" {
		j.Reason = "" // said by name
	}
	files := joblogs.LookAtFiles(ctx, c, cl, j)
	out := StatusOut{
		Job: j, Page: c.JobPage(cl.Name(), j.ID), Checkpoint: joblogs.Checkpoint(ctx, c, cl, j),
		Pulse: files.Pulse, GPUUse: files.GPUUse, Tracked: files.Tracked, CancelledBy: by, NodesAway: byReason(nodesAway(ctx, cl, j)[j.ID]),
	}
	// Over ssh the person may have another user name on the cluster than here.
	sub, ok, reused := c.SubmissionOf(ctx, cl.Name(), j)
	own := ok && sub.Owner == c.Who.User || c.MayChange(j) == nil
	if s, ok := c.SpecOfJob(ctx, cl.Name(), j); ok && c.Who.Surface == ops.Shell && own {
		out.Spec = &s
	}
	if own && !reused {
		out.Source = launch.SourceOf(ctx, c, cl.Name(), j.ID)
	}
	if out.Source != nil && c.Who.Surface != ops.Shell {
		out.Source.Diff, out.Source.New = "", nil
	}
	if in.Steps {
		s, err := ops.Capable[interface {
			Steps(context.Context, slurm.JobID) ([]slurm.Step, error)
		}](cl, lang.Text{EN: "list the steps of a job", ZH: "列出作业的步骤"})
		if err != nil {
			return out, err
		}
		if out.Steps, err = s.Steps(ctx, in.Job); err != nil {
			return out, c.SlurmError(err, in.Job)
		}
		out.asked = true
	}
	if in.Earlier {
		if out.Earlier, err = launch.TryEarlierStart(ctx, c, cl, j); err != nil {
			return out, err
		}
	}
	out.explain(c.Lang)
	return out, nil
}

// explain sets what the job's state means, or the reason why it waits.
func (o *StatusOut) explain(l lang.Lang) {
	m := o.ExplainState()
	if o.ExitCode != nil && slurm.NotLaunched(*o.ExitCode) {
		o.Reason = cmp.Or(o.Reason, "JobLaunchFailure") // which the accounts do not keep
	}
	failed := o.State == slurm.Failed && o.Why() != "" && o.Reason != "NonZeroExitCode" // the state says no more than that
	if o.State == slurm.Pending || o.Reason == slurm.ReasonVanished || failed {
		m = slurm.ExplainReason(cmp.Or(o.Reason, "None"))
	}
	o.Meaning, o.Do = m.Says.In(l), m.Do.In(l)
}

// wayOut is the operation that a person needs for a job that would wait for ever, by the
// reason why it waits.
var wayOut = map[string]string{"JobHeldUser": "release", "job requeued in held state": "release", "DependencyNeverSatisfied": "cancel"}

// View shows the job as facts, the most asked ones first.
func (o StatusOut) View(l lang.Lang) view.Doc {
	d := view.Doc{
		Title:    fmt.Sprintf("%s  %s  %s", o.ID, o.Name, o.State.Word().In(l)),
		Tone:     Tone(o.State),
		Sections: []view.Section{{Text: told(o.RunBefore().In(l), o.Meaning, o.Preemption().In(l), o.Do), Facts: jobFacts(o.Job, l)}},
	}
	facts := &d.Sections[0].Facts
	facts.Add(l, "cancelled by", "取消者", o.CancelledBy)
	facts.Add(l, "page", "网页", o.Page)
	facts.Add(l, joblogs.TextTracked.EN, joblogs.TextTracked.ZH, o.Tracked)
	if o.Source != nil {
		facts.Add(l, "code", "代码", launch.SourceLine(o.Source).In(l))
	}
	hangs := o.Pulse != nil && o.Pulse.MayHang
	switch {
	case hangs:
		d.Sections = append(d.Sections, view.Section{Text: o.Pulse.Says().In(l)})
	case o.Pulse != nil:
		d.Sections[0].Facts.Add(l, "progress", "进展", o.Pulse.Says().In(l))
	}
	if o.GPUUse != nil {
		d.Sections = append(d.Sections, view.Section{Text: o.GPUUse.Says().In(l)})
	}
	if hangs || o.GPUUse != nil && o.GPUUse.Idle > 0 {
		d.Tone = view.Warn
	}
	if o.Checkpoint != nil {
		d.Sections = append(d.Sections, o.Checkpoint.Section(o.Job, l))
		if o.Checkpoint.TooLate {
			d.Tone = view.Warn
		}
	}
	if len(o.NodesAway) > 0 {
		d.Sections = append(d.Sections, awaySection(o.NodesAway, l))
	}
	if o.asked {
		d.Sections = append(d.Sections, stepSection(o.Steps, l))
	}
	if o.Earlier != nil {
		d.Sections = append(d.Sections, o.Earlier.Section(o.ID, l))
	}
	switch {
	case o.State == slurm.Pending && o.Earlier == nil && (o.Reason == "Priority" || o.Reason == "Resources"):
		d.Next = []string{"status " + string(o.ID) + " --earlier"}
	case o.State == slurm.Pending && wayOut[o.Reason] != "":
		d.Next = []string{wayOut[o.Reason] + " " + string(o.ID)}
	case hangs:
		d.Next = []string{"diagnose " + string(o.ID)}
	case o.FirstFailed != nil:
		d.Next = []string{"diagnose " + string(o.FirstFailed.ID)}
	case o.State == slurm.Running:
		d.Next = []string{"logs " + string(o.ID) + " --tail 20"}
	case o.State == slurm.Cancelled && o.ElapsedS == 0: // the job never ran, so it left no log
	case o.State.Ended() && o.State != slurm.Completed:
		d.Next = []string{"diagnose " + string(o.ID)}
		if o.Checkpoint != nil && o.Checkpoint.Resume != "" {
			d.Next = append(d.Next, o.Checkpoint.Resume)
		}
	}
	return d
}

// told returns the sentences that are not empty, one a line.
func told(sentences ...string) string {
	return strings.Join(slices.DeleteFunc(sentences, func(s string) bool { return s == "" }), "\n")
}

// stepSection shows one line for each step, with the command that started it.
func stepSection(steps []slurm.Step, l lang.Lang) view.Section {
	s := view.Section{Heading: lang.Text{EN: "steps", ZH: "步骤"}.In(l)}
	if len(steps) == 0 {
		s.Text = lang.Text{EN: "no step was started", ZH: "没有启动过步骤"}.In(l)
		return s
	}
	s.Table = &view.Table{Header: view.Columns(l, "step|name|state|exit|elapsed|nodes|peak memory of a task|submit line", "步骤|名称|状态|退出码|用时|节点|单任务内存峰值|启动命令")}
	for _, st := range steps {
		exit := "-"
		if st.ExitCode != nil {
			exit = *st.ExitCode
		}
		s.Table.Rows = append(s.Table.Rows, []string{
			st.ID, st.Name, string(st.State), exit, ops.Duration(st.ElapsedS), hostlist.Compress(st.Nodes), st.MaxRSS, submitLine(st.Submit),
		})
	}
	return s
}

// submitLine returns the first line of the command that started a step: a script in
// quotes may follow.
func submitLine(command string) string {
	first, _, more := strings.Cut(redact.Text(redact.Clean(command)), "\n")
	if more {
		first += " …"
	}
	return first
}

// Tone returns how good or bad a state is.
func Tone(s slurm.State) view.Tone {
	switch {
	case s == slurm.Completed || s == slurm.Running:
		return view.Good
	case s == slurm.Cancelled || s == slurm.Preempted || s == slurm.Timeout || s == slurm.Ended:
		return view.Warn
	case s.Ended():
		return view.Bad
	}
	return view.Plain
}

// A namedTime is a moment in a job's life.
type namedTime struct {
	en, zh string
	at     *time.Time
}

func jobFacts(j slurm.Job, l lang.Lang) (fs view.Facts) {
	add := func(en, zh, value string) {
		if value != "0" {
			fs.Add(l, en, zh, value)
		}
	}
	if j.State == slurm.Pending {
		add("waiting for", "等待原因", j.Reason)
		add("depends on", "依赖", j.Dependency)
	} else {
		add("reason", "原因", j.Why())
	}
	if j.SeenAt != nil {
		add("as of", "截至", asOf(*j.SeenAt).In(l))
	}
	var tasks []string
	for _, state := range slices.Sorted(maps.Keys(j.Tasks)) {
		tasks = append(tasks, fmt.Sprintf("%d %s", j.Tasks[state], state.Word().In(l)))
	}
	add("tasks", "任务", strings.Join(tasks, ", "))
	add("failed first", "最先失败", firstFailed(j, l))
	add("tasks at a time", "任务同时运行上限", strconv.Itoa(j.ArrayLimit))
	add("cluster", "集群", j.Cluster)
	add("user", "用户", j.User)
	add("partition", "分区", j.Partition)
	add("nodes", "节点", hostlist.Compress(j.Nodes))
	if len(j.Nodes) == 0 {
		add("nodes requested", "申请节点数", strconv.Itoa(j.NumNodes))
	}
	// Of an array, what tasks do not have together is that of one task.
	one, gpus := lang.Text{}, lang.Text{}
	if len(j.Tasks) > 0 {
		one = lang.Text{EN: " (one task)", ZH: "（单个任务）"}
		if gpus = one; j.Tasks[slurm.Running] > 0 {
			gpus = lang.Text{EN: " (running tasks)", ZH: "（运行中的任务）"}
		}
	}
	add("GPUs"+gpus.EN, "GPU 数"+gpus.ZH, strconv.Itoa(j.GPUs))
	elapsed := ops.Duration(j.ElapsedS)
	if j.TimeLimitS != nil {
		elapsed += " / " + ops.Duration(*j.TimeLimitS)
	}
	if j.State != slurm.Ended || j.StartedAt != nil { // else it is not known
		add("elapsed / limit"+one.EN, "已运行 / 时限"+one.ZH, elapsed)
	}
	if j.Restarts > 0 {
		add("restarts", "重启次数", strconv.Itoa(j.Restarts))
	}
	if j.EstStart != nil && j.State == slurm.Pending {
		add("estimated start", "预计开始", j.EstStart.Format(time.DateTime))
	}
	submitted := namedTime{"submitted", "提交时间", j.SubmittedAt}
	if j.Restarts > 0 { // Slurm forgets when a job that it has put back was submitted
		submitted.en, submitted.zh = "queued again", "重新排队时间"
	}
	started := j.StartedAt
	if j.State == slurm.Cancelled && j.ElapsedS == 0 { // Slurm also gives a start time to a job that never ran
		started = nil
	}
	for _, t := range []namedTime{
		submitted,
		{"started" + one.EN, "开始时间" + one.ZH, started},
		{"preempted", "抢占时间", j.PreemptedAt},
		{"ended" + one.EN, "结束时间" + one.ZH, j.EndedAt},
	} {
		if t.at != nil {
			add(t.en, t.zh, t.at.Local().Format(time.DateTime))
		}
	}
	if j.ExitCode != nil && j.State.Ended() {
		add("exit code"+one.EN, "退出码"+one.ZH, *j.ExitCode)
	}
	add("output", "标准输出", j.Stdout)
	if j.Stderr != j.Stdout {
		add("errors", "标准错误", j.Stderr)
	}
	return fs
}

// firstFailed names the task of an array that failed first, how it ended, and how many
// failed.
func firstFailed(j slurm.Job, l lang.Lang) string {
	t := j.FirstFailed
	if t == nil {
		return ""
	}
	how := lang.Text{EN: "%s", ZH: "%s"}.With(t.State)
	if t.ExitCode != nil {
		how = lang.Text{EN: "%s, exit code %s", ZH: "%s，退出码 %s"}.With(how, *t.ExitCode)
	}
	if t.EndedAt != nil {
		how = lang.Text{EN: "%s, %s", ZH: "%s，%s"}.With(how, t.EndedAt.Local().Format(time.DateTime))
	}
	return lang.Text{EN: "%s (%s); %d failed", ZH: "%s（%s）；共 %d 个任务失败"}.With(t.ID, how, j.FailedTasks()).In(l)
}

// asOf says when a job of a cluster that does not answer was last seen, and how long
// ago that is.
func asOf(at time.Time) lang.Text {
	return lang.Text{EN: "%s, %s ago (the cluster does not answer)", ZH: "%s（%s 之前；集群无响应）"}.With(
		at.Local().Format(time.DateTime), ops.Duration(int64(max(time.Since(at), 0).Seconds()))) // the clock may have been set back
}
