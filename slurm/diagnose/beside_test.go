package diagnose

import (
	"testing"
	"time"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logline"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/pattern"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/scan"
	"github.com/stretchr/testify/require"
)

// A line of the script explains nothing if other lines, in the same log or another one, show that its
// programs ran.
func TestAScriptsLineExplainsNothingIfItsProgramsRan(t *testing.T) {
	line := func(with func(*scan.Event)) spoken { return spoken{0, with} }
	died := func(e *scan.Event) { e.Text, e.Weight, e.Class = "[a] it died", pattern.Death, outcome.UserException }
	cancelled := func(e *scan.Event) {
		e.Text, e.Class, e.Weight, e.Agent = "[a] x", outcome.SlurmCancelled, pattern.Symptom, true
	}
	for name, c := range map[string]struct {
		first, second spoken
		outdone       bool // of the first event
	}{
		"nothing else":               {line(nil), line(func(e *scan.Event) { e.Text, e.Weight = "[a] a symptom", pattern.Symptom }), false},
		"a death":                    {line(nil), line(died), true},
		"a launcher's word on one":   {line(nil), line(func(e *scan.Event) { died(e); e.Agent = true }), false},
		"less than a death":          {line(nil), line(func(e *scan.Event) { died(e); e.Weight = pattern.Death - 1 }), true},
		"a collective that was late": {line(nil), line(func(e *scan.Event) { died(e); e.Weight = pattern.TimedOut - 5 }), true},
		"less than that":             {line(nil), line(func(e *scan.Event) { died(e); e.Weight = pattern.TimedOut - 6 }), false},
		"the time limit": {line(nil), line(func(e *scan.Event) {
			e.Text, e.Class, e.Weight, e.Agent = "[a] x", outcome.SlurmTimeLimit, pattern.Symptom, true
		}), true},
		"a symptom before it": {line(nil), line(func(e *scan.Event) { e.Text, e.Weight, e.Off = "[a] a symptom", pattern.Symptom, 1 }), true},
		"the same line again": {line(nil), line(nil), false},

		"the same line again, and much after it":  {line(nil), spoken{-manyLines, nil}, true},
		"another such line, and much after it":    {line(nil), spoken{-manyLines, func(e *scan.Event) { e.Text = "mv: cannot stat 'a'" }}, false},
		"cancelled":                               {line(nil), line(cancelled), true},
		"a failure, and it was cancelled of that": {line(func(e *scan.Event) { e.Weight = pattern.Death - 1 }), line(cancelled), false},
	} {
		j, live := oneLog(3, scan.Event{Text: "cp: cannot stat 'a'", Class: outcome.DatasetMissing, Weight: pattern.Specific}, c.first, c.second)
		j.fileNode, j.files[0].Ran.Programs = []string{""}, 1
		require.Equal(t, c.outdone, j.ranAnyway(live[0], live), name)
	}
}

// A missing command that only shows information explains nothing beside another event.
func TestACommandThatOnlyShowsThings(t *testing.T) {
	const lost = "slurm_script: line 14: nvidia-smi: command not found"
	for name, c := range map[string]struct {
		other   func(*scan.Event)
		outdone bool
	}{
		"a launcher's word": {func(e *scan.Event) { e.Text, e.Agent, e.Weight = "srun: error: x", true, pattern.Exited }, true},
		"another such word": {func(e *scan.Event) { e.Text = "slurm_script: line 15: nvcc: command not found" }, false},
		"a symptom":         {func(e *scan.Event) { e.Text, e.Weight = "[a] a symptom", pattern.Symptom }, false},
		"another command's": {func(e *scan.Event) { e.Text, e.Weight = "cp: cannot stat 'a'", pattern.Death }, true},
		"less of another's": {func(e *scan.Event) { e.Text, e.Weight = "cp: cannot stat 'a'", pattern.Death-1 }, false},
	} {
		j, live := oneLog(3, scan.Event{Text: lost, Class: outcome.EnvLaunch, Weight: pattern.Specific}, spoken{}, spoken{0, c.other})
		j.fileNode = []string{""}
		require.Equal(t, c.outdone, j.ranAnyway(live[0], live), name)
	}
}

// A launcher's report of a failure before a rendezvous error makes the latter a consequence.
func TestALauncherHadReportedAFailure(t *testing.T) {
	at := time.Date(2026, 6, 11, 10, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		file   int
		failed scan.ElasticEntry
		before bool
	}{
		"before it":                       {0, scan.ElasticEntry{Off: 9}, true},
		"with it":                         {0, scan.ElasticEntry{Off: 10}, false},
		"elsewhere, well before":          {1, scan.ElasticEntry{At: at.Add(-skew - 1)}, true},
		"elsewhere, as clocks may differ": {1, scan.ElasticEntry{At: at.Add(-skew)}, false},
		"elsewhere, nobody knows when":    {1, scan.ElasticEntry{}, false},
		"elsewhere, after it":             {1, scan.ElasticEntry{At: at.Add(time.Hour)}, false},
	} {
		files := []*scan.Facts{{}, {}}
		files[c.file].Elastic = []scan.ElasticEntry{c.failed}
		require.Equal(t, c.before, (&job{files: files}).reportedBefore(&scan.Event{Off: 10, Before: at}), name)
	}
}

// An exception without a rank belongs to the first task whose exit srun reports, if tasks are ranks.
func TestTheFirstTaskToExitRaisedIt(t *testing.T) {
	left := func(off int64, exit, task int, node string) *scan.Event {
		return &scan.Event{Off: off, Agent: true, Exit: exit, Tasks: []int{task}, Node: node}
	}
	for name, c := range map[string]struct {
		node  string
		words []*scan.Event
		rank  int // -1 for none
	}{
		"the first":                {"", []*scan.Event{left(30, 1, 2, "gpu1"), left(20, 1, 0, "gpu1")}, 0},
		"before the exception":     {"", []*scan.Event{left(5, 1, 3, "gpu1"), left(20, 1, 2, "gpu1")}, 2},
		"with the exception":       {"", []*scan.Event{left(10, 1, 3, "gpu1")}, 3},
		"of another node":          {"gpu1", []*scan.Event{left(20, 1, 8, "gpu2"), left(30, 1, 2, "gpu1")}, 2},
		"one that a signal ended":  {"", []*scan.Event{left(20, -9, 1, "gpu1"), left(30, 1, 2, "gpu1")}, 2},
		"one that was told to end": {"", []*scan.Event{left(20, 143, 1, "gpu1"), left(30, 1, 2, "gpu1")}, 2},
		"no task":                  {"", []*scan.Event{{Off: 20, Agent: true, Exit: 1}}, -1},
		"not by a launcher":        {"", []*scan.Event{{Off: 20, Exit: 1, Tasks: []int{1}}}, -1},
	} {
		v := verdict{event: &scan.Event{Off: 10, Rank: -1, Node: c.node, Stack: inStep, Tag: logline.NoTag}}
		j := &job{taskRank: true, files: []*scan.Facts{{}}}
		j.rankByFirstExit(v, c.words)
		require.Equal(t, c.rank, v.event.Rank, name)
		for _, more := range []scan.ElasticEntry{{Rank: 0, Local: -1}, {Rank: -1, Local: 0}} {
			v.event.Rank = -1
			j.files[0].Elastic = []scan.ElasticEntry{more}
			j.rankByFirstExit(v, c.words)
			require.Equal(t, -1, v.event.Rank, "%s, and torchelastic tells more", name)
		}
		j.files[0].Elastic = []scan.ElasticEntry{{Rank: -1, Local: -1}}
		j.rankByFirstExit(v, c.words)
		require.Equal(t, c.rank, v.event.Rank, "%s, and torchelastic tells no more", name)
		v.event.Rank = -1
		j.files[0].Elastic, j.taskRank = nil, false
		j.rankByFirstExit(v, c.words)
		require.Equal(t, -1, v.event.Rank, "%s, but tasks are nodes", name)
	}
}

// Failures that torchrun's agents report, with the log folders of several attempts: which of them led
// to restarts.
func TestAgentsReportRestarts(t *testing.T) {
	unnamed := func(off int64) scan.ElasticEntry { return scan.ElasticEntry{Off: off, Rank: -1} }
	once, twice := []string{"n/x_ab/attempt_0/0/stderr.log", "n/x_ab/attempt_1/0/stderr.log"}, []string{"n/x_ab/attempt_0/0/stderr.log", "n/x_ab/attempt_2/0/stderr.log"}
	for name, c := range map[string]struct {
		folders []string
		told    []scan.ElasticEntry
		last    map[int]int64
	}{
		"as often as they restarted":  {once, []scan.ElasticEntry{unnamed(5)}, map[int]int64{0: 5}},
		"more often":                  {once, []scan.ElasticEntry{unnamed(5), unnamed(9)}, nil},
		"twice":                       {twice, []scan.ElasticEntry{unnamed(5), unnamed(9)}, map[int]int64{0: 9}},
		"never":                       {once, nil, nil},
		"with a summary at the end":   {twice, []scan.ElasticEntry{unnamed(5), {Off: 9, Rank: 0}}, nil},
		"of a rank that is not known": {twice, []scan.ElasticEntry{unnamed(9), unnamed(5)}, map[int]int64{0: 9}},
		"once more, and a summary":    {once, []scan.ElasticEntry{unnamed(5), unnamed(9), {Off: 10, Rank: 0}}, nil},
		"no restart, and a summary":   {once[:1], []scan.ElasticEntry{unnamed(5), {Off: 10, Rank: 0}}, nil},
	} {
		files := []*scan.Facts{{Elastic: c.told}, {}}
		require.Equal(t, c.last, (&job{src: sourceOf(c.folders...), files: files}).lastRestartReports(), name)
	}
	files := []*scan.Facts{{Elastic: []scan.ElasticEntry{unnamed(5), {Off: 10, Rank: 0}}}, {Elastic: []scan.ElasticEntry{unnamed(9)}}}
	require.Nil(t, (&job{src: sourceOf(once...), files: files}).lastRestartReports(), "two agents, and a summary")
}

// Launchers' reports in a file may all belong to earlier attempts.
func TestLauncherReportsMayAllBeOfEarlierAttempts(t *testing.T) {
	agent, other := &scan.Event{Agent: true}, &scan.Event{Agent: true, File: 1}
	for name, c := range map[string]struct {
		earlier, last []*scan.Event
		all           bool
	}{
		"of an earlier one":            {[]*scan.Event{agent}, nil, true},
		"of both":                      {[]*scan.Event{agent}, []*scan.Event{agent}, false},
		"of the last":                  {nil, []*scan.Event{agent}, false},
		"nothing":                      {nil, nil, false},
		"in another file of the last":  {[]*scan.Event{agent}, []*scan.Event{other}, true},
		"in another file before":       {[]*scan.Event{other}, nil, false},
		"a program's word of the last": {[]*scan.Event{agent}, []*scan.Event{{}}, true},
	} {
		require.Equal(t, c.all, (&job{earlier: c.earlier, events: c.last}).allEarlier(0), name)
	}
}

// Which files' last lines decide how the job ended; files of earlier attempts do not count.
func TestWhichFilesDecideHowTheJobEnded(t *testing.T) {
	full, open := scan.Mark{Text: "100%|####| 31/31 [00:07<00:00, 3.9it/s]"}, scan.Mark{Text: " 30%|####| 9/31 [00:07<00:00, 3.9it/s]"}
	for name, c := range map[string]struct {
		first, second scan.Mark
		old, ends     bool
	}{
		"a full bar, and a word":             {full, scan.Mark{Text: "loading"}, false, true},
		"a full bar of an attempt before":    {full, scan.Mark{Text: "loading"}, true, false},
		"a word of an attempt before":        {scan.Mark{Text: "loading"}, full, true, true},
		"a bar that is not full, and a word": {open, scan.Mark{Text: "loading"}, false, false},
	} {
		j := newJob(sourceOf("x", "y"), []*scan.Facts{{Last: []scan.Mark{c.first}}, {Last: []scan.Mark{c.second}}}, Context{})
		j.old = []bool{c.old, false}
		require.Equal(t, c.ends, j.readsWell(-1), name)
	}
}
