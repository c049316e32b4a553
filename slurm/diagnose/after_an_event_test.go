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

// Rank 3's exception, other ranks' steps after it, and a launcher's word on an exit: whether rank 3 died.
func TestARankDiedOfItsException(t *testing.T) {
	three := logline.Tag{Label: -1, Local: -1, Rank: 3}
	two := logline.Tag{Label: -1, Local: -1, Rank: 2}
	for name, with := range map[string]struct {
		change func(j *job, raised, exit *scan.Event)
		died   bool
	}{
		"nothing else":                    {func(*job, *scan.Event, *scan.Event) {}, true},
		"the first rank's":                {func(j *job, raised, exit *scan.Event) { raised.Rank, exit.Rank = 0, 0 }, true},
		"a line without a traceback":      {func(j *job, raised, exit *scan.Event) { raised.Stack = nil }, false},
		"nobody knows which rank":         {func(j *job, raised, exit *scan.Event) { raised.Rank, exit.Rank = -1, -1 }, false},
		"no tag before it":                {func(j *job, raised, exit *scan.Event) { raised.Tag = logline.NoTag }, false},
		"it wrote on":                     {func(j *job, raised, exit *scan.Event) { j.files[0].LastBy[three] = scan.Mark{Off: 11} }, false},
		"another rank wrote on":           {func(j *job, raised, exit *scan.Event) { j.files[0].LastBy[two] = scan.Mark{Off: 99} }, true},
		"a step of it":                    {func(j *job, raised, exit *scan.Event) { j.files[0].Progress[1].Tag = three }, false},
		"a step of it before":             {func(j *job, raised, exit *scan.Event) { j.files[0].Progress[0].Tag = three }, true},
		"the launcher's word has its tag": {func(j *job, raised, exit *scan.Event) { exit.Tag = three }, true},
		"another event of it": {func(j *job, raised, exit *scan.Event) {
			j.events = append(j.events, &scan.Event{Off: 30, Tag: three})
		}, false},
		"another file's event": {func(j *job, raised, exit *scan.Event) {
			j.events = append(j.events, &scan.Event{File: 1, Off: 30, Tag: three})
		}, true},
		"it left its module, and what it wrote came late": {func(j *job, raised, exit *scan.Event) {
			raised.Kind, raised.Weight = "KeyError", pattern.Generic
			raised.Stack = &python.Traceback{Frames: []python.Frame{{Function: "<module>"}}}
			j.files[0].LastBy[three], j.files[0].Progress[1].Tag = scan.Mark{Off: 60}, three
		}, true},
		"it exited otherwise":          {func(j *job, raised, exit *scan.Event) { exit.Exit = 2 }, false},
		"another rank exited":          {func(j *job, raised, exit *scan.Event) { exit.Rank = 2 }, false},
		"a number that no launcher is": {func(j *job, raised, exit *scan.Event) { exit.Agent = false }, false},
	} {
		j, events := oneLog(50, scan.Event{}, spoken{0, func(e *scan.Event) { e.Stack, e.Rank, e.Tag = inStep, 3, three }},
			spoken{40, func(e *scan.Event) { e.Agent, e.Exit, e.Rank = true, 1, 3 }})
		j.files[0].LastBy = map[logline.Tag]scan.Mark{three: {Off: 9}}
		j.files[0].Progress = []scan.Mark{{Off: 5, Tag: two}, {Off: 15, Tag: two}}
		with.change(j, events[0], events[1])
		require.Equal(t, with.died, j.diedWithIt(events[0]), name)
	}
}

// Rank 3's exception, a second one about a lost peer, and a launcher's word on rank 0: whether rank 3
// lived on after the first.
func TestARankLivedUntilItLostAPeer(t *testing.T) {
	three := logline.Tag{Label: -1, Local: -1, Rank: 3}
	thread := &python.Traceback{Frames: []python.Frame{{Function: "_bootstrap_inner"}}}
	uncaught := scan.Event{Kind: "KeyError", Tag: logline.NoTag, Weight: pattern.Death, Stack: &python.Traceback{Frames: []python.Frame{{Function: "<module>"}}}}
	for name, with := range map[string]struct {
		change func(raised, lost, killed *scan.Event)
		lived  bool
	}{
		"nothing else":                {func(raised, lost, killed *scan.Event) {}, true},
		"the first rank's":            {func(raised, lost, killed *scan.Event) { raised.Rank, lost.Rank, killed.Rank = 0, 0, 1 }, true},
		"a line without a traceback":  {func(raised, lost, killed *scan.Event) { raised.Stack = nil }, false},
		"nobody knows which rank":     {func(raised, lost, killed *scan.Event) { raised.Rank = -1 }, false},
		"no tag before it":            {func(raised, lost, killed *scan.Event) { raised.Tag, lost.Tag = logline.NoTag, logline.NoTag }, false},
		"a thread's":                  {func(raised, lost, killed *scan.Event) { raised.Stack = thread }, false},
		"the program's end":           {func(raised, lost, killed *scan.Event) { raised.Stack = &python.Traceback{Uncaught: true} }, false},
		"the second of another rank":  {func(raised, lost, killed *scan.Event) { lost.Tag.Rank = 2 }, false},
		"the second of another file":  {func(raised, lost, killed *scan.Event) { lost.File = 1 }, false},
		"the second came before":      {func(raised, lost, killed *scan.Event) { lost.Off = 1 }, false},
		"the second is a line alone":  {func(raised, lost, killed *scan.Event) { lost.Stack = nil }, false},
		"the second of another class": {func(raised, lost, killed *scan.Event) { lost.Class = outcome.UserException }, false},
		"no launcher says it":         {func(raised, lost, killed *scan.Event) { killed.Agent = false }, false},
		"which peer is not known":     {func(raised, lost, killed *scan.Event) { killed.Rank = -1 }, false},
		"the peer is itself":          {func(raised, lost, killed *scan.Event) { killed.Rank = 3 }, false},
		"a peer's segfault":           {func(raised, lost, killed *scan.Event) { killed.Class = outcome.Segfault }, true},
		"a peer's bus error":          {func(raised, lost, killed *scan.Event) { killed.Class = outcome.ShmBusError }, true},
		"a peer's exit":               {func(raised, lost, killed *scan.Event) { killed.Class = outcome.UnknownExit }, false},
		"a peer's abort":              {func(raised, lost, killed *scan.Event) { killed.Class, killed.Exit = outcome.Segfault, -6 }, false},
		"an abort as shells say it":   {func(raised, lost, killed *scan.Event) { killed.Class, killed.Exit = outcome.Segfault, 134 }, false},
		"a peer's own exception":      {func(raised, lost, killed *scan.Event) { *killed = uncaught }, true},
		"it ended the program too": {func(raised, lost, killed *scan.Event) {
			*killed, raised.Kind, raised.Weight, raised.Stack = uncaught, uncaught.Kind, uncaught.Weight, uncaught.Stack
		}, false},
		"one that the peer caught": {func(raised, lost, killed *scan.Event) { *killed, killed.Stack = uncaught, inStep }, false},
		"one about another peer":   {func(raised, lost, killed *scan.Event) { *killed, killed.Weight = uncaught, pattern.Symptom }, false},
		"of a peer that is itself": {func(raised, lost, killed *scan.Event) { *killed, killed.Rank = uncaught, 3 }, false},
	} {
		j, events := oneLog(50, scan.Event{Stack: inStep, Rank: 3, Tag: three}, spoken{}, spoken{10, func(e *scan.Event) { e.Class = outcome.NCCLConnection }},
			spoken{20, func(e *scan.Event) {
				e.Stack, e.Tag, e.Agent, e.Rank, e.Class, e.Exit = nil, logline.NoTag, true, 0, outcome.HostOOM, -9
			}})
		with.change(events[0], events[1], events[2])
		require.Equal(t, with.lived, j.lostPeerLater(events[0]), name)
	}
}

// A Ctrl-C in Ray's driver, and what it passes on while it exits.
func TestWhatRaysDriverPassesOnIsNoProgress(t *testing.T) {
	const worker, own = "(WorkerDict pid=1626) INFO: weights are updated", "step 7"
	line := func(off int64, text string) scan.Mark { return scan.Mark{Off: off, Text: text} }
	for name, c := range map[string]struct {
		lines      int
		last       []scan.Mark
		steps      []scan.Mark
		raw        string
		done       bool
		few, after bool // what passedOn says for few lines, and for any number of them
	}{
		"nothing":                       {0, nil, nil, "KeyboardInterrupt", false, true, true},
		"nearly a long tail":            {scan.LongTail - 1, nil, nil, "KeyboardInterrupt", false, true, true},
		"a long tail":                   {scan.LongTail, nil, nil, "KeyboardInterrupt", false, false, true},
		"of workers":                    {5, []scan.Mark{line(20, worker)}, []scan.Mark{line(20, worker)}, "KeyboardInterrupt", false, true, true},
		"a line of its own":             {5, []scan.Mark{line(20, worker), line(30, own)}, nil, "KeyboardInterrupt", false, true, false},
		"a line of its own before":      {5, []scan.Mark{line(9, own), line(20, worker)}, nil, "KeyboardInterrupt", false, true, true},
		"the line itself":               {5, []scan.Mark{line(10, own), line(20, worker)}, []scan.Mark{line(10, own)}, "KeyboardInterrupt", false, true, true},
		"a step of its own":             {5, nil, []scan.Mark{line(20, own)}, "KeyboardInterrupt", false, false, false},
		"a worker's Ctrl-C":             {5, nil, nil, "(WorkerDict pid=1626) KeyboardInterrupt", false, false, false},
		"it said that it had completed": {5, nil, nil, "KeyboardInterrupt", true, false, false},
	} {
		j, events := oneLog(c.lines, scan.Event{Kind: "KeyboardInterrupt", Raw: c.raw}, spoken{})
		j.endsWell = func() bool { return false }
		j.files[0].Last, j.files[0].Progress = c.last, c.steps
		if c.done {
			j.files[0].Finished = &scan.Mark{Off: 50}
		}
		require.Equal(t, c.few, j.passedOn(events[0], true), name)
		require.Equal(t, c.after, j.passedOn(events[0], false), name)
		j.files[0].Finished, j.endsWell = nil, func() bool { return true }
		require.False(t, j.passedOn(events[0], true), "%s, and it ends well", name)
	}
}

// Python's message that there is no such program, at the end of a log.
func TestTheLastProgramIsNotThere(t *testing.T) {
	const text = "python: can't open file '/w/test.py': [Errno 2] No such file or directory"
	for name, c := range map[string]struct {
		off, last int64
		text      string
		missing   bool
	}{
		"the last line":      {90, 90, text, true},
		"lines follow":       {90, 95, text, false},
		"the only line":      {0, 0, text, false},
		"another message":    {90, 90, "python: can't open file '/w/test.py': [Errno 13] Permission denied", false},
		"no line is known":   {90, -1, text, false},
		"the second of many": {1, 1, text, true},
	} {
		f := &scan.Facts{}
		if c.last >= 0 {
			f.Last = []scan.Mark{{Off: c.last}}
		}
		require.Equal(t, c.missing, (&job{files: []*scan.Facts{f}}).lastProgramMissing(&scan.Event{Off: c.off, Text: c.text}), name)
	}
}

// An event at ten o'clock, and in which file and when the run said that it had completed.
func TestTheRunCompletedAfterAnEvent(t *testing.T) {
	at := time.Date(2026, 6, 11, 10, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		file  int
		said  *scan.Mark
		event scan.Event
		after bool
	}{
		"it did not":                      {0, nil, scan.Event{Off: 100, Before: at}, false},
		"in the same file, after":         {0, &scan.Mark{Off: 101}, scan.Event{Off: 100, Before: at}, true},
		"in the same file, before":        {0, &scan.Mark{Off: 99, At: at.Add(time.Hour)}, scan.Event{Off: 100, Before: at}, false},
		"elsewhere, after":                {1, &scan.Mark{At: at.Add(time.Second)}, scan.Event{Off: 100, Before: at}, true},
		"elsewhere, well before":          {1, &scan.Mark{At: at.Add(-time.Hour)}, scan.Event{Off: 100, Before: at}, false},
		"elsewhere, as clocks may differ": {1, &scan.Mark{At: at.Add(1 - skew)}, scan.Event{Off: 100, Before: at}, true},
		"elsewhere, just before that":     {1, &scan.Mark{At: at.Add(-skew)}, scan.Event{Off: 100, Before: at}, false},
		"elsewhere, nobody knows when":    {1, &scan.Mark{}, scan.Event{Off: 100, Before: at}, true},
		"the event's time is not known":   {1, &scan.Mark{At: at}, scan.Event{Off: 100}, true},
	} {
		files := []*scan.Facts{{}, {}}
		files[c.file].Finished = c.said
		j := &job{files: files}
		require.Equal(t, c.after, j.finishedAfter(&c.event), name)
		require.Equal(t, c.said != nil, j.finished(), name)
		require.False(t, j.deathSeen(), name)
		files[c.file].Failed = &scan.Mark{Off: 100}
		require.Equal(t, c.said == nil || c.said.Off < 100, j.deathSeen(), "%s, and a launcher reported a failure", name)
	}
}

// Which events may be causes beside Slurm's word that it ends the job at ten o'clock.
func TestWhichEventsMayBeCauses(t *testing.T) {
	at := time.Date(2026, 6, 11, 10, 0, 0, 0, time.UTC)
	killed := func(change func(*scan.Event)) func(*scan.Event) {
		return func(e *scan.Event) {
			e.Class, e.Weight = outcome.HostOOM, pattern.Death
			change(e)
		}
	}
	late := func(weight int, d time.Duration) func(*scan.Event) {
		return func(e *scan.Event) { e.Class, e.Weight, e.Before = outcome.UserException, weight, at.Add(d) }
	}
	joins := func(text string) func(*scan.Event) {
		return func(e *scan.Event) { e.Class, e.Weight, e.Text = outcome.Container, pattern.Specific, text }
	}
	plain := func(*scan.Event) {}
	for name, c := range map[string]struct {
		end, with func(*scan.Event)
		may       bool
	}{
		"killed after it":                    {plain, killed(plain), false},
		"killed before it":                   {plain, killed(func(e *scan.Event) { e.Off = 1 }), true},
		"killed, as another log says":        {plain, killed(func(e *scan.Event) { e.File = 1 }), true},
		"killed by the kernel's word":        {plain, killed(func(e *scan.Event) { e.Weight = pattern.Fact }), true},
		"died otherwise":                     {plain, killed(func(e *scan.Event) { e.Class = outcome.Segfault }), true},
		"a container that it could not join": {plain, joins("couldn't join namespace: pyxis_join"), false},
		"a container that does not start":    {plain, joins("couldn't start"), true},
		"it could not join it before":        {plain, func(e *scan.Event) { joins("pyxis_join")(e); e.Off = 1 }, true},
		"another one with that word":         {plain, func(e *scan.Event) { joins("pyxis_join")(e); e.Class = outcome.UserException }, true},
		"an exception after it":              {plain, late(pattern.Generic, time.Second), false},
		"an exception with it":               {plain, late(pattern.Generic, 0), true},
		"one that names its cause":           {plain, late(pattern.Specific, time.Second), true},
		"one that nearly does":               {plain, late(pattern.Specific-1, time.Second), false},
		"a symptom":                          {plain, late(pattern.Symptom, time.Second), true},
		"more than a symptom":                {plain, late(pattern.Symptom+1, time.Second), false},
		"Slurm's own word":                   {plain, func(e *scan.Event) { late(pattern.Ended, time.Second)(e); e.Class = outcome.SlurmTimeLimit }, true},
		"nobody knows when":                  {plain, func(e *scan.Event) { late(pattern.Generic, 0)(e); e.Before = time.Time{} }, true},
		"nobody knows when Slurm said it":    {func(e *scan.Event) { e.Before = time.Time{} }, late(pattern.Generic, time.Second), true},
		"after a node failed":                {func(e *scan.Event) { e.Class = outcome.SlurmNodeFail }, late(pattern.Generic, time.Second), true},
		"after a step was cancelled":         {func(e *scan.Event) { e.Text = "*** STEP 7.0 ON a CANCELLED ***" }, late(pattern.Generic, time.Second), true},
		"after srun ended the others": {
			func(e *scan.Event) { e.Class, e.Text = outcome.UnknownExit, "srun: Terminating StepId=7.0" }, late(pattern.Generic, time.Second), true,
		},
		"killed after srun ended the others": {
			func(e *scan.Event) { e.Class, e.Text = outcome.UnknownExit, "srun: Terminating StepId=7.0" }, killed(plain), false,
		},
		"killed after an exit": {
			func(e *scan.Event) { e.Class, e.Text = outcome.UnknownExit, "srun: error: a: task 0: Exited" }, killed(plain), true,
		},
		"superseded":                             {plain, func(e *scan.Event) { e.Superseded = true }, false},
		"a report":                               {plain, func(e *scan.Event) { e.Form = pattern.Report }, false},
		"less than a report":                     {plain, func(e *scan.Event) { e.Form = pattern.Report - 1 }, true},
		"an exception after the earlier of both": {func(e *scan.Event) { e.Before = at.Add(-time.Minute) }, late(pattern.Generic, -time.Second), false},
	} {
		end := func(e *scan.Event) {
			e.Class, e.Text, e.Weight, e.Agent, e.Before = outcome.SlurmCancelled, "*** JOB 7 ON a CANCELLED ***", pattern.Ended, true, at
			c.end(e)
		}
		again := func(e *scan.Event) {
			end(e)
			if !e.Before.IsZero() {
				e.Before = at
			}
		}
		j, events := oneLog(9, scan.Event{}, spoken{0, end}, spoken{0, c.with}, spoken{0, again})
		j.files = append(j.files, &scan.Facts{})
		require.Equal(t, c.may, j.candidates()[min(1, len(j.candidates())-1)] == events[1], name)
	}
}
