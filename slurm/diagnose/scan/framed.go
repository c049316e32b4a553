package scan

import (
	"bytes"
	"context"
	"slices"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/internal/redact"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logfile"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logline"
)

// Numbers of lines at the beginning and at the end of a file that decide whether it has a frame, and of
// lines for the first, cheap test.
const (
	sampled      = 512
	sampledFirst = 12
)

// frameOf finds the text that a collector put before every line of a log.
func frameOf(windows []logfile.Window) logline.Frame {
	if len(windows) == 0 {
		return logline.Frame{}
	}
	last := windows[len(windows)-1].Data
	_, middle, _ := bytes.Cut(last[len(last)/2:], logfile.Newline)
	if len(middle) == 0 {
		middle = last
	}
	if first := linesOf(middle, sampledFirst, false); slices.ContainsFunc(first, beginsReport) || !logline.MayHaveFrame(first) {
		return logline.Frame{}
	}
	lines := linesOf(windows[0].Data, sampled, false)
	if len(windows) > 1 || len(lines) == sampled {
		lines = append(lines, linesOf(last, sampled, true)...)
	}
	return logline.FrameOf(lines)
}

// beginsReport reports whether a line is Megatron's report of an iteration with nothing before it
// (training_log in megatron/training/training.py; the blank is Megatron's).
func beginsReport(line string) bool {
	return (strings.HasPrefix(line, " [20") || strings.HasPrefix(line, " iteration ")) && IsProgress([]byte(line))
}

// frameOfDigest is frameOf for a digest.
func frameOfDigest(d *logfile.Digest) logline.Frame {
	n := len(d.Lines)
	return frameOf([]logfile.Window{{Data: textOf(d.Lines[:min(n, sampled)])}, {Data: textOf(d.Lines[max(0, n-sampled):])}})
}

func textOf(lines []logfile.DigestLine) (text []byte) {
	for _, l := range lines {
		text = append(append(text, l.Text...), '\n')
	}
	return text
}

// linesOf returns the first or last n lines of a piece of a log, as the scanner reads them.
func linesOf(data []byte, n int, last bool) []string {
	var lines []string
	for len(lines) < n && len(data) > 0 {
		var line []byte
		if last {
			data = bytes.TrimSuffix(data, logfile.Newline)
			i := bytes.LastIndexByte(data, '\n')
			line, data = data[i+1:], data[:i+1]
		} else {
			line, data, _ = bytes.Cut(data, logfile.Newline)
		}
		lines = append(lines, cleanLine(line))
	}
	if last {
		for i, j := 0, len(lines)-1; i < j; i, j = i+1, j-1 {
			lines[i], lines[j] = lines[j], lines[i]
		}
	}
	return lines
}

func cleanLine(line []byte) string {
	raw := strings.TrimRight(string(bounded(line)), "\r")
	if acts(line) && !strings.Contains(raw, "\r") {
		return redact.Clean(raw)
	}
	return raw
}

// acts reports whether a line has bytes that redact.Clean would change.
func acts(line []byte) bool {
	for _, c := range line {
		if c >= 0x7f || c < 0x20 && c != '\t' {
			return true
		}
	}
	return false
}

// framedLine scans a line after removing its frame.
func (s *scanner) framedLine(line []byte, off int64) {
	text, host := s.frame.Cut(cleanLine(line))
	s.speaker = host
	for text := range strings.SplitSeq(text, "\n") {
		if IsProgress([]byte(text)) {
			s.note(&s.Progress, Mark{Off: off, Text: text}, s.keep)
			s.lastOff = off
			continue
		}
		s.physical([]byte(text), off)
	}
}

// shareFrames scans files again that are too short to show a frame, if they fit the frame of another
// file of the job.
func shareFrames(ctx context.Context, src logfile.Source, all []*Facts, want, keep int) {
	var frames []logline.Frame
	for _, f := range all {
		if f != nil && f.frame.Framed() && !slices.ContainsFunc(frames, f.frame.Same) {
			frames = append(frames, f.frame)
		}
	}
	var buf []byte
	for i, f := range all {
		if f == nil || f.frame.Framed() || f.Lines == 0 || f.Lines > sampled {
			continue
		}
		for _, frame := range frames {
			if ctx.Err() != nil {
				return
			}
			var head []byte
			if d := src.Logs[i].Digested; d != nil {
				head = textOf(d.Lines[:min(len(d.Lines), sampled)])
			} else if windows, err := src.Logs[i].Windows(ctx, &buf, want, healthy); err == nil && len(windows) > 0 {
				head = windows[0].Data
			}
			if of, fits := frame.Of(linesOf(head, sampled, false)); fits {
				s := newScanner(i, keep)
				s.frame = of
				all[i] = scanFile(ctx, src.Logs[i], s, want, &buf)
				break
			}
		}
	}
}

// untag removes the prefixes from a line. It accepts a host name as a prefix only after a line that
// began certainly with that host, and a rank's field only after a traceback in which it stood before every line.
func (s *scanner) untag(raw string) (t logline.Tag, text string) {
	rest, host, sure, ok := logline.CutHost(raw)
	if ok && (sure || s.hostPrefix[host]) {
		if !s.hostPrefix[host] && len(s.hostPrefix) < 1<<14 {
			s.hostPrefix[host] = true
			s.Hosts[host]++
		}
		t, text = logline.CutTag(rest)
		t.Host = host
	} else if t, text = logline.CutTag(raw); t.Host == "" {
		t.Host = s.speaker
	}
	if s.ranked.form > 0 && t.Rank < 0 {
		if inner, f, ranked := logline.CutRank(text); ranked && f.Form == s.ranked.form && !ofException.MatchString(text[:len(text)-len(inner)]) {
			t.Rank, text = f.Rank, inner
		}
	}
	return t, text
}

// ofException matches the name of an exception before a message that begins with a rank.
var ofException = lazy.New(`[a-z](?:Error|Exception):`)

// ranked is the form of the rank's field that stands before every line of a file, 0 for none, and what a logger writes behind it.
type ranked struct {
	form   int
	margin string
}

// rankEveryLine notes that a rank's field stands before every line, which the margin of a traceback shows, and moves the
// traceback to the rank's own stream. It returns what it got if the margin shows no such thing.
func (s *scanner) rankEveryLine(st *stream, t logline.Tag, margin, text string) (*stream, logline.Tag) {
	inner, f, ok := logline.CutRank(margin)
	if !ok || t.Rank >= 0 || st.open == nil || !strings.HasPrefix(text, `  File "`) {
		return st, t
	}
	s.ranked, t.Rank = ranked{f.Form, inner}, f.Rank
	own := &stream{open: st.open, openedAt: st.openedAt, above: st.above, previous: st.previous, margin: inner}
	st.open, st.margin = nil, ""
	s.streams[t] = own
	return own, t
}
