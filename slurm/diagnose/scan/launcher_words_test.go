package scan_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose/diagnosetest"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logline"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/pattern"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/scan"
)

// agentLeft is torchelastic's line on a process that left.
const agentLeft = "ERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: %d) local_rank: %d (pid: %d) of binary: /usr/bin/python3\n"

// TestWhatAnExitCodeSays has the codes at the edges of what shells and launchers use for signals.
func TestWhatAnExitCodeSays(t *testing.T) {
	type said struct {
		class  string
		weight int
	}
	own, told := said{outcome.UnknownExit, pattern.Exited}, said{outcome.UnknownExit, pattern.Symptom}
	for code, want := range map[int]said{
		1: own, 125: own, 128: own, 129: told, 130: {outcome.SlurmCancelled, pattern.Ended - 5}, 134: {outcome.Segfault, pattern.Aborted},
		137: {outcome.HostOOM, pattern.Death}, 139: {outcome.Segfault, pattern.Death + 6}, 143: told, 160: own, 240: own,
		126: {outcome.EnvLaunch, pattern.Exited}, 127: {outcome.EnvLaunch, pattern.Exited}, 241: told, 247: {outcome.HostOOM, pattern.Death},
		252: {outcome.Segfault, pattern.Death + 5}, 253: own, 254: own, 255: own, -9: {outcome.HostOOM, pattern.Death}, -15: told,
	} {
		f := factsOf(t, fmt.Sprintf(agentLeft, code, 0, 77))
		require.Len(t, f.Events, 1, code)
		require.Equal(t, want, said{f.Events[0].Class, f.Events[0].Weight}, code)
		require.Equal(t, code, f.Events[0].Exit)
		require.Equal(t, -1, f.Events[0].Tag.Rank, code)
		require.Equal(t, 0, f.Events[0].Tag.Local, code)
	}
}

// TestAProcessThatItsLauncherKilledHadNoMemoryProblem has a process that did not end when it was told to.
func TestAProcessThatItsLauncherKilledHadNoMemoryProblem(t *testing.T) {
	const forced = "Unable to shutdown process 77 via Signals.SIGTERM, forcefully exiting via Signals.SIGKILL\n"
	for _, c := range []struct{ code, pid, exit int }{{-9, 77, -15}, {-9, 78, -9}, {1, 77, 1}, {-6, 78, -6}} {
		f := factsOf(t, forced+fmt.Sprintf(agentLeft, c.code, 3, c.pid))
		require.Equal(t, c.exit, f.Elastic[0].Exit, c)
		require.Equal(t, c.exit, f.Events[len(f.Events)-1].Exit, c)
	}
	require.Equal(t, -9, factsOf(t, fmt.Sprintf(agentLeft, -9, 3, 77)).Elastic[0].Exit, "nobody killed it")
}

// TestOnlyADatedReportOfALauncherHasATime has the same report with a time in it and without.
func TestOnlyADatedReportOfALauncherHasATime(t *testing.T) {
	at := time.Date(2026, 6, 11, 10, 0, 0, 0, time.UTC)
	line := fmt.Sprintf(agentLeft, 1, 3, 77)
	f := factsOf(t, "[2026-06-11 09:00:00] begin\n"+line+"[2026-06-11 10:00:00] "+line+"[2026-06-11 11:00:00] over\n")
	require.True(t, f.Elastic[0].At.IsZero())
	require.Equal(t, at, f.Elastic[1].At)
	require.Equal(t, at, f.Events[0].After)
	require.Equal(t, at, f.Events[1].Before)
	require.Equal(t, at, f.Events[1].After, "its time is known")
}

// TestTheFailureThatTorchelasticSawFirst has a summary with the failure under its heading, and others around it.
func TestTheFailureThatTorchelasticSawFirst(t *testing.T) {
	entry := func(rank, local int) string {
		return fmt.Sprintf("[0]:\n  time      : 2026-11-20_11:30:00\n  host      : gpu1.lan.\n  rank      : %d (local_rank: %d)\n"+
			"  exitcode  : 1 (pid: 7%d)\n  error_file: <N/A>\n  traceback : To enable traceback see: https://pytorch.org/docs\n", rank, local, rank)
	}
	f := factsOf(t, "Failures:\n"+entry(9, 1)+"Root Cause (first observed failure):\n"+entry(8, 0)+entry(0, 0))
	require.Len(t, f.Events, 3)
	for n, e := range f.Events {
		rank, local := []int{9, 8, 0}[n], []int{1, 0, 0}[n]
		require.Equal(t, n == 1, e.First, n)
		require.Equal(t, logline.Tag{Label: -1, Local: local, Rank: rank}, e.Tag, n)
		require.Equal(t, "gpu1.lan", e.Node, n)
		require.Equal(t, fmt.Sprint("7", rank), e.Process(), n)
		require.Equal(t, rank, f.Elastic[n].Rank)
		require.Equal(t, -1, f.Elastic[n].Task, "no label of srun")
	}
	require.Equal(t, []int{8, 8, 0}, f.Local0)
	require.Positive(t, f.Hosts["gpu1.lan"])
	require.Equal(t, 11, f.Failed.At.Hour())
}

// TestHowSrunTellsOfTasks has srun's and mpirun's words on tasks that ended: which count, and which of them
// was the first to be ended from outside.
func TestHowSrunTellsOfTasks(t *testing.T) {
	const aborted = "prterun noticed that process rank 3 with PID 0 on node gpu5 exited on signal 9 (Killed).\n"
	type said struct {
		class, node string
		exit        int
		tasks       []int
		first       bool
	}
	for log, want := range map[string]*said{
		"srun: error: gpu1: task 0: Exited with exit code 0\n":      nil,
		"srun: error: gpu1: task 0: Exited with exit code 7\n":      {outcome.UnknownExit, "gpu1", 7, []int{0}, false},
		"srun: error: gpu1: tasks 0-1: Exited with exit code 137\n": {outcome.HostOOM, "gpu1", 137, []int{0, 1}, false},
		"srun: error: gpu1: task 2: Terminated\n":                   {outcome.UnknownExit, "gpu1", -15, []int{2}, true},
		"srun: error: gpu1: tasks 2-3: Terminated\n":                {outcome.UnknownExit, "gpu1", -15, []int{2, 3}, false},
		"srun: error: gpu1: task 2: Killed\n":                       {outcome.HostOOM, "gpu1", -9, []int{2}, false},
		"srun: error: gpu1: task 2: Out Of Memory\n":                {outcome.HostOOM, "gpu1", -9, []int{2}, false},
		"srun: error: gpu1: task 2: Bus error (core dumped)\n":      {outcome.ShmBusError, "gpu1", -7, []int{2}, false},
		"srun: error: gpu1: task 2: Gone for good\n":                {outcome.UnknownExit, "gpu1", 0, []int{2}, false},
		aborted: {outcome.HostOOM, "gpu5", -9, []int{3}, false},
		"  Process name: [[41,1],6]\n  Exit code:    3\n":                          {outcome.UnknownExit, "", 3, []int{6}, false},
		"  Process name: [[41,1],6]\n  Exit code:    0\n":                          nil,
		"MPI_ABORT was invoked on rank 5 in communicator MPI_COMM_WORLD\n":         {outcome.UnknownExit, "", 1, []int{5}, false},
		"Abort(3) on node 4 (rank 4 in comm 0): application called MPI_Abort\n":    {outcome.UnknownExit, "", 1, []int{4}, false},
		"application called MPI_Abort(MPI_COMM_WORLD, 3) - process 4\n":            {outcome.UnknownExit, "", 1, []int{4}, false},
		"MPICH ERROR [Rank 4] - Abort(1091) on node 4 (rank 4 in comm 0): fatal\n": {outcome.UnknownExit, "", 1, []int{4}, false},
		"Abort(3) on node 4 (rank 1 in comm 496): Fatal error\n":                   nil, // not its rank in the job
		"The job\n  Exit code:    3\n":                                             {outcome.UnknownExit, "", 3, nil, false},
		"srun: Terminating StepId=7.0\nsrun: error: gpu1: task 2: Terminated\n":    {outcome.UnknownExit, "gpu1", -15, []int{2}, false},
	} {
		f := factsOf(t, log)
		var last *scan.Event
		for _, e := range f.Events {
			if e.Agent {
				last = e
			}
		}
		if want == nil {
			require.Nil(t, last, log)
			require.Nil(t, f.Failed, log)
			continue
		}
		require.NotNil(t, last, log)
		require.Equal(t, *want, said{last.Class, last.Node, last.Exit, last.Tasks, last.First}, log)
		require.NotNil(t, f.Failed, log)
		if want.node != "" {
			require.Positive(t, f.Hosts[want.node], log)
		}
	}
	f := factsOf(t, "  Process name: [[41,1],6]\n  Exit code:    3\n  Exit code:    4\n")
	require.Len(t, f.Events, 2)
	require.Nil(t, f.Events[1].Tasks, "one exit code for one process")
}

// TestWhichProcessIsWhichRank has the words of programs and launchers that name a process and its rank.
func TestWhichProcessIsWhichRank(t *testing.T) {
	const node = "nnodes=3, num_local_procs=4, node_rank="
	const child = "[launch.py:256] process 5%d spawned with command: ['python', 'a.py', '--local_rank=%d', '--x', '1']\n"
	for name, c := range map[string]struct {
		log   string
		ranks map[string]int
	}{
		"rank first":             {"started rank 4 (pid 11358)\n", map[string]int{"11358": 4}},
		"process first":          {"pid: 11358 has rank: 0\n", map[string]int{"11358": 0}},
		"one rank twice":         {"started rank 4 (pid 11358)\nstarted rank 4 (pid 11358)\n", map[string]int{"11358": 4}},
		"two ranks":              {"started rank 4 (pid 11358)\nstarted rank 5 (pid 11358)\n", map[string]int{"11358": -1}},
		"two ranks and again":    {"started rank 4 (pid 11358)\nstarted rank 5 (pid 11358)\nstarted rank 4 (pid 11358)\n", map[string]int{"11358": -1}},
		"DeepSpeed's":            {node + "2\n" + fmt.Sprintf(child, 1, 0) + fmt.Sprintf(child, 2, 3), map[string]int{"51": 8, "52": 11}},
		"DeepSpeed's first node": {node + "0\n" + fmt.Sprintf(child, 2, 3), map[string]int{"52": 3}},
		"of an unknown node":     {fmt.Sprintf(child, 2, 3), map[string]int{}},
		"of another's node":      {"1: " + node + "1\n2: " + fmt.Sprintf(child, 2, 3), map[string]int{}},
	} {
		require.Equal(t, c.ranks, factsOf(t, c.log).RankOfPid, name)
	}
	f := factsOf(t, "Initialized rank 3, world size 16\nGLOBAL_RANK: 0, MEMBER: 1/8\n"+
		"INFO torch.distributed.distributed_c10d: Rank 6: Completed store-based barrier for key:store_based_barrier_key:1 with 12 nodes.\n")
	require.Equal(t, map[int]int{3: 16, 0: 8, 6: 12}, f.Came)
	for text, pid := range map[string]string{"a.sh: line 3:  4711 Killed": "4711", "unable to open /torch_4712_1_9": "4712", "process 4713 died": ""} {
		require.Equal(t, pid, (&scan.Event{Text: text}).Process(), text)
		require.Equal(t, "9", (&scan.Event{Text: text, Pid: "9"}).Process(), text)
	}
}

// TestNothingThatALogNamesFillsTheMemory has more arguments, starts, addresses, nodes and processes than are kept.
func TestNothingThatALogNamesFillsTheMemory(t *testing.T) {
	for _, c := range []struct {
		line   string
		n, max int
		kept   func(*scan.Facts) int
	}{
		{"  a{n} ............... 1\n", 2050, 2048, func(f *scan.Facts) int { return len(f.Args) }},
		{"using world size: 8, data-parallel size: 8\n", 1030, 1024, func(f *scan.Facts) int { return len(f.Starts["megatron"]) }},
		{"g{n}:1:2 [0] NCCL INFO Bootstrap : Using eth0:10.0.0.{n}<0>\n", 4100, 4096, func(f *scan.Facts) int { return len(f.Addresses) }},
		{"[g{n}] [rank0]: ready\n", 1<<14 + 2, 1 << 14, func(f *scan.Facts) int { return len(f.Hosts) }},
	} {
		require.Equal(t, c.max, c.kept(factsOf(t, diagnosetest.Rounds(c.n, c.line))), c.line)
		require.Equal(t, min(c.max, 1000), min(c.max, c.kept(factsOf(t, diagnosetest.Rounds(1000, c.line)))), c.line)
	}
}
