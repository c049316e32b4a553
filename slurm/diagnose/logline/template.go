package logline

import "github.com/megatron-ops/megatron-ops/internal/lazy"

// varying matches the parts of a line that differ between runs: addresses, paths, identifiers and
// numbers.
var varying = lazy.New(`0x[0-9a-fA-F]+|/[\w./-]{2,}|\b[0-9a-f]{8,}\b|\b[A-Za-z]+[\w-]*\d[\w.-]*:\d+|\d+(?:[.:,/-]\d+)*`)

// Template replaces the varying parts of a line by "#".
func Template(text string) string { return varying.ReplaceAllString(text, "#") }

// DigitsAsZeros hashes a line with every digit as 0.
func DigitsAsZeros(text string) uint64 {
	const offset, prime = 14695981039346656037, 1099511628211 // FNV-1a
	h := uint64(offset)
	for i := range len(text) {
		c := text[i]
		if Digit(c) {
			c = '0'
		}
		h = (h ^ uint64(c)) * prime
	}
	return h
}
