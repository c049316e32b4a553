package logline

import (
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/redact"
)

// maxShown bounds the bytes of a line that Show returns.
const maxShown = 1200

// Show prepares a line for display: without control characters, secrets and newlines, and bounded in
// length.
func Show(raw string) string {
	s := redact.Text(redact.Clean(raw))
	s = strings.TrimRight(strings.ReplaceAll(s, "\n", " "), " \t")
	if len(s) > maxShown {
		s = strings.ToValidUTF8(s[:maxShown], "") + "…"
	}
	return s
}
