package logline

import (
	"slices"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
)

// A Frame is what whoever collected a log put before every line of it: a time
// (kubectl logs --timestamps, ts, journald), who spoke (kubectl logs --prefix, docker
// compose), as which rank (mpirun's), the line's number (cat -n, grep -n), and what is the same before them all
// (journald's host and unit, a mark of quotation, an indentation).
//
// A logger writes before its records, a collector before lines: where nothing is
// framed that only a line can be, an empty one or one of a traceback, there is none.
type Frame struct {
	margins []margin
	clocked bool // it tells the time, and the lines within tell none
}

// A margin is one part of a frame.
type margin struct {
	kind marginKind
	text string // of a constant one
}

type marginKind int

const (
	constant marginKind = iota
	clock
	counted
	named
	ranked // mpirun's -prepend-rank: "[3] ", innermost
)

// Bounds on what is taken for a frame.
const (
	fewestCounted = 2  // lines
	fewestFramed  = 4  // of other kinds
	fewestInset   = 8  // that an indentation alone frames
	maxMargins    = 4  // one within the other
	longestMargin = 80 // bytes
	aroundMiddle  = 8  // lines from which a constant one is taken
	framedOf100   = 98 // lines; others were cut, or come from the collector itself
)

// FrameOf finds the frame of a log from lines of it that follow each other.
func FrameOf(lines []string) Frame {
	var f Frame
	for len(f.margins) < maxMargins {
		m, rest, ok := marginOf(lines)
		if !ok {
			break
		}
		f.margins, lines = append(f.margins, m), rest
		if m.kind == ranked {
			break
		}
	}
	return f.around(lines)
}

// around is the frame, with the knowledge whether the lines in it tell the time.
func (f Frame) around(lines []string) Frame {
	f.clocked = slices.ContainsFunc(f.margins, func(m margin) bool { return m.kind == clock }) &&
		!slices.ContainsFunc(lines, func(l string) bool { _, dated := ParseTime(l); return dated })
	return f
}

// Of is the frame as that of another log of the same job, which is too short to show
// it. ok is false where lines of it do not fit.
func (f Frame) Of(lines []string) (of Frame, ok bool) {
	for _, m := range f.margins {
		if lines, _, ok = m.cutAll(lines); !ok || len(lines) == 0 {
			return Frame{}, false
		}
	}
	return f.around(lines), ok
}

// MayHaveFrame reports whether the first lines of a log leave a frame possible, which
// those of most logs do not.
func MayHaveFrame(first []string) bool {
	for _, kind := range []marginKind{counted, clock, named, ranked} {
		n := 0
		for _, l := range first {
			if _, _, ok := (margin{kind: kind}).cut(l); ok {
				n++
			}
		}
		if 2*n > len(first) {
			return true
		}
	}
	half := first[len(first)/2:]
	return len(half) > 1 && len(alikeIn(half)) > 1
}

// Framed reports whether there is a frame.
func (f Frame) Framed() bool { return len(f.margins) > 0 }

// Same reports whether two frames are made alike.
func (f Frame) Same(o Frame) bool { return slices.Equal(f.margins, o.margins) }

// Cut takes the frame from a line. host is who spoke, where the frame names several.
// Where only the frame tells the time, the line keeps it in the form of containers' logs.
func (f Frame) Cut(line string) (rest, host string) {
	rest = line
	stamp := ""
	for _, m := range f.margins {
		inner, said, ok := m.cut(rest)
		if !ok {
			return rest, host
		}
		switch m.kind {
		case clock:
			stamp = said
		case named:
			host = said
		case ranked:
			inner = said + ": " + inner // as srun's --label has it
		}
		rest = inner
	}
	if at, ok := ParseTime(stamp + " "); ok && f.clocked && strings.TrimSpace(rest) != "" {
		rest = at.Format("2006-01-02T15:04:05.000Z ") + rest
	}
	return rest, host
}

// marginOf finds the outermost margin of lines, and what they are without it.
func marginOf(lines []string) (margin, []string, bool) {
	for _, kind := range []marginKind{counted, clock, named, ranked} {
		if len(lines) == 0 {
			break
		}
		m := margin{kind: kind}
		rest, said, ok := m.cutAll(lines)
		if !ok || len(rest) < fewestCounted || kind != counted && len(rest) < fewestFramed {
			continue
		}
		switch kind {
		case counted:
			if !consecutive(said) || !aligned(lines) && !OfLines(rest) {
				continue
			}
		case clock:
			if _, _, more := constantOf(rest); !more && !OfLines(rest) {
				return margin{}, nil, false // a logger's
			}
		case named, ranked:
			if alike(said) || !OfLines(rest) {
				continue
			}
		}
		return m, rest, true
	}
	return constantOf(lines)
}

// constantOf finds the shortest beginning that all lines share, behind which they are
// lines.
func constantOf(lines []string) (margin, []string, bool) {
	var full []string
	for _, l := range lines {
		if strings.TrimSpace(l) != "" {
			full = append(full, l)
		}
	}
	if len(full) < fewestFramed {
		return margin{}, nil, false
	}
	from := max(0, len(full)-aroundMiddle) / 2
	all := alikeIn(full[from:min(len(full), from+aroundMiddle)])
	if all == "" {
		return margin{}, nil, false
	}
	if all[0] == ' ' || all[0] == '\t' {
		m := margin{text: alikeIn(full)}
		m.text = m.text[:len(m.text)-len(strings.TrimLeft(m.text, " \t"))]
		rest, _, _ := m.cutAll(full)
		return m, rest, len(m.text) > 1 && len(full) >= fewestInset && OfLines(rest)
	}
	for n := 2; n <= len(all); n++ {
		if !strings.ContainsRune(" \t|>:", rune(all[n-1])) || all[n-1] == ':' && Digit(all[n-2]) {
			continue
		}
		m := margin{text: all[:n]}
		rest, _, ok := m.cutAll(full)
		if !ok {
			break // a longer one has fewer
		}
		if more := punctuation.FindString(alikeIn(rest)); more != "" {
			m.text += more
			rest, _, _ = m.cutAll(full)
		}
		_, _, _, dated := dateBefore(m.text)
		_, _, _, host := CutHost(m.text + "text")
		if t, _ := CutTag(m.text + "text"); !dated && !host && t == NoTag && !signature.MatchString(m.text) && OfLines(rest) {
			return m, rest, true
		}
	}
	return margin{}, nil, false
}

// signature is how a program signs its own lines: "wandb: ", "srun: ", with a level and
// the plugin that speaks "slurmstepd: error: pyxis: ".
var signature = lazy.New(`^[\w-]+: ?(?:(?:fatal|error|warning|info|debug\d?): ?(?:[\w-]+: *)?)?$`)

// punctuation is what closes a margin: a mark, and one blank.
var punctuation = lazy.New(`^(?:[ |>:]*[|>:] ?| )`)

// alikeIn is how all lines begin.
func alikeIn(lines []string) string {
	text := lines[0][:min(len(lines[0]), longestMargin)]
	for _, l := range lines {
		n := 0
		for n < len(text) && n < len(l) && text[n] == l[n] {
			n++
		}
		text = text[:n]
	}
	return text
}

// cutAll cuts a margin from lines that have it, which nearly all must between the first
// and the last of them: a script may say something before and after what it pipes
// through a collector. Empty lines need not.
func (m margin) cutAll(lines []string) (rest, said []string, ok bool) {
	without, since, inset := 0, 0, false
	for _, l := range lines {
		if r, s, has := m.cut(l); has {
			if inset {
				return nil, nil, false
			}
			rest, said = append(rest, r), append(said, s)
			without, since = without+since, 0
			continue
		}
		if strings.TrimSpace(l) == "" || len(rest) == 0 {
			continue
		}
		if within.MatchString(l) {
			return nil, nil, false // a collector would have framed it too
		}
		inset = inset || l[0] == ' ' || l[0] == '\t'
		since++
	}
	return rest, said, 2*len(rest) > len(lines) && 100*without <= (100-framedOf100)*len(rest)
}

// OfLines reports whether what stands behind a margin was written line by line, by a
// program that knew nothing of the margin: empty lines, a traceback's and others that
// are set in, lines with a time of their own, lines that a launcher labels.
func OfLines(rest []string) bool {
	inset, plain, labelled := 0, 0, 0
	for _, r := range rest {
		if strings.TrimSpace(r) == "" {
			return true
		}
		if _, _, own := cutClock(r); own || ofItself.MatchString(r) {
			return true
		}
		if t, _ := CutTag(r); t != NoTag {
			labelled++
		}
		if r[0] != ' ' && r[0] != '\t' {
			plain++
		} else if !level.MatchString(r) && !Digit(strings.TrimLeft(r, " \t")[0]) {
			inset++
		}
	}
	return inset > 0 && plain > 0 || 4*labelled > len(rest)
}

// level is a level of a logger, which some set to the right.
var level = lazy.New(`^\s+(?:\||\[)?\s*(?i:info|warn(?:ing)?|error|debug|trace|critical|notice|success|fatal)\b`)

// ofItself is a line that its writer puts into a log with all that it has: of Slurm's
// own programs, of glog, of NCCL.
var ofItself = lazy.New(`^(?:(?:srun|slurmstepd|sbatch|scancel)\b[^:]*: |[WEIF]\d{4} \d\d:\d\d:|[\w.-]+:\d+:\d+ \[\d+\] NCCL )`)

// within is a line that stands within a text of several: one of them alone has no frame.
var within = lazy.New(`^(?:Traceback \(most recent| +File ")`)

func alike(said []string) bool {
	for _, s := range said {
		if s != said[0] {
			return false
		}
	}
	return true
}

// consecutive reports whether numbers grow by one from line to line. Head and end of
// a file may have been looked at, with a gap between.
func consecutive(said []string) bool {
	odd := 0
	for i := 1; i < len(said); i++ {
		a, _ := Number(said[i-1])
		if b, _ := Number(said[i]); b != a+1 {
			odd++
		}
	}
	return odd <= 1+len(said)*(100-framedOf100)/100
}

// aligned reports whether lines have the numbers of cat -n, whose column nothing else has.
func aligned(lines []string) bool {
	for _, l := range lines {
		if i := strings.IndexByte(l, '\t'); i < 6 || strings.Trim(l[:max(i, 0)], " 0123456789") != "" {
			return false
		}
	}
	return true
}

func (m margin) cut(line string) (rest, said string, ok bool) {
	switch m.kind {
	case clock:
		return cutClock(line)
	case counted:
		return group(counts, line)
	case named:
		return group(names, line)
	case ranked:
		return group(ranks, line)
	}
	if rest, ok = strings.CutPrefix(line, m.text); !ok {
		ok = line != "" && line == strings.TrimRight(m.text, " ")
		rest = ""
	}
	return rest, "", ok
}

var (
	counts = lazy.New(`^ {0,6}(\d{1,9})(?:\t|:| )`)
	names  = lazy.New(`^(?:\[pod/([\w.-]+)/[\w.-]+\] |([A-Za-z][\w.-]*) +\| ?)`)
	ranks  = lazy.New(`^\[(\d{1,5})\] ?`)
	ending = lazy.New(`^(?:[.,]\d+)?(?: ?Z| ?[+-]\d\d:?\d\d| UTC)?(?: \d{4})?[\])]?(?: std(?:out|err) [FP])?(?::? |\t|:?$)`)
)

// group cuts what an expression takes, and returns its group that holds something.
func group(re *lazy.Pattern, line string) (rest, said string, ok bool) {
	g := re.FindStringSubmatch(line[:min(len(line), longestMargin)])
	if g == nil {
		return line, "", false
	}
	return line[len(g[0]):], strings.Join(g[1:], ""), true
}

// cutClock cuts a time that stands first in a line, with or without its date.
func cutClock(line string) (rest, said string, ok bool) {
	head := line[:min(len(line), 40)]
	i := strings.IndexByte(head, ':')
	if i < 2 || i+6 > len(line) || line[i+3] != ':' || !Digit(line[i-1]) || !Digit(line[i+1]) || !Digit(line[i+5]) {
		return line, "", false
	}
	before := strings.TrimLeft(line[:i-2], "[(")
	if before != "" {
		if before[0] >= 'A' && before[0] <= 'Z' && len(before) > 1 && Digit(before[1]) {
			return line, "", false // glog's, which is a logger
		}
		if _, _, _, dated := dateBefore(before); !dated || len(before) > 16 {
			return line, "", false
		}
	}
	e := ending.FindString(line[i+6 : min(len(line), i+40)])
	if e == "" && len(line) > i+6 {
		return line, "", false
	}
	return line[i+6+len(e):], line[:i+6+len(e)], true
}
