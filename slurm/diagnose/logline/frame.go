package logline

import (
	"slices"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
)

// A Frame is the text that a log collector put before every line of a log: a time (kubectl logs
// --timestamps, ts, journald), the host and program (syslog, journald), an object around it (Docker's
// json-file), the speaker (kubectl logs --prefix, docker compose), the speaker's rank (mpirun), the
// line's number (cat -n, grep -n), or a fixed text (journald's host and unit, a quotation
// mark, an indentation).
//
// A logger puts a prefix before its own records, a collector before every line. Therefore a log has a
// frame only if the prefix also stands before something that only a line can be: an empty line, or a
// line of a traceback.
type Frame struct {
	parts   []framePart
	clocked bool // the frame has a time, and the lines inside have none
}

// A framePart is one part of a frame.
type framePart struct {
	kind partKind
	text string // of fixedText; of journal the only host, where srun may run that writes what other nodes' tasks do
}

type partKind int

const (
	fixedText partKind = iota
	object             // {"log":"…\n","time":"…"}, of a container's log driver
	timestamp
	lineNumber
	speaker
	journal // "gpu07 torchrun[1172]: ", of syslog and journald: the host, and the program with its process
	mpiRank // "[3] ", of mpirun -prepend-rank; always the innermost part
)

// Thresholds for recognising a frame.
const (
	minNumbered  = 2  // lines with a number before them
	minFramed    = 4  // lines with a part of another kind
	minIndented  = 8  // lines for an indentation as the only part
	maxParts     = 4  // parts of one frame
	longestPart  = 80 // bytes of one part
	aroundMiddle = 8  // lines in the middle of the log, from which a fixed text is taken
	minPercent   = 98 // of 100 lines must have the frame; the others were cut, or the collector wrote them
)

// FrameOf finds the frame of a log. lines are consecutive lines of it.
func FrameOf(lines []string) Frame {
	var f Frame
	for len(f.parts) < maxParts {
		m, rest, ok := outermostPart(lines)
		if !ok {
			break
		}
		f.parts, lines = append(f.parts, m), rest
		if m.kind == mpiRank {
			break
		}
	}
	return f.around(lines)
}

// around sets clocked by whether the lines inside the frame carry a time.
func (f Frame) around(lines []string) Frame {
	f.clocked = slices.ContainsFunc(f.parts, func(m framePart) bool { return m.kind == timestamp || m.kind == object }) &&
		!slices.ContainsFunc(lines, func(l string) bool { _, dated := ParseTime(l); return dated })
	return f
}

// Of applies the frame to another log of the same job that is too short to show its own frame. ok is
// false if lines of that log do not fit.
func (f Frame) Of(lines []string) (of Frame, ok bool) {
	for _, m := range f.parts {
		if lines, _, ok = m.cutAll(lines); !ok || len(lines) == 0 {
			return Frame{}, false
		}
	}
	return f.around(lines), ok
}

// MayHaveFrame reports whether a log with these first lines can have a frame. It is a cheap test that
// excludes most logs.
func MayHaveFrame(first []string) bool {
	for _, kind := range []partKind{object, lineNumber, timestamp, speaker, journal, mpiRank} {
		n := 0
		for _, l := range first {
			if _, _, ok := (framePart{kind: kind}).cut(l); ok {
				n++
			}
		}
		if 2*n > len(first) {
			return true
		}
	}
	half := first[len(first)/2:]
	return len(half) > 1 && len(commonPrefix(half)) > 1
}

// Framed reports whether the log has a frame.
func (f Frame) Framed() bool { return len(f.parts) > 0 }

// Same reports whether two frames have the same parts.
func (f Frame) Same(o Frame) bool { return slices.Equal(f.parts, o.parts) }

// Cut removes the frame from a line. host is the speaker, where the frame speakers one. If only the frame
// carries a time, rest begins with that time in the form of containers' logs.
func (f Frame) Cut(line string) (rest, host string) {
	rest = line
	stamp := ""
	for _, m := range f.parts {
		inner, said, ok := m.cut(rest)
		if !ok {
			return rest, host
		}
		switch m.kind {
		case timestamp, object:
			stamp = said
		case speaker:
			host = said
		case journal:
			if said != m.text {
				host = said
			}
		case mpiRank:
			inner = said + ": " + inner // the form of srun --label
		}
		rest = inner
	}
	if at, ok := ParseTime(stamp + " "); ok && f.clocked && strings.TrimSpace(rest) != "" {
		rest = at.Format("2006-01-02T15:04:05.000Z ") + rest
	}
	return rest, host
}

// outermostPart finds the outermost part of a frame around lines, and returns the lines without it.
func outermostPart(lines []string) (framePart, []string, bool) {
	for _, kind := range []partKind{object, lineNumber, timestamp, speaker, journal, mpiRank} {
		if len(lines) == 0 {
			break
		}
		m := framePart{kind: kind}
		rest, said, ok := m.cutAll(lines)
		if !ok || len(rest) < minNumbered || kind > lineNumber && len(rest) < minFramed {
			continue
		}
		switch kind {
		case lineNumber:
			if !consecutive(said) || !numberedByCat(lines) && !OfLines(rest) {
				continue
			}
		case timestamp:
			if _, _, more := outermostPart(rest); !more && !OfLines(rest) {
				return framePart{}, nil, false // the time belongs to a logger
			}
		case object:
			if !OfLines(rest) && !strings.Contains(lines[len(lines)/2], `\n",`) {
				return framePart{}, nil, false // the object is a logger's
			}
		case journal:
			if !OfLines(rest) {
				continue
			}
			if slices.Min(said) == slices.Max(said) {
				m.text = said[0]
			}
		case speaker, mpiRank:
			if slices.Min(said) == slices.Max(said) || !OfLines(rest) {
				continue
			}
		}
		return m, rest, true
	}
	return fixedTextOf(lines)
}

// fixedTextOf finds the shortest text with which all lines begin and after which they still look like
// whole lines.
func fixedTextOf(lines []string) (framePart, []string, bool) {
	var full []string
	for _, l := range lines {
		if strings.TrimSpace(l) != "" {
			full = append(full, l)
		}
	}
	if len(full) < minFramed {
		return framePart{}, nil, false
	}
	from := max(0, len(full)-aroundMiddle) / 2
	all := commonPrefix(full[from:min(len(full), from+aroundMiddle)])
	if all == "" {
		return framePart{}, nil, false
	}
	if all[0] == ' ' || all[0] == '\t' {
		m := framePart{text: commonPrefix(full)}
		m.text = m.text[:len(m.text)-len(strings.TrimLeft(m.text, " \t"))]
		rest, _, _ := m.cutAll(full)
		return m, rest, len(m.text) > 1 && len(full) >= minIndented && OfLines(rest)
	}
	for n := 2; n <= len(all); n++ {
		if !strings.ContainsRune(" \t|>:", rune(all[n-1])) || all[n-1] == ':' && Digit(all[n-2]) {
			continue
		}
		m := framePart{text: all[:n]}
		rest, _, ok := m.cutAll(full)
		if !ok {
			break // a longer text fits fewer lines
		}
		if more := punctuation.FindString(commonPrefix(rest)); more != "" {
			m.text += more
			rest, _, _ = m.cutAll(full)
		}
		_, _, _, dated := dateBefore(m.text)
		_, _, _, host := CutHost(m.text + "text")
		_, _, ranked := CutRank(m.text + "text")
		t, _ := CutTag(m.text + "text")
		own := dated || host || ranked || t != NoTag || openField.MatchString(m.text) || signature.MatchString(m.text)
		if !own && OfLines(rest) {
			return m, rest, true
		}
	}
	return framePart{}, nil, false
}

// signature matches the prefix with which a program marks its own lines: "wandb: ", "srun: "; with a
// level and a plugin, "slurmstepd: error: pyxis: ".
var signature = lazy.New(`^[\w-]+: ?(?:(?:fatal|error|warning|info|debug\d?): ?(?:[\w-]+: *)?)?$`)

// openField matches a text that ends within a field, as what the fields of several ranks have in common does: "[rank ".
var openField = lazy.New(`[\[(][^\])]*$|(?i)\brank ?[:=]?$`)

// punctuation matches the end of a fixed text: marks, and at most one blank.
var punctuation = lazy.New(`^(?:[ |>:]*[|>:] ?| )`)

// commonPrefix returns the text with which all lines begin, up to longestPart bytes.
func commonPrefix(lines []string) string {
	text := lines[0][:min(len(lines[0]), longestPart)]
	for _, l := range lines {
		n := 0
		for n < len(text) && n < len(l) && text[n] == l[n] {
			n++
		}
		text = text[:n]
	}
	return text
}

// cutAll removes a part from the lines that have it. Nearly all lines between the first and the last of
// these must have it: a script may write lines of its own before and after the output that it pipes
// through a collector. Empty lines need not have it.
func (m framePart) cutAll(lines []string) (rest, said []string, ok bool) {
	without, since, indented := 0, 0, false
	for _, l := range lines {
		if r, s, has := m.cut(l); has {
			if indented {
				return nil, nil, false
			}
			rest, said = append(rest, r), append(said, s)
			without, since = without+since, 0
			continue
		}
		if strings.TrimSpace(l) == "" || len(rest) == 0 {
			continue
		}
		if innerLine.MatchString(l) {
			return nil, nil, false // a collector would have framed this line too
		}
		indented = indented || l[0] == ' ' || l[0] == '\t'
		since++
	}
	return rest, said, 2*len(rest) > len(lines) && 100*without <= (100-minPercent)*len(rest)
}

// OfLines reports whether the texts behind a frame part are whole lines of a program that knew nothing
// of the part: empty lines, indented lines such as a traceback's, lines with a time of their own, or
// lines with a launcher's label.
func OfLines(rest []string) bool {
	indented, plain, labelled := 0, 0, 0
	labels := map[uint64]bool{} // beginning of a line → whether it is a label
	for _, r := range rest {
		if strings.TrimSpace(r) == "" {
			return true
		}
		form := DigitsAsZeros(r[:min(len(r), longestPart)])
		label, known := labels[form]
		if !known {
			t, _ := CutTag(r)
			label = t != NoTag
			labels[form] = label
		}
		if label {
			labelled++
		}
		if known {
			continue // most lines are those of a loop
		}
		if _, _, own := cutClock(r); own || ownPrefix.MatchString(r) {
			return true
		}
		if r[0] != ' ' && r[0] != '\t' {
			plain++
		} else if !levelWord.MatchString(r) && !Digit(strings.TrimLeft(r, " \t")[0]) {
			indented++
		}
	}
	return indented > 0 && plain > 0 || 4*labelled > len(rest)
}

// levelWord matches a logger's level, which some loggers align to the right.
var levelWord = lazy.New(`^\s+(?:\||\[)?\s*(?i:info|warn(?:ing)?|error|debug|trace|critical|notice|success|fatal)\b`)

// ownPrefix matches lines whose own program writes a prefix: those of Slurm's programs, of glog and of
// NCCL.
var ownPrefix = lazy.New(`^(?:(?:srun|slurmstepd|sbatch|scancel)\b[^:]*: |[WEIF]\d{4} \d\d:\d\d:|[\w.-]+:\d+:\d+ \[\d+\] NCCL )`)

// innerLine matches a line that occurs only inside a multi-line text, so that a frame cannot stand
// before some lines of the text and not before this one.
var innerLine = lazy.New(`^(?:Traceback \(most recent| +File ")`)

// consecutive reports whether the numbers grow by one from line to line. It allows for a gap between
// the beginning and the end of a file.
func consecutive(said []string) bool {
	odd := 0
	for i := 1; i < len(said); i++ {
		a, _ := Number(said[i-1])
		if b, _ := Number(said[i]); b != a+1 {
			odd++
		}
	}
	return odd <= 1+len(said)*(100-minPercent)/100
}

// numberedByCat reports whether the lines have the number column of cat -n, which no other program
// writes.
func numberedByCat(lines []string) bool {
	return !slices.ContainsFunc(lines, func(l string) bool {
		i := strings.IndexByte(l, '\t')
		return i < 6 || strings.Trim(l[:i], " 0123456789") != ""
	})
}

func (m framePart) cut(line string) (rest, said string, ok bool) {
	switch m.kind {
	case object:
		return cutObject(line)
	case timestamp:
		return cutClock(line)
	case lineNumber:
		return cutGroup(lineNumbers, line)
	case speaker:
		return cutGroup(speakers, line)
	case journal:
		return cutJournal(line)
	case mpiRank:
		return cutGroup(mpiRanks, line)
	}
	if rest, ok = strings.CutPrefix(line, m.text); !ok {
		ok = line != "" && line == strings.TrimRight(m.text, " ")
		rest = ""
	}
	return rest, "", ok
}

var (
	lineNumbers = lazy.New(`^ {0,6}(\d{1,9})(?:\t|:| )`)
	speakers    = lazy.New(`^(?:\[pod/([\w.-]+)/[\w.-]+\] |([A-Za-z][\w.-]*) +\| ?)`)
	mpiRanks    = lazy.New(`^\[(\d{1,5})\] ?`)
	clockEnd    = lazy.New(`^(?:[.,]\d+)?(?: ?Z| ?[+-]\d\d:?\d\d| UTC)?(?: \d{4})?[\])]?(?: std(?:out|err) [FP])?(?::? |\t|:?$)`)
)

// journals matches a record's host, program and process, behind its time: RFC 3164, and journalctl's short forms.
var journals = lazy.New(`^([A-Za-z][\w.-]*) ([\w./-]{1,32})\[\d+\]:(?: |$)`)

// cutJournal removes the host and the program. Slurm's daemons keep their names, which their own logs have, too.
func cutJournal(line string) (rest, host string, ok bool) {
	g := journals.FindStringSubmatch(line[:min(len(line), longestPart)])
	if g == nil {
		return line, "", false
	}
	rest = line[len(g[0]):]
	if strings.HasPrefix(g[2], "slurm") {
		rest = g[2] + ": " + rest
	}
	return rest, g[1], true
}

// cutGroup removes a match at the beginning of line, and returns its only non-empty group.
func cutGroup(re *lazy.Pattern, line string) (rest, said string, ok bool) {
	g := re.FindStringSubmatch(line[:min(len(line), longestPart)])
	if g == nil {
		return line, "", false
	}
	return line[len(g[0]):], strings.Join(g[1:], ""), true
}

// cutClock removes a time at the beginning of a line, with or without a date.
func cutClock(line string) (rest, said string, ok bool) {
	head := line[:min(len(line), 40)]
	i := strings.IndexByte(head, ':')
	if i < 2 || i+6 > len(line) || line[i+3] != ':' || !Digit(line[i-1]) || !Digit(line[i+1]) || !Digit(line[i+5]) {
		return line, "", false
	}
	before := strings.TrimLeft(line[:i-2], "[(")
	if before != "" {
		if before[0] >= 'A' && before[0] <= 'Z' && len(before) > 1 && Digit(before[1]) {
			return line, "", false // glog's prefix, which belongs to a logger
		}
		if _, _, _, dated := dateBefore(before); !dated || len(before) > 16 {
			return line, "", false
		}
	}
	e := clockEnd.FindString(line[i+6 : min(len(line), i+40)])
	if e == "" && len(line) > i+6 {
		return line, "", false
	}
	return line[i+6+len(e):], line[:i+6+len(e)], true
}
