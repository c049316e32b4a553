package diagnose_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/diagnosetest"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
)

// The lines after one line decide the verdict.
func TestWhatCameAfterDecides(t *testing.T) {
	const (
		bar  = "Training:  30%|###  | 1754/5830 [18:31<37:11,  1.83it/s, loss=103]"
		lost = "slurm_script: line 14: nvidia-smi: command not found\n"
		one  = "srun: error: gpu1: task 0: Exited with exit code 1\n"
	)
	steps := func(from, to int) (text string) {
		for n := from; n <= to; n++ {
			for _, rank := range []string{"0", "1"} {
				text += "train.step step=" + string(rune('0'+n/10)) + string(rune('0'+n%10)) + " loss=2.1 rank=" + rank + "\n"
			}
		}
		return text
	}
	fell := "RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:598] Connection closed by peer [10.0.0.2]:20667\n" +
		"ERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: 255) local_rank: 0 (pid: 311) of binary: /usr/bin/python3\n"
	raised := "Traceback (most recent call last):\n  File \"/w/a.py\", line 12, in <module>\n    go()\nModuleNotFoundError: No module named 'conda'\n"
	account := "---------------------------------------\nBegin Slurm Epilog: Nov-24-2024 11:04:15\nJob ID:        975937\n" +
		"User ID:       ab3\nAccount:       scs\nJob name:      train\nResources:     cpu=1,node=1\nQueue:         q\n" +
		"Rsrc Used:     cput=00:26:42,vmem=0,walltime=00:26:42,mem=6672K\nPartition:     ice-gpu\nNodes:         atl1-1\n" +
		"---------------------------------------\n"
	debugged := "2025-01-09 16:57:10,127 - DEBUG - Traceback (most recent call last):\n  File \"/w/a.py\", line 44, in probe\nKeyError: 8\n"
	missing := "Traceback (most recent call last):\n  File \"/w/a.py\", line 12, in <module>\n"
	fileError := "FileNotFoundError: [Errno 2] No such file or directory: 'dataset/results/x.h5'\n"
	evaluated := diagnosetest.Rounds(68, "{n}0%|# | {n}/68 [00:30<00:00, 1.0it/s]\r")
	ofRay := diagnosetest.Rounds(6, "(TaskRunner pid=1509) step:{n} - actor/loss:0.1\n"+
		"(TaskRunner pid=1509) Training Progress:   1%|   | {n}/3746 [04:23<18:27:18, 17.83s/it]\n")
	key := "Traceback (most recent call last):\n  File \"/w/main_ppo.py\", line 100, in run_ppo\n    ray.get(runner.run.remote(config))\nKeyboardInterrupt\n"
	summed := strings.Repeat(evaluated+"\n{'eval_loss': 0.6, 'eval_runtime': 130.1, 'epoch': 0.5}\n", 5)
	trained := "{'train_runtime': 4849.0, 'train_samples_per_second': 0.2, 'train_loss': 0.6, 'epoch': 1.0}\n"
	for name, tt := range map[string]struct{ log, class string }{
		"steps with their total and their speed": {missing + "KeyError: 8\n" + diagnosetest.Rounds(9, "step {n} of 100 | 3.1 s/it\n"), outcome.UnknownExit},
		"bars written until KillWait ends": {
			"start\n" + bar + "slurmstepd: error: *** JOB 11980 ON dgx01 CANCELLED AT 2026-06-06T11:58:22 ***\n\r" + bar + "\r" + bar + "\r" + bar + "\r" + bar,
			outcome.SlurmCancelled,
		},
		"another run after a preemption": {
			"slurmstepd: error: *** JOB 5 ON a1 CANCELLED AT 2026-01-01T00:00:00 DUE TO PREEMPTION ***\nstarting up\n" + steps(11, 50) + "Training finished\n",
			outcome.Success,
		},
		"another run after scancel": {
			"slurmstepd: error: *** JOB 5 ON a1 CANCELLED AT 2026-01-01T00:00:00 ***\nstarting up\n" + steps(11, 50) + "Training finished\n",
			outcome.Success,
		},
		"Ctrl-C, of whose traceback only the header was written": {strings.Repeat("Epoch  5 Train Loss: 5.1\n", 9) + "^CTraceback (most recent call last):\n", outcome.SlurmCancelled},
		"a header alone": {strings.Repeat("Epoch  5 Train Loss: 5.1\n", 9) + "Traceback (most recent call last):\n", outcome.UnknownExit},
		"a missing folder of a file to be written": {missing + "    fid = h5py.File(path, 'w')\n" + fileError, outcome.UserException},
		"a missing file to be read":                {missing + "    fid = h5py.File(path, 'r')\n" + fileError, outcome.DatasetMissing},
		"a traceback that a logger calls DEBUG, twice, and a signal": {
			debugged + strings.Repeat("2025-01-09 17:00:48,427 - INFO - Layer 9 - Accuracy: 0.6\n", 9) + debugged + "/s/slurm_script: line 23: 234 Killed   python a.py\n",
			outcome.HostOOM,
		},
		"a check of the environment by python -c, and the program's own error": {
			"Traceback (most recent call last):\n  File \"<string>\", line 2, in <module>\nImportError: Failed to load PyTorch C extensions:\n" +
				diagnosetest.Rounds(4, "[rank0]: step {n} of it\n") + "[rank0]: Traceback (most recent call last):\n[rank0]:   File \"/w/a.py\", line 3, in <module>\n[rank0]: ZeroDivisionError: by zero\n",
			outcome.UserException,
		},
		"a site's account of the job": {summed + trained + account, outcome.Success},
		"a run that is appended to a site's account of the job before it": {
			summed + trained + account + "Preparing the second job\n" + raised, outcome.ImportError,
		},
		"a short run that is appended to a site's account of a job cut short": {
			summed[:len(summed)/2] + account + "Preparing the second job\nThe second job is done\n", outcome.Success,
		},
		"a site's account of a job that was at its work": {summed[:len(summed)/2] + account, outcome.UnknownExit},
		"a part that is done":                            {"Start inference on 900 batches\nInference done 11/900. 0.07 s/iter\nInference done 67/900. 0.08 s/iter\n", outcome.UnknownExit},
		"a module that a logger lacked":                  {"No module named 'hiddenlayer'\n" + strings.Repeat("Epoch:  3\nval loss of it: 0.2\n", 40) + "Terminated\n", outcome.SlurmCancelled},
		"a command that shows things only":               {lost + one, outcome.UnknownExit},
		"a command that is run":                          {"slurm_script: line 14: python3: command not found\n" + one, outcome.EnvLaunch},
		"an exception that a simulation's rows follow":   {raised + strings.Repeat("      818727           539.20537        978.75209    0:00:33\n", 60) + "Exiting simulation.\n", outcome.Success},
		"an exception that few rows follow":              {raised + strings.Repeat("      818727           539.20537        978.75209    0:00:33\n", 20), outcome.ImportError},
		"a program that was killed behind its bar, and Python's warning": {
			diagnosetest.Rounds(9, "Loading a part of it\n {n}0/300 [==>...] - ETA: 1:20:00 - Train Loss: {n}.5\r") + " 100/300 [==>...] - ETA: 1:10:00 - Train Loss: 0.5Killed\n" +
				"/e/lib/python3.8/multiprocessing/resource_tracker.py:216: UserWarning: resource_tracker: There appear to be 6 leaked objects\n" +
				"  warnings.warn('resource_tracker: There appear to be %d '\n", outcome.HostOOM,
		},
		"an exception that bars of epochs follow": {
			raised + "  0%|  | 0/3 [00:00<?, ?epoch/s]\r 33%|# | 1/3 [04:25<08:50, 265.13s/epoch, loss=0.2]\r" +
				" 67%|##| 2/3 [08:43<04:21, 261.32s/epoch, loss=0.1]\r100%|###| 3/3 [13:05<00:00, 261.44s/epoch, loss=0.1]\n", outcome.Success,
		},
		"an exception, and what a library warns of as it leaves": {
			raised + strings.Repeat("WARNING:tensorflow:Unresolved object: (root).k\nW1005 18:57:04.596 14064 util.py:144] Unresolved object: (root).k\n", 60),
			outcome.ImportError,
		},
		"a key, and the stacks of processes that a signal ended": {
			"Traceback (most recent call last):\n  File \"/w/a.py\", line 12, in <module>\n    go()\nKeyboardInterrupt\nFatal Python error: Aborted\n\n" +
				strings.Repeat("Thread 0x00007f48e1fff640 (most recent call first):\n  File \"/w/a.py\", line 12 in go\n"+
					",   File x.ops\", /v/threading.py, line 953 in run\nx.tableThread 0x, 00007f48e1fff640x.algos (most recent call first):\n", 40) +
				"Extension modules: a.b, a.c (total: 2)\n", outcome.SlurmCancelled,
		},
		"a key, and what Ray's driver passes on as it exits": {
			ofRay + key + diagnosetest.Rounds(9, "(WorkerDict pid=1626) INFO: weights are updated\n") + ofRay[:len(ofRay)/2], outcome.SlurmCancelled,
		},
		"a key, and very much that Ray's driver passes on": {
			ofRay + key + strings.Repeat("(WorkerDict pid=1626) INFO: weights are updated\n", 90) + ofRay, outcome.SlurmCancelled,
		},
		"a key, and very much of Ray's workers and of a driver that goes on": {
			ofRay + key + strings.Repeat("(WorkerDict pid=1626) INFO: weights are updated\n", 90) + "Trying the next configuration\n", outcome.UnknownExit,
		},
		"a key, after which Ray's driver writes steps of its own": {ofRay + key + ofRay + steps(1, 9), outcome.UnknownExit},
		"a signal, within the line of the program that it ended": {
			diagnosetest.Rounds(6, "2026-03-04 05:0{n}:07.123456: \nepoch:  {n}\n2026-03-04 05:0{n}:57.868845: validation loss: -0.8{n}\n") +
				"2026-03-04 05:07:07.123456: Terminated\n", outcome.UnknownExit,
		},
		"an evaluation after the Trainer's summary":    {summed + trained + evaluated, outcome.Success},
		"the same, which did not reach its end":        {summed + trained + evaluated[:len(evaluated)/2] + "\n", outcome.UnknownExit},
		"an evaluation, and no summary of the Trainer": {summed + evaluated, outcome.UnknownExit},
		"another program's thousand lines":             {raised + strings.Repeat("A node is removed\n", 1000) + raised, outcome.ImportError},
		"a thousand lines, and signs of an end":        {raised + strings.Repeat("A node is removed\n", 1000) + strings.Repeat("Sending a termination request to 5\n", 2), outcome.UnknownExit},
		"a date alone before and after the work":       {"2017-08-01 11:35:48\n" + strings.Repeat("Step 1 of it\n", 20) + "2017-08-01 13:44:48\n", outcome.Success},
		"a date alone after a few lines":               {"2017-08-01 11:35:48\nk = 10\n2017-08-01 13:44:48\n", outcome.UnknownExit},
		"a date alone after the work":                  {"k = 10\n" + strings.Repeat("Step 1 of it\n", 20) + "2017-08-01 13:44:48\n", outcome.UnknownExit},
		"a table of GPUs behind the words of an end": {
			"done training it\n" + strings.Repeat("| 34%   41C    P0    62W / 260W |      1MiB / 48601MiB |      0%      Default |\n", 40), outcome.Success,
		},
		"how long it took, beside other numbers": {"numbers: 7\nepochs 1, ELAPSED TIME = 4.5965s, THROUGHPUT = 13053.28 samples/s\n", outcome.Success},
		"a score by its whole name":              {"Decoded sentence: n pl\nBLEU score: 0.0316\n", outcome.Success},
		"an option of srun that is no exit code": {"srun --kill-on-bad-exit=1 bash -c \"\nepoch 1 of it\nTraining finished\n", outcome.Success},
		"a date with words at its end":           {strings.Repeat("a pair\n", 3) + "Ending at: Wed Aug  3 22:30:35 CEST 2016\n", outcome.Success},
		"a score before a shell's prompt":        {"BLEU score: 9.3\n(torch2) [ann@localhost sparse]$ \n", outcome.Success},
		"a bar before a shell's prompt":          {"Epoch 3:  30%|###   | 30/100 [00:30<01:10, 1.0it/s]\n(torch2) [ann@localhost sparse]$ \n", outcome.UnknownExit},
		"a key before a shell's prompt":          {"BLEU score: 9.3\n^C\nann@n1:~/w$ \n", outcome.UnknownExit},
		"a shell's prompt alone":                 {"ann@n1:~/w$ \n", outcome.UnknownExit},
		"the last evaluation of OpenMMLab's plan": {
			"mmcls - INFO - workflow: [('train', 1)], max: 2 epochs\nEpoch [1][90/95] loss: 1\nEpoch(val) [1][196]	top: 76\n" +
				"Epoch [2][90/95] loss: 1\nEpoch(val) [2][196]	top: 76\n", outcome.Success,
		},
		"an evaluation within OpenMMLab's plan": {
			"mmcls - INFO - workflow: [('train', 1)], max: 3 epochs\nEpoch [1][90/95] loss: 1\nEpoch(val) [1][196]	top: 76\n" +
				"Epoch [2][90/95] loss: 1\nEpoch(val) [2][196]	top: 76\n", outcome.UnknownExit,
		},
		"lm-evaluation-harness's table":          {"100%|####| 9/9 [00:01<00:00, 9it/s]\n|wikitext|      2|none  |     0|bits_per_byte  |↓  | 0.7347|±  |N/A   |\n====\n", outcome.Success},
		"results in Chinese":                     {"📈 最终结果:\n   - 最终Loss: 0.3364\n📁 输出文件:\n   - 模型: a.pth\n", outcome.Success},
		"an error that R's script caught":        {"Error in ic(x) : \n  could not find it\n" + strings.Repeat("a row\n", 3) + "Analysis finished\n", outcome.Success},
		"an error that ended R's script":         {"Error in ic(x) : \n  could not find it\nCalls: a -> b\nExecution halted\n", outcome.UserException},
		"a package that R lacks":                 {"Error in library(x) : there is no package called ‘x’\nExecution halted\n", outcome.ImportError},
		"a panic that ended a program of Go":     {"End training\npanic: no index\n\ngoroutine 1 [running]:\nmain.main()\n", outcome.UserException},
		"a panic that a program of Go prints":    {"panic: no index\nAnalysis finished\n", outcome.Success},
		"a panic that ended a program of Rust":   {"End training\nthread 'main' panicked at src/main.rs:4:5:\nno index\n", outcome.UserException},
		"a panic of a thread of Rust's":          {"thread 'io-1' panicked at src/io.rs:4:5:\nno index\nAnalysis finished\n", outcome.Success},
		"an exception that ended Java's main":    {"End training\nException in thread \"main\" java.lang.Error: no index\n\tat A.main(A.java:3)\n", outcome.UserException},
		"a rank that called MPI_Abort":           {"End training\nAbort(3) on node 4 (rank 4 in comm 0): application called MPI_Abort(MPI_COMM_WORLD, 3) - process 4\n", outcome.UnknownExit},
		"a worker of R's whose master was ended": {"Error in unserialize(node$con) : error reading from connection\nExecution halted\n", outcome.UnknownExit},
		"a thread's exception when all is done":  {"End training....\nTraceback (most recent call last):\n  File \"/v/threading.py\", line 1016, in _bootstrap_inner\n    self.run()\n  File \"/v/event_file_writer.py\", line 202, in run\n    data = self._queue.get(True)\nOSError: handle is closed\n", outcome.Success},
		"a thread's exception before that":       {"Start training....\nTraceback (most recent call last):\n  File \"/v/threading.py\", line 1016, in _bootstrap_inner\n    self.run()\n  File \"/v/event_file_writer.py\", line 202, in run\n    data = self._queue.get(True)\nOSError: handle is closed\n", outcome.UserException},
		"the time at which a round ended":        {"loss 3\nEpoch 3 ended at: 10:00:00\n", outcome.UnknownExit},
		"the end time of a round":                {"loss 3\nepoch 3 end time: 10:00:00\n", outcome.UnknownExit},
		"the time at which a round finished":     {"loss 3\nFold 2 finished at 2026-01-01 10:00:00\n", outcome.UnknownExit},
		"a round at which something finishes":    {"loss 3\nFinishing at epoch 3\n", outcome.UnknownExit},
		"a warning of an exception to come": {
			"100%|####| 31/31 [00:07<00:00, 3.9it/s]\nSome values belong elsewhere (https://huggingface.co/docs/a). This warning will be raised to an exception in v4.41.\n",
			outcome.Success,
		},
		"conda's own exception, and the program's": {
			strings.ReplaceAll(raised, "/w/a.py", "/opt/conda/bin/conda") + strings.Repeat("/w/b.py:3: UserWarning: x\n", 5) +
				strings.ReplaceAll(raised, "ModuleNotFoundError: No module named 'conda'", "json.decoder.JSONDecodeError: line 14"),
			outcome.UserException,
		},
		"untagged reports of the step that the others end": {
			strings.Repeat("step: 4 loss: 6.5 lr: 0.1\n", 4) + "[rank2]: Traceback (most recent call last):\n[rank2]:   File \"/w/a.py\", line 4, in f\n[rank2]:     go()\n" +
				"[rank2]: RuntimeError: The size of tensor a (48) must match the size of tensor b (32)\n" + strings.Repeat("step: 5 loss: 6.5 lr: 0.1\n", 4) + fell,
			outcome.ShapeMismatch,
		},
		"a program that is not there, by the launcher's word": {
			"/usr/bin/python3: can't open file '/w/pretrain.py': [Errno 2] No such file or directory\n" +
				"ERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: 2) local_rank: 0 (pid: 311) of binary: /usr/bin/python3\n" +
				strings.ReplaceAll(raised, "ModuleNotFoundError: No module named 'conda'", "torch.distributed.elastic.multiprocessing.errors.ChildFailedError:"),
			outcome.EnvLaunch,
		},
		"conda's set-up":              {"CondaValueError: prefix already exists: /home/a/.conda/envs/b\n" + strings.Repeat("Job of it is done with a part\n", 40), outcome.Success},
		"steps after an agent's end":  {steps(1, 9) + fell + steps(4, 20), outcome.UnknownExit},
		"steps that others still end": {steps(1, 9) + fell + steps(10, 10), outcome.NCCLConnection},
	} {
		t.Run(name, func(t *testing.T) {
			r := diagnosetest.Old(t, tt.log)
			require.Equal(t, tt.class, r.Class, "%s", r.RootLine)
		})
	}
}

// Lines of programs that are recognised by their form.
func TestFormsThatNameACause(t *testing.T) {
	run := "Traceback (most recent call last):\n  File \"/usr/lib/python3/dist-packages/torch/distributed/run.py\", line 660, in config_from_args\n    x\n" +
		"  File \"/usr/lib/python3/dist-packages/torch/distributed/%s\", line 103, in f\n    raise ValueError(\nValueError: %s\n"
	for log, class := range map[string]string{
		"ERROR: LoadError: KeyError: key \"impQ_sp\" not found\nStacktrace:\n [1] getindex(g::Group, name::String)\n":                             outcome.UserException,
		"mpiexec was unable to launch the specified application as it could not access\nor execute an executable:\n":                              outcome.EnvLaunch,
		"cp: cannot stat '/home/a/data/train_blurred.tar': No such file or directory\n":                                                           outcome.DatasetMissing,
		"Device name: Orin\nCompute capability: 8.7\nBM_Edge/32  0.8 ms\n":                                                                        outcome.UnknownExit,
		strings.NewReplacer("%s\", line 103", "run.py\", line 625", "%s\n", "Unsupported nproc_per_node value: \n").Replace(run):                  outcome.BadArgs,
		strings.NewReplacer("%s\", line 103", "elastic/rendezvous/utils.py\", line 103", "%s\n", "The hostname of 'gpu[1-2]:302'\n").Replace(run): outcome.Rendezvous,
		"NotImplementedError: Unsloth cannot find any torch accelerator? You need a GPU.\n":                                                       outcome.CUDADriver,
		diagnosetest.Raised("RuntimeError: Expected hidden[0] size (2, 56, 128), got (2, 64, 128)"):                                               outcome.ShapeMismatch,
		diagnosetest.Raised("RuntimeError: input.size(-1) must be equal to input_size. Expected 64, got 32"):                                      outcome.ShapeMismatch,
		"Traceback (most recent call last):\n  File \"/a/torchvision/datasets/imagenet.py\", line 96, in _verify_archive\n    raise RuntimeError(x)\n" +
			"RuntimeError: The archive devkit.tar.gz is not present in the root directory or is corrupted.\n": outcome.DatasetMissing,
	} {
		r := diagnosetest.Old(t, log)
		require.Equal(t, class, r.Class, log)
	}
}

// A shell's message about a missing program is the cause, not srun's report about it.
func TestTheShellsWordsOnAProgramThatIsNotThere(t *testing.T) {
	for _, said := range []string{
		"exec: python: not found", "sh: 1: exec: python: not found", "sh: exec: line 1: python: not found", "/w/run.sh: exec: line 3: python: not found",
		"sh: python: not found", "/bin/sh: python3: not found",
	} {
		r := diagnosetest.Old(t, said+"\nsrun: error: gpu1: task 0: Exited with exit code 127\n")
		require.Equal(t, outcome.EnvLaunch, r.Class, said)
		require.Equal(t, said, r.RootLine)
		p := filepath.Join(t.TempDir(), "x.err")
		require.NoError(t, os.WriteFile(p, []byte(said+"\nsrun: error: gpu1: task 0: Exited with exit code 127\n"), 0o600))
		r, err := diagnose.Path(t.Context(), p, diagnose.Context{JobState: "COMPLETED"})
		require.NoError(t, err)
		require.Equal(t, said, r.RootLine, "of a job whose script went on too")
	}
}

// Slurm reports COMPLETED where a script loses its program's exit status. A traceback that nothing
// followed is the cause all the same, unless the program had said that it was done.
func TestAScriptThatLosesTheExitStatus(t *testing.T) {
	steps := diagnosetest.Rounds(30, "Epoch {n}: Train Loss 0.1\n")
	for log, class := range map[string]string{
		steps + diagnosetest.OOMLog:                          outcome.CUDAOOM,
		steps + "Training finished.\n" + diagnosetest.OOMLog: outcome.Success,
		diagnosetest.OOMLog + steps:                          outcome.Success,
		steps:                                                outcome.Success,
	} {
		p := filepath.Join(t.TempDir(), "x.out")
		require.NoError(t, os.WriteFile(p, []byte(log), 0o600))
		r, err := diagnose.Path(t.Context(), p, diagnose.Context{JobState: "COMPLETED", ExitCode: "0:0"})
		require.NoError(t, err)
		require.Equal(t, class, r.Class, log[max(0, len(log)-200):])
	}
}
