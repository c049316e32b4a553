package scan_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/diagnosetest"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/python"
	"github.com/stretchr/testify/require"
)

// TestFormsAroundTheWords has, in words of our own, what stood around the words
// of whole logs: trackers, quoted tracebacks, prefixes, a terminal's width.
func TestFormsAroundTheWords(t *testing.T) {
	summary := "wandb: - 0.1 MB of 0.1 MB uploaded\nwandb: Run history:\n" + strings.Repeat("wandb:   train_loss ▁▂▃▄\n", 60) +
		"wandb: Run summary:\n" + strings.Repeat("wandb:   train_loss 0.1\n", 60) +
		"wandb: 🚀 View run a at: https://wandb.example/runs/1\nwandb: Synced 5 W&B file(s)\n"
	stopped := "03/09/2024 12:00:01 - INFO - trainer - [42/70] Step: 250/259, Training Loss: 0.26\n"
	for name, c := range map[string]struct{ log, class, line, node string }{
		"a tracker sums up a training that was stopped and saved": {
			"Iter 380/470. train loss: 0.5\nTraining interrupted.\nTraining is done. Took 9 minutes.\nSuccessfully saved the model in runs/a.\n" + summary,
			outcome.Success, "", "",
		},
		"a tracker closes its record of a run that did not come to its end": {"Iter 380/470. train loss: 0.5\n" + summary, outcome.UnknownExit, "Iter 380", ""},
		"a training stops early":      {stopped + "03/09/2024 12:00:09 - INFO - trainer - No gain in 40 epochs. Training stops.\n", outcome.Success, "", ""},
		"a training would stop early": {stopped + "EarlyStopping counter: 3 out of 10\n", outcome.UnknownExit, "", ""},
		"an actor's message quotes the traceback that explains it": {
			"(raylet) " + diagnosetest.Raised("RuntimeError: The actor could not be imported on its worker. A library may be missing there:") + "\n" +
				diagnosetest.Raised("ImportError: /v/attn_cuda.so: undefined symbol: _ZNK3c1011aE") +
				"\nThe above exception was the direct cause of the following exception:\n\n" + diagnosetest.Raised("RuntimeError: Failed to import the model, see above:"),
			outcome.ExtensionABI, "attn_cuda", "",
		},
		"a checkpoint's failure names the other's in its next line": {
			diagnosetest.Raised("torch.distributed.checkpoint.api.CheckpointException: CheckpointException ranks:dict_keys([8])\nOSError: [Errno 5] Input/output error"),
			outcome.Filesystem, "[Errno 5]", "",
		},
		"the store is gone after its launcher had told of a failed rank": {
			"[2026-06-02 17:01:45,559] torch.distributed.elastic.multiprocessing.api: [ERROR] failed (exitcode: 1) local_rank: 0 (pid: 41) of binary: python3\n" +
				"srun: error: gpu1: task 0: Exited with exit code 1\n" +
				diagnosetest.Raised("torch.distributed.elastic.rendezvous.api.RendezvousConnectionError: The connection to the C10d store has failed.") +
				"srun: error: gpu2: task 1: Exited with exit code 1\n",
			outcome.UnknownExit, "exitcode: 1", "",
		},
		"LSF ends a job at its limit": {
			"[2026-01-29 11:04:57,788] torch._dynamo.convert_frame: [WARNING] Traceback (most recent call last):\n" +
				"[2026-01-29 11:04:57,788] torch._dynamo.convert_frame: [WARNING]   File \"/w/t.py\", line 3, in f\n" +
				"[2026-01-29 11:04:57,788] torch._dynamo.convert_frame: [WARNING] torch._dynamo.exc.BackendCompilerFailed: backend='inductor' raised:\n" +
				"[2026-01-29 11:04:57,788] torch._dynamo.convert_frame: [WARNING] FileNotFoundError: [Errno 2] No such file or directory: 'ldconfig'\n" +
				"TERM_RUNLIMIT: job killed after reaching LSF run time limit.\nExited with exit code 140.\n",
			outcome.SlurmTimeLimit, "TERM_RUNLIMIT", "",
		},
		"LSF ends a job for its memory": {"Step 40 of 90\nTERM_MEMLIMIT: job killed after reaching LSF memory usage limit.\n", outcome.HostOOM, "TERM_MEMLIMIT", ""},
		"LSF ends a job for its owner":  {"Step 40 of 90\nTERM_OWNER: job killed by owner.\n", outcome.SlurmCancelled, "TERM_OWNER", ""},
		"LSF's accounts tell that": {
			"Step 40 of 90\nThu Mar 13 19:31:13: Completed <exit>; TERM_MEMLIMIT: job killed after reaching LSF memory usage limit;\n",
			outcome.HostOOM, "TERM_MEMLIMIT", "",
		},
		"bash says in Chinese that a signal killed its program": {
			"Step 40 of 90\nTraining finished.\n./run.sh：行 3：12345 已杀死               python train.py\n", outcome.HostOOM, "已杀死", "",
		},
		"bash says in Chinese that its program crashed": {
			"Step 40 of 90\n./run.sh: 行 3: 12345 段错误               （核心已转储）python train.py\n", outcome.Segfault, "段错误", "",
		},
		"bash says in Chinese that its program was told to end": {
			"Step 40 of 90\n./run.sh: 行 3: 12345 已终止               python train.py\n", outcome.UnknownExit, "已终止", "",
		},
		"the terminal of bash's program is gone": {
			"Step 40 of 90\nslurm_script: line 9: 1234 Hangup                  python train.py\n", outcome.UnknownExit, "Hangup", "",
		},
		"a program says in Chinese that a worker was killed": {
			"已杀死 3 个空闲的数据进程\n" + strings.Repeat("Step 40 of 90\n", 4) + diagnosetest.Raised("KeyError: 'a'"),
			outcome.UserException, "KeyError", "",
		},
		"Julia's GPU is full": {
			"ERROR: LoadError: Out of GPU memory trying to allocate 8.000 GiB\nEffective GPU memory usage: 99.77% (39.5 GiB/39.6 GiB)\n\nStacktrace:\n  [1] alloc(pool)\n",
			outcome.CUDAOOM, "Out of GPU memory", "",
		},
		"LSF's queue closes":           {"Step 40 of 90\nTERM_WINDOW: job killed after queue run window closed.\n", outcome.SlurmTimeLimit, "TERM_WINDOW", ""},
		"LSF's deadline is over":       {"Step 40 of 90\nTERM_DEADLINE: job killed after deadline expires.\n", outcome.SlurmTimeLimit, "TERM_DEADLINE", ""},
		"LSF requeues a job":           {"Step 40 of 90\nTERM_REQUEUE_ADMIN: job killed and requeued by root or LSF administrator.\n", outcome.SlurmPreempted, "REQUEUE", ""},
		"LSF's host has too much load": {"Step 40 of 90\nTERM_LOAD: job killed after load exceeds threshold.\n", outcome.SlurmPreempted, "TERM_LOAD", ""},
		"PBS ends a job at its limit":  {"Step 40 of 90\n=>> PBS: job killed: walltime 3605 exceeded limit 3600\n", outcome.SlurmTimeLimit, "walltime", ""},
		"LSF preempts a job":           {"Step 40 of 90\nTERM_PREEMPT: job killed after preemption.\n", outcome.SlurmPreempted, "TERM_PREEMPT", ""},
		"Slurm's word stands behind a bar, and the container is taken down": {
			"Generating train split: 0 examples [00:00, ? examples/s]slurmstepd-gpu19: error: *** JOB 88 ON gpu19 CANCELLED AT 2026-06-02T13:28:49 ***\n" +
				"slurmstepd-gpu19: error: container_p_join: open failed for /var/tmp//gpu19/88/.ns: No such file or directory\n" +
				"slurmstepd-gpu19: error: container_g_join(88): No such file or directory\n",
			outcome.SlurmCancelled, "CANCELLED AT", "",
		},
		"a search's trials all failed, and its script says that it completed": {
			diagnosetest.Raised("KeyError: 'labels'") + "Trial train_00001 errored after 0 iterations. Total running time: 29s\nNumber of errored trials: 2\n" +
				strings.Repeat("│ train_00001    1   /tmp/ray/error.txt │\n", 9) + "Job completed at Tue Feb  4 07:25:54 CET 2026\n",
			outcome.UserException, "KeyError", "",
		},
		"a line of a book in the log speaks of a hostess": {
			"\"It is nothing!\" exclaimed my unknown hostess. \"In a few\nminutes\" the rest.\n" + strings.Repeat("Generating train split: 8 examples\n", 3) +
				"[rank1]:[E922 03:32:06.1160 ProcessGroupNCCL.cpp:607] [Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=875, " +
				"OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=1800000) ran for 1800091 milliseconds before timing out.\n",
			outcome.NCCLTimeout, "SeqNum=875", "",
		},
		"Lightning is interrupted after the data were prepared": {
			"Preprocessing train: 100%|##########| 2545/2545 [00:00<00:00, 4113.70it/s]\n2.6 M     Trainable params\n" +
				"call.py:48: UserWarning: Detected KeyboardInterrupt, attempting graceful shutdown...\nUser defined signal 2\n",
			outcome.SlurmCancelled, "KeyboardInterrupt", "",
		},
		"a program says how long it ran": {
			"epoch 331, minibatch 120/120, validation error 5.71 %\nThe training code for file  ran for 330.08m\n", outcome.Success, "", "",
		},
		"a container's log stamps mpirun's lines": {
			"2026-06-02T16:13:40.100Z: [1,12]<stdout>:Iter 830120, loss 0.4421, speed 812 img/s\n" +
				"2026-06-02T16:13:44.884Z: [1,12]<stdout>:gpu-57:815:864 [0] net_ib.cu:80 NCCL WARN NET/IB : Got async event : local catastrophic error\n",
			outcome.NCCLIB, "catastrophic", "gpu-57",
		},
		"iterations go on after an exception": {
			diagnosetest.Raised("RuntimeError: CUDA out of memory. Tried to allocate 14.78 GiB") +
				strings.Repeat("\titers: 1200, speed: 0.3967s/iter, left time: 1833.5979s, smape: 72.2\n", 30) + "loading model\n",
			outcome.UnknownExit, "loading model", "",
		},
		"a training says its whole time after the last epoch": {
			"Test:  [3684/3685]  eta: 0:00:00  loss: 50.9 (76.9)  time: 0.1025\nAveraged stats: loss: 50.9 (76.9)\nTraining time 6:57:19\n",
			outcome.Success, "", "",
		},
		"the same behind a logger's name": {
			"INFO:root:[300,    48] loss: 7.5e-04 [lr: 1.0e-06] (1821.7 ms)\nINFO:root:time taken for epoch 0:05:56.19\nINFO:root:Total pretraining time 17:09:44.788631\n",
			outcome.Success, "", "",
		},
		"the time of an epoch is no end": {
			"Epoch 3 of 9\nINFO:root:[3,    48] loss: 7.5e-04 [lr: 1.0e-06] (1821.7 ms)\nINFO:root:training time for epoch 0:05:56.19\n",
			outcome.UnknownExit, "", "",
		},
		"a Trainer prints its measures": {
			"[INFO|trainer_pt_utils.py:907] 2021-05-25 06:45:27,965 >> ***** train metrics *****\n" +
				"[INFO|trainer_pt_utils.py:912] 2021-05-25 06:45:27,966 >>   train_runtime            = 0:14:31.66\n",
			outcome.Success, "", "",
		},
		"a bar begins after another was full": {
			"Loading weights: 100%|####| 398/398 [00:01<00:00, 300.1it/s]\nshape 2 by 1024\n  0%|          | 0/2198 [00:06<?, ?it/s]\n",
			outcome.UnknownExit, "", "",
		},
		"the log ends within a traceback": {
			"100%|####| 321/321 [10:00<00:00,  1.9s/it]\nError in sys.excepthook:\nTraceback (most recent call last):\n" +
				"  File \"/v/run/callback.py\", line 81, in hook\n    close(error)\n  File \"/v/run/ma",
			outcome.UnknownExit, "", "",
		},
		"Hydra tells where it looked": {
			"main.py:94: UserWarning:\nThe version is not given.\n  @hydra.main(config_path='config')\n" +
				"Cannot find primary config 'walker'. Check that it's in your config search path.\n\nConfig search path:\n\tprovider=main, path=file:///w/config\n\n" +
				"Set the environment variable HYDRA_FULL_ERROR=1 for a complete stack trace.\n",
			outcome.BadArgs, "Cannot find primary config", "",
		},
		"Hydra tells where it looked, behind a run that was interrupted": {
			diagnosetest.Raised("KeyboardInterrupt") + "main.py:94: UserWarning:\nThe version is not given.\n  @hydra.main(config_path='config')\n" +
				"Cannot find primary config 'runner'. Check that it's in your config search path.\n\nConfig search path:\n\tprovider=main, path=file:///w/config\n\n" +
				"Set the environment variable HYDRA_FULL_ERROR=1 for a complete stack trace.\n",
			outcome.BadArgs, "Cannot find primary config", "",
		},
		"a process that was being started is cut off": {
			"Training epoch 0\n" + strings.Repeat("Traceback (most recent call last):\n  File \"<string>\", line 1, in <module>\n"+
				"  File \"/v/lib/python3.10/multiprocessing/spawn.py\", line 126, in _main\n    self = reduction.pickle.load(from_parent)\n"+
				"_pickle.UnpicklingError: pickle data was truncated\n", 2),
			outcome.UnknownExit, "pickle data was truncated", "",
		},
		"only srun names the node of a container": {
			"slurmstepd: error: pyxis: container start failed with error code: 1\nslurmstepd: error: pyxis: printing contents of log file ...\n" +
				"slurmstepd: error: pyxis:     enroot-switchroot: failed to execute: /bin/zsh: No such file or directory\n" +
				"slurmstepd: error: pyxis: couldn't start container\nsrun: error: worker-b: task 0: Exited with exit code 1\n",
			outcome.Container, "enroot-switchroot", "worker-b",
		},
		"Hydra refuses a setting, and the launchers lose each other": {
			strings.Repeat("\nAmbiguous value for argument 'data.split=980,10,10'\n1. To use it as a list, use key=[a,b]\n\n"+
				"Set the environment variable HYDRA_FULL_ERROR=1 for a complete stack trace.\n", 2) +
				"E0207 17:32:12.377 14 api.py:833] failed (exitcode: 1) local_rank: 0 (pid: 9) of binary: /v/python3.10\n" +
				diagnosetest.Raised("torch.distributed.DistNetworkError: Connection reset by peer"),
			outcome.BadArgs, "Ambiguous value", "",
		},
		"Hydra's last line follows a traceback": {
			"Loading\n\nError executing job with overrides: []\n" + diagnosetest.Raised("KeyError: 'loss'") +
				"\nSet the environment variable HYDRA_FULL_ERROR=1 for a complete stack trace.\n",
			outcome.UserException, "KeyError", "",
		},
		"what Hydra called raised something in several blocks": {
			"Loading\n\nError executing job with overrides: []\n" + diagnosetest.Raised("RuntimeError: XLA:TPU compile permanent error. Ran out of memory in memory space hbm.") +
				"\nTotal hbm usage: 100.63G\n\n  1. Size: 126.00M\n     Unpadded size: 126.00M\n" +
				"\nSet the environment variable HYDRA_FULL_ERROR=1 for a complete stack trace.\n",
			outcome.CUDAOOM, "memory space hbm", "",
		},
		"a launcher's summary names one host only": {
			diagnosetest.Raised("AssertionError") + "Root Cause (first observed failure):\n[0]:\n  time      : 2026-05-13_16:37:31\n  host      : proj186\n" +
				"  rank      : 0 (local_rank: 0)\n  exitcode  : 1 (pid: 25)\n  error_file: <N/A>\n  traceback : none\n",
			outcome.UserException, "AssertionError", "proj186",
		},
		"srun names two": {
			"slurmstepd: error: pyxis:     enroot-switchroot: failed to execute: /bin/zsh: No such file or directory\n" +
				"slurmstepd: error: pyxis: couldn't start container\nsrun: error: worker-a: task 0: Exited with exit code 1\n" +
				"srun: error: worker-b: task 1: Exited with exit code 1\n",
			outcome.Container, "enroot-switchroot", "",
		},
		"a node's name holds no number": {
			"slurmstepd: error: *** JOB 17 ON bigmachine CANCELLED AT 2026-08-12T02:06:12 DUE TO PREEMPTION ***\n",
			outcome.SlurmPreempted, "PREEMPTION", "",
		},
		"a terminal's width breaks a traceback": {
			"Traceback (most recent call last):\n  File \"D:\\work\\train.py\", line 5, in <module>\n    main()\n" +
				"  File \"D:\\work\\lib\\site-packa\nges\\compile.py\", line 46, in call\n    return super().call()\n  File \"D:\\work\\train.py\", line 9, in main\n    raise Missing()  # a long lin\ne=1\n" +
				"  File \"D:\\work\\lib\\site-packages\\tor\nch\\scheduler.py\", line 54, in create\n    raise Missing()\n" +
				"lib.exc.CompilerMissing: Cannot find a wor\nking compiler\n",
			outcome.UserException, "CompilerMissing", "",
		},
		"a script waits for a daemon that logs names and values": {
			strings.Repeat("Cannot connect to the Docker daemon at unix:///tmp/docker.sock. Is the docker daemon running?\n+ sleep 1\n", 9) +
				strings.Repeat("time=\"2026-11-25T20:04:26.39+11:00\" level=info msg=\"loading a plugin\" type=io\n", 60),
			outcome.UnknownExit, "", "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := diagnosetest.Old(t, c.log)
			require.Equal(t, c.class, r.Class, "%s: %s", r.Why, r.RootLine)
			require.Contains(t, r.RootLine, c.line)
			if c.node != "" {
				require.NotNil(t, r.RootNode)
				require.Equal(t, c.node, *r.RootNode)
			}
			if name == "srun names two" {
				require.Nil(t, r.RootNode)
			}
		})
	}
}

// paddle is how Paddle's workers say which signal ended them.
func paddle(words, signal string) string {
	return "epoch 3, step 40, loss 0.3\n\n----------------------\nC++ Traceback (most recent call last):\n----------------------\n" +
		"0   paddle::Reader::Next()\n\n----------------------\nError Message Summary:\n----------------------\n" +
		"FatalError: `" + words + "` is detected by the operating system.\n" +
		"  [TimeInfo: *** Aborted at 1635751836 (unix time) try \"date -d @1635751836\" if you are using GNU date ***]\n" +
		"  [SignalInfo: *** " + signal + " (@0x3e8) received by PID 7866 (TID 0x7fd2) from PID 7929 ***]\n"
}

// boxed is Rich's form of a traceback, whose long path leaves the function to the next line.
func boxed(last string) string {
	return "╭───────── Traceback (most recent call last) ─────────╮\n" +
		"│ /home/a/long/way/to/the/train.py:12 in              │\n│ <module>                                            │\n" +
		"│                                                     │\n│    11 │   x = f()                                   │\n" +
		"│ ❱  12 │   main()                                    │\n│ /home/a/model.py:40 in main                         │\n" +
		"╰─────────────────────────────────────────────────────╯\n" + last + "\n"
}

// TestWhatLibrariesSay has words of libraries, interpreters and batch systems that are
// easily taken for something else.
func TestWhatLibrariesSay(t *testing.T) {
	numpy := "RuntimeError: module compiled against API version 0xc but this version of numpy is 0xa\n"
	for name, c := range map[string]struct{ log, class, line string }{
		"Paddle was told to end":   {paddle("Termination signal", "SIGTERM"), outcome.SlurmCancelled, "Termination signal"},
		"Paddle touched no memory": {paddle("Segmentation fault", "SIGSEGV"), outcome.Segfault, "Segmentation fault"},
		"Paddle lost its memory":   {paddle("Access to an undefined portion of a memory object", "SIGBUS"), outcome.ShmBusError, "undefined portion"},
		"Paddle divided by zero":   {paddle("Erroneous arithmetic operation", "SIGFPE"), outcome.Segfault, "arithmetic"},
		"Paddle aborted":           {paddle("Process abort signal", "SIGABRT"), outcome.Segfault, "abort"},
		"Paddle was told to end when a thread that reads data had died": {
			"Exception in thread Thread-3:\nTraceback (most recent call last):\n  File \"/usr/lib/python3.8/threading.py\", line 932, in _bootstrap_inner\n" +
				"    self.run()\n  File \"/w/reader.py\", line 61, in _thread_loop\n    batch.reraise()\nKeyError: 'label'\n" +
				paddle("Termination signal", "SIGTERM"),
			outcome.UserException, "label",
		},
		"Paddle trained on when a thread had died, and was told to end": {
			"Exception in thread Thread-3:\nTraceback (most recent call last):\n  File \"/usr/lib/python3.8/threading.py\", line 932, in _bootstrap_inner\n" +
				"    self.run()\n  File \"/w/reader.py\", line 61, in _thread_loop\n    batch.reraise()\nKeyError: 'label'\n" +
				strings.Repeat("Reading the next part of the data\n", 4) + paddle("Termination signal", "SIGTERM"),
			outcome.SlurmCancelled, "Termination signal",
		},
		"the interpreter leaves out a file of the environment": {
			"Error processing line 1 of /v/lib/python3.9/site-packages/distutils-precedence.pth:\n\n  Traceback (most recent call last):\n" +
				"    File \"/v/lib/python3.9/site.py\", line 169, in addpackage\n      exec(line)\n" +
				"  ModuleNotFoundError: No module named '_distutils_hack'\n\nRemainder of file ignored\n" + diagnosetest.Raised("ValueError: no such mode"),
			outcome.UserException, "no such mode",
		},
		"a warning begins in the line after its name": {
			"/v/torch/cuda/__init__.py:326: UserWarning: \nNVIDIA GTX 1080 with CUDA capability sm_61 is not compatible with the current PyTorch installation.\n" +
				"  warnings.warn(\nfinal accuracy: 0.97\nTraining finished.\n",
			outcome.Success, "",
		},
		"HTCondor says that a job ended well, whose script could not change its folder": {
			"/pool/run.sh: line 8: cd: /afs/flow: No such file or directory\nepoch 3 loss 0.2\n" +
				"005 (15001273.000.000) 04/25 19:13:55 Job terminated.\n\t(1) Normal termination (return value 0)\n\t15511  -  Run Bytes Sent By Job\n",
			outcome.Success, "",
		},
		"a worker without a launcher": {diagnosetest.Raised("KeyError: 'LOCAL_RANK'"), outcome.EnvLaunch, "LOCAL_RANK"},
		"another name is a key":       {diagnosetest.Raised("KeyError: 'RANKING'"), outcome.UserException, "RANKING"},
		"two runs that Rich draws": {
			boxed("torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 48.00 MiB") + "epoch 1 loss 0.3\n" + boxed("ValueError: Sample larger than population"),
			outcome.UserException, "Sample larger",
		},
		"a library does without NumPy, and much later the program fails": {
			numpy + strings.Repeat("I tensorflow/core/gpu_device.cc:906] Found a device\n", 14) + diagnosetest.Raised("KeyError: 'v60109'"), outcome.UserException, "v60109",
		},
		"a library needs NumPy": {numpy + diagnosetest.Raised("SystemError: initialization failed"), outcome.ExtensionABI, "numpy"},
		"a signal ends the run after the one that finished": {
			"Run finished 151 round(s) in 12.5s\n" + strings.Repeat("INFO : aggregate_fit: received 45 results and 0 failures\n", 20) +
				"*** SIGTERM received at time=1759753629 on cpu 42 ***\nCommand '['simulate', '--app']' died with <Signals.SIGABRT: 6>.\n",
			outcome.SlurmCancelled, "SIGTERM",
		},
		"a script tells the time behind an open bar":     {"\r 50%|█████     | 1/2 [00:26<00:26, 26.06s/it]\n+ date\nEND TIME: Tue Sep  5 22:35:51 UTC 2023\n", outcome.Success, ""},
		"a script tells that its end was none":           {"loss 0.3\nJob end: ERROR\n", outcome.UnknownExit, ""},
		"a script ends and could not do all":             {"loss 0.3\nscript end, could not copy results\n", outcome.UnknownExit, ""},
		"a service denies access, and not a file system": {diagnosetest.Raised("wandb.errors.CommError: Permission denied, ask the owner for access"), outcome.UserException, "CommError"},
		"LSF tells the time of an end before its reason": {
			"Terminated at Thu Sep  8 12:47:42 2022\n\nTERM_MEMLIMIT: job killed after reaching LSF memory usage limit.\nExited with signal termination: 25.\n",
			outcome.HostOOM, "TERM_MEMLIMIT",
		},
		"a script that goes on after each of its programs was refused": {
			strings.Repeat(strings.Repeat("2020-01-01 15:12:39.97: I tensorflow/dso_loader.cc:42] Successfully opened a library\n", 5)+
				strings.Repeat("usage: train.py [-h]\n                [config]\ntrain.py: error: unrecognized arguments: a.yaml\n", 5), 4) + "Train across nodes\n",
			outcome.BadArgs, "unrecognized",
		},
		"a program says its first line again when it is done": {
			"Run directory: /scratch/logs/2026-01-06\n" + strings.Repeat("| reward | 78.5 |\n", 9) + "Training complete!\nRun directory: /scratch/logs/2026-01-06\n",
			outcome.Success, "",
		},
		"a benchmark of MLPerf came to its target": {
			":::MLLOG {\"namespace\": \"\", \"time_ms\": 1, \"event_type\": \"INTERVAL_END\", \"key\": \"run_stop\", \"metadata\": {\"status\": \"success\"}}\nThroughput: 9 samples/s\n",
			outcome.Success, "",
		},
		"a benchmark of MLPerf did not": {
			":::MLLOG {\"namespace\": \"\", \"time_ms\": 1, \"event_type\": \"INTERVAL_END\", \"key\": \"run_stop\", \"metadata\": {\"status\": \"aborted\"}}\n",
			outcome.UnknownExit, "",
		},
		"MLPerf's script says what came of it": {"step 3 of 90, loss 0.3\nRESULT,IMAGE_CLASSIFICATION,,3573,nvidia,2019-06-18 11:23:44 AM\n", outcome.Success, ""},
		"TensorFlow lets go of its server as the process ends": {
			"loss 0.3\n2026-08-26 21:46:26.8: W tensorflow/eager/context.cc:566] Unable to destroy server_ object, so releasing instead. Servers don't support clean shutdown.\n",
			outcome.Success, "",
		},
		"a training that has enough before its bar is full": {"\r 50%|█████     | 1/2 [00:26<00:26, 26.06s/it]\nfinished pretraining\n", outcome.Success, ""},
		"the end, within a bar that is drawn once more": {
			"\r 50%|█    | 9/20 [00:26<00:26, 2.0it/s]Training finished\n 50%|█    | 10/20 [00:26<00:26, 2.0it/s]\n", outcome.Success, "",
		},
		"an exception that leaves the loop of a bar": {
			"Traceback (most recent call last):\n  File \"/w/fit.py\", line 3, in <module>\n    fit()\n  File \"/v/loader.py\", line 13, in one\n" +
				"    success, one = self._take()\n                   ^^^^^^^^^^^^\n  File \"/v/loader.py\", line 14, in _take\n    raise RuntimeError(\n" +
				"RuntimeError: DataLoader worker (pid 31) is killed by signal: Terminated.\nEpoch 3:   0%|     | 0/28 [00:00<?, ?it/s]\n",
			outcome.UnknownExit, "",
		},
		"the end of a part, after which the bar goes on": {
			"\r 45%|█    | 9/20 [00:26<00:26, 2.0it/s]Training finished\n 50%|█    | 10/20 [00:26<00:26, 2.0it/s]\n 55%|█    | 11/20 [00:26<00:26, 2.0it/s]\n",
			outcome.UnknownExit, "",
		},
		"a round of a training": {"\r 50%|█████     | 1/2 [00:26<00:26, 26.06s/it]\nFinished training epoch 1\n", outcome.UnknownExit, ""},
		"Horovod's benchmark sums up": {
			strings.Repeat("[0]<stdout>:Iter #9: 419.7 img/sec per GPU\n", 9) + "[0]<stdout>:Img/sec per GPU: 422.6 +-27.3\n[0]<stdout>:Total img/sec on 8 GPU(s): 3380.4 +-218.2\n",
			outcome.Success, "",
		},
		"a file system denies access": {"cat: /data/a: Permission denied\n", outcome.Filesystem, "cat"},
	} {
		t.Run(name, func(t *testing.T) {
			r := diagnosetest.Old(t, c.log)
			require.Equal(t, c.class, r.Class, "%s: %s", r.Why, r.RootLine)
			require.Contains(t, r.RootLine, c.line)
		})
	}
}

// TestATimeLimitOutlivesAnotherProcess has the two logs of a job: one process died
// at its start, another worked on in tables until Slurm ended the job.
func TestATimeLimitOutlivesAnotherProcess(t *testing.T) {
	for _, c := range []struct {
		steps int
		class string
	}{{9, outcome.SlurmTimeLimit}, {0, outcome.UserException}} {
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, "job.err"), []byte(diagnosetest.Raised("AttributeError: folder")+
			"slurmstepd: error: *** JOB 20 ON gpu4 CANCELLED AT 2026-11-07T11:30:22 DUE TO TIME LIMIT ***\n"), 0o644))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "job.out"), []byte("begins\n"+
			strings.Repeat("| time/              |          |\n|    total_timesteps | 128000   |\n--------------\n", c.steps)), 0o644))
		r, err := diagnose.Path(context.Background(), dir, diagnose.Context{JobState: "ENDED"})
		require.NoError(t, err)
		require.Equal(t, c.class, r.Class)
	}
}

// TestAFunctionThatTensorFlowCompiles has an exception that TensorFlow tells with words of
// its own before it: the one behind them counts, and its frames.
func TestAFunctionThatTensorFlowCompiles(t *testing.T) {
	head := "Epoch 1/5\nTraceback (most recent call last):\n  File \"/w/train.py\", line 9, in <module>\n    model.fit(x)\n" +
		"  File \"/e/site-packages/keras/utils/traceback_utils.py\", line 70, in error_handler\n    raise e\nValueError: in user code:\n\n" +
		"    File \"/w/net.py\", line 21, in call  *\n        return self.head(x)\n"
	whole := diagnosetest.Old(t, head+"\n    ValueError: the head takes 3 axes, not 2\n\n")
	require.Equal(t, outcome.UserException, whole.Class)
	require.Equal(t, "ValueError: the head takes 3 axes, not 2", whole.RootLine)
	require.Equal(t, &python.Frame{File: "/w/net.py", Line: 21, Function: "call"}, whole.Traceback)
	require.Equal(t, "ValueError: in user code:", diagnosetest.Old(t, head).RootLine, "a log that was cut off")
}
