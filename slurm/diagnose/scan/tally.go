package scan

import (
	"strconv"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logline"
)

// A tally is how far a progress bar or a line has come in steps or epochs.
type tally struct {
	n, of  int
	bar    bool // it is that of a bar
	epoch  bool // it counts epochs, which go around other bars
	within bool // in the midst of an epoch, by the line's own word
}

var tallyForm = lazy.On("/|of|OF", `(?i)\b(\d+) ?/ ?(\d+)\b(?: \[[\d:]+<|\s*\|)|(epoch|step|iter(?:ation)?)\D{0,3}(\d+) ?(?:/|of) ?(\d+)\b`)

// richTally is that of a bar that the library rich draws.
var richTally = lazy.On("━", `━ +(\d[\d,]*)/(\d[\d,]*) +\[`)

// tallyIn is the first tally in a line.
func tallyIn(text string) (c tally, ok bool) {
	g := tallyForm.FindStringSubmatch(text)
	if g == nil {
		if g = richTally.FindStringSubmatch(text); g == nil {
			return c, false
		}
		c.n, _ = strconv.Atoi(strings.ReplaceAll(g[1], ",", ""))
		c.of, _ = strconv.Atoi(strings.ReplaceAll(g[2], ",", ""))
		c.bar = true
		return c, true
	}
	c.n, _ = strconv.Atoi(g[1] + g[4])
	c.of, _ = strconv.Atoi(g[2] + g[5])
	c.bar, c.epoch = g[3] == "", strings.EqualFold(g[3], "epoch")
	c.within = c.epoch && midEpoch(text)
	return c, true
}

// midEpoch reports whether a line that counts epochs says that its own is not at its
// last batches.
func midEpoch(text string) bool {
	g := innerCount.FindStringSubmatch(text)
	if g == nil {
		return false
	}
	n, _ := strconv.Atoi(g[1])
	of, _ := strconv.Atoi(g[2])
	return 10*n < 9*of
}

// innerCount is a count within an epoch that the same line reports.
var innerCount = lazy.New(`(?i)\b(?:batch|step|iter(?:ation)?)\D{0,3}(\d+) ?(?:/|of) ?(\d+)\b`)

// An epochCount follows a count of epochs: how many lines each takes shows whether the
// last one was written to its end.
type epochCount struct {
	n, of int // the last, as counted, and of how many
	at    int // how many lines had been told when it began
	lines int // of the one before it
}

// read takes in a count of epochs, which is the told-th line's.
func (c *epochCount) read(in tally, told int) {
	if in.n != c.n || in.of != c.of {
		*c = epochCount{n: in.n, of: in.of, at: told, lines: told - c.at}
	}
}

// complete reports whether as many lines followed the last epoch's first one as the
// epoch before it had, and not many more.
func (c epochCount) complete(told, fromZero int) bool {
	last := c.of > 1 && (c.n >= c.of || c.n == c.of-1 && c.of == fromZero)
	after := told - c.at + 1
	return last && after >= c.lines && after-c.lines <= LongTail
}

// A plan is a number of iterations that a trainer announced, and whether its reports,
// which number the iterations alone, came to the last.
type plan struct {
	of      int
	reached int // how many lines had been told when it did, without those of bars on their way
	spent   int // how often a report's own estimate of the time left came to nothing
	etas    etas
}

// etas follows the estimates of the time left that stand in reports of epochs.
type etas struct {
	epoch   int  // the last in which one stood
	epochs  int  // in how many they did
	left    int  // seconds, by the last
	at      int  // how many lines had been told by then
	between int  // how many stood between the last one of an epoch and the next one's first
	final   bool // less is left than from one to the next: no other can come
	ofEach  bool // one did in the midst of the work: they are of an epoch each
}

// announcedPlan is how trainers announce it: TransUNet and its heirs, and others.
var announcedPlan = lazy.New(`(?i)\biterations? per epoch\W+(\d+) max iterations\b|^\W*total (?:training )?(?:iterations|steps) *[:=] *(\d+)$`)

// announcedEpochs is how OpenMMLab's trainers do.
var announcedEpochs = lazy.New(`\bworkflow: \[.*\], max: (\d+) epochs$`)

// numbered is an iteration's report, or OpenMMLab's of the evaluation after an epoch.
var numbered = lazy.New(`(?i)^(?:\[[^\]]*\] ?)?(?:global[ _]?)?(?:iteration|iter|step)[ :=#]+(\d+)\b[^/]|\bEpoch\(val\) \[(\d+)\]\[`)

// noTimeLeft is an iteration's report, which stands in no epoch, that leaves no time.
var noTimeLeft = lazy.On("0:00:00", `(?i)(?:^|[\s|\]>])(?:global[ _]?)?(?:iteration|iter|step)s?[ :=#]+\d+\b.*\beta\W{1,3}(?:0 days?,? ?)?0?0:00:00\b`)

// etaInEpoch is a report that stands in an epoch, and the time that it leaves.
var etaInEpoch = lazy.On("eta|ETA", `(?i)\bepoch(?:\(train\))?[ :=#[]*(\d+)\b.*\beta\W{1,3}(?:(?:(\d+) days?,? ?)?(\d+):(\d\d):(\d\d)\b)?`)

// fewEpochs are not enough to tell an estimate for all epochs from one for each, which
// comes to nothing in the first one already.
const fewEpochs = 3

// timeSpent reports whether a line leaves no time, and whether that is all the work's.
func (p *plan) timeSpent(text string, told int) (spent, whole bool) {
	if at := noTimeLeft.FindStringIndex(text); at != nil && !strings.Contains(strings.ToLower(text[:at[0]]), "epoch") {
		return true, true
	}
	return p.etas.read(text, told)
}

// read takes in the told-th line, and reports whether it leaves no time, and whether that
// is all the work's.
func (e *etas) read(text string, told int) (spent, whole bool) {
	g := etaInEpoch.FindStringSubmatch(text)
	if g == nil {
		return false, false
	}
	if n, _ := strconv.Atoi(g[1]); n != e.epoch {
		e.epoch, e.between, e.ofEach = n, told-e.at, e.ofEach || e.final
		e.epochs++
	}
	if g[3] == "" {
		return false, false
	}
	left := 0
	for i, in := range []int{24, 60, 60, 1} { // from days to seconds
		n, _ := strconv.Atoi(g[2+i])
		left = (left + n) * in
	}
	e.final = left < e.left-left
	e.left, e.at = left, told
	return left == 0, e.epochs >= fewEpochs
}

// over reports whether no other report can come, and as much came after the last as
// stands between two epochs, and not much more.
func (e etas) over(told int) bool {
	after := told - e.at
	return e.final && !e.ofEach && e.epochs >= fewEpochs && after > 0 && after >= e.between-1 && after-e.between <= LongTail
}

// over reports whether it did, and not much came after.
func (p plan) over(told int) bool {
	return p.reached > 0 && told-p.reached <= LongTail || p.etas.over(told)
}

// read takes in the told-th line.
func (p *plan) read(text string, told int) {
	if spent, whole := p.timeSpent(text, told); spent {
		p.reached = 0 // one that comes to nothing again is that of a part of the work
		if p.spent++; p.spent == 1 && whole {
			p.reached = told
		}
		return
	}
	if strings.HasSuffix(text, " epochs") {
		if g := announcedEpochs.FindStringSubmatch(text); g != nil {
			p.of, _ = strconv.Atoi(g[1])
			return
		}
	}
	if g := announcedPlan.FindStringSubmatch(text); g != nil {
		p.of, _ = strconv.Atoi(g[1] + g[2])
		return
	}
	if p.of == 0 {
		return
	}
	if g := numbered.FindStringSubmatch(text); g != nil && g[1]+g[2] == strconv.Itoa(p.of) {
		p.reached = told
	}
}

// barName is what of a bar's line stays the same from one time to the next: what stands
// before its first digit, and where it ends.
func barName(text string) string {
	name := strings.TrimSpace(text)
	if i := strings.IndexAny(name, "0123456789|"); i >= 0 {
		name = name[:i]
	}
	return "bar " + strings.TrimSpace(name)
}

// counted reads the counts of a line, and reports whether it is a bar's.
func (s *scanner) counted(t logline.Tag, text string) (bar bool) {
	c, ok := tallyIn(text)
	switch {
	case !ok:
	case c.bar:
		s.reported, s.reports = s.told, true
		if c.of > 0 && c.n == c.of {
			s.count(t, barName(text))
		} else {
			s.drawn++ // once more, as a line of its own
		}
	default:
		if c.epoch {
			s.epochs.read(c, s.told)
		}
		if c.n == 0 {
			s.fromZero = c.of
		}
	}
	s.plan.read(text, s.told-s.drawn)
	return c.bar
}
