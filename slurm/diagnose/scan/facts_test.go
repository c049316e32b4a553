package scan_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose/diagnosetest"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logfile"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/scan"
)

// factsOf are what one log tells.
func factsOf(t *testing.T, log string) *scan.Facts {
	t.Helper()
	src, err := logfile.Read("slurm-7.out", strings.NewReader(log))
	require.NoError(t, err)
	all, err := scan.All(context.Background(), src)
	require.NoError(t, err)
	return all[0]
}

// TestStacksOfMainThreads has what py-spy prints: the first frames of main threads are
// shown, those of other threads are not.
func TestStacksOfMainThreads(t *testing.T) {
	f := factsOf(t, "Process 12: python train.py\nThread 0x7F12 (active): \"MainThread\"\n"+diagnosetest.Rounds(10, "    f{n} (train.py:{n})\n")+
		"Thread 99 (idle): \"Thread-1\"\n    wait (threading.py:359)\nThread 12 (idle): \"MainThread\"\n    read (data.py:7)\nThat was all\n    later (data.py:8)\n")
	require.Len(t, f.Spied, 2)
	require.Len(t, f.Spied[0].Frames, 8)
	require.Equal(t, "f1 (train.py)", f.Spied[0].Frames[0])
	require.Equal(t, []string{"read (data.py)"}, f.Spied[1].Frames)
	require.Len(t, factsOf(t, strings.Repeat("Thread 12 (idle): \"MainThread\"\n", 1<<14+1)).Spied, 1<<14)
}

// TestWhoSaysThatTheJobEnds has Slurm's words on the end of a job or step, and its other words.
func TestWhoSaysThatTheJobEnds(t *testing.T) {
	for text, ends := range map[string]bool{
		"srun: Terminating StepId=77.0":                    true,
		"srun: error: First task exited 60s ago":           true,
		"srun: Job step aborted: Waiting up to 32 seconds": true,
		"srun: Force Terminating StepId=77.0":              true,
		"srun: error: gpu1: task 0: Killed":                false,
		"Terminating the workers":                          false,
		"step aborted":                                     false,
	} {
		require.Equal(t, ends, scan.EndsJob(&scan.Event{Class: outcome.UnknownExit, Text: strings.Replace(text, "Job step", "step", 1)}), text)
	}
	for class, ends := range map[string]bool{
		outcome.SlurmTimeLimit: true, outcome.SlurmPreempted: true, outcome.SlurmNodeFail: true, outcome.SlurmCancelled: true, outcome.CUDAOOM: false,
	} {
		require.Equal(t, ends, scan.EndsJob(&scan.Event{Class: class, Text: "x"}), class)
		require.Equal(t, class == outcome.SlurmCancelled, (&scan.Event{Class: class, Text: "error: *** STEP 7.0 ON a1 CANCELLED"}).StepOnly(), class)
		require.False(t, (&scan.Event{Class: class, Text: "error: *** JOB 7 ON a1 CANCELLED"}).StepOnly(), class)
	}
}

// TestWhatShowsThatAProgramRuns counts the kinds of lines by which a program shows it.
func TestWhatShowsThatAProgramRuns(t *testing.T) {
	type ran struct{ phases, programs, sentences, tagged int }
	for line, want := range map[string]ran{
		"The data are read":                          {0, 0, 1, 0},
		"2026-01-08 16:30:31 is the time":            {0, 0, 1, 0},
		"[2026-01-08 16:30:31] the data":             {0, 0, 1, 0},
		"[2026-01-08T1,rank=3] the data":             {0, 0, 1, 0},
		"[a026-01-08T1,rank=3] the data":             {0, 0, 0, 0},
		"[202x-01-08T1,rank=3] the data":             {0, 0, 0, 0},
		"[2026=34] the data":                         {0, 0, 1, 0},
		"[2026=3] the data":                          {0, 0, 0, 0},
		"[INFO] the data":                            {0, 0, 1, 0},
		"(2026-01-08) the data":                      {0, 0, 0, 0},
		"/v/lib/a.py:7: UserWarning: old":            {0, 1, 1, 0},
		"/v/lib/a.py is read":                        {0, 1, 0, 0},
		"/v/lib/a of it":                             {0, 0, 0, 0},
		"NAME=value of it":                           {0, 0, 0, 0},
		"time=\"2026-01-08\" level=info":             {0, 0, 1, 0},
		"+ echo of it":                               {0, 0, 0, 0},
		"   10  2.0e-3  -1.5E4":                      {0, 0, 1, 0},
		"   10:00  2.0  +3":                          {0, 0, 1, 0},
		" \t10\t2.0\t3":                              {0, 0, 1, 0},
		"   10  2.0":                                 {0, 0, 0, 0},
		"   10  2.0  x":                              {0, 0, 0, 0},
		"   10;  2.0  3":                             {0, 0, 0, 0},
		"   10%  2.0  3":                             {0, 0, 0, 0},
		"[default0]:The data are read":               {0, 1, 1, 1},
		"A":                                          {0, 0, 1, 0},
		"@ x":                                        {0, 0, 0, 0},
		"3: The data are read":                       {0, 1, 1, 1},
		"[default2]:The data are read":               {0, 1, 1, 1},
		"[rank2]: The data are read":                 {0, 1, 1, 0},
		"n1:1:2 [0] NCCL INFO Bootstrap of it":       {0, 1, 1, 0},
		"> building the data":                        {1, 1, 0, 0},
		"3: > building the data":                     {1, 1, 0, 1},
		"python tools/train.py":                      {0, 1, 1, 0},
		"- Traceback (most recent call last):":       {0, 1, 0, 0},
		"\n\n  num_layers ....................... 3": {1, 1, 0, 0},
		"\n\n  num_layers ....................... 3\n  hidden_size ....................... 3":       {1, 1, 0, 0},
		"\n\n  num_layers ....................... 3\n\n\n\n  hidden_size ....................... 3": {2, 2, 0, 0},
	} {
		f := factsOf(t, line+"\n")
		require.Equal(t, want, ran{f.Ran.Phases, f.Ran.Programs, f.Ran.Sentences, f.Ran.Tagged}, line)
	}
	f := factsOf(t, "3: > building the data\n> building the data\n3: > building more\n")
	require.Equal(t, 3, f.Ran.Phases)
	require.Len(t, f.PhasesBy, 1)
	for _, n := range f.PhasesBy {
		require.Equal(t, 2, n)
	}
}

// TestWhatAUsageTextIs has usage texts with which a log ends, and lines that only look like one.
func TestWhatAUsageTextIs(t *testing.T) {
	for log, is := range map[string]bool{
		"usage: a.py [-h]\n            [--lr LR]\n            [--data D]\n":    true,
		"usage: a.py [-h]\n            [--lr LR]\n":                            false,
		"usage:\na.py [-h]\n  --lr LR\n":                                       true,
		"usage: a.py\na.py [-h]\n  --lr LR\n":                                  false,
		"Usage: a.py [-h]\noptions:\n-h, --help\n":                             true,
		"Usage: a.py [-h]\n[-l]\n[--data D]\n":                                 true,
		"Usage: a.py [-h]\n[l]\n[--data D]\n":                                  false,
		"  usage: a.py [-h]\n\toptions\n\tand more\n":                          true,
		"usage: error: none\n  a\n  b\n  c\n":                                  false,
		"usage: a.py [-h]\n  a\n  b\n  c\nThen it went on\n":                   false,
		"usage: a.py [-h]\n  a\n  b\nThen it went on\nusage: b.py\n  a\n  b\n": true,
		"memory\n  a\n  b\n  c\n":                                              false,
	} {
		f := factsOf(t, log)
		require.Equal(t, is, f.Usage != nil, log)
		if is && strings.Contains(log, "b.py") {
			require.Contains(t, f.Usage.Text, "b.py")
		}
	}
}

// TestWhatWatchdogsSayOfRanks has the words of NCCL's and gloo's watchdogs.
func TestWhatWatchdogsSayOfRanks(t *testing.T) {
	const caught = "[rank3]:[E ProcessGroupNCCL.cpp:629] [Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=%d, OpType=%s, NumelIn=1, " +
		"NumelOut=1, Timeout(ms)=600000) ran for 600063 milliseconds before timing out.\n"
	const status = "[rank3]:[E ProcessGroupNCCL.cpp:2168] [PG ID 0 PG GUID 0(default_pg) Rank 3]  failure detected by watchdog at work sequence id: 812 PG " +
		"status: last enqueued work: %d, last completed work: 811\n"
	f := factsOf(t, "A line of no rank\n"+fmt.Sprintf(caught, 812, "ALLREDUCE")+fmt.Sprintf(caught, 900, "BROADCAST")+fmt.Sprintf(status, 814)+fmt.Sprintf(status, 999))
	require.Len(t, f.NCCL, 1)
	r := f.NCCL[3]
	require.True(t, r.TimedOut)
	require.Equal(t, int64(812), r.Seq)
	require.Equal(t, "ALLREDUCE", r.Op)
	require.Equal(t, int64(814), r.Enqueued)
	require.Contains(t, r.Raw, "SeqNum=812", "the line that shows it best")
	r = factsOf(t, fmt.Sprintf(status, 814)+fmt.Sprintf(caught, 812, "ALLREDUCE")).NCCL[3]
	require.Contains(t, r.Raw, "SeqNum=812", "the line that shows it best")
	r = factsOf(t, fmt.Sprintf(status, 814)).NCCL[3]
	require.False(t, r.TimedOut)
	require.Contains(t, r.Raw, "last enqueued work: 814")
	for line, want := range map[string][]scan.NamedRank{
		"[E ProcessGroupGloo.cpp:144] Ranks 3, 5 failed to pass monitoredBarrier in 600000 ms": {{Rank: 3}, {Rank: 5}},
		"[Rank 0]: Ranks [7] has not joined":                                                   nil,
		"RuntimeError: [1] has finished collective ALLREDUCE, but didn't join BROADCAST":       {{Rank: 1}},
		"errors while waiting for barrier from rank 2":                                         {{Rank: 2, Referee: true}},
	} {
		if want != nil {
			require.Equal(t, want, factsOf(t, line+"\n").Missing, line)
		}
	}
	require.Len(t, factsOf(t, strings.Repeat("Ranks 3 failed to pass monitoredBarrier in 600000 ms\n", 70)).Missing, 64)
	for code, told := range map[int]bool{-15: true, 143: true, -2: true, 130: true, -9: false, 1: false, 0: false} {
		require.Equal(t, told, scan.ToldToEnd(code), code)
	}
}

// TestTheFirstAndTheLastOfManyAreKept has one complaint many times: the first ones and
// the newest are kept, and one of another class beside them.
func TestTheFirstAndTheLastOfManyAreKept(t *testing.T) {
	const oom, other = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {n} GiB\n", "OSError: [Errno 28] No space left on device: '/a'"
	f := factsOf(t, diagnosetest.Rounds(8, oom)+"3: "+strings.ReplaceAll(oom, "{n}", "30")+other+"\n"+strings.ReplaceAll(oom, "{n}", "9"))
	var kept []string
	for _, e := range f.Events {
		kept = append(kept, strings.TrimPrefix(e.Text, "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate "))
	}
	require.Equal(t, []string{"1 GiB", "2 GiB", "3 GiB", "4 GiB", "5 GiB", "30 GiB", other, "9 GiB"}, kept)
}

// TestWhenAnEventWas has the times around an event, and which of them is believed.
func TestWhenAnEventWas(t *testing.T) {
	at := time.Date(2026, 6, 11, 10, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		e    scan.Event
		want time.Time
	}{
		{scan.Event{Before: at, After: at.Add(time.Minute)}, at.Add(time.Minute)},
		{scan.Event{Before: at, After: at.Add(time.Hour)}, at},
		{scan.Event{Before: at, After: at.Add(2 * time.Minute)}, at},
		{scan.Event{Before: at, After: at.Add(time.Hour), Agent: true}, at.Add(time.Hour)},
		{scan.Event{After: at}, at},
		{scan.Event{Before: at}, at},
		{scan.Event{}, time.Time{}},
	} {
		require.Equal(t, c.want, c.e.When())
	}
	require.Equal(t, at, (&scan.Event{Before: at, After: at.Add(time.Hour), Dated: true}).Latest())
	require.Equal(t, at.Add(time.Hour), (&scan.Event{Before: at, After: at.Add(time.Hour)}).Latest())
	f := factsOf(t, "2026-06-11 10:00:00 begin\nKeyError: 'a'\n2026-06-11 10:00:05 more\nKeyError: 'b'\n")
	require.Equal(t, at, f.Events[0].Before)
	require.Equal(t, at.Add(5*time.Second), f.Events[0].After)
	require.Equal(t, at.Add(5*time.Second), f.Events[1].Before)
	require.True(t, f.Events[1].After.IsZero())
	f.Shift(time.Minute)
	require.Equal(t, at.Add(time.Minute), f.Events[0].Before)
	require.Equal(t, at.Add(65*time.Second), f.Events[0].After)
	require.Equal(t, at.Add(65*time.Second), f.LastTime)
	require.True(t, f.Events[1].After.IsZero(), "a time that is not known stays so")
	f = factsOf(t, "2026-06-11 10:00:00 begin\nSTART TIME: 7\n2026-06-11 10:00:00 go\nsaving checkpoint at iteration 9\nsrun: error: n1: task 0: Killed\n"+
		"[after training is done] datetime: 2026-06-11 10:00:00\n")
	f.Shift(time.Minute)
	for _, m := range append([]scan.Mark{f.Doing, *f.Failed, *f.Finished, f.Starts["script"][0]}, f.Last[1:]...) {
		require.Equal(t, at.Add(time.Minute), m.At, m.Text)
	}
}

// TestWhatCameAfterAPlace counts steps and lines behind an event.
func TestWhatCameAfterAPlace(t *testing.T) {
	step := "step {n}/90 loss: 0.5 time: 3\n"
	f := factsOf(t, diagnosetest.Rounds(3, step)+"KeyError: 'a'\n"+strings.Repeat(diagnosetest.Rounds(4, step), 2)+"KeyError: 'b'\n")
	require.Len(t, f.Events, 2)
	require.Equal(t, 8, f.Iterated(f.Events[0], f.Events[1]))
	require.Equal(t, 0, f.Iterated(f.Events[1], f.Events[0]))
	for n, next := range map[int]bool{999: false, 1000: true} {
		f = factsOf(t, "KeyError: 'a'\n"+strings.Repeat("The run goes on\n", n))
		require.Equal(t, next, f.NextRunAfter(f.Events[0]), n)
	}
	for last, next := range map[string]bool{"10:15:01": false, "10:15:02": true} {
		f = factsOf(t, "KeyError: 'a'\n2026-06-11 10:00:01 more\n2026-06-11 "+last+" more\n")
		require.Equal(t, next, f.NextRunAfter(f.Events[0]), last)
	}
}

// TestDifferentStepsAfterAnAgentsEndAreAnotherAttempt counts the steps that are reported
// after torchelastic's agent told how a process ended.
func TestDifferentStepsAfterAnAgentsEndAreAnotherAttempt(t *testing.T) {
	const (
		step  = "step {n}/90 loss: 0.5 time: 3\n"
		agent = "E0610 08:59:06.36 17 api.py:826] failed (exitcode: 1) local_rank: 0 (pid: 9) of binary: /v/python\n"
		task  = "srun: error: n1: task 0: Exited with exit code 1\n"
	)
	for name, tt := range map[string]struct {
		log  string
		from int64 // where the attempt begins; 0 for none
	}{
		"three steps":             {agent + diagnosetest.Rounds(3, step), 1},
		"two steps":               {agent + diagnosetest.Rounds(2, step), 0},
		"the same by four ranks":  {agent + strings.Repeat(diagnosetest.Rounds(1, step), 4), 0},
		"four steps, each twice":  {agent + strings.Repeat(diagnosetest.Rounds(4, step), 2), 1},
		"before it alone":         {diagnosetest.Rounds(9, step) + agent, 0},
		"after srun's word":       {task + diagnosetest.Rounds(9, step), 0},
		"after an exception":      {"KeyError: 'a'\n" + diagnosetest.Rounds(9, step), 0},
		"after the agent's, srun": {agent + task + diagnosetest.Rounds(9, step), 0},
	} {
		starts := factsOf(t, tt.log).Starts[scan.Restarted]
		if tt.from == 0 {
			require.Empty(t, starts, name)
			continue
		}
		require.Len(t, starts, 1, name)
		require.Equal(t, tt.from, starts[0].Off, name)
		require.Equal(t, 8, starts[0].At.Hour(), name)
	}
}
