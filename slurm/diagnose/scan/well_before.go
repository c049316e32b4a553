package scan

import "slices"

// ReadsWellBefore reports whether a log, without the last lines from an event on, is that of a program that completed.
func (f *Facts) ReadsWellBefore(e *Event) bool {
	before := *f
	last := slices.IndexFunc(f.Last, func(m Mark) bool { return m.Off >= e.Off })
	if last <= 0 {
		return false
	}
	before.Last, before.told = f.Last[:last], f.Last[last-1].told
	if f.whole != nil && f.wholeOff >= e.Off {
		before.whole = nil
	}
	if f.synced != nil && f.synced.Sentences > e.Ran.Sentences {
		before.synced = nil
	}
	return !f.iteratedSince(e.Off) && before.Ending().Good()
}
