package scan_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose/diagnosetest"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logline"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/scan"
)

// TestLossesThatAreNoNumbers has a program's own lines about its loss. One number among them is enough.
func TestLossesThatAreNoNumbers(t *testing.T) {
	for log, first := range map[string]string{
		"loss: nan\nval loss: nan\n":            "loss: nan",
		"a word\nmean loss: nan\nloss = -nan\n": "mean loss: nan",
		"loss: nan\n":                           "",
		"loss: nan\nloss: nan\nloss: 0.4\n":     "",
		"loss: 0.4\nloss: nan\nloss: nan\n":     "",
		"accuracy: nan\naccuracy: nan\n":        "",
		"loss: nan\nloss: nan\nloss: nan\n":     "loss: nan",
	} {
		m, never := factsOf(t, log).NeverANumber()
		require.Equal(t, first != "", never, log)
		if never {
			require.Equal(t, first, m.Text, log)
			require.Equal(t, int64(strings.Index(log, first)), m.Off, log)
		}
	}
}

// TestErrorsThatEndedAScriptOfR has R's errors with and without the line that says that they ended the script.
func TestErrorsThatEndedAScriptOfR(t *testing.T) {
	const halted = "Execution halted\n"
	type event struct{ text, class string }
	for log, want := range map[string][]event{
		"Error in f(x) : no such column\n" + halted:                                 {{"Error in f(x) : no such column", outcome.UserException}},
		"Error: no such column\nCalls: f -> g\n" + halted:                           {{"Error: no such column", outcome.UserException}},
		"Error in library(a) : there is no package called 'a'\n" + halted:           {{"Error in library(a) : there is no package called 'a'", outcome.ImportError}},
		"Error in f(x) : first\nA word\nError in g(x) : second\n" + halted:          {{"Error in g(x) : second", outcome.UserException}},
		"Error in f(x) : no such column\n" + halted + "A word\n" + halted:           {{"Error in f(x) : no such column", outcome.UserException}},
		"Error in unserialize(node$con) : error reading from connection\n" + halted: nil,
		"Error in f(x) : why\nError in unserialize(node$con) : gone\n" + halted:     {{"Error in f(x) : why", outcome.UserException}},
		"Error in f(x) : no such column\n":                                          nil,
		"Error in f(x) : no such column\nExecution halted by hand\n":                nil,
		halted: nil, "A word\n" + halted: nil,
	} {
		var got []event
		for _, e := range factsOf(t, log).Events {
			got = append(got, event{e.Text, e.Class})
			require.Equal(t, int64(strings.Index(log, e.Text)), e.Off, log)
		}
		require.Equal(t, want, got, log)
	}
}

// TestWhatTensorFlowQuotesFromAFunction has the lines behind the words with which TensorFlow introduces an exception
// of a function that it compiled.
func TestWhatTensorFlowQuotesFromAFunction(t *testing.T) {
	head := func(words string) string {
		return "Traceback (most recent call last):\n  File \"/w/train.py\", line 9, in <module>\n    fit(x)\nValueError: " + words + "\n"
	}
	const frame, raised = "    File \"/w/net.py\", line 21, in call  *\n        return self.head(x)\n", "    TypeError: it has 3 axes\n"
	for name, c := range map[string]struct {
		log, text string
		frames    int
	}{
		"user code":                      {head("in user code:") + frame + raised, "TypeError: it has 3 axes", 2},
		"converted code":                 {head("in converted code:") + frame + raised, "TypeError: it has 3 axes", 2},
		"an empty line between":          {head("in user code:") + "\n" + frame + "\n" + raised, "TypeError: it has 3 axes", 2},
		"two frames":                     {head("in user code:") + frame + frame + raised, "TypeError: it has 3 axes", 3},
		"no frame":                       {head("in user code:") + raised, "TypeError: it has 3 axes", 1},
		"no exception":                   {head("in user code:") + frame, "ValueError: in user code:", 2},
		"an exception that is not in it": {head("in user code:") + frame + "  TypeError: another\n", "ValueError: in user code:", 2},
		"other words":                    {head("in other code:") + raised, "ValueError: in other code:", 1},
		"no stack":                       {"ValueError: in user code:\n" + frame + raised, "TypeError: it has 3 axes", 0},
	} {
		e := factsOf(t, c.log).Events[0]
		require.Equal(t, c.text, e.Text, name)
		above, _, _ := strings.Cut(c.log, c.text)
		require.Equal(t, int64(strings.LastIndex(above, "\n")+1), e.Off, name)
		if c.frames == 0 {
			require.Nil(t, e.Stack, name)
			continue
		}
		require.Len(t, e.Stack.Frames, c.frames, name)
		if c.frames > 1 {
			require.Equal(t, "call", e.Stack.Frames[1].Function, name)
		}
	}
	again := factsOf(t, head("in user code:")+frame+raised+"Traceback (most recent call last):\n    File \"/w/b.py\", line 3, in f\nKeyError: 'a'\n")
	require.Len(t, again.Events, 2)
	require.Len(t, again.Events[0].Stack.Frames, 2)
	require.Len(t, again.Events[1].Stack.Frames, 1, "the next traceback's frames are its own")
}

// TestWhatNodesSayThatTheyStart has start lines whose attempts are new, known or older.
func TestWhatNodesSayThatTheyStart(t *testing.T) {
	line := func(attempt, host string) string {
		return "start: attempt=" + attempt + " node=0 host=" + host + " ranks=0-7 commit=aa dirty=no argv=bb env=cc\n"
	}
	for log, starts := range map[string]int{
		line("0", "a"):                                     0,
		line("0", "a") + line("0", "b"):                    0,
		line("1", "a"):                                     1,
		line("1", "a") + line("1", "b"):                    1,
		line("1", "a") + line("0", "b") + line("1", "c"):   1,
		line("0", "a") + line("1", "a") + line("2", "a"):   2,
		line("2", "a") + line("1", "a") + line("3", "a"):   2,
		strings.Replace(line("1", "a"), "ranks=", "r=", 1): 0,
	} {
		require.Len(t, factsOf(t, log).Starts[scan.Requeued], starts, log)
	}
	f := factsOf(t, "3: "+line("0", "a")+line("0", "b"))
	require.Equal(t, 3, f.NodeStarts[0].Task)
	require.Equal(t, -1, f.NodeStarts[1].Task)
	require.Equal(t, "b", f.NodeStarts[1].Host)
	require.Zero(t, f.Ran.Sentences)
	oom := "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {n} GiB\n"
	f = factsOf(t, line("0", "a")+diagnosetest.Rounds(9, oom)+line("1", "a")+diagnosetest.Rounds(3, oom))
	require.Len(t, f.Events, 9, "the events of an attempt are not those of another")
}

// TestWhatShowsThatNoProgramRuns has lines that look like words of a program, and are a launcher's, a log's or a
// fault handler's.
func TestWhatShowsThatNoProgramRuns(t *testing.T) {
	type ran struct{ phases, programs, sentences, tagged int }
	for line, want := range map[string]ran{
		"W0611 of the data":                               {0, 0, 0, 0},
		"W061 of the data":                                {0, 0, 1, 0},
		"W06110 of the data":                              {0, 0, 1, 0},
		"Wx611 of the data":                               {0, 0, 1, 0},
		"W061x of the data":                               {0, 0, 1, 0},
		"E0611 of the data":                               {0, 0, 1, 0},
		"WARNING of the data":                             {0, 0, 0, 0},
		"WARNING:root:of the data":                        {0, 0, 0, 0},
		"[2345=78] the data":                              {0, 0, 1, 0},
		"[2345=7] the data":                               {0, 0, 0, 0},
		"Thread 0x7f12 (most recent call first):":         {0, 0, 0, 0},
		"Current thread 0x7f12 (most recent call first):": {0, 0, 0, 0},
		"Extension modules: numpy, torch":                 {0, 0, 0, 0},
		"0: slurmstepd: info: of it":                      {0, 1, 1, 0},
		"0: The data are read":                            {0, 1, 1, 1},
		"the word .py":                                    {0, 1, 1, 0},
		"/v/lib/a.txt:7: UserWarning: old":                {0, 0, 0, 0},
		"v=/lib/a.py:7: old":                              {0, 1, 0, 0},
		"   1  2  3":                                      {0, 0, 1, 0},
		"   1  2  3:":                                     {0, 0, 1, 0},
		"   1  2  3;":                                     {0, 0, 0, 0},
		"   1e5  2E5  +3":                                 {0, 0, 1, 0},
		"   1  2  *":                                      {0, 0, 0, 0},
		"   1  2":                                         {0, 0, 0, 0},
	} {
		f := factsOf(t, line+"\n")
		require.Equal(t, want, ran{f.Ran.Phases, f.Ran.Programs, f.Ran.Sentences, f.Ran.Tagged}, line)
	}
}

// TestWhichTimeALogHas has times with and without a year or a rank's tag, and a start that waits for its time.
func TestWhichTimeALogHas(t *testing.T) {
	at := time.Date(2026, 6, 11, 10, 0, 5, 0, time.UTC)
	for log, want := range map[string]time.Time{
		"2026-06-11 10:00:05 a word\n":                                      at,
		"2026-06-11 10:00:00 a word\n[Thu Jun 11 10:00:05] a word\n":        at,
		"2026-06-11 10:00:00 a word\n2026-06-11 10:00:05 a word\nno time\n": at,
		"[Thu Jun 11 10:00:05] a word\n":                                    at.AddDate(-2026+logline.Yearless, 0, 0),
		"3: 2026-06-11 10:00:05 a word\n":                                   at,
		"[default0]:2026-06-11 10:00:05 a word\n":                           at,
		"[gpu-a.x:0]:2026-06-11 10:00:05 a word\n":                          at,
		"a word\n": {},
	} {
		require.Equal(t, want, factsOf(t, log).LastTime.UTC(), log)
	}
	const start, killed, later = "START TIME: 7\n", "srun: error: n1: task 0: Killed\n", "2026-06-11 10:00:05 a word\n"
	for log, want := range map[string]time.Time{
		start + later:          at,
		start + killed + later: {},
		killed + start + later: at,
		start + "a word\n" + later + "2026-06-11 11:00:00 more\n": at,
		start: {},
	} {
		require.Equal(t, want, factsOf(t, log).Starts["script"][0].At.UTC(), log)
	}
}

// TestWhichCharactersALineLoses has lines with a terminal's colours and other control characters.
func TestWhichCharactersALineLoses(t *testing.T) {
	for log, want := range map[string]string{
		"\x1b[31mKeyError: 'a'\x1b[0m\n": "KeyError: 'a'", "KeyError: 'a'\x7f\n": "KeyError: 'a'", "KeyError: 'a'\x1f\n": "KeyError: 'a'",
		"KeyError: 'a'\x01\n": "KeyError: 'a'", "KeyError: 'a'  \r\n": "KeyError: 'a'", "KeyError: 'a' \t\n": "KeyError: 'a'", "KeyError: 'a'": "KeyError: 'a'",
		"KeyError:\t'a'\n": "KeyError:\t'a'", "KeyError: 'é'\n": "KeyError: 'é'",
	} {
		f := factsOf(t, log)
		require.Len(t, f.Events, 1, "%q", log)
		require.Equal(t, want, f.Events[0].Text, "%q", log)
	}
}
