package diagnose_test

import (
	"context"
	"strconv"
	"strings"
	"testing"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/diagnosetest"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logfile"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/stretchr/testify/require"
)

// Logs that leave the end open, together with Slurm's record.
func TestSlurmsWordDecidesWhereTheLogSaysLittle(t *testing.T) {
	const quiet = "> building datasets ...\n> building the index of it ...\n"
	const lost = "0: terminate called after throwing an instance of 'c10::DistBackendError'\n1: terminate called after throwing an instance of 'c10::DistBackendError'\n"
	const exited = "srun: error: gpu1: task 0: Exited with exit code 1\n"
	const told = "torch.distributed.elastic.multiprocessing.api.SignalException: Process 311 got signal: 15\n"
	const late = "[rank1]:[E ProcessGroupNCCL.cpp:632] [Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=9, OpType=ALLREDUCE, NumelIn=1, " +
		"NumelOut=1, Timeout(ms)=600000) ran for 600052 milliseconds before timing out.\n"
	const step = "slurmstepd: error: *** STEP 7.0 ON gpu1 CANCELLED AT 2026-03-01T10:06:00 ***\n"
	const whole = "Reading a shard\nThe learning rate is 0.01\nTraining finished.\n"
	long, code, none := int64(1e6), "3:0", "0:0"
	steps := diagnosetest.Rounds(4, " iteration {n}/ 400 | elapsed time per iteration (ms): 5000.0 | lm loss: 2.0E+00 |\n")
	finished := diagnosetest.Rounds(4, " [2026-03-01 10:0{n}:00] iteration {n}/ 4 | lm loss: 2.0E+00 |\n") + "[after training is done] datetime: 2026-03-01 10:05:00\n"
	for name, c := range map[string]struct {
		log   string
		given diagnose.Context
		class string
	}{
		"not started":                  {quiet, diagnose.Context{JobState: "PENDING"}, outcome.Running},
		"cancelled":                    {quiet, diagnose.Context{JobState: "CANCELLED"}, outcome.SlurmCancelled},
		"failed":                       {quiet, diagnose.Context{JobState: "FAILED"}, outcome.UnknownExit},
		"an exit code":                 {quiet, diagnose.Context{JobState: "ENDED", ExitCode: "3:0"}, outcome.UnknownExit},
		"exit code 0 and no signal":    {quiet, diagnose.Context{JobState: "ENDED", ExitCode: "0:0"}, outcome.Success},
		"exit code 0":                  {quiet, diagnose.Context{JobState: "ENDED", ExitCode: "0"}, outcome.Success},
		"nothing known":                {quiet, diagnose.Context{JobState: "ENDED"}, outcome.UnknownExit},
		"timeout":                      {quiet, diagnose.Context{JobState: "TIMEOUT"}, outcome.SlurmTimeLimit},
		"deadline":                     {quiet, diagnose.Context{JobState: "DEADLINE"}, outcome.SlurmTimeLimit},
		"preempted":                    {quiet, diagnose.Context{JobState: "PREEMPTED"}, outcome.SlurmPreempted},
		"asked to end in a grace time": {quiet + step, diagnose.Context{JobState: "FAILED", ExitCode: "143:0", Preempted: true}, outcome.SlurmPreempted},
		"and ended with exit code 0":   {quiet + told, diagnose.Context{JobState: "COMPLETED", ExitCode: "0:0", Preempted: true}, outcome.SlurmPreempted},
		"and had finished":             {finished, diagnose.Context{JobState: "COMPLETED", ExitCode: "0:0", Preempted: true}, outcome.Success},
		"requeued":                     {quiet, diagnose.Context{JobState: "REQUEUED"}, outcome.SlurmPreempted},
		"node failed":                  {quiet, diagnose.Context{JobState: "NODE_FAIL"}, outcome.SlurmNodeFail},
		"boot failed":                  {quiet, diagnose.Context{JobState: "BOOT_FAIL"}, outcome.SlurmNodeFail},
		"out of memory":                {quiet, diagnose.Context{JobState: "OUT_OF_MEMORY"}, outcome.HostOOM},
		"killed for memory":            {quiet, diagnose.Context{JobState: "FAILED", OOMKilled: true}, outcome.HostOOM},
		"symptoms of a failed job":     {quiet + lost, diagnose.Context{JobState: "FAILED"}, outcome.NCCLTimeout},
		"told to end, and failed":      {quiet + told, diagnose.Context{JobState: "FAILED"}, outcome.UnknownExit},
		"told to end, Slurm is silent": {quiet + told, diagnose.Context{JobState: "ENDED"}, outcome.SlurmCancelled},
		"told to end, and ended well":  {quiet + told, diagnose.Context{JobState: "COMPLETED", ExitCode: "0:0"}, outcome.Success},
		"told to end after its end":    {finished + told, diagnose.Context{JobState: "ENDED"}, outcome.Success},
		"says that it was told to end": {
			quiet + "Received SIGTERM, exiting\n", diagnose.Context{SecondsSinceLastWrite: &long}, outcome.SlurmCancelled,
		},
		"says so, and a few lines": {
			quiet + "Received SIGTERM, exiting\n" + diagnosetest.Rounds(12, "Waiting for part {n}\n"),
			diagnose.Context{SecondsSinceLastWrite: &long},
			outcome.SlurmCancelled,
		},
		"a good end, a failure, no times":  {quiet + "[after training is done]\n" + exited, diagnose.Context{JobState: "ENDED"}, outcome.UnknownExit},
		"a good end, a failure, completed": {finished + exited, diagnose.Context{JobState: "COMPLETED"}, outcome.Success},
		"the limit after its end": {
			whole + "slurmstepd: error: *** JOB 7 ON gpu1 CANCELLED AT 2026-03-01T10:06:00 DUE TO TIME LIMIT ***\n",
			diagnose.Context{JobState: "TIMEOUT"},
			outcome.SlurmTimeLimit,
		},
		"a step cancelled after it": {whole + step, diagnose.Context{JobState: "COMPLETED"}, outcome.Success},
		"a step of a cancelled job": {whole + step, diagnose.Context{JobState: "CANCELLED"}, outcome.SlurmCancelled},
		"says so, and wrote on": {
			quiet + "Received SIGTERM, exiting\n" + diagnosetest.Rounds(13, "Waiting for part {n}\n"),
			diagnose.Context{SecondsSinceLastWrite: &long},
			outcome.UnknownExit,
		},
		"suspended and silent":                        {steps, diagnose.Context{JobState: "SUSPENDED", SecondsSinceLastWrite: &long}, outcome.Running},
		"suspended after its work":                    {finished, diagnose.Context{JobState: "SUSPENDED", SecondsSinceLastWrite: &long}, outcome.Running},
		"stopped by a signal and silent":              {steps, diagnose.Context{JobState: "STOPPED", SecondsSinceLastWrite: &long}, outcome.Running},
		"silent as long, and runs":                    {steps, diagnose.Context{JobState: "RUNNING", SecondsSinceLastWrite: &long}, outcome.Hang},
		"told to end, and runs":                       {quiet + told, diagnose.Context{JobState: "RUNNING"}, outcome.Running},
		"told to end, nothing known":                  {quiet + told, diagnose.Context{}, outcome.SlurmCancelled},
		"a collective of a running job that is late":  {quiet + late, diagnose.Context{JobState: "RUNNING"}, outcome.NCCLTimeout},
		"a collective that was late, and steps since": {quiet + late + steps, diagnose.Context{JobState: "RUNNING"}, outcome.Running},
		"a collective that was late, and a good end":  {quiet + late + finished, diagnose.Context{JobState: "COMPLETED", ExitCode: "0:0"}, outcome.Success},
		"symptoms of a cancelled job":                 {quiet + lost, diagnose.Context{JobState: "CANCELLED"}, outcome.SlurmCancelled},
		"symptoms of a running job":                   {quiet + lost, diagnose.Context{JobState: "RUNNING"}, outcome.Running},
		"symptoms after a good end":                   {finished + lost, diagnose.Context{JobState: "COMPLETED", ExitCode: "0:0"}, outcome.Success},
		"a good end, and a task failed after it":      {finished + exited, diagnose.Context{JobState: "ENDED"}, outcome.UnknownExit},
		"a task failed, and a good end after it":      {exited + finished, diagnose.Context{JobState: "ENDED"}, outcome.Success},
		"what Slurm's record says: out of memory":     {quiet, diagnose.FromJob(slurm.Job{State: slurm.OutOfMemory}), outcome.HostOOM},
		"what it says: an exit code":                  {quiet, diagnose.FromJob(slurm.Job{State: slurm.Failed, ExitCode: &code}), outcome.UnknownExit},
		"what it says: no failure":                    {quiet, diagnose.FromJob(slurm.Job{State: slurm.Completed, ExitCode: &none}), outcome.Success},
		"an exit code beside a cancel":                {quiet + lost + exited, diagnose.Context{JobState: "CANCELLED"}, outcome.SlurmCancelled},
	} {
		t.Run(name, func(t *testing.T) {
			r := diagnosetest.With(t, c.log, c.given)
			require.Equal(t, c.class, r.Class, "%s: %s", r.Why, r.RootLine)
		})
	}
	require.False(t, diagnose.FromJob(slurm.Job{State: slurm.Failed}).OOMKilled)
	require.False(t, diagnose.FromJob(slurm.Job{}).Array)
	require.True(t, diagnose.FromJob(slurm.Job{Tasks: map[slurm.State]int{slurm.Failed: 1}}).Array)
	const stops = "The log stops without an error"
	require.Contains(t, diagnosetest.With(t, quiet, diagnose.Context{JobState: "ENDED"}).Summary, stops)
	require.NotContains(t, diagnosetest.With(t, quiet, diagnose.Context{JobState: "FAILED"}).Summary, stops, "Slurm knows of the failure")
	require.NotContains(t, diagnosetest.With(t, quiet, diagnose.Context{JobState: "ENDED", ExitCode: "3:0"}).Summary, stops)
}

// What a program says of its own work is no success of a job that Slurm calls failed: a later command of the
// script failed, or the processes did as they ended.
func TestAJobThatSlurmCallsFailedIsNoSuccess(t *testing.T) {
	for name, context := range map[string]diagnose.Context{
		"the state":                   {JobState: "FAILED"},
		"the exit code":               {JobState: "FAILED", ExitCode: "3:0"},
		"the exit code without state": {JobState: "ENDED", ExitCode: "3:0"},
	} {
		r := diagnosetest.With(t, "starting\nTraining finished.\n", context)
		require.Equal(t, outcome.UnknownExit, r.Class, name)
		require.Equal(t, "Training finished.", r.RootLine, name)
		require.Equal(t, "The last line", r.View(lang.EN).Sections[1].Heading, name)
	}
	r := diagnosetest.With(t, "starting\nTraining finished.\n", diagnose.Context{JobState: "COMPLETED", ExitCode: "0:0"})
	require.Equal(t, outcome.Success, r.Class)
}

// The ranks wait without end for a transfer that failed, unless a watchdog looks after them. A port that was away
// may come back.
func TestTheLimitOfAJobThatWaitedForATransfer(t *testing.T) {
	const (
		nccl  = "gpu2:41:60 [3] transport/net_ib.cc:789 NCCL WARN NET/IB : Got "
		limit = "slurmstepd: error: *** JOB 7 ON gpu1 CANCELLED AT 2026-03-01T10:41:00 DUE TO TIME LIMIT ***\n"
	)
	steps := func(from int) string {
		return diagnosetest.Rounds(3, " iteration "+strconv.Itoa(from)+"{n}/ 400 | elapsed time per iteration (ms): 5000.0 | lm loss: 2.0E+00 |\n")
	}
	for name, c := range map[string]struct{ log, state, class string }{
		"it waited":                {nccl + "completion with error 12, opcode 1, len 0, vendor err 129\n" + limit, "ENDED", outcome.NCCLIB},
		"it waited, by the state":  {nccl + "completion from peer 10.1.0.2<4711> with status=12 opcode=0 len=0 vendor err 129 (Send)\n", "TIMEOUT", outcome.NCCLIB},
		"it went on":               {nccl + "completion with error 12, opcode 1, len 0, vendor err 129\n" + steps(2) + limit, "ENDED", outcome.SlurmTimeLimit},
		"the port was away":        {nccl + "async event : port error\n" + limit, "ENDED", outcome.SlurmTimeLimit},
		"nothing of the transfers": {limit, "ENDED", outcome.SlurmTimeLimit},
	} {
		t.Run(name, func(t *testing.T) {
			src, err := logfile.Read("slurm-7.out", strings.NewReader(steps(1)+c.log))
			require.NoError(t, err)
			r, err := diagnose.Run(context.Background(), src, diagnose.Context{JobState: c.state})
			require.NoError(t, err)
			require.Equal(t, c.class, r.Class, "%s: %s", r.Why, r.RootLine)
		})
	}
}

// An error that a job outlived before somebody cancelled it does not hide that it was cancelled.
func TestAJobThatWasCancelledLongAfterAnError(t *testing.T) {
	work := diagnosetest.Rounds(12, "loading model {n}: ok\nW0509 12:{n}:16.477000 2282 torch/_logging/_internal.py:1024] [5/0] it will be ignored\n"+
		"running benchmark {n}: 100%|██████████| 1/1 [00:00<00:00,  1.55it/s]\n")
	r := diagnosetest.Old(t, "Run failed with return code:  1\n"+work+"slurmstepd: error: *** JOB 4711 ON gpu1 CANCELLED AT 2024-05-09T13:27:24 ***\n")
	require.Equal(t, outcome.SlurmCancelled, r.Class, r.RootLine)
}
