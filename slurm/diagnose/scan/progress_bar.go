package scan

import (
	"bytes"
	"regexp"
	"strings"
	"sync"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/internal/redact"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logfile"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logline"
)

// bounded returns the part of a long line that is examined: its beginning, or its end if a progress bar was
// drawn there.
func bounded(line []byte) []byte {
	if len(line) <= logfile.MaxLineLength {
		return line
	}
	if end := line[len(line)-logfile.MaxLineLength:]; bytes.IndexByte(end, '\r') >= 0 || barEnd.Match(end) {
		return end
	}
	return line[:logfile.MaxLineLength]
}

// barEnd matches the end of a progress bar in tqdm's form. Other programs' output may follow directly
// on the same line.
var barEnd = regexp.MustCompile(`[\d?] ?[a-zA-Z]*(?:/s|s/ ?[a-zA-Z]+)(?:, [^\]]*)?\]`)

// drawnBar matches a bar in other forms, with how far it is, and a download with its speed.
var drawnBar = lazy.New(`[|\[][█▏▎▍▌▋▊▉#=>.*━╸╺ -]{3,}[|\]].*\d|\d ?%.*[|\[][█▏▎▍▌▋▊▉#=>.*━╸╺ -]{3,}[|\]]|\d ?%.*\d ?[kKMGT]?i?B/s`)

// transfer matches the bar of a file that is sent or fetched, which is no work of the program, and transferred one at its end.
var (
	transfer    = lazy.On("B/s", `\d ?%.*[\d?] ?[kKMGT]?i?B/s\b`)
	transferred = lazy.On("B/s", `\b100 ?%.*[\d?] ?[kKMGT]?i?B/s\b`)
)

// Form returns what a line has in common with those that differ from it only in numbers, in paths, or in how
// far a progress bar has come.
func Form(text string) string {
	if !barEnd.MatchString(text) && !drawnBar.MatchString(text) {
		return logline.Template(text)
	}
	return strings.TrimRight(barName(text), "█▏▎▍▌▋▊▉#=>.*━╸╺[]|: -")
}

// Pieces returns what was written onto one line: the states of a progress bar, and what follows it.
func Pieces(line []byte) (all [][]byte) {
	for _, part := range bytes.Split(line, []byte("\r")) {
		all = append(all, states(part)...)
	}
	return all
}

// states splits what stands between two carriage returns. A copy of a log may have lost them, so that the
// states of a bar follow one another.
func states(part []byte) (all [][]byte) {
	for {
		at := barEnd.FindIndex(part)
		if at == nil || at[1] == len(part) {
			return append(all, part)
		}
		all, part = append(all, part[:at[1]]), part[at[1]:]
	}
}

// killed is a shell's message about a killed program. It may follow directly after a progress bar.
var killed = []byte("Killed")

// physical scans one line of a file, which may hold several: progress bars begin anew after a carriage
// return. A launcher's prefix at the beginning of the line holds for all of them.
func (s *scanner) physical(line []byte, off int64) {
	if !bytes.HasSuffix(line, killed) && !bytes.Contains(line, []byte("\r")) && !bytes.Contains(line, []byte("it")) && !bytes.Contains(line, []byte("/s]")) {
		s.line(line, off)
		return
	}
	parts := bytes.Split(line, []byte("\r"))
	prefix := sync.OnceValue(func() string {
		first := string(parts[0])
		if t, text := s.untag(first); t != logline.NoTag {
			return strings.TrimSuffix(first, text)
		}
		return ""
	})
	whole := func(part []byte) []byte { // adds the launcher's prefix to a part without one
		if len(part) == 0 || prefix() == "" {
			return part
		}
		if t, _ := s.untag(string(part)); t != logline.NoTag {
			return part
		}
		return append([]byte(prefix()), part...)
	}
	for n, part := range parts {
		drawn := states(part)
		for k, state := range drawn {
			if n+k > 0 {
				state = whole(state)
			}
			if part = state; k < len(drawn)-1 {
				s.line(state, off)
			}
		}
		word := []byte(nil)
		if rest, ok := bytes.CutSuffix(part, killed); ok && n == len(parts)-1 {
			if glued := !bytes.HasSuffix(rest, []byte(" ")); n > 0 || glued && drawnBar.MatchString(string(rest)) {
				part, word = rest, whole(killed)
			}
		}
		if len(part) > 0 {
			s.line(part, off)
		}
		if word != nil {
			s.line(word, off)
			if last := tail(s.Events, 1); len(last) > 0 && last[0].Off == off {
				last[0].Raw = redact.Clean(string(part) + last[0].Text) // as it stands in the file
			}
		}
	}
}

// redraws reports whether a line is the bar of the work that the line before it says is done: tqdm draws a
// bar once more when its loop is left.
func (s *scanner) redraws(text string) bool {
	last := tail(s.Progress, 1)
	if s.whole == nil || s.told != s.wholeTold+1 || len(last) == 0 {
		return false
	}
	_, before := logline.CutTag(last[0].Text)
	_, text = logline.CutTag(text)
	was, _ := tallyIn(before)
	is, ok := tallyIn(text)
	return ok && is.bar && was.bar && is.of == was.of && barName(text) == barName(before)
}
