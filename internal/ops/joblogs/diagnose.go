package joblogs

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/launch"
	"github.com/megatron-ops/megatron-ops/internal/view"
	"github.com/megatron-ops/megatron-ops/internal/within"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logfile"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/report"
)

// DiagnoseIn names a job, or a file or folder of logs.
type DiagnoseIn struct {
	Target string `json:"job" arg:"" name:"job-or-path" jobs:"" help:"job id, or a file or folder of logs, - for standard input (./123 for a file named 123)" zh:"作业号，或日志文件、目录，- 表示标准输入（名为 123 的文件写作 ./123）"`
	// Question is a question that the evidence of the diagnosis should answer.
	Question string `json:"question,omitempty" name:"question" placeholder:"TEXT" help:"answer this from it" zh:"据此回答：为什么？哪个节点？上次也是这样吗？"`
	// Only people may start a diagnosis that submits jobs; agents and Slack have the
	// logs read here.
	OnSlurm   bool   `json:"-" name:"on-slurm" help:"read the logs by a job on the cluster where they lie, and answer as if they had been read here" zh:"在日志所在集群上用作业读取日志，结果与在本机读取相同"`
	Partition string `json:"-" name:"partition" placeholder:"NAME" help:"of that job; one without GPUs where left out" zh:"该作业的分区；省略时选没有 GPU 的分区"`
	Shards    int    `json:"-" name:"shards" placeholder:"N" help:"how many tasks read" zh:"读取任务的个数"`
	ops.OnCluster
}

// DiagnoseOut holds the root cause and its evidence.
type DiagnoseOut struct {
	report.Report
	// Fix is a change that would repair the job, where its specification is known here
	// and a plan has accepted the change.
	Fix *launch.SpecPatch `json:"fix,omitempty"`
	// FixUnknown says why it is unknown at the moment whether there is such a change.
	FixUnknown string `json:"fix_unknown,omitempty"`
	// WaitsFor is set where the job was requeued and waits to run again: why it waits.
	// The report is then about its run before.
	WaitsFor string `json:"waits_for,omitempty"`
	// CancelledBy is who cancelled the job, where Slurm's accounts tell.
	CancelledBy string `json:"cancelled_by,omitempty"`
	// OtherLimit is set where Slurm ended the job as at a time limit and it was still within
	// its own: what that means, and what to do.
	OtherLimit string `json:"other_limit,omitempty"`
	// Unaccounted reports that the job has left the queue and Slurm's accounts, which know how it ended,
	// do not answer: the report is from its files alone.
	Unaccounted bool `json:"unaccounted,omitempty"`
	// FailedTasks names the tasks of an array that failed, where several did: each is a run
	// of its own, and the report is about one of them. MoreFailed is how many more there
	// are, which `list JOB --state FAILED` names.
	FailedTasks []slurm.JobID `json:"failed_tasks,omitempty"`
	MoreFailed  int           `json:"more_failed,omitempty"`
	// Answer answers Question.
	Answer string `json:"answer,omitempty"`
	// Page is the address of the job's page, where browsers reach one.
	Page string `json:"page,omitempty"`
}

// View shows the cause first.
func (o DiagnoseOut) View(l lang.Lang) view.Doc {
	if o.Fix != nil {
		o.Report = o.Offered()
	}
	d := o.Report.View(l)
	if o.Answer != "" {
		return view.Doc{Title: d.Title, Tone: d.Tone, Sections: []view.Section{{Text: o.Answer}}}
	}
	if o.NoLog.EN != "" { // before all that was concluded without one
		d.Sections = append([]view.Section{{Text: report.NoLogRead.With(o.NoLog).In(l)}}, d.Sections...)
	}
	if o.Unaccounted {
		d.Sections = append(d.Sections, view.Section{Text: unaccounted(l)})
	}
	if o.WaitsFor != "" {
		again := lang.Text{EN: "The job is in the queue again and waits for %s; this was its run before.", ZH: "作业已重新排队，等待原因：%s；以上是其上一次运行。"}
		d.Sections = append(d.Sections, view.Section{Text: again.With(o.WaitsFor).In(l)})
	}
	if o.CancelledBy != "" {
		d.Sections = append(d.Sections, view.Section{Text: lang.Text{EN: "Slurm's accounts say that %s cancelled it.", ZH: "Slurm 记账显示由 %s 取消。"}.With(o.CancelledBy).In(l)})
	}
	if n := len(o.FailedTasks); n > 0 {
		each := lang.Text{EN: "%d tasks of the array failed, each a run of its own; this is about one of them: %s.", ZH: "该数组有 %d 个任务失败，各自独立；以上只针对其中一个：%s。"}
		var ids []string
		for _, id := range o.FailedTasks {
			ids = append(ids, string(id))
		}
		few := ops.FirstFew(append(ids, make([]string, o.MoreFailed)...), tasksShown) // those not named here are only counted
		d.Sections = append(d.Sections, view.Section{Text: each.With(n+o.MoreFailed, few).In(l)})
		d.Next = append(d.Next, "diagnose "+string(o.FailedTasks[0]))
	}
	if o.OtherLimit != "" { // before the advice for a job that needs more time
		d.Sections = append([]view.Section{{Text: o.OtherLimit}}, d.Sections...)
	}
	if o.FixUnknown != "" {
		d.Sections = append(d.Sections, view.Section{Text: lang.Text{EN: "No change is offered: %s", ZH: "未给出修改建议：%s"}.With(o.FixUnknown).In(l)})
	}
	if o.Fix != nil {
		d.Sections = append(d.Sections, view.Section{Heading: lang.Text{EN: "a change that the plan accepts", ZH: "计划检查通过的修改"}.In(l), Items: o.Fix.Changes})
		commands := []string{o.Fix.Command()}
		if o.WaitsFor != "" {
			commands = o.Fix.CommandsInQueue()
		}
		d.Next = append(commands, d.Next...)
	}
	return d
}

// Diagnose returns the operation diagnose.
func Diagnose() ops.Op {
	return ops.Define(ops.Op{
		Name: "diagnose", Effect: ops.Read, Toolset: ops.LogsSet, Core: true,
		Summary: lang.Text{EN: "what broke first, on which rank and node, why, and what to do", ZH: "最先出错的是什么、在哪个 rank 和节点、原因以及处理办法"},
		Help: lang.Text{
			EN: "Use when a job failed or hangs. It reads every rank's log and tells cause from consequences, or that nothing failed.",
			ZH: "作业失败或卡住时使用。读取每个 rank 的日志，区分最初原因与连锁反应；没有失败时也会说明。",
		},
		Example: "diagnose 4711",
		Batch:   ops.OneByOne(func(line []byte) []byte { return diagnose.Batch(context.Background(), line) }),
	}, diagnoseAndAnswer)
}

func diagnoseOp(ctx context.Context, c *ops.Call, in DiagnoseIn) (DiagnoseOut, error) {
	if in.Target == "" {
		return DiagnoseOut{}, ops.InputError("job",
			lang.Text{EN: "there is nothing to diagnose", ZH: "没有要诊断的内容"}, jobOrLog)
	}
	if slurm.IsJobID(in.Target) {
		return DiagnoseJob(ctx, c, in)
	}
	if in.Target == "-" {
		return diagnoseStream(ctx, c, in)
	}
	path, folders, err := resolvePath(c, "job", in.Target)
	if err != nil {
		return DiagnoseOut{}, err
	}
	defer folders.Close()
	if _, err := os.Lstat(path); err != nil && slurm.IsStepID(in.Target) {
		return DiagnoseJob(ctx, c, in)
	}
	if in.OnSlurm {
		cl, err := c.Cluster(in.Cluster)
		if err != nil {
			return DiagnoseOut{}, err
		}
		r, err := onSlurm(ctx, c, cl, in, diagnose.Context{}, logfile.Owner{}, []string{path})
		return DiagnoseOut{Report: r}, err
	}
	src, err := openNamed(folders, "job", in.Target, path)
	if err != nil {
		return DiagnoseOut{}, err
	}
	r, err := diagnose.Run(ctx, src, diagnose.Context{})
	return DiagnoseOut{Report: r}, unreadableLogs(err)
}

// jobOrLog describes what a diagnosis can read.
var jobOrLog = lang.Text{
	EN: "a job id, or the path of a log file or folder; in a shell also a job's name, last or failed",
	ZH: "作业号，或日志文件、日志目录的路径；在 shell 中也可以是作业名、last 或 failed",
}

// openNamed opens the logs at path. field and named are the input's field and the path
// as the caller wrote it, for errors.
func openNamed(folders *within.Folders, field, named, path string) (logfile.Source, error) {
	src, err := logfile.OpenIn(folders, path)
	return src, unreadableLogs(noLogAt(field, named, err))
}

// noLogAt turns an error that says that there is no log into an *Error about the field
// and the path that the caller named. Other errors stay unchanged.
func noLogAt(field, named string, err error) error {
	none, empty := errors.AsType[*logfile.NoLogError](err)
	switch {
	case empty:
		none.Paths = []string{named}
		return ops.NotFoundError(field, none.Said(), jobOrLog)
	case errors.Is(err, fs.ErrNotExist):
		return noSuchFile(field, named, jobOrLog)
	}
	return err
}

// noSuchFile returns the error about a path that does not exist.
func noSuchFile(field, path string, fix lang.Text) error {
	said := lang.Text{EN: "there is no file or folder %s", ZH: "没有文件或目录 %s"}.With(path)
	if ops.FileName.MatchString(path) {
		said = lang.Text{
			EN: "%s; a word with a slash, a %% or a log's ending is a path, so no job of that name was looked for",
			ZH: "%s；带斜杠、%% 或日志后缀的词视为路径，因此没有按作业名查找",
		}.With(said)
	}
	return ops.InputError(field, said, fix)
}

// unreadableLogs turns the error about logs none of which could be read into an *Error.
// Other errors stay unchanged.
func unreadableLogs(err error) error {
	if none, ok := errors.AsType[*logfile.UnreadableError](err); ok {
		return &ops.Error{Code: ops.Failed, Field: "job", Message: none.Text(), Fix: lang.Text{
			EN: "give the job's id: diagnose then looks for its other logs, and at how Slurm says it ended",
			ZH: "请给出作业号：diagnose 会查找它的其他日志，并参考 Slurm 记录的结束方式",
		}}
	}
	return err
}

// diagnoseStream diagnoses one log from standard input.
func diagnoseStream(ctx context.Context, c *ops.Call, in DiagnoseIn) (DiagnoseOut, error) {
	if c.Stdin == nil || c.Who.Surface != ops.Shell || in.OnSlurm {
		return DiagnoseOut{}, ops.InputError("job",
			lang.Text{EN: "there is no standard input to read here", ZH: "这里没有可读取的标准输入"},
			lang.Text{EN: "a job id, or a path", ZH: "作业号或路径"})
	}
	src, err := logfile.Read("stdin", c.Stdin)
	if err != nil {
		return DiagnoseOut{}, err
	}
	r, err := diagnose.Run(ctx, src, diagnose.Context{})
	return DiagnoseOut{Report: r}, unreadableLogs(err)
}

// DiagnoseJob diagnoses a job by its id, and looks for a change that would repair it.
func DiagnoseJob(ctx context.Context, c *ops.Call, in DiagnoseIn) (DiagnoseOut, error) {
	out, j, err := findCause(ctx, c, in)
	if err == nil {
		out.offerChange(ctx, c, j)
	}
	return out, err
}

// DiagnoseFailure diagnoses a job that has failed, for a message about its end. Whoever else
// tells of the same end says what the same diagnosis found.
func DiagnoseFailure(ctx context.Context, c *ops.Call, j slurm.Job) (DiagnoseOut, error) {
	c = c.Reading() // shares the other readers' question, and has the job as last seen while Slurm is down
	out, err := ops.FailureOf(ctx, c.Failures, j, c.Now(), func() (DiagnoseOut, error) {
		found, _, err := findCause(ctx, c, DiagnoseIn{Target: string(j.ID), OnCluster: ops.OnCluster{Cluster: j.Cluster}})
		if err == nil && found.Unaccounted { // the report would be kept
			err = &ops.Error{Code: ops.Failed, Message: slurm.Ended.Explain().Says}
		}
		return found, err
	})
	if err == nil {
		out.offerChange(ctx, c, j)
	}
	return out, err
}

// offerChange adds a change that would repair the job.
func (o *DiagnoseOut) offerChange(ctx context.Context, c *ops.Call, j slurm.Job) {
	if o.NoLog.EN != "" {
		return
	}
	if _, _, reused := c.SubmissionOf(ctx, j.Cluster, j); reused {
		return // the specification is an earlier job's
	}
	var unknown error
	if o.Fix, unknown = launch.PatchFor(ctx, c, j.Cluster, j.ID, o.Report); unknown != nil && o.Found() {
		o.FixUnknown = lang.Said(unknown).In(c.Lang)
	}
}

// findCause is DiagnoseJob without a change. It also returns the job.
func findCause(ctx context.Context, c *ops.Call, in DiagnoseIn) (out DiagnoseOut, of slurm.Job, err error) {
	cl, j, err := launch.JobOrStep(ctx, c, in.Cluster, slurm.JobID(in.Target))
	if err != nil {
		return DiagnoseOut{}, j, err
	}
	of, of.Cluster = j, cl.Name()
	defer func() {
		out.Page, out.Unaccounted = c.JobPage(cl.Name(), j.ID), of.State == slurm.Ended
		if err == nil && out.Class == outcome.SlurmCancelled {
			out.CancelledBy = CancelledBy(ctx, cl, j)
		}
		if early := j.ExplainState(); err == nil && out.Class == outcome.SlurmTimeLimit && early != j.State.Explain().Meaning {
			said := lang.Text{EN: "It %s (%s of %s). What to do: %s.", ZH: "%s（已运行 %s，时限 %s）。处理办法：%s。"}
			out.OtherLimit = said.With(early.Says, ops.Duration(j.ElapsedS), ops.Duration(*j.TimeLimitS), early.Do).In(c.Lang)
		}
	}()
	finder := new(logFinder)
	paths := finder.files(ctx, c, cl.Name(), j)
	if j.State == slurm.Pending {
		out.WaitsFor = cmp.Or(j.Reason, "None")
		if j.Restarts == 0 || len(paths) == 0 {
			return DiagnoseOut{}, of, notStarted(j, out.WaitsFor)
		}
		// What is to be explained is how the run before the requeue ended.
		ends := append([]slurm.State{slurm.Ended}, Requeues(ctx, cl, j)...)
		j.State, j.Reason = ends[len(ends)-1], ""
	}
	if len(paths) == 0 {
		if of.State == slurm.Ended { // nothing tells whether it failed
			said, fix := missingLog(j)
			said = lang.Text{EN: "%s, and job %s %s", ZH: "%s；作业 %s %s"}.With(said, j.ID, of.State.Explain().Says)
			return DiagnoseOut{}, of, &ops.Error{Code: ops.Failed, Field: "job", Message: said, Fix: fix}
		}
		// A job whose log could not be opened leaves none: only Slurm's information is
		// left.
		r, err := diagnose.Run(ctx, logfile.NoLogs(), diagnose.FromJob(j))
		r.NoLog, _ = missingLog(j)
		r.OtherLogs = finder.others
		r.Finish()
		return DiagnoseOut{Report: r}, of, err
	}
	c.Step(1, 3, ops.Counted(len(paths), "log").In(c.Lang))
	if given := evidence(ctx, c, cl, j); in.OnSlurm {
		out.Report, err = onSlurm(ctx, c, cl, in, given, ownerOf(j, paths), paths)
	} else {
		out.Report, err = readHere(ctx, c, j, given, paths)
	}
	if err != nil {
		return out, of, err
	}
	out.OtherLogs = append(out.OtherLogs, finder.others...)
	if len(j.Tasks) > 0 && out.Found() {
		failed := failedTasks(ctx, cl, j.ID)
		kept := min(len(failed), tasksKept)
		out.FailedTasks, out.MoreFailed = failed[:kept], len(failed)-kept
	}
	c.Step(2, 3, "")
	return out, of, nil
}

// Requeues returns how the earlier runs of a job ended that was requeued and has not ended.
// Only the accounts tell it; it returns nothing if they do not.
func Requeues(ctx context.Context, cl ops.Cluster, j slurm.Job) []slurm.State {
	if j.Restarts == 0 || len(j.Requeues) > 0 || j.State.Ended() {
		return j.Requeues
	}
	return InAccounts(ctx, cl, j.ID).Requeues
}

// notStarted is the error about a job that waits and has no run that can be diagnosed.
func notStarted(j slurm.Job, reason string) error {
	m := slurm.ExplainReason(reason)
	said := lang.Text{EN: "job %s has not started (%s): %s", ZH: "作业 %s 尚未启动（%s）：%s"}
	if j.Restarts > 0 {
		said = lang.Text{EN: "no log of the run before was found, and job %s waits to run again (%s): %s", ZH: "没有找到上一次运行的日志；作业 %s 等待再次运行（%s）：%s"}
	}
	fix := lang.Text{EN: "`status %s` says when it may start", ZH: "`status %s` 会给出预计开始时间"}.With(j.ID)
	if m.Do.EN != "" {
		fix = lang.Text{EN: "%s; `status %s` says more", ZH: "%s；详见 `status %s`"}.With(m.Do, j.ID)
	}
	return &ops.Error{Code: ops.Failed, Message: said.With(j.ID, reason, m.Says), Fix: fix}
}

// readHere diagnoses a job's logs on this machine.
func readHere(ctx context.Context, c *ops.Call, j slurm.Job, given diagnose.Context, paths []string) (report.Report, error) {
	src, done, err := openLogs(c, j, paths)
	if err != nil {
		return report.Report{}, &ops.Error{Code: ops.Failed, Message: lang.Said(err), Fix: lang.Text{EN: "diagnose the folder of the logs by its path", ZH: "请按路径诊断日志所在的目录"}}
	}
	defer done()
	src.LeaveOutOthers(ownerOf(j, paths))
	r, err := diagnose.Run(ctx, src, given)
	return r, unreadableLogs(err)
}

// evidence returns what is known about a job besides its logs: what Slurm says, those
// of its nodes that are out of service, and the requested launch.
func evidence(ctx context.Context, c *ops.Call, cl ops.Cluster, j slurm.Job) diagnose.Context {
	d := diagnose.FromJob(j)
	if s, ok := c.SpecOfJob(ctx, cl.Name(), j); ok {
		full := c.SiteOf(s).Fill(s).WithDefaults()
		d.Worktree = s.Worktree
		if launch.Trains(full) || len(full.Args) > 0 { // another program breaks none of Megatron's rules
			run := launch.MegatronRun(full)
			d.Launch = &run
		}
		if full.Mem == "0" {
			d.Already = append(d.Already, report.AllMemory)
		}
		if full.Container.Image == "" {
			d.Already = append(d.Already, report.ContainerVariables)
		}
	}
	d.Resolve = resolver(ctx)
	if j.State != slurm.Running && j.State != slurm.Completed {
		all, _ := cl.Nodes(ctx) // the logs are judged without them
		for _, n := range all {
			if slices.Contains(j.Nodes, n.Name) && !n.Usable() {
				d.FailedNodes = append(d.FailedNodes, n.Name)
			}
		}
	}
	return d
}

// resolver returns a function that asks this machine's name service for the names of an
// address.
func resolver(ctx context.Context) func(address string) []string {
	return func(address string) []string {
		ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
		defer cancel()
		names, err := net.DefaultResolver.LookupAddr(ctx, address)
		if err != nil {
			return nil
		}
		return names
	}
}

// missingLog explains why a job has no log, and says what to do.
func missingLog(j slurm.Job) (said, fix lang.Text) {
	fix = lang.Text{EN: "the folder of --output must exist before the job starts", ZH: "--output 所在目录须在作业启动前存在"}
	switch {
	case j.State == slurm.Cancelled && (j.StartedAt == nil || j.ElapsedS == 0):
		return lang.Text{EN: "job %s was cancelled before it started: it wrote no log", ZH: "作业 %s 在开始前已被取消，没有写日志"}.With(j.ID), lang.Text{}
	case j.State == slurm.Running && j.ElapsedS < 60:
		return lang.Text{EN: "job %s has run for %d s and has written nothing yet", ZH: "作业 %s 已运行 %d 秒，尚未写日志"}.With(j.ID, j.ElapsedS),
			lang.Text{EN: "ask again in a moment, or follow it: --follow", ZH: "请稍后再试，或使用 --follow 持续查看"}
	case j.Stdout == "":
		said = lang.Text{EN: "where job %s wrote its log is not known", ZH: "不知道作业 %s 的日志写到了哪里"}.With(j.ID)
		fix = lang.Text{
			EN: "Slurm before 24.05 forgets the place once the job has left the queue: `diagnose FILE` reads a log whose place you know",
			ZH: "24.05 之前的 Slurm 在作业离开队列后不再记得日志位置：若您知道日志在哪里，请用 `diagnose FILE`",
		}
	default:
		said = lang.Text{EN: "no log was found at %s", ZH: "在 %s 没有找到日志"}.With(j.Stdout)
	}
	if j.ExitCode != nil && *j.ExitCode == "0:53" {
		// Measured on 22.05: FAILED, JobLaunchFailure, 0:53, and no log.
		said = lang.Text{
			EN: "%s: exit code 0:53 means that Slurm could not open the log file or enter the work directory; make the folder before sbatch",
			ZH: "%s：退出码 0:53 表示 Slurm 无法打开日志文件或进入工作目录；请在 sbatch 之前建好目录",
		}.With(said)
	}
	return said, fix
}

// logFiles lists the logs of a job: the files that Slurm names, and the files beside
// them whose names contain the job's id.
func logFiles(ctx context.Context, c *ops.Call, cluster string, j slurm.Job) []string {
	return new(logFinder).files(ctx, c, cluster, j)
}

func (finder *logFinder) files(ctx context.Context, c *ops.Call, cluster string, j slurm.Job) []string {
	if slurm.IsStepID(string(j.ID)) {
		return launch.StepFiles(ctx, c, cluster, j)
	}
	var named []string
	for _, p := range []string{j.Stdout, j.Stderr} {
		if p != "" && p != "/dev/null" && !slices.Contains(named, p) {
			named = append(named, p)
		}
	}
	if len(named) == 0 {
		sub, ok, _ := c.SubmissionOf(ctx, cluster, j)
		if !ok {
			return finder.unnamed(ctx, c, cluster, j)
		}
		named = append(named, filepath.Join(sub.Dir, "logs", "x"))
	}
	carries := carriesID(j)
	var found []string
	for _, p := range named {
		dir := filepath.Dir(p)
		entries, err := os.ReadDir(dir)
		if err != nil {
			// A folder that cannot be listed may hold the log: whoever opens it says why it cannot be read.
			if st, err := os.Lstat(p); (p == j.Stdout || p == j.Stderr) && !errors.Is(err, fs.ErrNotExist) && (err != nil || st.Mode().IsRegular()) {
				found = append(found, p)
			}
			continue
		}
		for _, e := range entries {
			full := filepath.Join(dir, e.Name())
			// A job could swap its log for a link to somebody else's file.
			if e.Type()&fs.ModeSymlink != 0 {
				continue
			}
			if slices.Contains(found, full) || full != p && (!carries.MatchString(e.Name()) || finder.ofOther(ctx, c, cluster, j, full)) {
				continue
			}
			found = append(found, full)
		}
	}
	slices.Sort(found)
	return found
}
