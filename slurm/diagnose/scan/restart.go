package scan

import (
	"slices"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logline"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/pattern"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/python"
)

// A launcher that starts its processes again does not always say so: torchrun tells it
// at a level that is seldom shown, and a loop in a script in words of its own. The
// processes show it: one of them says its first two sentences once more after the
// launcher's word that one of them failed, or they report further steps.

// firstWords is how the process of one tag began.
type firstWords struct {
	first  uint32 // what it says first, to the letter
	second uint32 // and then, whatever numbers are in it
	n      int    // of these, or more: it says the first over and over
	said   int    // sentences so far
	again  Mark   // where the first was said again
	half   bool   // it was, by the line before this one
}

// restarted looks for the start of another attempt in a line that a launcher tagged
// and that complains of nothing.
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
		return // most lines, of most logs
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
		s.Starts[Restarted] = append(s.Starts[Restarted], w.again)
		s.lastStart, s.counts = m.Off, map[quota]int{}
		w.half = false
	default:
		w.half = false
	}
}

// stepNumber is the number of a step or iteration that a line reports.
var stepNumber = lazy.New(`(?i)\b(?:step|iter(?:ation)?)s?\W{0,3}(\d+)`)

// Step is the number of the step or iteration that a line reports; empty where it has none.
func (m Mark) Step() string {
	if g := stepNumber.FindStringSubmatch(m.Text); g != nil {
		return g[1]
	}
	return ""
}

// restartedBySteps notes another attempt where torchelastic's agent told how a process
// ended, with which it ends all of its own, and different steps are reported after that:
// ranks that do not know yet that another one died end the one that they are in.
func (f *Facts) restartedBySteps() {
	told := func(e ElasticEntry) bool {
		return f.Failed != nil && e.Off == f.Failed.Off && e.Exit != 0 && strings.Contains(e.text, "(exitcode")
	}
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
