package diagnose_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose/diagnosetest"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/stretchr/testify/require"
)

// Jobs of four ranks of which one is absent, silent, named by others or by itself, or exited
// differently from the rest.
func TestTheMissingRankIsFoundByOneRule(t *testing.T) {
	others := func(line string, except int) string {
		var b strings.Builder
		b.WriteString("using world size: 4, data-parallel size: 4, context-parallel size: 1, tensor-model-parallel size: 1, pipeline-model-parallel size: 1\n")
		for rank := range 4 {
			if rank != except {
				fmt.Fprintf(&b, "%d: %s\n", rank, strings.ReplaceAll(line, "{rank}", fmt.Sprint(rank)))
			}
		}
		return b.String()
	}
	gloo := "RuntimeError: [/pytorch/third_party/gloo/gloo/transport/tcp/unbound_buffer.cc:84] Timed out waiting 1800000ms for recv operation to complete"
	closed := "RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:598] Connection closed by peer [10.1.2.3]:41233"
	summary := func(codes ...int) string {
		var b strings.Builder
		for rank, code := range codes {
			fmt.Fprintf(&b, "  time      : 2026-06-11_10:00:00\n  host      : gpu1\n  rank      : %d (local_rank: %d)\n  exitcode  : %d (pid: %d)\n"+
				"  error_file: <N/A>\n  traceback : To enable traceback see: x\n", rank, rank, code, 100+rank)
		}
		return b.String()
	}
	says := func(ranks ...int) string {
		var b strings.Builder
		for _, rank := range ranks {
			b.WriteString(strings.ReplaceAll("\n"+strings.TrimSuffix(diagnosetest.Raised(closed), "\n"), "\n", fmt.Sprintf("\n[rank%d]: ", rank)))
		}
		return b.String() + "\n"
	}
	told := func(ranks ...int) string { // a summary of two nodes with two ranks each
		var b strings.Builder
		for _, rank := range ranks {
			fmt.Fprintf(&b, "  time      : 2026-06-11_10:00:00\n  host      : gpu%d\n  rank      : %d (local_rank: %d)\n  exitcode  : 1 (pid: %d)\n"+
				"  error_file: <N/A>\n  traceback : To enable traceback see: x\n", 1+rank/2, rank, rank%2, 100+rank)
		}
		return b.String()
	}
	prints := func(tensors ...string) string { // with TORCH_DISTRIBUTED_DEBUG=DETAIL
		var b strings.Builder
		for rank, tensor := range tensors {
			for _, line := range strings.Split(strings.TrimSuffix(diagnosetest.Raised(fmt.Sprintf("RuntimeError: Detected mismatch between collectives on ranks. "+
				"Rank %d is running collective: CollectiveFingerPrint(SequenceNumber=12, OpType=ALLREDUCE, %s), but Rank %d is running "+
				"collective: CollectiveFingerPrint(SequenceNumber=0OpType=GATHER).", rank, tensor, (rank+1)%4)), "\n"), "\n") {
				fmt.Fprintf(&b, "%d: %s\n", rank, line)
			}
		}
		return b.String()
	}
	waited := func(ops ...string) string { // the function of torch.distributed in which each rank waited
		var b strings.Builder
		for rank, op := range ops {
			fmt.Fprintf(&b, "[rank%d]: Traceback (most recent call last):\n[rank%d]:   File \"/w/train.py\", line 9, in step\n[rank%d]:     sync()\n"+
				"[rank%d]:   File \"/v/torch/distributed/distributed_c10d.py\", line 2811, in %s\n[rank%d]:     work.wait()\n[rank%d]: %s\n", rank, rank, rank, rank, op, rank, rank, gloo)
		}
		return b.String()
	}
	const full = "[enforce fail at inline_container.cc:325] . unexpected pos 4992 vs 4920"
	const aborted = "terminate called after throwing an instance of 'c10::Error'\n  what():  " + full + "\n"
	const float = "TensorShape=[8, 4], TensorDtypes=Float"
	const launcher = "Traceback (most recent call last):\n  File \"/v/bin/torchrun\", line 8, in <module>\n    sys.exit(main())\n" +
		"torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n"
	for name, c := range map[string]struct {
		log  string
		rank int
		node string
	}{
		"in a collective of another type": {prints(float, "TensorShape=[8, 4], TensorDtypes=Double", float, float), 1, ""},
		"in another collective, by where it waited or lost another": {waited("barrier", "all_reduce", "all_reduce") + strings.ReplaceAll(strings.ReplaceAll(
			waited("all_reduce"), gloo, closed), "rank0", "rank3"), 0, ""},
		"in a collective of another shape":                                    {prints(float, float, float, "TensorShape=[33], TensorDtypes=Float"), 3, ""},
		"in another collective, by where it waited":                           {waited("all_reduce", "broadcast", "all_reduce", "all_reduce"), 1, ""},
		"left before it could complain, and its launcher raised an exception": {says(1, 2, 3) + launcher + told(0), 0, "gpu1"},
		"gloo: one is silent":                                                 {others(gloo, 2), 2, ""},
		"gloo: one closed":                                                    {others(closed, 1) + "srun: error: gpu1: task 1: Exited with exit code 1\n", 1, ""},
		"exit -6 beside others":                                               {others(closed, -1) + summary(1, 1, -6, 1), 2, "gpu1"},
		"a signal before all were ended":                                      {others(closed, -1) + summary(-15, -9, -15, -15), 1, "gpu1"},
		"named by the others":                                                 {others("[E ProcessGroupGloo.cpp:144] Ranks 3 failed to pass monitoredBarrier in 600000 ms", 3), 3, ""},
		"named by more of the others":                                         {others("[E ProcessGroupGloo.cpp:144] Ranks 1 failed to pass monitoredBarrier in 600000 ms", 3) + strings.Repeat("Ranks 3 failed to pass monitoredBarrier in 600000 ms\n", 5), 3, ""},
		"named as often as another":                                           {strings.Repeat("Ranks 3 failed to pass monitoredBarrier in 600000 ms\nRanks 2 failed to pass monitoredBarrier in 600000 ms\n", 2), 2, ""},
		"named by itself": {"Traceback (most recent call last):\n  File \"/w/t.py\", line 3, in f\n" +
			"AssertionError: Rank 2: found NaN in local grad norm. Device: 2, node: gpu1\n", 2, "gpu1"},
		"behind by sequence number": {
			others("[rank{rank}]:[E ProcessGroupNCCL.cpp:632] [Rank {rank}] Watchdog caught collective operation "+
				"timeout: WorkNCCL(SeqNum=9, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600052 milliseconds before timing out.", 1), 1,
			"",
		},
		"a node in brackets": {"[dgx-09] [rank3]: Traceback (most recent call last):\n[dgx-09] [rank3]:   File \"/w/t.py\", line 3, in f\n" +
			"[dgx-09] [rank3]: KeyError: 'tokens'\n[dgx-08] [rank1]: NCCL WARN Connection closed by remote peer\n", 3, "dgx-09"},
		"a crash beside others' words": {"terminate called after throwing an instance of 'c10::Error'\n" +
			"  what():  [enforce fail at inline_container.cc:603] . unexpected pos 704 vs 598\n" + others(closed, -1) + summary(1, -6, 1, 1), 1, "gpu1"},
		"the exception that C++ repeated is of the one that aborted": {diagnosetest.Raised("RuntimeError: "+full) + aborted + diagnosetest.Raised(closed) + summary(-6, 1), 0, "gpu1"},
		"another process's chain, and the full disk of the first": {diagnosetest.Raised("OSError: [Errno 28] No space left on device") +
			diagnosetest.RaisedIn("main", "RuntimeError: "+full) + "\nDuring handling of the above exception, another exception occurred:\n\n" +
			diagnosetest.Raised("RuntimeError: "+full) + aborted + diagnosetest.Raised(closed) + summary(1, -6), 0, "gpu1"},
		"another exception is not": {diagnosetest.Raised("KeyError: 'tokens'") + aborted + diagnosetest.Raised(closed) + summary(-6, 1), 1, "gpu1"},
		"mpirun: a signal ended one": {"NCCL version 2.27.3+cuda12.9\nPrimary job  terminated normally, but 1 process returned\na non-zero exit code.\n" +
			"mpirun noticed that process rank 14 with PID 4711 on node gpu7 exited on signal 6 (Aborted).\n", 14, "gpu7"},
		"mpirun: one left with a code": {diagnosetest.Raised("KeyError: 'rope'") + "Primary job  terminated normally, but 1 process returned\na non-zero exit code.\n" +
			"mpirun detected that one or more processes exited with non-zero status, thus causing\nthe job to be terminated. The first process to do so was:\n\n" +
			"  Process name: [[10003,1],2]\n  Exit code:    1\n", 2, ""},
		"mpirun: one left without a word": {says(0, 3) + "Primary job  terminated normally, but 1 process returned\na non-zero exit code.\n" +
			"  Process name: [[10003,1],2]\n  Exit code:    3\n", 2, ""},
		"mpirun: one called MPI_Abort":                     {diagnosetest.Raised("KeyError: 'rope'") + "MPI_ABORT was invoked on rank 2 in communicator MPI_COMM_WORLD\nwith errorcode 3.\n", 2, ""},
		"srun tells nothing of one, which left with 0":     {says(0, 1, 3) + "srun: error: gpu2: task 3: Exited with exit code 1\nsrun: error: gpu1: tasks 0-1: Terminated\n", 2, ""},
		"torchrun tells nothing of one, which left with 0": {strings.Repeat(diagnosetest.Raised(closed), 3) + told(0, 1, 3), 2, "gpu2"},
		"torchrun tells nothing of one, which was busy":    {strings.Repeat(diagnosetest.Raised(gloo), 3) + told(0, 2, 3), 1, "gpu1"},
		"one left before it could complain": {says(1, 3) + "srun: error: gpu1: task 0: Exited with exit code 1\nsrun: error: gpu1: task 1: Terminated\n" +
			"srun: error: gpu2: tasks 2-3: Terminated\n", 0, "gpu1"},
		"a thread of one died, and the launcher ended it": {"Exception in thread prefetch:\nTraceback (most recent call last):\n" +
			"  File \"/usr/lib/python3.11/threading.py\", line 1038, in _bootstrap_inner\n    self.run()\n  File \"/w/t.py\", line 8, in fill\nValueError: the queue is closed\n" +
			strings.Repeat(diagnosetest.Raised(gloo), 3) + told(0, 1, 3), 2, ""},
		"a thread of the first died, and the launcher ended it": {"Exception in thread prefetch:\nTraceback (most recent call last):\n" +
			"  File \"/usr/lib/python3.11/threading.py\", line 1038, in _bootstrap_inner\n    self.run()\n" +
			"  File \"/w/t.py\", line 8, in fill\nValueError: the queue is closed\n" +
			strings.Repeat(diagnosetest.Raised(gloo), 3) + told(1, 2, 3), 0, "gpu1"},
		"the last one of all did not leave by itself": {"Exception in thread prefetch:\nTraceback (most recent call last):\n" +
			"  File \"/usr/lib/python3.11/threading.py\", line 1038, in _bootstrap_inner\n    self.run()\n  File \"/w/t.py\", line 8, in fill\nValueError: the queue is closed\n" +
			strings.Repeat(diagnosetest.Raised(gloo), 3) + told(0, 1, 2), 3, "gpu2"},
		"srun: one was killed, all ended": {others(closed, 3) + "srun: error: gpu1: task 3: Killed\nsrun: error: gpu1: tasks 0-2: Terminated\n", 3, "gpu1"},
	} {
		t.Run(name, func(t *testing.T) {
			r := diagnosetest.Text(t, c.log)
			require.NotEqual(t, outcome.Success, r.Class)
			require.NotNil(t, r.RootRank, "%s: %s", r.Class, r.RootLine)
			require.Equal(t, c.rank, *r.RootRank, "%s: %s", r.Class, r.RootLine)
			if c.node != "" {
				require.NotNil(t, r.RootNode)
				require.Equal(t, c.node, *r.RootNode)
			}
		})
	}
}

// If equally many ranks are in each of two collectives, neither side is the odd one.
func TestEitherOfTwoMayBeWrong(t *testing.T) {
	var b strings.Builder
	b.WriteString("using world size: 4, data-parallel size: 4, tensor-model-parallel size: 1, pipeline-model-parallel size: 1\n")
	for rank := range 4 {
		line := fmt.Sprintf("RuntimeError: Detected mismatch between collectives on ranks. Rank %d is running collective: CollectiveFingerPrint(SequenceNumber=%d, "+
			"OpType=ALLREDUCE, TensorShape=[8], TensorDtypes=Float), but Rank 3 is running collective: CollectiveFingerPrint(SequenceNumber=0OpType=GATHER).", rank, rank/2)
		of := fmt.Sprintf("[rank%d]: ", rank)
		b.WriteString(of + strings.ReplaceAll(strings.TrimSuffix(diagnosetest.Raised(line), "\n"), "\n", "\n"+of) + "\n")
	}
	r := diagnosetest.Text(t, b.String())
	require.Equal(t, outcome.NCCLTimeout, r.Class)
	require.Nil(t, r.RootRank)
}

// The only rank on whose exit no launcher reports may also be the slowest of those that lost another one, or the rank of
// a node whose log is cut off.
func TestTheSlowestVictimIsNotNamed(t *testing.T) {
	const lost = "RuntimeError: [../gloo/transport/tcp/pair.cc:598] Connection closed by peer [10.0.0.2]:12345"
	for name, c := range map[string]struct {
		complaints, perNode int
		told                []int
	}{
		"one left without a word, and another was too slow to be reported": {6, 4, []int{0, 1, 2, 3, 5, 6, 7}},
		"it complained, and its launcher's report is cut off":              {8, 4, []int{0, 1, 2, 3, 4, 5, 7}},
		"it is the only rank of a node whose log is cut off":               {4, 1, []int{0, 1, 3, 4}},
	} {
		log := strings.Repeat(diagnosetest.Raised(lost), c.complaints) + "WARNING:torch.distributed.elastic.multiprocessing.api:Sending process 4711 closing signal SIGTERM\n"
		for _, r := range c.told {
			log += fmt.Sprintf("  host      : gpu%d\n  rank      : %d (local_rank: %d)\n  exitcode  : 1 (pid: %d)\n", r/c.perNode+1, r, r%c.perNode, 100+r)
		}
		require.Nil(t, diagnosetest.Text(t, log).RootRank, name)
	}
}

// A rank that was killed after its launcher had seen another one time out had not come before: it hung. Memory is the
// likely reason if the launcher saw it first, or if others lost it.
func TestAHungRankThatWasKilled(t *testing.T) {
	const late = "RuntimeError: [../gloo/transport/tcp/unbound_buffer.cc:81] Timed out waiting 12000ms for recv operation to complete"
	const lost = "RuntimeError: [../gloo/transport/tcp/pair.cc:598] Connection closed by peer [10.0.0.2]:12345"
	for name, c := range map[string]struct {
		says  string
		first int
		class string
	}{
		"another failed first": {late, 0, outcome.NCCLTimeout},
		"it failed first":      {late, 1, outcome.HostOOM},
		"others lost it":       {lost, 0, outcome.HostOOM},
	} {
		log := strings.Repeat(diagnosetest.Raised(c.says), 3) +
			"torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n=====\ntrain.py FAILED\n-----\nFailures:\n"
		for _, first := range []bool{false, true} {
			for rank := range 4 {
				if (rank == c.first) != first {
					continue
				}
				if first {
					log += "-----\nRoot Cause (first observed failure):\n"
				}
				log += fmt.Sprintf("[%d]:\n  time      : 2026-06-11_10:00:00\n  host      : gpu1\n  rank      : %d (local_rank: %d)\n  exitcode  : %d (pid: %d)\n"+
					"  error_file: <N/A>\n  traceback : x\n", rank, rank, rank, []int{1, -9, 1, 1}[rank], 100+rank)
			}
		}
		r := diagnosetest.Text(t, log+"=====\n")
		require.Equal(t, c.class, r.Class, name)
		require.NotNil(t, r.RootRank, name)
		require.Equal(t, 1, *r.RootRank, name)
	}
}
