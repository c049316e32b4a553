package scan

import (
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logline"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/pattern"
)

// rHalted is R's line after an error that ended its script. It does not follow an error that try()
// caught.
const rHalted = "Execution halted"

// juliasStack is Julia's line between the error that ended its script and the frames.
const juliasStack = "Stacktrace:"

// noPackage matches the errors of R and Julia about a package that is not installed; R's up to the quotation
// mark, which depends on the locale.
var noPackage = lazy.New(`there is no package called |namespace load failed for |\bPackage \S+ not found in current path\b`)

// rLost begins the message of a worker of R's package parallel whose master has ended.
const rLost = "Error in unserialize(node$con)"

// goesStack is how Go begins the frames of what ended a program.
const goesStack = " [running]:"

// otherLanguages records the errors that ended a script of R, "Error in f(x) : why" or "Error: why", or of Julia,
// "ERROR: why"; and those of a program of Go, "panic: why", of Rust, or of Java.
func (s *scanner) otherLanguages(t logline.Tag, text, raw string, off int64) {
	switch {
	case strings.HasPrefix(text, rLost):
	case strings.HasPrefix(text, "Error in ") || strings.HasPrefix(text, "Error: ") || strings.HasPrefix(text, "ERROR: ") || strings.HasPrefix(text, "panic: "):
		s.scriptError = &Mark{Off: off, Text: raw, At: s.now, Tag: t, told: s.told}
	case strings.HasPrefix(text, "thread 'main'") && strings.Contains(text, " panicked at "), strings.HasPrefix(text, `Exception in thread "main" `):
		s.scriptEnded(Mark{Off: off, Text: raw, Tag: t})
	case s.scriptError == nil || s.scriptError.Tag != t:
	case text == rHalted,
		text == juliasStack && strings.HasPrefix(s.scriptError.Text, "ERROR: ") && s.told-s.scriptError.told < Enough,
		strings.HasPrefix(text, "goroutine ") && strings.HasSuffix(text, goesStack) && strings.HasPrefix(s.scriptError.Text, "panic: "):
		s.scriptEnded(*s.scriptError)
		s.scriptError = nil
	}
}

// scriptEnded records the line of an error that ended a program in another language. It is an exception, and no command's error
// after which the batch script may go on.
func (s *scanner) scriptEnded(m Mark) {
	e := &Event{Off: m.Off, Raw: m.Text, Text: strings.TrimSpace(m.Text), Tag: m.Tag, Class: outcome.UserException, Weight: pattern.Specific, Kind: "error"}
	if noPackage.MatchString(e.Text) {
		e.Class = outcome.ImportError
	} else if p := s.table.Match(e.Text); p != nil && p.Weight >= pattern.Specific {
		e.Class = p.Class
	}
	s.add(e)
}
