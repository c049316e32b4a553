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
	"github.com/megatron-ops/megatron-ops/internal/ops/joblogs"
	"github.com/megatron-ops/megatron-ops/internal/view"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// A HistoryGroup sums up the GPU hours of one user, account, week and so on. The hours
// of a run count by how that run ended: all hours of a failed run are failed, although
// its checkpoints may have saved some of its work.
type HistoryGroup struct {
	Of        string  `json:"of"`
	Jobs      int     `json:"jobs"`
	GPUHours  float64 `json:"gpu_hours"`
	Completed float64 `json:"completed_gpu_hours"`
	Failed    float64 `json:"failed_gpu_hours"`
	Cut       float64 `json:"cut_off_gpu_hours"` // ended by the time limit, preemption or a requeue
	Cancelled float64 `json:"cancelled_gpu_hours"`
	// Restarted is how often the group's jobs were started again. WaitedH is the sum of
	// the hours that they waited in the queue for their start.
	Restarted int      `json:"restarts"`
	WaitedH   float64  `json:"waited_hours"`
	Cost      *float64 `json:"cost"` // null where the call gives no price
	// Goodput splits the same hours by their purpose, where the call asks for that.
	Goodput *GoodputHours `json:"goodput,omitempty"`
}

// GoodputHours are GPU hours by purpose. Startup is the time until the first iteration;
// Productive is training whose result was kept; Lost is training after the last
// checkpoint of a run that did not complete; Idle is the time after the last iteration;
// Unknown are the hours of jobs whose logs do not tell.
type GoodputHours struct {
	Productive float64 `json:"productive_gpu_hours"`
	Lost       float64 `json:"lost_gpu_hours"`
	Startup    float64 `json:"startup_gpu_hours"`
	Idle       float64 `json:"idle_gpu_hours"`
	Unknown    float64 `json:"unknown_gpu_hours"`
	// Judged is the number of jobs whose logs gave an answer.
	Judged int `json:"judged_jobs"`
}

func (g *GoodputHours) add(o GoodputHours) {
	g.Productive, g.Lost, g.Startup, g.Idle = g.Productive+o.Productive, g.Lost+o.Lost, g.Startup+o.Startup, g.Idle+o.Idle
	g.Unknown, g.Judged = g.Unknown+o.Unknown, g.Judged+o.Judged
}

// maxLogsRead is the most jobs whose logs are read, the newest first.
const maxLogsRead = 200

// readGoodput reads the logs of the newest jobs, and splits their hours by purpose.
func readGoodput(ctx context.Context, c *ops.Call, cl ops.Cluster, jobs []HistoryJob) {
	for i := range jobs {
		j := &jobs[i]
		j.Goodput = &GoodputHours{Unknown: j.GPUHours}
		if i >= maxLogsRead || j.GPUs == 0 || ctx.Err() != nil {
			continue
		}
		c.Step(i+1, min(len(jobs), maxLogsRead), lang.Text{EN: "logs of %s", ZH: "读取 %s 的日志"}.With(j.ID).In(c.Lang))
		if g, ok := joblogs.Goodput(ctx, c, cl, j.Job); ok {
			// The parts divide what Slurm accounts, which leaves out times of suspension and fractions of seconds.
			last, held := j.Last().GPUHours(), g.Productive+g.Lost+g.Startup+g.Idle
			hours := func(s float64) float64 { return last * s / held }
			*j.Goodput = GoodputHours{hours(g.Productive), hours(g.Lost), hours(g.Startup), hours(g.Idle), max(j.GPUHours-last, 0), 1}
		}
	}
}

// groupings maps the name of each grouping to its name in Chinese and to a job's group in
// it.
var groupings = map[string]struct {
	zh string
	of func(slurm.Job) string
}{
	"user":      {"用户", func(j slurm.Job) string { return j.User }},
	"account":   {"账户", func(j slurm.Job) string { return j.Account }},
	"partition": {"分区", func(j slurm.Job) string { return j.Partition }},
	"qos":       {"QOS", func(j slurm.Job) string { return j.QOS }},
	"name":      {"名称", func(j slurm.Job) string { return j.Name }},
	"state":     {"状态", func(j slurm.Job) string { return string(j.State) }},
	"job":       {"作业", func(j slurm.Job) string { return string(j.ID) }},
	"day":       {"日", func(j slurm.Job) string { return ended(j).Local().Format(time.DateOnly) }},
	"week": {"周", func(j slurm.Job) string {
		year, week := ended(j).Local().ISOWeek()
		return fmt.Sprintf("%d-W%02d", year, week)
	}},
	"month": {"月", func(j slurm.Job) string { return ended(j).Local().Format("2006-01") }},
}

// groupsOf sums up the jobs by the given grouping. Groups of times are in order of
// time; others have the most hours first.
func groupsOf(jobs []HistoryJob, by string, price *float64) []HistoryGroup {
	groups := []HistoryGroup{}
	for _, j := range jobs {
		of := groupings[by].of(j.Job)
		i := slices.IndexFunc(groups, func(g HistoryGroup) bool { return g.Of == of })
		if i < 0 {
			i = len(groups)
			groups = append(groups, HistoryGroup{Of: of})
		}
		groups[i].add(j)
	}
	for i := range groups {
		if price != nil {
			cost := groups[i].GPUHours * *price
			groups[i].Cost = &cost
		}
	}
	slices.SortStableFunc(groups, func(a, b HistoryGroup) int {
		if by == "day" || by == "week" || by == "month" {
			return strings.Compare(a.Of, b.Of)
		}
		return cmp.Or(cmp.Compare(b.GPUHours, a.GPUHours), strings.Compare(a.Of, b.Of))
	})
	return groups
}

// textAll is the name of the sum of all groups.
var textAll = lang.Text{EN: "all", ZH: "合计"}

// plus adds the sums of another group, or of a job.
func (g *HistoryGroup) plus(o HistoryGroup) {
	g.Jobs, g.GPUHours, g.Restarted, g.WaitedH = g.Jobs+o.Jobs, g.GPUHours+o.GPUHours, g.Restarted+o.Restarted, g.WaitedH+o.WaitedH
	g.Completed, g.Failed, g.Cut, g.Cancelled = g.Completed+o.Completed, g.Failed+o.Failed, g.Cut+o.Cut, g.Cancelled+o.Cancelled
	if o.Goodput != nil {
		g.Goodput = cmp.Or(g.Goodput, &GoodputHours{})
		g.Goodput.add(*o.Goodput)
	}
	if o.Cost != nil {
		g.Cost = cmp.Or(g.Cost, new(float64))
		*g.Cost += *o.Cost
	}
}

func (g *HistoryGroup) add(j HistoryJob) {
	g.plus(HistoryGroup{Jobs: 1, GPUHours: j.GPUHours, Restarted: j.Restarts, Goodput: j.Goodput})
	if j.SubmittedAt != nil && j.StartedAt != nil && j.StartedAt.After(*j.SubmittedAt) {
		g.WaitedH += j.StartedAt.Sub(*j.SubmittedAt).Hours()
	}
	for _, r := range j.runs() {
		switch r.State {
		case slurm.Completed:
			g.Completed += r.GPUHours()
		case slurm.Cancelled:
			g.Cancelled += r.GPUHours()
		case slurm.Timeout, slurm.Preempted, slurm.Deadline, slurm.Requeued:
			g.Cut += r.GPUHours()
		default:
			g.Failed += r.GPUHours()
		}
	}
}

// share formats hours and their percentage of all hours; "" for none.
func share(hours, all float64) string {
	if hours == 0 || all == 0 {
		return ""
	}
	return fmt.Sprintf("%.1f (%.0f %%)", hours, 100*hours/all)
}

// goodputTable shows each group's hours by purpose, and explains what they are based
// on.
func goodputTable(groups []HistoryGroup, by string, l lang.Lang) []view.Section {
	t := &view.Table{Header: view.Columns(l, by+"|GPU hours|productive|lost|start-up|idle|unknown|waited h", groupings[by].zh+"|GPU 小时|有效|丢失|启动|空闲|未知|排队小时"), Spare: []int{7, 1}}
	all := HistoryGroup{Of: textAll.In(l)}
	row := func(g HistoryGroup) {
		h := *g.Goodput
		t.Rows = append(t.Rows, []string{
			g.Of, fmt.Sprintf("%.1f", g.GPUHours), share(h.Productive, g.GPUHours), share(h.Lost, g.GPUHours), share(h.Startup, g.GPUHours),
			share(h.Idle, g.GPUHours), share(h.Unknown, g.GPUHours), fmt.Sprintf("%.1f", g.WaitedH),
		})
	}
	for _, g := range groups {
		row(g)
		all.plus(g)
	}
	if len(groups) > 1 {
		row(all)
	}
	return []view.Section{{Table: t}, {Text: lang.Text{
		EN: "from Slurm's accounts and the logs of %d of %s. productive: training that was kept; lost: training after the last checkpoint of a run that did not complete; start-up: until the first iteration; idle: held after the last iteration; unknown: the logs cannot be read from here, or show no iterations",
		ZH: "依据 Slurm 记账和 %[2]s中 %[1]d 个的日志。有效：保留下来的训练；丢失：未完成的运行在最后一个检查点之后的训练；启动：第一次迭代之前；空闲：最后一次迭代之后仍占用；未知：日志无法从这里读取，或没有迭代记录",
	}.With(all.Goodput.Judged, ops.Counted(all.Jobs, "job")).In(l)}}
}

// groupTable shows one line for each group, and one for the sum.
func groupTable(groups []HistoryGroup, by string, l lang.Lang) *view.Table {
	t := &view.Table{Header: view.Columns(l, by+"|jobs|GPU hours|cost|completed|failed|cut off|cancelled|restarts|waited h", groupings[by].zh+"|作业数|GPU 小时|费用|完成|失败|被截断|取消|重启|排队小时"), Spare: []int{8, 9, 7, 1}}
	all := HistoryGroup{Of: textAll.In(l)}
	row := func(g HistoryGroup) []string {
		cost := ""
		if g.Cost != nil {
			cost = fmt.Sprintf("%.2f", *g.Cost)
		}
		return []string{
			g.Of, strconv.Itoa(g.Jobs), fmt.Sprintf("%.1f", g.GPUHours), cost,
			share(g.Completed, g.GPUHours), share(g.Failed, g.GPUHours), share(g.Cut, g.GPUHours), share(g.Cancelled, g.GPUHours),
			nonZero(g.Restarted), fmt.Sprintf("%.1f", g.WaitedH),
		}
	}
	for _, g := range groups {
		t.Rows = append(t.Rows, row(g))
		all.plus(g)
	}
	if len(groups) > 1 {
		t.Rows = append(t.Rows, row(all))
	}
	if all.Cost == nil { // without a price the column is empty
		t.Header = slices.Delete(t.Header, 3, 4)
		for i := range t.Rows {
			t.Rows[i] = slices.Delete(t.Rows[i], 3, 4)
		}
		t.Spare = []int{7, 8, 6, 1}
	}
	return t
}
