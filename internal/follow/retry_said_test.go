package follow

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/ops/fleet"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/report"
	"github.com/megatron-ops/megatron-ops/slurm/watch"
)

// A busyYard is a yard that takes jobs, and can be out of reach.
type busyYard struct {
	yard
	mu        sync.Mutex
	submitted []slurm.Submission
	away      bool
}

func (y *busyYard) Submit(_ context.Context, s slurm.Submission) (slurm.JobID, error) {
	y.submitted = append(y.submitted, s)
	return "90", nil
}

func (y *busyYard) Jobs(context.Context, slurm.Filter) ([]slurm.Job, error) {
	y.mu.Lock()
	defer y.mu.Unlock()
	if y.away {
		return nil, slurm.ErrUnreachable
	}
	return []slurm.Job{y.job}, nil
}

// RunningSteps returns none: the job holds its nodes and does nothing.
func (y *busyYard) RunningSteps(context.Context) ([]slurm.Step, error) { return nil, nil }

func (y *busyYard) reach(away bool) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.away = away
}

// The news of a retry say which nodes it has, and Slurm is asked for exactly those.
func TestWhatIsSaidOfTheNodesOfARetry(t *testing.T) {
	for name, tt := range map[string]struct {
		spec, down string
		says       string
		zh         string
		script     string
		not        string
	}{
		"left out": {spec: `"nodes":2`, says: ", without gpu2; `cancel 90` stops that", zh: "，排除 gpu2；", script: "#SBATCH --exclude=gpu2"},
		"awaited": {
			spec: `"nodes":3`, down: "gpu2", says: ", as soon as gpu2, now out of service, is back: without it too few nodes are left; `cancel 90`", zh: "，待已停用的 gpu2 恢复后开始",
			not: "--exclude",
		},
		"replaced": {spec: `"nodes":2,"nodelist":"gpu[1-2]"`, says: ", without gpu2, with the spares gpu3; `cancel 90`", zh: "，改用备用节点 gpu3；", script: "#SBATCH --nodelist=gpu[1,3]"},
	} {
		l, _, _ := newQueue(t, `{"name":"gpt","gpus_per_node":0,"script":"train.py","worktree":"/w","time":"10:00","retry":{"max":3},`+tt.spec+`}`)
		y := &busyYard{yard: yard{down: tt.down}}
		l.f.Service.Clusters["bench"] = y
		require.NoError(t, fleet.PutAvoided(t.Context(), l.f.Service, "bench", fleet.Avoided{Node: "gpu3", Spare: true, Owner: "ada", Until: time.Now().Add(time.Hour)}))
		n := News{Job: l.job, Report: &report.Report{Class: outcome.GPUHardware, RootLine: "Xid 79", Retry: true, ExcludeNodes: []string{"gpu2"}}}
		l.f.recover(t.Context(), l.st, &n)
		require.Contains(t, n.Why.EN, "submitted again as 90 (retry 1 of 3), to start in 1 min"+tt.says, name)
		require.Contains(t, n.Why.ZH, tt.zh, name)
		require.Len(t, y.submitted, 1)
		require.Contains(t, y.submitted[0].Script, tt.script, name)
		if tt.not != "" {
			require.NotContains(t, y.submitted[0].Script, tt.not, name)
		}
	}
}

// Operators are told when the watcher loses a cluster and finds it again, and the owner of a job
// that holds its nodes and runs nothing on them.
func TestWhatTheWatcherSeesIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, _, told := newQueue(t, `{}`)
		began := time.Now()
		l.job.StartedAt = &began
		y := &busyYard{}
		y.job = l.job
		w := watch.New(y, watch.Options{})
		ctx, stop := context.WithCancel(t.Context())
		var under sync.WaitGroup
		sub := w.Subscribe()
		w.Watch(l.job)
		under.Go(func() { l.f.listen(ctx, l.st, sub) })
		under.Go(func() { w.Run(ctx) })
		titles := func() (all []string) {
			time.Sleep(40 * time.Minute)
			synctest.Wait()
			notices, err := l.f.Service.Notices(t.Context())
			require.NoError(t, err)
			for _, n := range notices {
				all = append(all, n.Title.EN)
			}
			return all
		}
		require.Empty(t, titles())
		require.NotEmpty(t, *told)
		last := (*told)[len(*told)-1]
		require.Equal(t, slurm.JobID("77"), last.Job.ID)
		require.Equal(t, "bench", last.Job.Cluster)
		require.Len(t, last.Alarms, 1)
		require.Contains(t, last.Alarms[0].What.EN, "Has held 16 GPUs for ")
		y.reach(true)
		require.Contains(t, titles()[0], "bench does not answer since")
		y.reach(false)
		require.Contains(t, titles(), "bench answers again")
		stop()
		under.Wait()
	})
}

// A retry that the cluster refuses is said with its reason.
func TestARetryThatIsRefusedIsSaid(t *testing.T) {
	l, _, _ := newQueue(t, `{"retry":{"max":3}}`)
	n := News{Job: l.job, Report: &report.Report{Class: outcome.NCCLIB, RootLine: "port 1 of mlx5_0 is down", Retry: true}}
	l.f.recover(t.Context(), l.st, &n)
	require.Empty(t, n.Next)
	require.Contains(t, n.Why.EN, "could not be submitted again: ")
	require.Contains(t, n.Why.ZH, "无法再次提交：")
}
