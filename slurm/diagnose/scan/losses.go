package scan

import (
	"slices"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
)

// losses are the values of losses in a program's own lines, one per epoch for instance. They are not the
// reports of a trainer's iterations.
type losses struct {
	nan    int  // lines whose losses are NaN
	first  Mark // the first of these
	run    int  // lines of a training with NaN where they had a number before, since the last loss with one
	begun  Mark // the first of these
	told   bool // some line has the value of a loss
	only   bool // the first is the result of an evaluation
	trains bool // another line has a number that a training has, such as that of an epoch
}

var (
	// nanLoss matches a value behind a sign, or between a counter and the end: "skip if loss nan" tells none.
	nanLoss = lazy.On("oss|OSS", `(?i)loss\w*['"]?\s*[:=]\s*[-+]?nan\b|(?:^\s*|\d\W+)(?:\w+[ _-])?loss\s+[-+]?nan\s*(?:$|[|,;])`)
	// resultNaN matches the result of an evaluation, which may be the only loss that a program tells.
	resultNaN = lazy.On("oss|OSS", `(?i)(?:\b|_)(?:eval(?:uation)?|test|val(?:idation)?)[ _-]?loss['"]?\s*[:=]?\s*[-+]?nan\b`)
	anyLoss   = lazy.On("oss|OSS", `(?i)loss[^|,;\d]{0,24}\d`)
	trainsOf  = lazy.On("poch|POCH|ter|ITER|train|lr", `(?i)\b(?:epoch|iter(?:ation)?)s?\b\W{0,3}\d|\btrain_\w+['"]?\s*[:= ]\s*\d|\blr['"]?\s*[:= ]\s*\d`)
)

// read takes in a line. The rows tell which forms of lines came before.
func (l *losses) read(m Mark, text string, rows map[uint32]row) {
	switch {
	case l.told && l.run == 0 && !namesNaN.MatchString(text):
	case anyLoss.MatchString(text):
		l.told, l.run = true, 0
	case l.told:
		if _, number := rows[form32(m.Tag, namesNaN.ReplaceAllString(text, "0"))]; number && nanLoss.MatchString(text) && !resultNaN.MatchString(text) {
			if l.run++; l.run == 1 {
				l.begun = m
			}
		}
	case nanLoss.MatchString(text):
		if l.nan++; l.nan == 1 {
			l.first, l.only = m, resultNaN.MatchString(text)
		}
	case !l.trains:
		l.trains = trainsOf.MatchString(text)
	}
}

// namesNaN matches what most lines lack.
var namesNaN = lazy.On("nan|NaN|NAN", `(?i)\bnan\b`)

// NoNumberAnyMore returns the first of the last losses of a training, if these are NaN, and numbers came before them.
func (f *Facts) NoNumberAnyMore() (Mark, bool) { return f.losses.begun, f.losses.run >= Enough }

// NeverANumber returns the first line with the value of a loss, if all values are NaN and there are several, or one is the
// result of a program that only evaluates.
func (f *Facts) NeverANumber() (Mark, bool) {
	return f.losses.first, !f.losses.told && (f.losses.nan > 1 || f.losses.only && !f.losses.trains && !slices.ContainsFunc(f.Progress, tellsLoss))
}

// tellsLoss reports whether a report of an iteration has the value of a loss.
func tellsLoss(m Mark) bool { return anyLoss.MatchString(m.Text) }
