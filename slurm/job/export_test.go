package job

import "strings"

// Knows reports whether text is, or is part of, a sentence of the table.
func Knows(text string) bool {
	for _, s := range sentences {
		if strings.Contains(s.EN, text) {
			return true
		}
	}
	return false
}
