package scan

import (
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logline"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/pattern"
)

// A row describes a line that one process writes again and again with other numbers, such as "Saved the
// best model" after every epoch. The process went on after each of them, so even the last one says
// nothing about an end.
type row struct {
	times, first, last int  // first and last are values of Facts.told
	tells, works       bool // tells: it is frequent and has a number; works: it also reports work
}

const (
	oftenSaid  = 4    // a line that occurs so often is a row
	manyRows   = 4096 // forms of lines that are counted in one file
	manyRounds = 100  // no list has so many entries
	manyBehind = 4    // so many lines after a loop show that it ended, with or without numbers
)

// form32 hashes a line without the parts that differ between repetitions, digits and the signs beside
// them, together with the tag of its process.
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

// count counts a line by its form.
func (f *Facts) count(t logline.Tag, text string) {
	if f.rows == nil {
		f.rows = map[uint32]row{}
	}
	h := form32(t, text)
	r, seen := f.rows[h]
	f.sequel.read(text, r, seen)
	if !seen {
		f.fresh++
		if len(f.rows) >= manyRows {
			return
		}
		r.first = f.told
	}
	if r.tells {
		f.between[min(f.fresh, len(f.between)-1)]++
		f.fresh = 0
	}
	r.times, r.last = r.times+1, f.told
	if r.times > oftenSaid && !r.tells && figure.MatchString(text) && !arrayRow.MatchString(text) { // an array is no loop
		r.tells, r.works = true, ofWork.MatchString(text)
	}
	f.rows[h] = r
}

// figure matches a number that is a value, not only an index.
var figure = lazy.New(`\d\.\d|[:=]\s*-?\d|\d ?%`)

// ofWork matches words with which lines of a loop report work.
var ofWork = lazy.New(`(?i)epoch|iter|step|loss|acc|batch`)

// lastOfLoop returns the position (Facts.told) of the last line of a loop, and whether the loop's lines
// report work.
func (f *Facts) lastOfLoop() (last int, works bool) {
	last, works = f.reported, f.reports
	for _, r := range f.rows {
		if r.tells {
			last, works = max(last, r.last), works || r.works || r.times >= manyRounds
		}
	}
	return last, works
}

// leftLoop reports whether the last lines are the first of their forms after the lines of a loop, and
// have numbers or are several. A program writes something once, such as its results, when it has left
// its loop normally. A line that announces an action does not count, as its result is missing.
func (f *Facts) leftLoop() bool {
	loop, works := f.lastOfLoop()
	if !works || f.amidBar() || f.told-loop > 2*Farewell || f.served > loop+1 {
		return false
	}
	said, left, behind := false, false, 0
	for _, m := range f.talk() {
		_, text := logline.CutTag(m.Text)
		if barEnd.MatchString(text) || drawnBar.MatchString(text) {
			continue // a bar at its end is no result: bars of one step are drawn at any time
		}
		r, known := f.rows[form32(m.Tag, text)]
		if left = known && r.first > loop && !announces(text) && !tellsFailure(message(text)) && !tellsOfRound(text); left {
			behind++
			said = said || behind >= manyBehind || figure.MatchString(text) || arrayRow.MatchString(text)
		}
	}
	return said && left && !f.usual(behind)
}

// usual reports whether so many forms of lines or more came up for the first time between two lines of a loop, and often: each of
// its rounds has a text of its own.
func (f *Facts) usual(forms int) bool {
	rounds, times := 0, 0
	for n, k := range f.between {
		if rounds += k; n >= min(forms, len(f.between)-1) {
			times += k
		}
	}
	return times > oftenSaid && 8*times > rounds
}

// amidBar reports whether the last progress bar is not full: its loop was not left, whatever was written beside it.
func (f *Facts) amidBar() bool {
	for _, m := range tail(f.Progress, 1) {
		_, text := logline.CutTag(m.Text)
		c, ok := tallyIn(text)
		return ok && c.bar && c.n < c.of
	}
	return false
}

// tellsFailure reports whether a line tells of a failure, as make's "Error 1", srun's reports and the driver's words on a GPU do:
// it is no result of a loop. A count of failures is one.
func tellsFailure(text string) bool {
	return pattern.AgentLine(text) || strings.Contains(text, "NVRM: ") || undoesEnd(text) ||
		(denied.MatchString(text) || noSuccess.MatchString(text)) && !pattern.ZeroOf.MatchString(text)
}

// lostAtEnd matches a line whose last word is that for a failure.
var lostAtEnd = lazy.New(`(?i)(?:\b(?:failed|crashed|aborted|interrupted|cancell?ed|(?-i:FAIL(?:URE)?))|\bError \d+|失败|取消|中止|中断)[^\w\p{Han}]*$`)

// statusField matches a field for how a program ended, anywhere in a line: "END rc=1 elapsed=3121s". Solvers number their states.
var statusField = lazy.New(`(?i)\b` + statusName + `[:=] ?` + notZero)

// onlyOnce reports whether the last line is the only one of its form and follows a loop.
func (f *Facts) onlyOnce(t logline.Tag, text string) bool {
	_, works := f.lastOfLoop()
	return works && f.rows[form32(t, text)].times == 1
}

// announces reports whether a line says what the program does next.
func announces(text string) bool {
	return doing.MatchString(text) && !lastAct.MatchString(text) || heads.MatchString(text) || pattern.WarningLevel.MatchString(text)
}

// nextPart reports whether a line within the last ones announces a further part of the work, as "M step..."
// does. What a program otherwise says it is doing may be the handling of its results.
func nextPart(text string) bool {
	return strings.HasSuffix(text, "...") && !endWords(text) && (beginning.MatchString(text) || !doing.MatchString(text))
}

// doing matches such a line, with or without a logger's prefix.
var doing = lazy.New(`(?i)^[^a-z]*(?:[\w./-]+: )?[a-z]+ing\b|(?:[\])>:]|INFO)(?: -)? *[a-z]+ing\b`)

// inRow reports whether a line occurs often, with a line at least between each two. Consecutive
// lines of one form are a list, which may be at the end.
func (f *Facts) inRow(t logline.Tag, text string) bool {
	r := f.rows[form32(t, text)]
	others, gaps := r.last-r.first+1-r.times, r.times-1
	if strings.HasPrefix(text, barPrefix) {
		gaps /= 2 // tqdm may draw a full bar twice
	}
	return r.times >= oftenSaid && others >= max(gaps, Farewell)
}

// arrayRow matches a row of an array as NumPy and PyTorch print it, or the dots for rows that they leave out.
var arrayRow = lazy.On("[|...,", `^\s*(?:\[+[\d\s.,e+-]+\]*[,)]*|\.\.\.,)$`)
