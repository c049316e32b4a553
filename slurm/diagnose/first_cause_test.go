package diagnose

import (
	"testing"
	"time"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logfile"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logline"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/pattern"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/python"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/scan"
	"github.com/stretchr/testify/require"
)

// sourceOf returns a source of files with these names.
func sourceOf(names ...string) (src logfile.Source) {
	for _, n := range names {
		src.Logs = append(src.Logs, &logfile.File{Name: n})
	}
	return src
}

// Of two causes the first of each pair wins, in either order of comparison.
func TestTheFirstCauseIsTheEarliestUnlessALaterOneSaysMore(t *testing.T) {
	at := time.Date(2026, 6, 11, 10, 0, 0, 0, time.UTC)
	cause := func(file int, after time.Duration, weight, rank int) scan.Event {
		return scan.Event{File: file, Before: at.Add(after), Weight: weight, Rank: rank, Tag: logline.NoTag}
	}
	line := func(off int64, weight, rank int) scan.Event {
		return scan.Event{Off: off, Weight: weight, Rank: rank, Tag: logline.Tag{Label: -1, Local: -1, Rank: rank}}
	}
	undated := func(file, weight, rank int) scan.Event { return scan.Event{File: file, Weight: weight, Rank: rank} }
	const much, little = pattern.Specific, pattern.Generic
	for name, pair := range map[string][2]scan.Event{
		"later than clocks differ":           {cause(0, 0, little, 0), cause(1, skew+1, much, 1)},
		"as late as clocks differ":           {cause(1, skew, much, 1), cause(0, 0, little, 0)},
		"two minutes after, by the kernel":   {cause(1, 2*time.Minute, pattern.Fact, 1), cause(0, 0, little, 0)},
		"more than that, by the kernel":      {cause(0, 0, little, 0), cause(1, 2*time.Minute+1, pattern.Fact, 1)},
		"nearly a fact is written as late":   {cause(1, 2*time.Minute, pattern.Fact-1, 1), cause(0, 0, little, 0)},
		"two of the kernel's words":          {cause(0, 0, pattern.Fact, 0), cause(1, skew+1, pattern.Fact, 1)},
		"ten more":                           {cause(1, time.Second, little+10, 1), cause(0, 0, little, 0)},
		"nine more, later":                   {cause(0, 0, little, 0), cause(1, time.Second, little+9, 1)},
		"nine more, at the same time":        {cause(1, 0, little+9, 1), cause(0, 0, little, 0)},
		"no times: what says more":           {undated(1, little+1, 1), undated(0, little, 0)},
		"alike: the lower rank":              {undated(1, little, 0), undated(0, little, 1)},
		"alike: a rank, not nobody":          {undated(1, little, 0), undated(0, little, -1)},
		"one story told twice":               {line(4095, little+5, 0), line(0, little, 0)},
		"one story told twice, more first":   {line(0, little+5, 0), line(4095, little, 0)},
		"another story of the rank":          {line(0, little, 0), line(4096, little+5, 0)},
		"another rank's story":               {line(0, little, 0), line(4095, little+5, 1)},
		"as much, further on":                {line(0, little, 0), line(4095, little, 0)},
		"much more, further on in the log":   {line(9000, little+10, 0), line(0, little, 0)},
		"a time is known of one alone":       {cause(0, time.Hour, much, 0), undated(1, little, 1)},
		"a time is known of the other alone": {undated(0, much, 0), cause(1, -time.Hour, little, 1)},
	} {
		j := &job{}
		require.True(t, j.betterCause(&pair[0], &pair[1]), name)
		require.False(t, j.betterCause(&pair[1], &pair[0]), name)
	}
	twice := undated(0, little, -1)
	require.False(t, (&job{}).betterCause(&twice, &twice), "nothing is before itself")
}

// The lines after an event, by kind and number, show whether its process went on.
func TestWhatComesAfterShowsWhetherItWentOn(t *testing.T) {
	at := time.Date(2026, 6, 11, 10, 0, 0, 0, time.UTC)
	inFunction := &python.Traceback{Frames: []python.Frame{{File: "/w/train.py", Function: "step"}}}
	conda := &python.Traceback{Frames: []python.Frame{{File: "/opt/bin/conda", Function: "<module>"}}}
	raised := scan.Event{Kind: "KeyError", Stack: inFunction, Weight: pattern.Generic}
	said := scan.Event{Text: "[a] CUDA is not there", Weight: pattern.Generic}
	script := scan.Event{Text: "cp: cannot stat 'a'", Weight: pattern.Generic}
	ended := scan.Event{Class: outcome.SlurmTimeLimit, Text: "slurmstepd: error: *** JOB 7 CANCELLED DUE TO TIME LIMIT ***", Weight: pattern.Ended, Agent: true}
	heavy := func(e scan.Event, weight int) scan.Event { e.Weight = weight; return e }
	as := func(e scan.Event, with func(*scan.Event)) scan.Event { with(&e); return e }
	sentences := func(n int) func(*job) { return func(j *job) { j.files[0].Ran.Sentences = n } }
	programs := func(n int) func(*job) { return func(j *job) { j.files[0].Ran.Programs = n } }
	phases := func(n int) func(*job) { return func(j *job) { j.files[0].Ran.Phases = n } }
	tagged := func(n int) func(*job) { return func(j *job) { j.files[0].Ran.Tagged = n } }
	// another adds another event n lines later.
	another := func(n int, more ...func(*job)) func(*job) {
		return func(j *job) {
			e := &scan.Event{Off: 90, Kind: "ValueError", Stack: inFunction, Tag: logline.NoTag, Weight: pattern.Generic}
			e.Ran.Sentences, j.files[0].Ran.Sentences = n, n
			j.events = append(j.events, e)
			for _, f := range more {
				f(j)
			}
		}
	}
	steps := func(n int) func(*job) {
		return func(j *job) {
			for i := range n {
				j.files[0].Progress = append(j.files[0].Progress, scan.Mark{Off: int64(20 + i), Text: "step", Tag: logline.NoTag})
			}
		}
	}
	lasts := func(lines int, d time.Duration) func(*job) {
		return func(j *job) {
			j.events[0].Before, j.files[0].LastTime, j.files[0].Ran.Sentences = at, at.Add(d), lines
		}
	}
	several := func(j *job) { j.world = 2 }
	failed := func(off int64) func(*job) { return func(j *job) { j.files[0].Failed = &scan.Mark{Off: off} } }
	for name, c := range map[string]struct {
		e     scan.Event
		after func(*job)
		want  continuation
	}{
		"programs after an empty traceback":      {as(raised, func(e *scan.Event) { e.Stack = &python.Traceback{} }), programs(scan.Enough), noSign},
		"two steps":                              {raised, steps(2), noSign},
		"three steps":                            {raised, steps(3), wentOn},
		"a long tail":                            {raised, sentences(scan.LongTail), wentOn},
		"nearly a long tail":                     {raised, sentences(scan.LongTail - 1), noSign},
		"a long tail, of a fact":                 {heavy(raised, pattern.Fact-1), sentences(scan.LongTail), noSign},
		"a long tail, of less than a fact":       {heavy(raised, pattern.Fact-2), sentences(scan.LongTail), wentOn},
		"a long tail after Slurm's word":         {as(said, func(e *scan.Event) { e.Class = outcome.SlurmPreempted }), sentences(scan.LongTail), noSign},
		"a long tail after a launcher's word":    {as(raised, func(e *scan.Event) { e.Agent = true }), sentences(scan.LongTail), noSign},
		"a long tail, and a death at its end":    {raised, another(scan.LongTail, failed(95)), noSign},
		"a long tail to the next":                {said, another(scan.LongTail), wentOn},
		"nearly a long tail to the next":         {said, another(scan.LongTail - 1), noSign},
		"a long tail to the next, of several":    {said, another(scan.LongTail, several), noSign},
		"a long tail to the next, of a fact":     {heavy(said, pattern.Fact-1), another(scan.LongTail), noSign},
		"a long tail to the next, nearly a fact": {heavy(said, pattern.Fact-2), another(scan.LongTail), wentOn},
		"a long tail from an exception":          {raised, another(scan.LongTail), noSign},
		"a death before the next":                {said, another(scan.LongTail, failed(50)), noSign},
		"a death before it":                      {said, another(scan.LongTail, failed(5)), wentOn},
		"a thousand lines to the next":           {raised, another(scan.NextRun), wentOn},
		"nearly a thousand lines to the next":    {raised, another(scan.NextRun - 1), noSign},
		"a thousand lines of several processes":  {raised, another(scan.NextRun, several), noSign},
		"programs after conda's":                 {as(raised, func(e *scan.Event) { e.Stack = conda }), programs(scan.Enough), wentOn},
		"few programs after conda's":             {as(raised, func(e *scan.Event) { e.Stack = conda }), programs(scan.Enough - 1), noSign},
		"programs after an exception":            {raised, programs(scan.Enough), noSign},
		"more than an hour":                      {raised, lasts(10, scan.LongAfter+1), wentOn},
		"an hour":                                {raised, lasts(10, scan.LongAfter), noSign},
		"more than an hour in few lines":         {raised, lasts(9, scan.LongAfter+1), noSign},
		"more than an hour after a dated line":   {as(raised, func(e *scan.Event) { e.Dated = true }), lasts(10, scan.LongAfter+1), noSign},
		"more than an hour after a word":         {said, lasts(10, scan.LongAfter+1), noSign},
		"another run after the end":              {ended, sentences(scan.NextRun), wentOn},
		"nearly another run after the end":       {ended, sentences(scan.NextRun - 1), noSign},
		"what the script did then":               {script, sentences(manyLines), wentOn},
		"nearly what the script did then":        {script, sentences(manyLines - 1), noSign},
		"programs that the script started":       {script, programs(scan.Enough), mayHaveGoneOn},
		"few programs that the script started":   {script, programs(scan.Enough - 1), noSign},
		"tasks that the script started":          {said, tagged(scan.Enough), wentOn},
		"few tasks that the script started":      {said, tagged(scan.Enough - 1), noSign},
		"tasks beside a fact":                    {heavy(said, pattern.Fact-1), tagged(scan.Enough), noSign},
		"phases":                                 {raised, phases(scan.Enough), mayHaveGoneOn},
		"few phases":                             {raised, phases(scan.Enough - 1), noSign},
		"its rank's phases": {
			as(raised, func(e *scan.Event) { e.Tag = logline.Tag{Label: -1, Local: -1, Rank: 3} }),
			func(j *job) { j.files[0].PhasesBy = map[logline.Tag]int{{Label: -1, Local: -1, Rank: 3}: scan.Enough} }, mayHaveGoneOn,
		},
		"other ranks' phases": {as(raised, func(e *scan.Event) { e.Tag = logline.Tag{Label: -1, Local: -1, Rank: 3} }), phases(scan.Enough), noSign},
	} {
		e := c.e
		e.Off = 10
		if e.Tag == (logline.Tag{}) {
			e.Tag = logline.NoTag
		}
		j := newJob(sourceOf("x"), []*scan.Facts{{}}, Context{})
		j.events = []*scan.Event{&e}
		c.after(j)
		j.files[0].Events = j.events
		require.Equal(t, c.want, j.after(&e), name)
	}
}
