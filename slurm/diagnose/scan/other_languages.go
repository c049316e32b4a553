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

// otherLanguages records the errors that ended a script of R, "Error in f(x) : why" or "Error: why", or of Julia,
// "ERROR: why".
func (s *scanner) otherLanguages(t logline.Tag, text, raw string, off int64) {
	switch {
	case strings.HasPrefix(text, rLost):
	case strings.HasPrefix(text, "Error in ") || strings.HasPrefix(text, "Error: ") || strings.HasPrefix(text, "ERROR: "):
		s.scriptError = &Mark{Off: off, Text: raw, At: s.now, Tag: t, told: s.told}
	case s.scriptError == nil || s.scriptError.Tag != t:
	case text == rHalted, text == juliasStack && strings.HasPrefix(s.scriptError.Text, "ERROR: ") && s.told-s.scriptError.told < Enough:
		e := &Event{
			Off: s.scriptError.Off, Raw: s.scriptError.Text, Text: strings.TrimSpace(s.scriptError.Text), Tag: t,
			Class: outcome.UserException, Weight: pattern.Specific,
		}
		if noPackage.MatchString(e.Text) {
			e.Class = outcome.ImportError
		} else if p := s.table.Match(e.Text); p != nil && p.Weight >= pattern.Specific {
			e.Class = p.Class
		}
		s.add(e)
		s.scriptError = nil
	}
}
