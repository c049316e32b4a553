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

// noPackage matches R's error about a package that is not installed, up to the quotation mark, which
// depends on the locale.
var noPackage = lazy.New(`there is no package called |namespace load failed for `)

// rLost begins the message of a worker of R's package parallel whose master has ended.
const rLost = "Error in unserialize(node$con)"

// rLanguage records R's errors, "Error in f(x) : why" or "Error: why", that ended the script.
func (s *scanner) rLanguage(t logline.Tag, text, raw string, off int64) {
	switch {
	case strings.HasPrefix(text, rLost):
	case strings.HasPrefix(text, "Error in ") || strings.HasPrefix(text, "Error: "):
		s.rError = &Mark{Off: off, Text: raw, At: s.now, Tag: t}
	case text == rHalted && s.rError != nil:
		e := &Event{
			Off: s.rError.Off, Raw: s.rError.Text, Text: strings.TrimSpace(s.rError.Text), Tag: t,
			Class: outcome.UserException, Weight: pattern.Specific,
		}
		if noPackage.MatchString(e.Text) {
			e.Class = outcome.ImportError
		}
		s.add(e)
		s.rError = nil
	}
}
