package scan_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose/diagnosetest"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logfile"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logline"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/scan"
)

// TestWhichTracebacksAreRead has tracebacks that are wrapped, quoted, cut or interrupted: the exception that is read,
// and how many frames lead to it; -1 for none.
func TestWhichTracebacksAreRead(t *testing.T) {
	const header, frame, source = "Traceback (most recent call last):\n", "  File \"/w/a.py\", line 3, in f\n", "    go()\n"
	type event struct {
		text   string
		frames int
	}
	for log, want := range map[string][]event{
		header + frame + source + "KeyError: 'a'\n":                                                    {{"KeyError: 'a'", 1}},
		header + frame + source + frame + source + "KeyError: 'a'\n":                                   {{"KeyError: 'a'", 2}},
		header + frame + source + "         ^^^^\n" + "KeyError: 'a'\n":                                {{"KeyError: 'a'", 1}},
		header + frame + source + "\tmore\n" + "KeyError: 'a'\n":                                       {{"KeyError: 'a'", 1}},
		header + frame + "~~~~^^^^\n" + "KeyError: 'a'\n":                                              {{"KeyError: 'a'", 1}},
		header + frame + "KeyError: 'a'\nKeyError: 'b'\n":                                              {{"KeyError: 'a'", 1}, {"KeyError: 'b'", -1}},
		header + frame + "The next step begins\nKeyError: 'a'\n":                                       {{"KeyError: 'a'", -1}},
		header + frame + "y = go(\n" + "KeyError: 'a'\n":                                               {{"KeyError: 'a'", 1}},
		header + "A word of another\n" + "KeyError: 'a'\n":                                             {{"KeyError: 'a'", 0}},
		header + "KeyError: 'a'\n":                                                                     {{"KeyError: 'a'", 0}},
		header + "The next step begins\n" + frame + "KeyError: 'a'\n":                                  {{"KeyError: 'a'", 1}},
		frame + source + "KeyError: 'a'\n":                                                             {{"KeyError: 'a'", 1}},
		"KeyError: 'a'\n":                                                                              {{"KeyError: 'a'", -1}},
		"  KeyError: 'a'\n":                                                                            {{"  KeyError: 'a'", -1}},
		"usage: a.py [-h]\n  KeyError: 'a'\n":                                                          nil,
		"DEBUG: KeyError: 'a'\n":                                                                       nil,
		"  File \"/w/a\nb.py\", line 3, in f\nKeyError: 'a'\n":                                         {{"KeyError: 'a'", 1}},
		header + "  File \"/w/a\nb.py\", line 3, in f\n" + source + "KeyError: 'a'\n":                  {{"KeyError: 'a'", 1}},
		"  | " + header + "  |   File \"/w/a.py\", line 3, in f\n  | \n  | KeyError: 'a'\n  +------\n": {{"KeyError: 'a'", 1}},
		"  + Exception Group " + header + "  |   File \"/w/a.py\", line 3, in f\n  | ExceptionGroup: two (2 sub-exceptions)\n": {
			{"ExceptionGroup: two (2 sub-exceptions)", 1},
		},
		"12:01 E:" + header + "12:02 E:  File \"/w/a.py\", line 3, in f\n12:02 E:\n12:03 E:KeyError: 'a'\n": {{"KeyError: 'a'", 1}},
	} {
		var got []event
		for _, e := range factsOf(t, log).Events {
			n := -1
			if e.Stack != nil {
				n = len(e.Stack.Frames)
			}
			got = append(got, event{e.Text, n})
		}
		require.Equal(t, want, got, log)
	}
	events := factsOf(t, "ncclSystemError: System call failed\n").Events
	require.Len(t, events, 1)
	require.Empty(t, events[0].Kind, "it is a word of NCCL, and no exception")
}

// TestWhatATracebackSaysOfItself has tracebacks that a rank's hook, another rank, a logger or a summary writes.
func TestWhatATracebackSaysOfItself(t *testing.T) {
	stack := func(first, prefix string) *scan.Event {
		log := first + "\n" + prefix + "  File \"/w/a.py\", line 3, in f\n" + prefix + "KeyError: 'a'\n"
		events := factsOf(t, log).Events
		require.Len(t, events, 1, log)
		require.NotNil(t, events[0].Stack, log)
		return events[0]
	}
	const header = "Traceback (most recent call last):"
	for first, want := range map[string]struct{ uncaught, logged, headless, inset bool }{
		header:               {},
		"[rank3]: " + header: {uncaught: true},
		"[rank3]:[" + header: {},
		"3: " + header:       {},
		"INFO " + header:     {logged: true},
		"ERROR " + header:    {},
		"":                   {headless: true},
	} {
		prefix := strings.TrimSuffix(first, header)
		e := stack(first, prefix)
		require.Equal(t, want.uncaught, e.Stack.Uncaught, first)
		require.Equal(t, want.logged, e.Stack.Logged, first)
		require.Equal(t, want.headless, e.Stack.Headless, first)
		require.False(t, e.Stack.Inset, first)
	}
	require.Equal(t, "3", stack(header+" (RANK 3)", "").Stack.Of)
	require.Empty(t, stack(header, "").Stack.Of)
	require.True(t, stack("WARNING: could not import fast_thing, falling back to torch\n"+header, "").Stack.Caught)
	require.False(t, stack("A word of it\n"+header, "").Stack.Caught)
}

// TestAnExceptionThatCarriesAnother has an exception whose message goes on with another one, in the next line or later.
func TestAnExceptionThatCarriesAnother(t *testing.T) {
	raised := strings.TrimSuffix(diagnosetest.Raised("RuntimeError: caught in worker 0:"), "\n")
	for log, want := range map[string][]string{
		raised + "\nKeyError: 'a'\n":                                       {"KeyError: 'a'"},
		raised + "\nA word of it\nKeyError: 'a'\n":                         {"RuntimeError: caught in worker 0:", "KeyError: 'a'"},
		strings.TrimSuffix(raised, ":") + "\nKeyError: 'a'\n":              {"RuntimeError: caught in worker 0", "KeyError: 'a'"},
		raised + "\n" + diagnosetest.Raised("KeyError: 'a'"):               {"KeyError: 'a'"},
		raised + "\nA word of it\n" + diagnosetest.Raised("KeyError: 'a'"): {"RuntimeError: caught in worker 0:", "KeyError: 'a'"},
		"0: RuntimeError: caught in worker 0:\n1: KeyError: 'a'\n":         {"RuntimeError: caught in worker 0:", "KeyError: 'a'"},
	} {
		var got []string
		for _, e := range factsOf(t, log).Events {
			if e.Counts() {
				got = append(got, e.Text)
			}
		}
		require.Equal(t, want, got, log)
	}
}

// TestWhoseTracebackASummaryQuotes has torchelastic's summary of a failed rank, with the traceback of its error file.
func TestWhoseTracebackASummaryQuotes(t *testing.T) {
	const quoted = "  traceback : Traceback (most recent call last):\n    File \"/w/train.py\", line 41, in step\n      loss = model(batch)\n" +
		"             ^^^^^^^^^^^^\n  IndexError: list index out of range\n  \n"
	for _, rank := range []string{"0", "7"} {
		f := factsOf(t, "Root Cause (first observed failure):\n[0]:\n  time      : 2026-05-17_14:29:30\n  host      : gpu2\n  rank      : "+rank+
			" (local_rank: 0)\n  exitcode  : 1 (pid: 1700)\n  error_file: /tmp/e/0/error.json\n"+quoted)
		var e *scan.Event
		for _, o := range f.Events {
			if o.Stack != nil {
				e = o
			}
		}
		require.NotNil(t, e)
		require.Equal(t, "IndexError: list index out of range", strings.TrimSpace(e.Text))
		require.True(t, e.Stack.Inset)
		require.Equal(t, rank, e.Stack.Of)
		require.Len(t, e.Stack.Frames, 1)
	}
}

// TestWhatALogEndsWithin has what stands open at the end of a log.
func TestWhatALogEndsWithin(t *testing.T) {
	const header, frame = "Traceback (most recent call last):\n", "  File \"/w/a.py\", line 3, in f\n"
	for log, class := range map[string]string{
		"^C" + header + frame: outcome.SlurmCancelled, header + frame: "", "^C" + header + frame + "^CKeyboardInterrupt\n": outcome.SlurmCancelled,
		"0: " + header + "0: " + frame + "0: ValueError\n": outcome.UserException,
	} {
		var got string
		for _, e := range factsOf(t, log).Events {
			got = e.Class
		}
		require.Equal(t, class, got, log)
	}
	f := factsOf(t, "3: A word\n3: its last\n\nThe script's word\n3: \n")
	require.Len(t, f.LastBy, 2)
	require.Equal(t, "3: its last", f.LastBy[logline.Tag{Label: 3, Local: -1, Rank: -1}].Text)
	require.Equal(t, "The script's word", f.LastBy[logline.NoTag].Text)
}

// TestTheLastIterationsAreKept has so many iterations that only the last are kept, in one window and in their order.
func TestTheLastIterationsAreKept(t *testing.T) {
	const iteration = " iteration {n}/ 9000 | elapsed time per iteration (ms): 900.1 | lm loss: 2.1 |\n"
	for _, n := range []int{1, 255, 256, 257, 511, 512, 513, 514, 1025} {
		f := factsOf(t, diagnosetest.Rounds(n, iteration))
		require.GreaterOrEqual(t, len(f.Progress), min(n, 256), n)
		require.LessOrEqual(t, len(f.Progress), min(n, 512), n)
		for i, m := range f.Progress {
			require.Contains(t, m.Text, fmt.Sprintf("iteration %d/", n-len(f.Progress)+i+1), n)
		}
		require.Equal(t, n, f.Lines)
	}
	long := " iteration 1/ 9 | elapsed time per iteration (ms): 900.1 |" + strings.Repeat(" a: 1 |", 1000)
	f := factsOf(t, long)
	require.Len(t, f.Progress, 1, "the last line has no end")
	require.Len(t, f.Progress[0].Text, logfile.MaxLineLength)
	f = factsOf(t, diagnosetest.Rounds(3, iteration)+"A word\n"+diagnosetest.Rounds(40, "A note {n}\n"))
	require.Equal(t, "A note 40", f.Last[len(f.Last)-1].Text)
	require.GreaterOrEqual(t, len(f.Last), 16)
	require.Equal(t, "A note 25", f.Last[len(f.Last)-16].Text)
}

// TestHowMuchADigestKeeps has digests of many files: of each, what is read of so many, and the last of its iterations.
func TestHowMuchADigestKeeps(t *testing.T) {
	const iteration = " iteration {n}/ 9000 | elapsed time per iteration (ms): 900.1 | lm loss: 2.1 |\n"
	file := filepath.Join(t.TempDir(), "slurm-7.out")
	require.NoError(t, os.WriteFile(file, []byte("A word\n"+diagnosetest.Rounds(300, iteration)+"The last word"), 0o600))
	src, err := logfile.Open(file)
	require.NoError(t, err)
	for files, kept := range map[int]int{0: 256, 1: 256, 64: 256, 65: 252, 128: 128, 1365: 12, 1366: 12, 9000: 12} {
		lines := digestOf(t, src, files).Logs[0].Digested.Lines
		require.Len(t, lines, kept+2, files)
		require.Equal(t, "A word", string(lines[0].Text))
		require.Contains(t, string(lines[1].Text), fmt.Sprintf("iteration %d/", 300-kept+1))
		require.Equal(t, "The last word", string(lines[kept+1].Text))
		require.Equal(t, []int{1, 302 - kept, 302}, []int{lines[0].No, lines[1].No, lines[kept+1].No})
		for _, l := range lines {
			require.False(t, l.Gap, "nothing was left out that was not read")
		}
	}
	for _, of := range []logfile.Source{
		{Unreadable: []logfile.Unreadable{{Path: "a.zip"}}},
		{LeftOut: []string{"b"}},
		{OtherJobs: []string{"c"}},
		{OtherLogs: []logfile.Unreadable{{Path: "d", Reason: "e"}}},
		{Unreadable: []logfile.Unreadable{{Path: "a.zip"}}, LeftOut: []string{"b"}},
		{LeftOut: []string{"b"}, OtherJobs: []string{"c"}},
	} {
		of.Logs = src.Logs
		got := digestOf(t, of, 1)
		require.Equal(t, of.Unreadable, got.Unreadable)
		require.Equal(t, of.LeftOut, got.LeftOut)
		require.Equal(t, of.OtherJobs, got.OtherJobs)
		require.Equal(t, of.OtherLogs, got.OtherLogs)
	}
	joined, err := logfile.Read("all.txt", strings.NewReader("==> rank_3.log <==\nA word\n\n==> rank_4.log <==\nA word\n"))
	require.NoError(t, err)
	for files, parts := range map[int]int{0: 2, 1: 2, 2: 1} {
		require.Len(t, digestOf(t, joined, files).Logs, parts, files)
	}
	stopped, stop := context.WithCancel(context.Background())
	stop()
	require.Error(t, scan.WriteDigest(stopped, src, 1, &bytes.Buffer{}))
	_, err = scan.All(stopped, src)
	require.ErrorContains(t, err, "diagnosis stopped")
}
