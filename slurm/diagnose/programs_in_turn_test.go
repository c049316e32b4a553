package diagnose_test

import (
	"strings"
	"testing"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/diagnosetest"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/stretchr/testify/require"
)

// Programs of one script that fail one after the other: the last decides.
func TestTheProgramThatEndedLastDecides(t *testing.T) {
	raise := func(script, text string, prefixes ...string) (all string) {
		if prefixes == nil {
			prefixes = []string{""}
		}
		for _, p := range prefixes {
			all += p + "Traceback (most recent call last):\n" + p + `  File "/w/` + script + `", line 30, in <module>` + "\n" + p + "    main()\n" +
				p + `  File "/w/` + script + `", line 12, in main` + "\n" + p + "    run()\n" + p + text + "\n"
		}
		return all
	}
	const first = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."
	const last = "ValueError: the label is 3"
	const works = "Loading the model\nThe optimizer is Adam\nA batch has 8 rows\n"
	trained := diagnosetest.Rounds(20, " iteration {n}/ 400 | elapsed time per iteration (ms): 5000.0 | lm loss: 2.0E+00 |\n")
	const exited = "srun: error: gpu1: task 0: Exited with exit code 1\n"
	ranks := []string{"[rank0]: ", "[rank1]: "}
	limit := "slurmstepd: error: *** JOB 7 ON gpu1 CANCELLED AT 2026-03-01T10:06:00 DUE TO TIME LIMIT ***\n"
	for name, c := range map[string]struct{ log, class, root string }{
		"two scripts":                    {raise("a.py", first) + works + raise("b.py", last), outcome.UserException, last},
		"of two ranks each":              {raise("a.py", first, ranks...) + works + raise("b.py", last, ranks...), outcome.UserException, last},
		"by srun's labels":               {raise("a.py", first, "0: ", "1: ") + works + raise("b.py", last, "0: ", "1: "), outcome.UserException, last},
		"three scripts":                  {raise("a.py", first) + works + raise("b.py", "KeyError: 'b'") + works + raise("c.py", last), outcome.UserException, last},
		"two modules":                    {raise("a/x.py", first) + works + raise("b/y.py", last), outcome.UserException, last},
		"nothing between":                {raise("a.py", first) + raise("b.py", last), outcome.CUDAOOM, first},
		"two lines between":              {raise("a.py", first) + "Loading the model\nThe optimizer is Adam\n" + raise("b.py", last), outcome.CUDAOOM, first},
		"each of its own rank":           {raise("a.py", first, ranks[0]) + works + raise("b.py", last, ranks[1]), outcome.CUDAOOM, first},
		"side by side":                   {raise("a.py", first) + works + raise("b.py", "KeyError: 'b'") + works + raise("a.py", first), outcome.CUDAOOM, first},
		"it lacks what the first made":   {raise("a.py", last) + works + raise("b.py", "FileNotFoundError: [Errno 2] No such file or directory: '/w/x.bin'"), outcome.UserException, last},
		"nobody answers it":              {raise("a.py", last) + works + raise("b.py", "ConnectionRefusedError: [Errno 111] Connection refused"), outcome.UserException, last},
		"nobody joins it":                {raise("a.py", last) + works + raise("b.py", "torch.distributed.DistNetworkError: The client socket has timed out after 60000ms while trying to connect to (gpu1, 29500)."), outcome.UserException, last},
		"its peer left":                  {raise("a.py", last) + works + raise("b.py", "RuntimeError: [../gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.0.0.1]:2000"), outcome.UserException, last},
		"its server left":                {raise("a.py", last) + works + raise("b.py", "ConnectionResetError: [Errno 104] Connection reset by peer"), outcome.UserException, last},
		"it started the first":           {raise("a.py", first) + works + raise("b.py", "RuntimeError: the run ended with code 1"), outcome.CUDAOOM, first},
		"it names the run that failed":   {raise("a.py", first) + works + raise("b.py", "RuntimeError: the training did not finish"), outcome.CUDAOOM, first},
		"no group of processes":          {raise("a.py", first) + works + raise("b.py", "ValueError: Default process group has not been initialized"), outcome.UserException, "process group"},
		"its own data loader":            {raise("a.py", first) + works + raise("b.py", "RuntimeError: DataLoader worker (pid(s) 311) exited unexpectedly"), outcome.HostOOM, "DataLoader"},
		"a check of its own":             {raise("a.py", first) + works + raise("b.py", "AssertionError: check failed: an odd label"), outcome.UserException, "check failed"},
		"its installation lacks a file":  {raise("a.py", last) + works + raise("b.py", "ImportError: libx.so.12: cannot open shared object file: No such file or directory"), outcome.ExtensionABI, "libx.so"},
		"a plot after a training":        {trained + raise("a.py", first) + works + raise("plot.py", "IndexError: list index out of range"), outcome.CUDAOOM, first},
		"two programs after a training":  {trained + "Training finished.\n" + raise("a.py", "KeyError: 'a'") + works + raise("b.py", last), outcome.UserException, last},
		"a training after a preparation": {raise("prepare.py", "KeyError: 'a'") + trained + raise("b.py", first), outcome.CUDAOOM, first},
		"side by side, each time another end": {
			raise("a.py", first) + works + raise("b.py", "KeyError: 'b'") + works + raise("a.py", last), outcome.CUDAOOM, first,
		},
		"lacks it, a third does not": {
			raise("a.py", "KeyError: 'a'") + works + raise("b.py", "FileNotFoundError: [Errno 2] No such file or directory: '/w/x.bin'") + works + raise("c.py", last),
			outcome.UserException, last,
		},
		"a third lacks it": {
			raise("a.py", first) + works + raise("b.py", last) + works + raise("c.py", "FileNotFoundError: [Errno 2] No such file or directory: '/w/x.bin'"),
			outcome.UserException, last,
		},
		"a killed one before": {
			"/w/job.sh: line 12: 311 Killed                  python a.py\n" + works + raise("b.py", last),
			outcome.UserException, last,
		},
		"the shell tells of another command": {
			"+ python convert.py\n" + raise("a.py", first) + "+ srun python train.py\nLoading the model\n" + limit,
			outcome.SlurmTimeLimit, strings.TrimSpace(limit),
		},
		"the shell tells of a third command after two scripts": {
			"+ python convert.py\n" + raise("a.py", first) + works + raise("b.py", last) + "+ srun python train.py\nLoading the model\n" + limit,
			outcome.SlurmTimeLimit, strings.TrimSpace(limit),
		},
		"only a step of the other command is cancelled": {
			"+ python convert.py\n" + raise("a.py", first) + "+ srun python train.py\nLoading the model\n" +
				"slurmstepd: error: *** STEP 7.0 ON gpu1 CANCELLED AT 2026-03-01T10:06:00 ***\n",
			outcome.CUDAOOM, first,
		},
		"only the other command fails, for want of a file": {
			"+ python convert.py\nAll is well\n+ python b.py\nLoading the model\n" + raise("b.py", "FileNotFoundError: [Errno 2] No such file or directory: '/w/x.bin'"),
			outcome.DatasetMissing, "/w/x.bin",
		},
		"no command after it":       {"+ python convert.py\n" + raise("a.py", first) + "Loading the model\n" + limit, outcome.CUDAOOM, first},
		"the same for each rank":    {"+ python a.py 0\n" + raise("a.py", first) + "+ python a.py 1\nLoading the model\n" + limit, outcome.CUDAOOM, first},
		"a command that no program": {"+ python a.py\n" + raise("a.py", first) + "+ date\nLoading the model\n" + limit, outcome.CUDAOOM, first},
		"another step": {
			"slurmstepd: error: Detected 1 oom_kill event in StepId=77.0. Some of the step tasks have been OOM Killed.\n" +
				"srun: error: gpu1: task 0: Out Of Memory\n" + works + raise("b.py", last) + exited,
			outcome.UserException, last,
		},
		"another step, the daemon writes later": {
			"srun: error: gpu1: task 0: Out Of Memory\nslurmstepd: error: Detected 1 oom_kill event in StepId=77.0. Some of the step tasks have been OOM Killed.\n" +
				works + raise("b.py", last) + exited,
			outcome.UserException, last,
		},
		"another step, whose daemon writes": {
			"srun: error: gpu1: task 0: Out Of Memory\n" + works + works + "slurmstepd: error: Detected 1 oom_kill event in StepId=77.1. Some of the step tasks have been OOM Killed.\n" +
				"srun: error: gpu1: task 0: Out Of Memory\n",
			outcome.HostOOM, "StepId=77.1",
		},
		"another task of the step": {
			"srun: error: gpu1: task 1: Out Of Memory\n" + works + raise("b.py", last) + exited,
			outcome.HostOOM, "srun: error: gpu1: task 1: Out Of Memory",
		},
		"another node": {
			"srun: error: gpu2: task 0: Out Of Memory\n" + works + raise("b.py", last) + exited,
			outcome.HostOOM, "srun: error: gpu2: task 0: Out Of Memory",
		},
		"the second is killed": {
			raise("a.py", "KeyError: 'a'") + works + "/w/job.sh: line 12: 311 Killed                  python b.py\n",
			outcome.HostOOM, "/w/job.sh: line 12",
		},
		"the second is killed after two lines": {
			raise("a.py", "KeyError: 'a'") + "Loading the model\nThe optimizer is Adam\n/w/job.sh: line 12: 311 Killed                  python b.py\n",
			outcome.UserException, "KeyError: 'a'",
		},
		"a killed command before": {
			"/w/job.sh: line 12: 311 Segmentation fault      (core dumped) ./convert --all\n" + works + raise("b.py", last),
			outcome.UserException, last,
		},
		"a killed interpreter": {
			"/w/job.sh: line 12: 311 Segmentation fault      (core dumped) /usr/bin/python3 $CALL\n" + works + raise("b.py", last),
			outcome.Segfault, "/w/job.sh: line 12",
		},
		"no GPU, and another failure": {"No devices were found\n" + works + raise("b.py", last), outcome.UserException, last},
		"no GPU, which it needs": {
			"Failed to initialize NVML: Driver/library version mismatch\n" + works + raise("b.py", "RuntimeError: No CUDA GPUs are available"),
			outcome.CUDADriver, "Failed to initialize NVML",
		},
		"the GPU stays broken": {
			"NVRM: Xid (PCI:0000:4e:00): 79, pid=4242, GPU has fallen off the bus.\n" + raise("a.py", first) + works + raise("b.py", last),
			outcome.GPUHardware, "NVRM: Xid (PCI:0000:4e:00): 79, pid=4242, GPU has fallen off the bus.",
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := diagnosetest.With(t, "Reading the data\n"+c.log, diagnose.Context{JobState: "ENDED"})
			require.Equal(t, c.class, r.Class, "%s: %s", r.Why, r.RootLine)
			require.Contains(t, r.RootLine, c.root)
		})
	}
}

// A script that went on after a failed step, and whose next program did its work, succeeded if Slurm says so.
func TestTheLastProgramSucceeded(t *testing.T) {
	const failed = "+ srun python check.py\n" + noApex + "srun: error: gpu1: task 0: Exited with exit code 1\n"
	const trained = "Loading the model\nEpoch 1/2 loss 2.3\nEpoch 2/2 loss 2.1\nTraining finished.\n"
	next := failed + "+ srun python train.py\n" + trained
	r := diagnosetest.With(t, next, diagnose.Context{JobState: "COMPLETED", ExitCode: "0:0"})
	require.Equal(t, outcome.Success, r.Class)
	require.Equal(t, "ModuleNotFoundError: No module named 'apex'", r.PassedOver[0].Text)
	require.Equal(t, outcome.ImportError, diagnosetest.With(t, next, diagnose.Context{JobState: "FAILED", ExitCode: "1:0"}).Class)
	require.Equal(t, outcome.ImportError, diagnosetest.With(t, failed+trained, diagnose.Context{JobState: "COMPLETED", ExitCode: "0:0"}).Class, "they may be of one program")
}
