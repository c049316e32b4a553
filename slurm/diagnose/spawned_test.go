package diagnose_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/diagnosetest"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logfile"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
)

// spawn is the output of the parent process of torch.multiprocessing.spawn at its end.
const spawn = "Traceback (most recent call last):\n  File \"/w/train.py\", line 24, in <module>\n    mp.spawn(worker, args=(n,), nprocs=n, join=True)\n" +
	"  File \"/v/lib/python3.12/site-packages/torch/multiprocessing/spawn.py\", line 198, in start_processes\n    while not context.join():\n"

// A child of torch.multiprocessing.spawn is a rank, in any Slurm task, and its exception is the cause.
func TestWhichSpawnedChildFailed(t *testing.T) {
	const left = "srun: error: gpu7: task 0: Exited with exit code 1\n"
	for name, c := range map[string]struct {
		log, class, line string
		rank             int
	}{
		"it raised": {
			spawn + "torch.multiprocessing.spawn.ProcessRaisedException: \n\n-- Process 2 terminated with the following error:\n" +
				"Traceback (most recent call last):\n  File \"/v/lib/python3.12/site-packages/torch/multiprocessing/spawn.py\", line 69, in _wrap\n    fn(i, *args)\n" +
				"  File \"/w/train.py\", line 18, in worker\n    theta = config[\"rope\"]\nKeyError: 'rope'\n\n" + left,
			outcome.UserException, "KeyError: 'rope'", 2,
		},
		"a signal ended it": {
			"double free or corruption (!prev)\n" + spawn + "torch.multiprocessing.spawn.ProcessExitedException: process 3 terminated with signal SIGABRT\n" + left,
			outcome.Segfault, "double free or corruption (!prev)", 3,
		},
		"it left": {
			spawn + "torch.multiprocessing.spawn.ProcessExitedException: process 1 terminated with exit code 75\n" + left,
			outcome.UnknownExit, "process 1 terminated with exit code 75", 1,
		},
		"on one of two nodes": {
			spawn + "torch.multiprocessing.spawn.ProcessExitedException: process 1 terminated with exit code 75\nsrun: error: gpu8: task 1: Exited with exit code 1\n" +
				"srun: error: gpu7: task 0: Terminated\n",
			outcome.UnknownExit, "process 1 terminated with exit code 75", -1,
		},
	} {
		r := diagnosetest.Text(t, c.log)
		require.Equal(t, c.class, r.Class, name)
		require.Contains(t, r.RootLine, c.line, name)
		if c.rank < 0 {
			require.Nil(t, r.RootRank, name)
			continue
		}
		require.NotNil(t, r.RootRank, name)
		require.Equal(t, c.rank, *r.RootRank, name)
	}
}

// A line with a process id and a rank, before the failure or after it, gives the rank of later reports
// about that process.
func TestARankIsKnownByItsProcess(t *testing.T) {
	const killed = "/w/run_node.sh: line 20: 11358 Killed                  python3 -u train.py\n"
	shm := diagnosetest.Raised("RuntimeError: unable to write to file </torch_11358_3793348900_2>: No space left on device (28)")
	deepSpeed := func(node, pid string) string {
		return "[INFO] [launch.py:24:main] nnodes=2, num_local_procs=4, node_rank=" + node + "\n" +
			"[INFO] [launch.py:31:main] process " + pid + " spawned with command: ['python', 'train.py', '--local_rank=2', '--deepspeed']\n"
	}
	for name, c := range map[string]struct {
		log  string
		rank int // -1 for unknown
	}{
		"a script says so":             {"gpu7: started rank 3 (pid 11357)\ngpu7: started rank 4 (pid 11358)\n" + killed, 4},
		"the process first":            {"pid=11358 is rank=5\n" + killed, 5},
		"DeepSpeed's launcher":         {deepSpeed("1", "11358") + shm, 6},
		"of another process":           {deepSpeed("1", "11359") + shm, -1},
		"two nodes have it":            {deepSpeed("0", "11358") + deepSpeed("1", "11358") + shm, -1},
		"a local rank is none":         {"local_rank 4 (pid 11358)\n" + killed, -1},
		"a number stands between them": {"rank 4 of 8 (pid 11358)\n" + killed, -1},
	} {
		r := diagnosetest.Text(t, c.log)
		if c.rank < 0 {
			require.Nil(t, r.RootRank, name)
			continue
		}
		require.NotNil(t, r.RootRank, name)
		require.Equal(t, c.rank, *r.RootRank, name)
	}
}

// srun's %n counts nodes: such a file belongs to no rank, no node has such a name if other nodes' names
// are known, and the job's own name may end in a letter and a number.
func TestFilesThatCountNodes(t *testing.T) {
	src, err := logfile.Read("logs/dclm-r2_73_node1.out", strings.NewReader(
		diagnosetest.Raised("ValueError: cannot reshape array of size 96 into shape (4000,)")+"srun: error: lrdn1403: task 3: Exited with exit code 1\n"+
			"srun: error: lrdn1402: task 0: Exited with exit code 1\nsrun: error: lrdn1402: task 1: Exited with exit code 1\n"))
	require.NoError(t, err)
	r, err := diagnose.Run(t.Context(), src, diagnose.Context{JobState: "FAILED"})
	require.NoError(t, err)
	require.Equal(t, 3, *r.RootRank)
	require.Equal(t, "lrdn1403", *r.RootNode)
}

// An exception without a rank belongs to the first task whose exit srun reports, with or without the
// script's own exit code at the end.
func TestTheFirstTaskThatExitedRaisedTheException(t *testing.T) {
	const tasks = "srun: error: gpu1: task 2: Exited with exit code 1\nsrun: error: gpu0: task 0: Exited with exit code 1\n" +
		"srun: error: gpu0: task 1: Exited with exit code 1\n"
	for _, end := range []string{"", "End: Mon Nov 23 04:38:39 UTC 2026, exit code 1\n"} {
		r := diagnosetest.Text(t, diagnosetest.Raised("KeyError: 'x'")+tasks+end)
		require.NotNil(t, r.RootRank, end)
		require.Equal(t, 2, *r.RootRank, end)
		require.Equal(t, "gpu1", *r.RootNode, end)
	}
}

// A library may be imported without an optional part, and log a traceback about that.
func TestALibraryDoesWithoutAPart(t *testing.T) {
	logged := func(first string) string {
		return "Could not load the native library: 'NoneType' object has no attribute 'split'\nTraceback (most recent call last):\n  File \"" + first +
			"\", line 85, in <module>\n    lib = load()\n  File \"/v/lib/python3.12/site-packages/quant/cuda.py\", line 24, in version\n    x.split('.')\n" +
			"AttributeError: 'NoneType' object has no attribute 'split'\n"
	}
	const library = "/v/lib/python3.12/site-packages/quant/ext.py"
	require.Equal(t, outcome.UnknownExit, diagnosetest.Old(t, logged(library)+"Device set to use cuda:0\n").Class)
	require.Equal(t, outcome.UserException, diagnosetest.Old(t, logged("/w/train.py")).Class, "the program's own")
	_, untold, _ := strings.Cut(logged(library), "\n")
	require.Equal(t, outcome.UserException, diagnosetest.Old(t, untold).Class, "nothing says that it was caught")
}
