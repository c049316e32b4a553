package scan_test

import (
	"context"
	"strings"
	"testing"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/diagnosetest"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logfile"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/stretchr/testify/require"
)

// TestWhatEndedAProcess has, in words of our own, how processes are ended from
// outside, and whose words on it count.
func TestWhatEndedAProcess(t *testing.T) {
	steps := "Epoch 1/9 loss 0.5\nEpoch 2/9 loss 0.4\n"
	cutOff := strings.Repeat("Traceback (most recent call last):\n  File \"<string>\", line 1, in <module>\n"+
		"  File \"/v/lib/python3.11/multiprocessing/spawn.py\", line 126, in _main\n    self = reduction.pickle.load(from_parent)\n"+
		"_pickle.UnpicklingError: pickle data was truncated\n", 2)
	notebook := func(wrapper, end string) string {
		rule := strings.Repeat("-", 75) + "\n"
		name, _, _ := strings.Cut(end, ":")
		return diagnosetest.Raised(wrapper) + "\n" + rule + "model = build()\nmodel.fit()\n" + rule + "\n" + rule + name + strings.Repeat(" ", 32) +
			"Traceback (most recent call last)\nCell In[7], line 2\n      1 model = build()\n----> 2 model.fit()\n\n" +
			"File /v/models.py:81, in fit(self)\n     79 try:\n---> 81     raise Trouble()\n\n" + end + "\n\n"
	}
	for name, c := range map[string]struct{ log, class, line string }{
		"a keyboard, before the processes that were being started": {
			steps + "2026-03-04 06:03:23 - NOTE - Keyboard interruption. Leaving the loop\n2026-03-04 06:03:23 - NOTE - Took 4.3 s\n" + cutOff,
			outcome.SlurmCancelled, "Keyboard",
		},
		"a keyboard, after the thread that its data loader's processes left alone": {
			steps + "Exception in thread Thread-1 (_pin_memory_loop):\n" + strings.Replace(diagnosetest.Raised("ConnectionResetError: [Errno 104] Connection reset by peer"),
				"\nConnection", "\n  File \"/v/lib/python3.10/multiprocessing/connection.py\", line 379, in _recv\n    chunk = read(handle, remaining)\nConnection", 1) +
				"    chunk = read(handle, remaining)\nConnectionResetError: [Errno 104] Connection reset by peer\n" +
				"2026-03-04 06:03:23 - NOTE - Keyboard interruption. Leaving the loop\n",
			outcome.SlurmCancelled, "Keyboard",
		},
		"a trainer that saw the keyboard": {steps + "Detected KeyboardInterrupt, attempting graceful shutdown ...\n", outcome.SlurmCancelled, "Detected"},
		"somebody":                        {steps + "Training interrupted by user\n", outcome.SlurmCancelled, "by user"},
		"nobody: it only says how":        {steps + "Press Ctrl-C (keyboard interrupt) at any time to stop early\n" + steps, outcome.UnknownExit, ""},
		"SIGTERM, and its data loader after it": {
			steps + "[rank: 2] Received SIGTERM: 15\n" + diagnosetest.Raised("RuntimeError: DataLoader worker (pid 402) is killed by signal: Terminated."),
			outcome.SlurmCancelled, "Received SIGTERM",
		},
		"SIGTERM, as native code says it": {steps + "*** SIGTERM received at time=1772600000 on cpu 4 ***\nPC: @     0x7f0bf95  (unknown)\n", outcome.SlurmCancelled, "SIGTERM"},
		"its terminal, which is gone":     {steps + diagnosetest.Raised("torch.distributed.elastic.multiprocessing.api.SignalException: Process 187 got signal: 1"), outcome.SlurmCancelled, "signal: 1"},
		"its terminal, of which only the agent had time to speak": {
			steps + "W0611 10:01:02.000000 777 torch/distributed/elastic/agent/server/api.py:719] Received 1 death signal, shutting down workers\n" +
				"W0611 10:01:02.100000 777 torch/distributed/elastic/multiprocessing/api.py:897] Sending process 301 closing signal SIGHUP\n",
			outcome.SlurmCancelled, "Received 1 death signal",
		},
		"a keyboard, as the agent says it": {
			steps + diagnosetest.Raised("torch.distributed.elastic.multiprocessing.api.SignalException: Process 187 got signal: 2"), outcome.SlurmCancelled, "signal: 2",
		},
		"a failure of another node, after which the agent was told to end": {
			steps + "W0611 10:01:02.000000 777 torch/distributed/elastic/agent/server/api.py:719] Received 15 death signal, shutting down workers\n" +
				"srun: error: n2: task 1: Exited with exit code 3\n",
			outcome.UnknownExit, "exit code 3",
		},
		"SIGTERM, because another task had failed": {
			steps + "srun: error: n2: task 1: Exited with exit code 3\nMain process received SIGTERM, exiting\n", outcome.UnknownExit, "exit code 3",
		},
		"SIGTERM, which another program of the script outlived": {
			steps + "Main process received SIGTERM, exiting\n" + strings.Repeat("The other one goes on\n", 20), outcome.UnknownExit, "",
		},
		"a helper's exit code":                             {steps + "The helper exited with code 3\n", outcome.UnknownExit, "code 3"},
		"nothing: a helper's code is a note of its logger": {steps + "INFO:root:The helper exited with code 3\nTraining finished.\n", outcome.Success, ""},
		"a signal that its shell only names":               {steps + "Killed\n", outcome.HostOOM, "Killed"},
		"what it says itself before that":                  {steps + diagnosetest.Raised("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB") + "Killed\n", outcome.CUDAOOM, "CUDA out"},
		"the exception in a notebook's message":            {notebook("tools.runner.CellError: This cell failed:", "KeyError: 'width'"), outcome.UserException, "'width'"},
		"the same behind a message without words":          {notebook("tools.runner.RunnerError: ", "ValueError: no such layer"), outcome.UserException, "no such layer"},
		"the first of several roots": {
			diagnosetest.Raised("tensorflow.python.framework.errors_impl.NotFoundError: 2 root error(s) found.") +
				"  (0) Not found: /data/train/00.tfrecord; No such file or directory\n\t [[{{node Read}}]]\n  (1) Not found: /data/train/00.tfrecord\n",
			outcome.DatasetMissing, "(0) Not found",
		},
		"a GPU's memory among several roots": {
			diagnosetest.Raised("tensorflow.python.framework.errors_impl.ResourceExhaustedError: 2 root error(s) found.") +
				"  (0) Resource exhausted: OOM when allocating tensor with shape[64,64] on /device:GPU:0 by allocator GPU_0_bfc\n",
			outcome.CUDAOOM, "OOM when",
		},
		"a port, of which the set-up only took note": {
			"INFO:root:going on alone: the server socket has failed to bind to [::]:40112 (errno: 98 - Address already in use).\n" +
				diagnosetest.Raised("ValueError: Default process group has not been initialized, please make sure to call init_process_group."),
			outcome.PortInUse, "40112",
		},
		"a store that did not answer, likewise": {
			"INFO:root:going on alone: The client socket has timed out after 600000ms while trying to connect to (n1, 40112).\n" +
				diagnosetest.Raised("ValueError: Default process group has not been initialized, please make sure to call init_process_group."),
			outcome.Rendezvous, "40112",
		},
		"a GPU that is not ready, likewise": {
			"[W611 10:01:02.0 CUDAFunctions.cpp:108] Warning: CUDA initialization: Unexpected error from cudaGetDeviceCount(). " +
				"Error 802: system not yet initialized (function operator())\nINFO:root:going on alone\n" +
				diagnosetest.Raised("ValueError: Default process group has not been initialized, please make sure to call init_process_group."),
			outcome.CUDADriver, "Error 802",
		},
		"not what else was only taken note of before": {
			"INFO:root:going on without it: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB\n" +
				diagnosetest.Raised("ValueError: Default process group has not been initialized, please make sure to call init_process_group."),
			outcome.UserException, "has not been initialized",
		},
		"nothing: a library looked for a GPU": {
			"2026-04-10 07:18:17.25: E xla/stream_executor/cuda/cuda_driver.cc:282] failed call to cuInit: CUDA_ERROR_NO_DEVICE: no CUDA-capable device is detected\n" +
				"Devices: [CpuDevice(id=0)]\n" + strings.Repeat("    Shapes: (1, 20)\n", 20) + "Written to ./adapt/\n",
			outcome.Success, "",
		},
		"nothing: a command's option has such a name": {
			"Running: /v/bin/python /w/prepare.py --dataset-root /d/datasets --fail-on-missing\nWritten to ./pairs/\n", outcome.Success, "",
		},
		"a compiler that does not know the GPU": {
			"nvcc fatal   : Unsupported gpu architecture 'compute_120'\n" + diagnosetest.Raised("RuntimeError: Error compiling objects for extension"),
			outcome.ExtensionABI, "compute_120",
		},
		"the processor, as the kernel lists its registers": {
			steps + "[12345.678901] traps: python[3312] general protection fault ip:7f12 sp:7ffc error:0 in libfoo.so[7f00+1000]\n", outcome.Segfault, "general protection",
		},
		"nothing: a peer left before NCCL accepted it": {steps + "n1:12:33 [0] NCCL INFO Call to accept failed : Connection aborted\n", outcome.UnknownExit, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := diagnosetest.Old(t, c.log)
			require.Equal(t, c.class, r.Class, "%s: %s", r.Why, r.RootLine)
			require.Contains(t, r.RootLine, c.line)
		})
	}
}

// TestSlurmsWordOnAStateStands keeps to Slurm where it calls a job failed: it says
// of a job that somebody cancelled that it was.
func TestSlurmsWordOnAStateStands(t *testing.T) {
	log := "Epoch 1/9 loss 0.5\n[rank: 2] Received SIGTERM: 15\n"
	require.Equal(t, outcome.UnknownExit, diagnosetest.With(t, log, diagnose.Context{JobState: "FAILED"}).Class)
	require.Equal(t, outcome.SlurmCancelled, diagnosetest.With(t, log, diagnose.Context{JobState: "CANCELLED"}).Class)
}

// TestAFilesNameMayNameNoPlace gives logs the names of experiments: the rank of a
// matrix is no process's, and what no host can be called is no node.
func TestAFilesNameMayNameNoPlace(t *testing.T) {
	for name, want := range map[string]string{
		"run_low_rank8.log": "", "lora-r16.log": "", "eval_260102_Wide1F1B_auto_h200.log": "", "out-rank3.log": "rank 3", "megatron-385837-h100-st-gpu-3.err": "h100-st-gpu",
	} {
		src, err := logfile.Read(name, strings.NewReader("step 1\n"+diagnosetest.Raised("ValueError: no")))
		require.NoError(t, err)
		r, err := diagnose.Run(context.Background(), src, diagnose.Context{JobState: "FAILED"})
		require.NoError(t, err)
		switch {
		case want == "":
			require.Nil(t, r.RootRank, name)
			require.Nil(t, r.RootNode, name)
		case strings.HasPrefix(want, "rank"):
			require.Equal(t, 3, *r.RootRank, name)
		default:
			require.Equal(t, want, *r.RootNode, name)
		}
	}
}
