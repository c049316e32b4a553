package jobcontrol

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/view"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/report"
)

// HistoryIn selects jobs that have ended.
type HistoryIn struct {
	User      string        `json:"user,omitempty" short:"u" help:"this user's; several by commas; all for everybody's; mine where left out" zh:"该用户的；多个用逗号分隔；all 为所有人；省略为我的"`
	Partition string        `json:"partition,omitempty" short:"p" help:"only this partition's" zh:"只看该分区"`
	State     []slurm.State `json:"state,omitempty" short:"t" help:"only these states" zh:"只看这些状态"`
	Days      int           `json:"days,omitempty" help:"so many days back; 7 where left out" zh:"往前多少天，默认 7"`
	Limit     int           `json:"limit,omitempty" short:"n" help:"list so many, newest first; 20 where left out" zh:"列出的条数（最新在前），默认 20"`
	Account   string        `json:"account,omitempty" short:"A" help:"only this account's" zh:"只看该账户"`
	By        string        `json:"by,omitempty" enum:",user,account,partition,qos,name,state,job,day,week,month" default:"" help:"GPU hours by this: what completed, failed, was cut off or cancelled, and the wait" zh:"按此分组统计 GPU 小时：完成、失败、被截断、取消，以及排队时间"`
	Price     *float64      `json:"price,omitempty" help:"of a GPU hour: the cost is told too" zh:"每 GPU 小时价格：同时给出费用"`
	Goodput   bool          `json:"goodput,omitempty" help:"hours by cause: productive, lost since the last checkpoint, start-up, idle; from the logs, by job where no grouping is named, by name for a chain" zh:"按原因统计：有效、丢失（最后检查点之后）、启动、空闲；依据日志；未指定分组时按作业，接力作业可按 name"`
	Incidents bool          `json:"incidents,omitempty" help:"diagnose those that failed, and say what hit several at once" zh:"诊断其中失败的作业，指出同时影响多个作业的原因"`
	ops.OnCluster
}

// HistoryOut holds the jobs that ended. The sums count every job; the list holds only
// the newest.
type HistoryOut struct {
	Since    time.Time      `json:"since"`
	Total    int            `json:"total"`
	GPUHours float64        `json:"gpu_hours"`
	States   []HistoryState `json:"states"`
	Users    []HistoryUser  `json:"users"`
	Jobs     []HistoryJob   `json:"jobs"`
	// Groups holds the hours by the requested grouping. Cost is the cost of all hours.
	Groups []HistoryGroup `json:"groups,omitempty"`
	Cost   *float64       `json:"cost,omitempty"`
	by     string
	// Incidents are causes that hit several jobs within an hour, where the call asks
	// for them.
	Incidents []report.Incident `json:"incidents,omitempty"`
}

// A HistoryState counts the jobs that ended in a state, and the GPU hours of all runs
// that did, including earlier runs of requeued jobs.
type HistoryState struct {
	State    slurm.State `json:"state"`
	Jobs     int         `json:"jobs"`
	GPUHours float64     `json:"gpu_hours"`
}

// A HistoryUser counts a user's jobs and their GPU hours.
type HistoryUser struct {
	User     string  `json:"user"`
	Jobs     int     `json:"jobs"`
	GPUHours float64 `json:"gpu_hours"`
}

// A HistoryJob is a job that ended and its cost: the sum over its runs of GPUs times
// duration, as the accounts have them.
type HistoryJob struct {
	slurm.Job
	GPUHours float64 `json:"gpu_hours"`
	// Goodput splits the same hours by their purpose, where the call asks for that.
	Goodput *GoodputHours `json:"goodput,omitempty"`
}

// History returns the operation history.
func History() ops.Op {
	return ops.Define(ops.Op{
		Name: "history", Effect: ops.Read, Toolset: ops.JobsSet,
		Summary:  lang.Text{EN: "jobs that ended, with GPU hours, by state and user", ZH: "已结束的作业与 GPU 小时，按状态和用户汇总"},
		Help:     lang.Text{EN: "Use for what was run and what it cost. What runs now: list.", ZH: "查看运行过什么、用了多少。当前作业用 list。"},
		Example:  "history --days 30 --partition prod",
		Examples: []string{`history --by week --days 60`, `history -u all --by account --price 2.10`, `history --by account --goodput`},
	}, history)
}

func history(ctx context.Context, c *ops.Call, in HistoryIn) (HistoryOut, error) {
	out := HistoryOut{States: []HistoryState{}, Users: []HistoryUser{}, Jobs: []HistoryJob{}}
	switch {
	case in.Days < 0 || in.Days > 3650:
		return out, ops.InputError("days",
			lang.Text{EN: "%d is not between 0 and 3650", ZH: "%d 不在 0 到 3650 之间"}.With(in.Days),
			lang.Text{EN: "a number of days, such as 7", ZH: "天数，例如 7"})
	case in.Limit < 0:
		return out, ops.NegativeError("limit", in.Limit, lang.Text{EN: "a number such as 20", ZH: "数字，例如 20"})
	case in.Price != nil && *in.Price < 0:
		return out, ops.InputError("price", lang.Text{EN: "%g is negative", ZH: "%g 是负数"}.With(*in.Price), lang.Text{EN: "the price of a GPU hour, such as 2.10", ZH: "每 GPU 小时的价格，例如 2.10"})
	}
	in.Days, in.Limit = cmp.Or(in.Days, 7), cmp.Or(in.Limit, 20)
	cl, err := c.Cluster(in.Cluster)
	if err != nil {
		return out, err
	}
	out.Since = c.Now().AddDate(0, 0, -in.Days)
	users := usersOf(c, in.User, in.User == "")
	f := slurm.Filter{Partition: in.Partition, Since: out.Since}
	if len(users) == 1 {
		f.User = users[0]
	}
	jobs, err := cl.Past(ctx, f)
	if err != nil {
		return out, c.SlurmError(err, "")
	}
	var states []slurm.State
	for _, s := range in.State {
		states = append(states, slurm.ParseState(string(s)))
	}
	for _, j := range jobs {
		if j = lastEnded(j); !runEnded(j.State) || len(users) > 0 && !slices.Contains(users, j.User) ||
			in.Partition != "" && !j.MayRunIn(in.Partition) || in.Account != "" && j.Account != in.Account ||
			len(states) > 0 && !slices.Contains(states, j.State) {
			continue
		}
		j.Cluster = cl.Name()
		h := HistoryJob{Job: j}
		for _, r := range h.runs() {
			h.GPUHours += r.GPUHours()
		}
		out.add(h)
	}
	slices.SortStableFunc(out.Jobs, func(a, b HistoryJob) int { return ended(b.Job).Compare(ended(a.Job)) })
	if in.Incidents {
		out.Incidents = incidentsOf(ctx, c, cl, out.Jobs)
	}
	if in.Goodput {
		in.By = cmp.Or(in.By, "job")
		readGoodput(ctx, c, cl, out.Jobs)
	}
	if out.by = in.By; in.By != "" {
		out.Groups = groupsOf(out.Jobs, in.By, in.Price)
	}
	if in.Price != nil {
		cost := out.GPUHours * *in.Price
		out.Cost = &cost
	}
	out.Jobs = out.Jobs[:min(in.Limit, len(out.Jobs))]
	slices.SortStableFunc(out.States, func(a, b HistoryState) int { return b.Jobs - a.Jobs })
	slices.SortStableFunc(out.Users, func(a, b HistoryUser) int {
		return cmp.Or(cmp.Compare(b.GPUHours, a.GPUHours), strings.Compare(a.User, b.User))
	})
	return out, nil
}

func (o *HistoryOut) add(j HistoryJob) {
	o.Jobs = append(o.Jobs, j)
	o.Total++
	o.GPUHours += j.GPUHours
	for _, r := range j.runs() {
		o.state(r.State).GPUHours += r.GPUHours()
	}
	o.state(j.State).Jobs++
	i := slices.IndexFunc(o.Users, func(u HistoryUser) bool { return u.User == j.User })
	if i < 0 {
		i = len(o.Users)
		o.Users = append(o.Users, HistoryUser{User: j.User})
	}
	o.Users[i].Jobs++
	o.Users[i].GPUHours += j.GPUHours
}

// state returns the sum of the runs that ended in the state of.
func (o *HistoryOut) state(of slurm.State) *HistoryState {
	i := slices.IndexFunc(o.States, func(s HistoryState) bool { return s.State == of })
	if i < 0 {
		i = len(o.States)
		o.States = append(o.States, HistoryState{State: of})
	}
	return &o.States[i]
}

// runEnded reports whether a run with this state in the accounts has ended.
func runEnded(s slurm.State) bool { return s.Ended() || s == slurm.Requeued }

// lastEnded returns j as its last ended run shows it. A job that was requeued and now
// waits or runs again still used what its earlier runs used.
func lastEnded(j slurm.Job) slurm.Job {
	if n := len(j.Earlier); n > 0 && !runEnded(j.State) {
		last := j.Earlier[n-1]
		j.State, j.StartedAt, j.EndedAt, j.ElapsedS, j.GPUs, j.Earlier = last.State, last.StartedAt, last.EndedAt, last.ElapsedS, last.GPUs, j.Earlier[:n-1]
	}
	return j
}

// runs returns the runs of the job, oldest first.
func (j *HistoryJob) runs() []slurm.Run { return append(slices.Clone(j.Earlier), j.Last()) }

func ended(j slurm.Job) time.Time {
	if j.EndedAt == nil {
		return time.Time{}
	}
	return *j.EndedAt
}

// View shows the sums and then the newest jobs.
func (o HistoryOut) View(l lang.Lang) view.Doc {
	since := o.Since.Format(time.DateOnly)
	if o.Total == 0 {
		return view.Doc{Title: fmt.Sprintf(lang.Text{EN: "no job ended since %s", ZH: "自 %s 以来没有结束的作业"}.In(l), since)}
	}
	d := view.Doc{Title: lang.Text{
		EN: "%[1]s ended since %[2]s, %.1[3]f GPU hours", ZH: "自 %[2]s 以来结束 %[1]s，%.1[3]f GPU 小时",
	}.With(ops.Counted(o.Total, "job"), since, o.GPUHours).In(l)}
	if o.Cost != nil {
		d.Title += fmt.Sprintf(lang.Text{EN: ", cost %.2f", ZH: "，费用 %.2f"}.In(l), *o.Cost)
	}
	if o.by != "" && len(o.Groups) > 0 && o.Groups[0].Goodput != nil {
		d.Sections = goodputTable(o.Groups, o.by, l)
		return d
	}
	if o.by != "" {
		d.Sections = []view.Section{{Table: groupTable(o.Groups, o.by, l)}, {Text: lang.Text{
			EN: "hours count by how their run ended, and each run of a requeued job counts by itself; the hours of a failed or cut-off run include work that its checkpoints saved",
			ZH: "按每次运行的结束方式统计，重新排队的作业逐次计算：失败或被截断的运行，其检查点已保存的部分未扣除",
		}.In(l)}}
		return d
	}
	sums := view.Section{}
	for _, s := range o.States {
		said := lang.Text{EN: "%s, %.1f GPU hours", ZH: "%s，%.1f GPU 小时"}.With(ops.Counted(s.Jobs, "job"), s.GPUHours)
		if s.Jobs == 0 {
			said = lang.Text{EN: "%.1f GPU hours of runs before a requeue", ZH: "重新排队之前的运行，%.1f GPU 小时"}.With(s.GPUHours)
		}
		sums.Facts = append(sums.Facts, view.Fact{Name: string(s.State), Value: said.In(l)})
	}
	d.Sections = append(d.Sections, sums)
	if o.Incidents != nil {
		s := view.Section{Heading: lang.Text{EN: "incidents", ZH: "事件"}.In(l)}
		for _, i := range o.Incidents {
			s.Items = append(s.Items, i.Says().In(l))
		}
		if len(s.Items) == 0 {
			s.Text = lang.Text{EN: "no cause hit several jobs at once", ZH: "没有同时影响多个作业的原因"}.In(l)
		}
		d.Sections = append(d.Sections, s)
	}
	if len(o.Users) > 1 {
		t := &view.Table{Header: view.Columns(l, "user|jobs|GPU hours", "用户|作业数|GPU 小时")}
		for _, u := range o.Users {
			t.Rows = append(t.Rows, []string{u.User, strconv.Itoa(u.Jobs), fmt.Sprintf("%.1f", u.GPUHours)})
		}
		d.Sections = append(d.Sections, view.Section{Table: t})
	}
	t := &view.Table{Header: view.Columns(l, "job|name|user|partition|state|exit|nodes|GPUs|elapsed|GPU hours|ended", "作业|名称|用户|分区|状态|退出码|节点数|GPU|用时|GPU 小时|结束时间"), Spare: []int{5, 7, 3, 2, 10}}
	failed := ""
	for _, j := range o.Jobs {
		exit, end := "-", "-"
		if j.ExitCode != nil {
			exit = *j.ExitCode
		}
		if j.EndedAt != nil {
			end = j.EndedAt.Format(time.DateTime)
		}
		if failed == "" && Tone(j.State) == view.Bad {
			failed = string(j.ID)
		}
		t.Rows = append(t.Rows, []string{
			string(j.ID), j.Name, j.User, j.Partition, string(j.State), exit, strconv.Itoa(max(j.NumNodes, len(j.Nodes))), strconv.Itoa(j.GPUs),
			ops.Duration(j.ElapsedS), fmt.Sprintf("%.1f", j.GPUHours), end,
		})
	}
	d.Sections = append(d.Sections, view.Section{Table: t})
	if failed != "" {
		d.Next = []string{"diagnose " + failed}
	}
	return d
}
