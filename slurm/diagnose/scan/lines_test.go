package scan_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose/diagnosetest"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/scan"
)

// TestWhatALineSaysOfTheJob has lines that name nodes, ranks, arguments and where the run is.
func TestWhatALineSaysOfTheJob(t *testing.T) {
	f := factsOf(t, "using world size: 8, data-parallel size: 2, tensor-model-parallel size: 2, pipeline-model-parallel size: 2\n"+
		"  num_layers ....................................... 32 \n"+
		"gpu1:12:13 [0] NCCL INFO Bootstrap : Using ib0:10.1.2.1<0>\nlocalhost:12:13 [0] NCCL INFO Bootstrap : Using ib0:10.1.2.9<0>\n"+
		"NODE_RANK=3 on gpu4\ngpu5: NODE_RANK=4\ncommit: aaaa1111\nNODELIST=gpu[6-7]\n"+
		"[2026-06-11 10:00:00] torch/distributed/elastic/agent/server/api.py:525] [default] Rendezvous complete for workers. Result:\n"+
		"saving checkpoint at iteration 9 to /c\n[default1]:[rank5]: a word\n[after training is done] datetime: 2026-06-11 10:00:09\n")
	require.Equal(t, map[string]string{
		"world_size": "8", "data_parallel_size": "2", "tensor_model_parallel_size": "2", "pipeline_model_parallel_size": "2", "num_layers": "32",
	}, f.Args)
	require.Equal(t, map[string]string{"10.1.2.1": "gpu1"}, f.Addresses)
	require.Len(t, f.HostOf, 1)
	require.Equal(t, map[string]string{"gpu4": "3", "gpu5": "4"}, f.NodeRank)
	require.Equal(t, map[string]string{"commit": "aaaa1111"}, f.Markers)
	for _, node := range []string{"gpu1", "gpu6", "gpu7"} {
		require.Positive(t, f.Hosts[node], node)
	}
	require.NotContains(t, f.Hosts, "localhost")
	require.Len(t, f.Moments, 1)
	require.Contains(t, f.Doing.Text, "saving checkpoint")
	require.Equal(t, map[int]bool{5: true}, f.Ranks)
	require.Equal(t, map[int]bool{1: true}, f.Locals)
	require.Len(t, f.Bases, 1)
	for _, rank := range f.Bases {
		require.Equal(t, 5, rank)
	}
	require.NotNil(t, f.Finished)
	require.Len(t, f.Starts["megatron"], 1)
}

// TestHowLaunchersTellAnEnd has the words of srun, mpirun, scripts and torchelastic on processes.
func TestHowLaunchersTellAnEnd(t *testing.T) {
	type end struct {
		class, node string
		exit        int
		tasks       []int
		first       bool
	}
	for line, want := range map[string]end{
		"srun: error: gpu1: task 3: Exited with exit code 3":                                           {outcome.UnknownExit, "gpu1", 3, []int{3}, false},
		"srun: error: gpu1: task 3: Exited with exit code 127":                                         {outcome.EnvLaunch, "gpu1", 127, []int{3}, false},
		"srun: error: gpu1: task 3: Exited with exit code 139":                                         {outcome.Segfault, "gpu1", 139, []int{3}, false},
		"srun: error: gpu1: task 3: Exited with exit code 247":                                         {outcome.HostOOM, "gpu1", 247, []int{3}, false},
		"srun: error: gpu1: task 3: Exited with exit code 252":                                         {outcome.Segfault, "gpu1", 252, []int{3}, false},
		"srun: error: gpu1: task 3: Exited with exit code 240":                                         {outcome.UnknownExit, "gpu1", 240, []int{3}, false},
		"srun: error: gpu1: task 3: Exited with exit code 253":                                         {outcome.UnknownExit, "gpu1", 253, []int{3}, false},
		"srun: error: gpu1: task 3: Exited with exit code 128":                                         {outcome.UnknownExit, "gpu1", 128, []int{3}, false},
		"srun: error: gpu1: tasks 0-1: Segmentation fault (core dumped)":                               {outcome.Segfault, "gpu1", -11, []int{0, 1}, false},
		"srun: error: gpu1: task 3: Out Of Memory":                                                     {outcome.HostOOM, "gpu1", -9, []int{3}, false},
		"srun: error: gpu1: task 3: Terminated":                                                        {outcome.UnknownExit, "gpu1", -15, []int{3}, true},
		"srun: error: gpu1: tasks 2-3: Terminated":                                                     {outcome.UnknownExit, "gpu1", -15, []int{2, 3}, false},
		"mpirun noticed that process rank 14 with PID 47 on node gpu7 exited on signal 7 (Bus error).": {outcome.ShmBusError, "gpu7", -7, []int{14}, false},
		"The program exited with code 9":                                                               {outcome.UnknownExit, "", 9, nil, false},
		"Command killed by keyboard interrupt":                                                         {outcome.SlurmCancelled, "", -2, nil, false},
		"E0610 api.py:826] failed (exitcode: -9) local_rank: 1 (pid: 4) of binary: /v/python":          {outcome.HostOOM, "", -9, nil, false},
	} {
		f := factsOf(t, line+"\n")
		require.Len(t, f.Events, 1, line)
		e := f.Events[0]
		require.Equal(t, want, end{e.Class, e.Node, e.Exit, e.Tasks, e.First}, line)
		require.True(t, e.Agent, line)
		require.NotNil(t, f.Failed, line)
	}
	for _, line := range []string{"srun: error: gpu1: task 3: Exited with exit code 0", "The program exited with code 0"} {
		f := factsOf(t, line+"\n")
		require.Empty(t, f.Events, line)
		require.Nil(t, f.Failed, line)
	}
	told := factsOf(t, "slurmstepd: error: *** STEP 7.0 ON gpu1 CANCELLED AT 2026-06-11T10:01:05 ***\nsrun: error: gpu1: task 3: Terminated\n").Events
	require.False(t, told[len(told)-1].First, "the step had been ended before")
	f := factsOf(t, "Root Cause (first observed failure):\n[0]:\n  time      : 2026-06-11_10:00:00\n  host      : gpu3\n  rank      : 13 (local_rank: 5)\n"+
		"  exitcode  : -11 (pid: 411)\n  error_file: <N/A>\n  traceback : Signal 11 (SIGSEGV) received by PID 411\n")
	require.Len(t, f.Events, 1)
	e := f.Events[0]
	require.Equal(t, end{outcome.Segfault, "gpu3", -11, nil, true}, end{e.Class, e.Node, e.Exit, e.Tasks, e.First})
	require.Equal(t, 13, e.Tag.Rank)
	require.Equal(t, 5, e.Tag.Local)
	require.Equal(t, "411", e.Pid)
	require.Equal(t, 10, e.Before.Hour())
	require.Equal(t, []int{8}, f.Local0)
	f = factsOf(t, "  time      : 2026-06-11_10:00:00\n  host      : gpu3\n  rank      : 0 (local_rank: 0)\n  exitcode  : 1 (pid: 411)\n")
	require.Equal(t, 0, f.Events[0].Tag.Rank)
	require.Equal(t, 0, f.Events[0].Tag.Local)
	require.False(t, f.Events[0].First)
}

// TestWhichNodeALineNames has lines of NCCL, Slurm and others.
func TestWhichNodeALineNames(t *testing.T) {
	for line, node := range map[string]string{
		"srun: error: Node failure on gpu043":                    "gpu043",
		"srun: error: Node failure on gpu[043-044]":              "",
		"srun: error: gpu7: task 0: Killed":                      "gpu7",
		"gpu9:12:13 [0] NCCL WARN x":                             "gpu9",
		"localhost:12:13 [0] NCCL WARN x":                        "",
		"slurmstepd-gpu8: error: x":                              "gpu8",
		"slurmstepd: error: *** JOB 7 ON gpu6 CANCELLED AT x **": "gpu6",
		"Device: 2, node: gpu5.":                                 "gpu5",
		"a word of no node":                                      "",
	} {
		require.Equal(t, node, scan.NodeIn(line), line)
	}
}

// TestWhatMarginsOfTracebacksLeave has loggers that write on after a traceback behind the
// same margin, control characters, and warnings in two lines.
func TestWhatMarginsOfTracebacksLeave(t *testing.T) {
	const head = "12:01 E Traceback (most recent call last):\n"
	require.Len(t, factsOf(t, head+"12:02 E   File \"/w/a.py\", line 3, in f\n12:02 E \n12:03 E KeyError: 'e'\n").Events, 1)
	require.Len(t, factsOf(t, head+"12:02 E   File \"/w/a.py\", line 3, in f\n12:02 E KeyError: 'e'\n12:02 E "+"\n12:03 E OSError: [Errno 28] No space left on device: '/a'\n").Events, 2)
	f := factsOf(t, "\x1b[31mKeyError: 'a'\x1b[0m\n")
	require.Len(t, f.Events, 1)
	require.Equal(t, "KeyError: 'a'", f.Events[0].Text)
	f = factsOf(t, "Traceback (most recent call last):\n  File \"/w/a/long/way/to\n/the/a.py\", line 3, in f\nKeyError: 'a'\n")
	require.Len(t, f.Events, 1)
	require.Equal(t, "/w/a/long/way/to/the/a.py", f.Events[0].Stack.Frames[0].File)
}

// TestTheLastWordsOfARank has what a rank says beside words of its own: stacks, arguments, phases.
func TestTheLastWordsOfARank(t *testing.T) {
	for _, more := range []string{
		"2: Thread 12 (idle): \"MainThread\"\n2:     read (data.py:7)\n", "2:   num_layers ....................................... 32\n",
		"2: using world size: 8, data-parallel size: 8\n", "2: training ...\n", "2: [after training is done] datetime: 2026-06-11 10:00:09\n",
		"2:   File \"/w/a.py\", line 3, in f\n", "2: Traceback (most recent call last):\n", "2: step 3/9 loss: 2.5\n",
	} {
		f := factsOf(t, "2: The data are read\n"+more)
		require.Len(t, f.LastBy, 1, more)
		for _, m := range f.LastBy {
			require.Equal(t, "2: The data are read", m.Text, more)
		}
	}
}

// TestTheMarginOfAnExceptionGroup has exceptions behind a margin, and a table's row that looks like one.
func TestTheMarginOfAnExceptionGroup(t *testing.T) {
	require.Len(t, factsOf(t, "    | KeyError: 'a'\n").Events, 1)
	require.Empty(t, factsOf(t, "| KeyError: 'a' |\n").Events)
	f := factsOf(t, "  + Exception Group Traceback (most recent call last):\n  |   File \"/w/a.py\", line 3, in f\n  | ExceptionGroup: two (1 sub-exception)\n"+
		"  +-+---------------- 1 ----------------\n    | Traceback (most recent call last):\n    |   File \"/w/b.py\", line 4, in g\n    | KeyError: 'a'\n    +--\n")
	require.Len(t, f.Events, 2)
	require.Equal(t, "KeyError: 'a'", f.Events[1].Text)
	require.Equal(t, "/w/b.py", f.Events[1].Stack.Frames[0].File)
}

// TestWhatStandsBehindABarIsItsRanks has an error right behind a progress bar, which
// ended without a carriage return.
func TestWhatStandsBehindABarIsItsRanks(t *testing.T) {
	r := diagnosetest.Old(t, "2: step 1\n2: 3%|# | 3/9 [00:01<00:03, 3.9it/s]KeyError: 'a'\n1: step 1\n0: step 1\n3: step 1\n")
	require.Equal(t, outcome.UserException, r.Class)
	require.Equal(t, 2, *r.RootRank)
	require.Equal(t, "2: KeyError: 'a'", r.RootLine)
}
