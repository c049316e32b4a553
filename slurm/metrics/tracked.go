package metrics

import (
	"bytes"
	"cmp"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
)

// Weights & Biases writes "wandb: 🚀 View run at URL" when a run begins and "View run NAME at: URL" when
// it ends; MLflow writes the second form. The address comes from a log, so the expression accepts only
// what is clearly the address of a run.
var (
	trackedWord = []byte("View run ")
	trackedForm = lazy.New(`View run (?:.* )?at:? +(https?://[A-Za-z0-9.-]+(?::[0-9]{1,5})?/[A-Za-z0-9._~%/#-]{0,300}\bruns/[A-Za-z0-9._~%-]{1,128})(?:\s|$)`)
)

// trackedAt returns the run's address in a line, or the empty string.
func trackedAt(line []byte) string {
	m := trackedForm.FindStringSubmatch(string(line))
	if m == nil {
		return ""
	}
	return m[1]
}

// TrackedIn returns the newest address that an experiment tracker wrote into a part of a log, or the
// empty string.
func TrackedIn(text []byte) string {
	found := ""
	for line := range bytes.Lines(text) {
		if bytes.Contains(line, trackedWord) {
			found = cmp.Or(trackedAt(line), found)
		}
	}
	return found
}
