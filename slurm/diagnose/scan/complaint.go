package scan

import (
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logline"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/pattern"
)

// errorLevel is the level of an error as loggers write it before what they say.
var errorLevel = lazy.On("ERROR|FATAL|CRITICAL", `(?:^|[\s\[|:(>-])(?:ERROR|FATAL|CRITICAL)(?:[\]:|)]| -|\s)`)

// complains keeps what a program logged as an error, while the same process says nothing
// else before a launcher tells that one failed.
func (s *scanner) complains(m Mark, text string, h pattern.Hits) {
	head := text[:min(len(text), 160)]
	c := s.complaint
	told := c != nil && s.Failed != nil && s.Failed.Off > c.Off
	switch {
	case told || pattern.AgentLine(text):
	case errorLevel.MatchString(head):
		if pattern.FormOf(text) == pattern.Statement {
			s.complaint = &m
		}
	case h.Ask&pattern.AskExit != 0: // it may be a launcher's word
	case c != nil && c.Tag == m.Tag && text[0] != ' ' && pattern.FormOf(text) < pattern.Inert:
		s.complaint = nil
	}
}

// Complained is what the program of which a launcher tells how it left had logged as an
// error before, with nothing of it in between; nil where it had not.
func (f *Facts) Complained(launchers *Event) *Event {
	m := f.complaint
	if m == nil || m.Off > launchers.Off {
		return nil
	}
	e := *launchers
	t, text := logline.CutTag(m.Text)
	e.Off, e.Raw, e.Text, e.Tag, e.Agent, e.Before, e.After = m.Off, m.Text, strings.TrimSpace(text), t, false, m.At, launchers.After
	return &e
}
