package scan

import (
	"slices"
	"strconv"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logline"
)

// A tally is the progress of a bar or a line, in steps or epochs.
type tally struct {
	n, of  int
	bar    bool // the tally is a progress bar's
	epoch  bool // it counts epochs, which contain other bars
	within bool // the line says that its epoch is not at its end
}

var tallyForm = lazy.On("/|of|OF", `(?i)\b(\d+) ?/ ?(\d+)\b(?: \[[\d:]+<|\s*\|| \[[=>.]{10,}\]| ━{10,})|(epoch|step|iter(?:ation)?)(?: is \[|\D{0,3})(\d+) ?(?:/|of) ?(\d+)\b`)

// richTally matches a progress bar of the library rich.
var richTally = lazy.On("━", `━ +(\d[\d,]*)/(\d[\d,]*) +\[`)

// tallyIn returns the first tally in a line.
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

// beginsEpoch reports whether a line names the work of an epoch behind its count, and no figure and no word of an end:
// its program has only begun the epoch.
func beginsEpoch(text string) bool {
	at := epochNamed.FindStringIndex(text)
	return at != nil && !figure.MatchString(text[at[1]:]) && !endWords(text)
}

var epochNamed = lazy.New(`(?i)\bepoch\W{0,3}\d+ ?(?:/|of) ?\d+(?::| [–-]) +[a-z]`)

// stepNamed matches the heading of one of the parts of a work: "Step 5/5 : CMD".
var stepNamed = lazy.On("tep|TEP", `(?i)\bstep \d+ ?(?:/|of) ?\d+ ?: +[a-z][^\d:=]*$`)

// warmUp matches a count of what precedes the work.
var warmUp = lazy.On("arm|ARM", `(?i)\bwarm-?up (?:step|iter(?:ation)?)s?\W{0,3}\d`)

// reached reports whether a count is at its end, or one behind it. A count that goes on beyond its total
// does not tell when it ends.
func reached(n, of int) bool { return n == of || n == of+1 }

// midEpoch reports whether a line that counts epochs says that its epoch is not among its last batches.
func midEpoch(text string) bool {
	g := innerCount.FindStringSubmatch(text)
	if g == nil {
		return false
	}
	n, of := atoi(g[1]+g[3]), atoi(g[2]+g[4])
	return 10*n < 9*of
}

// innerCount matches a count within an epoch in the same line.
var innerCount = lazy.New(`(?i)\b(?:batch|step|iter(?:ation)?)(?: is \[|\D{0,3})(\d+) ?(?:/|of) ?(\d+)\b|\b(\d+)/(\d+) \[[\d:]+<`)

// An epochCount follows a count of epochs, or of the rounds of federated learning. The number of lines of
// each epoch shows whether the last one was written completely. The total is in the same line as the
// count, or in settings that the program printed before.
type epochCount struct {
	n, of   int  // the current epoch as counted, and the number of epochs
	at      int  // the value of Facts.told at its first line
	lines   int  // number of lines of the epoch before it
	bare    bool // its first line contains only its number
	later   bool // there was one before it
	closed  bool // its first line contains results and follows its full progress bar
	barAt   int  // the value of Facts.told at the last full progress bar
	settled int  // the number of epochs according to the settings
}

// read takes in the count in the told-th line. behind is the text after the count.
func (c *epochCount) read(in tally, told int, behind string) {
	if in.n == c.n && in.of == c.of {
		return
	}
	tells := figure.MatchString(behind)
	*c = epochCount{
		n: in.n, of: in.of, at: told, lines: told - c.at, bare: !tells, later: c.at > 0, closed: tells && c.barAt == told-1,
		barAt: c.barAt, settled: c.settled,
	}
}

// readAlone takes in the told-th line if it is a setting of the number of epochs, or contains the number
// of an epoch without the total. ok is true only for the latter.
func (c *epochCount) readAlone(text string, told int) (n int, ok bool) {
	if g := epochsToBe.FindStringSubmatch(text); g != nil {
		c.settled, _ = strconv.Atoi(g[1] + g[2] + g[3] + g[4])
		return 0, false
	}
	g := epochAlone.FindStringSubmatch(text)
	if g == nil || c.settled == 0 {
		return 0, false
	}
	n, _ = strconv.Atoi(g[1])
	_, behind, _ := strings.Cut(text, g[0])
	c.read(tally{n: n, of: c.settled}, told, behind)
	return n, true
}

// epochsToBe matches a setting or sentence that gives the number of epochs. The setting has a name such as
// num_epochs, or follows another setting.
var epochsToBe = lazy.On("poch|POCH|ound|OUND", `(?i)(?:^|[^\w])(?:(?:num|n|max|total|number of)[ _-]?(?:train[ _-])?(?:epoch|round)s?|epochs)`+
	`['"]?\W{1,4}(\d+)(?:$|[^\d./])`+
	`|[:=] ?\d+, epoch[:=] ?(\d+)\W*$|\b(?:for|max:) (\d+) epochs\b`+
	`|^\W*(?:(?:num|max|total)[ _-]?(?:train[ _-])?)?epochs[\s:=.|]{5,40}(\d+)\W*$`) // in a list whose values are aligned

// epochAlone matches the number of an epoch without a total.
var epochAlone = lazy.On("poch|POCH|ound|OUND", `(?i)(?:^|[^\w/])(?:epoch|round)(?:\(\w+\))?\W{0,4}(\d+)\b`)

// complete reports whether the last epoch has at least as many lines as the one before it, and not many
// more.
func (c epochCount) complete(told, fromZero int) bool {
	last := c.of > 1 && (reached(c.n, c.of) || c.n == c.of-1 && c.of == fromZero)
	after := told - c.at + 1
	whole := after >= c.lines && !(c.bare && after == 1) || c.closed
	return last && whole && after-c.lines <= LongTail
}

// opened reports whether the last epoch has only begun: its first line contains only its number, and fewer lines
// follow it than followed the one before it, none of them with a figure.
func (c epochCount) opened(told int, behind []Mark) bool {
	return c.later && c.bare && told-c.at+1 < c.lines && !slices.ContainsFunc(behind, func(m Mark) bool { return figure.MatchString(m.Text) })
}

// A plan is the number of iterations that a trainer announced, and whether its reports reached it. Such
// reports give the number of the iteration alone.
type plan struct {
	of        int
	announced bool   // in the program's own words, which outweigh a setting
	reached   int    // the line at which they reached it, as Facts.told without unfinished bars
	report    uint32 // the form of that line
	spent     int    // how often a report's estimate of the remaining time was zero
	etas      etas
}

// etas follows estimates of the remaining time in reports of epochs.
type etas struct {
	epoch   int  // the epoch of the last estimate
	epochs  int  // number of epochs with an estimate
	left    int  // the last estimate, in seconds
	at      int  // the line of the last estimate
	between int  // lines between the last report of an epoch and the first of the next
	final   bool // less time remains than passes between two reports, so no further report can come
	ofEach  bool // final was true before the end, so each estimate is for its own epoch
}

// announcedPlan matches the announcement of the number of iterations by TransUNet, its derivatives and
// others.
var announcedPlan = lazy.On("ter|TER|tep|TEP", `(?i)\biterations? per epoch\W+(\d+) max iterations\b|^\W*total (?:training )?(?:iterations|steps) *[:=] *(\d+)$`+
	`|^(?:\W*|Namespace\((?:.*, )?)max_?(?:iter(?:ation)?|step)s?['"]?[\s:=]{1,20}(\d+)(?:$|[^\d.])`)

// numbered matches the report of an iteration.
var numbered = lazy.New(`(?i)^(?:\[[^\]]*\] ?)?(?:global[ _]?)?(?:iteration|iter|step)[ :=#]+(\d+)\b[^/]`)

// evaluated matches the end of an evaluation by OpenMMLab, with its measures instead of the remaining time.
// The last evaluation comes after the last iteration.
var evaluated = lazy.On("Iter(", `\bIter\((?:val|test)\) +\[ *(\d+)/(\d+)\] +(?:[^e\s]|e[^t])`)

// noTimeLeft matches the report of an iteration, outside of epochs, without remaining time.
var noTimeLeft = lazy.On("0:00:00", `(?i)(?:^|[\s|\]>])(?:global[ _]?)?(?:iteration|iter|step)s?(?:\(train\) )?[ :=#[]+\d+\b.*\beta\W{1,3}(?:0 days?,? ?)?0?0:00:00\b`)

// etaInEpoch matches a report within an epoch, with the remaining time.
var etaInEpoch = lazy.On("eta|ETA", `(?i)\bepoch(?:\(train\))?[ :=#[]*(\d+)\b.*\beta\W{1,3}(?:(?:(\d+) days?,? ?)?(\d+):(\d\d):(\d\d)\b)?`)

// fewEpochs is the number of epochs from which an estimate for the whole run can be told from one for
// each epoch, which reaches zero in the first epoch already.
const fewEpochs = 3

// timeSpent reports whether no time remains by a line, and whether this holds for the whole work.
func (p *plan) timeSpent(text string, told int) (spent, whole bool) {
	if at := noTimeLeft.FindStringIndex(text); at != nil && !strings.Contains(strings.ToLower(text[:at[0]]), "epoch") {
		return true, true
	}
	return p.etas.read(text, told)
}

// read takes in the told-th line. It reports whether no time remains by this line, and whether this
// holds for the whole work.
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

// over reports whether no further report can come, and at least as many lines followed the last one as
// stand between two epochs, but not many more.
func (e etas) over(told int) bool {
	after := told - e.at
	return e.final && !e.ofEach && e.epochs >= fewEpochs && after > 0 && after >= e.between-1 && after-e.between <= LongTail
}

// over reports whether the plan was reached, with few lines after that.
func (p plan) over(told int) bool {
	return p.reached > 0 && told-p.reached <= LongTail || p.etas.over(told)
}

// read takes in the told-th line.
func (p *plan) read(text string, told int) {
	if spent, whole := p.timeSpent(text, told); spent {
		p.reached = 0 // an estimate that reaches zero twice is for a part of the work
		if p.spent++; p.spent == 1 && whole {
			p.reached = told
		}
		return
	}
	if g := evaluated.FindStringSubmatch(text); g != nil && g[1] == g[2] && p.reached > 0 {
		p.reached = told
		return
	}
	if g := announcedPlan.FindStringSubmatch(text); g != nil {
		if set := g[3] != ""; !set || !p.announced {
			p.of, _ = strconv.Atoi(g[1] + g[2] + g[3])
			p.announced = !set
		}
		return
	}
	if p.of == 0 {
		return
	}
	if g := numbered.FindStringSubmatch(text); g != nil {
		form := form32(logline.NoTag, text)
		switch n, _ := strconv.Atoi(g[1]); {
		case n == p.of && (p.reached == 0 || p.announced || form != p.report): // an iteration, and its evaluation
			p.reached, p.report = told, form
		case p.reached > 0 && (n <= p.of/2 || !p.announced), n > p.of:
			p.of, p.reached = 0, 0 // it begins again, or goes on: that was the number of a part
		}
	}
}

// barPrefix begins the names of bars.
const barPrefix = "bar "

// barName returns the part of a progress bar that stays the same while it advances: the text before its
// first digit.
func barName(text string) string {
	name := strings.TrimSpace(text)
	if i := strings.IndexAny(name, "0123456789|"); i >= 0 {
		name = name[:i]
	}
	return barPrefix + strings.TrimSpace(name)
}

// fullBars follows the progress bars that reached their end.
type fullBars struct {
	of, took int  // the last one's total, and the seconds that it took
	before   int  // the most seconds that one before it took
	others   bool // there was one before it
}

// read takes in a full bar, which tqdm may draw twice.
func (b *fullBars) read(of int, text string) {
	g := barTime.FindStringSubmatch(text)
	if g == nil {
		return
	}
	took := 0
	for _, n := range g[1:] {
		k, _ := strconv.Atoi(n)
		took = 60*took + k
	}
	if of != b.of || took != b.took {
		*b = fullBars{of: of, took: took, before: max(b.before, b.took), others: *b != fullBars{}}
	}
}

// outer reports whether the last bar is that of the loop around the loops of all bars before it: it took
// many times as long as any of them.
func (b *fullBars) outer() bool { return b.others && b.took > 4*max(b.before, 1) }

// barTime matches the hours, minutes and seconds that a bar has taken, as tqdm draws them.
var barTime = lazy.On("<", `\[(?:(\d+):)?(\d+):(\d\d)<`)

// counted takes in the counts of a line, and reports whether it is a progress bar.
func (s *scanner) counted(t logline.Tag, text string) (bar bool) {
	var c tally
	ok := s.matches(tallyForm, text) || richTally.MatchString(text)
	if ok {
		c, _ = tallyIn(text)
	}
	switch {
	case !ok:
		if s.matches(epochsToBe, text) || s.epochs.settled != 0 && s.matches(epochAlone, text) {
			if n, alone := s.epochs.readAlone(text, s.told); alone && n == 0 {
				s.fromZero = s.epochs.of
			}
		}
	case c.bar:
		s.reported, s.reports = s.told, true
		if c.of > 0 && c.n == c.of {
			s.epochs.barAt = s.told
			s.count(t, barName(text))
			s.full.read(c.of, text)
		} else {
			s.drawn++ // the same bar will be drawn again on a line of its own
		}
	default:
		if c.epoch {
			s.epochs.read(c, s.told, text)
		}
		if c.n == 0 {
			s.fromZero = c.of
		}
	}
	s.plan.read(text, s.told-s.drawn)
	return c.bar
}
