package logline

import "github.com/megatron-ops/megatron-ops/internal/lazy"

// varying matches the parts of a line that differ between runs: addresses, paths, identifiers and
// numbers.
var varying = lazy.New(`0x[0-9a-fA-F]+|/[\w./-]{2,}|\b[0-9a-f]{8,}\b|\b[A-Za-z]+[\w-]*\d[\w.-]*:\d+|\d+(?:[.:,-]\d+)*`)

// Template replaces the varying parts of a line by "#".
func Template(text string) string { return varying.ReplaceAllString(text, "#") }
