package jobcontrol

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/near"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/view"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/hostlist"
)

// A column is one property of a job that a list can show.
type column struct {
	name  string
	title lang.Text
	// spare is the order in which a narrow terminal drops the columns, lowest first; 0:
	// never.
	spare int
	of    func(slurm.Job) string
}

// columns holds all columns that a list can show, under the names that -O takes.
var columns = []column{
	{"job", lang.Text{EN: "job", ZH: "作业"}, 0, func(j slurm.Job) string { return string(j.ID) }},
	{"name", lang.Text{EN: "name", ZH: "名称"}, 0, func(j slurm.Job) string { return j.Name }},
	{"user", lang.Text{EN: "user", ZH: "用户"}, 1, func(j slurm.Job) string { return j.User }},
	{"account", lang.Text{EN: "account", ZH: "账户"}, 2, func(j slurm.Job) string { return j.Account }},
	{"partition", lang.Text{EN: "partition", ZH: "分区"}, 3, func(j slurm.Job) string { return j.Partition }},
	{"qos", lang.Text{EN: "QOS", ZH: "QOS"}, 2, func(j slurm.Job) string { return j.QOS }},
	{"state", lang.Text{EN: "state", ZH: "状态"}, 0, func(j slurm.Job) string { return string(j.State) }},
	{"reason", lang.Text{EN: "reason", ZH: "原因"}, 5, slurm.Job.Why},
	{"nodes", lang.Text{EN: "nodes", ZH: "节点数"}, 4, func(j slurm.Job) string { return nonZero(max(j.NumNodes, len(j.Nodes))) }},
	{"nodelist", lang.Text{EN: "node list", ZH: "节点列表"}, 5, func(j slurm.Job) string { return hostlist.Compress(j.Nodes) }},
	{"gpus", lang.Text{EN: "GPUs", ZH: "GPU"}, 4, func(j slurm.Job) string { return nonZero(j.GPUs) }},
	{"elapsed", lang.Text{EN: "elapsed", ZH: "已运行"}, 0, func(j slurm.Job) string { return ops.Duration(j.ElapsedS) }},
	{"limit", lang.Text{EN: "limit", ZH: "时限"}, 5, func(j slurm.Job) string {
		if j.TimeLimitS == nil {
			return ""
		}
		return ops.Duration(*j.TimeLimitS)
	}},
	{"left", lang.Text{EN: "left", ZH: "剩余"}, 5, func(j slurm.Job) string {
		if j.TimeLimitS == nil || j.State.Ended() {
			return ""
		}
		return ops.Duration(max(0, *j.TimeLimitS-j.ElapsedS))
	}},
	{"submitted", lang.Text{EN: "submitted", ZH: "提交时间"}, 5, func(j slurm.Job) string { return localTime(j.SubmittedAt) }},
	{"started", lang.Text{EN: "started", ZH: "开始时间"}, 5, func(j slurm.Job) string { return localTime(j.StartedAt) }},
	{"ended", lang.Text{EN: "ended", ZH: "结束时间"}, 5, func(j slurm.Job) string { return localTime(j.EndedAt) }},
	{"estimated", lang.Text{EN: "estimated start", ZH: "预计开始"}, 5, func(j slurm.Job) string { return localTime(j.EstStart) }},
	{"exit", lang.Text{EN: "exit", ZH: "退出码"}, 5, func(j slurm.Job) string {
		if j.ExitCode == nil || !j.State.Ended() {
			return ""
		}
		return *j.ExitCode
	}},
	{"priority", lang.Text{EN: "priority", ZH: "优先级"}, 5, func(j slurm.Job) string {
		if j.Priority == nil {
			return ""
		}
		return strconv.FormatInt(*j.Priority, 10)
	}},
	{"restarts", lang.Text{EN: "restarts", ZH: "重启次数"}, 5, func(j slurm.Job) string { return nonZero(j.Restarts) }},
	{"workdir", lang.Text{EN: "work directory", ZH: "工作目录"}, 5, func(j slurm.Job) string { return j.WorkDir }},
	{"output", lang.Text{EN: "output", ZH: "标准输出"}, 5, func(j slurm.Job) string { return j.Stdout }},
	{"where", lang.Text{EN: "where / why", ZH: "所在节点 / 原因"}, 0, func(j slurm.Job) string {
		switch {
		case len(j.Nodes) > 0:
			return hostlist.Compress(j.Nodes)
		case j.State.Ended(): // the reason for an earlier wait means nothing now
			return ""
		}
		return j.Reason
	}},
}

func nonZero(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

func localTime(t *time.Time) string {
	if t == nil {
		return ""
	}
	return t.Local().Format(time.DateTime)
}

// usualColumns are the columns of a list without -O.
var usualColumns = []string{"job", "name", "user", "partition", "state", "nodes", "elapsed", "where"}

// ColumnNames returns the names that -O takes.
func ColumnNames() (names []string) {
	for _, c := range columns {
		names = append(names, c.name)
	}
	return names
}

// checkColumns returns an error for the first name that is no column.
func checkColumns(names []string) error {
	all := ColumnNames()
	for _, n := range names {
		if slices.Contains(all, n) {
			continue
		}
		fix := lang.Text{EN: "the columns are %s", ZH: "可用的列：%s"}.With(strings.Join(all, ", "))
		if meant := near.Word(n, all, 3); meant != "" {
			fix = lang.Text{EN: "did you mean %s? %s", ZH: "是否想写 %s？%s"}.With(meant, fix)
		}
		return ops.InputError("columns", lang.Text{EN: "%q is no column", ZH: "没有列 %q"}.With(n), fix)
	}
	return nil
}

// jobTable shows the jobs in the named columns. A narrow terminal may drop some
// columns, unless the caller asked for these columns by name.
func jobTable(jobs []slurm.Job, names []string, asked bool, l lang.Lang) *view.Table {
	t := &view.Table{Rows: make([][]string, len(jobs))}
	type spareColumn struct{ spare, at int }
	var spare []spareColumn
	for at, name := range names {
		c := columns[slices.IndexFunc(columns, func(c column) bool { return c.name == name })]
		t.Header = append(t.Header, c.title.In(l))
		for i, j := range jobs {
			t.Rows[i] = append(t.Rows[i], c.of(j))
		}
		if c.spare > 0 && !asked {
			spare = append(spare, spareColumn{c.spare, at})
		}
	}
	slices.SortStableFunc(spare, func(a, b spareColumn) int { return a.spare - b.spare })
	for _, g := range spare {
		t.Spare = append(t.Spare, g.at)
	}
	return t
}
