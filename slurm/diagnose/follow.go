package diagnose

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/redact"
)

// A followed file is read on from where it was left.
type followed struct {
	off  int64
	no   int
	part string // a line that is not complete yet
}

// Follow calls yield with lines as they are written under paths, of all ranks,
// until ctx ends or yield returns an error. It starts at the files' present
// ends; files that appear later are read from their start, and one that became
// shorter, as after a requeue, is read anew. wait is how long it pauses
// between looks.
func Follow(ctx context.Context, paths []string, f Filter, wait time.Duration, yield func(Line) error) error {
	state := map[string]*followed{}
	for first := true; ; first = false {
		src, err := Open(paths...)
		if err == nil {
			j := newJob(src, make([]*facts, 0), Context{})
			j.files = make([]*facts, len(src.files))
			for i := range j.files {
				j.files[i] = newScanner(i, 0).facts
			}
			j.placeFiles()
			for i, file := range src.files {
				if file.path == "" {
					continue
				}
				s := state[file.name]
				if s == nil {
					s = &followed{}
					if first {
						s.off = file.size
						s.no = file.lineAt(file.size) - 1
					}
					state[file.name] = s
				}
				if err := s.read(j, i, file, f, yield); err != nil {
					return err
				}
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(wait):
		}
	}
}

// maxFollowed bounds what is read of one file at a look; the rest comes next.
const maxFollowed = 4 << 20

// read tells the complete lines that a file has since the last look.
func (s *followed) read(j *job, i int, file *logFile, f Filter, yield func(Line) error) error {
	if file.size < s.off {
		*s = followed{}
	}
	if file.size == s.off {
		return nil
	}
	in, err := open(file.path)
	if err != nil {
		return nil //nolint:nilerr // a file that vanished between two looks has nothing new
	}
	defer in.Close()
	b := make([]byte, min(file.size-s.off, maxFollowed))
	n, err := in.ReadAt(b, s.off)
	if err != nil && n == 0 && !errors.Is(err, io.EOF) {
		return nil
	}
	s.off += int64(n)
	rest := s.part + string(b[:n])
	for {
		k := indexNewline(rest)
		if k < 0 {
			break
		}
		raw := rest[:min(k, maxLineLength)]
		rest = rest[k+1:]
		s.no++
		text := redact.Clean(trimEnd(raw))
		if text == "" {
			continue
		}
		t, plain := untag(text)
		rank, node := j.rankOf(i, t, nil), j.fileNode[i]
		if f.Rank != nil && rank != *f.Rank || f.Node != "" && node != f.Node || !atLevel(plain, f.Level) {
			continue
		}
		l := Line{File: file.name, LineNo: s.no, Node: node, Text: redact.Text(text)}
		if rank >= 0 {
			l.Rank = &rank
		}
		if at, ok := timestamp(plain); ok && at.Year() != yearless {
			l.Time = &at
		}
		if err := yield(l); err != nil {
			return err
		}
	}
	s.part = rest[max(0, len(rest)-maxLineLength):]
	return nil
}

func indexNewline(s string) int {
	for i := range len(s) {
		if s[i] == '\n' {
			return i
		}
	}
	return -1
}
