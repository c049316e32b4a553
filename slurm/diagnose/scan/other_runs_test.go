package scan_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose/diagnosetest"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logline"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/pattern"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/python"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/scan"
)

const (
	opensRun  = "Reading the settings of run 7\n"
	opensMore = "The seed is set to 17\nThe model has 12 layers\nThe data has 900 rows\nThe schedule is linear\n"
	agentSaid = "E0610 08:59:06.36 17 api.py:826] failed (exitcode: 1) local_rank: 0 (pid: 9) of binary: /v/python\n"
)

// TestHowMuchShowsAnotherRun has a run that failed, its first line once more, and what follows that. A script may
// say its first line again at its end, and then little else.
func TestHowMuchShowsAnotherRun(t *testing.T) {
	const own, steps, iteration = "Copying file {n} home\n", "step 1 of 9: loss 2.5\nstep 2 of 9: loss 2.4\n",
		" iteration 10/ 20 | elapsed time per iteration (ms): 900.1 | lm loss: 2.1 |\n"
	failed := diagnosetest.Raised("KeyError: 'a'")
	for name, c := range map[string]struct {
		before, behind string
		runs           int
	}{
		"three lines of its own":                {"", diagnosetest.Rounds(3, own), 0},
		"four":                                  {"", diagnosetest.Rounds(4, own), 1},
		"three, and a table":                    {"", diagnosetest.Rounds(3, own) + strings.Repeat("| a | b |\n", 9), 0},
		"three, and what the first run said":    {"", diagnosetest.Rounds(3, own) + opensMore, 0},
		"a rank's line":                         {"", "3: A word of it\n", 1},
		"an exception":                          {"", "KeyError: 'b'\n", 1},
		"an exception that it went on after":    {"", "INFO:root:going on without it: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB\n", 0},
		"a step":                                {"", "step 1 of 9: loss 2.5\n", 1},
		"an iteration":                          {"", iteration, 1},
		"24 lines behind steps":                 {steps, diagnosetest.Rounds(24, own), 0},
		"25 lines behind steps":                 {steps, diagnosetest.Rounds(25, own), 1},
		"an iteration behind steps":             {steps, iteration, 1},
		"two lines, and another run after that": {"", diagnosetest.Rounds(2, own) + failed + opensRun + diagnosetest.Rounds(3, own), 1},
		"a run, and then its farewell":          {"", diagnosetest.Rounds(4, own) + failed + opensRun + diagnosetest.Rounds(3, own), 1},
		"two runs":                              {"", diagnosetest.Rounds(4, own) + failed + opensRun + diagnosetest.Rounds(4, own), 2},
	} {
		f := factsOf(t, opensRun+opensMore+c.before+failed+opensRun+c.behind)
		require.Len(t, f.Starts[scan.Appended], c.runs, name)
		if c.runs == 1 {
			require.Equal(t, int64(len(opensRun+opensMore+c.before+failed)), f.Starts[scan.Appended][0].Off, name)
		}
	}
	synced := "wandb: Synced 5 W&B file(s)\n"
	f := factsOf(t, opensRun+opensMore+synced+opensRun+synced+opensRun)
	require.Empty(t, f.Starts[scan.Appended], "neither of the last two has shown anything")
	f = factsOf(t, "A word of it\n"+strings.Repeat("nohup: ignoring input\nA word of it\n", 1030))
	require.Len(t, f.Starts[scan.Appended], 1024)
	require.Empty(t, factsOf(t, "nohup: ignoring input\nA word of it\n").Starts, "nohup's word on the first run")
}

// TestWhichFirstLinesComeAgain has the first lines of a run once more, with and without an end before them.
func TestWhichFirstLinesComeAgain(t *testing.T) {
	const done = "Training finished.\n"
	later, own := strings.Repeat("an epoch is over and the next one begins\n", 30), diagnosetest.Rounds(9, "Copying file {n} home\n")
	begin, failed, synced := opensRun+opensMore, diagnosetest.Raised("KeyError: 'a'"), "wandb: Synced 5 W&B file(s)\n"
	lines := strings.SplitAfter(begin, "\n")
	upTo := func(n int) string { return strings.Join(lines[:n], "") }
	others := func(n int) string { return diagnosetest.Rounds(n, "Another part of it: {n}\n") }
	soon := func(n int) string { return strings.Repeat("an epoch is over and the next one begins\n", n) }
	for name, c := range map[string]struct {
		log  string
		runs int
	}{
		"four, and no end":                                   {begin + later + upTo(4) + own, 1},
		"three, and no end":                                  {begin + later + upTo(3) + own, 0},
		"four with another number":                           {begin + later + strings.Replace(begin, "900", "901", 1) + own, 0},
		"four with another number in the first":              {begin + later + strings.Replace(upTo(4), "run 7", "run 8", 1) + own, 0},
		"four with another line between":                     {begin + later + upTo(2) + "The cache is warm\n" + lines[2] + lines[3] + own, 1},
		"four with twelve other lines between":               {begin + later + upTo(2) + others(12) + lines[2] + lines[3] + own, 1},
		"four with thirteen":                                 {begin + later + upTo(2) + others(13) + lines[2] + lines[3] + own, 0},
		"four of five":                                       {begin + later + upTo(2) + lines[3] + lines[4] + own, 1},
		"four in another order":                              {begin + later + upTo(2) + lines[4] + lines[3] + lines[2] + own, 0},
		"five, of which one is said twice":                   {upTo(2) + lines[2] + upTo(5)[len(upTo(2)):] + later + upTo(2) + lines[2] + lines[2] + own, 0},
		"the same, and one more":                             {upTo(3) + upTo(5)[len(upTo(2)):] + later + upTo(3) + upTo(4)[len(upTo(2)):] + own, 1},
		"four, of which one is said twice only now":          {begin + later + upTo(3) + lines[2] + lines[3] + own, 0},
		"four with another line between, after an exception": {begin + failed + upTo(1) + "The cache is warm\n" + upTo(4)[len(upTo(1)):] + own, 1},
		"the first after a trainer saw a Ctrl-C":             {begin + "Detected KeyboardInterrupt, attempting graceful shutdown ...\n" + upTo(1) + own, 1},
		"four with another line between, after a word of a failure": {begin + "CUDA out of memory. Tried to allocate 2 GiB\n" + later +
			upTo(2) + "The cache is warm\n" + lines[2] + lines[3] + own, 0},
		"one is said three times at first":           {upTo(3) + lines[2] + lines[2] + upTo(5)[len(upTo(3)):] + later + upTo(4) + own, 0},
		"four, after 19 lines":                       {begin + soon(19) + upTo(4) + own, 1},
		"four, after 18 lines":                       {begin + soon(18) + upTo(4) + own, 0},
		"two after the word that all is done":        {begin + done + upTo(2) + own, 1},
		"one after the word that all is done":        {begin + done + upTo(1) + own, 0},
		"the first with another number after an end": {begin + failed + "Reading the settings of run 8\n" + own, 1},
		"the second after an end":                    {begin + failed + lines[1] + own, 0},
		"the first after a tracker's last word":      {begin + synced + upTo(1) + own, 1},
		"the second line after a launcher's word, with another number": {
			begin + later + agentSaid + strings.Replace(lines[1]+lines[2]+lines[3], "17", "18", 1) + own, 0,
		},
		"three behind the first after a launcher's word": {begin + later + agentSaid + lines[1] + lines[2] + lines[3] + own, 1},
		"two behind the first after a launcher's word":   {begin + later + agentSaid + lines[1] + lines[2] + own, 0},
		"three behind the first without it":              {begin + later + lines[1] + lines[2] + lines[3] + own, 0},
		"three, of a run that has only three":            {upTo(3) + later + upTo(3) + own, 0},
		"a word of an error opens it":                    {"[trainer] ERROR of it\n" + failed + "[trainer] ERROR of it\n" + failed, 0},
		"srun opens it":                                  {"srun: job 7 is queued\n" + failed + "srun: job 7 is queued\n" + failed, 0},
		"a setting opens it":                             {"learning rate ........ 0.1\n" + failed + "learning rate ........ 0.1\n" + failed, 0},
		"a warning of torchelastic opens it": {
			strings.Repeat("W0611 10:01:02.000000 777 torch/distributed/elastic/agent/server/api.py:719] Starting the workers\n"+failed, 2), 0,
		},
		"a warning of PyTorch opens it": {strings.Repeat("[W1123 10:01:02.11 socket.cpp:759] [c10d] The client socket is slow\n"+failed, 2), 0},
	} {
		require.Len(t, factsOf(t, c.log).Starts[scan.Appended], c.runs, name)
	}
}

// TestWhoBeginsOverAfterAFailure has two lines from before the first step, said again after a launcher told of a
// failure, once or several times. They begin another attempt.
func TestWhoBeginsOverAfterAFailure(t *testing.T) {
	const steps = "step 1 of 9: loss 2.5\nstep 2 of 9: loss 2.4\n"
	const group, data = "Setting up the process group\n", "Reading the data of the run\n"
	attempts := func(first, again string) []scan.Mark {
		return factsOf(t, first+steps+agentSaid+again+steps).Starts[scan.Restarted]
	}
	both := group + data
	const slow = "[W1123 10:01:02.11 a.cpp:7] [c10d] slow\n"
	ranks := strings.Repeat(group, 2) + strings.Repeat(data, 2)
	starts := attempts(ranks, both)
	require.Len(t, starts, 1)
	require.Equal(t, int64(len(ranks+steps+agentSaid)), starts[0].Off)
	others := func(n int) (lines string) {
		for i := range n {
			lines += "Another part: " + strings.Repeat("x", i+1) + "\n"
		}
		return lines
	}
	for name, c := range map[string]struct {
		first, again string
		starts       int
	}{
		"one line of two":            {ranks, group, 0},
		"one line twice":             {ranks, group + group, 0},
		"with other words between":   {ranks, group + "A word of it\n" + data, 1},
		"in another order":           {ranks, data + group, 1},
		"with other numbers":         {"The seed is set to 17\nThe seed is set to 17\n" + group + group, "The seed is set to 18\n" + group, 1},
		"as short as no sentence":    {strings.Repeat("Begins anew\nReads a lot\n", 2), "Begins anew\nReads a lot\n", 0},
		"as short as a sentence":     {strings.Repeat("Begins again\nReads a file\n", 2), "Begins again\nReads a file\n", 1},
		"indented":                   {strings.Repeat("  Begins again\n  Reads a file\n", 2), "  Begins again\n  Reads a file\n", 0},
		"words of errors":            {strings.Repeat("ERROR of the group\nERROR of the data\n", 2), "ERROR of the group\nERROR of the data\n", 0},
		"srun's words":               {strings.Repeat("srun: job 7 is queued\nsrun: all of its nodes\n", 2), "srun: job 7 is queued\nsrun: all of its nodes\n", 0},
		"rows of a table":            {strings.Repeat("| of the group |\n| and the data |\n", 2), "| of the group |\n| and the data |\n", 0},
		"warnings of PyTorch":        {strings.Repeat(slow+strings.Replace(slow, "slow", "mute", 1), 2), slow + strings.Replace(slow, "slow", "mute", 1), 0},
		"within 512 lines":           {strings.Repeat("A word of it\n", 510) + both, both, 1},
		"one behind 512 lines":       {strings.Repeat("A word of it\n", 511) + both, both, 0},
		"with 29 others behind them": {ranks + others(29), both, 1},
		"with 30 others behind them": {ranks + others(30), both, 0},
		"and again without a failure": {
			ranks, both + steps + both, 1,
		},
		"and again after another failure": {ranks, both + steps + agentSaid + both, 2},
		"and a step is all that follows":  {ranks, both, 1},
	} {
		require.Len(t, attempts(c.first, c.again), c.starts, name)
	}
	require.Empty(t, factsOf(t, ranks+agentSaid+both+steps).Starts, "no step was reported before the failure")
	require.Empty(t, factsOf(t, ranks+steps+both+steps).Starts, "nothing failed")
	ranks += strings.Repeat("The cache is warm\n", 12)
	require.Empty(t, factsOf(t, ranks+steps+agentSaid+both+diagnosetest.Rounds(24, "Copying file {n} home\n")).Starts, "a farewell")
	require.Len(t, factsOf(t, ranks+steps+agentSaid+both+diagnosetest.Rounds(25, "Copying file {n} home\n")).Starts[scan.Restarted], 1)
}

// TestWhichProgramAnEventEnded has the main program of a Python process, and others.
func TestWhichProgramAnEventEnded(t *testing.T) {
	stack := func(file, function string) *python.Traceback {
		tb := &python.Traceback{}
		tb.Add(python.Frame{File: file, Line: 3, Function: function})
		return tb
	}
	for _, c := range []struct {
		e    scan.Event
		want string
	}{
		{scan.Event{Tag: logline.NoTag, Stack: stack("/w/train.py", "<module>")}, "train.py"},
		{scan.Event{Tag: logline.Tag{Label: -1, Local: -1, Rank: 3}, Stack: stack("/w/train.py", "<module>")}, ""},
		{scan.Event{Tag: logline.NoTag, Stack: stack("/w/train.py", "<module>"), Form: pattern.Report}, ""},
		{scan.Event{Tag: logline.NoTag, Stack: stack("/w/train.py", "<module>"), Doubted: true}, ""},
		{scan.Event{Tag: logline.NoTag, Stack: stack("/w/train.py", "<module>"), Superseded: true}, ""},
		{scan.Event{Tag: logline.NoTag, Stack: stack("/w/train.py", "run")}, ""},
		{scan.Event{Tag: logline.NoTag, Stack: stack("/v/bin/torchrun", "<module>")}, ""},
		{scan.Event{Tag: logline.NoTag, Stack: stack("/v/lib/python3.11/site-packages/torch/a.py", "<module>")}, ""},
		{scan.Event{Tag: logline.NoTag, Stack: &python.Traceback{}}, ""},
		{scan.Event{Tag: logline.NoTag, Text: "KeyError: 'a'"}, ""},
		{scan.Event{Tag: logline.NoTag, Text: "tune.py: error: argument --half: expected one argument"}, "tune.py"},
		{scan.Event{Tag: logline.Tag{Label: 3, Local: -1, Rank: -1}, Text: "tune.py: error: argument --half"}, ""},
	} {
		require.Equal(t, c.want, scan.ProgramOf(&c.e), c.e)
	}
}
