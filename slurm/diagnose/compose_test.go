package diagnose_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/report"
	"github.com/stretchr/testify/require"
)

// said is one line that a rank writes at a time; rank -1 is Slurm's, a rank
// at or above agent is the launcher of a node.
type said struct {
	at   time.Duration
	rank int
	text string
}

const agent = 1 << 20

// A run is a job that the tests make up: who says what when.
type run struct {
	world, perNode int
	skew           bool // the nodes' clocks differ by seconds
	lines          []said
}

var start = time.Date(2026, 6, 11, 10, 0, 0, 0, time.UTC)

func node(n int) string { return fmt.Sprintf("gpu%03d", 40+3*n) }

func (r *run) node(rank int) string { return node(rank / r.perNode) }

// say adds a line; the text may use {stamp} for PyTorch's form of the time,
// {host} and {local}.
func (r *run) say(at time.Duration, rank int, lines ...string) {
	for _, text := range lines {
		when := start.Add(at)
		n := rank / r.perNode
		if rank >= agent {
			n = rank - agent
		}
		if r.skew && rank >= 0 {
			when = when.Add(time.Duration(n%5-2) * time.Second)
		}
		local := 0
		if rank >= 0 && rank < agent {
			local = rank % r.perNode
		}
		text = strings.NewReplacer("{stamp}", when.Format("0102 15:04:05.000000"), "{host}", node(max(n, 0)), "{local}", fmt.Sprint(local), "{rank}",
			fmt.Sprint(rank), "{time}", when.Format("2006-01-02 15:04:05")).Replace(text)
		r.lines = append(r.lines, said{at, rank, text})
	}
}

// healthy adds set-up and iterations up to a time.
func (r *run) healthy(from, until time.Duration) {
	r.say(from, 0, fmt.Sprintf("using world size: %d, data-parallel size: %d, context-parallel size: 1, hierarchical context-parallel sizes: None, "+
		"tensor-model-parallel size: 1, pipeline-model-parallel size: 1", r.world, r.world),
		"------------------------ arguments ------------------------", "  micro_batch_size ................................ 4",
		"  seq_length ...................................... 4096", fmt.Sprintf("  world_size ...................................... %d", r.world),
		"training ...", "[before the start of training step] datetime: {time} ")
	r.say(from+time.Second, 1, "WARNING:root:could not import fast_thing (optional), falling back to torch", "Traceback (most recent call last):",
		`  File "/w/megatron/core/fast.py", line 3, in <module>`, "    import fast_thing", "ModuleNotFoundError: No module named 'fast_thing'")
	i := 100
	for at := from + 10*time.Second; at <= until; at += 10 * time.Second {
		r.say(at, r.world-1, fmt.Sprintf(" [{time}] iteration %8d/  500000 | consumed samples: %12d | elapsed time per iteration (ms): 10000.0 "+
			"| learning rate: 1.000000E-04 | global batch size:    64 | lm loss: 2.%d00000E+00 | loss scale: 1.0 | grad norm: 0.500 "+
			"| number of skipped iterations:   0 | number of nan iterations:   0 |", i, 64*i, 9-i%5))
		i++
	}
}

// raise writes a traceback on a rank.
func (r *run) raise(at time.Duration, rank int, function, text string) {
	p := fmt.Sprintf("[rank%d]: ", rank)
	r.say(at, rank, p+"Traceback (most recent call last):", p+`  File "/w/pretrain_gpt.py", line 90, in <module>`, p+"    pretrain(", p+`  File "/w/megatron/training/training.py", line `+
		`12, `+
		`in `+function, p+"    "+function+"()", p+text)
}

// victims lets the other ranks notice that somebody died.
func (r *run) victims(at time.Duration, dead map[int]bool) {
	for rank := range r.world {
		if dead[rank] {
			continue
		}
		when := at + time.Duration(rank%7)*300*time.Millisecond
		r.say(when, rank, "{host}:{rank}1:{rank}2 [{local}] misc/socket.cc:58 NCCL WARN socketProgress: Connection closed by remote peer gpu099<41000>",
			"[rank{rank}]:[E{stamp} ProcessGroupNCCL.cpp:1895] [PG ID 0 PG GUID 0(default_pg) Rank {rank}] Process group watchdog thread terminated with "+
				"exception: NCCL error: remote process exited or there was a network error, NCCL version 2.21.5",
			"ncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely.", "Last error:",
			"terminate called after throwing an instance of 'c10::DistBackendError'")
	}
}

// summaries are torchelastic's accounts, one a node, each naming its own
// first process, which is a victim nearly everywhere.
func (r *run) summaries(at time.Duration, code map[int]int) {
	for n := range r.world / r.perNode {
		who := n * r.perNode
		exit := -6
		for rank, c := range code {
			if rank/r.perNode == n {
				who, exit = rank, c
			}
		}
		a := agent + n
		r.say(at, a, fmt.Sprintf("E{stamp} 77 torch/distributed/elastic/multiprocessing/api.py:869] failed (exitcode: %d) local_rank: %d (pid: %d) of "+
			"binary: /v/bin/python", exit, who%r.perNode, 1000+who),
			"Traceback (most recent call last):", `  File "/v/bin/torchrun", line 8, in <module>`, "    sys.exit(main())",
			"torch.distributed.elastic.multiprocessing.errors.ChildFailedError: ", "pretrain_gpt.py FAILED", "Failures:", "  <NO_OTHER_FAILURES>",
			"Root Cause (first observed failure):", "[0]:",
			"  time      : "+start.Add(at).Format("2006-01-02_15:04:05"), "  host      : {host}", fmt.Sprintf("  rank      : %d (local_rank: %d)", who,
				who%r.perNode), fmt.Sprintf("  exitcode  : %d (pid: %d)", exit, 1000+who),
			"  error_file: <N/A>", "  traceback : To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html")
	}
	r.say(at+time.Second, -1, "srun: error: gpu040: task 0: Exited with exit code 1", "srun: Terminating StepId=77.0")
}

// layouts write a run's lines the ways that launchers do.
var layouts = map[string]func(t *testing.T, r *run, dir string){
	"label": func(t *testing.T, r *run, dir string) {
		write(t, dir, r, func(l said) (string, string) {
			if l.rank < 0 || l.rank >= agent {
				return "slurm-77.out", l.text
			}
			return "slurm-77.out", fmt.Sprintf("%2d: %s", l.rank, l.text)
		})
	},
	"tee": func(t *testing.T, r *run, dir string) {
		write(t, dir, r, func(l said) (string, string) {
			switch {
			case l.rank < 0:
				return "slurm-77.out", l.text
			case l.rank >= agent:
				return fmt.Sprintf("logs/77/node%02d-%s.log", l.rank-agent, node(l.rank-agent)), l.text
			}
			n := l.rank / r.perNode
			return fmt.Sprintf("logs/77/node%02d-%s.log", n, node(n)), fmt.Sprintf("[default%d]:%s", l.rank%r.perNode, l.text)
		})
	},
	"pernode": func(t *testing.T, r *run, dir string) {
		write(t, dir, r, func(l said) (string, string) {
			switch {
			case l.rank < 0:
				return "train-77.out", l.text
			case l.rank >= agent:
				return fmt.Sprintf("train-77-%s.err", node(l.rank-agent)), l.text
			}
			end := "err"
			if strings.Contains(l.text, "iteration ") || strings.Contains(l.text, " ....") {
				end = "out"
			}
			return fmt.Sprintf("train-77-%s.%s", r.node(l.rank), end), l.text
		})
	},
	"tdir": func(t *testing.T, r *run, dir string) {
		write(t, dir, r, func(l said) (string, string) {
			switch {
			case l.rank < 0:
				return "slurm-77.out", l.text
			case l.rank >= agent:
				return fmt.Sprintf("logs/%s/agent.log", node(l.rank-agent)), l.text
			}
			return fmt.Sprintf("logs/%s/none_ab12cd34/attempt_0/%d/stderr.log", r.node(l.rank), l.rank%r.perNode), l.text
		})
	},
	"ranks": func(t *testing.T, r *run, dir string) {
		write(t, dir, r, func(l said) (string, string) {
			if l.rank < 0 || l.rank >= agent {
				return "slurm-77.out", l.text
			}
			return fmt.Sprintf("rank%04d.err", l.rank), l.text
		})
	},
	"suffix": func(t *testing.T, r *run, dir string) {
		write(t, dir, r, func(l said) (string, string) {
			if l.rank < 0 || l.rank >= agent {
				return "slurm-77.out", l.text
			}
			return fmt.Sprintf("gpt_%s_r%d.log", r.node(l.rank), l.rank), l.text
		})
	},
}

func write(t *testing.T, dir string, r *run, place func(said) (file, text string)) {
	t.Helper()
	lines := append([]said(nil), r.lines...)
	sort.SliceStable(lines, func(a, b int) bool { return lines[a].at < lines[b].at })
	content := map[string]*strings.Builder{}
	for _, l := range lines {
		file, text := place(l)
		if content[file] == nil {
			content[file] = &strings.Builder{}
		}
		content[file].WriteString(text + "\n")
	}
	for file, b := range content {
		p := filepath.Join(dir, file)
		require.NoError(t, os.MkdirAll(filepath.Dir(p), 0o755))
		require.NoError(t, os.WriteFile(p, []byte(b.String()), 0o644))
	}
}

// causes are what breaks first on one rank.
var causes = []struct {
	class string
	line  string // a part of the line that says it
	do    func(r *run, at time.Duration, rank int)
	code  int
	node  bool // the node is to be avoided
}{
	{outcome.CUDAOOM, "CUDA out of memory", func(r *run, at time.Duration, rank int) {
		r.raise(at, rank, "backward_step", "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.50 GiB. GPU 3 has a total capacity of "+
			"79.10 GiB of which 1.20 GiB is free.")
	}, 1, false},
	{outcome.UserException, "KeyError: 'mask'", func(r *run, at time.Duration, rank int) { r.raise(at, rank, "forward_step", "KeyError: 'mask'") }, 1, false},
	{outcome.Filesystem, "Stale file handle", func(r *run, at time.Duration, rank int) {
		r.raise(at, rank, "get_batch", "OSError: [Errno 116] Stale file handle: '/nfs/d.bin'")
	}, 1, true},
	{outcome.GPUHardware, "uncorrectable ECC", func(r *run, at time.Duration, rank int) {
		r.raise(at, rank, "forward_step", "RuntimeError: CUDA error: uncorrectable ECC error encountered")
	}, 1, true},
	{outcome.NaNLoss, "found NaN in local", func(r *run, at time.Duration, rank int) {
		r.raise(at, rank, "train_step", "AssertionError: Rank {rank}: found NaN in local grad norm. Device: {local}, node: {host}")
	}, 1, false},
	{outcome.CheckpointLoad, "central directory", func(r *run, at time.Duration, rank int) {
		r.raise(at, rank, "load_checkpoint", "RuntimeError: PytorchStreamReader failed reading zip archive: failed finding central directory")
	}, 1, false},
	{outcome.Segfault, "Segmentation fault", func(r *run, at time.Duration, rank int) {
		r.say(at, rank, "Fatal Python error: Segmentation fault", "", "Thread 0x00007f12 (most recent call first):", `  File "/v/x.py", line 3 in f`)
	}, -11, false},
	{outcome.CUDAIllegalAccess, "illegal memory access", func(r *run, at time.Duration, rank int) {
		r.raise(at, rank, "forward_step", "RuntimeError: CUDA error: an illegal memory access was encountered")
	}, 1, false},
	{outcome.DatasetMissing, "part_044.idx", func(r *run, at time.Duration, rank int) {
		r.raise(at, rank, "train_valid_test_datasets_provider", "FileNotFoundError: [Errno 2] No such file or directory: '/d/part_044.idx'")
	}, 1, false},
	{outcome.HostOOM, "killed by signal: Killed", func(r *run, at time.Duration, rank int) {
		r.raise(at, rank, "get_batch", "RuntimeError: DataLoader worker (pid 812) is killed by signal: Killed. ")
	}, 1, false},
	{outcome.DiskFull, "No space left", func(r *run, at time.Duration, rank int) {
		r.raise(at, rank, "save_checkpoint", "OSError: [Errno 28] No space left on device: '/ckpt/x.distcp'")
	}, 1, false},
	{outcome.DeviceAssert, "srcIndex < srcSelectDimSize", func(r *run, at time.Duration, rank int) {
		r.say(at, rank, "/pytorch/aten/src/ATen/native/cuda/Indexing.cu:1553: indexSelectLargeIndex: block: [17,0,0], thread: [64,0,0] Assertion "+
			"`srcIndex < srcSelectDimSize` failed.")
		r.raise(at+time.Second, rank, "forward_step", "RuntimeError: CUDA error: device-side assert triggered")
	}, 1, false},
	{outcome.ShapeMismatch, "must match the size", func(r *run, at time.Duration, rank int) {
		r.raise(at, rank, "forward_step", "RuntimeError: The size of tensor a (4096) must match the size of tensor b (2048) at non-singleton dimension 1")
	}, 1, false},
	{outcome.CUDADriver, "No CUDA GPUs are available", func(r *run, at time.Duration, rank int) {
		r.raise(at, rank, "initialize_megatron", "RuntimeError: No CUDA GPUs are available")
	}, 1, true},
	{outcome.HostOOM, "-9", func(*run, time.Duration, int) {}, -9, false},
	{outcome.ShmBusError, "-7", func(*run, time.Duration, int) {}, -7, false},
}

// TestComposedFailures breaks one rank of a job in every way and layout, and
// lets all others drown in NCCL's errors, some of which are logged first.
func TestComposedFailures(t *testing.T) {
	for name, layout := range layouts {
		for i, c := range causes {
			t.Run(fmt.Sprintf("%s/%s-%d", name, c.class, i), func(t *testing.T) {
				t.Parallel()
				rnd := rand.New(rand.NewPCG(uint64(i), uint64(len(name))))
				r := &run{world: 32, perNode: 8, skew: i%2 == 1}
				rank := rnd.IntN(r.world)
				r.healthy(0, time.Minute)
				c.do(r, 65*time.Second, rank)
				r.victims(66*time.Second, map[int]bool{rank: true})
				r.summaries(80*time.Second, map[int]int{rank: c.code})
				dir := t.TempDir()
				layout(t, r, dir)
				got, err := diagnose.Path(context.Background(), dir, diagnose.Context{JobState: "ENDED"})
				require.NoError(t, err)
				require.Equal(t, c.class, got.Class, "%+v", got)
				require.Contains(t, got.RootLine, c.line)
				require.NotNil(t, got.RootRank, "%+v", got)
				require.Equal(t, rank, *got.RootRank)
				require.NotNil(t, got.RootNode)
				require.Equal(t, r.node(rank), *got.RootNode)
				if c.node {
					require.Equal(t, []string{r.node(rank)}, got.ExcludeNodes)
				} else {
					require.Empty(t, got.ExcludeNodes)
				}
				require.Equal(t, 1, got.Attempts)
				requireLine(t, dir, got)
			})
		}
	}
}

// requireLine checks that file and line number name the line that is shown.
func requireLine(t *testing.T, dir string, r report.Report) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, r.RootFile))
	require.NoError(t, err)
	lines := strings.Split(string(b), "\n")
	require.Equal(t, strings.TrimRight(lines[*r.RootLineNo-1], " "), r.RootLine)
}

// TestOnlyTheLastAttemptCounts restarts a job after another failure.
func TestOnlyTheLastAttemptCounts(t *testing.T) {
	for name, layout := range layouts {
		if name == "tdir" {
			continue // its attempts have folders of their own
		}
		t.Run(name, func(t *testing.T) {
			r := &run{world: 16, perNode: 8}
			r.healthy(0, time.Minute)
			r.raise(65*time.Second, 3, "forward_step", "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.50 GiB.")
			r.victims(66*time.Second, map[int]bool{3: true})
			r.summaries(80*time.Second, map[int]int{3: 1})
			r.healthy(10*time.Minute, 11*time.Minute)
			r.raise(665*time.Second, 12, "get_batch", "KeyError: 'text'")
			r.victims(666*time.Second, map[int]bool{12: true})
			r.summaries(680*time.Second, map[int]int{12: 1})
			dir := t.TempDir()
			layout(t, r, dir)
			got, err := diagnose.Path(context.Background(), dir, diagnose.Context{JobState: "FAILED"})
			require.NoError(t, err)
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

// TestTheRankThatNeverArrived leaves nothing but collectives that timed out.
func TestTheRankThatNeverArrived(t *testing.T) {
	for name, layout := range layouts {
		t.Run(name, func(t *testing.T) {
			r := &run{world: 16, perNode: 8}
			r.healthy(0, time.Minute)
			for rank := range r.world {
				at := 660*time.Second + time.Duration(rank)*time.Millisecond
				if rank == 9 {
					r.say(at+time.Second, rank, "[rank9]:[E{stamp} ProcessGroupNCCL.cpp:1746] [PG ID 0 PG GUID 0(default_pg) Rank 9] Received a dump signal due "+
						"to a collective timeout from  rank 3 and we will try our best to dump the debug info. Last enqueued NCCL work: 811, last completed NCCL "+
						"work: 811.This is most likely caused by incorrect usages of collectives")
					continue
				}
				r.say(at, rank, "[rank{rank}]:[E{stamp} ProcessGroupNCCL.cpp:629] [Rank {rank}] Watchdog caught collective operation timeout: "+
					"WorkNCCL(SeqNum=812, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600063 milliseconds before timing out.",
					"[rank{rank}]:[E{stamp} ProcessGroupNCCL.cpp:2168] [PG ID 0 PG GUID 0(default_pg) Rank {rank}]  failure detected by watchdog at work "+
						"sequence id: 812 PG status: last enqueued work: 814, last completed work: 811",
					"terminate called after throwing an instance of 'c10::DistBackendError'")
			}
			r.summaries(680*time.Second, nil)
			dir := t.TempDir()
			layout(t, r, dir)
			got, err := diagnose.Path(context.Background(), dir, diagnose.Context{JobState: "FAILED"})
			require.NoError(t, err)
			require.Equal(t, outcome.NCCLTimeout, got.Class, "%+v", got)
			require.Equal(t, 9, *got.RootRank)
			require.Equal(t, "behind", got.Laggard)
			require.True(t, got.Retry)
		})
	}
}

// TestHealthyShapes are runs that look troubled and are not: nothing may be
// found in any of them.
func TestHealthyShapes(t *testing.T) {
	seconds := func(n int64) *int64 { return &n }
	shapes := map[string]struct {
		say   func(r *run)
		given diagnose.Context
	}{
		"running":         {func(*run) {}, diagnose.Context{JobState: "RUNNING", SecondsSinceLastWrite: seconds(4)}},
		"slow iterations": {func(*run) {}, diagnose.Context{JobState: "RUNNING", SecondsSinceLastWrite: seconds(110)}},
		"evaluation pause": {func(r *run) { r.say(61*time.Second, 0, "Evaluating on 3200 samples", "Evaluating iter 10/100") }, diagnose.Context{
			JobState:              "RUNNING",
			SecondsSinceLastWrite: seconds(900),
		}},
		"checkpoint save": {func(r *run) {
			r.say(61*time.Second, 0, "saving checkpoint at iteration     105 to /ckpt/run in torch_dist format")
		}, diagnose.Context{JobState: "RUNNING", SecondsSinceLastWrite: seconds(1000)}},
		"slow start": {func(r *run) { r.lines = nil; r.say(0, 0, "> building train, validation, and test datasets ...") }, diagnose.Context{
			JobState:              "RUNNING",
			SecondsSinceLastWrite: seconds(900),
		}},
		"survived exception": {func(r *run) {
			r.say(15*time.Second, 5, "Traceback (most recent call last):", `  File "/v/site-packages/wandb/x.py", line 3, in poll`,
				"requests.exceptions.ReadTimeout: read timed out")
			r.healthy(70*time.Second, 2*time.Minute)
		}, diagnose.Context{JobState: "RUNNING", SecondsSinceLastWrite: seconds(9)}},
		"finished": {func(r *run) { r.say(70*time.Second, 0, "[after training is done] datetime: {time} ") }, diagnose.Context{
			JobState:              "COMPLETED",
			SecondsSinceLastWrite: seconds(9000),
		}},
		"exit interval": {func(r *run) { r.say(70*time.Second, 0, "[exiting program at iteration 105] datetime: {time} ") }, diagnose.Context{
			JobState:              "ENDED",
			SecondsSinceLastWrite: seconds(9000),
		}},
		"restarted, finished": {func(r *run) {
			r.raise(62*time.Second, 3, "f", "KeyError: 'x'")
			r.summaries(64*time.Second, map[int]int{3: 1})
			r.healthy(100*time.Second, 200*time.Second)
			r.say(210*time.Second, 0, "[after training is done] datetime: {time} ")
		}, diagnose.Context{JobState: "COMPLETED", SecondsSinceLastWrite: seconds(9000)}},
		"fp16 warm-up": {func(r *run) {
			for i := range 2 {
				r.say(time.Duration(62+i)*time.Second, r.world-1, " [{time}] iteration      200/  500000 | consumed samples: 1 "+
					"| elapsed time per iteration (ms): 10000.0 | lm loss: 2.100000E+00 | loss scale: 65536.0 | grad norm: inf | number of skipped iterations:   1 |")
			}
			r.healthy(70*time.Second, 2*time.Minute)
		}, diagnose.Context{JobState: "RUNNING", SecondsSinceLastWrite: seconds(9)}},
		"a link that came back": {func(r *run) {
			r.say(15*time.Second, 9, "{host}:91:92 [{local}] transport/net_ib.cc:94 NCCL WARN NET/IB : mlx5_3:1 Got async event : port error",
				"{host}:91:92 [{local}] transport/net_ib.cc:94 NCCL WARN NET/IB : mlx5_3:1 Got async event : port active")
			r.healthy(70*time.Second, 2*time.Minute)
		}, diagnose.Context{JobState: "RUNNING", SecondsSinceLastWrite: seconds(9)}},
		"warnings of NCCL, finished": {func(r *run) {
			r.say(5*time.Second, 9, "{host}:91:92 [{local}] graph/topo.h:230 NCCL WARN Could not find NET with id 0",
				"{host}:91:92 [{local}] misc/socket.cc:483 NCCL WARN socketStartConnect: Connect to 10.1.2.3<45123> failed : Connection refused")
			r.say(70*time.Second, 0, "[after training is done] datetime: {time} ")
		}, diagnose.Context{JobState: "ENDED", SecondsSinceLastWrite: seconds(9000)}},
		"retried download": {func(r *run) {
			r.say(5*time.Second, 2, "WARNING:urllib3.connectionpool:Retrying (Retry(total=4)) after connection broken by 'ReadTimeoutError': "+
				"/org/m/resolve/main/config.json")
		}, diagnose.Context{JobState: "COMPLETED", SecondsSinceLastWrite: seconds(90)}},
	}
	for name, s := range shapes {
		for form, layout := range layouts {
			t.Run(name+"/"+form, func(t *testing.T) {
				t.Parallel()
				r := &run{world: 16, perNode: 8}
				r.healthy(0, time.Minute)
				s.say(r)
				dir := t.TempDir()
				layout(t, r, dir)
				got, err := diagnose.Path(context.Background(), dir, s.given)
				require.NoError(t, err)
				for range 20 { // whatever the order in which files are read and kinds of lines gone through
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
