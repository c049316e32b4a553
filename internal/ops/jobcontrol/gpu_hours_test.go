package jobcontrol_test

import (
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
