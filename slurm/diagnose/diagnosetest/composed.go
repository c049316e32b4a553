package diagnosetest

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/report"
	"github.com/stretchr/testify/require"
)

// ComposedFailures tests jobs of which one rank fails, in every layout with every nth cause (other
// causes in each layout). All other ranks then write NCCL errors, some of them before the cause.
func ComposedFailures(t *testing.T, nth int) {
	t.Helper()
	for n, name := range slices.Sorted(maps.Keys(Layouts)) {
		layout := Layouts[name]
		for i, c := range Causes {
			if (i+n)%nth != 0 {
				continue
			}
			t.Run(fmt.Sprintf("%s/%s-%d", name, c.Class, i), func(t *testing.T) {
				t.Parallel()
				rnd := rand.New(rand.NewPCG(uint64(i), uint64(len(name))))
				r := &Run{World: 32, PerNode: 8, Skew: i%2 == 1}
				rank := rnd.IntN(r.World)
				r.Healthy(0, time.Minute)
				c.Do(r, 65*time.Second, rank)
				r.Victims(66*time.Second, map[int]bool{rank: true})
				r.Summaries(80*time.Second, map[int]int{rank: c.Code})
				got, dir := diagnosed(t, r, layout, diagnose.Context{JobState: "ENDED"})
				require.Equal(t, c.Class, got.Class, "%+v", got)
				require.Contains(t, got.RootLine, c.Line)
				require.NotNil(t, got.RootRank, "%+v", got)
				require.Equal(t, rank, *got.RootRank)
				require.NotNil(t, got.RootNode)
				require.Equal(t, r.Node(rank), *got.RootNode)
				if c.Node {
					require.Equal(t, []string{r.Node(rank)}, got.ExcludeNodes)
				} else {
					require.Empty(t, got.ExcludeNodes)
				}
				require.Equal(t, 1, got.Attempts)
				requireLine(t, dir, got)
			})
		}
	}
}

// diagnosed writes a run in a layout, and returns its diagnosis and the folder of its logs.
func diagnosed(t *testing.T, r *Run, layout func(t *testing.T, r *Run, dir string), c diagnose.Context) (got report.Report, dir string) {
	t.Helper()
	dir = t.TempDir()
	layout(t, r, dir)
	got, err := diagnose.Path(context.Background(), dir, c)
	require.NoError(t, err)
	return got, dir
}

// requireLine checks that the report's file and line number lead to the report's line.
func requireLine(t *testing.T, dir string, r report.Report) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, r.RootFile))
	require.NoError(t, err)
	lines := strings.Split(string(b), "\n")
	require.Equal(t, strings.TrimRight(lines[*r.RootLineNo-1], " "), r.RootLine)
}

// OnlyTheLastAttemptCounts tests a job that failed, was restarted, and failed of another cause.
func OnlyTheLastAttemptCounts(t *testing.T) {
	t.Helper()
	for name, layout := range Layouts {
		if name == "tdir" {
			continue // each of its attempts has its own folder
		}
		t.Run(name, func(t *testing.T) {
			r := &Run{World: 16, PerNode: 8}
			r.Healthy(0, time.Minute)
			r.Raise(65*time.Second, 3, "forward_step", "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.50 GiB.")
			r.Victims(66*time.Second, map[int]bool{3: true})
			r.Summaries(80*time.Second, map[int]int{3: 1})
			r.Healthy(10*time.Minute, 11*time.Minute)
			r.Raise(665*time.Second, 12, "get_batch", "KeyError: 'text'")
			r.Victims(666*time.Second, map[int]bool{12: true})
			r.Summaries(680*time.Second, map[int]int{12: 1})
			got, _ := diagnosed(t, r, layout, diagnose.Context{JobState: "FAILED"})
			require.Equal(t, outcome.UserException, got.Class, "%+v", got)
			require.Equal(t, 12, *got.RootRank)
			require.Equal(t, 2, got.Attempts)
			earlier := false
			for _, e := range got.Evidence {
				earlier = earlier || e.Why == "earlier attempt" && strings.Contains(e.Text, "out of memory")
			}
			require.True(t, earlier, "the earlier attempt's cause is listed: %+v", got.Evidence)
		})
	}
}

// TheRankThatNeverArrived tests jobs whose logs show only collectives that timed out.
func TheRankThatNeverArrived(t *testing.T) {
	t.Helper()
	for name, layout := range Layouts {
		t.Run(name, func(t *testing.T) {
			r := &Run{World: 16, PerNode: 8}
			r.Healthy(0, time.Minute)
			for rank := range r.World {
				at := 660*time.Second + time.Duration(rank)*time.Millisecond
				if rank == 9 {
					r.Say(at+time.Second, rank, "[rank9]:[E{stamp} ProcessGroupNCCL.cpp:1746] [PG ID 0 PG GUID 0(default_pg) Rank 9] Received a dump signal due "+
						"to a collective timeout from  rank 3 and we will try our best to dump the debug info. Last enqueued NCCL work: 811, last completed NCCL "+
						"work: 811.This is most likely caused by incorrect usages of collectives")
					continue
				}
				r.Say(at, rank, "[rank{rank}]:[E{stamp} ProcessGroupNCCL.cpp:629] [Rank {rank}] Watchdog caught collective operation timeout: "+
					"WorkNCCL(SeqNum=812, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600063 milliseconds before timing out.",
					"[rank{rank}]:[E{stamp} ProcessGroupNCCL.cpp:2168] [PG ID 0 PG GUID 0(default_pg) Rank {rank}]  failure detected by watchdog at work "+
						"sequence id: 812 PG status: last enqueued work: 814, last completed work: 811",
					"terminate called after throwing an instance of 'c10::DistBackendError'")
			}
			r.Summaries(680*time.Second, nil)
			got, _ := diagnosed(t, r, layout, diagnose.Context{JobState: "FAILED"})
			require.Equal(t, outcome.NCCLTimeout, got.Class, "%+v", got)
			require.Equal(t, 9, *got.RootRank)
			require.Equal(t, "behind", got.Laggard)
			require.True(t, got.Retry)
		})
	}
}

// HealthyShapes tests logs that look like trouble but show no failure. It diagnoses each of them often
// times, as the order of files and maps may vary.
func HealthyShapes(t *testing.T, often int) {
	t.Helper()
	seconds := func(n int64) *int64 { return &n }
	shapes := map[string]struct {
		say   func(r *Run)
		given diagnose.Context
	}{
		"running":         {func(*Run) {}, diagnose.Context{JobState: "RUNNING", SecondsSinceLastWrite: seconds(4)}},
		"slow iterations": {func(*Run) {}, diagnose.Context{JobState: "RUNNING", SecondsSinceLastWrite: seconds(110)}},
		"evaluation pause": {func(r *Run) {
			r.Say(61*time.Second, 0, "Evaluating on 3200 samples", "Evaluating iter 10/100")
		}, diagnose.Context{
			JobState:              "RUNNING",
			SecondsSinceLastWrite: seconds(900),
		}},
		"checkpoint save": {func(r *Run) {
			r.Say(61*time.Second, 0, "saving checkpoint at iteration     105 to /ckpt/run in torch_dist format")
		}, diagnose.Context{JobState: "RUNNING", SecondsSinceLastWrite: seconds(1000)}},
		"slow start": {func(r *Run) {
			r.Lines = nil
			r.Say(0, 0, "> building train, validation, and test datasets ...")
		}, diagnose.Context{
			JobState:              "RUNNING",
			SecondsSinceLastWrite: seconds(900),
		}},
		"survived exception": {func(r *Run) {
			r.Say(15*time.Second, 5, "Traceback (most recent call last):", `  File "/v/site-packages/wandb/x.py", line 3, in poll`,
				"requests.exceptions.ReadTimeout: read timed out")
			r.Healthy(70*time.Second, 2*time.Minute)
		}, diagnose.Context{JobState: "RUNNING", SecondsSinceLastWrite: seconds(9)}},
		"finished": {func(r *Run) { r.Say(70*time.Second, 0, "[after training is done] datetime: {time} ") }, diagnose.Context{
			JobState:              "COMPLETED",
			SecondsSinceLastWrite: seconds(9000),
		}},
		"exit interval": {func(r *Run) {
			r.Say(70*time.Second, 0, "[exiting program at iteration 105] datetime: {time} ")
		}, diagnose.Context{
			JobState:              "ENDED",
			SecondsSinceLastWrite: seconds(9000),
		}},
		"restarted, finished": {func(r *Run) {
			r.Raise(62*time.Second, 3, "f", "KeyError: 'x'")
			r.Summaries(64*time.Second, map[int]int{3: 1})
			r.Healthy(100*time.Second, 200*time.Second)
			r.Say(210*time.Second, 0, "[after training is done] datetime: {time} ")
		}, diagnose.Context{JobState: "COMPLETED", SecondsSinceLastWrite: seconds(9000)}},
		"fp16 warm-up": {func(r *Run) {
			for i := range 2 {
				r.Say(time.Duration(62+i)*time.Second, r.World-1, " [{time}] iteration      200/  500000 | consumed samples: 1 "+
					"| elapsed time per iteration (ms): 10000.0 | lm loss: 2.100000E+00 | loss scale: 65536.0 | grad norm: inf | number of skipped iterations:   1 |")
			}
			r.Healthy(70*time.Second, 2*time.Minute)
		}, diagnose.Context{JobState: "RUNNING", SecondsSinceLastWrite: seconds(9)}},
		"a link that came back": {func(r *Run) {
			r.Say(15*time.Second, 9, "{host}:91:92 [{local}] transport/net_ib.cc:94 NCCL WARN NET/IB : mlx5_3:1 Got async event : port error",
				"{host}:91:92 [{local}] transport/net_ib.cc:94 NCCL WARN NET/IB : mlx5_3:1 Got async event : port active")
			r.Healthy(70*time.Second, 2*time.Minute)
		}, diagnose.Context{JobState: "RUNNING", SecondsSinceLastWrite: seconds(9)}},
		"warnings of NCCL, finished": {func(r *Run) {
			r.Say(5*time.Second, 9, "{host}:91:92 [{local}] graph/topo.h:230 NCCL WARN Could not find NET with id 0",
				"{host}:91:92 [{local}] misc/socket.cc:483 NCCL WARN socketStartConnect: Connect to 10.1.2.3<45123> failed : Connection refused")
			r.Say(70*time.Second, 0, "[after training is done] datetime: {time} ")
		}, diagnose.Context{JobState: "ENDED", SecondsSinceLastWrite: seconds(9000)}},
		"retried download": {func(r *Run) {
			r.Say(5*time.Second, 2, "WARNING:urllib3.connectionpool:Retrying (Retry(total=4)) after connection broken by 'ReadTimeoutError': "+
				"/org/m/resolve/main/config.json")
		}, diagnose.Context{JobState: "COMPLETED", SecondsSinceLastWrite: seconds(90)}},
	}
	for name, s := range shapes {
		for form, layout := range Layouts {
			t.Run(name+"/"+form, func(t *testing.T) {
				t.Parallel()
				r := &Run{World: 16, PerNode: 8}
				r.Healthy(0, time.Minute)
				s.say(r)
				got, dir := diagnosed(t, r, layout, s.given)
				for range often { // the order of files and map keys varies
					again, err := diagnose.Path(context.Background(), dir, s.given)
					require.NoError(t, err)
					require.Equal(t, got, again)
				}
				require.False(t, got.Found(), "%+v", got)
				require.Equal(t, s.given.JobState == "RUNNING", got.Class == outcome.Running, "%+v", got)
				require.Nil(t, got.RootRank)
			})
		}
	}
}
