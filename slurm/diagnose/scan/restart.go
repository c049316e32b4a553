package scan

import (
	"slices"
	"strings"
	"time"

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
	if t == logline.NoTag || len(h.Rows) > 0 || pattern.AgentLine(text) || text[0] == ' ' || strings.Contains(text, python.Header) {
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
	case w.n == 0 && s.streams[t] != nil && s.streams[t].raised != nil:
		w.n = 3 // what comes first behind an exception are words of an end
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

// dropLateStarts drops the starts of attempts that a process's own words show, if agents had reported as many ends of
// attempts before: what a process writes to its standard output may reach the file after the report of its end. Words that
// are in themselves those of a start must also be dated before a launcher's summary above them.
func (s *scanner) dropLateStarts() {
	newest := int64(-1) // the last start that is kept, of any kind
	for kind, starts := range s.Starts {
		begun := 0
		if kind == Restarted {
			begun = 1
		}
		kept := int64(-1)
		s.Starts[kind] = slices.DeleteFunc(starts, func(m Mark) bool {
			begun++
			told := slices.ContainsFunc(s.Elastic, func(e ElasticEntry) bool { return e.sums(m.Off, m.At) })
			if kind == Restarted && !slices.Contains(s.reborn, m.Off) || kind != Restarted && (m.Tag.Local < 0 || !told) || begun > s.ended(m) {
				kept, newest = m.Off, max(newest, m.Off)
				return false
			}
			begun--
			if i := slices.IndexFunc(s.Elastic, func(e ElasticEntry) bool { return e.Rank >= 0 && e.Off > kept && e.Off < m.Off }); i >= 0 {
				s.late = max(s.late, s.Elastic[i].Off)
			}
			return true
		})
	}
	if newest > s.late {
		s.late = 0 // those words were not the last
	}
	if m := s.Finished; m != nil {
		at, dated := logline.ParseTime(m.Text)
		if dated && slices.ContainsFunc(s.Elastic, func(e ElasticEntry) bool { return e.sums(m.Off, at) }) {
			s.Finished = nil // some work that came after the training failed
		}
	}
}

// sums reports whether an entry is one of a launcher's summary above a place that was written at a time before it.
func (e ElasticEntry) sums(off int64, at time.Time) bool {
	return e.Rank >= 0 && e.Off < off && at.Year() != logline.Yearless && !at.IsZero() && !at.After(e.At)
}

// ended returns how many attempts had ended before a mark, by the reports of its srun task's agents.
func (s *scanner) ended(m Mark) int {
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
	return ended / max(1, len(hosts))
}

// Late reports whether a mark, but not an event, is among what reached the file after a launcher's last words.
func (f *Facts) Late(m Mark, e *Event) bool { return f.late > e.Off && m.Off > f.late }

// restartedByReports records the attempts that torchelastic's agents gave up, if they reported more ends of attempts than
// they wrote summaries, and nothing else shows so many attempts. Agents without a label of srun may share the file, and some
// may leave without a summary. A process of which a summary tells is of the last attempt.
func (f *Facts) restartedByReports() {
	type process struct {
		task int // srun's label
		pid  string
	}
	inSummary := map[process]bool{}
	for _, e := range f.Elastic {
		if e.Rank >= 0 {
			inSummary[process{e.Task, e.Pid}] = true
		}
	}
	told, summed, final := map[int][]Mark{}, map[int]int{}, map[int]int{} // by srun's label
	for _, e := range f.Elastic {
		switch {
		case e.endsAttempt():
			if inSummary[process{e.Task, e.Pid}] {
				final[e.Task] = len(told[e.Task])
			}
			told[e.Task] = append(told[e.Task], Mark{Off: e.Off + 1, At: e.At})
		case e.first:
			summed[e.Task]++
		}
	}
	var longest []Mark
	for task, agents := range summed {
		var before []Mark
		last := len(told[task]) - agents
		if n, known := final[task]; known {
			last = min(last, n)
		}
		for i := last - 1; i >= 0; i -= agents {
			before = append(before, told[task][i])
		}
		slices.Reverse(before)
		if n := len(before); n > len(longest) || n > 0 && n == len(longest) && before[n-1].Off > longest[n-1].Off {
			longest = before // all agents wait for the last one before they start again
		}
	}
	if len(longest) > len(f.Starts[Restarted]) {
		f.Starts[Restarted] = longest
	}
}

// restartedBySteps records another attempt if different steps are reported after torchelastic's agent
// reported the end of a process. The agent ends all its processes then, but ranks that do not know of
// the death yet finish their step. The start of that attempt may be known already.
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
	known := slices.ContainsFunc(f.Starts[Restarted], func(m Mark) bool { return m.Off > f.Failed.Off })
	if len(steps) >= Enough && !known {
		f.Starts[Restarted] = append(f.Starts[Restarted], Mark{Off: f.Failed.Off + 1, At: f.Failed.At})
	}
}
