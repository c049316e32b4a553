package scan

import (
	"strconv"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
)

// StartLine matches a line that rendered scripts write for the diagnosis: each node says what it starts
// (slurm/job traces.go).
var StartLine = lazy.New(`^start: attempt=(\d+) node=\d+ host=([\w.-]+) ranks=(\d+)-(\d+) commit=(\S+) dirty=(\S+) argv=(\S+) env=(\S+)`)

// A NodeStart is the start line of one node: the ranks that it runs, and hashes of what they start
// with.
type NodeStart struct {
	Attempt     int
	Task        int // by srun's label; -1 without one
	Host        string
	First, Last int
	With        map[string]string // commit, dirty, argv, env → value or hash
}

// maxStarts bounds the start lines of one file.
const maxStarts = 1 << 14

// nodeStarted records a node's start line. It reports whether the line is one.
func (s *scanner) nodeStarted(m Mark, text string) bool {
	g := StartLine.FindStringSubmatch(text)
	if g == nil || len(s.NodeStarts) >= maxStarts {
		return g != nil
	}
	n := NodeStart{Task: m.Tag.Label, Host: g[2], With: map[string]string{"commit": g[5], "dirty": g[6], "argv": g[7], "env": g[8]}}
	n.Attempt, _ = strconv.Atoi(g[1])
	n.First, _ = strconv.Atoi(g[3])
	n.Last, _ = strconv.Atoi(g[4])
	if n.Attempt > s.attempt { // the first node of a new attempt begins that attempt
		s.attempt = n.Attempt
		s.Starts[Requeued] = append(s.Starts[Requeued], m)
		s.counts = map[quota]int{}
	}
	s.Hosts[n.Host]++
	s.NodeStarts = append(s.NodeStarts, n)
	return true
}
