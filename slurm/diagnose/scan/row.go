package scan

import (
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logline"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/pattern"
)

// A row is what one process says again and again with other numbers in it, such
// as "Saved the best model" after every epoch. It went on after each, so the last
// one tells of no end, whatever its words.
type row struct {
	times, first, last int  // places are counts of lines
	tells, works       bool // it is said often and tells a number, and reports work
}

const (
	oftenSaid  = 4    // times that make a row
	manyRows   = 4096 // forms of one file that are counted
	manyRounds = 100  // of which no list is
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
	if r.times > oftenSaid && !r.tells && figure.MatchString(text) {
		r.tells, r.works = true, ofWork.MatchString(text)
	}
	f.rows[h] = r
}

// figure is a number that a line tells, not one that only numbers it.
var figure = lazy.New(`\d\.\d|[:=]\s*-?\d|\d ?%`)

// ofWork are the words with which the lines of a loop report work.
var ofWork = lazy.New(`(?i)epoch|iter|step|loss|acc|batch`)

// lastOfLoop is where the last line stood of those that a loop said again and again, and
// whether they report work.
func (f *Facts) lastOfLoop() (last int, works bool) {
	last, works = f.reported, f.reports
	for _, r := range f.rows {
		if r.tells {
			last, works = max(last, r.last), works || r.works || r.times >= manyRounds
		}
	}
	return last, works
}

// leftLoop reports whether the last lines are the first of their kind behind those that a
// loop said again and again, and tell numbers: what a program says once, such as its
// results, it says when it has left the loop by itself. One that says what it is doing
// has not said what came of it.
func (f *Facts) leftLoop() bool {
	loop, works := f.lastOfLoop()
	if !works || f.told-loop > 2*Farewell {
		return false
	}
	said, left, warned := false, false, false
	for _, m := range f.talk() {
		_, text := logline.CutTag(m.Text)
		if warned = pythonWarns.MatchString(text) || warned && strings.HasPrefix(text, "  "); warned {
			continue // with the line of code that it is about: Python says so of whoever ends, however it does
		}
		r, known := f.rows[form32(m.Tag, text)]
		if left = known && r.first > loop && !announces(text); left && (figure.MatchString(text) || arrayRow.MatchString(text)) {
			said = true
		}
	}
	return said && left
}

// announces reports whether a line says what is done next.
func announces(text string) bool {
	return doing.MatchString(text) && !lastAct.MatchString(text) || heads.MatchString(text) || pattern.WarningLevel.MatchString(text)
}

// doing begins such a line, or follows what a logger begins it with.
var doing = lazy.New(`(?i)^[^a-z]*(?:[\w./-]+: )?[a-z]+ing\b|(?:[\])>:]|INFO) *[a-z]+ing\b`)

// inRow reports whether a line is one of a row: said often, with as many other
// lines in between. Lines that stand together are a list, which ends something.
func (f *Facts) inRow(t logline.Tag, text string) bool {
	r := f.rows[form32(t, text)]
	others := r.last - r.first + 1 - r.times
	return r.times >= oftenSaid && others >= max(r.times, Farewell)
}
