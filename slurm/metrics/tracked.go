package metrics

import (
	"bytes"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
)

// Weights & Biases writes "wandb: 🚀 View run at URL" when a run begins and "View run
// NAME at: URL" when it ends; MLflow has the second form. The address is text from a
// log: only what cannot be anything else is taken for one.
var (
	trackedWord = []byte("View run ")
	trackedForm = lazy.New(`View run (?:.* )?at:? +(https?://[A-Za-z0-9.-]+(?::[0-9]{1,5})?/[A-Za-z0-9._~%/#-]{0,300}\bruns/[A-Za-z0-9._~%-]{1,128})(?:\s|$)`)
)

// trackedAt is the run's address in a line; empty where it has none.
func trackedAt(line []byte) string {
	m := trackedForm.FindStringSubmatch(string(line))
	if m == nil {
		return ""
	}
	return m[1]
}

// TrackedIn is the address that a tracker of experiments gave for a run, by a part of
// its log: the newest; empty where there is none.
func TrackedIn(text []byte) string {
	found := ""
	for line := range bytes.Lines(text) {
		if bytes.Contains(line, trackedWord) {
			if at := trackedAt(line); at != "" {
				found = at
			}
		}
	}
	return found
}
