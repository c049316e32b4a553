package scan

import "github.com/megatron-ops/megatron-ops/slurm/diagnose/logline"

// A row is what one process says again and again with other numbers in it, such
// as "Saved the best model" after every epoch. It went on after each, so the last
// one tells of no end, whatever its words.
type row struct{ times, first, last int } // places are counts of lines

const (
	oftenSaid = 4   // times that make a row
	manyRows  = 256 // forms of one file that are counted
)

// form32 hashes who says a line and what of it stays the same from one time to
// the next: everything but digits and the signs beside them.
func form32(t logline.Tag, text string) uint32 {
	const prime = 16777619
	h := uint32(2166136261)
	for _, n := range [3]int{t.Label, t.Local, t.Rank} {
		h = (h ^ uint32(n)) * prime
	}
	for i := range len(text) {
		if c := text[i]; !logline.Digit(c) && c != '.' && c != '-' && c != '+' {
			h = (h ^ uint32(c)) * prime
		}
	}
	return h
}

// count notes one time that a line is said.
func (f *Facts) count(t logline.Tag, text string) {
	if f.rows == nil {
		f.rows = map[uint32]row{}
	}
	h := form32(t, text)
	r, seen := f.rows[h]
	if !seen {
		if len(f.rows) >= manyRows {
			return
		}
		r.first = f.told
	}
	r.times, r.last = r.times+1, f.told
	f.rows[h] = r
}

// inRow reports whether a line is one of a row: said often, with as many other
// lines in between. Lines that stand together are a list, which ends something.
func (f *Facts) inRow(t logline.Tag, text string) bool {
	r := f.rows[form32(t, text)]
	others := r.last - r.first + 1 - r.times
	return r.times >= oftenSaid && others >= max(r.times, Farewell)
}
