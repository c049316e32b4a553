package diagnose_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose/diagnosetest"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/stretchr/testify/require"
)

// An exception that was caught does not explain a signal that ended its process later, or another one.
func TestAProcessThatASignalEndedDidNotEndByAnException(t *testing.T) {
	caught := diagnosetest.RaisedIn("misc", "KeyError: 'loss'")
	left := func(rank, exit int) string {
		return "  time      : 2026-06-11_10:00:09\n" +
			fmt.Sprintf("  host      : gpu%d\n  rank      : %d (local_rank: 0)\n  exitcode  : %d (pid: 7)\n", rank, rank, exit)
	}
	all := func(exits ...int) (log string) {
		for rank, exit := range exits {
			log += "t.py FAILED\n----\nFailures:\n  <NO_OTHER_FAILURES>\n----\nRoot Cause (first observed failure):\n[0]:\n" + left(rank, exit) + "====\n"
		}
		return log
	}
	usr1 := func(node string, task int) string {
		return fmt.Sprintf("srun: error: %s: task %d: User defined signal 1\n", node, task)
	}
	for name, c := range map[string]struct {
		log, class string
	}{
		"a bus error":                    {caught + all(1, -7, 1), outcome.ShmBusError},
		"SIGUSR1":                        {caught + all(21, -10, 21), outcome.UnknownExit},
		"an abort":                       {caught + all(1, -6, 1), outcome.UserException},
		"SIGKILL, the others lost it":    {caught + all(19, -9, 19), outcome.HostOOM},
		"SIGKILL beside an exception":    {caught + all(1, -9, 1), outcome.UserException},
		"SIGUSR1 to all tasks of srun":   {caught + usr1("gpu1", 0) + usr1("gpu2", 1), outcome.UnknownExit},
		"SIGUSR1 to one of them":         {caught + usr1("gpu1", 0), outcome.UserException},
		"SIGUSR1, and one left":          {caught + usr1("gpu1", 0) + usr1("gpu2", 1) + "srun: error: gpu3: task 2: Exited with exit code 1\n", outcome.UserException},
		"others left each with another":  {caught + all(1, -7, 3), outcome.UserException},
		"the exception left its program": {diagnosetest.Raised("KeyError: 'loss'") + all(1, -7, 1), outcome.UserException},
	} {
		r := diagnosetest.Old(t, c.log)
		require.Equal(t, c.class, r.Class, "%s: %s", name, r.RootLine)
	}
	full := of("[default0]:", diagnosetest.RaisedIn("step", "torch.OutOfMemoryError: CUDA out of memory."))
	second := strings.Replace(exitedWith("gpu1", -11, 1, 1), "local_rank: 0", "local_rank: 1", 1)
	third := strings.Replace(exitedWith("gpu1", 1, 2, 2), "local_rank: 0", "local_rank: 2", 1)
	r := diagnosetest.Old(t, "using world size: 3, data-parallel size: 3, tensor-model-parallel size: 1\n"+full+exitedWith("gpu1", 1, 0, 0)+second+third)
	require.Equal(t, outcome.CUDAOOM, r.Class, r.RootLine)
}

// Steps behind a caught exception show that all ranks lived until a signal from outside ended a launcher. One or two may have
// been made before it, and were only written later.
func TestAnExceptionBeforeStepsOfTheRun(t *testing.T) {
	const (
		step   = " iteration        {n}/     600 | elapsed time per iteration (ms): 934.6 | lm loss: 6.2E+00 |\n"
		signal = "WARNING:torch.distributed.elastic.agent.server.api:Received 2 death signal, shutting down workers\n"
	)
	full := diagnosetest.RaisedIn("step", "torch.OutOfMemoryError: CUDA out of memory.")
	for steps, class := range map[int]string{6: outcome.SlurmCancelled, 1: outcome.CUDAOOM, 0: outcome.CUDAOOM} {
		require.Equal(t, class, diagnosetest.Old(t, full+diagnosetest.Rounds(steps, step)+signal).Class, steps)
	}
}

// The rest of a chain of exceptions is no sign that a process went on after the first of them.
func TestAChainOfExceptionsAmongPeersThatLeaveWithAnotherCode(t *testing.T) {
	first := diagnosetest.RaisedIn("misc", "ValueError: invalid literal for int() with base 10: '4k'")
	chain := first + "\nThe above exception was the direct cause of the following exception:\n\n" +
		diagnosetest.Raised("RuntimeError: could not parse phase 16")
	log := of("gpu1: [default0]:", chain)
	for rank, exit := range []int{21, 1, 21} {
		log += of(fmt.Sprintf("gpu%d: ", rank), diagnosetest.Raised("torch.distributed.elastic.multiprocessing.errors.ChildFailedError: ")+
			"====\nt.py FAILED\n----\nFailures:\n"+
			"  <NO_OTHER_FAILURES>\n----\nRoot Cause (first observed failure):\n[0]:\n  time      : 2026-06-11_10:00:09\n"+
			fmt.Sprintf("  host      : gpu%d\n  rank      : %d (local_rank: 0)\n  exitcode  : %d (pid: 7)\n====\n", rank, rank, exit))
	}
	r := diagnosetest.Old(t, log)
	require.Equal(t, outcome.UserException, r.Class, r.RootLine)
}

// Every step needs all ranks: while the job makes steps, no rank has died of an exception.
func TestStepsUntilSlurmEndsTheJob(t *testing.T) {
	const (
		step   = " [2026-06-11 10:00:0{n}.441329] iteration        {n}/     600 | elapsed time per iteration (ms): 934.6 | lm loss: 6.2E+00 |\n"
		cancel = "slurmstepd-gpu1: error: *** JOB 9 ON gpu1 CANCELLED AT 2026-06-11T10:0%d:07 ***\n"
		ended  = "srun: error: gpu1: tasks 0-1: Terminated\nsrun: error: gpu2: tasks 2-3: Terminated\n"
	)
	caught := diagnosetest.RaisedIn("misc", "KeyError: 'loss'")
	for name, c := range map[string]struct {
		raised, slurm string
		class         string
	}{
		"steps until the end":          {caught, fmt.Sprintf(cancel, 0) + ended, outcome.SlurmCancelled},
		"no steps for minutes":         {caught, fmt.Sprintf(cancel, 3) + ended, outcome.UserException},
		"a process left":               {caught, fmt.Sprintf(cancel, 0) + "srun: error: gpu1: task 1: Exited with exit code 1\n", outcome.UserException},
		"it left its program":          {diagnosetest.Raised("KeyError: 'loss'"), fmt.Sprintf(cancel, 0) + ended, outcome.UserException},
		"only the step was cancelled":  {caught, strings.Replace(fmt.Sprintf(cancel, 0), "JOB 9", "STEP 9.0", 1) + ended, outcome.UserException},
		"raised when the steps ceased": {"2026-06-11 10:00:06,900 loading\n" + caught, fmt.Sprintf(cancel, 0) + ended, outcome.UserException},
	} {
		r := ofFolder(t, map[string]string{"train-9-1.log": c.raised, "train-9-3.log": diagnosetest.Rounds(6, step), "slurm-9.out": c.slurm})
		require.Equal(t, c.class, r.Class, "%s: %s", name, r.RootLine)
	}
}

// A launcher that a signal ended may have had a process that an exception had left hanging, unless steps were made until then.
func TestAnExceptionBeforeASignalEndedItsLauncher(t *testing.T) {
	const (
		step   = " iteration        {n}/     600 | elapsed time per iteration (ms): 934.6 | lm loss: 6.2E+00 |\n"
		told   = "WARNING:torch.distributed.elastic.agent.server.api:Received 15 death signal, shutting down workers\n"
		left   = "srun: error: gpu1: task 0: Exited with exit code 1\n"
		cancel = "slurmstepd-gpu1: error: *** JOB 9 ON gpu1 CANCELLED AT 2026-06-11T10:00:07 DUE TO PREEMPTION ***\n"
	)
	dated := strings.ReplaceAll(step, " iteration", " [2026-06-11 10:00:0{n}.441329] iteration")
	caught := diagnosetest.RaisedIn("misc", "KeyError: 'loss'")
	told2 := diagnosetest.Raised("KeyboardInterrupt") + strings.Replace(told, " 15 ", " 2 ", 1)
	for name, c := range map[string]struct{ raised, step, slurm, class string }{
		"preempted":                      {caught + told, dated, cancel + left, outcome.SlurmPreempted},
		"preempted long after the steps": {caught + told, dated, strings.Replace(cancel, "10:00:07", "10:09:07", 1) + left, outcome.UserException},
		"no launcher was told":           {caught, dated, cancel + left, outcome.UserException},
		"out of memory, and interrupted": {strings.Replace(caught, "KeyError: 'loss'", "torch.OutOfMemoryError: CUDA", 1) + told2, step, "", outcome.CUDAOOM},
		"no step was made":               {caught + told2, "loading\n", "", outcome.UserException},
		"a process had failed before":    {caught + exitedWith("gpu1", 1, 0, 0) + told2, step, "", outcome.UserException},
	} {
		r := ofFolder(t, map[string]string{"train-9.err": c.raised, "train-9.out": diagnosetest.Rounds(6, c.step), "slurm-9.out": "job 9\n" + c.slurm})
		require.Equal(t, c.class, r.Class, "%s: %s", name, r.RootLine)
	}
}

// The exception of the launcher itself is none of a rank's, so that the only exception of a rank with a code of its own is its reason.
func TestAnExceptionOfTheRankWithACodeOfItsOwn(t *testing.T) {
	logged := diagnosetest.RaisedIn("misc", "RuntimeError: tokens were lost")
	lost := diagnosetest.Raised(lostPeer)
	r := ofFolder(t, map[string]string{"logs/gpu1/err.log": lost + exitedWith("gpu1", 1, 0, 0), "logs/gpu2/err.log": logged + exitedWith("gpu2", 13, 1, 1)})
	require.Equal(t, outcome.UserException, r.Class, r.RootLine)
	namesRank(t, 1, r, r.RootLine)
}
