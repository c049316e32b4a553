package joblogs_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/joblogs"
	"github.com/megatron-ops/megatron-ops/internal/ops/opstest"
	"github.com/megatron-ops/megatron-ops/internal/store"
	"github.com/megatron-ops/megatron-ops/internal/view"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/stretchr/testify/require"
)

const outOfMemory = "[rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.75 GiB. GPU 3 has a total capacity of 79 GiB\n"

// surveyedSite is a cluster that lists its nodes and partitions.
type surveyedSite struct {
	*opstest.Site
	nodes      []slurm.Node
	partitions []slurm.Partition
}

func (s surveyedSite) Nodes(context.Context) ([]slurm.Node, error) { return s.nodes, nil }
func (s surveyedSite) Partitions(context.Context) ([]slurm.Partition, error) {
	return s.partitions, nil
}

// failedJob returns a failed job with these files beside its log.
func failedJob(t *testing.T, files map[string]string) (*ops.Call, *opstest.Site, slurm.Job) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	j := slurm.Job{
		ID: "77", Name: "gpt", User: "alice", State: slurm.Failed, Nodes: []string{"n1", "n2"}, GPUs: 16, WorkDir: dir,
		Stdout: filepath.Join(dir, "gpt-77.out"), Stderr: filepath.Join(dir, "gpt-77.err"),
	}
	s := &opstest.Site{OfKind: "cli", KnownJobs: map[slurm.JobID]slurm.Job{"77": j}}
	return opstest.NewCall(t, s), s, j
}

// A job's logs are the files that Slurm names and the files beside them with the job's
// number. Another job's log is never among them.
func TestAJobsOwnLogsAreRead(t *testing.T) {
	const good = " [2026-06-11 10:00:00.000000] iteration       10/      10 | elapsed time per iteration (ms): 4000.0 | lm loss: 2.5E+00 |\n"
	for name, c := range map[string]struct {
		files map[string]string
		oom   bool
	}{
		"its standard output":           {map[string]string{"gpt-77.out": outOfMemory}, true},
		"its standard error":            {map[string]string{"gpt-77.out": good, "gpt-77.err": outOfMemory}, true},
		"what a rank wrote beside them": {map[string]string{"gpt-77.out": good, "rank-77.3.log": outOfMemory}, true},
		"a number that begins so":       {map[string]string{"gpt-77.out": good, "gpt-771.out": outOfMemory}, false},
		"a number that ends so":         {map[string]string{"gpt-77.out": good, "gpt-177.out": outOfMemory}, false},
		"a task of an array":            {map[string]string{"gpt-77.out": good, "gpt-77_1.out": outOfMemory}, false},
	} {
		t.Run(name, func(t *testing.T) {
			c77, _, j := failedJob(t, c.files)
			require.NoError(t, os.Symlink(filepath.Join(t.TempDir(), "secret"), filepath.Join(j.WorkDir, "link-77.log")), "a link is none of its logs")
			out, err := opstest.Do(t, c77, joblogs.Diagnose(), "77")
			require.NoError(t, err)
			r := out.(joblogs.DiagnoseOut).Report
			require.Equal(t, c.oom, r.Class == outcome.CUDAOOM, "%s", r.Class)
			_, paths, err := joblogs.Files(t.Context(), c77, "", "77")
			require.NoError(t, err)
			for _, p := range paths {
				require.NotContains(t, p, "link")
			}
		})
	}
}

// A file that was last written before the job started belongs to an earlier attempt or
// to an older job with the same number: it is not the cause, and the report says that
// it was not read.
func TestLogsOfBeforeTheStartAreNotTheJobs(t *testing.T) {
	const other = "srun: error: n1: task 0: Exited with exit code 3\n"
	start := time.Date(2026, 6, 11, 10, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		before time.Duration // between the last write of the rank's file and the start
		class  string
		said   bool
	}{
		"an earlier attempt's":   {10 * time.Minute, outcome.UnknownExit, true},
		"its own":                {-10 * time.Second, outcome.CUDAOOM, false},
		"a clock that is behind": {30 * time.Second, outcome.CUDAOOM, false},
	} {
		t.Run(name, func(t *testing.T) {
			call, s, j := failedJob(t, map[string]string{"gpt-77.out": other, "rank-77.3.log": outOfMemory})
			j.StartedAt = &start
			s.Put(j)
			at := start.Add(-c.before)
			require.NoError(t, os.Chtimes(filepath.Join(j.WorkDir, "rank-77.3.log"), at, at))
			require.NoError(t, os.Chtimes(j.Stdout, start.Add(time.Minute), start.Add(time.Minute)))
			out, err := opstest.Do(t, call, joblogs.Diagnose(), "77")
			require.NoError(t, err)
			require.Equal(t, c.class, out.(joblogs.DiagnoseOut).Report.Class)
			require.Equal(t, c.said, strings.Contains(view.Markdown(out.(joblogs.DiagnoseOut).View(lang.EN)), ", before the job started"))
		})
	}
	call, s, j := failedJob(t, map[string]string{"gpt-77.out": outOfMemory})
	j.StartedAt = &start
	s.Put(j)
	require.NoError(t, os.Chtimes(j.Stdout, start.Add(-time.Hour), start.Add(-time.Hour)))
	out, err := opstest.Do(t, call, joblogs.Diagnose(), "77")
	require.NoError(t, err)
	require.Equal(t, outcome.UnknownExit, out.(joblogs.DiagnoseOut).Report.Class, "the log that an older job of the number left decides nothing")
	require.Contains(t, opstest.Text(t, out, lang.EN), "No log was read: what was found with the job's number is of other jobs")
	require.Contains(t, opstest.Text(t, out, lang.ZH), j.Stdout+"：最后写入时间为 2026-06-11 09:00 UTC，早于作业启动")
	j.Restarts = 1
	s.Put(j)
	out, err = opstest.Do(t, call, joblogs.Diagnose(), "77")
	require.NoError(t, err)
	require.Equal(t, outcome.CUDAOOM, out.(joblogs.DiagnoseOut).Report.Class, "a requeued job's run before is what there is")
}

// While the submission cannot be read, it is unknown whether a change would repair the
// job.
func TestNoChangeIsOfferedWhileTheStoreCannotBeRead(t *testing.T) {
	call, _, _ := failedJob(t, map[string]string{"gpt-77.out": outOfMemory})
	call.Store = func() (*store.Store, error) {
		return nil, lang.Text{EN: "the database is locked", ZH: "数据库被锁定"}.Err()
	}
	for l, want := range map[lang.Lang]string{
		lang.EN: "No change is offered: what job 77 was submitted with cannot be read at this moment: the database is locked",
		lang.ZH: "未给出修改建议：暂时无法读取作业 77 提交时的规格：数据库被锁定",
	} {
		call.Lang = l
		out, err := opstest.Do(t, call, joblogs.Diagnose(), "77")
		require.NoError(t, err)
		var b strings.Builder
		require.NoError(t, view.Text(&b, out.(view.Viewer).View(l), view.Style{}))
		require.Contains(t, b.String(), want)
	}
}

// A job without a log is described by what Slurm knows, and the answer says what to do.
func TestAJobWithoutLogs(t *testing.T) {
	started := time.Now()
	code := "0:53"
	for name, c := range map[string]struct {
		job  func(j *slurm.Job)
		says string
	}{
		"it waits":                       {func(j *slurm.Job) { j.State, j.Reason = slurm.Pending, "Priority" }, "job 77 has not started (Priority): jobs of higher priority wait for the same nodes"},
		"it waits for nothing known":     {func(j *slurm.Job) { j.State = slurm.Pending }, "job 77 has not started (None): not looked at by the scheduler yet, or nothing is in the way"},
		"it waits to run again":          {func(j *slurm.Job) { j.State, j.Reason, j.Restarts = slurm.Pending, "BeginTime", 1 }, "no log of the run before was found, and job 77 waits to run again (BeginTime)"},
		"cancelled before its start":     {func(j *slurm.Job) { j.State = slurm.Cancelled }, "job 77 was cancelled before it started: it wrote no log"},
		"cancelled at its start":         {func(j *slurm.Job) { j.State, j.StartedAt = slurm.Cancelled, &started }, "job 77 was cancelled before it started: it wrote no log"},
		"cancelled while it ran":         {func(j *slurm.Job) { j.State, j.StartedAt, j.ElapsedS = slurm.Cancelled, &started, 9 }, "no log was found at"},
		"it has just begun":              {func(j *slurm.Job) { j.State, j.ElapsedS = slurm.Running, 59 }, "job 77 has run for 59 s and has written nothing yet"},
		"it runs for a minute":           {func(j *slurm.Job) { j.State, j.ElapsedS = slurm.Running, 60 }, "no log was found at"},
		"Slurm does not say where":       {func(j *slurm.Job) { j.Stdout, j.Stderr = "", "" }, "where job 77 wrote its log is not known"},
		"Slurm could not open its log":   {func(j *slurm.Job) { j.ExitCode = &code }, "exit code 0:53 means that Slurm could not open the log file"},
		"it throws its output away":      {func(j *slurm.Job) { j.Stdout, j.Stderr = "/dev/null", "" }, "no log was found at /dev/null"},
		"another exit code says no more": {func(j *slurm.Job) { other := "1:0"; j.ExitCode = &other }, "no log was found at"},
	} {
		t.Run(name, func(t *testing.T) {
			call, s, j := failedJob(t, nil)
			c.job(&j)
			s.Put(j)
			out, err := opstest.Do(t, call, joblogs.Diagnose(), "77")
			if j.State == slurm.Pending {
				require.ErrorContains(t, err, c.says)
				return
			}
			require.NoError(t, err)
			notes := strings.Join(out.(joblogs.DiagnoseOut).Report.Notes, "\n")
			require.NotContains(t, view.Markdown(out.(joblogs.DiagnoseOut).View(lang.ZH)), c.says, "it is said in Chinese")
			require.Contains(t, notes, c.says)
			unopened := name == "Slurm could not open its log"
			require.Equal(t, unopened, strings.Contains(notes, "0:53"))
			if unopened { // the log or its folder is to be made first: nothing was ended by a signal
				r := out.(joblogs.DiagnoseOut).Report
				require.Equal(t, "env_launch false", r.Class+" "+strconv.FormatBool(r.Retry))
				require.Contains(t, r.Summary, "Slurm could not launch the job. Exit code 0:53, of Slurm: the log file or the work directory could not be opened.")
				require.Contains(t, strings.Join(r.Advice, " "), "exist on the node and can be written to")
			}
		})
	}
}

// A folder that cannot be listed is no proof that a job left no log, and a question that only a
// log answers is answered by why none was read.
func TestALogThatCannotBeLookedFor(t *testing.T) {
	call, s, j := failedJob(t, nil)
	ask := func() (joblogs.DiagnoseOut, error) {
		s.Put(j)
		out, err := joblogs.Diagnose().Run(t.Context(), call, &joblogs.DiagnoseIn{Target: "77", Question: "which rank?"})
		return out.(joblogs.DiagnoseOut), err
	}
	out, err := ask()
	require.NoError(t, err)
	require.Equal(t, "No log was read: no log was found at "+j.Stdout, out.Answer)

	folder := filepath.Join(t.TempDir(), "logs")
	require.NoError(t, os.WriteFile(folder, nil, 0o600)) // no folder
	j.Stdout, j.Stderr = filepath.Join(folder, "gpt-77.out"), ""
	_, err = ask()
	require.ErrorContains(t, err, folder)
	require.ErrorContains(t, err, "not a directory")
}

// Of a job that was requeued and waits again, the run before is diagnosed.
func TestARequeuedJobIsDiagnosedByItsRunBefore(t *testing.T) {
	const preempted = "slurmstepd-n1: error: *** JOB 77 ON n1 CANCELLED AT 2026-05-01T10:00:00 DUE TO PREEMPTION ***\n"
	call, s, j := failedJob(t, map[string]string{"gpt-77.out": preempted})
	j.State, j.Reason, j.Restarts, j.Nodes, j.ExitCode = slurm.Pending, "BeginTime", 1, nil, nil
	s.Put(j)
	out, err := opstest.Do(t, call, joblogs.Diagnose(), "77")
	require.NoError(t, err)
	require.Equal(t, outcome.SlurmPreempted, out.(joblogs.DiagnoseOut).Report.Class)
	for l, want := range map[lang.Lang]string{
		lang.EN: "The job is in the queue again and waits for BeginTime; this was its run before.",
		lang.ZH: "作业已重新排队，等待原因：BeginTime；以上是其上一次运行。",
	} {
		require.Contains(t, view.Markdown(out.(view.Viewer).View(l)), want)
	}
}

// accountedSite is a cluster with accounts, which know how earlier runs ended.
type accountedSite struct {
	*opstest.Site
	past []slurm.Job
}

func (s accountedSite) Past(context.Context, slurm.Filter) ([]slurm.Job, error) { return s.past, nil }

// Where the log does not say how the run before a requeue ended, the accounts do.
func TestTheAccountsTellHowTheRunBeforeEnded(t *testing.T) {
	for end, class := range map[slurm.State]string{
		slurm.Preempted: outcome.SlurmPreempted, slurm.NodeFail: outcome.SlurmNodeFail, slurm.Requeued: outcome.SlurmPreempted, slurm.Failed: outcome.UnknownExit,
	} {
		call, s, j := failedJob(t, map[string]string{"gpt-77.out": "loading the data\n"})
		j.State, j.Reason, j.Restarts, j.ExitCode = slurm.Pending, "BeginTime", 1, nil
		s.Put(j)
		j.Requeues = []slurm.State{end}
		call.Clusters["test"] = accountedSite{s, []slurm.Job{j}}
		out, err := opstest.Do(t, call, joblogs.Diagnose(), "77")
		require.NoError(t, err)
		require.Equal(t, class, out.(joblogs.DiagnoseOut).Report.Class, end)
	}
}

// A preempted job that was asked to end, and may end in any way, was preempted.
func TestAJobThatEndedInAGraceTimeWasPreempted(t *testing.T) {
	const step = "0: slurmstepd-n1: error: *** STEP 77.0 ON n1 CANCELLED AT 2026-05-01T10:00:00 ***\nsrun: error: n1: task 0: Terminated\n"
	call, s, j := failedJob(t, map[string]string{"gpt-77.out": "loading the data\n" + step})
	code, started, at := "143:0", time.Now().Add(-time.Hour), time.Now().Add(-time.Minute)
	j.State, j.Reason, j.ExitCode, j.StartedAt, j.PreemptedAt = slurm.Failed, "NonZeroExitCode", &code, &started, &at
	s.Put(j)
	out, err := opstest.Do(t, call, joblogs.Diagnose(), "77")
	require.NoError(t, err)
	require.Equal(t, outcome.SlurmPreempted, out.(joblogs.DiagnoseOut).Report.Class)
	require.True(t, out.(joblogs.DiagnoseOut).Retry)
	require.Contains(t, opstest.Text(t, out, lang.EN), "Preempted.")
	require.Contains(t, opstest.Text(t, out, lang.ZH), "被抢占")
}

// The accounts know who cancelled a job, also while the queue still shows it.
func TestWhoCancelledAJobIsNamed(t *testing.T) {
	for reason, want := range map[string]string{"by uid 4294967": "uid 4294967", "by uid 0": "root", "by bob": "bob", "": "", "Resources": ""} {
		call, s, j := failedJob(t, map[string]string{"gpt-77.out": "slurmstepd-n1: error: *** JOB 77 ON n1 CANCELLED AT 2026-05-01T10:00:00 ***\n"})
		j.State, j.Reason = slurm.Cancelled, ""
		s.Put(j)
		j.Reason = reason
		call.Clusters["test"] = accountedSite{s, []slurm.Job{j}}
		out, err := opstest.Do(t, call, joblogs.Diagnose(), "77")
		require.NoError(t, err)
		require.Equal(t, want, out.(joblogs.DiagnoseOut).CancelledBy, reason)
		if want != "" {
			require.Contains(t, opstest.Text(t, out, lang.EN), "Slurm's accounts say that "+want+" cancelled it.")
		}
	}
}

// A diagnosis of a path or of standard input says where there is nothing to read.
func TestALogIsDiagnosedByItsPath(t *testing.T) {
	call, _, j := failedJob(t, map[string]string{"gpt-77.out": outOfMemory})
	empty := t.TempDir()
	call.Dir = j.WorkDir
	opstest.Write(t, filepath.Join(j.WorkDir, "none.log"), "")
	for name, c := range map[string]struct {
		target  string
		surface ops.Surface
		stdin   string
		class   string
		code    ops.Code
	}{
		"a file":                          {filepath.Join(j.WorkDir, "gpt-77.out"), ops.Shell, "", outcome.CUDAOOM, ""},
		"a file, from where one is":       {"gpt-77.out", ops.Shell, "", outcome.CUDAOOM, ""},
		"a folder":                        {j.WorkDir, ops.Shell, "", outcome.CUDAOOM, ""},
		"a folder without a log":          {empty, ops.Shell, "", "", ops.NotFound},
		"a file that is not there":        {filepath.Join(empty, "x.log"), ops.Shell, "", "", ops.BadInput},
		"an empty file":                   {filepath.Join(j.WorkDir, "none.log"), ops.Shell, "", "", ops.Failed},
		"nothing":                         {"", ops.Shell, "", "", ops.BadInput},
		"standard input":                  {"-", ops.Shell, outOfMemory, outcome.CUDAOOM, ""},
		"an agent has no standard input":  {"-", ops.MCP, outOfMemory, "", ops.BadInput},
		"a shell without one":             {"-", ops.Shell, "", "", ops.BadInput},
		"nobody names paths in a channel": {j.WorkDir, ops.Slack, "", "", ops.BadInput},
		"what looks like a step is a job": {"77.0", ops.Shell, "", "", ops.BadInput},
	} {
		call.Who.Surface, call.Stdin = c.surface, nil
		if c.stdin != "" {
			call.Stdin = strings.NewReader(c.stdin)
		}
		out, err := joblogs.Diagnose().Run(t.Context(), call, &joblogs.DiagnoseIn{Target: c.target})
		if c.code != "" {
			require.Error(t, err, name)
			require.Equal(t, c.code, ops.AsError(err).Code, "%s: %v", name, err)
			require.NotEmpty(t, ops.AsError(err).Fix.EN, name)
			continue
		}
		require.NoError(t, err, name)
		require.Equal(t, c.class, out.(joblogs.DiagnoseOut).Report.Class, name)
	}
}

// A node of the job that Slurm has taken out of service is evidence; a working node, or
// a node of another job, is not.
func TestNodesThatAreDownAreEvidence(t *testing.T) {
	call, s, j := failedJob(t, map[string]string{"gpt-77.out": "loading\n"})
	j.State = slurm.NodeFail
	s.Put(j)
	diagnosed := func() string {
		call.Clusters["test"] = surveyedSite{Site: s, nodes: []slurm.Node{
			{Name: "n1", State: "idle"}, {Name: "n2", State: "down"}, {Name: "n3", State: "down"},
		}}
		out, err := opstest.Do(t, call, joblogs.Diagnose(), "77")
		require.NoError(t, err)
		return fmt.Sprintf("%+v", out.(joblogs.DiagnoseOut).Report)
	}
	said := diagnosed()
	require.Contains(t, said, "n2")
	require.NotContains(t, said, "n3")
}

// Advice leaves out what the job already asks for.
func TestAdviceKnowsTheJobsSpecification(t *testing.T) {
	const killed = "slurmstepd: error: Detected 1 oom_kill event in StepId=77.0. Some of the step tasks have been OOM Killed.\n"
	for mem, advised := range map[string]bool{"mem: 64G": true, "mem: \"0\"": false} {
		call, _, _ := failedJob(t, map[string]string{"gpt-77.out": killed})
		remember(t, call, "77", "name: gpt\nnodes: 2\ngpus_per_node: 8\nworktree: /lustre/m\n"+mem+"\n")
		out, err := opstest.Do(t, call, joblogs.Diagnose(), "77")
		require.NoError(t, err)
		require.Equal(t, advised, strings.Contains(opstest.Text(t, out, lang.EN), "--mem "), mem)
	}
}

// A program of the site's own is not told what Megatron requires of its arguments.
func TestAdviceOfAnotherProgramNamesNoRuleOfMegatron(t *testing.T) {
	const refused = "train.py: error: unrecognized arguments: --wram-up 5\n"
	for launcher, advised := range map[string]bool{"args: [--bf16]": true, "launcher: custom\nlauncher_argv: [python3, train.py]": false} {
		call, _, _ := failedJob(t, map[string]string{"gpt-77.out": refused})
		remember(t, call, "77", "name: gpt\nnodes: 2\ngpus_per_node: 8\nworktree: /lustre/m\n"+launcher+"\n")
		out, err := opstest.Do(t, call, joblogs.Diagnose(), "77")
		require.NoError(t, err)
		require.Equal(t, advised, strings.Contains(opstest.Text(t, out, lang.EN), "Rule "), launcher)
	}
}

// A question about differences reads the earlier run of the same name.
func TestAnEarlierRunAnswersWhatIsNew(t *testing.T) {
	call, s, j := failedJob(t, map[string]string{"gpt-77.out": outOfMemory, "gpt-76.out": outOfMemory, "gpt-78.out": "loading\n"})
	st, err := call.Store()
	require.NoError(t, err)
	for i, id := range []slurm.JobID{"76", "77", "78"} {
		at := time.Now().Add(time.Duration(i) * time.Hour)
		_, _, err := st.Begin(t.Context(), store.Submission{Key: string(id), Token: string(id), Cluster: "test", Owner: "alice", Name: "gpt", Spec: []byte(`{}`), CreatedAt: at})
		require.NoError(t, err)
		require.NoError(t, st.Finish(t.Context(), string(id), store.Submitted, id, "", at))
		other := j
		other.ID, other.Stdout, other.Stderr = id, filepath.Join(j.WorkDir, "gpt-"+string(id)+".out"), ""
		s.Put(other)
	}
	ask := func(id string) string {
		out, err := joblogs.Diagnose().Run(t.Context(), call, &joblogs.DiagnoseIn{Target: id, Question: "is it the same as last time?"})
		require.NoError(t, err)
		return out.(joblogs.DiagnoseOut).Answer
	}
	require.Contains(t, ask("77"), "Yes, the same cause", "76 ran out of memory too; 78 came after it")
	require.Equal(t, "No earlier run of the same name is known.", ask("76"))
}
