package scan

import (
	"slices"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logline"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/pattern"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/python"
)

// A launcher that restarts its processes may not say so: torchrun reports it at a level that is mostly
// hidden, and a loop in a script uses words of its own. But the processes show it: after the launcher's
// report of a failure, one of them writes its first two lines again, or they report further steps.

// firstWords are the first lines of the process with one tag.
type firstWords struct {
	first  uint32 // hash of its first line
	second uint32 // hash of its second line, without numbers
	n      int    // how many of the two are known; more if it repeats the first line often
	said   int    // lines so far
	again  Mark   // where the first line occurs again
	half   bool   // the line before this one was the first line again
}

// restarted looks for the start of another attempt in a line that a launcher labelled and that matches
// no pattern.
func (s *scanner) restarted(t logline.Tag, text string, m Mark, h pattern.Hits) {
	if t == logline.NoTag || len(h.Rows) > 0 || pattern.AgentLine(text) || text[0] == ' ' || strings.HasPrefix(text, python.Header) {
		return
	}
	w := s.began[t]
	if w == nil {
		if len(s.began) >= 1<<14 {
			return
		}
		w = &firstWords{}
		s.began[t] = w
	}
	if w.said++; w.said > openingLines && (s.Failed == nil || s.Failed.Off <= s.lastStart) {
		return // true for most lines of most logs
	}
	exact, loose := exactOf(text), form32(logline.NoTag, opened(text))
	switch {
	case w.n == 0:
		w.first, w.n = exact, 1
	case w.n == 1:
		if exact != w.first {
			w.second, w.n = loose, 2
		}
	case w.n > 2:
	case s.Failed == nil || s.Failed.Off <= s.lastStart:
		if exact == w.first {
			w.n++
		}
	case exact == w.first:
		w.half, w.again = true, m
	case w.half && loose == w.second:
		s.Starts[Restarted], s.reborn = append(s.Starts[Restarted], w.again), append(s.reborn, w.again.Off)
		s.lastStart, s.counts = m.Off, map[quota]int{}
		w.half = false
	default:
		w.half = false
	}
}

// stepNumber matches the number of a step or iteration in a report.
var stepNumber = lazy.New(`(?i)\b(?:step|iter(?:ation)?)s?\W{0,3}(\d+)`)

// Step returns the number of the step or iteration in a report, or the empty string.
func (m Mark) Step() string {
	if g := stepNumber.FindStringSubmatch(m.Text); g != nil {
		return g[1]
	}
	return ""
}

// endsAttempt reports whether an entry is the report of torchelastic's agent that its processes failed. The agent writes one
// for each attempt, and a summary that names ranks only when it gives up.
func (e ElasticEntry) endsAttempt() bool {
	return e.Rank < 0 && e.Exit != 0 && strings.Contains(e.text, "(exitcode")
}

// settleRestarts decides at the end of a file which attempts there were.
func (s *scanner) settleRestarts() {
	s.dropLateStarts()
	s.restartedBySteps()
	s.restartedByReports()
}

// dropLateStarts drops the starts of attempts that only a process's first words show, if agents had reported as many ends of
// attempts before: what a process writes to its standard output may reach the file after the report of its end.
func (s *scanner) dropLateStarts() {
	begun := 1
	if len(s.reborn) == 0 {
		return
	}
	s.Starts[Restarted] = slices.DeleteFunc(s.Starts[Restarted], func(m Mark) bool {
		begun++
		if !slices.Contains(s.reborn, m.Off) {
			return false
		}
		ended, hosts := 0, map[string]bool{}
		for _, e := range s.Elastic {
			switch {
			case e.Task != m.Tag.Label:
			case e.Rank >= 0:
				hosts[e.Host] = true // each has an agent
			case e.endsAttempt() && e.Off < m.Off:
				ended++
			}
		}
		late := begun <= ended/max(1, len(hosts))
		if late {
			begun--
		}
		return late
	})
}

// restartedByReports records the attempts that torchelastic's agents gave up, if they reported more ends of attempts than
// they wrote summaries, and nothing else shows so many attempts. Agents without a label of srun may share the file.
func (f *Facts) restartedByReports() {
	told, summed := map[int][]Mark{}, map[int]int{} // by srun's label
	for _, e := range f.Elastic {
		switch {
		case e.endsAttempt():
			told[e.Task] = append(told[e.Task], Mark{Off: e.Off + 1, At: e.At})
		case e.first:
			summed[e.Task]++
		}
	}
	for task, agents := range summed {
		var before []Mark
		for i := len(told[task]) - agents - 1; i >= 0; i -= agents {
			before = append(before, told[task][i])
		}
		if slices.Reverse(before); len(before) > len(f.Starts[Restarted]) {
			f.Starts[Restarted] = before
		}
	}
}

// restartedBySteps records another attempt if different steps are reported after torchelastic's agent
// reported the end of a process. The agent ends all its processes then, but ranks that do not know of
// the death yet finish their step.
func (f *Facts) restartedBySteps() {
	told := func(e ElasticEntry) bool { return f.Failed != nil && e.Off == f.Failed.Off && e.endsAttempt() }
	if !slices.ContainsFunc(f.Elastic, told) {
		return
	}
	steps := map[string]bool{}
	for _, m := range f.Progress {
		if n := m.Step(); n != "" && m.Off > f.Failed.Off {
			steps[n] = true
		}
	}
	if len(steps) >= Enough {
		f.Starts[Restarted] = append(f.Starts[Restarted], Mark{Off: f.Failed.Off + 1, At: f.Failed.At})
	}
}
