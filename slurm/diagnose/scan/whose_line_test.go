package scan_test

import (
	"strings"
	"testing"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logline"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/pattern"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/scan"
	"github.com/stretchr/testify/require"
)

// TestWhereAUsageTextEnds has the lines with which a log ends behind "usage:", and whether they are a usage text.
func TestWhereAUsageTextEnds(t *testing.T) {
	for name, c := range map[string]struct {
		log   string
		usage bool
	}{
		"on its own line":              {"Usage:\ntrain [-h]\n  -h  help\n", true},
		"on its own line, and prose":   {"usage:\ntrain [-h]\nloading the data\nloading more of it\nand the rest\n", false},
		"three lines":                  {"usage: train [-h]\n  -h  help\n  -c  a file\n", true},
		"two lines":                    {"usage: train [-h]\n  -h  help\n", false},
		"sections and options":         {"usage: train [-h]\npositional arguments:\n-h, --help\n[--more]\n", true},
		"prose behind it":              {"usage: train [-h]\n  -h  help\n  -c  a file\nloading the data\n", false},
		"an error on the line itself":  {"usage: error: train\n  -h  help\n  -c  a file\n", false},
		"nothing that says usage":      {"options: train [-h]\n  -h  help\n  -c  a file\n", false},
		"a word that begins like that": {"usages: train [-h]\n  -h  help\n  -c  a file\n", false},
	} {
		require.Equal(t, c.usage, factsOf(t, c.log).Usage != nil, name)
	}
}

// TestWhichProcessLeft has how launchers tell that a process left, and its exit code and local rank.
func TestWhichProcessLeft(t *testing.T) {
	const agent = "ERROR:torch.distributed.elastic.multiprocessing.api:failed "
	for line, c := range map[string]struct{ exit, local int }{
		agent + "(exitcode: 1) local_rank: 3 (pid: 311) of binary: /usr/bin/python3":   {1, 3},
		agent + "(exitcode: 1) local_rank: 0 (pid: 311) of binary: /usr/bin/python3":   {1, 0},
		agent + "(exitcode: -9) local_rank: 7 (pid: 311) of binary: /usr/bin/python3":  {-9, 7},
		agent + "(exitcode: 255) local_rank: 2 (pid: 311) of binary: /usr/bin/python3": {255, 2},
	} {
		f := factsOf(t, line+"\n")
		require.NotNil(t, f.Failed, line)
		require.Len(t, f.Elastic, 1, line)
		require.Equal(t, c.exit, f.Elastic[0].Exit, line)
		require.Equal(t, c.local, f.Elastic[0].Local, line)
		require.Equal(t, "311", f.Elastic[0].Pid, line)
	}
}

// TestANodeBeforeALineIsBelievedOnceItIsSure has lines with a word before them that may be a node.
func TestANodeBeforeALineIsBelievedOnceItIsSure(t *testing.T) {
	f := factsOf(t, "[dgx-09] [rank3]: loading\n[dgx-09] [rank3]: Traceback (most recent call last):\n[dgx-09] [rank3]:   File \"/w/t.py\", line 3, in f\n[dgx-09] [rank3]: KeyError: 'tokens'\n")
	require.Len(t, f.Events, 1)
	require.Equal(t, "dgx-09", f.Events[0].Tag.Host)
	require.Equal(t, 3, f.Events[0].Tag.Rank)
	require.Equal(t, 1, f.Hosts["dgx-09"], "a node that stands before each line is named once")
	f = factsOf(t, "gpu1: > setting tensorboard ...\ngpu1: rank 2: training failed\ngpu1: "+strings.ReplaceAll(strings.TrimSpace(inStep("KeyError: 'a'")), "\n", "\ngpu1: ")+"\n")
	require.Equal(t, "2", f.Events[0].Writer, "Megatron's first lines show that it is a node")
}

// TestALineThatAnotherProcessBreaksOff has the prefix of a process within the line of another one.
func TestALineThatAnotherProcessBreaksOff(t *testing.T) {
	f := factsOf(t, "[default0]:Traceback (most recent call last):\n[default0]:  File \"/w/t.py\", line 3, in f\n[default0]:    ^^^[default1]:KeyError: 'a'\n"+
		"[default0]:IndexError: pop from empty list[default2]:\n")
	require.Len(t, f.Events, 2)
	require.Equal(t, 1, f.Events[0].Tag.Local)
	require.Equal(t, "IndexError: pop from empty list", f.Events[1].Text)
	require.Equal(t, 0, f.Events[1].Tag.Local)
}

// TestAReportBehindAnException has another rank's report of an iteration in the last line of a traceback.
func TestAReportBehindAnException(t *testing.T) {
	const traceback = "0: Traceback (most recent call last):\n0:   File \"/w/t.py\", line 3, in f\n0: "
	report := func(n string) string {
		return " [2026-06-11 10:00:01] iteration        " + n + "/      12 | elapsed time per iteration (ms): 220.1 | lm loss: 3.3E-01 |\n"
	}
	f := factsOf(t, report("2")+traceback+"KeyError: 'a'"+report("3"))
	require.Len(t, f.Events, 1)
	require.Equal(t, "KeyError: 'a'", f.Events[0].Text)
	require.Len(t, f.Progress, 2)
	require.Less(t, f.Events[0].Off, f.Progress[1].Off)
	require.Empty(t, factsOf(t, "0: KeyError: 'a'"+report("3")).Events, "no traceback ends there")
	require.Len(t, factsOf(t, traceback+report("3")).Progress, 1)
}

// TestWhatAWatchdogSays has the words of watchdogs on collectives.
func TestWhatAWatchdogSays(t *testing.T) {
	const (
		late   = "[rank%]:[E ProcessGroupNCCL.cpp:632] [Rank %] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=9, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600052 milliseconds before timing out."
		status = "[rank0]:[E ProcessGroupNCCL.cpp:2168] [PG ID 0 PG GUID 0(default_pg) Rank 0]  failure detected by watchdog at work sequence id: 9 PG status: last enqueued work: 0, last completed work: 0"
		again  = "[rank0]:[E ProcessGroupNCCL.cpp:2168] [PG ID 0 PG GUID 0(default_pg) Rank 0]  failure detected by watchdog at work sequence id: 9 PG status: last enqueued work: 14, last completed work: 8"
	)
	f := factsOf(t, status+"\n"+again+"\n")
	require.Equal(t, int64(0), f.NCCL[0].Enqueued, "the first word counts, also where nothing was enqueued")
	require.False(t, f.NCCL[0].TimedOut)
	f = factsOf(t, "step 1\n"+status+"\n")
	require.Equal(t, status, f.NCCL[0].Raw)
	require.Equal(t, logline.Tag{Label: -1, Local: -1, Rank: 0}, f.NCCL[0].Tag)
	require.Empty(t, factsOf(t, late+"\n").NCCL, "of no rank")
}

// TestAnExceptionByItsLineAlone has an exception whose traceback is not there: it weighs a little less.
func TestAnExceptionByItsLineAlone(t *testing.T) {
	alone := factsOf(t, "KeyError: 'tokens'\n").Events
	traced := factsOf(t, "Traceback (most recent call last):\n  File \"/w/t.py\", line 3, in f\nKeyError: 'tokens'\n").Events
	require.Len(t, alone, 1)
	require.Len(t, traced, 1)
	require.Equal(t, outcome.UserException, alone[0].Class)
	require.Equal(t, pattern.Generic-1, alone[0].Weight)
	require.Equal(t, pattern.Generic, traced[0].Weight)
	require.False(t, scan.EndsJob(alone[0]))
}

// TestAnExceptionInPieces has an exception's last line as a label and no buffer leave it.
func TestAnExceptionInPieces(t *testing.T) {
	const head = "3: Traceback (most recent call last):\n3:   File \"/w/t.py\", line 3, in f\n"
	for log, text := range map[string]string{
		head + "3: KeyError\n3: : 'tokens'\n":      "KeyError: 'tokens'",
		head + "3: KeyError:\n3: 'tokens'\n":       "KeyError: 'tokens'",
		head + "3: KeyError\n3: : \n3: 'tokens'\n": "KeyError: 'tokens'",
		head + "3: KeyError\n3: another line\n":    "KeyError",
		head + "3: KeyError: 'tokens'\n":           "KeyError: 'tokens'",
		head + "3: CellFailed\n3: : no cell\n":     "CellFailed: no cell",
		head + "3: AssertionError\n":               "AssertionError",
	} {
		events := factsOf(t, log).Events
		require.Len(t, events, 1, log)
		require.Equal(t, text, events[0].Text, log)
		require.Equal(t, 3, events[0].Tag.Label, log)
	}
}

// TestBytesThatActAreNoWords has an exception in colours, and one with a byte that deletes.
func TestBytesThatActAreNoWords(t *testing.T) {
	for _, log := range []string{"\x1b[31mKeyError: 'tokens'\x1b[0m\n", "KeyError: 'tokens'\x7f\n", "KeyError: 'tokens'\x01\n"} {
		events := factsOf(t, log).Events
		require.Len(t, events, 1, "%q", log)
		require.Equal(t, "KeyError: 'tokens'", events[0].Text, "%q", log)
		require.Equal(t, "KeyError: 'tokens'", events[0].Raw, "%q", log)
	}
}

// TestMomentsAreBounded has an agent that met the others again and again.
func TestMomentsAreBounded(t *testing.T) {
	const met = "[2026-06-11 10:00:00] torch/distributed/elastic/agent/server/api.py:525] [default] Rendezvous complete for workers. Result:\n"
	require.Len(t, factsOf(t, strings.Repeat(met, 3)).Moments, 3)
	require.Len(t, factsOf(t, strings.Repeat(met, 1030)).Moments, 1024)
}

// TestWhatStandsInATraceback has lines behind a frame that a terminal broke or a logger left
// without its spaces, and whether the exception behind them is still that of the traceback.
func TestWhatStandsInATraceback(t *testing.T) {
	const head, frame = "Traceback (most recent call last):\n", "  File \"/w/t.py\", line 3, in f\n"
	for between, in := range map[string]bool{
		"": true, "    step()": true, "\tstep()": true, "    ^^^^^^": true, "^^^^^^": true,
		"model(": true, "    model(\nstep(batch)": true, "batch,": true, "x = y": true,
		"The loss is small": false, "loading": false,
	} {
		text := frame
		if between != "" {
			text += between + "\n"
		}
		events := factsOf(t, head+text+"KeyError: 'tokens'\n").Events
		require.Len(t, events, 1, between)
		require.Equal(t, "KeyError: 'tokens'", events[0].Text, between)
		require.Equal(t, in, events[0].Stack != nil, between)
	}
	require.Empty(t, factsOf(t, head+"loading\n").Events, "a word behind a header alone is no exception")
	for name, log := range map[string]string{
		"an empty line behind a logger's margin": "n7>" + head + "n7>" + frame + "n7>\nn7>KeyError: 'tokens'\n",
		"torchelastic sets it in":                "  traceback : " + head + "  " + frame + "      step()\n    KeyError: 'tokens'\n",
		"another traceback was left open":        head + frame + "3rd step\n" + head + frame + "KeyError: 'tokens'\n",
	} {
		events := factsOf(t, log).Events
		require.Len(t, events, 1, name)
		require.Equal(t, "KeyError: 'tokens'", events[0].Text, name)
		require.NotNil(t, events[0].Stack, name)
		require.Len(t, events[0].Stack.Frames, 1, name)
	}
}

// TestWhatMayBeAFailure has what takes an event out of the causes.
func TestWhatMayBeAFailure(t *testing.T) {
	for name, c := range map[string]struct {
		e      scan.Event
		counts bool
	}{
		"a statement":            {scan.Event{Form: pattern.Statement}, true},
		"a report":               {scan.Event{Form: pattern.Report}, false},
		"a doubted statement":    {scan.Event{Form: pattern.Statement, Doubted: true}, false},
		"a superseded statement": {scan.Event{Form: pattern.Statement, Superseded: true}, false},
	} {
		require.Equal(t, c.counts, c.e.Counts(), name)
	}
}

// TestErrorsOfR has R's words on errors, of which only one that ends the script counts.
func TestErrorsOfR(t *testing.T) {
	const halted = "Execution halted\n"
	for log, class := range map[string]string{
		"Error in f(x) : no such column\n" + halted:                                 outcome.UserException,
		"Error: no such column\n" + halted:                                          outcome.UserException,
		"Error in library(x) : there is no package called 'x'\n" + halted:           outcome.ImportError,
		"Error in f(x) : no such column\nThe next one\n":                            "",
		"Error in unserialize(node$con) : error reading from connection\n" + halted: "",
		halted: "",
		"Error: no such column\nExecution halted it\n": "",
	} {
		got := ""
		for _, e := range factsOf(t, "Reading a shard\n"+log).Events {
			got = e.Class
		}
		require.Equal(t, class, got, log)
	}
}
