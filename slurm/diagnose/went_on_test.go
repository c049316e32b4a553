package diagnose

import (
	"testing"
	"time"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logline"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/pattern"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/python"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/scan"
	"github.com/stretchr/testify/require"
)

// A spoken is an event of one log, after a number of lines.
type spoken struct {
	lines int
	with  func(*scan.Event)
}

// oneLog returns a job of one log with a number of lines and events, each a copy of raise with its own
// changes.
func oneLog(lines int, raise scan.Event, events ...spoken) (*job, []*scan.Event) {
	j := newJob(sourceOf("x"), []*scan.Facts{{}}, Context{})
	j.old = []bool{false}
	for i, s := range events {
		e := raise
		e.Off, e.Ran.Sentences = int64(10*(i+1)), s.lines
		if e.Tag == (logline.Tag{}) {
			e.Tag = logline.NoTag
		}
		if s.with != nil {
			s.with(&e)
		}
		j.events = append(j.events, &e)
	}
	j.files[0].Events, j.files[0].Ran.Sentences = j.events, lines
	return j, j.events
}

var (
	inStep   = &python.Traceback{Frames: []python.Frame{{File: "/w/train.py", Function: "step"}}}
	inModule = &python.Traceback{Frames: []python.Frame{{File: "/w/train.py", Function: "<module>"}}}
)

// Exceptions in one log, thirty lines apart, and the lines after the last.
func TestAProgramThatHandlesItsExceptions(t *testing.T) {
	raised := scan.Event{Kind: "KeyError", Stack: inStep, Class: outcome.UserException, Weight: pattern.Generic}
	at := func(lines int, with ...func(*scan.Event)) spoken {
		return spoken{lines, func(e *scan.Event) {
			for _, f := range with {
				f(e)
			}
		}}
	}
	top := func(e *scan.Event) { e.Stack = inModule }
	tagged := func(e *scan.Event) { e.Tag.Rank = 1 }
	other := func(e *scan.Event) { e.Class = outcome.CUDAOOM }
	superseded := func(e *scan.Event) { e.Superseded = true }
	noStack := func(e *scan.Event) { e.Stack = nil }
	for name, c := range map[string]struct {
		lines  int
		events []spoken
		lives  bool
	}{
		"four":                          {91, []spoken{at(0), at(30), at(60), at(90)}, true},
		"three":                         {91, []spoken{at(0), at(30), at(60)}, false},
		"one too near":                  {91, []spoken{at(0), at(30), at(59), at(90)}, false},
		"nothing after the last":        {90, []spoken{at(0), at(30), at(60), at(90)}, false},
		"the last at the top":           {101, []spoken{at(0), at(30), at(60), at(90, top)}, false},
		"the last at the top, and more": {102, []spoken{at(0), at(30), at(60), at(90, top)}, true},
		"a rank's among them":           {91, []spoken{at(0), at(30, tagged), at(60), at(90)}, false},
		"the last is a rank's":          {91, []spoken{at(0), at(30), at(60), at(90, tagged)}, false},
		"another class between":         {91, []spoken{at(0), at(30), at(40, other), at(60), at(90)}, true},
		"part of a chain between":       {91, []spoken{at(0), at(30), at(40, superseded), at(60), at(90)}, true},
		"a line alone between":          {91, []spoken{at(0), at(30), at(40, noStack), at(60), at(90)}, true},
		"the last is a line alone":      {91, []spoken{at(0), at(30), at(60), at(70), at(90, noStack)}, false},
	} {
		j, events := oneLog(c.lines, raised, c.events...)
		require.Equal(t, c.lives, j.handlesExceptions(events[len(events)-1]), name)
		j.files[0].Failed = &scan.Mark{Off: 500}
		require.False(t, j.handlesExceptions(events[len(events)-1]), "%s, and a process died", name)
	}
}

// Lines of one form: after more than three of them, or with many other lines between, the program went
// on.
func TestALineThatIsSaidAgain(t *testing.T) {
	line := scan.Event{Text: "cannot open part 1 of it", Class: outcome.DatasetMissing, Form: pattern.Bare, Weight: pattern.Generic}
	form := func(text string) func(*scan.Event) { return func(e *scan.Event) { e.Text = text } }
	exception := func(e *scan.Event) { e.Kind = "KeyError" }
	steps := func(n int) []scan.Mark {
		all := make([]scan.Mark, n)
		for i := range all {
			all[i].Off = int64(11 + i)
		}
		return all
	}
	for name, c := range map[string]struct {
		events         []spoken
		progress       []scan.Mark
		often, another bool
	}{
		"four times":                      {[]spoken{{lines: 0}, {lines: 1}, {lines: 2}, {lines: 3}}, nil, true, false},
		"three times":                     {[]spoken{{lines: 0}, {lines: 1}, {lines: 2}}, nil, false, false},
		"of other numbers":                {[]spoken{{lines: 0}, {1, form("cannot open part 22 of it")}, {lines: 2}, {lines: 3}}, nil, true, false},
		"of other words":                  {[]spoken{{lines: 0}, {1, form("cannot open that")}, {lines: 2}, {lines: 3}}, nil, false, false},
		"of another rank":                 {[]spoken{{lines: 0}, {1, func(e *scan.Event) { e.Tag.Rank = 3 }}, {lines: 2}, {lines: 3}}, nil, false, false},
		"of another class":                {[]spoken{{lines: 0}, {1, func(e *scan.Event) { e.Class = outcome.DiskFull }}, {lines: 2}, {lines: 3}}, nil, false, false},
		"in the form of an error":         {[]spoken{{lines: 0}, {1, func(e *scan.Event) { e.Form = 0 }}, {lines: 2}, {lines: 3}}, nil, false, false},
		"after twelve others":             {[]spoken{{lines: 0}, {lines: 12}}, nil, false, true},
		"after eleven others":             {[]spoken{{lines: 0}, {lines: 11}}, nil, false, false},
		"twelve others in parts":          {[]spoken{{lines: 0}, {lines: 6}, {lines: 12}}, nil, false, false},
		"an exception after twelve":       {[]spoken{{lines: 0}, {12, exception}}, nil, false, false},
		"three steps between":             {[]spoken{{lines: 0}, {lines: 1}}, steps(3), false, true},
		"two steps between":               {[]spoken{{lines: 0}, {lines: 1}}, steps(2), false, false},
		"another's words after twelve":    {[]spoken{{0, form("cannot open that")}, {lines: 12}}, nil, false, false},
		"a fact, after twelve":            {[]spoken{{lines: 0}, {12, func(e *scan.Event) { e.Weight = pattern.Fact - 1 }}}, nil, false, false},
		"less than a fact, after twelve":  {[]spoken{{lines: 0}, {12, func(e *scan.Event) { e.Weight = pattern.Fact - 2 }}}, nil, false, true},
		"a launcher's word, after twelve": {[]spoken{{lines: 0}, {12, func(e *scan.Event) { e.Agent = true }}}, nil, false, false},
		"a traceback, after twelve":       {[]spoken{{lines: 0}, {12, func(e *scan.Event) { e.Stack = inStep }}}, nil, false, false},
	} {
		j, events := oneLog(99, line, c.events...)
		j.files[0].Progress = c.progress
		last := events[len(events)-1]
		require.Equal(t, c.often, j.repeated(last), name)
		require.Equal(t, c.another, j.survivedBefore(last), name)
		j.files[0].Failed = &scan.Mark{Off: 500}
		require.False(t, j.survivedBefore(last), "%s, and a process died", name)
	}
}

// Slurm's message about the end of a job, and the lines and steps after it.
func TestAProcessMayFinishAfterSlurmsMessage(t *testing.T) {
	limit := scan.Event{Class: outcome.SlurmTimeLimit, Agent: true, Weight: pattern.Ended}
	cancelled := limit
	cancelled.Class = outcome.SlurmCancelled
	own := limit
	own.Agent = false
	for name, c := range map[string]struct {
		e            scan.Event
		lines, steps int
		finished     bool
		may          bool
	}{
		"nothing":                       {limit, 0, 0, false, true},
		"eleven lines":                  {limit, 11, 0, false, true},
		"twelve lines":                  {limit, 12, 0, false, false},
		"twelve lines, one of a step":   {limit, 12, 1, false, true},
		"its own word":                  {own, 0, 0, false, false},
		"cancelled":                     {cancelled, 11, 0, false, true},
		"cancelled, and it ended well":  {cancelled, 11, 0, true, false},
		"the limit, and it ended well":  {limit, 11, 0, true, true},
		"another end":                   {func() scan.Event { e := limit; e.Class = outcome.SlurmPreempted; return e }(), 0, 0, false, false},
		"steps of another run, a while": {limit, 1000, 999, false, false},
	} {
		j, events := oneLog(c.lines, c.e, spoken{})
		for i := range c.steps {
			j.files[0].Progress = append(j.files[0].Progress, scan.Mark{Off: int64(20 + i), Text: "step"})
		}
		j.files[0].Progress = append([]scan.Mark{{Off: 10, Text: "step"}}, j.files[0].Progress...) // a step at the same place does not count
		if c.finished {
			j.files[0].Finished = &scan.Mark{Off: 50}
		}
		require.Equal(t, c.may, j.finishingUp(events[0]), name)
	}
}

// Steps after an event, in its own log and in another one.
func TestStepsAfterAnEventCount(t *testing.T) {
	const head = "[2026-06-11 10:00:"
	at := time.Date(2026, 6, 11, 10, 0, 0, 0, time.UTC)
	rank := func(n int) logline.Tag { return logline.Tag{Label: -1, Local: -1, Rank: n} }
	mark := func(off int64, tag logline.Tag, text string) scan.Mark {
		return scan.Mark{Off: off, Tag: tag, Text: text}
	}
	for name, c := range map[string]struct {
		own, other []scan.Mark
		steps      int
	}{
		"after it":                        {[]scan.Mark{mark(101, logline.NoTag, "x"), mark(102, logline.NoTag, "x")}, nil, 2},
		"with it and before":              {[]scan.Mark{mark(99, logline.NoTag, "x"), mark(100, logline.NoTag, "x")}, nil, 0},
		"the most of one rank":            {[]scan.Mark{mark(101, rank(0), "x"), mark(102, rank(1), "x"), mark(103, rank(1), "x")}, nil, 2},
		"one line of a bar":               {[]scan.Mark{mark(101, rank(0), "x"), mark(101, rank(0), "y"), mark(101, rank(0), "z")}, nil, 1},
		"one line that nobody passed on":  {[]scan.Mark{mark(101, logline.NoTag, "x"), mark(101, logline.NoTag, "y")}, nil, 2},
		"elsewhere, later":                {nil, []scan.Mark{mark(1, logline.NoTag, head+"06] step"), mark(2, logline.NoTag, head+"07] step")}, 2},
		"elsewhere, as clocks may differ": {nil, []scan.Mark{mark(1, logline.NoTag, head+"05] step")}, 0},
		"elsewhere, nobody knows when":    {nil, []scan.Mark{mark(999, logline.NoTag, "step")}, 0},
	} {
		e := &scan.Event{Off: 100, Before: at, Dated: true, Tag: logline.NoTag}
		j := newJob(sourceOf("x", "y"), []*scan.Facts{{Progress: c.own}, {Progress: c.other}}, Context{})
		require.Equal(t, c.steps, j.progressSince(e), name)
	}
}

// A script's line in one log, and lines of programs in it and in another log.
func TestProgramsThatRanBesideAScriptsLine(t *testing.T) {
	for name, c := range map[string]struct {
		own, other     scan.Facts
		node           string
		nothing        bool // no program wrote on its node
		beside, worked bool
	}{
		"nothing":              {scan.Facts{}, scan.Facts{}, "gpu1", true, false, false},
		"before it":            {ran(5, 0), scan.Facts{}, "gpu1", false, false, false},
		"after it":             {ran(6, 0), scan.Facts{}, "gpu1", false, true, false},
		"in the other log":     {scan.Facts{}, ran(1, 0), "gpu1", false, true, false},
		"on another node":      {scan.Facts{}, ran(1, manyLines), "gpu2", true, false, false},
		"much in the other":    {scan.Facts{}, ran(1, manyLines), "gpu1", false, true, true},
		"little in the other":  {scan.Facts{}, ran(1, manyLines-1), "gpu1", false, true, false},
		"steps in the other":   {scan.Facts{}, scan.Facts{Progress: words(scan.Enough)}, "gpu1", false, true, true},
		"a step in the other":  {scan.Facts{}, scan.Facts{Progress: words(scan.Enough - 1)}, "gpu1", false, true, false},
		"steps beside, itself": {scan.Facts{Progress: words(1)}, scan.Facts{}, "gpu1", false, false, false},
		"a step after it":      {scan.Facts{Progress: []scan.Mark{{Off: 101, Text: "step"}}}, scan.Facts{}, "gpu1", false, true, false},
	} {
		e := &scan.Event{Off: 100, Tag: logline.NoTag}
		e.Ran.Programs = 5
		if c.own.Ran.Programs == 0 {
			e.Ran.Programs = 0
		}
		j := newJob(sourceOf("x", "y"), []*scan.Facts{&c.own, &c.other}, Context{})
		j.fileNode = []string{"gpu1", c.node}
		require.Equal(t, c.nothing, j.nothingRan(e), name)
		require.Equal(t, c.beside, j.programRan(e), name)
		require.Equal(t, c.worked, j.otherLogWorked(e), name)
	}
}

// words returns n reports of steps.
func words(n int) (all []scan.Mark) {
	for i := range n {
		all = append(all, scan.Mark{Off: int64(1 + i), Text: "step"})
	}
	return all
}

// ran returns the Facts of a log with these numbers of programs' lines and of sentences.
func ran(programs, sentences int) (f scan.Facts) {
	f.Ran.Programs, f.Ran.Sentences = programs, sentences
	return f
}

// The iterations in a log, and the exit code that a launcher reports, show whether the script's program
// ran.
func TestWhatTheScriptStartedRan(t *testing.T) {
	for name, c := range map[string]struct {
		steps, summaries, exit int
		ran                    bool
	}{
		"three steps":             {3, 0, 1, true},
		"two steps":               {2, 0, 1, false},
		"a summary":               {0, 1, 1, true},
		"no such program":         {3, 0, 127, false},
		"no right to run it":      {3, 0, 126, false},
		"a signal":                {3, 0, -9, true},
		"no word on how it ended": {3, 0, 0, false},
	} {
		f := &scan.Facts{Progress: words(c.steps), Elastic: make([]scan.ElasticEntry, c.summaries)}
		j := newJob(sourceOf("x"), []*scan.Facts{f}, Context{})
		require.Equal(t, c.ran, j.launched([]*scan.Event{{Agent: true, Exit: c.exit}}), name)
		require.False(t, j.launched([]*scan.Event{{Exit: c.exit}}), "%s, but a launcher did not say it", name)
	}
}

// Slurm's message that a job or step was cancelled, and another event before or after it.
func TestSomethingFailedBeforeTheCancel(t *testing.T) {
	at := time.Date(2026, 6, 11, 10, 0, 0, 0, time.UTC)
	const whole, step = "slurmstepd: error: *** JOB 7 ON a CANCELLED AT x ***", "slurmstepd: error: *** STEP 7.0 ON a CANCELLED AT x ***"
	lost := scan.Event{Off: 50, Weight: pattern.Exited, Class: outcome.UnknownExit}
	in := func(e scan.Event, file int, off int64) scan.Event { e.File, e.Off = file, off; return e }
	when := func(e scan.Event, d time.Duration) scan.Event { e.File, e.Before = 1, at.Add(d); return e }
	weighs := func(e scan.Event, w int) scan.Event { e.Weight = w; return e }
	for name, c := range map[string]struct {
		end    string
		e      scan.Event
		before bool
	}{
		"before it":                            {whole, lost, true},
		"after it":                             {whole, in(lost, 0, 150), false},
		"a symptom":                            {whole, weighs(lost, pattern.Symptom), false},
		"more than a symptom":                  {whole, weighs(lost, pattern.Symptom+1), true},
		"a death":                              {whole, weighs(lost, pattern.Death), false},
		"less than a death":                    {whole, weighs(lost, pattern.Death-1), true},
		"Slurm's own word":                     {whole, func() scan.Event { e := lost; e.Class = outcome.SlurmPreempted; return e }(), false},
		"elsewhere, well before":               {whole, when(lost, -skew-1), true},
		"elsewhere, as clocks may differ":      {whole, when(lost, -skew), false},
		"elsewhere, nobody knows when":         {whole, in(lost, 1, 5), false},
		"elsewhere, just after a step":         {step, when(lost, skew-1), true},
		"elsewhere, after a step":              {step, when(lost, skew), false},
		"elsewhere, nobody knows when: a step": {step, in(lost, 1, 5), true},
	} {
		end := &scan.Event{Off: 100, Class: outcome.SlurmCancelled, Text: c.end, Before: at}
		require.Equal(t, c.before, new(job).failedBefore(end, []*scan.Event{end, &c.e}), name)
	}
}

// Lines, and whether the batch script or a command of it wrote them.
func TestAScriptsLine(t *testing.T) {
	for name, c := range map[string]struct {
		e  scan.Event
		is bool
	}{
		"a command's":                   {scan.Event{Text: "cp: cannot stat 'a'"}, true},
		"of a path":                     {scan.Event{Text: "/usr/bin/cp: cannot stat 'a'"}, true},
		"a sentence":                    {scan.Event{Text: "nothing: is there"}, true},
		"two words before the colon":    {scan.Event{Text: "nothing is: there"}, false},
		"a Python program's":            {scan.Event{Text: "/w/train.py: error"}, false},
		"an exception":                  {scan.Event{Text: "KeyError: a", Kind: "KeyError"}, false},
		"conda's own error":             {scan.Event{Text: "CondaValueError: a", Kind: "CondaValueError"}, true},
		"conda's own error, traced":     {scan.Event{Text: "CondaValueError: a", Kind: "CondaValueError", Stack: inStep}, false},
		"a launcher's":                  {scan.Event{Text: "srun: error: a", Agent: true}, false},
		"a rank's":                      {scan.Event{Text: "cp: cannot stat 'a'", Tag: logline.Tag{Label: -1, Local: -1, Rank: 0}}, false},
		"a local rank's":                {scan.Event{Text: "cp: cannot stat 'a'", Tag: logline.Tag{Label: -1, Local: 0, Rank: -1}}, false},
		"a task's":                      {scan.Event{Text: "cp: cannot stat 'a'", Tag: logline.Tag{Label: 0, Local: -1, Rank: -1}}, true},
		"a fact":                        {scan.Event{Text: "kernel: out of memory", Weight: pattern.Fact - 1}, false},
		"less than a fact":              {scan.Event{Text: "kernel: out of memory", Weight: pattern.Fact - 2}, true},
		"of a submission":               {scan.Event{Text: "sbatch: error: no", Class: outcome.SlurmSubmitRejected}, false},
		"of a program that was killed":  {scan.Event{Text: "/w/run.sh: line 12: 4711 Killed python"}, false},
		"of a container":                {scan.Event{Text: "FATAL: image"}, false},
		"environment modules' complain": {scan.Event{Text: "Lmod has detected the following error"}, true},
	} {
		if c.e.Tag == (logline.Tag{}) {
			c.e.Tag = logline.NoTag
		}
		require.Equal(t, c.is, fromScript(&c.e), name)
	}
}
