package diagnose

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/redact"
	"github.com/megatron-ops/megatron-ops/internal/within"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logfile"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logline"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/scan"
)

// A followedFile is the state of reading a file that grows.
type followedFile struct {
	off  int64
	no   int
	part string    // the beginning of an incomplete line
	at   time.Time // the newest time in a line so far
	privateKeys
}

// A Follower returns new lines of logs as they are written.
type Follower struct {
	f     Filter
	files map[string]*followedFile
	job   *job // for finding the rank and node of each line, as of the last scan
	known []string
	looks int
}

// NewFollower returns a follower of what is written after the logs in from, which may be empty. It
// reads files that appear later from their beginning, and also a file that became shorter, as after a
// requeue.
func NewFollower(from logfile.Source, f Filter) *Follower {
	w := &Follower{f: f, files: map[string]*followedFile{}}
	for _, file := range from.Logs {
		if file.Path != "" {
			w.files[file.Name] = &followedFile{off: file.Size, no: file.LineAt(file.Size) - 1}
		}
	}
	return w
}

// rescanEvery is the number of Looks after which the follower scans all logs again for who writes into
// which file.
const rescanEvery = 30

// Look returns the lines completed under paths since the last Look, of all ranks, merged by time and in
// order within each file. A missing file has no lines. Where in is not nil, Look opens files only below
// its folders.
func (w *Follower) Look(ctx context.Context, in *within.Folders, paths ...string) ([]Line, error) {
	src, err := logfile.OpenIn(in, paths...)
	if err != nil {
		return nil, nil //nolint:nilerr // a log that is not there yet has no lines
	}
	names := src.Files()
	if w.job == nil || !slices.Equal(names, w.known) || w.looks%rescanEvery == 0 {
		all, err := scan.All(ctx, src)
		if err != nil {
			return nil, err
		}
		w.job = newJob(src, all, Context{Nodes: w.f.Nodes})
		w.job.resolve()
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
			s = &followedFile{}
			w.files[file.Name] = s
		}
		for _, l := range s.read(w.job, i, file, w.f) {
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

// maxFollowed bounds the bytes of one file that one Look reads. The next Look reads on.
const maxFollowed = 4 << 20

// read returns the lines of a file that were completed since the last Look.
func (s *followedFile) read(j *job, i int, file *logfile.File, f Filter) (lines []Line) {
	if file.Size < s.off {
		*s = followedFile{}
	}
	if file.Size == s.off {
		return nil
	}
	who := j.findNodes()
	in, err := file.Open()
	if err != nil {
		return nil // a file that vanished has nothing new
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
		text := redact.Clean(strings.TrimRight(string(raw[:min(len(raw), logfile.MaxLineLength)]), "\r\n "))
		if text == "" {
			continue
		}
		t, plain := logline.CutTag(text)
		if s.hides(t, plain) {
			text, plain = redact.Mask, redact.Mask
		}
		rank := j.rankOf(i, t)
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
			at = withYear(at, j.year)
			l.Time = &at
		}
		lines = append(lines, l)
	}
	s.part = string(rest[max(0, len(rest)-logfile.MaxLineLength):])
	return lines
}
