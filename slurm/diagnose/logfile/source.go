// Package logfile opens the logs of one job: files, folders, archives and compressed
// logs, within bounds on what is read, and notes what could not be read and why.
package logfile

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/within"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/flightrecorder"
	"github.com/megatron-ops/megatron-ops/slurm/loglike"
)

// Bounds on what is read, whatever is there to read.
const (
	maxFiles      = 65536
	headWindow    = 64 << 10
	smallHead     = 8 << 10  // where only the smallest end is read
	MinWindow     = 64 << 10 // of the end of each file, at least
	MaxWindow     = 4 << 20  // of the end of each file, where there are few
	AllWindows    = 16 << 20 // the ends of all files together, before any is extended
	MaxExtended   = 16 << 20 // of one file whose end shows no progress
	MaxLineLength = 4 << 10  // of a line that is looked at; the rest of it is skipped
)

// A Source is a set of log files of one job.
type Source struct {
	root  string
	Logs  []*File
	dumps []*File // of the flight recorder

	Unreadable []Unreadable
	LeftOut    []string // of a folder's files, what is empty or has no log's name
	OtherJobs  []string // of a folder's logs, those of jobs before the newest
	NoLogs     bool     // the job left none

	recorded    []*flightrecorder.Recording // dumps that were read elsewhere
	in          *within.Folders
	part, parts int // which files are taken: each parts-th, from part on; 0: all
	seen        int // files that were come by
	kept        int // bytes of streams
}

// A File is one log: a regular file that is opened when it is read, or the
// ends of a stream that were kept.
type File struct {
	Name     string // relative to the source's root
	Path     string // on disk; empty for a stream
	in       *within.Folders
	Size     int64
	Modified time.Time
	Kept     *kept

	Digested *Digest

	holder *File // the file that this one is a part of; nil: it is one itself
	lines  []int // of a part: the numbers that its lines have in the holder
}

// Open gathers the logs under the given paths: files, directories and glob
// patterns. Only regular files are opened, symbolic links are not followed out
// of a directory, and nothing is started. Compressed files and archives are
// read through.
func Open(paths ...string) (Source, error) { return OpenIn(nil, paths...) }

// OpenIn is Open by way of folders, which must stay open as long as the source
// is read: nothing outside of them is, whatever is put in a log's place.
func OpenIn(in *within.Folders, paths ...string) (Source, error) {
	s, err := gather(in, 0, 0, paths)
	if err == nil && len(s.Logs)+len(s.dumps)+len(s.recorded) == 0 && len(s.Unreadable) > 0 {
		return s, &UnreadableError{s.Unreadable}
	}
	if err == nil && len(s.Logs)+len(s.dumps)+len(s.recorded) == 0 {
		err = &NoLogError{paths, s.LeftOut}
	}
	return s, err
}

// Count returns how many logs lie under the given paths; none is an error. Nothing is read
// but folders; an archive counts as one.
func Count(paths ...string) (int, error) {
	s, err := gather(nil, -1, 1, paths)
	if err == nil && s.seen == 0 {
		err = &NoLogError{paths, s.LeftOut}
	}
	return s.seen, err
}

// OpenPart is Open for the i-th of n parts of the logs, which are the same
// parts wherever it is called; the others are not touched.
func OpenPart(i, n int, paths ...string) (Source, error) { return gather(nil, i, n, paths) }

// gather is Open for the parts-th part of the logs.
func gather(in *within.Folders, part, parts int, paths []string) (Source, error) {
	s := Source{in: in, part: part, parts: parts}
	for _, p := range paths {
		names := []string{p}
		info, err := in.Stat(p)
		if err != nil && strings.ContainsAny(p, "*?[") {
			if names, err = in.Glob(p); err == nil && len(names) == 0 {
				err = fs.ErrNotExist
			}
		}
		if err != nil {
			return s, lang.Text{EN: "logs %q: %s", ZH: "日志 %q：%s"}.Err(p, err)
		}
		if len(paths) == 1 && len(names) == 1 && info != nil && info.IsDir() {
			s.root = p
		}
		for _, name := range names {
			if err := s.addPath(name); err != nil {
				return s, err
			}
		}
	}
	sort.SliceStable(s.Logs, func(i, j int) bool { return s.Logs[i].Name < s.Logs[j].Name })
	return s, nil
}

// Read gathers one log from a stream such as standard input, keeping its ends
// where it is long.
func Read(name string, r io.Reader) (Source, error) {
	k, err := keep(r, keepTail)
	if err != nil {
		return Source{}, lang.Text{EN: "logs %q: %s", ZH: "日志 %q：%s"}.Err(name, err)
	}
	return Source{Logs: []*File{{Name: name, Size: k.size, Kept: k}}}, nil
}

// Files returns the names of the logs in the source, relative to its root.
func (s Source) Files() []string {
	names := make([]string, len(s.Logs))
	for i, f := range s.Logs {
		names[i] = f.Name
	}
	return names
}

func (s *Source) addPath(path string) error {
	info, err := s.in.Stat(path)
	if err != nil {
		return lang.Text{EN: "logs %q: %s", ZH: "日志 %q：%s"}.Err(path, err)
	}
	if !info.IsDir() {
		return s.addFile(path, filepath.Base(path), info)
	}
	older := FindOlderJobs(s.in, path)
	return s.in.WalkDir(path, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			rel, _ := filepath.Rel(path, p)
			if rel == "." {
				rel = p
			}
			if s.tells() {
				s.skip(filepath.ToSlash(rel), err)
			}
			return nil
		}
		if d.IsDir() {
			return loglike.Enter(d.Name())
		}
		info, err := d.Info()
		if err == nil && info.Mode().IsRegular() && len(s.dumps) < maxFiles && (flightrecorder.DumpName.MatchString(d.Name()) || s.holdsDump(p, d.Name())) {
			if !s.mine() {
				return nil
			}
			rel, _ := filepath.Rel(path, p)
			s.dumps = append(s.dumps, &File{Name: filepath.ToSlash(rel), Path: p, in: s.in, Size: info.Size(), Modified: info.ModTime()})
			return nil
		}
		if err != nil || !info.Mode().IsRegular() || len(s.Logs) >= maxFiles {
			return nil
		}
		rel, _ := filepath.Rel(path, p) // p lies below path
		if !isLog(filepath.ToSlash(p), info.Size()) {
			if s.tells() {
				s.LeftOut = append(s.LeftOut, filepath.ToSlash(rel))
			}
			return nil
		}
		if older.Wrote(rel) {
			if s.tells() {
				s.OtherJobs = append(s.OtherJobs, filepath.ToSlash(rel))
			}
			return nil
		}
		return s.addFile(p, filepath.ToSlash(rel), info)
	})
}

// mine reports whether the next file belongs to the part that is gathered.
func (s *Source) mine() bool {
	k := s.seen
	s.seen++
	return s.parts <= 0 || k%s.parts == s.part
}

// tells reports whether the part that is gathered tells of what no part reads, which
// each of them comes by.
func (s *Source) tells() bool { return s.part <= 0 }

// isLog reports whether a file may be a log. An empty one is where torchrun keeps what
// a rank writes: its attempt began.
func isLog(name string, size int64) bool {
	return (size > 0 || AttemptPath.MatchString(name)) && loglike.Name(path.Base(name))
}

func (s *Source) addFile(path, name string, info fs.FileInfo) error {
	if !info.Mode().IsRegular() {
		return lang.Text{EN: "logs %q: not a regular file", ZH: "日志 %q：不是普通文件"}.Err(path)
	}
	if !s.mine() {
		return nil
	}
	if base := filepath.Base(path); flightrecorder.DumpName.MatchString(base) || s.holdsDump(path, base) {
		s.dumps = append(s.dumps, &File{Name: name, Path: path, in: s.in, Size: info.Size(), Modified: info.ModTime()})
		return nil
	}
	switch low := strings.ToLower(name); {
	case strings.HasSuffix(low, ".zip"):
		return s.orSkip(name, s.addZip(path))
	case strings.HasSuffix(low, ".tar"), strings.HasSuffix(low, ".tar.gz"), strings.HasSuffix(low, ".tgz"), strings.HasSuffix(low, ".tar.zst"):
		return s.orSkip(name, s.withReader(path, func(r io.Reader) error { return s.addTar(r) }))
	case strings.HasSuffix(low, ".gz"), strings.HasSuffix(low, ".zst"):
		return s.orSkip(name, s.withReader(path, func(r io.Reader) error {
			s.addStream(name, info.ModTime(), r)
			return nil
		}))
	}
	s.Logs = append(s.Logs, &File{Name: name, Path: path, in: s.in, Size: info.Size(), Modified: info.ModTime()})
	return nil
}

// holdsDump reports whether a file whose name ends with a rank, and with none of
// a log's endings, holds a flight recorder dump.
func (s *Source) holdsDump(path, name string) bool {
	if !flightrecorder.RankAtEnd.MatchString(name) {
		return false
	}
	f, err := s.in.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	head := make([]byte, 4096)
	n, _ := io.ReadFull(f, head)
	return flightrecorder.IsDump(name, head[:n])
}

// orSkip notes that an archive could not be read; what else there is is read.
func (s *Source) orSkip(name string, err error) error {
	if err != nil {
		s.skip(name, err)
	}
	return nil
}

// Open opens the log's file.
func (f *File) Open() (*os.File, error) { return f.in.Open(f.Path) }

// Newline ends a line.
var Newline = []byte{'\n'}

// A Window is a piece of a log.
type Window struct {
	Data []byte
	Off  int64 // where it starts in the file
}

// Windows reads the parts of the log that matter: its head, and from the end
// back until healthy progress is seen, at least want bytes.
func (f *File) Windows(ctx context.Context, buf *[]byte, want int, healthy func([]byte) bool) ([]Window, error) {
	if f.Kept != nil {
		ws := []Window{{f.Kept.Head, 0}}
		if f.Kept.Tail != nil {
			ws = append(ws, Window{f.Kept.Tail, int64(len(f.Kept.Head)) + f.Kept.gapBytes})
		}
		return ws, nil
	}
	file, err := f.Open()
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if k, err := keptAsUTF8(file); k != nil {
		if f.Kept, f.Size = k, k.size; err != nil {
			return nil, err
		}
		return f.Windows(ctx, buf, want, healthy)
	}
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		from := max(0, f.Size-int64(want))
		tail, err := readAt(file, buf, 0, from, int(f.Size-from))
		if err != nil {
			return nil, err
		}
		if from > 0 && want < MaxExtended && !healthy(tail) {
			want = min(4*want, MaxExtended)
			continue
		}
		if from == 0 {
			return []Window{{tail, 0}}, nil
		}
		if i := bytes.IndexByte(tail, '\n'); i >= 0 && i < len(tail)-1 {
			tail, from = tail[i+1:], from+int64(i)+1
		}
		n := int(min(headWindow, from))
		if want <= 2*MinWindow {
			n = min(n, smallHead)
		}
		head, err := readAt(file, buf, want+1, 0, n)
		if err != nil {
			return nil, err
		}
		if i := bytes.LastIndexByte(head, '\n'); i >= 0 {
			head = head[:i+1]
		}
		return []Window{{head, 0}, {tail, from}}, nil
	}
}

// readAt reads n bytes at off into *buf from position at on, growing it.
func readAt(file *os.File, buf *[]byte, at int, off int64, n int) ([]byte, error) {
	if need := at + n; len(*buf) < need {
		bigger := make([]byte, need+need/8)
		copy(bigger, *buf)
		*buf = bigger
	}
	got, err := file.ReadAt((*buf)[at:at+n], off)
	if errors.Is(err, io.EOF) {
		err = nil // the file became shorter
	}
	return (*buf)[at : at+got], err
}

var countBuffers = sync.Pool{New: func() any { b := make([]byte, 1<<20); return &b }}

// LineAt returns the number, from 1, of the line that starts at off.
func (f *File) LineAt(off int64) int {
	if f.Digested != nil {
		return f.Digested.lineOf(off)
	}
	if k := f.Kept; k != nil {
		if off <= int64(len(k.Head)) {
			return bytes.Count(k.Head[:off], Newline) + 1
		}
		inTail := off - int64(len(k.Head)) - k.gapBytes
		return bytes.Count(k.Head, Newline) + k.gapLines + bytes.Count(k.Tail[:max(0, min(inTail, int64(len(k.Tail))))], Newline) + 1
	}
	file, err := f.Open()
	if err != nil {
		return 0
	}
	defer file.Close()
	buf := countBuffers.Get().(*[]byte)
	defer countBuffers.Put(buf)
	lines := 1
	for at := int64(0); at < off; {
		n, err := file.ReadAt((*buf)[:min(int64(len(*buf)), off-at)], at)
		lines += bytes.Count((*buf)[:n], Newline)
		at += int64(n)
		if n == 0 || err != nil && !errors.Is(err, io.EOF) {
			break
		}
	}
	return lines
}
