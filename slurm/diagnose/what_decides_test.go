package diagnose

import (
	"fmt"
	"io/fs"
	"testing"
	"time"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logfile"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logline"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/pattern"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/python"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/report"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/scan"
	"github.com/stretchr/testify/require"
)

// What may belong to an earlier attempt explains a death that nothing else explains.
func TestAnEarlierAttemptMayExplainADeath(t *testing.T) {
	earlier := scan.Event{Kind: "KeyError", Stack: inModule, Class: outcome.UserException, Weight: pattern.Generic, Rank: -1, Tag: logline.NoTag}
	full := scan.Event{Kind: "OutOfMemoryError", Stack: inModule, Class: outcome.CUDAOOM, Weight: pattern.Specific, Rank: -1, Tag: logline.NoTag, Off: 50}
	lost := scan.Event{Class: outcome.NCCLConnection, Weight: pattern.Generic, Rank: -1, Tag: logline.NoTag, Off: 50}
	for name, c := range map[string]struct {
		events []*scan.Event
		died   bool
		state  string
		class  string
	}{
		"nothing else":          {nil, true, "FAILED", outcome.UserException},
		"another cause":         {[]*scan.Event{&full}, true, "FAILED", outcome.CUDAOOM},
		"a lost peer":           {[]*scan.Event{&lost}, true, "FAILED", outcome.UserException},
		"nobody died":           {nil, false, "FAILED", outcome.UnknownExit},
		"nobody knows an end":   {nil, true, "", outcome.UserException},
		"Slurm says that it is": {nil, false, "COMPLETED", outcome.Success},
	} {
		f := &scan.Facts{}
		if c.died {
			f.Failed = &scan.Mark{Off: 60}
		}
		e := earlier
		j := newJob(sourceOf("x"), []*scan.Facts{f}, Context{JobState: c.state})
		j.resolve()
		j.events, j.unsure = c.events, []*scan.Event{&e}
		require.Equal(t, c.class, j.judgeAll().class, name)
	}
}

// A usage text at the end of a log, and what else is known.
func TestWhenAUsageTextIsTheCause(t *testing.T) {
	usage := &scan.Mark{Off: 5, Text: "usage: train.py [-h] --data DATA"}
	for name, c := range map[string]struct {
		facts scan.Facts
		state string
		exit  *scan.Event
		is    bool
	}{
		"it failed":                    {scan.Facts{Usage: usage}, "FAILED", nil, true},
		"nothing known":                {scan.Facts{Usage: usage}, "", nil, true},
		"it runs":                      {scan.Facts{Usage: usage}, "RUNNING", nil, false},
		"it completed":                 {scan.Facts{Usage: usage}, "COMPLETED", nil, false},
		"it said so":                   {scan.Facts{Usage: usage, Finished: &scan.Mark{Off: 9}}, "FAILED", nil, false},
		"there are steps":              {scan.Facts{Usage: usage, Progress: words(1)}, "FAILED", nil, false},
		"no usage text":                {scan.Facts{}, "FAILED", nil, false},
		"the exit code of that":        {scan.Facts{Usage: usage}, "FAILED", &scan.Event{Agent: true, Exit: 2}, true},
		"another exit code":            {scan.Facts{Usage: usage}, "FAILED", &scan.Event{Agent: true, Exit: 3}, false},
		"exit code 1 of a script":      {scan.Facts{Usage: usage}, "FAILED", &scan.Event{Agent: true, Exit: 1}, true},
		"exit code 1 of a process":     {scan.Facts{Usage: usage}, "FAILED", &scan.Event{Agent: true, Exit: 1, Pid: "4711"}, false},
		"exit code 1 after work":       {scan.Facts{Usage: usage, Elastic: make([]scan.ElasticEntry, 1)}, "FAILED", &scan.Event{Agent: true, Exit: 1}, false},
		"exit code 0":                  {scan.Facts{Usage: usage}, "FAILED", &scan.Event{Agent: true}, true},
		"another line's number":        {scan.Facts{Usage: usage}, "FAILED", &scan.Event{Exit: 3}, true},
		"told to end":                  {scan.Facts{Usage: usage}, "FAILED", &scan.Event{Agent: true, Exit: -15}, true},
		"told to end, the first of it": {scan.Facts{Usage: usage}, "FAILED", &scan.Event{Agent: true, Exit: -15, First: true}, false},
	} {
		var live []*scan.Event
		if c.exit != nil {
			live = append(live, c.exit, &scan.Event{})
		}
		j := newJob(sourceOf("x"), []*scan.Facts{&c.facts}, Context{JobState: c.state})
		j.fileNode = []string{"gpu1"}
		v, ok := j.wrongUsage(live)
		require.Equal(t, c.is, ok, name)
		if ok {
			require.Equal(t, "gpu1", v.event.Node, name)
		}
	}
}

// The nodes that a retry should avoid: that of the cause, and those of lines that show it too.
func TestWhichNodesARetryAvoids(t *testing.T) {
	on := func(node string, weight int) *scan.Event { return &scan.Event{Node: node, Weight: weight} }
	failed := func(node, class string) *scan.Event {
		return &scan.Event{Node: node, Class: class, Text: "srun: error: Node failure on gpu2"}
	}
	for name, c := range map[string]struct {
		class  string
		others []*scan.Event
		avoid  []string
	}{
		"a broken GPU":                 {outcome.GPUHardware, nil, []string{"gpu1"}},
		"two":                          {outcome.GPUHardware, []*scan.Event{on("gpu2", pattern.Specific)}, []string{"gpu1", "gpu2"}},
		"another line that says less":  {outcome.GPUHardware, []*scan.Event{on("gpu2", pattern.Specific-1)}, []string{"gpu1"}},
		"a line of which nobody knows": {outcome.GPUHardware, []*scan.Event{on("", pattern.Specific)}, []string{"gpu1"}},
		"an exception":                 {outcome.UserException, []*scan.Event{on("gpu2", pattern.Specific)}, nil},
		"another failed node's name":   {outcome.SlurmNodeFail, []*scan.Event{failed("gpu2", outcome.SlurmNodeFail)}, []string{"gpu2"}},
		"another line with that name":  {outcome.SlurmNodeFail, []*scan.Event{failed("gpu2", outcome.UnknownExit)}, []string{"gpu1"}},
		"a failed node without a name": {outcome.SlurmNodeFail, []*scan.Event{failed("", outcome.SlurmNodeFail)}, []string{"gpu1"}},
		"it failed by other words":     {outcome.SlurmNodeFail, []*scan.Event{{Node: "gpu2", Class: outcome.SlurmNodeFail}}, []string{"gpu1"}},
		"a broken GPU, a failed node":  {outcome.GPUHardware, []*scan.Event{failed("gpu2", outcome.SlurmNodeFail)}, []string{"gpu1"}},
	} {
		node := "gpu1"
		r := report.Report{RootNode: &node}
		(&job{events: c.others}).nodesToExclude(&r, verdict{class: c.class, event: on("gpu1", pattern.Specific), others: c.others})
		require.Equal(t, c.avoid, r.ExcludeNodes, name)
		none := ""
		for _, root := range []*string{nil, &none} {
			r = report.Report{RootNode: root}
			new(job).nodesToExclude(&r, verdict{class: c.class, event: on("", pattern.Specific), others: c.others})
			require.Empty(t, r.ExcludeNodes, "%s, and the node is not known", name)
		}
	}
}

// Of many logs that cannot be read some are told.
func TestWhichLogsCannotBeRead(t *testing.T) {
	unreadable, empty, lines := scan.Facts{Reads: fs.ErrPermission}, scan.Facts{}, scan.Facts{Lines: 1}
	for name, c := range map[string]struct {
		n         int
		facts     scan.Facts
		told      int
		something bool
	}{
		"one":      {1, unreadable, 1, false},
		"all told": {logfile.MaxUnreadable, unreadable, logfile.MaxUnreadable, false},
		"too many": {logfile.MaxUnreadable + 1, unreadable, logfile.MaxUnreadable, false},
		"empty":    {2, empty, 2, false},
		"readable": {1, lines, 0, true},
	} {
		var names []string
		var all []*scan.Facts
		for i := range c.n {
			names, all = append(names, fmt.Sprint(i)), append(all, &c.facts)
		}
		told, something := unread(sourceOf(names...), all)
		require.Len(t, told, c.told, name)
		require.Equal(t, c.something, something, name)
	}
	told, _ := unread(sourceOf("x", "y"), []*scan.Facts{&empty, &lines})
	require.Empty(t, told, "an empty log beside another")
	told, _ = unread(sourceOf("x", "y"), []*scan.Facts{&empty, &unreadable})
	require.Len(t, told, 1, "an empty log beside one that cannot be read")
}

// A lost peer without a launcher's word is a lost connection. With that word, the rank that left is the
// cause.
func TestARankThatIsSilentOrLeft(t *testing.T) {
	lost := func(rank int) func(*scan.Event) {
		return func(e *scan.Event) {
			e.Rank, e.Class, e.Weight, e.Kind, e.Stack = rank, outcome.NCCLConnection, pattern.Symptom, "RuntimeError", inStep
		}
	}
	left := func(e *scan.Event) {
		e.Rank, e.Class, e.Weight, e.Agent, e.Exit = 3, outcome.UnknownExit, pattern.Symptom, true, 1
	}
	for name, c := range map[string]struct {
		last  func(*scan.Event)
		died  bool
		class string
		event int
	}{
		"nobody says that it left":        {lost(2), false, outcome.NCCLConnection, 0},
		"a process died":                  {lost(2), true, outcome.UnknownExit, 0},
		"a launcher says that it left":    {left, true, outcome.UnknownExit, 2},
		"it left, and no process is dead": {left, false, outcome.NCCLConnection, 0},
	} {
		j, live := oneLog(9, scan.Event{}, spoken{0, lost(0)}, spoken{0, lost(1)}, spoken{0, c.last})
		j.given.JobState, j.fileNode, j.taskRank = "FAILED", []string{""}, true
		j.ranks = func() int { return 4 }
		if c.died {
			j.files[0].Failed = &scan.Mark{Off: 99}
		}
		v, ok := j.silentDeath(live)
		require.True(t, ok, name)
		require.Equal(t, c.class, v.class, name)
		require.Equal(t, 3, v.event.Rank, name)
		require.Equal(t, live[c.event].Off, v.event.Off, name)
	}
}

// The ranks with a log of their own are told if at least half of the run's ranks have none.
func TestOnlySomeRanksHaveLogs(t *testing.T) {
	many := make([]int, 33)
	for i := range many {
		many[i] = i
	}
	for name, c := range map[string]struct {
		ranks []int
		world int
		told  bool
	}{
		"two of eight":             {[]int{0, 2}, 8, true},
		"two of four":              {[]int{0, 2}, 4, true},
		"two of three":             {[]int{0, 2}, 3, false},
		"the last one is the last": {[]int{0, 3}, 0, true},
		"one misses":               {[]int{0, 2}, 0, false},
		"too many to tell":         {many, 999, false},
		"as many as are told":      {many[:32], 999, true},
		"none":                     {[]int{-1, -1}, 8, false},
	} {
		names := make([]string, len(c.ranks))
		only := (&job{src: sourceOf(names...), fileRank: c.ranks, world: c.world}).onlyRanks()
		if c.told {
			require.Equal(t, c.ranks, only, name)
		} else {
			require.Empty(t, only, name)
		}
	}
}

// A broken GPU, as the kernel reports it, explains the errors that it leads to, not others.
func TestWhatABrokenGPUExplains(t *testing.T) {
	event := func(class string, weight int) func(*scan.Event) {
		return func(e *scan.Event) { e.Class, e.Weight = class, weight }
	}
	broken := event(outcome.GPUHardware, pattern.Fact)
	for name, c := range map[string]struct {
		first, second func(*scan.Event)
		class         string
	}{
		"a driver's error":                {event(outcome.CUDADriver, pattern.Specific), broken, outcome.GPUHardware},
		"an illegal access":               {event(outcome.CUDAIllegalAccess, pattern.Specific), broken, outcome.GPUHardware},
		"an assertion on it":              {event(outcome.DeviceAssert, pattern.Specific), broken, outcome.GPUHardware},
		"an exception":                    {event(outcome.UserException, pattern.Specific), broken, outcome.GPUHardware},
		"a crash":                         {event(outcome.Segfault, pattern.Specific), broken, outcome.GPUHardware},
		"a loss that is no number":        {event(outcome.NaNLoss, pattern.Specific), broken, outcome.GPUHardware},
		"a line that says less of it":     {event(outcome.GPUHardware, pattern.Fact-1), broken, outcome.GPUHardware},
		"a full disk":                     {event(outcome.DiskFull, pattern.Fact-9), broken, outcome.DiskFull},
		"only a program says it":          {event(outcome.CUDADriver, pattern.Fact-9), event(outcome.GPUHardware, pattern.Fact-4), outcome.CUDADriver},
		"the kernel, of something else":   {event(outcome.CUDADriver, pattern.Fact-9), event(outcome.HostOOM, pattern.Fact), outcome.CUDADriver},
		"the kernel says more than ten's": {event(outcome.DiskFull, pattern.Fact-10), broken, outcome.GPUHardware},
	} {
		j, live := oneLog(9, scan.Event{Rank: -1}, spoken{0, c.first}, spoken{0, c.second})
		j.events[1].Off = 5000
		j.fileNode = []string{""}
		v, ok := j.earliest(live, live)
		require.True(t, ok, name)
		require.Equal(t, c.class, v.class, name)
		require.Empty(t, v.others, name)
	}
	_, ok := new(job).earliest(nil, nil)
	require.False(t, ok, "nothing")
}

// Launchers' words on tasks and ranks show whether the two are the same.
func TestLaunchersTellWhetherTasksAreRanks(t *testing.T) {
	told := func(task, rank, local int) []scan.ElasticEntry {
		return []scan.ElasticEntry{{Task: task, Rank: rank, Local: local}}
	}
	tag := func(label int) logline.Tag { return logline.Tag{Label: label, Local: 0, Rank: -1} }
	for name, c := range map[string]struct {
		facts scan.Facts
		world int
		are   bool
	}{
		"the same":                     {scan.Facts{Elastic: told(1, 1, 0)}, 8, true},
		"another":                      {scan.Facts{Elastic: told(1, 8, 0)}, 2, false},
		"the first of both":            {scan.Facts{Elastic: told(0, 0, 0)}, 0, false},
		"another of the first":         {scan.Facts{Elastic: told(0, 8, 0)}, 2, false},
		"the first rank of another":    {scan.Facts{Elastic: told(1, 0, 0)}, 2, false},
		"of no task":                   {scan.Facts{Elastic: told(-1, 8, 0)}, 2, true},
		"of no rank":                   {scan.Facts{Elastic: told(1, -1, 0)}, 2, true},
		"of no place":                  {scan.Facts{Elastic: told(1, 8, -1)}, 2, true},
		"one is the same, one is not":  {scan.Facts{Bases: map[logline.Tag]int{tag(1): 1, tag(2): 16}}, 8, true},
		"one is the same, two are not": {scan.Facts{Bases: map[logline.Tag]int{tag(1): 1, tag(2): 16, tag(3): 24}}, 2, false},
		"the task spawned its ranks":   {scan.Facts{Events: []*scan.Event{{Kind: "torch.multiprocessing.spawn.ProcessExitedException"}}}, 2, false},
	} {
		c.facts.Labels = map[int]bool{0: true, 1: true}
		j := &job{files: []*scan.Facts{&c.facts}, world: c.world}
		j.placeTasks()
		require.Equal(t, c.are, j.taskRank, name)
	}
}

// An event, and signs that the run only logged it.
func TestARunOnlyLoggedAnEvent(t *testing.T) {
	at := time.Date(2026, 6, 11, 10, 0, 0, 0, time.UTC)
	raised := scan.Event{Kind: "KeyError", Stack: inModule, Class: outcome.UserException, Weight: pattern.Generic, Before: at}
	line := scan.Event{Class: outcome.UserException, Weight: pattern.Generic}
	weighs := func(e scan.Event, weight int, class string) scan.Event { e.Weight, e.Class = weight, class; return e }
	for name, c := range map[string]struct {
		e        scan.Event
		state    string
		age      int64
		steps    int // after it
		finished int64
		well     bool
		survived bool
	}{
		"nothing known":                     {raised, "", 0, 0, 0, false, false},
		"completed":                         {line, "COMPLETED", 0, 0, 0, false, true},
		"completed, after a traceback":      {raised, "COMPLETED", 0, 0, 0, false, false},
		"completed, and ends well":          {raised, "COMPLETED", 0, 0, 0, true, true},
		"completed, and said so before":     {raised, "COMPLETED", 0, 0, 5, false, true},
		"failed":                            {line, "FAILED", 0, 0, 0, false, false},
		"it said later that it completed":   {raised, "FAILED", 0, 0, 90, false, true},
		"it said before that it completed":  {raised, "FAILED", 0, 0, 5, false, false},
		"a fact":                            {weighs(line, pattern.Fact, outcome.HostOOM), "COMPLETED", 0, 0, 0, false, false},
		"nearly a fact":                     {weighs(line, pattern.Fact-1, outcome.HostOOM), "COMPLETED", 0, 0, 0, false, true},
		"a GPU's fault":                     {weighs(line, pattern.Fact, outcome.GPUHardware), "COMPLETED", 0, 0, 0, false, true},
		"it runs, and made a step":          {raised, "RUNNING", 10, 1, 0, false, true},
		"it ran, and made a step":           {raised, "FAILED", 10, 1, 0, false, false},
		"it runs, and made none":            {raised, "RUNNING", 10, 0, 0, false, false},
		"it stalls after a step":            {raised, "RUNNING", 1e6, 1, 0, false, false},
		"nobody knows when, and it writes":  {line, "RUNNING", 59, 0, 0, false, true},
		"nobody knows when, and it did not": {line, "RUNNING", 60, 0, 0, false, false},
		"nobody knows when or how":          {line, "", 59, 0, 0, false, false},
	} {
		j, events := oneLog(1, c.e, spoken{})
		j.given = Context{JobState: c.state, SecondsSinceLastWrite: &c.age}
		j.endsWell = func() bool { return c.well }
		for i := range c.steps {
			j.files[0].Progress = append(j.files[0].Progress, scan.Mark{Off: int64(20 + i), Text: "step", Tag: logline.NoTag})
		}
		if c.finished > 0 {
			j.files[0].Finished = &scan.Mark{Off: c.finished}
		}
		require.Equal(t, c.survived, j.survived(events[0]), name)
		j.files[0].Failed = &scan.Mark{Off: 200}
		require.False(t, j.survived(events[0]), "%s, and a process died", name)
	}
}

// A line of the script, and what it may explain: the failure, the failure if nothing else does, nothing.
func TestWhatAScriptsLineMayExplain(t *testing.T) {
	setUp := scan.Event{Text: "Lmod has detected the following error", Class: outcome.EnvLaunch, Weight: pattern.Specific}
	copies := scan.Event{Text: "cp: cannot stat 'a'", Class: outcome.DatasetMissing, Weight: pattern.Specific}
	for name, c := range map[string]struct {
		e             scan.Event
		state, code   string
		before, after int // programs' lines
		died          bool
		want          string
	}{
		"nothing ran":                          {setUp, "FAILED", "", 0, 0, false, "sure"},
		"nothing ran, and nobody knows":        {setUp, "", "", 0, 0, false, ""},
		"nothing ran, and a process died":      {setUp, "", "", 0, 0, true, "sure"},
		"it completed":                         {setUp, "COMPLETED", "", 0, 0, false, ""},
		"a program ran, and it failed":         {setUp, "FAILED", "", 0, 1, false, "unsure"},
		"a program ran, and its code says so":  {setUp, "ENDED", "1:0", 0, 1, false, "unsure"},
		"a program ran, and it ended":          {setUp, "ENDED", "", 0, 1, false, ""},
		"a program ran, and its code is 0":     {setUp, "ENDED", "0:9", 0, 1, false, ""},
		"a program ran, and a process died":    {setUp, "ENDED", "", 0, 1, true, "unsure"},
		"a program ran before, and it ended":   {setUp, "ENDED", "", 1, 0, false, "unsure"},
		"a copy: nothing ran":                  {copies, "", "", 0, 0, false, "sure"},
		"a copy: a program ran, it ended":      {copies, "ENDED", "", 0, 1, false, "unsure"},
		"a copy: a program ran, nobody knows":  {copies, "", "", 0, 1, false, ""},
		"a copy: a program ran, and died":      {copies, "", "", 0, 1, true, "unsure"},
		"a copy: one ran before, nobody knows": {copies, "", "", 1, 0, false, "unsure"},
	} {
		e := c.e
		e.Ran.Programs = c.before
		j, live := oneLog(0, e, spoken{})
		j.fileNode, j.given = []string{""}, Context{JobState: c.state, ExitCode: c.code}
		j.endsWell = func() bool { return false }
		j.files[0].Ran.Programs = c.before + c.after
		if c.died {
			j.files[0].Failed = &scan.Mark{Off: 99}
		}
		sure, unsure := j.possibleCauses(live)
		require.Equal(t, c.want == "sure", len(sure) == 1, name)
		require.Equal(t, c.want == "unsure", len(unsure) == 1, name)
	}
}

// The last lines of the rank that died, newest first.
func TestTheLastWordsOfARank(t *testing.T) {
	at := time.Date(2026, 6, 11, 10, 0, 0, 0, time.UTC)
	rank := func(n int) logline.Tag { return logline.Tag{Label: -1, Local: -1, Rank: n} }
	said := func(off int64, seconds int, text string) scan.Mark {
		return scan.Mark{Off: off, At: at.Add(time.Duration(seconds) * time.Second), Text: text}
	}
	first := map[logline.Tag]scan.Mark{
		rank(0): said(10, 1, "of rank 0"), rank(1): said(20, 3, "of rank 1"),
		rank(2): said(30, 3, "of rank 2"), logline.NoTag: said(90, 9, "srun: error: x"),
	}
	second := map[logline.Tag]scan.Mark{rank(1): said(20, 2, "of rank 1, too"), rank(3): said(5, 0, "of rank 3")}
	for name, c := range map[string]struct {
		dead  *scan.Event
		old   bool
		words []string
	}{
		"nobody":                   {nil, false, nil},
		"the first rank":           {&scan.Event{Rank: 0}, false, []string{"of rank 0"}},
		"a rank with two logs":     {&scan.Event{Rank: 1}, false, []string{"of rank 1", "of rank 1, too"}},
		"the event is its last":    {&scan.Event{Rank: 1, Off: 20}, false, []string{"of rank 1, too"}},
		"an earlier attempt's log": {&scan.Event{Rank: 1}, true, []string{"of rank 1"}},
		"nobody knows which":       {&scan.Event{Rank: -1}, false, []string{"of rank 2", "of rank 1", "of rank 1, too"}},
	} {
		j := newJob(sourceOf("x", "y"), []*scan.Facts{{LastBy: first}, {LastBy: second}}, Context{})
		j.placeFiles()
		j.old = []bool{false, c.old}
		var words []string
		for _, e := range j.lastWords(c.dead) {
			words = append(words, e.Text)
		}
		require.Equal(t, c.words, words, name)
	}
}

// Of two lines the first one comes before: by its place in one log, else by its time, else by its log.
func TestWhichLineComesFirst(t *testing.T) {
	at := time.Date(2026, 6, 11, 10, 0, 0, 0, time.UTC)
	line := func(file int, off int64, seconds int) scan.Event {
		e := scan.Event{File: file, Off: off}
		if seconds >= 0 {
			e.Before = at.Add(time.Duration(seconds) * time.Second)
		}
		return e
	}
	for name, pair := range map[string][2]scan.Event{
		"one log":                     {line(0, 1, 9), line(0, 2, 0)},
		"two logs, by time":           {line(1, 9, 0), line(0, 1, 1)},
		"two logs, at once":           {line(0, 9, 0), line(1, 1, 0)},
		"the first's time is unknown": {line(0, 9, -1), line(1, 1, 0)},
		"the other's time is unknown": {line(0, 9, 9), line(1, 1, -1)},
		"neither's time is known":     {line(0, 9, -1), line(1, 1, -1)},
	} {
		require.True(t, new(job).precedes(&pair[0], &pair[1]), name)
		require.False(t, new(job).precedes(&pair[1], &pair[0]), name)
	}
}

// An exception that mostly follows another rank's death is the rank's own failure if no other complains.
func TestAnErrorThatPeersRaiseToo(t *testing.T) {
	in := func(file string) *python.Traceback { return &python.Traceback{Frames: []python.Frame{{File: file}}} }
	own, peers := in("/w/train.py"), in("/v/torch/utils/data/dataloader.py")
	for name, c := range map[string]struct {
		heavy, kind string
		weight      int
		stack       *python.Traceback
		class       string
	}{
		"beside an exit code":               {outcome.UnknownExit, "EOFError", pattern.Exited, own, outcome.UserException},
		"beside an exit code, of a worker":  {outcome.UnknownExit, "EOFError", pattern.Exited, peers, outcome.UserException},
		"beside a lost connection":          {outcome.NCCLConnection, "EOFError", pattern.Exited, own, outcome.UserException},
		"beside one, of a worker":           {outcome.NCCLConnection, "EOFError", pattern.Exited, peers, outcome.NCCLConnection},
		"beside a little more than an exit": {outcome.UnknownExit, "EOFError", pattern.Exited + 1, own, outcome.UserException},
		"beside more than an exit":          {outcome.UnknownExit, "EOFError", pattern.Exited + 2, own, outcome.UnknownExit},
		"beside an abort":                   {outcome.Segfault, "EOFError", pattern.Exited, own, outcome.Segfault},
		"a pipe that is broken":             {outcome.UnknownExit, "BrokenPipeError", pattern.Exited, own, outcome.UserException},
		"another exception":                 {outcome.UnknownExit, "KeyError", pattern.Exited, own, outcome.UnknownExit},
		"a line without a traceback":        {outcome.UnknownExit, "EOFError", pattern.Exited, nil, outcome.UnknownExit},
	} {
		j, live := oneLog(9, scan.Event{Rank: -1}, spoken{0, func(e *scan.Event) {
			e.Class, e.Weight, e.Kind, e.Stack = outcome.NCCLConnection, pattern.Symptom, c.kind, c.stack
		}}, spoken{0, func(e *scan.Event) { e.Class, e.Weight, e.Agent, e.Exit = c.heavy, c.weight, true, 1 }})
		j.given.JobState = "FAILED"
		j.placeFiles()
		v, ok := j.silentDeath(live)
		require.True(t, ok, name)
		require.Equal(t, c.class, v.class, name)
	}
}

// A report shows two lines of other ranks, and two of earlier attempts, the weightiest first.
func TestWhichLinesAreShownBesideACause(t *testing.T) {
	line := func(off int64, rank, weight int, class string) *scan.Event {
		return &scan.Event{Off: off, Rank: rank, Weight: weight, Class: class, Raw: fmt.Sprint("line ", off), Tag: logline.NoTag}
	}
	cause := line(1, 0, pattern.Specific, outcome.CUDAOOM)
	superseded := line(2, 1, pattern.Symptom, outcome.NCCLConnection)
	superseded.Superseded = true
	again := line(9, 1, pattern.Symptom, outcome.NCCLConnection)
	again.Superseded = true
	j := newJob(sourceOf("x"), []*scan.Facts{{}}, Context{})
	j.placeFiles()
	j.events = []*scan.Event{
		cause, superseded, line(3, 0, pattern.Symptom, outcome.NCCLConnection), line(4, 1, pattern.Death, outcome.Segfault),
		line(5, 1, pattern.Symptom, outcome.CUDAOOM),
		line(6, 1, pattern.Death-1, outcome.NCCLConnection), line(7, 2, pattern.Symptom, outcome.NCCLConnection), line(8, 3, pattern.Symptom, outcome.NCCLConnection),
	}
	j.earlier = []*scan.Event{
		again, line(10, 0, pattern.Exited-1, outcome.UnknownExit), line(11, 0, pattern.Exited, outcome.UnknownExit),
		line(12, 0, pattern.Death, outcome.Segfault), line(13, 0, pattern.Exited, outcome.UnknownExit),
	}
	var r report.Report
	var others []*scan.Event
	for i := range 4 {
		others = append(others, line(int64(20+i), 4+i, pattern.Specific, outcome.CUDAOOM))
	}
	j.addEvidence(&r, verdict{class: outcome.CUDAOOM, event: cause, others: others})
	var shown []string
	for _, e := range r.Evidence {
		shown = append(shown, e.Why+": "+e.Text)
	}
	require.Equal(t, []string{
		"cause: line 1", "same cause: line 20", "same cause: line 21", "same cause: line 22", "downstream: line 6", "downstream: line 7",
		"earlier attempt: line 12", "earlier attempt: line 11",
	}, shown)
}
