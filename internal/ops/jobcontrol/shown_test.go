package jobcontrol

import (
	"context"
	"errors"
	"flag"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/launch"
	"github.com/megatron-ops/megatron-ops/internal/ops/opstest"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/cluster"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/report"
)

var rewrite = flag.Bool("update", false, "rewrite the golden files")

// The answers are pinned in both languages.
func TestAnswersAreShownAsTheyAre(t *testing.T) {
	t.Parallel()
	limit, priority, exit := int64(7200), int64(900), "1:0"
	at, here := time.Date(2026, 6, 11, 10, 0, 0, 0, time.UTC), time.Date(2026, 6, 11, 10, 0, 0, 0, time.Local)
	running := slurm.Job{ID: "7", Name: "gpt", User: "ada", Partition: "prod", State: slurm.Running, Nodes: []string{"gpu1", "gpu2"}, NumNodes: 2, GPUs: 16, ElapsedS: 60, TimeLimitS: &limit}
	waits := slurm.Job{ID: "8", Name: "gpt", User: "ada", Partition: "prod", State: slurm.Pending, Reason: "Priority", NumNodes: 2, GPUs: 16, TimeLimitS: &limit, Priority: &priority, EstStart: &at}
	failed := slurm.Job{ID: "9", Name: "gpt", User: "ada", State: slurm.Failed, ElapsedS: 9, ExitCode: &exit}
	iteration, of, loss, pace, age, left := 30, 100, 2.5, 1.25, int64(90), int64(3600)
	many := make([]Waiting, rowsShown+2)
	for i := range many {
		many[i] = Waiting{Job: slurm.Job{ID: "5"}}
	}
	opstest.Pinned(t, *rewrite, []opstest.Answer{
		{Name: "a running job", Out: StatusOut{Job: running, Page: "https://ops/7", Tracked: "https://w/7", Source: &cluster.GitSource{Commit: "01"}}},
		{Name: "a running job that writes", Out: StatusOut{Job: running, Pulse: &report.Pulse{LastIter: &iteration, AgeS: &age}}},
		{Name: "a running job that may hang", Out: StatusOut{Job: running, Pulse: &report.Pulse{LastIter: &iteration, AgeS: &age, MayHang: true}}},
		{Name: "a waiting job", Out: StatusOut{Job: waits, Meaning: "others go first", Do: "wait"}},
		{Name: "a waiting job that was tried with less", Out: StatusOut{Job: waits, Earlier: &launch.EarlierOut{}}},
		{Name: "a failed job with its steps", Out: StatusOut{Job: failed, asked: true, Steps: []slurm.Step{
			{ID: "9.0", Name: "train", State: slurm.Failed, ExitCode: &exit, ElapsedS: 9, Nodes: []string{"gpu1", "gpu2"}, MaxRSS: "1G", Submit: "srun bash -c 'guard() {\n  true\n}'"}, {ID: "9.1"},
		}}},
		{Name: "a job without steps", Out: StatusOut{Job: failed, asked: true}},
		{Name: "jobs", Out: ListOut{Jobs: []slurm.Job{running, waits, failed}}},
		{Name: "no jobs that wait", Out: ListOut{unchosen: true}},
		{Name: "no jobs", Out: ListOut{all: true}},
		{Name: "idle jobs", Out: ListOut{Jobs: []slurm.Job{running}, Idle: []slurm.IdleAllocation{{Job: running, For: time.Hour, GPUHours: 16}}}},
		{Name: "watched jobs", Out: ListOut{Jobs: []slurm.Job{running, waits, failed}, watched: true, Progress: map[slurm.JobID]Progress{
			"7": {Iteration: &iteration, Of: &of, Loss: &loss, IterationS: &pace, LineAgeS: &age, RemainingS: &left}, "9": {Iteration: &iteration},
		}}},
		{Name: "a queue", Out: QueueOut{ranked: true, Total: 9, Jobs: []Waiting{{Job: waits, Position: 1, InLine: 3}, {Job: slurm.Job{ID: "6", Reason: "Dependency"}, Tasks: 4}}, Reasons: []ReasonOut{
			{Reason: "Priority", Jobs: 1, Says: "others go first", Do: "wait"}, {Reason: "Dependency", Jobs: 4, Says: "it waits for another"},
		}}},
		{Name: "no queue", Out: QueueOut{Total: 9}},
		{Name: "an empty queue", Out: QueueOut{}},
		{Name: "a long queue", Out: QueueOut{Jobs: many}},
		{Name: "a priority", Out: PriorityOut{JobID: "8", Name: "gpt", Priority: 900, Position: 2, InLine: 3, Parts: []PriorityPart{{"age", 600, 1000, "grows"}, {"nice", -1, 0, "taken off"}}, Line: []Waiting{{Job: waits}}}},
		{Name: "a priority out of line", Out: PriorityOut{JobID: "8", Reason: "JobHeldUser"}},
		{Name: "accounts", Out: AccountsOut{
			User: "ada", Accounts: []AccountOut{
				{Association: slurm.Association{Account: "a", Partition: "prod", QOS: []string{"x", "y"}, DefaultQOS: "x", MaxJobs: "4", GrpTRES: "gpu=8"}, Standing: &Standing{Says: "first"}},
				{Association: slurm.Association{Account: "b"}},
			},
			QOS: []slurm.QOS{{Name: "x", Priority: 7, MaxWall: "1-0", Preempts: []string{"y"}}},
		}},
		{Name: "accounts without shares", Out: AccountsOut{User: "ada", Accounts: []AccountOut{{Association: slurm.Association{Account: "b"}}}}},
		{Name: "everybody's shares", Out: AccountsOut{User: "all", Ranking: []slurm.Share{{User: "ada", Account: " a ", Factor: 0.5, Norm: 0.25, Used: 0.125}, {User: "ben"}}}},
		{Name: "nothing to end", Out: CancelOut{}},
		{Name: "ended", Out: CancelOut{JobID: "7", Name: "gpt", Cancelled: true}},
		{Name: "a step ended", Out: CancelOut{JobID: "7", Name: "gpt", Cancelled: true, Step: "7.0"}},
		{Name: "had ended", Out: CancelOut{JobID: "7", Name: "gpt", State: slurm.Completed}},
		{Name: "several ended", Out: CancelOut{Jobs: []CancelledJob{{JobID: "7", Name: "a", State: slurm.Cancelled}}}},
		{Name: "some not ended", Out: CancelOut{Jobs: []CancelledJob{{JobID: "7", Name: "a"}, {JobID: "8", Name: "b", Error: "refused"}}}},
		{Name: "changed", Out: ChangeOut{JobID: "7", Name: "gpt", Did: "held", State: slurm.Pending, Reason: "JobHeldUser"}},
		{Name: "changed without a reason", Out: ChangeOut{JobID: "7", Name: "gpt", Did: "released", State: slurm.Pending, Reason: "None"}},
		{Name: "waited for", Out: WaitOut{Job: running, Artifact: "/w/out", Alarms: []string{"it was slow"}}},
		{Name: "waited for and ended", Out: WaitOut{Job: running, Artifact: "/w/out", Cancelled: true, SavedGPUHours: 3.25}},
		{Name: "waited for in vain", Out: WaitOut{Job: slurm.Job{ID: "4711", Name: "gpt", State: slurm.Completed}, NoArtifact: "the job ended without its artifact: no file /w/out"}},
		{Name: "waited too long", Out: WaitOut{Job: running, TimedOut: true}},
		{Name: "nothing happened", Out: EventsOut{NextSince: "then"}},
		{Name: "what happened", Out: EventsOut{NextSince: "then", Events: []Event{
			{At: here, Job: "7", Name: "gpt", What: "submitted"}, {At: here, Job: "7", Name: "gpt", What: "started", Restarts: 2}, {At: here, Job: "7", Name: "gpt", What: "ended", State: slurm.Failed},
		}}},
	}, Status(), List(), Queue(), Priority(), Accounts(), Cancel(), Wait(), Events(), History())
}

// A site has accounts, priorities and steps.
type site struct {
	opstest.Site
	shares []slurm.Share
	past   []slurm.Job
}

func (s *site) Past(context.Context, slurm.Filter) ([]slurm.Job, error) { return s.past, nil }

func (*site) Associations(_ context.Context, user string) ([]slurm.Association, error) {
	if user != "alice" {
		return nil, nil
	}
	return []slurm.Association{{Account: "a", User: user, QOS: []string{"x"}}, {Account: "b", User: user}}, nil
}

func (*site) QOS(context.Context) ([]slurm.QOS, error) {
	return []slurm.QOS{{Name: "x"}, {Name: "y"}}, nil
}

func (s *site) Shares(context.Context) ([]slurm.Share, error) {
	if s.shares == nil {
		return nil, errors.New("no multifactor plugin")
	}
	return slices.Clone(s.shares), nil
}

func (*site) Priorities(_ context.Context, id slurm.JobID) ([]slurm.Priority, error) {
	return []slurm.Priority{{Job: id, Total: 900, Age: 300, FairShare: 600, Nice: 5}}, nil
}

func (*site) PriorityWeights(context.Context) (slurm.Priority, error) {
	return slurm.Priority{Age: 1000, QOS: 10}, nil
}

func (*site) RunningSteps(context.Context) ([]slurm.Step, error) {
	return []slurm.Step{{ID: "1.0", State: slurm.Running}}, nil
}

func (*site) Steps(_ context.Context, id slurm.JobID) ([]slurm.Step, error) {
	return []slurm.Step{{ID: string(id) + ".0", Name: "train"}}, nil
}

func onSite(t *testing.T, s *site) *ops.Call {
	t.Helper()
	c := opstest.NewCall(t, &opstest.Site{})
	c.Clusters["test"] = s
	return c
}

func TestEachAccountsStandingIsTold(t *testing.T) {
	t.Parallel()
	s := &site{shares: []slurm.Share{
		{Account: "a", Factor: 0.9},
		{Account: " a", User: "alice", Factor: 0.5, Norm: 0.1, Used: 0.2},
		{Account: "b", User: "alice", Factor: 0.4, Norm: 0.2, Used: 0.1},
		{Account: "a", User: "ben", Factor: 0.8},
		{Account: "c", User: "eve", Factor: 0.5, Norm: 0.5, Used: 0.5},
	}}
	c := onSite(t, s)
	out, err := opstest.Do(t, c, Accounts())
	require.NoError(t, err)
	a := out.(AccountsOut)
	require.Equal(t, []int{2, 4, 4, 4}, []int{a.Accounts[0].Standing.Rank, a.Accounts[0].Standing.Of, a.Accounts[1].Standing.Rank, a.Accounts[1].Standing.Of})
	require.Contains(t, a.Accounts[0].Standing.Says, "place 2 of 4")
	require.Contains(t, a.Accounts[0].Standing.Says, "due 10.0 % and recently used 20.0 %, 2.0 times your due")
	require.Contains(t, a.Accounts[1].Standing.Says, "less than your due")
	require.Contains(t, standing(s.shares, "c", "eve", lang.EN).Says, "just about your due")
	require.Equal(t, []slurm.QOS{{Name: "x"}}, a.QOS)
	out, err = opstest.Do(t, c, Accounts(), "all")
	require.NoError(t, err)
	var order []string
	for _, r := range out.(AccountsOut).Ranking {
		order = append(order, r.User)
	}
	require.Equal(t, []string{"ben", "alice", "eve", "alice"}, order)
	for user, code := range map[string]ops.Code{"eve": ops.NotFound, "a b": ops.BadInput} {
		_, err = opstest.Do(t, c, Accounts(), user)
		require.Equal(t, code, ops.AsError(err).Code, user)
	}
	s.shares = nil
	out, err = opstest.Do(t, c, Accounts(), "me")
	require.NoError(t, err, "a site may keep no shares")
	require.Nil(t, out.(AccountsOut).Accounts[0].Standing)
}

func TestAPriorityIsTakenApart(t *testing.T) {
	t.Parallel()
	p := func(n int64) *int64 { return &n }
	waits := func(id slurm.JobID, priority int64, partition, reason string) slurm.Job {
		return slurm.Job{ID: id, User: "alice", State: slurm.Pending, Partition: partition, Priority: p(priority), Reason: reason}
	}
	jobs := map[slurm.JobID]slurm.Job{
		"1": waits("1", 500, "prod", "Priority"), "2": waits("2", 900, "prod", "Priority"), "3": waits("3", 950, "dev", "Priority"),
		"4": waits("4", 100, "prod", "JobHeldUser"), "5": {ID: "5", User: "alice", State: slurm.Running},
	}
	for i := range fewAhead + 1 {
		id := slurm.JobID("9" + string(rune('0'+i)))
		jobs[id] = waits(id, 2000, "long", "Priority")
	}
	jobs["8"] = waits("8", 3, "long", "Priority")
	c := onSite(t, &site{Site: opstest.Site{KnownJobs: jobs}})
	out, err := opstest.Do(t, c, Priority(), "1")
	require.NoError(t, err)
	o := out.(PriorityOut)
	require.Equal(t, []int{2, 2, 900}, []int{o.Position, o.InLine, int(o.Priority)})
	require.Len(t, o.Line, 1)
	require.Equal(t, slurm.JobID("2"), o.Line[0].ID)
	var parts []string
	for _, part := range o.Parts {
		parts = append(parts, part.Part)
	}
	require.Equal(t, []string{"fair share", "age", "QOS", "nice"}, parts, "the largest first, and what a site weighs")
	out, err = opstest.Do(t, c, Priority(), "8")
	require.NoError(t, err)
	require.Len(t, out.(PriorityOut).Line, fewAhead)
	out, err = opstest.Do(t, c, Priority(), "4")
	require.NoError(t, err)
	require.Zero(t, out.(PriorityOut).Position)
	require.Empty(t, out.(PriorityOut).Line, "a held job is not in line")
	_, err = opstest.Do(t, c, Priority(), "5")
	require.Equal(t, ops.Failed, ops.AsError(err).Code)
}

// A job that was preempted waits as any other; only the accounts know why.
func TestAJobThatWaitsAgainSaysHowItsLastRunEnded(t *testing.T) {
	t.Parallel()
	again := slurm.Job{ID: "7", User: "alice", State: slurm.Pending, Reason: "BeginTime", Restarts: 1}
	known := again
	known.Requeues = []slurm.State{slurm.Preempted}
	c := onSite(t, &site{Site: opstest.Site{KnownJobs: map[slurm.JobID]slurm.Job{"7": again}}, past: []slurm.Job{known}})
	out, err := opstest.Do(t, c, Status(), "7")
	require.NoError(t, err)
	require.Contains(t, opstest.Text(t, out, lang.EN), "the run before is PREEMPTED: it was ended to make room for a job of higher priority\nwaits for its begin time")
	require.Contains(t, opstest.Text(t, out, lang.ZH), "上一次运行为 PREEMPTED：为更高优先级的作业让位而被终止")
}

// Slurm's queue does not tell who cancelled a job, nor does the state of a job that was
// asked to end tell that it was preempted.
func TestStatusSaysWhoEndedAJob(t *testing.T) {
	t.Parallel()
	start, at, code := time.Now().Add(-time.Hour), time.Now().Add(-time.Minute), "143:0"
	gone := slurm.Job{ID: "7", User: "alice", State: slurm.Cancelled, StartedAt: &start, ElapsedS: 60}
	known := gone
	known.Reason = "by uid 4294967"
	preempted := slurm.Job{ID: "8", User: "alice", State: slurm.Failed, StartedAt: &start, PreemptedAt: &at, ExitCode: &code, Restarts: 1, SubmittedAt: &start}
	c := onSite(t, &site{Site: opstest.Site{KnownJobs: map[slurm.JobID]slurm.Job{"7": gone, "8": preempted}}, past: []slurm.Job{known}})
	out, err := opstest.Do(t, c, Status(), "7")
	require.NoError(t, err)
	require.Equal(t, "uid 4294967", out.(StatusOut).CancelledBy)
	require.Contains(t, opstest.Text(t, out, lang.EN), "cancelled by")
	require.Contains(t, opstest.Text(t, out, lang.ZH), "取消者")
	out, err = opstest.Do(t, c, Status(), "8")
	require.NoError(t, err)
	require.Contains(t, opstest.Text(t, out, lang.EN), "Slurm preempted it")
	require.Contains(t, opstest.Text(t, out, lang.ZH), "被 Slurm 抢占")
	require.Contains(t, opstest.Text(t, out, lang.EN), "queued again", "the time of submission that Slurm gives")
	running := preempted
	running.State = slurm.Running
	require.Contains(t, running.Preemption().EN, "Slurm is preempting it")
}

func TestWhichJobsAreListed(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 6, 11, 10, 0, 0, 0, time.UTC)
	ago := func(d time.Duration) *time.Time { at := now.Add(-d); return &at }
	jobs := map[slurm.JobID]slurm.Job{
		"1":   {ID: "1", Name: "a", User: "alice", Account: "x", Partition: "prod", State: slurm.Running, NumNodes: 2, Nodes: []string{"gpu1", "gpu2"}, GPUs: 16, SubmittedAt: ago(5 * time.Hour), StartedAt: ago(4 * time.Hour), ElapsedS: 14400},
		"2":   {ID: "2", Name: "b", User: "alice", Account: "y", Partition: "prod", State: slurm.Running, NumNodes: 2, Nodes: []string{"gpu3", "gpu4"}, GPUs: 16, SubmittedAt: ago(4 * time.Hour), StartedAt: ago(3 * time.Hour), ElapsedS: 10800},
		"3":   {ID: "3", Name: "b", User: "alice", Account: "x", Partition: "dev", State: slurm.Running, NumNodes: 2, Nodes: []string{"gpu5", "gpu6"}, GPUs: 16, SubmittedAt: ago(3 * time.Hour), StartedAt: ago(time.Hour), ElapsedS: 3600},
		"4":   {ID: "4", Name: "c", User: "ben", Partition: "dev", State: slurm.Pending, SubmittedAt: ago(2 * time.Hour)},
		"5":   {ID: "5", Name: "c", User: "alice", Partition: "dev", State: slurm.Failed, SubmittedAt: ago(time.Hour), EndedAt: ago(time.Minute)},
		"6_1": {ID: "6_1", RawID: "61", Name: "d", User: "eve", Partition: "dev", State: slurm.Pending, SubmittedAt: ago(time.Minute)},
	}
	c := onSite(t, &site{Site: opstest.Site{KnownJobs: jobs}})
	c.Now = func() time.Time { return now }
	for words, want := range map[string]string{
		"":                     "3 2 1",
		"--user all":           "6_1 4 3 2 1",
		"--user ben,eve":       "6_1 4",
		"--user ben":           "4",
		"--all":                "5 3 2 1",
		"--all --limit 2":      "5 3",
		"--state failed":       "5",
		"--state R":            "3 2 1",
		"--partition dev":      "3",
		"--account y,z":        "2",
		"--name b":             "3 2",
		"--nodes gpu[2-3]":     "2 1",
		"4 6":                  "6_1 4",
		"4 9999":               "4",
		"61 4":                 "6_1 4",
		"4 1 --user ben":       "4",
		"--idle 30":            "3 2",
		"--idle 90":            "2",
		"--idle 30 --limit 1":  "3",
		"--name b --account x": "3",
	} {
		out, err := opstest.Do(t, c, List(), strings.Fields(words)...)
		require.NoError(t, err, words)
		var ids, idle []string
		for _, j := range out.(ListOut).Jobs {
			require.Equal(t, "test", j.Cluster)
			ids = append(ids, string(j.ID))
		}
		require.Equal(t, want, strings.Join(ids, " "), words)
		for _, i := range out.(ListOut).Idle {
			idle = append(idle, string(i.Job.ID))
		}
		require.Equal(t, strings.Contains(words, "idle"), strings.Join(idle, " ") == want, words)
		require.Equal(t, strings.Contains(words, "9999"), strings.Contains(opstest.Text(t, out, lang.EN), "job 9999: not known to Slurm"), words)
	}
	for _, words := range []string{"9999", "9999 9998", "--watch 9999", "6_9"} {
		_, err := opstest.Do(t, c, List(), strings.Fields(words)...)
		require.Equal(t, ops.NotFound, ops.AsError(err).Code, words)
	}
	for words, field := range map[string]string{"--state NONE": "state", "--limit=-1": "limit", "--nodes gpu[": "nodes", "--idle=-1": "idle", "my jobs": "job", "4 mine": "job"} {
		_, err := opstest.Do(t, c, List(), strings.Fields(words)...)
		require.Equal(t, field, ops.AsError(err).Field, words)
	}
	out, err := opstest.Do(t, c, Status(), "1", "--steps")
	require.NoError(t, err)
	require.Contains(t, opstest.Text(t, out, lang.EN), "1.0")
}

// Who asks, and on which surface, decides whether a job's code and specification are
// shown.
func TestWhoIsToldOfAJobsCode(t *testing.T) {
	t.Parallel()
	s := &opstest.Site{KnownJobs: map[slurm.JobID]slurm.Job{}}
	c := opstest.NewCall(t, s)
	_, err := opstest.Do(t, c, launch.Submit(), append([]string{"--yes"}, opstest.GoodJob...)...)
	require.NoError(t, err)
	s.Put(slurm.Job{ID: "4701", Name: "gpt", User: "alice", State: slurm.Running})
	docs := c.Docs()
	source := cluster.GitSource{Commit: "01", Changed: true, Diff: "+x\n", New: []string{"n"}}
	require.NoError(t, docs.Put(t.Context(), "source", "test/4701", source, time.Now().Add(time.Hour)))
	for who, want := range map[ops.Caller][3]bool{ // whether the specification, the code and its diff are shown
		{Surface: ops.Shell, User: "alice"}:                 {true, true, true},
		{Surface: ops.MCP, User: "alice"}:                   {false, true, false},
		{Surface: ops.Slack, User: "alice"}:                 {false, true, false},
		{Surface: ops.Shell, User: "ben"}:                   {false, false, false},
		{Surface: ops.Slack, User: "ben"}:                   {false, false, false},
		{Surface: ops.Slack, User: "grace", Operator: true}: {false, true, false},
	} {
		c.Who = who
		out, err := opstest.Do(t, c, Status(), "4701")
		require.NoError(t, err, who)
		o := out.(StatusOut)
		require.Equal(t, want, [3]bool{o.Spec != nil, o.Source != nil, o.Source != nil && o.Source.Diff != ""}, who)
	}
}
