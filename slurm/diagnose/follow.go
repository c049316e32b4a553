package diagnose

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/redact"
	"github.com/megatron-ops/megatron-ops/internal/within"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logfile"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logline"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/scan"
)

// A followed file is read on from where it was left.
type followed struct {
	off  int64
	no   int
	part string    // a line that is not complete yet
	at   time.Time // the last time that a line named
	keys
}

// A Follower tells lines as they are written.
type Follower struct {
	f     Filter
	files map[string]*followed
	place *job // who speaks in which file, as far as is known
	known []string
	looks int
}

// NewFollower returns a follower of what will be written after the logs in from,
// which may be empty: files that appear later are read from their start, and one
// that became shorter, as after a requeue, is read anew.
func NewFollower(from logfile.Source, f Filter) *Follower {
	w := &Follower{f: f, files: map[string]*followed{}}
	for _, file := range from.Logs {
		if file.Path != "" {
			w.files[file.Name] = &followed{off: file.Size, no: file.LineAt(file.Size) - 1}
		}
	}
	return w
}

// rescan is after how many looks it is looked anew who speaks in which file.
const rescan = 30

// Look returns the lines that were completed under paths since the last look, of
// all ranks, merged by time and within one file in its order. Files that are not
// there, or not yet, have none. They are opened by way of in; nil: by name.
func (w *Follower) Look(ctx context.Context, in *within.Folders, paths ...string) ([]Line, error) {
	src, err := logfile.OpenIn(in, paths...)
	if err != nil {
		return nil, nil //nolint:nilerr // a log that is not there yet has no lines
	}
	names := src.Files()
	if w.place == nil || !slices.Equal(names, w.known) || w.looks%rescan == 0 {
		all, err := scan.All(ctx, src)
		if err != nil {
			return nil, err
		}
		w.place = newJob(src, all, Context{Nodes: w.f.Nodes})
		w.place.resolve()
		w.known = names
	}
	w.looks++
	type dated struct {
		Line
		at time.Time
	}
	var fresh []dated
	for i, file := range src.Logs {
		if file.Path == "" {
			continue
		}
		s := w.files[file.Name]
		if s == nil {
			s = &followed{}
			w.files[file.Name] = s
		}
		for _, l := range s.read(w.place, i, file, w.f) {
			if l.Time != nil {
				s.at = *l.Time
			}
			fresh = append(fresh, dated{l, s.at})
		}
	}
	slices.SortStableFunc(fresh, func(a, b dated) int { return a.at.Compare(b.at) })
	lines := make([]Line, len(fresh))
	for i, l := range fresh {
		lines[i] = l.Line
	}
	return lines, nil
}

// maxFollowed bounds what is read of one file at a look; the rest comes next.
const maxFollowed = 4 << 20

// read returns the complete lines that a file has since the last look.
func (s *followed) read(j *job, i int, file *logfile.File, f Filter) (lines []Line) {
	if file.Size < s.off {
		*s = followed{}
	}
	if file.Size == s.off {
		return nil
	}
	who := j.speakers(nil)
	in, err := file.Open()
	if err != nil {
		return nil // a file that vanished between two looks has nothing new
	}
	defer in.Close()
	b := make([]byte, min(file.Size-s.off, maxFollowed))
	n, err := in.ReadAt(b, s.off)
	if err != nil && n == 0 && !errors.Is(err, io.EOF) {
		return nil
	}
	s.off += int64(n)
	rest := append([]byte(s.part), b[:n]...)
	for {
		raw, after, ok := bytes.Cut(rest, logfile.Newline)
		if !ok {
			break
		}
		rest = after
		s.no++
		text := redact.Clean(trimEnd(string(raw[:min(len(raw), logfile.MaxLineLength)])))
		if text == "" {
			continue
		}
		t, plain := logline.CutTag(text)
		if s.hides(t, plain) {
			text, plain = redact.Mask, redact.Mask
		}
		rank := j.rankOf(i, t, nil)
		node := who.node(i, t, rank)
		if node == "" {
			node = scan.NodeIn(plain)
		}
		if f.Rank != nil && rank != *f.Rank || f.Node != "" && node != f.Node || !atLevel(plain, f.Level) {
			continue
		}
		l := Line{File: file.Name, LineNo: s.no, Node: node, Text: redact.Text(text)}
		if rank >= 0 {
			l.Rank = &rank
		}
		if at, ok := logline.ParseTime(plain); ok {
			if at.Year() == logline.Yearless {
				at = at.AddDate(j.year, 0, 0)
			}
			l.Time = &at
		}
		lines = append(lines, l)
	}
	s.part = string(rest[max(0, len(rest)-logfile.MaxLineLength):])
	return lines
}
