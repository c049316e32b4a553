package diagnose

import (
	"cmp"
	"maps"
	"path"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/flightrecorder"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logfile"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logline"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/report"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/scan"
)

// A job holds the facts of all its files, and what follows from them together.
type job struct {
	src        logfile.Source
	files      []*scan.Facts
	given      Context
	events     []*scan.Event // of the last attempt, in order of files and lines
	earlier    []*scan.Event // of the attempts before the last
	unsure     []*scan.Event // those of earlier whose attempt no time shows
	attempts   int
	runs       int // in one file, if there are several
	world      int
	perNode    int // processes on one node
	nodes      map[string]int
	args       map[string]string
	nccl       map[int]*scan.NCCLRank
	taskRank   bool // Slurm tasks are ranks; else they are nodes
	fileRank   []int
	fileNode   []string
	baseRank   []int                 // the global rank of local rank 0 in each file, or -1
	localBases []map[logline.Tag]int // the same by what stands before the local rank in a line
	old        []bool                // files of earlier attempts, by their folders
	year       int
	unreadable []logfile.Unreadable
	missed     *flightrecorder.Missed // by flight recorder dumps
	hung       []int                  // ranks that were killed after others had timed out
	firstRank  map[string]int         // node → its first rank, where logs say it
	clocks     []report.Clock         // nodes whose clocks were corrected
	from       time.Time              // start of the last attempt; zero if unknown
	ofEarlier  []*scan.Event          // the failures of programs that another one followed; set by ofLastProgram
	account    *scan.Event            // Slurm's account in a log, from which given has the job's state; nil without one

	// Many events ask for these, and they take long for many logs, so they are computed once.
	ranks       func() int                            // countRanks, from placeEvents on
	endsWell    func() bool                           // readsWell
	lastReports func() []time.Time                    // readLastReports
	pace        func() (usual, longest time.Duration) // readPace
}

func newJob(src logfile.Source, files []*scan.Facts, c Context) *job {
	j := &job{src: src, files: files, given: c, nodes: map[string]int{}, args: map[string]string{}, nccl: map[int]*scan.NCCLRank{}}
	j.ranks, j.endsWell, j.lastReports = sync.OnceValue(j.countRanks), sync.OnceValue(func() bool { return j.readsWell(-1) }), sync.OnceValue(j.readLastReports)
	j.pace = sync.OnceValues(j.readPace)
	for i, f := range files {
		maps.Copy(j.args, f.Args)
		for h, n := range f.Hosts {
			j.nodes[h] += n
		}
		for r, n := range f.NCCL {
			if o := j.nccl[r]; o == nil || !o.TimedOut && n.TimedOut {
				j.nccl[r] = n
			}
		}
		for l := range f.Locals {
			j.perNode = max(j.perNode, l+1)
		}
		if indexPath.MatchString(path.Base(src.Logs[i].Name)) {
			j.perNode = max(j.perNode, launchedBy(f))
		}
		for _, n := range f.NodeStarts {
			j.perNode = max(j.perNode, n.Last-n.First+1)
		}
	}
	for _, n := range c.Nodes {
		j.nodes[n]++
	}
	if j.world = j.argument("world_size"); j.world == 0 {
		for _, f := range files {
			for _, e := range f.Events {
				j.world = max(j.world, e.World)
			}
		}
	}
	return j
}

// argument returns a numeric argument that the run printed, or 0.
func (j *job) argument(name string) int {
	n, _ := strconv.Atoi(j.args[name])
	return n
}

// resolve determines years, ranks, nodes, clocks and attempts, in the order that their dependencies
// require.
func (j *job) resolve() {
	j.firstRank = j.firstRanks()
	j.fixYears()
	j.placeFiles()
	j.fixClocks()
	j.splitAttempts()
	j.readAccount()
	j.placeEvents()
}

// withYear sets the year of a time whose format has none.
func withYear(at time.Time, year int) time.Time {
	if at.Year() == logline.Yearless {
		return at.AddDate(year, 0, 0)
	}
	return at
}

// fixYears adds the year to times whose format has none.
func (j *job) fixYears() {
	for i, f := range j.files {
		j.year = max(j.year, f.LastTime.Year())
		for _, e := range f.Events {
			j.year = max(j.year, e.Before.Year(), e.After.Year())
		}
		for _, m := range f.Progress {
			if at, ok := logline.ParseTime(m.Text); ok {
				j.year = max(j.year, at.Year())
				break
			}
		}
		if j.year <= 1 && !j.src.Logs[i].Modified.IsZero() {
			j.year = max(j.year, j.src.Logs[i].Modified.Year())
		}
	}
	fix := func(t *time.Time) {
		if !t.IsZero() {
			*t = withYear(*t, j.year)
		}
	}
	for _, f := range j.files {
		fix(&f.LastTime)
		for _, e := range f.Events {
			fix(&e.Before)
			fix(&e.After)
		}
		for _, ms := range f.Starts {
			for k := range ms {
				fix(&ms[k].At)
			}
		}
		if f.Finished != nil {
			fix(&f.Finished.At)
		}
		if f.Failed != nil {
			fix(&f.Failed.At)
		}
		fix(&f.Doing.At)
		for k := range f.Last {
			fix(&f.Last[k].At)
		}
	}
}

var (
	rankPath   = lazy.New(`(?i)(?:^|[^a-z0-9])(?:rank|global_?rank|task|proc|worker)[-_.=]?(\d{1,6})(?:[^a-z0-9]|$)`)
	rankFolder = lazy.New(`(?i)(?:^|/)(?:global[-_]?)?rank[-_.=]?(\d{1,6})/[^/]+$`)
	rankLetter = lazy.New(`(?:^|[^a-zA-Z0-9])[rR](\d{1,6})\.|^[rR](\d{1,6})[^a-zA-Z0-9]`)
	indexPath  = lazy.New(`(?i)(?:^|[^a-z])node[-_]?(\d{1,5})[-_]`)
	indexAlone = lazy.New(`^(?i)n(?:ode[-_]?)?\d{1,3}$`)              // a node's index, of srun's %n
	loraPath   = lazy.New(`(?i)(?:lora|low)[-_.]?r(?:ank)?[-_.=]?\d`) // the rank of a matrix
	afterJob   = lazy.New(`(?:^|[-_.])\d{1,9}[-_.]([A-Za-z][A-Za-z\d.-]*?)(?:[-_.]\d+)?\.(?:out|err|log|txt)`)
	afterIndex = lazy.New(`(?i)node[-_]?\d{1,5}[-_]([A-Za-z][\w-]*)\.(?:out|err|log|txt)`)
)

// placeFiles determines the rank and node of each file, and the first rank of its node.
func (j *job) placeFiles() {
	n := len(j.files)
	j.fileRank, j.fileNode, j.baseRank = make([]int, n), make([]string, n), make([]int, n)
	known := make([]string, 0, len(j.nodes))
	for h := range j.nodes {
		if len(h) >= 2 {
			known = append(known, h)
		}
	}
	sort.Slice(known, func(a, b int) bool { return len(known[a]) > len(known[b]) })
	letters := j.placeLetters()
	for i, f := range j.files {
		name := j.src.Logs[i].Name
		j.fileRank[i], j.baseRank[i] = -1, -1
		j.fileNode[i] = nodeOfPath(name, known)
		base := path.Base(name)
		if rankPath.MatchString(j.fileNode[i]) { // a node may be called "worker1"
			base = strings.Replace(base, j.fileNode[i], "", 1)
		}
		if m := rankOfPath(base, name); m != nil && !loraPath.MatchString(base) {
			j.fileRank[i], _ = strconv.Atoi(m[1])
		} else if r, ok := letters[i]; ok {
			j.fileRank[i] = r
		} else if own := ranksIn(f); len(own) == 1 && len(f.Labels) == 0 && len(f.Locals) == 0 {
			for _, r := range own {
				if logfile.AttemptPath.MatchString(name) || logfile.PlainPath.MatchString(name) {
					j.fileRank[i] = r
				}
			}
		}
		if m := logfile.AttemptPath.FindStringSubmatch(name); m != nil {
			l, _ := strconv.Atoi(m[2])
			j.perNode = max(j.perNode, l+1)
		}
	}
	j.placeByReports()
	j.placeTasks()
	j.placeLocals()
	if !j.given.Array {
		j.placeSeries()
	}
	for i, f := range j.files {
		if j.baseRank[i] < 0 && len(f.Local0) > 0 && slices.Min(f.Local0) == slices.Max(f.Local0) {
			j.baseRank[i] = f.Local0[0]
		}
		if m := logfile.AttemptPath.FindStringSubmatch(j.src.Logs[i].Name); m != nil && j.fileRank[i] >= 0 {
			l, _ := strconv.Atoi(m[2])
			j.baseRank[i] = j.fileRank[i] - l
		}
	}
	j.placeAttemptFolders()
	// A node's files have the same first rank, as have two that differ in their extensions. A node's index gives it if nothing else does.
	byNode, nodeOf := map[string]int{}, func(i int) string { return cmp.Or(j.fileNode[i], stem(j.src.Logs[i].Name)) }
	for i := range j.files {
		if j.baseRank[i] >= 0 {
			byNode[nodeOf(i)] = j.baseRank[i]
		}
	}
	for i := range j.files {
		if j.baseRank[i] >= 0 {
			continue
		}
		if b, ok := byNode[nodeOf(i)]; ok {
			j.baseRank[i] = b
		} else if m := indexPath.FindStringSubmatch(path.Base(j.src.Logs[i].Name)); m != nil && j.perNode > 0 {
			k, _ := strconv.Atoi(m[1])
			if j.world == 0 || k*j.perNode < j.world {
				j.baseRank[i] = k * j.perNode
			}
		}
	}
}

// rankOfPath returns the match of the rank that a file's name gives, or else its folder.
func rankOfPath(base, name string) []string {
	if m := rankPath.FindStringSubmatch(base); m != nil {
		return m
	}
	return rankFolder.FindStringSubmatch(name)
}

// placeTasks decides whether srun's tasks are ranks or whole nodes. If a task's launcher reports on its
// processes, the task is a rank only if a process has the same number.
func (j *job) placeTasks() {
	most, agree, differ, launches := -1, 0, 0, false
	for _, f := range j.files {
		for l := range f.Labels {
			most = max(most, l)
		}
		for t, rank := range f.Bases {
			if t.Label >= 0 && t.Label == rank {
				agree++
			} else if t.Label >= 0 {
				differ++
			}
		}
		for _, e := range f.Elastic {
			if e.Task < 0 || e.Local < 0 || e.Rank < 0 {
				continue
			}
			launches = true
			switch {
			case e.Rank != e.Task:
				differ++
			case e.Task > 0: // both are 0 for the first
				agree++
			}
		}
	}
	for _, f := range j.files {
		for _, e := range f.Events {
			if e.Spawns() {
				return // the task started the ranks itself
			}
			for _, task := range e.Tasks {
				most = max(most, task)
			}
		}
	}
	switch {
	case agree+differ > 0:
		j.taskRank = agree >= differ
	case j.perNode > 1:
		j.taskRank = false
	case j.world > 0:
		j.taskRank = most+1 >= j.world || most >= len(j.nodes) && len(j.nodes) > 0 || j.world == 1
	default:
		j.taskRank = most >= 0 && !launches && (len(j.nodes) <= 1 || most >= len(j.nodes))
	}
	if !j.taskRank && most+1 < j.world { // a task has several ranks, and its lines without a rank may be any one's
		for _, f := range j.files {
			maps.DeleteFunc(f.Bases, func(t logline.Tag, _ int) bool { return t.Local < 0 })
		}
	}
}

// nodeOfPath returns the node in a path: one that the logs name too, or the text at the place where
// launch scripts put %N.
func nodeOfPath(name string, known []string) string {
	for _, h := range known {
		for from := 0; ; {
			i := strings.Index(name[from:], h)
			if i < 0 {
				break
			}
			i += from
			from = i + 1
			if outsideWord(name, i-1) && outsideWord(name, i+len(h)) {
				return h
			}
		}
	}
	base := path.Base(name)
	for _, re := range []*lazy.Pattern{afterIndex, afterJob} {
		m := re.FindStringSubmatch(base)
		if m != nil && logline.HasDigit(m[1]) && !rankPath.MatchString(m[1]) &&
			!rankLetter.MatchString(m[1]) && (len(known) == 0 || !indexAlone.MatchString(m[1])) {
			return m[1]
		}
	}
	if logfile.AttemptPath.MatchString(name) {
		if parts := strings.Split(name, "/"); len(parts) >= 5 && logline.HasDigit(parts[len(parts)-5]) {
			return parts[len(parts)-5]
		}
	}
	return ""
}

// outsideWord reports whether position i of s is outside a word, so that node1 is not found in node12.
func outsideWord(s string, i int) bool {
	if i < 0 || i >= len(s) {
		return true
	}
	c := s[i]
	return (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z')
}

// splitAttempts separates the events of the last attempt from those of earlier ones.
func (j *job) splitAttempts() {
	last := logfile.LastAttempts(j.src.Files())
	for _, n := range last {
		j.attempts = max(j.attempts, n+1)
	}
	cuts := make([]int64, len(j.files))
	for i, f := range j.files {
		for kind, ms := range f.Starts {
			from := 1
			if kind == scan.Restarted || kind == scan.Requeued || kind == scan.Appended {
				from = 0
			}
			if len(ms) <= from {
				continue
			}
			m := ms[len(ms)-1]
			if kind == scan.Restarted && strings.Contains(m.Text, "FAILED") && strings.Contains(m.Text, " 0/") {
				continue
			}
			if kind == scan.Appended {
				j.runs = max(j.runs, len(ms)+1)
			} else {
				j.attempts = max(j.attempts, len(ms)+1-from)
			}
			cuts[i] = max(cuts[i], m.Off)
			if m.At.After(j.from) {
				j.from = m.At
			}
		}
	}
	for i, off := range j.lastRestartReports() {
		cuts[i] = max(cuts[i], off+1)
	}
	j.attempts = max(j.attempts, 1)
	j.old = make([]bool, len(j.files))
	lastRunStart := make([]int64, len(j.files)) // offset of the last run, in a file with several
	for i, f := range j.files {
		if ms := f.Starts[scan.Appended]; len(ms) > 0 {
			lastRunStart[i] = ms[len(ms)-1].Off
		}
		if from, runs := j.lastRun(i); from > cuts[i] {
			lastRunStart[i], cuts[i], j.runs = from, from, max(j.runs, runs)
		}
	}
	for i, f := range j.files {
		old := logfile.Earlier(j.src.Logs[i].Name, last)
		j.old[i] = old
		var first *scan.Event // of the attempts before
		for _, e := range f.Events {
			before := old || e.Off < cuts[i]
			if before && cuts[i] == lastRunStart[i] && !old {
				j.unsure = append(j.unsure, e)
			}
			if cuts[i] == 0 && !j.from.IsZero() && !before {
				var sure bool
				if before, sure = j.beforeStart(e, first); before && !sure {
					j.unsure = append(j.unsure, e)
				}
				switch {
				case before && e.Agent && e.Exit != 0:
					first = &scan.Event{} // what follows a launcher's report is of the next attempt
				case before && first == nil:
					first = e
				}
			}
			if before {
				j.earlier = append(j.earlier, e)
			} else {
				j.events = append(j.events, e)
			}
		}
		if f.Finished != nil && (old || f.Finished.Off < cuts[i]) {
			f.Finished = nil
		}
		f.Departures = slices.DeleteFunc(f.Departures, func(d scan.Departure) bool { return old || d.Off < cuts[i] })
		if m := f.Failed; m != nil && (old || m.Off < cuts[i] || !m.At.IsZero() && m.At.Before(j.from.Add(-skew))) {
			f.Failed = nil
		}
	}
	if j.attempts > 1 { // a failure without a time belongs to the attempt that failed
		for i, f := range j.files {
			if f.Failed != nil && f.Failed.At.IsZero() && (j.finished() || cuts[i] == 0 && j.allEarlier(i)) {
				f.Failed = nil
			}
		}
	}
}

// beforeStart reports whether an event in a file without start lines belongs to an earlier attempt. If
// the times around the event belong to one attempt each, the file's first failure belongs to the earlier one: all events
// between the same two times up to a launcher's report.
func (j *job) beforeStart(e, first *scan.Event) (before, sure bool) {
	from := j.from.Add(-skew)
	switch {
	case e.Dated:
		return e.Before.Before(from), true
	case !e.Before.IsZero() && !e.Before.Before(from):
		return false, true
	case !e.After.IsZero() && e.After.Before(from):
		return true, true
	}
	return first == nil || !e.After.IsZero() && e.Before.Equal(first.Before) && e.After.Equal(first.After), false
}

// skew is the difference between the clocks of two nodes up to which times do not tell the order of
// their lines.
const skew = 5 * time.Second

// age returns the time since the job wrote last, and whether that is known.
func (j *job) age(now time.Time) (time.Duration, bool) {
	if s := j.given.SecondsSinceLastWrite; s != nil {
		return time.Duration(*s) * time.Second, true
	}
	var newest, told time.Time
	for i, f := range j.src.Logs {
		if !f.Packed() && f.Modified.After(newest) {
			newest = f.Modified
		}
		if at := j.copied(i); at.After(told) {
			told = at
		}
	}
	if !told.IsZero() {
		newest = told
	}
	return now.Sub(newest), !newest.IsZero()
}

// slurmCompleted reports whether Slurm's state is COMPLETED.
func (j *job) slurmCompleted() bool { return j.given.state() == slurm.Completed }
