package jobcontrol_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops/jobcontrol"
	"github.com/megatron-ops/megatron-ops/internal/ops/opstest"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// A drainedSite is a cluster with nodes out of service.
type drainedSite struct{ *opstest.Site }

func (drainedSite) Nodes(context.Context) ([]slurm.Node, error) {
	at := time.Date(2026, 6, 11, 10, 0, 0, 0, time.Local)
	return []slurm.Node{
		{Name: "gpu1", State: "idle", Partitions: []string{"prod"}},
		{Name: "gpu2", State: "drained", Partitions: []string{"prod"}, Reason: "xid 79", ReasonBy: "root", ReasonAt: &at},
		{Name: "gpu3", State: "drained", Partitions: []string{"prod"}, Reason: "xid 79", ReasonBy: "root", ReasonAt: &at},
		{Name: "gpu4", State: "down*", Partitions: []string{"dev"}},
	}, nil
}

// A job that waits for nodes out of service is told which, in what state, and the
// administrator's reason.
func TestAJobThatWaitsForADrainedNode(t *testing.T) {
	xid := "drained: xid 79 (root, 2026-06-11 10:00:00)"
	for name, c := range map[string]struct {
		reason, partition string
		says, never       []string
	}{
		"the reason names it":    {"ReqNodeNotAvail, UnavailableNodes:gpu[2,4]", "prod", []string{"gpu2 " + xid, "gpu4 down*: no reason is given"}, []string{"gpu3"}},
		"the reason names none":  {"ReqNodeNotAvail, UnavailableNodes:", "prod", []string{"gpu[2-3] " + xid}, []string{"gpu4"}},
		"a partition's nodes":    {"Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority partitions", "prod", []string{"gpu[2-3] " + xid}, []string{"gpu4"}},
		"of several partitions":  {"Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority partitions", "dev,prod", []string{"gpu[2-3] " + xid, "gpu4 down*"}, nil},
		"the node is back":       {"ReqNodeNotAvail, UnavailableNodes:gpu1", "prod", nil, []string{"xid", "out of service"}},
		"a maintenance to come":  {"ReqNodeNotAvail, Reserved for maintenance", "prod", nil, []string{"xid"}},
		"another's reservation":  {"ReqNodeNotAvail, May be reserved for other job", "prod", nil, []string{"xid"}},
		"waits for other things": {"Resources", "prod", nil, []string{"xid"}},
	} {
		j := slurm.Job{ID: "7", Name: "gpt", User: "alice", Partition: c.partition, State: slurm.Pending, Reason: c.reason}
		site := drainedSite{&opstest.Site{KnownJobs: map[slurm.JobID]slurm.Job{"7": j}}}
		call := opstest.NewCall(t, site.Site)
		call.Service.Clusters["test"] = site
		status, err := opstest.Do(t, call, jobcontrol.Status(), "7")
		require.NoError(t, err)
		queue, err := opstest.Do(t, call, jobcontrol.Queue())
		require.NoError(t, err)
		for _, out := range []any{status, queue} {
			text := opstest.Text(t, out, lang.EN)
			for _, w := range c.says {
				require.Contains(t, text, w, name)
			}
			for _, w := range c.never {
				require.NotContains(t, text, w, name)
			}
		}
	}
}

// An accountsSite is a cluster whose accounts hold other jobs than its queue.
type accountsSite struct {
	*opstest.Site
	past []slurm.Job
}

func (s accountsSite) Past(context.Context, slurm.Filter) ([]slurm.Job, error) { return s.past, nil }

// An array with failed tasks names the first, also once it has left the queue.
func TestStatusOfAnArrayWithFailedTasks(t *testing.T) {
	early, late := time.Date(2026, 6, 11, 10, 0, 0, 0, time.Local), time.Date(2026, 6, 11, 10, 5, 0, 0, time.Local)
	two, one := "2:0", "1:0"
	past := []slurm.Job{
		{ID: "7_1", State: slurm.Completed, EndedAt: &early},
		{ID: "7_2", State: slurm.Failed, EndedAt: &late, ExitCode: &one},
		{ID: "7_3", State: slurm.Failed, EndedAt: &early, ExitCode: &two},
		{ID: "7_4", State: slurm.Cancelled, EndedAt: &early},
		{ID: "7_5", State: slurm.Running, GPUs: 4, ElapsedS: 60},
	}
	queued, _ := slurm.Fold("7", past[4:]) // the queue lists only the task that runs
	site := accountsSite{&opstest.Site{KnownJobs: map[slurm.JobID]slurm.Job{"7": queued}}, past}
	call := opstest.NewCall(t, site.Site)
	call.Service.Clusters["test"] = site
	out, err := opstest.Do(t, call, jobcontrol.Status(), "7")
	require.NoError(t, err)
	text := opstest.Text(t, out, lang.EN)
	require.Contains(t, text, "1 CANCELLED, 1 COMPLETED, 2 FAILED, 1 RUNNING")
	require.Contains(t, text, "7_3 (FAILED, exit code 2:0, 2026-06-11 10:00:00); 2 failed")
	require.Contains(t, text, "diagnose 7_3")
	require.Regexp(t, `GPUs \(running tasks\) +4\n`, text)
	require.Regexp(t, `elapsed / limit \(one task\) +01:00\n`, text)
	over, _ := slurm.Fold("7", past[:4])
	require.Equal(t, "2:0", *over.ExitCode, "the exit code is that of the task that failed first")
	require.Contains(t, opstest.Text(t, out, lang.ZH), "7_3（FAILED，退出码 2:0，2026-06-11 10:00:00）；共 2 个任务失败")
}

// A job that Slurm ended as at a time limit, long before its own, is not told to ask for
// more time.
func TestATimeoutBeforeTheTimeLimit(t *testing.T) {
	limit := int64(1800)
	for elapsed, early := range map[int64]bool{82: true, 1795: false, 1830: false} {
		j := slurm.Job{ID: "7", State: slurm.Timeout, Reason: "TimeLimit", ElapsedS: elapsed, TimeLimitS: &limit}
		out, err := opstest.Do(t, opstest.NewCall(t, &opstest.Site{KnownJobs: map[slurm.JobID]slurm.Job{"7": j}}), jobcontrol.Status(), "7")
		require.NoError(t, err)
		text := opstest.Text(t, out, lang.EN)
		if early {
			require.Contains(t, text, "its reservation ended")
			require.NotContains(t, text, "ask for more time")
		} else {
			require.Contains(t, text, "ask for more time")
		}
	}
}
