package jobcontrol_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/jobcontrol"
	"github.com/megatron-ops/megatron-ops/internal/ops/opstest"
	"github.com/megatron-ops/megatron-ops/slurm"
)

func TestGPUHoursAreToldByWhoUsedThemAndHowTheyEnded(t *testing.T) {
	now := time.Now()
	site := &opstest.Site{KnownJobs: map[slurm.JobID]slurm.Job{}}
	for i, j := range []slurm.Job{
		{ID: "1", User: "alice", Account: "research", State: slurm.Completed, GPUs: 8, ElapsedS: 7200},
		{ID: "2", User: "alice", Account: "research", State: slurm.Failed, GPUs: 8, ElapsedS: 3600, Restarts: 2},
		{ID: "3", User: "bob", Account: "infra", State: slurm.Timeout, GPUs: 16, ElapsedS: 3600},
		{ID: "4", User: "bob", Account: "infra", State: slurm.Cancelled, GPUs: 4, ElapsedS: 1800},
		{ID: "5", User: "bob", Account: "infra", State: slurm.OutOfMemory, GPUs: 4, ElapsedS: 900},
		{ID: "6", User: "bob", Account: "infra", State: slurm.Running, GPUs: 64, ElapsedS: 3600},
	} {
		submitted, started, ended := now.Add(-30*time.Hour), now.Add(-29*time.Hour), now.Add(-time.Duration(i)*time.Hour)
		j.SubmittedAt, j.StartedAt, j.EndedAt = &submitted, &started, &ended
		site.KnownJobs[j.ID] = j
	}
	c := opstest.NewCall(t, site)
	out, err := opstest.Do(t, c, jobcontrol.History(), "--user", "all", "--by", "account", "--price", "2.10")
	require.NoError(t, err)
	cost := func(hours float64) *float64 { c := hours * 2.10; return &c }
	require.Equal(t, []jobcontrol.HistoryGroup{
		{Of: "research", Jobs: 2, GPUHours: 24, Completed: 16, Failed: 8, Restarted: 2, WaitedH: 2, Cost: cost(24)},
		{Of: "infra", Jobs: 3, GPUHours: 19, Failed: 1, Cut: 16, Cancelled: 2, WaitedH: 3, Cost: cost(19)},
	}, out.(jobcontrol.HistoryOut).Groups)
	text := opstest.Text(t, out, lang.EN)
	for _, want := range []string{"5 jobs ended since", "43.0 GPU hours, cost 90.30", "research  2     24.0       50.40", "16.0 (67 %)", "all       5     43.0       90.30"} {
		require.Contains(t, text, want)
	}
	require.Contains(t, opstest.Text(t, out, lang.ZH), "费用 90.30")

	out, err = opstest.Do(t, c, jobcontrol.History(), "--user", "all", "--by", "user", "-A", "infra")
	require.NoError(t, err)
	require.NotContains(t, opstest.Text(t, out, lang.EN), "cost", "without a price there is none")
	require.NotContains(t, opstest.Text(t, out, lang.EN), "alice")
	for _, by := range []string{"day", "week", "month", "qos", "name", "partition", "state"} {
		out, err = opstest.Do(t, c, jobcontrol.History(), "--user", "all", "--by", by)
		require.NoError(t, err)
		sum, last := 0.0, ""
		for _, g := range out.(jobcontrol.HistoryOut).Groups {
			if sum += g.GPUHours; by == "day" || by == "week" {
				require.Less(t, last, g.Of, "times are in order")
				last = g.Of
			}
		}
		require.InDelta(t, 43, sum, 0.01, by)
		require.True(t, strings.Contains(opstest.Text(t, out, lang.EN), by))
	}
	_, err = opstest.Do(t, c, jobcontrol.History(), "--price=-1")
	require.Equal(t, ops.BadInput, ops.AsError(err).Code)
	_, err = opstest.Do(t, c, jobcontrol.History(), "--by", "moon")
	require.Equal(t, ops.BadInput, ops.AsError(err).Code)
}

// Hours by purpose come from the jobs' logs. Hours that the logs do not explain are
// unknown, and the sum is complete.
func TestGoodputIsToldByCause(t *testing.T) {
	was := time.Local
	time.Local = time.UTC
	t.Cleanup(func() { time.Local = was })
	start := time.Now().UTC().Add(-2 * time.Hour).Truncate(time.Second)
	dir := t.TempDir()
	var log strings.Builder
	for n := 1; n <= 30; n++ {
		at := start.Add(10*time.Minute + time.Duration(n)*time.Minute)
		fmt.Fprintf(&log, " [%s] iteration %8d/     100 | elapsed time per iteration (ms): 60000.0 | lm loss: 2.0 |\n", at.Format("2006-01-02 15:04:05.000000"), n)
		if n == 20 {
			log.WriteString("  successfully saved checkpoint from iteration      20 to /ckpt [ t 1/1, p 1/1 ]\n")
		}
	}
	opstest.Write(t, filepath.Join(dir, "gpt-1.out"), log.String())
	end := start.Add(40 * time.Minute)
	site := &opstest.Site{KnownJobs: map[slurm.JobID]slurm.Job{
		"1": {ID: "1", User: "alice", Name: "gpt", Account: "research", State: slurm.NodeFail, GPUs: 6, ElapsedS: 2400, StartedAt: &start, EndedAt: &end, Stdout: filepath.Join(dir, "gpt-1.out")},
		"2": {ID: "2", User: "alice", Name: "gpt", Account: "research", State: slurm.Completed, GPUs: 1, ElapsedS: 3600, StartedAt: &start, EndedAt: &end, Stdout: "/nosuch/gpt-2.out"},
	}}
	c := opstest.NewCall(t, site)
	out, err := opstest.Do(t, c, jobcontrol.History(), "--goodput", "--by", "account")
	require.NoError(t, err)
	g := out.(jobcontrol.HistoryOut).Groups[0].Goodput
	require.InDelta(t, 2, g.Productive, 1e-6)
	require.InDelta(t, 1, g.Lost, 1e-6)
	require.InDelta(t, 1, g.Startup, 1e-6)
	require.InDelta(t, 0, g.Idle, 1e-6)
	require.InDelta(t, 1, g.Unknown, 1e-6)
	require.Equal(t, 1, g.Judged)
	text := opstest.Text(t, out, lang.EN)
	require.Contains(t, text, "2.0 (40 %)")
	require.Contains(t, text, "from Slurm's accounts and the logs of 1 of 2 jobs")
	require.Contains(t, opstest.Text(t, out, lang.ZH), "未完成的运行在最后一个检查点之后的训练")
	out, err = opstest.Do(t, c, jobcontrol.History(), "--goodput")
	require.NoError(t, err)
	require.Len(t, out.(jobcontrol.HistoryOut).Groups, 2, "a line a job")

	suspended := site.KnownJobs["1"]
	suspended.ElapsedS = 1200
	site.KnownJobs["1"] = suspended
	out, err = opstest.Do(t, c, jobcontrol.History(), "--goodput")
	require.NoError(t, err)
	require.Contains(t, opstest.Text(t, out, lang.EN), "1.0 (50 %)  0.5 (25 %)  0.5 (25 %)", "the shares of what Slurm accounts")
}

// A requeued job counts the hours of each of its runs, as sacct --duplicates does,
// whether or not it runs again.
func TestEveryRunOfARequeuedJobIsCounted(t *testing.T) {
	at := time.Now().Add(-48 * time.Hour)
	record := func(id slurm.JobID, state slurm.State, hours int64) slurm.Job {
		at = at.Add(time.Hour)
		begun := at
		end := begun.Add(time.Duration(hours) * time.Hour)
		return slurm.Job{
			ID: id, State: state, User: "alice", Account: "llm", GPUs: 8, ElapsedS: hours * 3600, SubmittedAt: &begun, StartedAt: &begun, EndedAt: &end,
		}
	}
	records := []slurm.Job{
		record("7", slurm.NodeFail, 3), record("7", slurm.Preempted, 2), record("7", slurm.Completed, 1),
		record("8", slurm.Requeued, 5), record("8", slurm.Running, 1), // the current run has not ended
		record("9", slurm.Failed, 1),
		record("10", slurm.Requeued, 4), // the job waits again
	}
	var want float64 // the sum over the records of ended runs
	for _, r := range records {
		if r.State != slurm.Running {
			want += float64(r.GPUs) * float64(r.ElapsedS) / 3600
		}
	}
	site := &opstest.Site{KnownJobs: map[slurm.JobID]slurm.Job{}}
	for _, j := range slurm.FoldRuns(records) {
		site.KnownJobs[j.ID] = j
	}
	c := opstest.NewCall(t, site)
	told, err := opstest.Do(t, c, jobcontrol.History(), "--user", "all", "--by", "account")
	require.NoError(t, err)
	out := told.(jobcontrol.HistoryOut)
	require.InDelta(t, 128, want, 0)
	require.InDelta(t, want, out.GPUHours, 0.001)
	require.Equal(t, 4, out.Total)
	require.Len(t, out.Groups, 1)
	g := out.Groups[0]
	require.Equal(t, []float64{128, 8, 24 + 8, 16 + 40 + 32}, []float64{g.GPUHours, g.Completed, g.Failed, g.Cut})
	require.Equal(t, 3, g.Restarted)
	states := map[slurm.State]jobcontrol.HistoryState{}
	for _, s := range out.States {
		states[s.State] = s
	}
	require.Equal(t, jobcontrol.HistoryState{State: slurm.NodeFail, GPUHours: 24}, states[slurm.NodeFail])
	require.Equal(t, jobcontrol.HistoryState{State: slurm.Requeued, Jobs: 2, GPUHours: 72}, states[slurm.Requeued])
	told, err = opstest.Do(t, c, jobcontrol.History(), "--user", "all")
	require.NoError(t, err)
	require.Contains(t, opstest.Text(t, told, lang.EN), "24.0 GPU hours of runs before a requeue")
	require.Contains(t, opstest.Text(t, told, lang.ZH), "重新排队之前的运行")
}
