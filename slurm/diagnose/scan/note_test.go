package scan_test

import (
	"strings"
	"testing"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/diagnosetest"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/stretchr/testify/require"
)

// TestWhatANoteQuotesIsNoCause has, in words of our own, exceptions that stand in a
// message which calls itself informational, and one that ended its program.
func TestWhatANoteQuotesIsNoCause(t *testing.T) {
	const note = "Informational Message: this draw is about to be thrown away, since:\n"
	const quoted = "Exception: scale is 0, but must be positive (in 'growth.stan' at line 12)\n"
	steps := "Chain 1, 100 draws\nChain 1, 200 draws\n"
	for name, c := range map[string]struct{ log, class string }{
		"a sampler goes on":                  {steps + strings.Repeat(note+quoted+"\nOnce in a while this does no harm.\n", 2), outcome.UnknownExit},
		"it goes on to its end":              {steps + note + quoted + steps + "All done.\n", outcome.Success},
		"the same without the note":          {steps + quoted, outcome.UserException},
		"what follows a note is its own":     {steps + note + "and so on\n" + diagnosetest.Raised("ValueError: no draws"), outcome.UserException},
		"a name that only begins like those": {steps + "Informer.fit:\n" + diagnosetest.Raised("KeyError: 'y'"), outcome.UserException},
	} {
		t.Run(name, func(t *testing.T) {
			r := diagnosetest.With(t, c.log, diagnose.Context{JobState: "ENDED"})
			require.Equal(t, c.class, r.Class, r.RootLine)
		})
	}
}
