package ops

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/view"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// StatusIn asks for one job.
type StatusIn struct {
	Job     slurm.JobID `json:"job" arg:"" help:"job id as squeue prints it: 4711, 4711_3, or a step such as 4711.0" zh:"squeue 显示的作业号：4711、4711_3，或步骤如 4711.0"`
	Earlier bool        `json:"earlier,omitempty" help:"for a waiting job: try whether less time or fewer nodes would start sooner" zh:"排队作业：试算更短时限或更少节点能否更早开始"`
	OnCluster
}

// StatusOut is one job, and what its state means.
type StatusOut struct {
	slurm.Job
	// Meaning says the state and reason in words, and Do what one can do about it.
	Meaning string `json:"meaning,omitempty"`
	Do      string `json:"do,omitempty"`
	// Earlier is told when asked for, Checkpoint of a running job that saves some.
	Earlier    *EarlierOut    `json:"earlier,omitempty"`
	Checkpoint *CheckpointOut `json:"checkpoint,omitempty"`
}

func status(ctx context.Context, c *Call, in StatusIn) (StatusOut, error) {
	cl, j, err := c.jobOrStep(ctx, in.Cluster, in.Job)
	if err != nil {
		return StatusOut{}, err
	}
	out := StatusOut{Job: j, Checkpoint: c.checkpoint(ctx, cl, j)}
	if in.Earlier {
		if out.Earlier, err = c.earlier(ctx, cl, j); err != nil {
			return out, err
		}
	}
	m := j.State.Explain().Meaning
	if j.State == slurm.Pending && j.Reason != "" && j.Reason != "None" {
		m = slurm.ExplainReason(j.Reason)
	}
	out.Meaning, out.Do = m.Says.In(c.Lang), m.Do.In(c.Lang)
	return out, nil
}

// View shows the job as facts, most asked first.
func (o StatusOut) View(l lang.Lang) view.Doc {
	d := view.Doc{
		Title:    fmt.Sprintf("%s  %s  %s", o.ID, o.Name, o.State),
		Tone:     tone(o.State),
		Sections: []view.Section{{Text: strings.TrimSpace(o.Meaning + "\n" + o.Do), Facts: jobFacts(o.Job, l)}},
	}
	if o.Checkpoint != nil {
		d.Sections = append(d.Sections, o.Checkpoint.section(o.Job, l))
		if o.Checkpoint.TooLate {
			d.Tone = view.Warn
		}
	}
	if o.Earlier != nil {
		d.Sections = append(d.Sections, o.Earlier.section(o.ID, l))
	}
	switch {
	case o.State == slurm.Pending && o.Earlier == nil && (o.Reason == "Priority" || o.Reason == "Resources"):
		d.Next = []string{"status " + string(o.ID) + " --earlier"}
	case o.State == slurm.Running:
		d.Next = []string{"logs " + string(o.ID) + " --tail 20"}
	case o.State.Ended() && o.State != slurm.Completed:
		d.Next = []string{"diagnose " + string(o.ID)}
	}
	return d
}

func tone(s slurm.State) view.Tone {
	switch {
	case s == slurm.Completed || s == slurm.Running:
		return view.Good
	case s == slurm.Cancelled || s == slurm.Preempted || s == slurm.Timeout:
		return view.Warn
	case s.Ended():
		return view.Bad
	}
	return view.Plain
}

func jobFacts(j slurm.Job, l lang.Lang) []view.Fact {
	var fs []view.Fact
	add := func(en, zh, value string) {
		if value != "" && value != "0" {
			fs = append(fs, view.Fact{Name: lang.Text{EN: en, ZH: zh}.In(l), Value: value})
		}
	}
	if j.State == slurm.Pending {
		add("waiting for", "等待原因", j.Reason)
	} else if j.Reason != "None" {
		add("reason", "原因", j.Reason)
	}
	if j.SeenAt != nil {
		add("as of", "截至", j.SeenAt.Format(time.DateTime)+lang.Text{EN: " (the cluster does not answer)", ZH: "（集群无响应）"}.In(l))
	}
	add("cluster", "集群", j.Cluster)
	add("user", "用户", j.User)
	add("partition", "分区", j.Partition)
	add("nodes", "节点", strings.Join(j.Nodes, ","))
	if len(j.Nodes) == 0 {
		add("nodes asked", "申请节点数", strconv.Itoa(j.NumNodes))
	}
	add("GPUs", "GPU 数", strconv.Itoa(j.GPUs))
	elapsed := Duration(j.ElapsedS)
	if j.TimeLimitS != nil {
		elapsed += " / " + Duration(*j.TimeLimitS)
	}
	add("elapsed / limit", "已运行 / 时限", elapsed)
	if j.EstStart != nil && j.State == slurm.Pending {
		add("estimated start", "预计开始", j.EstStart.Format(time.DateTime))
	}
	if j.ExitCode != nil && j.State.Ended() {
		add("exit code", "退出码", *j.ExitCode)
	}
	add("output", "标准输出", j.Stdout)
	if j.Stderr != j.Stdout {
		add("errors", "标准错误", j.Stderr)
	}
	return fs
}

// Duration is seconds as Slurm prints them: 1-02:03:04, 02:03:04, 03:04.
func Duration(s int64) string {
	d, h, m, s := s/86400, s/3600%24, s/60%60, s%60
	switch {
	case d > 0:
		return fmt.Sprintf("%d-%02d:%02d:%02d", d, h, m, s)
	case h > 0:
		return fmt.Sprintf("%02d:%02d:%02d", h, m, s)
	}
	return fmt.Sprintf("%02d:%02d", m, s)
}

// ListIn chooses jobs.
type ListIn struct {
	All       bool          `json:"all,omitempty" help:"ended jobs of the last seven days too" zh:"也列出最近七天已结束的作业"`
	User      string        `json:"user,omitempty" help:"only this user's; several by commas; all for everybody's" zh:"只列出该用户的作业；多个用户用逗号分隔；all 表示所有人"`
	State     []slurm.State `json:"state,omitempty" help:"only these states, such as RUNNING" zh:"只列出这些状态，例如 RUNNING"`
	Partition string        `json:"partition,omitempty" help:"only this partition's" zh:"只列出该分区的作业"`
	OnCluster
}

// ListOut is the jobs that were found, newest first.
type ListOut struct {
	Jobs []slurm.Job `json:"jobs"`
}

func list(ctx context.Context, c *Call, in ListIn) (ListOut, error) {
	cl, err := c.cluster(in.Cluster)
	if err != nil {
		return ListOut{}, err
	}
	f := slurm.Filter{Partition: in.Partition, All: in.All}
	for _, s := range in.State {
		state := slurm.State(strings.ToUpper(string(s)))
		known := slices.IndexFunc(slurm.States(), func(m slurm.StateMeaning) bool { return m.Word == string(state) || m.Short == string(state) })
		if known < 0 {
			return ListOut{}, badInput("state", "for example PENDING, RUNNING or FAILED", "%q is no state of Slurm's", s)
		}
		f.States = append(f.States, slurm.State(slurm.States()[known].Word))
	}
	users := []string{in.User}
	switch {
	case in.User == "all":
		users = []string{""}
	case in.User == "":
		users = []string{c.Who.User}
	case strings.Contains(in.User, ","):
		users = strings.Split(in.User, ",")
	}
	if len(users) == 1 {
		f.User = users[0]
	}
	if in.All || slices.ContainsFunc(f.States, slurm.State.Ended) {
		f.Since = c.Now().AddDate(0, 0, -7)
	}
	jobs, err := c.lookAll(ctx, cl, f)
	if err != nil {
		return ListOut{}, c.slurmError(err, "")
	}
	if len(users) > 1 {
		jobs = slices.DeleteFunc(jobs, func(j slurm.Job) bool { return !slices.Contains(users, j.User) })
	}
	for i := range jobs {
		jobs[i].Cluster = cl.Name()
	}
	slices.SortStableFunc(jobs, func(a, b slurm.Job) int { return submitted(b).Compare(submitted(a)) })
	return ListOut{Jobs: append([]slurm.Job{}, jobs...)}, nil
}

func submitted(j slurm.Job) time.Time {
	if j.SubmittedAt == nil {
		return time.Time{}
	}
	return *j.SubmittedAt
}

// View is one line a job.
func (o ListOut) View(l lang.Lang) view.Doc {
	if len(o.Jobs) == 0 {
		return view.Doc{Title: lang.Text{EN: "no jobs", ZH: "没有作业"}.In(l)}
	}
	header := []string{"job", "name", "user", "partition", "state", "nodes", "elapsed", "where / why"}
	if l == lang.ZH {
		header = []string{"作业", "名称", "用户", "分区", "状态", "节点数", "已运行", "所在节点 / 原因"}
	}
	t := &view.Table{Header: header}
	for _, j := range o.Jobs {
		where := j.Reason
		if len(j.Nodes) > 0 {
			where = strings.Join(j.Nodes, ",")
		}
		nodes := j.NumNodes
		if nodes == 0 {
			nodes = len(j.Nodes)
		}
		t.Rows = append(t.Rows, []string{
			string(j.ID), j.Name, j.User, j.Partition, string(j.State), strconv.Itoa(nodes), Duration(j.ElapsedS), where,
		})
	}
	return view.Doc{Sections: []view.Section{{Table: t}}}
}
