package diagnose

import (
	"path"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// A job is all that its files tell, put together.
type job struct {
	src        Source
	files      []*facts
	given      Context
	events     []*event // of the last attempt, in the order of files and lines
	earlier    []*event // of attempts before it
	unsure     []*event // those of earlier that no time tells apart
	attempts   int
	runs       int // of one file, where they are several
	world      int
	perNode    int // processes of one node
	nodes      map[string]int
	args       map[string]string
	nccl       map[int]*ncclRank
	taskRank   bool // Slurm tasks are ranks, not nodes
	fileRank   []int
	fileNode   []string
	baseRank   []int // the global rank of local rank 0 in each file, or -1
	year       int
	unreadable []Unreadable
	missed     *missed        // from flight recorder dumps
	bases      map[string]int // the first rank of a node that said so
	clocks     []string       // nodes whose clocks were corrected
	from       time.Time      // start of the last attempt, where it is known
}

func newJob(src Source, files []*facts, c Context) *job {
	j := &job{src: src, files: files, given: c, nodes: map[string]int{}, args: map[string]string{}, nccl: map[int]*ncclRank{}}
	for _, f := range files {
		for k, v := range f.args {
			j.args[k] = v
		}
		for h, n := range f.hosts {
			j.nodes[h] += n
		}
		for r, n := range f.nccl {
			if o := j.nccl[r]; o == nil || !o.timedOut && n.timedOut {
				j.nccl[r] = n
			}
		}
		for l := range f.locals {
			j.perNode = max(j.perNode, l+1)
		}
	}
	for _, n := range c.Nodes {
		j.nodes[n]++
	}
	j.world = j.argument("world_size")
	return j
}

// argument returns a number that the run printed of its own arguments, or 0.
func (j *job) argument(name string) int {
	n, _ := strconv.Atoi(j.args[name])
	return n
}

// resolve works out attempts, times, nodes and ranks, in this order.
func (j *job) resolve() {
	j.bases = j.hostBase()
	j.fixYears()
	j.placeFiles()
	j.fixClocks()
	j.splitAttempts()
	j.placeEvents()
}

// fixYears gives a year to the times whose format has none.
func (j *job) fixYears() {
	for i, f := range j.files {
		for _, t := range []time.Time{f.lastTime} {
			if t.Year() > 1 && t.Year() > j.year {
				j.year = t.Year()
			}
		}
		for _, e := range f.events {
			j.year = max(j.year, e.before.Year(), e.after.Year())
		}
		for _, m := range f.progress {
			if at, ok := timestamp(m.text); ok {
				j.year = max(j.year, at.Year())
				break
			}
		}
		if j.year <= 1 && !j.src.files[i].mtime.IsZero() {
			j.year = max(j.year, j.src.files[i].mtime.Year())
		}
	}
	fix := func(t *time.Time) {
		if !t.IsZero() && t.Year() == yearless {
			*t = t.AddDate(j.year, 0, 0)
		}
	}
	for _, f := range j.files {
		fix(&f.lastTime)
		for _, e := range f.events {
			fix(&e.before)
			fix(&e.after)
		}
		for _, ms := range f.starts {
			for k := range ms {
				fix(&ms[k].at)
			}
		}
		if f.finished != nil {
			fix(&f.finished.at)
		}
		if f.failed != nil {
			fix(&f.failed.at)
		}
		fix(&f.doing.at)
		for k := range f.last {
			fix(&f.last[k].at)
		}
	}
}

var (
	attemptPath = lazy.New(`(?:^|/)attempt_(\d+)/(\d+)/(?:stdout|stderr)(?:\.log)?(?:\.gz|\.zst)?$`)
	plainPath   = lazy.New(`(?:^|/)(\d+)/(\d+)/(?:stdout|stderr)\.log$`)
	rankPath    = lazy.New(`(?i)(?:^|[^a-z0-9])(?:rank|global_?rank|r|task|proc|worker)[-_.=]?(\d{1,6})(?:[^a-z0-9]|$)`)
	indexPath   = lazy.New(`(?i)(?:^|[^a-z])node[-_]?(\d{1,5})[-_]`)
	loraPath    = lazy.New(`(?i)(?:lora|low)[-_.]?r(?:ank)?[-_.=]?\d`) // of a matrix
	afterJob    = lazy.New(`(?:^|[-_.])\d{1,9}[-_.]([A-Za-z][A-Za-z\d.-]*?)(?:[-_.]\d+)?\.(?:out|err|log|txt)`)
	afterIndex  = lazy.New(`(?i)node[-_]?\d{1,5}[-_]([A-Za-z][\w-]*)\.(?:out|err|log|txt)`)
)

// placeFiles works out which rank, node and attempt a file belongs to.
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
	for i, f := range j.files {
		name := j.src.files[i].name
		j.fileRank[i], j.baseRank[i] = -1, -1
		if m := rankPath.FindStringSubmatch(path.Base(name)); m != nil && !loraPath.MatchString(path.Base(name)) {
			j.fileRank[i], _ = strconv.Atoi(m[1])
		} else if len(f.ranks) == 1 && len(f.labels) == 0 && len(f.locals) == 0 {
			for r := range f.ranks {
				if attemptPath.MatchString(name) || plainPath.MatchString(name) {
					j.fileRank[i] = r
				}
			}
		}
		j.fileNode[i] = nodeOfPath(name, known)
		if m := attemptPath.FindStringSubmatch(name); m != nil {
			l, _ := strconv.Atoi(m[2])
			j.perNode = max(j.perNode, l+1)
		}
	}
	j.placeTasks()
	j.placeSeries()
	for i, f := range j.files {
		for t, rank := range f.bases {
			if t.local >= 0 && t.label < 0 {
				j.baseRank[i] = rank - t.local
			}
		}
		if j.baseRank[i] < 0 && len(f.local0) > 0 && same(f.local0) {
			j.baseRank[i] = f.local0[0]
		}
		if m := attemptPath.FindStringSubmatch(j.src.files[i].name); m != nil && j.fileRank[i] >= 0 {
			l, _ := strconv.Atoi(m[2])
			j.baseRank[i] = j.fileRank[i] - l
		}
	}
	// A node's files share its base; a node's index gives it where nothing else does.
	byNode := map[string]int{}
	for i := range j.files {
		if j.baseRank[i] >= 0 && j.fileNode[i] != "" {
			byNode[j.fileNode[i]] = j.baseRank[i]
		}
	}
	for i := range j.files {
		if j.baseRank[i] >= 0 {
			continue
		}
		if b, ok := byNode[j.fileNode[i]]; ok && j.fileNode[i] != "" {
			j.baseRank[i] = b
		} else if m := indexPath.FindStringSubmatch(path.Base(j.src.files[i].name)); m != nil && j.perNode > 0 {
			k, _ := strconv.Atoi(m[1])
			if j.world == 0 || k*j.perNode < j.world {
				j.baseRank[i] = k * j.perNode
			}
		}
	}
}

var lastNumber = lazy.New(`^(.*[^0-9])(\d{1,5})(\.[a-z]+(?:\.gz|\.zst)?)$`)

// placeSeries reads ranks from names that count: srun --output=x-%t.log
// writes one file for each task, from 0 on. As many files as there are nodes
// are one for each node.
func (j *job) placeSeries() {
	series := map[string]map[int]int{} // name around the number → number → file
	for i := range j.files {
		m := lastNumber.FindStringSubmatch(j.src.files[i].name)
		if m == nil || j.fileRank[i] >= 0 || j.fileNode[i] != "" {
			continue
		}
		n, _ := strconv.Atoi(m[2])
		key := m[1] + "*" + m[3]
		if series[key] == nil {
			series[key] = map[int]int{}
		}
		series[key][n] = i
	}
	for _, files := range series {
		most := 0
		for k := range files {
			most = max(most, k)
		}
		count := most + 1 // a rank without a word has an empty file
		whole := len(files) == count || j.world > 0 && len(files) > j.world/2
		if count < 2 || !whole || j.world > 0 && count > j.world || j.world > count && count <= max(1, len(j.nodes)) {
			continue
		}
		for k, i := range files {
			j.fileRank[i] = k
		}
	}
}

func same(ns []int) bool {
	for _, n := range ns {
		if n != ns[0] {
			return false
		}
	}
	return true
}

// placeTasks decides whether srun's tasks are ranks or whole nodes.
func (j *job) placeTasks() {
	most, agree, differ := -1, 0, 0
	for _, f := range j.files {
		for l := range f.labels {
			most = max(most, l)
		}
		for t, rank := range f.bases {
			if t.label >= 0 && t.label == rank {
				agree++
			} else if t.label >= 0 {
				differ++
			}
		}
	}
	for _, f := range j.files {
		for _, e := range f.events {
			for _, task := range e.tasks {
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
		j.taskRank = most >= 0 && (len(j.nodes) <= 1 || most >= len(j.nodes))
	}
}

// nodeOfPath finds the node that a path names: one that the logs name too, or
// what stands where launch scripts put %N.
func nodeOfPath(name string, known []string) string {
	for _, h := range known {
		for from := 0; ; {
			i := strings.Index(name[from:], h)
			if i < 0 {
				break
			}
			i += from
			from = i + 1
			if edge(name, i-1) && edge(name, i+len(h)) {
				return h
			}
		}
	}
	base := path.Base(name)
	for _, re := range []*lazy.Pattern{afterIndex, afterJob} {
		if m := re.FindStringSubmatch(base); m != nil && hasDigit(m[1]) && !rankPath.MatchString(m[1]) {
			return m[1]
		}
	}
	if attemptPath.MatchString(name) {
		if parts := strings.Split(name, "/"); len(parts) >= 5 && hasDigit(parts[len(parts)-5]) {
			return parts[len(parts)-5]
		}
	}
	return ""
}

func hasDigit(s string) bool { return strings.ContainsAny(s, "0123456789") }

// edge reports whether position i of s is outside a word, so that node1 is
// not found in node12.
func edge(s string, i int) bool {
	if i < 0 || i >= len(s) {
		return true
	}
	c := s[i]
	return (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z')
}

// splitAttempts keeps the events of the last attempt apart from earlier ones.
func (j *job) splitAttempts() {
	last := lastAttempts(j.src.Files())
	for _, n := range last {
		j.attempts = max(j.attempts, n+1)
	}
	cuts := make([]int64, len(j.files))
	for i, f := range j.files {
		for kind, ms := range f.starts {
			from := 1
			if kind == "elastic" || kind == "requeue" || kind == appended {
				from = 0
			}
			if len(ms) <= from {
				continue
			}
			m := ms[len(ms)-1]
			if kind == "elastic" && strings.Contains(m.text, "FAILED") && strings.Contains(m.text, " 0/") {
				continue
			}
			if kind == appended {
				j.runs = max(j.runs, len(ms)+1)
			} else {
				j.attempts = max(j.attempts, len(ms)+1-from)
			}
			cuts[i] = max(cuts[i], m.off)
			if m.at.After(j.from) {
				j.from = m.at
			}
		}
	}
	j.attempts = max(j.attempts, 1)
	begins := make([]int64, len(j.files)) // of the last run of several
	for i, f := range j.files {
		if ms := f.starts[appended]; len(ms) > 0 {
			begins[i] = ms[len(ms)-1].off
		}
		if from, runs := j.lastRun(i); from > cuts[i] {
			begins[i], cuts[i], j.runs = from, from, max(j.runs, runs)
		}
	}
	for i, f := range j.files {
		old := earlier(j.src.files[i].name, last)
		seenOld := false
		for _, e := range f.events {
			before := old || e.off < cuts[i]
			if before && cuts[i] == begins[i] && !old {
				j.unsure = append(j.unsure, e)
			}
			if cuts[i] == 0 && !j.from.IsZero() && !before {
				var sure bool
				if before, sure = j.beforeStart(e, seenOld); before && !sure {
					j.unsure = append(j.unsure, e)
				}
				seenOld = seenOld || before
			}
			if before {
				j.earlier = append(j.earlier, e)
			} else {
				j.events = append(j.events, e)
			}
		}
		if f.finished != nil && (old || f.finished.off < cuts[i]) {
			f.finished = nil
		}
		if m := f.failed; m != nil && (old || m.off < cuts[i] || !m.at.IsZero() && m.at.Before(j.from.Add(-skew))) {
			f.failed = nil
		}
	}
	if j.attempts > 1 { // an undated death belongs to the attempt that died
		for i, f := range j.files {
			if f.failed != nil && f.failed.at.IsZero() && (j.finished() || cuts[i] == 0 && j.allEarlier(i)) {
				f.failed = nil
			}
		}
	}
}

// allEarlier reports whether all that launchers tell in a file is of attempts before
// the last.
func (j *job) allEarlier(file int) bool {
	tells := func(e *event) bool { return e.file == file && e.agent }
	return slices.ContainsFunc(j.earlier, tells) && !slices.ContainsFunc(j.events, tells)
}

// beforeStart reports whether an event in a file without start lines belongs
// to an attempt before the last. An event between two times, one of each
// attempt, belongs to the first failure that its file shows.
func (j *job) beforeStart(e *event, seenOld bool) (before, sure bool) {
	from := j.from.Add(-skew)
	switch {
	case e.dated:
		return e.before.Before(from), true
	case !e.before.IsZero() && !e.before.Before(from):
		return false, true
	case !e.after.IsZero() && e.after.Before(from):
		return true, true
	}
	return !seenOld, false
}

// skew is how far the clocks of two nodes may differ before the order of
// their lines is believed.
const skew = 5 * time.Second

// age returns how long ago the job wrote last, and whether that is known.
func (j *job) age(now time.Time) (time.Duration, bool) {
	if s := j.given.SecondsSinceLastWrite; s != nil {
		return time.Duration(*s) * time.Second, true
	}
	var newest time.Time
	for _, f := range j.src.files {
		if f.mtime.After(newest) {
			newest = f.mtime
		}
	}
	return now.Sub(newest), !newest.IsZero()
}

// endedWell reports whether Slurm calls the job completed.
func (j *job) endedWell() bool { return j.given.state() == slurm.Completed }
