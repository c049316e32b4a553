package scan_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/diagnosetest"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/stretchr/testify/require"
)

// TestFormsOfWholeLogs has, in words of our own, what whole logs of other
// people's jobs showed (testdata/whole_logs.jsonl): the lines around a cause, and
// what is no failure though it sounds like one.
func TestFormsOfWholeLogs(t *testing.T) {
	conda := "\nCommandNotFoundError: Your shell has not been properly configured to use 'conda activate'.\nTo initialize your shell, run\n\n" +
		"    $ conda init <SHELL_NAME>\n\n"
	lmod := "Lmod has detected the following error: The following module(s) are unknown:\n\"cuda/13.9\"\n\nPlease check the spelling or version number.\n"
	agent := func(n int) string {
		return strings.Repeat("Agent reads a question\n", 40) + diagnosetest.Raised("ValueError: nothing to join")
	}
	deepspeed := "[2026-03-23 19:21:33,362] [INFO] [launch.py:335:sigkill_handler] Killing subprocess 17\n" +
		"[2026-03-23 19:21:33,409] [ERROR] [launch.py:341:sigkill_handler] ['/usr/bin/python3', '-u', 'pretrain_gpt.py', '--local_rank=1', '--load', " +
		"'/ckpt/no checkpoint', '--tensor-model-parallel-size', '2'] exits with return code = 1\n"
	for name, c := range map[string]struct{ log, class, line string }{
		"conda and modules complain, then the program fails": {conda + lmod + diagnosetest.Raised("requests.exceptions.ChunkedEncodingError: ('Connection broken: "+
			"IncompleteRead(48 bytes read)')"), outcome.UserException, "ChunkedEncodingError"},
		"modules complain, and nobody knows how the job ended": {lmod + lmod, outcome.UnknownExit, ""},
		"a launcher repeats the command": {"[rank1]: " + strings.ReplaceAll(strings.TrimSuffix(diagnosetest.Raised("AttributeError: 'Namespace' object has no attribute "+
			"'zero'"), "\n"), "\n", "\n[rank1]: ") + "\n" + deepspeed, outcome.UserException, "AttributeError"},
		"UCX names an error of the system, then a crash": {
			"0: [1579.838] [gpu12:56:2]  ucp_rkey.c:250  UCX  ERROR Failed to unpack remote key from remote md[4]: Input/output error\n" +
				"0: [gpu12:56:2:56] Caught signal 11 (Segmentation fault: address not mapped to object at address 0x20)\n" +
				"srun: error: gpu12: task 0: Segmentation fault\n",
			outcome.Segfault, "egmentation fault",
		},
		"NCCL's last error names the network": {
			"34: " + strings.ReplaceAll(diagnosetest.Raised("torch.distributed.DistBackendError: NCCL error in: NCCLUtils.cpp:93, invalid usage (run with "+
				"NCCL_DEBUG=WARN for details), NCCL version 2.29.3\nncclInvalidUsage: This usually reflects invalid usage of NCCL library.\nLast error:\n"+
				"Failed to initialize any NET plugin"), "\n", "\n34: ") + "\nsrun: error: gpu7: task 34: Exited with exit code 1\n",
			outcome.NCCLConnection, "NET plugin",
		},
		"TensorFlow has no memory left": {
			diagnosetest.Raised("tensorflow.python.framework.errors_impl.ResourceExhaustedError: OOM when allocating tensor with shape[2,64] and type float on " +
				"/job:localhost/replica:0/task:0/device:GPU:0 by allocator GPU_0_bfc"),
			outcome.CUDAOOM, "ResourceExhausted",
		},
		"a program says that it terminated normally": {
			"Optimization terminated successfully.\nOverall wall time : 1h : 5m\n\n CREST terminated normally.\n",
			outcome.Success, "",
		},
		"programs die of the same exception, and their script says that it has finished": {
			agent(1) + agent(2) + agent(3) + agent(4) + agent(5) + "Agent 5 is done, evaluating\nFinished!!!\n",
			outcome.UserException, "ValueError",
		},
		"a program outlives its exceptions": {
			agent(1) + agent(2) + agent(3) + agent(4) + agent(5) + strings.Repeat("Agent reads a question\n", 40) + "All agents have finished.\n",
			outcome.Success, "",
		},
		"the same exceptions, and nothing after": {agent(1) + agent(2) + agent(3) + agent(4) + agent(5), outcome.UserException, "ValueError"},
		"another run is appended to the log": {
			"[2026-07-22 00:28:33,917 INFO infer.py line 78] Start\n" + diagnosetest.Raised("KeyboardInterrupt") + strings.Repeat("[2026-08-04 18:33:00,968 INFO "+
				"infer.py line 142] Test: [10/124]\n", 12),
			outcome.UnknownExit, "",
		},
		"a trainer's summary": {"{'loss': 0.03, 'epoch': 1.0}\n{'train_runtime': 209.3, 'train_samples_per_second': 15.3, 'train_loss': " +
			"0.08, 'epoch': 1.0}\n", outcome.Success, ""},
		"an evaluation's measures": {"1249it [16:08, 1.45it/s]\n{'rouge1': 0.166, 'rouge2': 0.054, 'rougeL': 0.164}\n", outcome.Success, ""},
		"a network test comes to its end": {"# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 28.2632\n" +
			"# Collective test concluded: all_reduce_perf\n", outcome.Success, ""},
		"a step ends of a failure elsewhere": {" 0: [2026-05-21T23:27:18.188] error: *** STEP 23.1 ON gpu077 CANCELLED AT 2026-05-21T23:27:18 DUE TO " +
			"TASK FAILURE ***\n" +
			"52: [rank52]: " + strings.ReplaceAll(strings.TrimSuffix(diagnosetest.Raised("AssertionError: the scheduler's steps do not match"), "\n"), "\n",
			"\n52: [rank52]: ") + "\nsrun: error: gpu622: task 52: Exited with exit code 1\n", outcome.UserException, "AssertionError"},
		"a script ends in a syntax error": {"find: '/data/none': No such file or directory\n" +
			"/var/spool/job17/slurm_script: line 98: syntax error: unexpected end of file\n", outcome.EnvLaunch, "syntax error"},
		"a program prints how it is called": {
			"17\n\nUsage:\n./regions -i <input> -o <out> [options]\n\nArguments:\n\t-i\tinput\n\t-o\toutput\n",
			outcome.BadArgs, "Usage:",
		},
		"a usage text, and the program runs": {"Usage:\n./regions -i <input> [options]\n\t-i\tinput\nreading 12 regions\n" +
			"Could not parse one, going on\n", outcome.UnknownExit, ""},
		"a script misses a setting": {"[Experiment] name=static\n[Error] HOSTFILE is required when PP>1\n", outcome.BadArgs, "HOSTFILE"},
		"notes follow the end": {"8388608   437.3   21.7\n\n=== All Tests Complete ===\n\nKey findings:\n  - works\n" +
			"Compare with the other one\n", outcome.Success, ""},
		"work follows such an end":    {"All tests complete\n" + strings.Repeat("Reading a shard\n", 20), outcome.UnknownExit, ""},
		"an evaluation's table":       {"   macro avg   0.56   0.53   0.42   3000\nprecision = 0.53\nf1_macro = 0.42\n", outcome.Success, ""},
		"a score in a row of many":    {strings.Repeat("accuracy = 0.42\nA batch\n", 12) + "accuracy = 0.43\n", outcome.UnknownExit, ""},
		"a score after an early stop": {"Epoch 12/40 | Loss: 0.5\nEpoch 13/40 | Loss: 0.5\n✅ 平均准确率：0.8800 ± 0.0512\n", outcome.Success, ""},
		"wandb begins": {"wandb: Tracking run with wandb version 0.19.4\nwandb: Run data is saved locally in /w/run-1\n" +
			"wandb: Syncing run a\nwandb: 🚀 View run at https://wandb.example/runs/1\n", outcome.UnknownExit, ""},
		"wandb ends": {
			"wandb: 🚀 View run a at: https://wandb.example/runs/1\nwandb: Synced 5 W&B file(s), 0 media file(s)\n",
			outcome.Success, "",
		},
		"a job goes on after its preemption": {"slurmstepd: error: *** JOB 33 ON gpu46 CANCELLED AT 2025-12-21T01:31:22 DUE TO PREEMPTION ***\n" +
			"[2025-12-21 01:51:40] start\n" + strings.Repeat("Reading a shard\n", 20) + "[2025-12-21 04:51:40] Evaluation finished\n", outcome.Success, ""},
		"a job ends with its preemption": {
			strings.Repeat("Reading a shard\n", 20) + "slurmstepd: error: *** JOB 33 ON gpu46 CANCELLED AT " +
				"2025-12-21T01:31:22 DUE TO PREEMPTION ***\n[2025-12-21 01:31:40] a last word\n[2025-12-21 01:32:40] and another\n", outcome.SlurmPreempted,
			"PREEMPTION",
		},
		"TensorFlow warns of a library": {"2021-10-06 15:57:04.287119: W external/tf/dso_loader.cc:64] Could not load dynamic library " +
			"'libcudart.so.11.0'; dlerror: libcudart.so.11.0: cannot open shared object file: No such file or directory\n", outcome.UnknownExit, ""},
		"a program says the same of many": {strings.Repeat("Date 2022-11-22T06:00:00 missing from dataset\n", 9) + "Hello world\n", outcome.UnknownExit, ""},
		"UCX names no network": {"1: [1580.362194] [gpu05:56774:2] cuda_ipc_md.c:102  UCX  ERROR cuIpcGetMemHandle(&key) is failed. " +
			"ret:invalid device\n1: result: tensor(37.1)\n", outcome.UnknownExit, ""},
		"a script's second program is killed too": {strings.Repeat("Loading shards: 100%|####| 4/4 [00:00<00:00, 13.1it/s]\nSpecial tokens were added\n"+
			"run.sh: line 25: 1200 Killed   python one.py\nReading\nWriting\nAsking\n", 2) +
			"Loading shards: 100%|####| 4/4 [00:00<00:00, 13.1it/s]\nrun.sh: line 25: 1300 Killed   python one.py\n", outcome.HostOOM, "Killed"},
		"a container's image is broken, and something else had complained": {
			"Unable to open log file. Permission denied\nFATAL:   container creation failed: mount /proc/self/fd/9->/rootfs error: can't mount image: " +
				"kernel reported a bad superblock for squashfs image partition\n", outcome.Container, "superblock",
		},
		"NCCL's last error names memory": {
			"[rank3]: " + strings.ReplaceAll(strings.TrimSuffix(diagnosetest.Raised("torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:33, unhandled cuda "+
				"error, NCCL version 2.26.2\nncclUnhandledCudaError: Call to CUDA function failed.\nLast error:\nCuda failure 2 'out of memory'"), "\n"),
				"\n", "\n[rank3]: ") + "\n", outcome.CUDAOOM, "out of memory",
		},
		"UCX gives up": {"0: [gpu09:43722:2:43760] rndv.c:943  Fatal: failed to unpack remote key: Input/output error\n" +
			"0: [gpu09:43722] *** Process received signal ***\nsrun: error: gpu09: task 0: Aborted\n", outcome.Segfault, ""},
		"another program writes on after one that could not start": {
			diagnosetest.Raised("RuntimeError: The server socket has failed to listen on any local network address. port: 4321, code: -98, name: EADDRINUSE") +
				strings.Repeat("2025-02-04 22:37:09,911 INFO: [base][epoch:  3, iter:     100, lr:(3.000e-05,)] [eta: 4:06:17]\n", 4),
			outcome.UnknownExit, "",
		},
		"a trainer's dictionaries follow": {diagnosetest.Raised("ValueError: no") + strings.Repeat("{'loss': 0.03, 'learning_rate': 1e-5, 'epoch': 1.0}\n", 4), outcome.UnknownExit, ""},
		"what begins last has not ended":  {"Finished fine-tuning!\nRunning eval.sh at /store/exp1\nGenerating F1 scores!\n", outcome.UnknownExit, ""},
		"what came out stands last":       {"Running the benchmark...\nTotal: 4241, Correct: 2385, Accuracy: 56.24%\n", outcome.Success, ""},
		"a notebook is written":           {"[NbConvertApp] Writing 1282704 bytes to a.ipynb\n", outcome.Success, ""},
		"a warning of what is written":    {"WARNING: All log messages before InitializeLog() are written to STDERR\na device\n", outcome.UnknownExit, ""},
		"somebody stops DeepSpeed's runner": {
			"[2025-02-20 20:27:14,902] [INFO] [launch.py:328:sigkill_handler] Main process received SIGINT, exiting\n",
			outcome.SlurmCancelled, "SIGINT",
		},
		"dash finds no folder": {"0: /workspace\n0: /bin/dash: 1: cd: can't cd to /home/a/src\n", outcome.EnvLaunch, "can't cd"},
		"a tool of another language fails": {"Error: connect ENOENT /tmp/a.sock\n    at PipeConnectWrap (net.js:1146:16) {\n" +
			strings.Repeat("Converting a notebook\n", 12) + "[NbConvertApp] Writing 12 bytes to a.ipynb\n", outcome.Success, ""},
		"a task's script goes on after pip": {
			"3: ERROR: Could not install packages due to an OSError: [Errno 2] No such file or directory: 'a'\n6: " +
				strings.ReplaceAll(strings.TrimSuffix(diagnosetest.Raised("ImportError: libcublasLt.so.11: cannot read file data"), "\n"), "\n", "\n6: ") + "\n",
			outcome.ImportError, "libcublasLt",
		},
		"Python ignores what fails at exit, of two processes at once": {
			strings.Repeat("1: Exception ignored in atexit callback: <function put at 0x7f>\n1: Traceback (most recent call last):\n", 2) +
				"1:   File \"/w/cache.py\", line 9, in put\n1: FileNotFoundError: [Errno 2] No such file or directory: 'a.tmp'\n" +
				"1:   File \"/w/cache.py\", line 9, in put\n1: FileNotFoundError: [Errno 2] No such file or directory: 'a.tmp'\n",
			outcome.UnknownExit, "",
		},
		"a step's times follow": {"Unable to load checkpoint.\n" + strings.Repeat("[2025-01-06 12:02:46,200] [INFO] [logging.py:96:log_dist] [Rank 0] "+
			"time (ms) | fwd_microstep: 2376.21 | bwd_microstep: 7453.6\n", 3), outcome.UnknownExit, ""},
		"Composer's steps follow": {
			"Unable to load checkpoint.\n[batch=1/80]:\n[batch=2/80]:\n[epoch=1][batch=3/80]:\n", outcome.UnknownExit, "",
		},
		"counts of batches are none of Composer's": {
			"Unable to load checkpoint.\n[batch=1/80] a\nx [batch=2/80]:\n[batch=3]:\n", outcome.CheckpointLoad, "Unable",
		},
		"what fails while a signal ends the process": {
			diagnosetest.Raised("torch.distributed.elastic.multiprocessing.api.SignalException: Process 47068 got signal: 1") +
				"\nDuring handling of the above exception, another exception occurred:\n\n" + diagnosetest.Raised("KeyError: 30"), outcome.SlurmCancelled, "signal: 1",
		},
		"a script survives, and its program warns": {"/var/spool/slurmd/job6/slurm_script: line 12: activate: No such file or directory\n" +
			"/w/lib/python3.7/site-packages/torch/nn/functional.py:3734: UserWarning: upsample is deprecated.\n", outcome.UnknownExit, ""},
		"each run says so":               {strings.Repeat("Unable to open log file. Permission denied\n"+strings.Repeat("Reading a shard\n", 20), 3), outcome.UnknownExit, ""},
		"a program tells its whole time": {"|  Setup wall time:           1    seconds\n|  Total wall time:          98    seconds     0.03 hours\n", outcome.Success, ""},
		"a pipeline fails and tells its time": {
			"Starting visualization...\nRNA pipeline failed: clusters are needed\nTotal execution time: 1300.77 seconds\n",
			outcome.UnknownExit, "",
		},
		"a bar of Keras is cut":            {kerasBar(296960, 30) + kerasBar(165376, 16), outcome.UnknownExit, "165376/296960"},
		"a bar of Keras is full":           {kerasBar(165376, 16) + kerasBar(296960, 30), outcome.Success, ""},
		"a training took more than a day":  {"Epoch: [49] loss: 7.3142\nTraining time 1 day, 20:03:58\n", outcome.Success, ""},
		"a training tells its whole time":  {"2023-10-03 03:57:53,388 seg INFO: Total training time: 4:49:16 (0.8678s / it)\n", outcome.Success, ""},
		"a step tells its whole time":      {"2019-12-01 13:27:25 Steps 220, Total time 5.87, data 0.02%. Loss 1.942e+01\n", outcome.UnknownExit, ""},
		"a run was ended when it was done": {"   This run was terminated on:  11:43:20  17Mar2020\n\n=-----=\n   JOB DONE.\n=-----=\n", outcome.Success, ""},
		"dash cannot read a file":          {"/var/lib/slurmd/job5/slurm_script: 8: .: Can't open /var/lib/slurmd/job5/home\n", outcome.EnvLaunch, "Can't open"},
		"an image's layers explode":        {"Docker image path: index.docker.io/a/tfgpu:latest\nExploding layer: sha256:11679b84.tar.gz\n", outcome.UnknownExit, ""},
		"a level stands in a column": {
			"ERROR  : Failed opening trigger file /tmp/.clean: No space left on device\nABORT  : Retval = 255\n",
			outcome.DiskFull, "No space",
		},
		"the task that ran out of memory": {"GPUassert: hipErrorOutOfMemory src/lists.cu 336\nsrun: error: n7: task 3: Exited with exit code 1\n" +
			"srun: error: n7: tasks 0-2,4-5: Terminated\n", outcome.CUDAOOM, "hipErrorOutOfMemory"},
		"a traceback begins, and a bar was full": {
			"100%|####| 9/9 [00:09<00:00, 1.0it/s]\nEpoch 58 of 58\n^CTraceback (most recent call last):\n",
			outcome.SlurmCancelled, "",
		},
		"LSF says that the job did well": {"N E X T F L O W\nStarted at Wed Apr  9 08:24:59 2025\nTerminated at Wed Apr  9 08:25:14 2025\n\n" +
			"Successfully completed.\n\nResource usage summary:\n\n    CPU time :  12 sec.\n", outcome.Success, ""},
		"LSF says that the script did well, behind a program that did not": {
			diagnosetest.Raised("KeyError: 'tokens'") + "Job Finished.\n\nTerminated at Wed Apr  9 08:25:14 2025\n\nSuccessfully completed.\n", outcome.UserException, "tokens",
		},
		"LSF says that the script did well, behind a program that said so, too": {
			"[after training is done] datetime: 2026-06-11 10:00:00 \nSuccessfully completed.\n", outcome.Success, "",
		},
		"LSF says that the script did well, behind programs of which the first did not": {
			diagnosetest.Raised("KeyError: 'tokens'") + "/w/eval.py:7: UserWarning: slow\nJob Finished.\n\nSuccessfully completed.\n", outcome.Success, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := diagnosetest.Old(t, c.log)
			require.Equal(t, c.class, r.Class, "%s: %s", r.Why, r.RootLine)
			require.Contains(t, r.RootLine, c.line)
		})
	}
}

// TestModulesDecideWhereTheJobEnded has the same complaint of a job that is
// known to have ended: nothing else says why.
func TestModulesDecideWhereTheJobEnded(t *testing.T) {
	r := diagnosetest.With(t, "Lmod has detected the following error: The following module(s) are unknown:\n\"cuda/13.9\"\n", diagnose.Context{JobState: "FAILED"})
	require.Equal(t, outcome.EnvLaunch, r.Class)
}

// TestWhoStatesAndWhoGuesses has, in words of our own, what logs about fabrics,
// storage, containers and data loaders showed: the line of the one who knows
// decides, and what is told in passing does not.
func TestWhoStatesAndWhoGuesses(t *testing.T) {
	steps := func(from, n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "Epoch 4:  9%%|#   | %d/9000 [1:00:0%d<9:00:00, 1.0it/s, loss=2.0]\n", from+i, i)
		}
		return b.String()
	}
	for name, c := range map[string]struct{ log, class, line string }{
		"a process has its time to end after the limit": {
			steps(10, 2) + "slurmstepd: error: *** STEP 55.0 ON gpu17 CANCELLED AT 2026-01-10T15:27:25 DUE TO TIME " +
				"LIMIT ***\nsrun: Job step aborted: Waiting up to 32 seconds for job step to finish.\nTold to end, and goes on\n" + steps(12, 4),
			outcome.SlurmTimeLimit, "TIME LIMIT",
		},
		"a shell says that its program was killed, and a bar was full": {
			"Epoch 0: 100%|####| 20/20 [06:12<00:00, 1.78s/it]\nWriting the checkpoint.\nKilled\n", outcome.HostOOM, "Killed",
		},
		"a script's shell says so too, and the shards were loaded": {
			"Loading shards: 100%|####| 4/4 [00:00<00:00, 13.1it/s]\nSpecial tokens have been added.\n" +
				"make.sh: line 25: 13009 Killed                  python make.py --model ${MODEL}\n", outcome.HostOOM, "Killed",
		},
		"a shell says so of each program that it starts": {
			"make.sh: line 25: 13007 Killed                  python make.py\n" + steps(10, 5) +
				"make.sh: line 25: 13009 Killed                  python make.py\n", outcome.HostOOM, "13009",
		},
		"an adapter registers anew, and the run goes on": {
			"n1:50:53 [0] transport/net_ib.cc:93 NCCL WARN NET/IB : Got async event : client reregistration\n\n" +
				"n1:50:53 [0] transport/net_ib.cc:93 NCCL WARN NET/IB : Got async event : SM change\n***** Running training *****\nstep 10 of 90, loss 2.4\n",
			outcome.UnknownExit, "step 10",
		},
		"a data loader's process knows its signal, its parent guesses": {
			diagnosetest.Raised("RuntimeError: DataLoader worker (pid(s) 1889, 1890) exited unexpectedly") +
				"ERROR: Unexpected bus error encountered in worker. This might be caused by insufficient shared memory (shm).\n",
			outcome.ShmBusError, "bus error",
		},
		"a data loader says that its workers are gone, after the signal that ended one": {
			"step 10\nstep 11\n" + diagnosetest.Raised("RuntimeError: DataLoader worker (pid 1889) is killed by signal: Terminated.") +
				"\nThe above exception was the direct cause of the following exception:\n\n" +
				diagnosetest.Raised("RuntimeError: DataLoader worker (pid(s) 1889, 1890) exited unexpectedly"),
			outcome.UnknownExit, "Terminated",
		},
		"a checkpoint's failure carries that of another rank": {
			"[rank9]: " + strings.ReplaceAll(strings.TrimSuffix(diagnosetest.Raised("torch.distributed.checkpoint.api.CheckpointException: CheckpointException "+
				"ranks:dict_keys([8, 9])\nTraceback (most recent call last): (RANK 8)\n  File \"/v/checkpoint/filesystem.py\", line 5, in write_data\n    f.write(x)\n"+
				"OSError: [Errno 5] Input/output error"), "\n"), "\n", "\n[rank9]: ") + "\n",
			outcome.Filesystem, "[Errno 5]",
		},
		"a warning's second line names a module": {
			"/v/site-packages/tool/version.py:8: RuntimeWarning: Failed to read the commit:\nNo module named 'tool._commit'\n  from tool.version import VERSION\n" +
				"Loading the actors\n" + diagnosetest.Raised("AssertionError: no actor registered within 120 s"),
			outcome.UserException, "no actor",
		},
		"two processes write their exceptions into one another": {
			"Traceback (most recent call last):\n  File \"/w/train.py\", line 9, in <module>\n    main()\ntorch.cuda    engine = start(\n" +
				".OutOfMemoryError: CUDA out of memory. Tried to allocate 3.00 GiB.\n  File \"/v/engine.py\", line 40, in start\n    return Engine(\n",
			outcome.CUDAOOM, "CUDA out of memory",
		},
		"a tokenizer cannot allocate, and its process aborts": {
			"[2026-04-16 21:36:16,042] [INFO] [comm.py:586:init_distributed] Initializing TorchBackend\nmemory allocation of 1048576 bytes failed\n" +
				"[2026-04-16 21:54:13,235] [INFO] [launch.py:428:sigkill_handler] Killing subprocess 17\n",
			outcome.HostOOM, "memory allocation",
		},
		"pip builds a package, and nothing comes after": {
			"  note: This error originates from a subprocess, and is likely not a problem with pip.\n  ERROR: Failed building wheel for fused_kernels\n" +
				"Failed to build fused_kernels\n\n[notice] A new release of pip is available\nerror: failed-wheel-build-for-install\n",
			outcome.ExtensionABI, "Failed building wheel",
		},
		"CMake finds no library, and the package's setup fails of that": {
			"CMake Error at cmake/FindCUDNN.cmake:7 (find_library):\n  Could not find cudnn_LIBRARY\n\n-- Configuring incomplete, errors occurred!\n" +
				diagnosetest.Raised("subprocess.CalledProcessError: Command '['/usr/bin/cmake', '-S', '/w/src']' returned non-zero exit status 1."),
			outcome.ExtensionABI, "CMake Error",
		},
		"srun reaches no munged": {
			"+ srun -p gpu python train.py\nsrun: error: If munged is up, restart with --num-threads=10\nsrun: error: Munge encode failed: Failed to access " +
				"\"/run/munge/munge.socket.2\": No such file or directory\nsrun: error: slurm_send_node_msg: auth_g_create: REQUEST_RESOURCE_ALLOCATION has " +
				"authentication error\n",
			outcome.SlurmSubmitRejected, "Munge",
		},
		"nothing: what was read is no end": {
			"[2026-04-13 17:50:00,378] [INFO] [engine.py:3027:_get_states] successfully read 16 ZeRO state_dicts for rank 5\n", outcome.UnknownExit, "",
		},
		"a node's credential has expired": {
			"Nodes: n130 n131\nsrun: error: Task launch for 36.0 failed on node n131: Job credential expired\n" +
				"srun: error: Application launch failed: Job credential expired\nsrun: Job step aborted: Waiting up to 32 seconds for job step to finish.\n",
			outcome.SlurmNodeFail, "node n131",
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := diagnosetest.Old(t, c.log)
			require.Equal(t, c.class, r.Class, "%s: %s", r.Why, r.RootLine)
			require.Contains(t, r.RootLine, c.line)
		})
	}
}

// kerasBar returns the bar that Keras draws of an epoch of 296,960 samples in a column of 30 places.
func kerasBar(n, places int) string {
	bar := strings.Repeat("=", places) + ">" + strings.Repeat(".", 30)
	return fmt.Sprintf("Epoch 1/1\n%d/296960 [%s] - ETA: 365s - loss: 2.1371\n", n, bar[:30])
}
