// Package near measures how similar two words are, for "did you mean".
package near

import "unicode/utf8"

// Distance is the number of letters to insert, delete, change or swap with a neighbour
// to get from a to b (optimal string alignment).
func Distance(a, b string) int {
	x, y := []rune(a), []rune(b)
	before, last, row := make([]int, len(y)+1), make([]int, len(y)+1), make([]int, len(y)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(x); i++ {
		row[0] = i
		for j := 1; j <= len(y); j++ {
			change := 1
			if x[i-1] == y[j-1] {
				change = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+change)
			if i > 1 && j > 1 && x[i-1] == y[j-2] && x[i-2] == y[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(y)]
}

// Word returns the first of the nearest names whose distance from word is below limit,
// or "".
func Word(word string, names []string, limit int) string {
	best, length := "", utf8.RuneCountInString(word)
	for _, n := range names {
		if more := length - utf8.RuneCountInString(n); max(more, -more) >= limit {
			continue // the distance is at least the difference of the lengths, and a long word takes long
		}
		if d := Distance(word, n); d < limit {
			best, limit = n, d
		}
	}
	return best
}
