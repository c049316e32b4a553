package scan

import (
	"strconv"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/pattern"
)

// agents are what torchelastic's agents wrote before their next report.
type agents struct {
	closing int      // processes that they told to end
	forced  []string // processes that they killed
}

var (
	// agentFailed matches an agent's report that a process failed.
	agentFailed = lazy.New(`failed \(exitcode: (-?\d+)\) local_rank: (\d+)(?: \(pid: (\d+)\))?`)
	// forced matches a process that torchelastic kills because SIGTERM did not end it.
	forced = lazy.New(`Unable to shutdown process (\d+) via \S+, forcefully exiting via`)
)

// tell handles an agent's line. It reports whether the line is the report of a failed process.
func (a *agents) tell(s *scanner, m Mark, text string, h pattern.Hits) bool {
	if g := find(h.Ask&pattern.AskAgent, agentFailed, text); g != nil {
		code, _ := strconv.Atoi(g[1])
		local, _ := strconv.Atoi(g[2])
		s.Failed = new(m)
		s.Launched, a.closing = max(s.Launched, a.closing+1), 0
		s.died(ElasticEntry{Off: m.Off, raw: m.Text, text: text, Rank: -1, Local: local, Pid: g[3], Exit: code}, m.Tag)
		return true
	}
	if strings.Contains(text, " closing signal ") {
		a.closing++
	}
	if g := find(h.Ask&pattern.AskAgent, forced, text); g != nil {
		a.forced = append(a.forced, g[1])
	}
	return false
}
