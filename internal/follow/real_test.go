package follow

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/fleet"
	"github.com/megatron-ops/megatron-ops/internal/ops/jobcontrol"
	"github.com/megatron-ops/megatron-ops/internal/ops/launch"
	"github.com/megatron-ops/megatron-ops/internal/ops/operations"
	"github.com/megatron-ops/megatron-ops/internal/ops/opstest"
	"github.com/megatron-ops/megatron-ops/internal/store"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/job"
	"github.com/megatron-ops/megatron-ops/slurm/slurmtest"
	"github.com/megatron-ops/megatron-ops/slurm/watch"
)

// training saves a checkpoint a hundred iterations after the last one and then runs
// until something ends it.
const training = `#!/bin/bash
[[ $* =~ --save\ ([^ ]+) ]] || exit 4
dir=${BASH_REMATCH[1]} last=0
[[ ! -f $dir/latest_checkpointed_iteration.txt ]] || last=$(<"$dir/latest_checkpointed_iteration.txt")
next=$(printf %07d $((10#$last + 100)))
mkdir -p "$dir/iter_$next" && touch "$dir/iter_$next/metadata.json"
echo $((10#$next)) >"$dir/latest_checkpointed_iteration.txt"
echo "training from iteration $last: $*"
exec sleep 300
`

// TestRunsGoOnOnSlurm has four runs of alice's. One reaches its time limit and is
// retried, one reaches it as a chain, one is preempted, and one loses its node because
// the daemon is killed.
func TestRunsGoOnOnSlurm(t *testing.T) {
	real := slurmtest.Start(t, slurmtest.Options{SlurmdTimeout: 5, Preempt: true})
	alice := opstest.As(t, real, "alice")
	tree := filepath.Join(real.Work, "tree")
	require.NoError(t, os.MkdirAll(tree, 0o777))
	require.NoError(t, os.Chmod(tree, 0o777)) //nolint:gosec // alice's jobs write there
	require.NoError(t, os.WriteFile(filepath.Join(tree, "train.sh"), []byte(training), 0o755))
	st, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "state.db"))
	require.NoError(t, err)
	call := &ops.Call{
		Service: &ops.Service{
			Clusters: map[string]ops.Cluster{"real": alice}, Default: "real", Now: time.Now, Self: "alice",
			Store: func() (*store.Store, error) { return st, nil },
		},
		Who: ops.Caller{Surface: ops.Shell, ID: "alice", User: "alice"},
	}
	var mu sync.Mutex
	var news []News
	w := watch.New(alice, watch.Options{Interval: time.Second, Floor: 500 * time.Millisecond})
	f := &Follower{
		Service: call.Service, Log: slog.New(slog.DiscardHandler), Interval: time.Second,
		Watchers: map[string]*watch.Watcher{"real": w},
		Tell: func(_ context.Context, n News) error {
			mu.Lock()
			defer mu.Unlock()
			news = append(news, n)
			return nil
		},
	}
	ctx, stop := context.WithCancel(context.Background())
	go w.Run(ctx)
	done := make(chan error, 1)
	go func() { done <- f.Run(ctx) }()
	t.Cleanup(func() {
		_, _ = real.Run(context.Background(), "scancel", "--user=alice")
		stop()
		require.NoError(t, <-done)
		st.Close()
	})
	submit := func(name, node string, s job.Spec) slurm.JobID {
		t.Helper()
		none, no := 0, false
		s.Name, s.Worktree, s.Nodelist, s.GPUsPerNode, s.Requeue, s.Guards = name, tree, node, &none, &no, &no
		s.Launcher, s.LauncherArgv, s.Script, s.Partition = job.Custom, []string{"bash"}, "train.sh", "prod"
		s.Args = []string{"--save", "ckpt-" + name}
		op, _ := operations.Lookup("submit")
		out, err := op.Run(t.Context(), call, &launch.SubmitIn{SpecIn: launch.SpecIn{Spec: s}, Yes: true, Force: true})
		require.NoError(t, err)
		require.NotNil(t, out.(launch.SubmitOut).JobID)
		return *out.(launch.SubmitOut).JobID
	}
	require.NoError(t, fleet.PutAvoided(t.Context(), call.Service, "real", fleet.Avoided{Node: "gpu3", Spare: true, Owner: "alice", Until: time.Now().Add(time.Hour)}))
	limit := submit("limit", "gpu1", job.Spec{Time: "1", Retry: job.Retry{On: []string{"slurm_time_limit"}}})
	two := 2
	chain := submit("chain", "gpu1", job.Spec{Time: "1", Chain: &two})
	victim := submit("victim", "gpu2", job.Spec{Time: "10", QOS: "scavenge", Retry: job.Retry{On: []string{"slurm_preempted"}}})
	lost := submit("lost", "gpu4", job.Spec{Time: "10", Retry: job.Retry{On: []string{"slurm_node_fail"}}})
	state := func(id slurm.JobID) slurm.Job {
		j, err := alice.Job(t.Context(), id)
		require.NoError(t, err)
		return j
	}
	for _, id := range []slurm.JobID{limit, chain, victim, lost} {
		require.Eventually(t, func() bool { return state(id).State == slurm.Running }, 40*time.Second, 200*time.Millisecond, "job %s", id)
	}
	require.Eventually(t, func() bool {
		_, err := os.Stat(filepath.Join(tree, "ckpt-lost", "latest_checkpointed_iteration.txt"))
		return err == nil
	}, 20*time.Second, 100*time.Millisecond)
	// The user of a job that must wait is told what it could ask for instead.
	four, yes := 4, true
	wide := submit("wide", "", job.Spec{Nodes: &four, Time: "30", Exclusive: &yes})
	require.Eventually(t, func() bool {
		mu.Lock()
		defer mu.Unlock()
		return slices.ContainsFunc(news, func(n News) bool {
			return n.Job.ID == wide && strings.Contains(n.Why.EN, "update "+string(wide)+" --nodes") && strings.Contains(n.Why.ZH, "可提前到")
		})
	}, 40*time.Second, 200*time.Millisecond)
	require.NoError(t, alice.Cancel(t.Context(), wide))

	require.NoError(t, real.Signal("slurmd.gpu4", syscall.SIGKILL))
	_, err = real.RunAs(t.Context(), "alice", "sbatch", "--output=/dev/null", "--partition=prod", "--qos=urgent", "--nodelist=gpu2", "--exclusive", "--time=5", "--wrap=sleep 5")
	require.NoError(t, err)

	until := func(what string, id slurm.JobID) News {
		t.Helper()
		for deadline := time.Now().Add(150 * time.Second); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
			mu.Lock()
			i := slices.IndexFunc(news, func(n News) bool { return n.Job.ID == id && n.Job.State.Ended() })
			if i >= 0 {
				n := news[i]
				mu.Unlock()
				return n
			}
			mu.Unlock()
		}
		t.Fatalf("nothing was told of %s (job %s, %+v)", what, id, state(id))
		return News{}
	}

	n := until("the preemption", victim)
	require.Equal(t, slurm.Preempted, n.Job.State)
	require.NotEmpty(t, n.Next, "%s", n.Why.EN)
	require.Contains(t, n.Why.EN, "from the checkpoint of iteration 100")
	out, err := real.Run(t.Context(), "scontrol", "write", "batch_script", string(n.Next), "-")
	require.NoError(t, err)
	require.Contains(t, out, "--dependency=afterany:"+string(victim))
	require.Contains(t, out, "--load ckpt-victim")
	require.NotContains(t, out, "--begin", "it has done nothing wrong, so it need not wait")

	n = until("the node's failure", lost)
	require.Equal(t, slurm.NodeFail, n.Job.State)
	require.Equal(t, []string{"gpu4"}, n.Report.ExcludeNodes)
	require.NotEmpty(t, n.Next, "%s", n.Why.EN)
	require.Contains(t, n.Why.EN, "without gpu4, with the spares gpu3")
	require.Contains(t, n.Why.EN, "to start in 1 min")
	notices, err := call.Notices(t.Context())
	require.NoError(t, err)
	require.True(t, slices.ContainsFunc(notices, func(n ops.Notice) bool { return n.Operators && strings.Contains(n.Title.EN, "gpu4") }))
	j := state(n.Next)
	require.Equal(t, slurm.Pending, j.State, "a retry can be seen in the queue")
	op, _ := operations.Lookup("cancel")
	_, err = op.Run(t.Context(), call, &jobcontrol.CancelIn{Job: n.Next, Yes: true})
	require.NoError(t, err)
	require.NoError(t, real.StartNode("gpu4"))

	n = until("the time limit", limit)
	require.Equal(t, slurm.Timeout, n.Job.State)
	require.NotEmpty(t, n.Next, "%s", n.Why.EN)
	require.Contains(t, n.Why.EN, "retry 1 of 3")
	until("the chain's first job", chain)
	require.Eventually(t, func() bool {
		text, _ := os.ReadFile(filepath.Join(tree, "ckpt-chain", "latest_checkpointed_iteration.txt"))
		resumed, _ := os.ReadFile(filepath.Join(tree, "ckpt-limit", "latest_checkpointed_iteration.txt"))
		return strings.TrimSpace(string(text)) == "200" && strings.TrimSpace(string(resumed)) == "200"
	}, 60*time.Second, 200*time.Millisecond, "both go on from iteration 100, one by its chain, one by its retry")
	mu.Lock()
	defer mu.Unlock()
	for _, n := range news {
		require.False(t, n.Job.ID == chain && n.Next != "" && !strings.Contains(n.Why.EN, "of the chain's 2"), "the links of a chain queue one another")
	}
}
