package scan

import "github.com/megatron-ops/megatron-ops/internal/lazy"

// losses are the values of losses in a program's own lines, one per epoch for instance. They are not the
// reports of a trainer's iterations.
type losses struct {
	nan   int  // lines whose losses are NaN
	first Mark // the first of these
	told  bool // some line has the value of a loss
}

var (
	nanLoss = lazy.On("oss|OSS", `(?i)loss\w*['"]?\s*[:=]\s*[-+]?nan\b`)
	anyLoss = lazy.On("oss|OSS", `(?i)loss[^|,;\d]{0,24}\d`)
)

// read takes in a line.
func (l *losses) read(m Mark, text string) {
	switch {
	case l.told:
	case anyLoss.MatchString(text):
		l.told = true
	case nanLoss.MatchString(text):
		if l.nan++; l.nan == 1 {
			l.first = m
		}
	}
}

// NeverANumber returns the first line with the value of a loss, if there are several and all values are NaN.
func (f *Facts) NeverANumber() (Mark, bool) {
	return f.losses.first, f.losses.nan > 1 && !f.losses.told
}
