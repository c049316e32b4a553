package diagnose

import (
	"path"
	"sort"
	"strconv"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
)

// What the scripts that this program renders leave for a diagnosis (slurm/job
// traces.go): a line of each node that says what was started there, and a
// folder for each attempt.
var (
	startLine   = lazy.New(`^start: attempt=(\d+) node=\d+ host=([\w.-]+) ranks=(\d+)-(\d+) commit=(\S+) dirty=(\S+) argv=(\S+) env=(\S+)`)
	attemptName = lazy.New(`(?:^|/)attempt-(\d+)/`)
)

// A nodeStart is what one node said of its start: the ranks that it runs, and
// hashes of what they were started with.
type nodeStart struct {
	attempt     int
	host        string
	first, last int
	with        map[string]string // commit, dirty, argv, env → value or hash
}

// maxStarts bounds the start lines of one file.
const maxStarts = 1 << 14

// nodeStarted reads a node's start line. It reports whether the line is one.
func (s *scanner) nodeStarted(m mark, text string) bool {
	g := startLine.FindStringSubmatch(text)
	if g == nil || len(s.nodeStarts) >= maxStarts {
		return g != nil
	}
	n := nodeStart{host: g[2], with: map[string]string{"commit": g[5], "dirty": g[6], "argv": g[7], "env": g[8]}}
	n.attempt, _ = strconv.Atoi(g[1])
	n.first, _ = strconv.Atoi(g[3])
	n.last, _ = strconv.Atoi(g[4])
	newest := 0
	for _, o := range s.nodeStarts {
		newest = max(newest, o.attempt)
	}
	if n.attempt > newest { // the first node of another attempt begins it
		s.starts["requeue"] = append(s.starts["requeue"], m)
		s.counts = map[quota]int{}
	}
	s.hosts[n.host]++
	s.nodeStarts = append(s.nodeStarts, n)
	return true
}

// nodeStarts are the start lines of the last attempt, in the order of ranks.
func (j *job) nodeStarts() (last []nodeStart) {
	newest := 0
	for _, f := range j.files {
		for _, n := range f.nodeStarts {
			newest = max(newest, n.attempt)
		}
	}
	seen := map[string]bool{}
	for _, f := range j.files {
		for _, n := range f.nodeStarts {
			if n.attempt == newest && !seen[n.host] {
				seen[n.host] = true
				last = append(last, n)
			}
		}
	}
	sort.Slice(last, func(a, b int) bool { return last[a].first < last[b].first })
	return last
}

// startedOn gives the node of every rank that a start line names.
func (j *job) startedOn() map[int]string {
	nodes := map[int]string{}
	for _, n := range j.nodeStarts() {
		for r := n.first; r <= n.last && len(nodes) < 1<<16; r++ {
			nodes[r] = n.host
		}
	}
	return nodes
}

// attemptsOf finds the attempts that a file's path belongs to, the job's and
// torchrun's within it, each with the folder that holds the attempts.
func attemptsOf(name string) map[string]int {
	of := map[string]int{}
	for _, re := range []*lazy.Pattern{attemptName, attemptPath} {
		if m := re.FindStringSubmatchIndex(name); m != nil {
			n, _ := strconv.Atoi(name[m[2]:m[3]])
			of[path.Clean(name[:m[0]])] = n
		}
	}
	return of
}

// lastAttempts gives the newest attempt in each folder that holds attempts.
func lastAttempts(names []string) map[string]int {
	last := map[string]int{}
	for _, name := range names {
		for dir, n := range attemptsOf(name) {
			last[dir] = max(last[dir], n)
		}
	}
	return last
}

// earlier reports whether a file belongs to an attempt before the last.
func earlier(name string, last map[string]int) bool {
	for dir, n := range attemptsOf(name) {
		if n < last[dir] {
			return true
		}
	}
	return false
}
