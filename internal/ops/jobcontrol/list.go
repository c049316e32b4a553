package jobcontrol

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/joblogs"
	"github.com/megatron-ops/megatron-ops/internal/shellword"
	"github.com/megatron-ops/megatron-ops/internal/view"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/hostlist"
)

// ListIn selects jobs.
type ListIn struct {
	All       bool          `json:"all,omitempty" short:"a" help:"ended jobs of the last seven days too" zh:"也列出最近七天已结束的作业"`
	User      string        `json:"user,omitempty" short:"u" help:"only this user's; several by commas; all for everybody's" zh:"只列出该用户的作业；多个用户用逗号分隔；all 表示所有人"`
	Account   string        `json:"-" name:"account" short:"A" help:"only this account's; several by commas" zh:"只列出该账户的作业；多个用逗号分隔"`
	State     []slurm.State `json:"state,omitempty" short:"t" help:"only these states, such as RUNNING" zh:"只列出这些状态，例如 RUNNING"`
	Partition string        `json:"partition,omitempty" short:"p" help:"only this partition's" zh:"只列出该分区的作业"`
	Nodes     string        `json:"-" name:"nodes" short:"w" placeholder:"NODES" help:"only jobs on one of these nodes, a hostlist" zh:"只列出在这些节点（hostlist）上的作业"`
	Name      string        `json:"-" name:"name" help:"only jobs of this name" zh:"只列出该名称的作业"`
	Limit     int           `json:"-" name:"limit" short:"n" help:"at most so many, newest first" zh:"最多列出的条数，最新的在前"`
	Idle      int           `json:"idle,omitempty" placeholder:"MINUTES" help:"only allocations on which no step has run for so many minutes" zh:"只列出已有这么多分钟没有运行任何步骤的作业"`
	Jobs      []slurm.JobID `json:"-" arg:"" optional:"" name:"job" help:"only these jobs, ended ones too" zh:"只列出这些作业，包括已结束的"`
	Watch     bool          `json:"-" help:"iteration, loss and time left of each, refreshed until q is pressed or all have ended" zh:"显示各作业的迭代、损失与剩余时间并持续刷新，按 q 或全部结束时退出"`
	Columns   []string      `json:"-" short:"O" placeholder:"COLUMN,…" help:"these columns, such as job,account,qos,left; a wrong name lists them all" zh:"显示这些列，例如 job,account,qos,left；写错时会列出全部列名"`
	ops.OnCluster
}

// filter keeps the jobs that match those conditions of in that a cluster cannot filter
// by.
func (in ListIn) filter(jobs []slurm.Job) ([]slurm.Job, error) {
	nodes, err := hostlist.Expand(in.Nodes)
	if err != nil && in.Nodes != "" {
		return nil, ops.InputError("nodes", lang.Said(err), lang.Text{EN: "a hostlist such as gpu[01-04]", ZH: "hostlist，例如 gpu[01-04]"})
	}
	accounts := strings.Split(in.Account, ",")
	return slices.DeleteFunc(jobs, func(j slurm.Job) bool {
		return len(in.Jobs) > 0 && !slices.ContainsFunc(in.Jobs, func(id slurm.JobID) bool { return names(id, j) }) ||
			in.Account != "" && !slices.Contains(accounts, j.Account) ||
			in.Name != "" && j.Name != in.Name ||
			in.Nodes != "" && !slices.ContainsFunc(j.Nodes, func(n string) bool { return slices.Contains(nodes, n) })
	}), nil
}

// ListOut holds the jobs that were found, newest first.
type ListOut struct {
	Jobs []slurm.Job `json:"jobs"`
	// Missing are the ids that the call names and Slurm does not know, where it knows
	// others of them.
	Missing []slurm.JobID `json:"missing,omitempty"`
	// Silent is what the accounts said where they gave no answer: ended jobs are missing.
	Silent string `json:"accounts_error,omitempty"`
	// Idle says what each job without a running step has held, where the call asks for
	// it.
	Idle []slurm.IdleAllocation `json:"idle,omitempty"`
	// Progress is how far the running jobs are, where the call asks to watch them.
	Progress map[slurm.JobID]Progress `json:"progress,omitempty"`
	columns  []string
	all      bool   // the call asks for ended jobs too
	user     string // whose jobs the call asks for, as it named them
	watched  bool
	unchosen bool // no cluster is named or configured, and there is no Slurm here
}

// List returns the operation list.
func List() ops.Op {
	return ops.Define(ops.Op{
		Name: "list", Effect: ops.Read, Toolset: ops.JobsSet, Core: true,
		Summary:  lang.Text{EN: "my jobs that wait or run; with all, those that ended too", ZH: "我排队和运行中的作业；加 all 也列出已结束的"},
		Help:     lang.Text{EN: "Use to find a job's id. user all lists everybody's.", ZH: "用于查找作业号。user 为 all 时列出所有人的作业。"},
		Example:  "list --all",
		Examples: []string{`list -a -n 10 -O job,name,state,account,left`, `list -t RUNNING -w gpu[01-04]`, `list --watch`},
	}, list)
}

func list(ctx context.Context, c *ops.Call, in ListIn) (ListOut, error) {
	cl, err := c.Cluster(in.Cluster)
	if err != nil {
		return ListOut{}, err
	}
	if err := checkColumns(in.Columns); err != nil {
		return ListOut{}, err
	}
	if in.Limit < 0 {
		return ListOut{}, ops.NegativeError("limit", in.Limit, lang.Text{EN: "a number such as 20", ZH: "数字，例如 20"})
	}
	for _, id := range in.Jobs {
		if !slurm.IsJobID(string(id.Array())) {
			return ListOut{}, ops.NoJobIDError(id, lang.Text{
				EN: "a number such as 4711; --all lists also the jobs that ended, --name finds them by name",
				ZH: "数字，例如 4711；--all 还列出已结束的作业，--name 按名称查找",
			})
		}
	}
	f := slurm.Filter{Partition: in.Partition, All: in.All || len(in.Jobs) > 0}
	for _, s := range in.State {
		state, known := slurm.KnownState(string(s))
		if !known {
			return ListOut{}, ops.InputError("state",
				lang.Text{EN: "%q is no state of Slurm's", ZH: "%q 不是 Slurm 的作业状态"}.With(s),
				lang.Text{EN: "for example PENDING, RUNNING or FAILED", ZH: "例如 PENDING、RUNNING 或 FAILED"})
		}
		f.States = append(f.States, state)
	}
	users := []string{in.User}
	switch {
	case in.User == "all", in.User == "" && len(in.Jobs) > 0:
		users = []string{""}
	case in.User == "":
		users = []string{c.Who.User}
	case strings.Contains(in.User, ","):
		users = strings.Split(in.User, ",")
	}
	if len(users) == 1 {
		f.User = users[0]
	}
	if f.All || slices.ContainsFunc(f.States, slurm.State.Ended) {
		f.Since = c.Now().AddDate(0, 0, -7)
	}
	jobs, silent, err := queueAtLeast(ctx, c, cl, f)
	if err != nil {
		return ListOut{}, err
	}
	jobs, missing, err := withNamed(ctx, c, cl, in, jobs, f.Matcher())
	if err != nil {
		return ListOut{}, err
	}
	if len(users) > 1 {
		jobs = slices.DeleteFunc(jobs, func(j slurm.Job) bool { return !slices.Contains(users, j.User) })
	}
	if jobs, err = in.filter(jobs); err != nil {
		return ListOut{}, err
	}
	for i := range jobs {
		jobs[i].Cluster = cl.Name()
	}
	slices.SortStableFunc(jobs, newestFirst)
	out := ListOut{
		Jobs: append([]slurm.Job{}, jobs...), columns: in.Columns, user: in.User,
		all: !f.Since.IsZero(), unchosen: c.Unchosen && in.Cluster == "", Missing: missing, Silent: silent,
	}
	if in.Idle != 0 {
		err = onlyIdle(ctx, c, cl, &out, in.Idle)
	}
	if in.Limit > 0 && len(out.Jobs) > in.Limit {
		out.Jobs = out.Jobs[:in.Limit]
		out.Idle = out.Idle[:min(len(out.Idle), in.Limit)]
	}
	if in.Watch {
		out.watched, out.Progress = true, progressOf(ctx, c, withPaths(ctx, cl, out.Jobs))
	}
	return out, err
}

// queueAtLeast returns the jobs that match f. Where only the accounts fail, it returns the queue's
// jobs, and what the accounts said.
func queueAtLeast(ctx context.Context, c *ops.Call, cl ops.Cluster, f slurm.Filter) (jobs []slurm.Job, silent string, err error) {
	jobs, err = c.LookAll(ctx, cl, f)
	if e, ok := errors.AsType[*slurm.AccountsError](err); ok {
		return jobs, lang.Said(e.Err).In(c.Lang), nil
	}
	if err != nil {
		return nil, "", c.SlurmError(err, "")
	}
	return jobs, "", nil
}

// names reports whether id names a job: as squeue prints it, as the whole array, or as
// the number that Slurm itself gave an array's task.
func names(id slurm.JobID, j slurm.Job) bool {
	return id == j.ID || id == j.ID.Array() || id == j.RawID
}

// beforeSlurm is a time before Slurm's first release, hence before every job. Slurm takes
// the beginning of 1970 for an error.
var beforeSlurm = time.Date(2001, 1, 1, 0, 0, 0, 0, time.UTC)

// withNamed adds the jobs that the call names and a list lacks, such as those that ended
// long ago, where they match. It returns the ids that Slurm does not know; if it knows
// none, that is an error.
func withNamed(
	ctx context.Context, c *ops.Call, cl ops.Cluster, in ListIn, jobs []slurm.Job, match func(slurm.Job) bool,
) (_ []slurm.Job, missing []slurm.JobID, _ error) {
	left := slices.DeleteFunc(slices.Clone(in.Jobs), func(id slurm.JobID) bool {
		return slices.ContainsFunc(jobs, func(j slurm.Job) bool { return names(id, j) })
	})
	var rows []slurm.Job
	var err error
	if len(left) > 1 { // one request for all instead of one for each
		f := slurm.Filter{IDs: slices.Clone(left), All: true, Since: beforeSlurm}
		for _, id := range left {
			f.IDs = append(f.IDs, id.Array()) // a row may stand for several tasks
		}
		slices.Sort(f.IDs)
		f.IDs = slices.Compact(f.IDs)
		if rows, err = c.LookAll(ctx, cl, f); err != nil {
			return nil, nil, c.SlurmError(err, left[0])
		}
	}
	var unknown []*ops.Error
	for _, id := range left {
		j, known := slurm.Fold(id, rows)
		if err = nil; !known { // the accounts alone may know it, as a job that still runs
			_, j, err = c.Job(ctx, in.Cluster, id)
		}
		switch e := ops.AsError(err); {
		case e == nil && match(j):
			jobs = append(jobs, j)
		case e == nil: // another user's, or in another state
		case e.Code == ops.NotFound:
			missing, unknown = append(missing, id), append(unknown, e)
		default:
			return nil, nil, err
		}
	}
	if len(missing) > 0 && len(missing) == len(in.Jobs) {
		unknown[0].More = unknown[1:]
		return nil, nil, unknown[0]
	}
	return jobs, missing, nil
}

// onlyIdle keeps the jobs that hold nodes and have run no step for so many minutes.
func onlyIdle(ctx context.Context, c *ops.Call, cl ops.Cluster, out *ListOut, minutes int) error {
	if minutes < 0 {
		return ops.NegativeError("idle", minutes, lang.Text{EN: "minutes, such as 30", ZH: "分钟数，例如 30"})
	}
	s, err := ops.Capable[interface {
		RunningSteps(context.Context) ([]slurm.Step, error)
	}](cl, lang.Text{EN: "list the steps of its jobs", ZH: "列出作业的步骤"})
	if err != nil {
		return err
	}
	steps, err := s.RunningSteps(ctx)
	if err != nil {
		return c.SlurmError(err, "")
	}
	out.Idle = slurm.IdleAllocations(out.Jobs, steps, time.Duration(minutes)*time.Minute, c.Now())
	out.Jobs = []slurm.Job{}
	for _, i := range out.Idle {
		out.Jobs = append(out.Jobs, i.Job)
	}
	return nil
}

// newestFirst compares jobs by the time of their submission, which Slurm tells in whole seconds, and
// then by the numbers of their ids. The tasks of an array stay in their order.
func newestFirst(a, b slurm.Job) int {
	x, y := string(a.ID.Array()), string(b.ID.Array())
	return cmp.Or(submitted(b).Compare(submitted(a)), len(y)-len(x), strings.Compare(y, x))
}

func submitted(j slurm.Job) time.Time {
	if j.SubmittedAt == nil {
		return time.Time{}
	}
	return *j.SubmittedAt
}

// View shows one line for each job, above the ids that are none.
func (o ListOut) View(l lang.Lang) view.Doc {
	d := o.jobsView(l)
	if o.Silent != "" {
		d.Sections = append(d.Sections, view.Section{Text: lang.Text{
			EN: "Slurm's accounts do not answer, so jobs that have left the queue are not listed: %s",
			ZH: "Slurm 的记账数据库没有应答，因此未列出已离开队列的作业：%s",
		}.With(o.Silent).In(l)})
	}
	for _, id := range o.Missing {
		d.Sections = append(d.Sections, view.Section{Text: ops.UnknownJob.With(id).In(l)})
	}
	return d
}

func (o ListOut) jobsView(l lang.Lang) view.Doc {
	if len(o.Jobs) == 0 {
		d := view.Doc{Title: lang.Text{EN: "no jobs", ZH: "没有作业"}.In(l)}
		if !o.all {
			d.Title = lang.Text{EN: "no waiting or running jobs found", ZH: "没有排队或运行中的作业"}.In(l)
			d.Next = []string{"list --all"}
			if o.user != "" {
				d.Next[0] += " --user " + shellword.POSIX(o.user)
			}
		}
		if o.unchosen {
			d.Sections = []view.Section{{Text: ops.WithoutSlurm.In(l)}}
		}
		return d
	}
	names := o.columns
	if len(names) == 0 {
		names = usualColumns
	}
	d := view.Doc{Sections: []view.Section{{Table: jobTable(o.Jobs, names, len(o.columns) > 0, l)}}}
	if at := o.Jobs[0].SeenAt; at != nil {
		d.Sections[0].Text = lang.Text{EN: "as of %s", ZH: "截至 %s"}.With(asOf(*at)).In(l)
	}
	if o.watched && len(o.columns) == 0 {
		d.Sections[0].Table = progressTable(o.Jobs, o.Progress, l)
	}
	if alarms := alarmLines(o.Jobs, o.Progress, l); len(alarms) > 0 { // above the table, because a small terminal may not show the table's end
		d.Sections = slices.Insert(d.Sections, 0, view.Section{Items: alarms})
	}
	for _, i := range o.Idle {
		a := joblogs.IdleAlarm(i)
		d.Sections = append(d.Sections, view.Section{Text: l.Named(string(i.Job.ID), a.What.In(l)+" "+a.Fix.In(l))})
	}
	return d
}
