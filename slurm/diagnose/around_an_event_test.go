package diagnose

import (
	"slices"
	"testing"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logfile"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logline"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/pattern"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/python"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/report"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/scan"
	"github.com/stretchr/testify/require"
)

// Another exception after an exception's last line ended the program.
func TestAnotherExceptionEndedTheProgram(t *testing.T) {
	first := scan.Event{Kind: "ImportError", Text: "ImportError: x", Class: outcome.ImportError, Weight: pattern.Specific}
	second := func(lines int, with ...func(*scan.Event)) spoken {
		return spoken{lines, func(e *scan.Event) {
			e.Kind, e.Text, e.Stack = "KeyError", "KeyError: 'a'", inModule
			for _, f := range with {
				f(e)
			}
		}}
	}
	for name, c := range map[string]struct {
		second spoken
		ended  bool
	}{
		"much later":                 {second(12), true},
		"a little earlier":           {second(11), false},
		"of a rank":                  {second(12, func(e *scan.Event) { e.Tag.Rank = 2 }), false},
		"in another file":            {second(12, func(e *scan.Event) { e.File = 1 }), false},
		"within a function":          {second(12, func(e *scan.Event) { e.Stack = inStep }), false},
		"which another one replaced": {second(12, func(e *scan.Event) { e.Superseded = true }), false},
		"without its traceback":      {second(12, func(e *scan.Event) { e.Stack = nil }), false},
	} {
		j, events := oneLog(99, first, spoken{}, c.second)
		require.Equal(t, c.ended, j.raisedLater(events[0]), name)
	}
}

// srun's reports after an exception, before any progress, show that the task died.
func TestTasksFailedBeforeProgress(t *testing.T) {
	raised := scan.Event{Kind: "KeyError", Stack: inStep, Weight: pattern.Generic}
	word := func(with ...func(*scan.Event)) spoken {
		return spoken{0, func(e *scan.Event) {
			*e = scan.Event{Off: e.Off, Tag: e.Tag, Agent: true, Exit: 1, Text: "srun: error: gpu1: task 0: Exited with exit code 1"}
			for _, f := range with {
				f(e)
			}
		}}
	}
	step := func(off int64) []scan.Mark { return []scan.Mark{{Off: off}} }
	for name, c := range map[string]struct {
		word                 spoken
		progress             []scan.Mark
		failedBeforeProgress bool
	}{
		"at once":                  {word(), nil, true},
		"and then a step":          {word(), step(25), true},
		"after a step":             {word(), step(15), false},
		"before it":                {word(func(e *scan.Event) { e.Off = 5 }), nil, false},
		"that a signal ended it":   {word(func(e *scan.Event) { e.Exit = -9 }), nil, false},
		"of another file":          {word(func(e *scan.Event) { e.File = 1 }), nil, false},
		"torchelastic's word":      {word(func(e *scan.Event) { e.Text = "failed (exitcode: 1)" }), nil, false},
		"a program's word like it": {word(func(e *scan.Event) { e.Agent = false }), nil, false},
	} {
		j, events := oneLog(9, raised, spoken{}, c.word)
		j.files[0].Progress = c.progress
		require.Equal(t, c.failedBeforeProgress, j.failedBeforeProgress(events[0]), name)
		for _, not := range []func(*scan.Event){
			func(e *scan.Event) { e.Stack = nil },
			func(e *scan.Event) { e.Stack, e.Doubted = inStep, true },
			func(e *scan.Event) { e.Doubted, e.Form = false, pattern.Report },
		} {
			not(events[0])
			require.False(t, j.failedBeforeProgress(events[0]), name)
		}
	}
}

// An exception in one file, and the time limit after it: another file shows whether another process
// went on.
func TestAnotherProcessWentOn(t *testing.T) {
	limit := func(with ...func(*scan.Event)) spoken {
		return spoken{0, func(e *scan.Event) {
			*e = scan.Event{Off: e.Off, Tag: e.Tag, Class: outcome.SlurmTimeLimit, Text: "slurmstepd: error: *** JOB 7 ON a CANCELLED AT x DUE TO TIME LIMIT ***"}
			for _, f := range with {
				f(e)
			}
		}}
	}
	for name, c := range map[string]struct {
		limit spoken
		with  func(*job, *scan.Event)
		lived bool
	}{
		"it worked on":               {limit(), func(*job, *scan.Event) {}, true},
		"little":                     {limit(), func(j *job, _ *scan.Event) { j.files[1].Progress = words(scan.Enough - 1) }, false},
		"as a rank":                  {limit(), func(j *job, _ *scan.Event) { j.files[1].Ranks = map[int]bool{0: true} }, false},
		"as a task":                  {limit(), func(j *job, _ *scan.Event) { j.files[1].Labels = map[int]bool{0: true} }, false},
		"several ranks":              {limit(), func(j *job, _ *scan.Event) { j.world = 2 }, false},
		"one rank":                   {limit(), func(j *job, _ *scan.Event) { j.world = 1 }, true},
		"several processes":          {limit(), func(j *job, _ *scan.Event) { j.perNode = 1 }, false},
		"a process failed":           {limit(), func(j *job, _ *scan.Event) { j.files[0].Failed = &scan.Mark{} }, false},
		"steps beside the exception": {limit(), func(j *job, _ *scan.Event) { j.files[0].Progress = words(1) }, false},
		"a rank's exception":         {limit(), func(_ *job, e *scan.Event) { e.Tag.Rank = 0 }, false},
		"no traceback":               {limit(), func(_ *job, e *scan.Event) { e.Stack = nil }, false},
		"the limit came before":      {limit(func(e *scan.Event) { e.Off = 5 }), func(*job, *scan.Event) {}, false},
		"the limit of another file":  {limit(func(e *scan.Event) { e.File = 1 }), func(*job, *scan.Event) {}, false},
		"another end":                {limit(func(e *scan.Event) { e.Class = outcome.SlurmPreempted }), func(*job, *scan.Event) {}, false},
	} {
		j, events := oneLog(9, scan.Event{Kind: "KeyError", Stack: inStep}, spoken{}, c.limit)
		j.files = append(j.files, &scan.Facts{Progress: words(scan.Enough)})
		c.with(j, events[0])
		require.Equal(t, c.lived, j.otherProcessWentOn(events[0]), name)
	}
}

// Counts of the lines after an event, until the end and until the next event.
func TestLinesAfterAnEventAreCounted(t *testing.T) {
	line := scan.Event{Text: "cannot open part 1 of it", Weight: pattern.Generic}
	for name, c := range map[string]struct {
		events       []spoken
		failed       int64
		since, after int
	}{
		"alone":                         {[]spoken{{lines: 10}}, 0, 30, 30},
		"another":                       {[]spoken{{lines: 10}, {lines: 15}}, 0, 25, 5},
		"two others":                    {[]spoken{{lines: 10}, {lines: 15}, {lines: 22}}, 0, 18, 5},
		"another that counts for none":  {[]spoken{{lines: 10}, {15, func(e *scan.Event) { e.Superseded = true }}}, 0, 30, 30},
		"another file's":                {[]spoken{{lines: 10}, {15, func(e *scan.Event) { e.File = 1 }}}, 0, 30, 30},
		"a process failed after it":     {[]spoken{{lines: 10}, {lines: 15}}, 12, 0, 0},
		"a process failed before it":    {[]spoken{{lines: 10}, {lines: 15}}, 9, 25, 5},
		"a process failed after both":   {[]spoken{{lines: 10}, {lines: 15}}, 25, 0, 5},
		"a process failed with the one": {[]spoken{{lines: 10}, {lines: 15}}, 10, 25, 5},
	} {
		j, events := oneLog(40, line, c.events...)
		if c.failed > 0 {
			j.files[0].Failed = &scan.Mark{Off: c.failed}
		}
		require.Equal(t, c.since, j.linesSinceEvents(events[0]), name)
		require.Equal(t, c.after, j.linesUntilNext(events[0]), name)
	}
}

// A launcher's report of a failure after an event shows that the event was a task's.
func TestALauncherReportedAFailureAfterIt(t *testing.T) {
	for name, c := range map[string]struct {
		with                 func(*scan.Event)
		failureReportedAfter bool
	}{
		"torchelastic":    {func(e *scan.Event) { e.Agent, e.Text = true, "failed (exitcode: 1)" }, true},
		"srun":            {func(e *scan.Event) { e.Agent, e.Text = true, "srun: error: x" }, false},
		"slurmstepd":      {func(e *scan.Event) { e.Agent, e.Text = true, "slurmstepd: error: x" }, false},
		"a task's":        {func(e *scan.Event) { e.Agent, e.Text, e.Tag.Label = true, "failed (exitcode: 1)", 0 }, false},
		"nobody's":        {func(e *scan.Event) { e.Text = "failed (exitcode: 1)" }, false},
		"in another file": {func(e *scan.Event) { e.Agent, e.Text, e.File = true, "failed (exitcode: 1)", 1 }, false},
		"before it":       {func(e *scan.Event) { e.Agent, e.Text, e.Off = true, "failed (exitcode: 1)", 1 }, false},
	} {
		j, events := oneLog(9, scan.Event{Text: "x"}, spoken{}, spoken{0, c.with})
		require.Equal(t, c.failureReportedAfter, j.failureReportedAfter(events[0]), name)
	}
}

// Launchers' reports on exits show the only rank that exited by itself.
func TestOneRankExitedByItself(t *testing.T) {
	exit := func(rank int) *scan.Event {
		return &scan.Event{Agent: true, Class: outcome.UnknownExit, Weight: pattern.Exited, Rank: rank}
	}
	other := func(with func(*scan.Event)) *scan.Event { e := exit(5); with(e); return e }
	for name, c := range map[string]struct {
		told []*scan.Event
		rank int // -1 for none
	}{
		"one":                       {[]*scan.Event{exit(3)}, 3},
		"the first":                 {[]*scan.Event{exit(0)}, 0},
		"one, told twice":           {[]*scan.Event{exit(3), exit(3)}, 3},
		"two":                       {[]*scan.Event{exit(3), exit(4)}, -1},
		"one that nobody knows":     {[]*scan.Event{exit(-1), exit(3)}, -1},
		"tasks of a node":           {[]*scan.Event{other(func(e *scan.Event) { e.Tasks = []int{5, 6} })}, -1},
		"and one that was killed":   {[]*scan.Event{exit(3), other(func(e *scan.Event) { e.Class = outcome.HostOOM })}, 3},
		"and one that was aborted":  {[]*scan.Event{exit(3), other(func(e *scan.Event) { e.Weight = pattern.Aborted })}, 3},
		"and one that says so":      {[]*scan.Event{exit(3), other(func(e *scan.Event) { e.Agent = false })}, 3},
		"a task that is the only":   {[]*scan.Event{other(func(e *scan.Event) { e.Tasks = []int{5} })}, 5},
		"nobody":                    {nil, -1},
		"one that was killed alone": {[]*scan.Event{other(func(e *scan.Event) { e.Class = outcome.HostOOM })}, -1},
	} {
		e := onlyRankExited(c.told)
		require.Equal(t, c.rank >= 0, e != nil, name)
		if e != nil {
			require.Equal(t, c.rank, e.Rank, name)
		}
	}
}

// Several signs show that a job has more than one process.
func TestSeveralProcesses(t *testing.T) {
	for name, c := range map[string]struct {
		world int
		e     scan.Event
		many  bool
	}{
		"nothing":                       {0, scan.Event{}, false},
		"its word: two":                 {2, scan.Event{}, true},
		"its word: one":                 {1, scan.Event{}, false},
		"a second task":                 {0, scan.Event{Tasks: []int{1}}, true},
		"the first task":                {0, scan.Event{Tasks: []int{0}}, false},
		"one has lost another":          {0, scan.Event{Class: outcome.NCCLConnection, Weight: pattern.Specific - 1}, true},
		"a connection that it asks for": {0, scan.Event{Class: outcome.NCCLConnection, Weight: pattern.Specific}, false},
		"another fault":                 {0, scan.Event{Class: outcome.CUDAOOM, Weight: pattern.Symptom}, false},
	} {
		require.Equal(t, c.many, (&job{world: c.world, files: []*scan.Facts{{Events: []*scan.Event{&c.e}}}}).manyProcesses(), name)
	}
}

// The exceptions with which programs in one log ended show where the last run begins.
func TestWhereTheLastRunBegins(t *testing.T) {
	raise := func(program, text string) *scan.Event {
		return &scan.Event{Tag: logline.NoTag, Kind: "KeyError", Text: text, Stack: &python.Traceback{Frames: []python.Frame{{File: "/w/" + program, Function: "<module>"}}}}
	}
	function := func(program, text string) *scan.Event { // Hydra leaves out the frames above it
		e := raise(program, text)
		e.Stack.Frames[0].Function = "main"
		return e
	}
	superseded := func(e *scan.Event) *scan.Event { e.Superseded = true; return e }
	behind := func(e *scan.Event, lines int) *scan.Event { e.Ran.Sentences = lines; return e }
	stopped := func(program string) *scan.Event {
		e := raise(program, "KeyboardInterrupt")
		e.Kind = "KeyboardInterrupt"
		return e
	}
	for name, c := range map[string]struct {
		events []*scan.Event
		from   int64
		runs   int
	}{
		"one":                               {[]*scan.Event{raise("a.py", "x")}, -1, 1},
		"two of one program":                {[]*scan.Event{raise("a.py", "x"), raise("a.py", "y")}, 1, 2},
		"three of one program":              {[]*scan.Event{raise("a.py", "x"), raise("a.py", "y"), raise("a.py", "z")}, 11, 3},
		"the same twice":                    {[]*scan.Event{raise("a.py", "x"), raise("a.py", "x")}, -1, 1},
		"two programs":                      {[]*scan.Event{raise("a.py", "x"), raise("b.py", "y")}, -1, 1},
		"two programs, long after":          {[]*scan.Event{raise("a.py", "x"), behind(raise("b.py", "y"), scan.LongTail)}, 1, 2},
		"two programs, soon after":          {[]*scan.Event{raise("a.py", "x"), behind(raise("b.py", "y"), scan.LongTail-1)}, -1, 1},
		"two programs, the second lacks it": {[]*scan.Event{raise("a.py", "x"), behind(raise("b.py", "No such file or directory"), scan.LongTail)}, -1, 1},
		"two programs, somebody stopped it": {[]*scan.Event{raise("a.py", "x"), stopped("b.py")}, 1, 2},
		"the program's function":            {[]*scan.Event{raise("a.py", "x"), function("a.py", "y")}, 1, 2},
		"another file's function":           {[]*scan.Event{raise("a.py", "x"), function("b.py", "y")}, -1, 1},
		"its function, and no cause":        {[]*scan.Event{raise("a.py", "x"), superseded(function("a.py", "y"))}, -1, 1},
		"its function first":                {[]*scan.Event{function("a.py", "x"), raise("a.py", "y")}, -1, 1},
		"a stack without frames":            {[]*scan.Event{raise("a.py", "x"), {Tag: logline.NoTag, Stack: &python.Traceback{}}}, -1, 1},
		"a function's between":              {[]*scan.Event{raise("a.py", "x"), {Tag: logline.NoTag, Stack: inStep}, raise("a.py", "y")}, 1, 2},
	} {
		for i, e := range c.events {
			e.Off = int64(10 * i)
		}
		f := &scan.Facts{Events: c.events}
		j := &job{files: []*scan.Facts{f}}
		from, runs := j.lastRun(0)
		require.Equal(t, c.from, from, name)
		require.Equal(t, c.runs, runs, name)
		one := map[int]bool{0: true}
		for _, of := range []*scan.Facts{{Ranks: one}, {Labels: one}, {Locals: one}, {Elastic: make([]scan.ElasticEntry, 1)}} {
			of.Events = c.events
			from, runs = (&job{files: []*scan.Facts{of}}).lastRun(0)
			require.Equal(t, int64(-1), from, "%s: what looks like runs may be ranks", name)
			require.Equal(t, 1, runs, name)
		}
	}
}

// An empty log, with Slurm's state.
func TestWhatSlurmSaysWithoutALog(t *testing.T) {
	for name, c := range map[string]struct {
		state      string
		unreadable bool
		class      string // empty if there is no diagnosis
	}{
		"failed":                          {"FAILED", false, outcome.UnknownExit},
		"the time limit":                  {"TIMEOUT", false, outcome.SlurmTimeLimit},
		"it ended":                        {"ENDED", false, ""},
		"nothing":                         {"", false, ""},
		"failed, a log cannot be read":    {"FAILED", true, ""},
		"the limit, a log cannot be read": {"TIMEOUT", true, ""},
	} {
		src := logfile.Source{}
		if c.unreadable {
			src.Unreadable = []logfile.Unreadable{{Path: "x", Reason: "no right"}}
		}
		r, err := Run(t.Context(), src, Context{JobState: c.state})
		require.Equal(t, c.class != "", err == nil, name)
		require.Equal(t, c.class, r.Class, name)
	}
}

// For some classes the line decides whether a retry is worth it.
func TestWhetherAnotherTryIsWorthIt(t *testing.T) {
	gpu1 := []string{"gpu1"}
	for name, c := range map[string]struct {
		class, line string
		without     []string
		worth       bool
	}{
		"a stale mount":             {outcome.Filesystem, "OSError: [Errno 116] Stale file handle: '/d'", nil, true},
		"a right that is missing":   {outcome.Filesystem, "PermissionError: [Errno 13] Permission denied: '/d'", nil, false},
		"a hub that is busy":        {outcome.HFHub, "429 Client Error: Too Many Requests", nil, true},
		"a hub that is down":        {outcome.HFHub, "503 Server Error: Service Unavailable", nil, true},
		"a model that is not there": {outcome.HFHub, "404 Client Error: Not Found", nil, false},
		"an image not there":        {outcome.Container, "pyxis: image not found", nil, false},
		"a node's container fault":  {outcome.Container, "nvidia-container-cli: initialization error", gpu1, true},
		"an exception":              {outcome.UserException, "KeyError: 'a'", gpu1, false},
		"a broken GPU":              {outcome.GPUHardware, "Xid 79", gpu1, true},
	} {
		r := report.Report{Class: c.class, RootLine: c.line, ExcludeNodes: c.without}
		require.Equal(t, c.worth, worthRetrying(r, verdict{class: c.class}), name)
	}
}

// Of several messages of Slurm in one log, the one about the end of the job counts.
func TestSlurmEndedIt(t *testing.T) {
	word := func(class string, weight int, text string) spoken {
		return spoken{0, func(e *scan.Event) { e.Class, e.Weight, e.Text = class, weight, text }}
	}
	const onGPU7, onNone = "srun: error: Node failure on gpu7", "slurmstepd: error: *** JOB 7 CANCELLED DUE TO NODE FAILURE ***"
	for name, c := range map[string]struct {
		words []spoken
		text  string
	}{
		"the first of two alike":              {[]spoken{word(outcome.SlurmTimeLimit, 40, "a"), word(outcome.SlurmPreempted, 40, "b")}, "a"},
		"one a little heavier comes after":    {[]spoken{word(outcome.SlurmTimeLimit, 40, "a"), word(outcome.SlurmPreempted, 41, "b")}, "a"},
		"one much heavier comes after":        {[]spoken{word(outcome.SlurmTimeLimit, 40, "a"), word(outcome.SlurmPreempted, 42, "b")}, "b"},
		"one a little lighter comes after":    {[]spoken{word(outcome.SlurmTimeLimit, 41, "a"), word(outcome.SlurmPreempted, 40, "b")}, "a"},
		"a node's failure that names it":      {[]spoken{word(outcome.SlurmNodeFail, 40, onNone), word(outcome.SlurmNodeFail, 40, onGPU7)}, onGPU7},
		"a node's failure that named it":      {[]spoken{word(outcome.SlurmNodeFail, 40, onGPU7), word(outcome.SlurmNodeFail, 44, onNone)}, onGPU7},
		"a node's failure beside another end": {[]spoken{word(outcome.SlurmTimeLimit, 40, "a"), word(outcome.SlurmNodeFail, 42, onGPU7)}, onGPU7},
	} {
		j, live := oneLog(0, scan.Event{Agent: true}, c.words...)
		v, ok := j.slurmEnd(live)
		require.True(t, ok, name)
		require.Equal(t, c.text, v.event.Text, name)
		slices.Reverse(live)
		v, _ = j.slurmEnd(live)
		require.Equal(t, c.text, v.event.Text, "%s, in whichever order they are looked at", name)
	}
	j, live := oneLog(0, scan.Event{Agent: true}, word(outcome.SlurmPreempted, 40, "slurmstepd: error: *** JOB 7 CANCELLED DUE TO JOB REQUEUE ***"))
	j.placeFiles()
	for state, class := range map[string]string{"CANCELLED": outcome.SlurmCancelled, "FAILED": outcome.SlurmPreempted} { // in the queue, or not
		j.given.JobState = state
		v, ok := j.slurmEnd(live)
		require.True(t, ok, state)
		require.Equal(t, class, v.class, state)
	}
}

// Lines of other ranks beside a cause on rank 0: which ranks only report consequences.
func TestWhoOnlyReportsConsequences(t *testing.T) {
	says := func(rank, weight int) *scan.Event { return &scan.Event{Rank: rank, Weight: weight} }
	for name, c := range map[string]struct {
		tasks  bool // Slurm tasks are ranks
		others []*scan.Event
		events []*scan.Event
		n      int
	}{
		"another rank":                     {true, nil, []*scan.Event{says(1, pattern.Death-1)}, 1},
		"another rank, twice":              {false, nil, []*scan.Event{says(1, pattern.Symptom), says(1, pattern.Symptom)}, 1},
		"another cause":                    {false, nil, []*scan.Event{says(1, pattern.Death)}, 0},
		"the rank itself":                  {false, nil, []*scan.Event{says(0, pattern.Symptom)}, 0},
		"one that shows the cause too":     {false, []*scan.Event{says(1, pattern.Death)}, []*scan.Event{says(1, pattern.Symptom)}, 0},
		"nobody's line":                    {false, nil, []*scan.Event{says(-1, pattern.Symptom)}, 0},
		"tasks that are ranks":             {true, nil, []*scan.Event{{Rank: 1, Tasks: []int{1, 2, 3}}}, 3},
		"tasks that are nodes":             {false, nil, []*scan.Event{{Rank: -1, Tasks: []int{1, 2, 3}}}, 0},
		"a line that counts for no cause":  {false, nil, []*scan.Event{{Rank: 1, Superseded: true}}, 0},
		"one of two ranks had it the same": {false, []*scan.Event{says(2, pattern.Death)}, []*scan.Event{says(1, pattern.Symptom), says(2, pattern.Symptom)}, 1},
	} {
		j := &job{taskRank: c.tasks, events: c.events}
		require.Equal(t, c.n, j.downstream(verdict{class: outcome.CUDAOOM, event: says(0, pattern.Specific), others: c.others}), name)
		require.Zero(t, j.downstream(verdict{class: outcome.Success, event: says(0, pattern.Specific)}), name)
		require.Zero(t, j.downstream(verdict{class: outcome.CUDAOOM}), name)
	}
}
