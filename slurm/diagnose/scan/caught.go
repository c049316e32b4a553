package scan

import (
	"slices"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logline"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/python"
)

// A catcher is where a process raises an exception of one kind.
type catcher struct {
	tag   logline.Tag
	kind  string
	frame python.Frame
}

// A caught counts the exceptions of a catcher after each of which a line came.
type caught struct{ times, sentences int }

// catches counts how often an exception of the same kind was raised at the same place before, with a line after each. Two
// without a line between them are two processes'.
func (s *scanner) catches(e *Event) {
	frame, ok := e.Stack.Innermost()
	if !ok {
		return
	}
	key := catcher{e.Tag, e.Kind, frame}
	c, seen := s.caught[key]
	switch {
	case !seen && len(s.caught) >= manyRows:
		return
	case seen && (s.Ran.Sentences > c.sentences || e.Doubted): // or a line of a logger that announces it
		c.times++
	default:
		c.times = 0
	}
	c.sentences = s.Ran.Sentences
	s.caught[key] = c
	e.Caught = c.times
}

// WentOnAsBefore reports whether the first line after a place in a file is one that the program often writes, or many
// lines follow. A program that gives up writes another one, and one that tries the same again ends for what it tried.
func (f *Facts) WentOnAsBefore(off int64) bool {
	for i, m := range f.Last {
		if m.Off > off {
			_, text := logline.CutTag(m.Text)
			return i == 0 || f.rows[form32(m.Tag, text)].times > oftenSaid && !triesAgain.MatchString(text)
		}
	}
	return false
}

// triesAgain matches a line of a program that repeats what failed, or that a script starts again.
var triesAgain = lazy.New(`(?i)\b(?:re-?tr(?:y|ies|ying)|try(?:ing)?|tries|attempts?|again|re-?(?:start|launch|connect)\w*|back-?off|` +
	`wait(?:ing)?|sleep(?:ing)?)\b|重试|重启|再次|重新`)

// Outermost reports whether an exception left the program's outermost frame, so that it ended its process. Below a function
// that catches an exception, a traceback begins with that function.
func (e *Event) Outermost() bool {
	return e != nil && e.Stack != nil && len(e.Stack.Frames) > 0 && slices.Contains(starting, e.Stack.Frames[0].Function)
}

// starting are the functions with which a process begins: a program's module, and multiprocessing's.
var starting = []string{"<module>", "_bootstrap"}
