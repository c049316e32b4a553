package scan

import (
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logline"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/pattern"
)

// ErrorLevel matches the levels from error on, which loggers write before the message.
var ErrorLevel = lazy.On("ERROR|FATAL|CRITICAL", `(?:^|[\s\[|:(>-])(?:ERROR|FATAL|CRITICAL)(?:[\]:|)]| -|\s)`)

// complains keeps the last error that a program logged. It drops the error if the same process
// writes another statement before a launcher reports a failed process.
func (s *scanner) complains(m Mark, text string, h pattern.Hits) {
	head := text[:min(len(text), 160)]
	c := s.complaint
	told := c != nil && s.Failed != nil && s.Failed.Off > c.Off
	switch {
	case told || pattern.AgentLine(text):
	case ErrorLevel.MatchString(head):
		if pattern.FormOf(text) == pattern.Statement {
			s.complaint = new(m)
		}
	case h.Ask&pattern.AskExit != 0: // this may be a launcher's report
	case c != nil && c.Tag == m.Tag && text[0] != ' ' && pattern.FormOf(text) < pattern.Inert:
		s.complaint = nil
	}
}

// A Departure is a process that ends by itself, as sys.exit("…") makes it do: the interpreter destroys its
// communicators, of which PyTorch warns.
type Departure struct {
	Mark      // the warning
	Said Mark // what the process wrote just before; without text if it may have written nothing
}

// exitWarning is in PyTorch's warning of a process that ends with its communicators.
const exitWarning = "destroy_process_group() was not called before program exit"

// departs keeps the departures of processes.
func (s *scanner) departs(m Mark, text string) {
	if strings.Contains(text, exitWarning) && len(s.Departures) < 1<<10 {
		said := s.previous
		t := said.Tag
		another := t.Label != m.Tag.Label || t.Local != m.Tag.Local || t.Host != m.Tag.Host || t.Rank >= 0 && t.Rank != m.Tag.Rank
		if another || !isParting(s.previousText) {
			said = Mark{}
		}
		s.Departures = append(s.Departures, Departure{m, said})
	}
	s.previous, s.previousText = m, text
}

// isParting reports whether a line may tell why a program ends: no launcher or library wrote it, and it is no table,
// no line logged below error and no report of progress.
func isParting(text string) bool {
	return !strings.HasPrefix(text, " ") && pattern.FormOf(text) < pattern.Report && !pattern.AgentLine(text) &&
		!libraryLog.MatchString(text) && !iteration.MatchString(text)
}

// libraryLog matches the beginning of a line of a C++ library's logger (PyTorch's own writes March as 3), of NCCL, and of
// a warning of Python.
var libraryLog = lazy.New(`^\[?[IWEF]\d{3,4} |^\S+ \[\d+\] NCCL |^\S+:\d+: \w*Warning: `)

// iteration matches the report of a program on one iteration.
var iteration = lazy.New(`(?i)\b(?:iter(?:ation)?|step|epoch)\b\D{0,3}\d`)

// Complained returns the error that a program logged as its last statement before a launcher
// reported its exit code, as an event; nil if there is none. The file may be the rank's own, with another
// number than the launcher's.
func (f *Facts) Complained(launchers *Event, file int) *Event {
	m := f.complaint
	if m == nil || file == launchers.File && m.Off > launchers.Off {
		return nil
	}
	e := *launchers
	e.File = file
	t, text := logline.CutTag(m.Text)
	e.Off, e.Raw, e.Text, e.Tag, e.Agent, e.Before, e.After = m.Off, m.Text, strings.TrimSpace(text), t, false, m.At, launchers.After
	return &e
}
