package logline

import (
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/redact"
)

// maxShown bounds a line that is shown.
const maxShown = 1200

// Show is a line as it may be shown: clean, free of secrets, on one line, and bounded.
func Show(raw string) string {
	s := redact.Text(redact.Clean(raw))
	s = strings.TrimRight(strings.ReplaceAll(s, "\n", " "), " \t")
	if len(s) > maxShown {
		s = strings.ToValidUTF8(s[:maxShown], "") + "…"
	}
	return s
}
