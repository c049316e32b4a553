package jobcontrol

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/opstest"
	"github.com/megatron-ops/megatron-ops/slurm"
)

func TestAStandingIsSaidInWords(t *testing.T) {
	shares := []slurm.Share{
		{Account: "root"},
		{Account: " ml", User: "alice", Norm: 0.25, Used: 0.5, Factor: 0.5},
		{Account: "ml", User: "bob", Norm: 0.25, Used: 0, Factor: 1},
		{Account: "ml", User: "eve", Norm: 0.5, Used: 0.5, Factor: 0.25},
	}
	s := standing(shares, "ml", "alice", lang.EN)
	require.Equal(t, 2, s.Rank)
	require.Equal(t, 3, s.Of)
	require.Contains(t, s.Says, "2.0 times your due")
	require.Contains(t, standing(shares, "ml", "bob", lang.ZH).Says, "少于应得份额")
	require.Nil(t, standing(shares, "other", "alice", lang.EN))
}

func TestAPlaceInLineIsAmongThoseWhoCompete(t *testing.T) {
	job := func(id string, priority int64, reason string) slurm.Job {
		return slurm.Job{ID: slurm.JobID(id), State: slurm.Pending, Partition: "prod", Priority: &priority, Reason: reason}
	}
	line := inLine([]slurm.Job{
		job("1", 5, "Priority"), job("2", 9, "Resources"), job("3", 7, "Dependency"), job("4", 0, "JobHeldUser"),
		job("5_1", 6, "Priority"), job("5_2", 6, "Priority"),
	})
	var got []string
	places := map[slurm.JobID]int{}
	for _, w := range line {
		got = append(got, string(w.ID))
		places[w.ID] = w.Position
	}
	require.Equal(t, []string{"2", "3", "5", "1", "4"}, got)
	require.Equal(t, map[slurm.JobID]int{"2": 1, "3": 0, "5": 2, "1": 3, "4": 0}, places)
}

// The components of a heterogeneous job start together. After a node's failure the first
// waits out the time after a requeue, and Slurm may give the second another reason.
func TestAHeterogeneousJobIsOneInLine(t *testing.T) {
	n := int64(100)
	component := func(id slurm.JobID, nodes, gpus int, reason string) slurm.Job {
		return slurm.Job{ID: id, Partition: "p", Priority: &n, NumNodes: nodes, GPUs: gpus, Reason: reason}
	}
	for _, reasons := range [][2]string{{"BeginTime", "None"}, {"None", "BeginTime"}, {"BeginTime", "BeginTime"}} {
		line := inLine([]slurm.Job{component("7+0", 1, 2, reasons[0]), component("7+1", 2, 2, reasons[1]), {ID: "8", Partition: "p", Reason: "Resources"}})
		require.Len(t, line, 2)
		require.EqualValues(t, "7", line[0].ID)
		require.Equal(t, []int{3, 4, 0}, []int{line[0].NumNodes, line[0].GPUs, line[0].Tasks})
		require.Equal(t, "BeginTime", line[0].Reason)
		require.Zero(t, line[0].Position)
		require.Equal(t, 1, line[1].Position)
	}
	line := inLine([]slurm.Job{component("7+0", 1, 2, "Resources"), component("7+1", 2, 2, "Resources")})
	require.Equal(t, 1, line[0].Position)
}

func TestAClusterWithoutAccountsSaysSo(t *testing.T) {
	c := opstest.NewCall(t, &opstest.Site{KnownJobs: map[slurm.JobID]slurm.Job{"1": {ID: "1", User: "alice", State: slurm.Pending}}})
	_, err := opstest.Do(t, c, Accounts())
	require.Equal(t, "cluster", ops.AsError(err).Field)
	_, err = opstest.Do(t, c, Priority(), "1")
	require.Equal(t, "cluster", ops.AsError(err).Field)
	out, err := opstest.Do(t, c, Queue(), "--mine")
	require.NoError(t, err)
	require.Equal(t, 1, out.(QueueOut).Jobs[0].Position)
	require.NotContains(t, opstest.Text(t, out, lang.EN), "priority 1", "it would only answer the same")
	_, err = opstest.Do(t, c, History(), "--days=-1")
	require.Equal(t, "days", ops.AsError(err).Field)
}

func TestReasonsHaveTheColonOfTheirLanguage(t *testing.T) {
	q := QueueOut{Jobs: []Waiting{{Job: slurm.Job{ID: "1"}}}, Reasons: []ReasonOut{{Reason: "BeginTime", Jobs: 2, Says: "未到开始时间"}}}
	require.Contains(t, opstest.Text(t, q, lang.ZH), "BeginTime (2)：未到开始时间")
	require.Contains(t, opstest.Text(t, q, lang.EN), "BeginTime (2): ")
}

func TestWhoseJobsWereSoughtIsKeptInWhatToDoNext(t *testing.T) {
	c := opstest.NewCall(t, &opstest.Site{})
	for who, next := range map[string]string{"bob": "list --all --user bob", "": "list --all"} {
		out, err := opstest.Do(t, c, List(), "--user", who)
		require.NoError(t, err)
		require.Equal(t, []string{next}, out.(ListOut).View(lang.EN).Next)
	}
}

func TestALongQueueIsCutForPeople(t *testing.T) {
	var q QueueOut
	for i := range 10_000 {
		q.Jobs = append(q.Jobs, Waiting{Job: slurm.Job{ID: slurm.JobID(strconv.Itoa(i + 1)), State: slurm.Pending}})
	}
	said := opstest.Text(t, q, lang.EN)
	require.Contains(t, said, "9950 more are waiting")
	require.Less(t, len(said), 10_000)
}

func TestHistoryIsSummedInBothLanguages(t *testing.T) {
	o := HistoryOut{
		Total:    3,
		GPUHours: 12.34,
		Since:    time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC),
		States:   []HistoryState{{State: slurm.Completed, Jobs: 3, GPUHours: 12.34}},
	}
	require.Equal(t, "3 jobs ended since 2026-03-01, 12.3 GPU hours", o.View(lang.EN).Title)
	require.Equal(t, "自 2026-03-01 以来结束 3 个作业，12.3 GPU 小时", o.View(lang.ZH).Title)
}
