// Package logfile opens the logs of one job: files, folders, archives and compressed logs. It bounds
// how much is read, and notes what could not be read and why.
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

// Bounds on what is read, in bytes unless named otherwise.
const (
	maxFiles      = 65536
	headWindow    = 64 << 10
	smallHead     = 8 << 10  // of the beginning, where only MinWindow or little more of the end is read
	MinWindow     = 64 << 10 // of the end of each file, at least
	MaxWindow     = 4 << 20  // of the end of each file, if there are few files
	AllWindows    = 16 << 20 // of the ends of all files together, before any of them is extended
	MaxExtended   = 16 << 20 // of the end of a file whose last lines show no progress
	MaxLineLength = 4 << 10  // of a line; the rest of the line is skipped
)

// A Source is the set of one job's log files.
type Source struct {
	root  string
	Logs  []*File
	dumps []*File // of PyTorch's flight recorder

	Unreadable []Unreadable
	LeftOut    []string     // files of a folder that are empty or not named like a log
	OtherJobs  []string     // logs of a folder that belong to jobs older than the newest
	OtherLogs  []Unreadable // logs with the job's number that are another job's, with the reason
	NoLogs     bool         // the job left no log

	recorded    []*flightrecorder.Recording // flight recorder dumps that were read from an archive or a digest
	in          *within.Folders
	part, parts int // OpenPart's: take every parts-th file, from the part-th on; parts is 0 for all files
	seen        int // files found so far, taken or not
	kept        int // bytes that are kept of streams
}

// A File is one log: a regular file that is opened when it is read, or the ends of a stream that are
// kept in memory.
type File struct {
	Name     string // relative to the source's root
	Path     string // on disk; empty for a stream
	in       *within.Folders
	Size     int64
	Modified time.Time
	Kept     *streamEnds

	Digested *Digest

	holder *File // the file from which this one was split off; nil for a file on its own
	lines  []int // of a split-off log: the numbers of its lines in holder
}

// Packed reports whether the log comes from a compressed file or an archive, to which no job writes on.
func (f *File) Packed() bool {
	if f.holder != nil {
		return f.holder.Packed()
	}
	return f.Kept != nil
}

// Open gathers the logs under the given paths: files, directories and glob patterns. It opens regular
// files only, does not follow symbolic links out of a directory, and starts no process. It reads
// through compressed files and archives. It returns an UnreadableError if it can read none of the logs,
// and a NoLogError if there are none.
func Open(paths ...string) (Source, error) { return OpenIn(nil, paths...) }

// OpenIn is Open below the folders of in, which must stay open while the source is read. The source
// opens no file outside of these folders, even where a link replaces a log. A nil in opens by path.
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

// Count returns the number of logs under the given paths, or an error if there are none. It reads
// folders only, so that an archive counts as one log.
func Count(paths ...string) (int, error) {
	s, err := gather(nil, -1, 1, paths)
	if err == nil && s.seen == 0 {
		err = &NoLogError{paths, s.LeftOut}
	}
	return s.seen, err
}

// OpenPart is Open for the i-th of n parts of the logs. Every call with the same n and paths divides
// the logs in the same way. It does not touch the other parts.
func OpenPart(i, n int, paths ...string) (Source, error) { return gather(nil, i, n, paths) }

// gather gathers the part-th of parts parts of the logs, or all logs if parts is 0.
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
			return s, pathError(p, err)
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

// Read reads one log from a stream such as standard input. Of a long stream it keeps the ends only.
func Read(name string, r io.Reader) (Source, error) {
	k, err := keepEnds(r, keepTail)
	if err != nil {
		return Source{}, pathError(name, err)
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

func pathError(path string, err error) error {
	return lang.Text{EN: "logs %q: %s", ZH: "日志 %q：%s"}.Err(path, err)
}

func (s *Source) addPath(path string) error {
	info, err := s.in.Stat(path)
	if err != nil {
		return pathError(path, err)
	}
	if !info.IsDir() {
		return s.addFile(path, filepath.Base(path), info)
	}
	older := FindOlderJobs(s.in, path)
	return s.in.WalkDir(path, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			if s.firstPart() {
				name := below(path, p)
				if name == "." {
					name = filepath.ToSlash(p)
				}
				s.skip(name, err)
			}
			return nil
		}
		if d.IsDir() {
			return loglike.Enter(d.Name())
		}
		info, err := d.Info()
		if err == nil && info.Mode().IsRegular() && len(s.dumps) < maxFiles && s.isDump(p) {
			if s.inPart() {
				s.dumps = append(s.dumps, s.newFile(p, below(path, p), info))
			}
			return nil
		}
		if err != nil || !info.Mode().IsRegular() || len(s.Logs) >= maxFiles {
			return nil
		}
		switch name := below(path, p); {
		case !isLog(filepath.ToSlash(p), info.Size()):
			if s.firstPart() {
				s.LeftOut = append(s.LeftOut, name)
			}
		case older.Wrote(name):
			if s.firstPart() {
				s.OtherJobs = append(s.OtherJobs, name)
			}
		case s.inPart():
			s.addLog(p, name, info)
		}
		return nil
	})
}

// below is the path of a file relative to a folder above it, with slashes.
func below(folder, file string) string {
	rel, _ := filepath.Rel(folder, file)
	return filepath.ToSlash(rel)
}

// inPart reports whether the next file belongs to the part that the source gathers.
func (s *Source) inPart() bool {
	k := s.seen
	s.seen++
	return s.parts <= 0 || k%s.parts == s.part
}

// firstPart reports whether the source gathers the first part, or all. Every part comes across the same
// left-out and unreadable files; only the first part notes them.
func (s *Source) firstPart() bool { return s.part <= 0 }

// isLog reports whether a file may be a log. An empty file counts where torchrun keeps the output of a
// rank, as it shows that the attempt began.
func isLog(name string, size int64) bool {
	return (size > 0 || AttemptPath.MatchString(name)) && loglike.Name(path.Base(name))
}

// addFile adds the file at path, which the source calls name.
func (s *Source) addFile(path, name string, info fs.FileInfo) error {
	if !info.Mode().IsRegular() {
		return lang.Text{EN: "logs %q: not a regular file", ZH: "日志 %q：不是普通文件"}.Err(path)
	}
	if !s.inPart() {
		return nil
	}
	if s.isDump(path) {
		s.dumps = append(s.dumps, s.newFile(path, name, info))
		return nil
	}
	s.addLog(path, name, info)
	return nil
}

func (s *Source) newFile(path, name string, info fs.FileInfo) *File {
	return &File{Name: name, Path: path, in: s.in, Size: info.Size(), Modified: info.ModTime()}
}

// addLog adds a log, or the logs of an archive. It notes an archive that it cannot read.
func (s *Source) addLog(path, name string, info fs.FileInfo) {
	var err error
	switch low := strings.ToLower(name); {
	case strings.HasSuffix(low, ".zip"):
		err = s.addZip(path)
	case strings.HasSuffix(low, ".tar"), strings.HasSuffix(low, ".tar.gz"), strings.HasSuffix(low, ".tgz"), strings.HasSuffix(low, ".tar.zst"):
		err = s.withReader(path, s.addTar)
	case strings.HasSuffix(low, ".gz"), strings.HasSuffix(low, ".zst"):
		err = s.withReader(path, func(r io.Reader) { s.addStream(name, info.ModTime(), r) })
	default:
		s.Logs = append(s.Logs, s.newFile(path, name, info))
	}
	if err != nil {
		s.skip(name, err)
	}
}

// isDump reports whether a file is a flight recorder dump, by its name or its contents.
func (s *Source) isDump(path string) bool {
	base := filepath.Base(path)
	return flightrecorder.DumpName.MatchString(base) || s.holdsDump(path, base)
}

// holdsDump reports whether a file holds a flight recorder dump although its name does not say so. It
// reads the file's first bytes if the name ends with a rank.
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

// Open opens the log's file.
func (f *File) Open() (*os.File, error) { return f.in.Open(f.Path) }

// Newline is the byte that ends a line.
var Newline = []byte{'\n'}

// A Window is a contiguous piece of a log.
type Window struct {
	Data []byte
	Off  int64 // where it starts in the file
}

// Windows reads the parts of a log that matter: its beginning, and at least want bytes of its end.
// While healthy returns false for the end, Windows reads further back, up to MaxExtended. The windows
// lie in buf, which Windows may replace by a larger one.
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

// readAt reads n bytes at offset off of the file into *buf at index at. It replaces *buf by a larger
// one if necessary.
func readAt(file *os.File, buf *[]byte, at int, off int64, n int) ([]byte, error) {
	if need := at + n; len(*buf) < need {
		bigger := make([]byte, need+need/8)
		copy(bigger, *buf)
		*buf = bigger
	}
	got, err := file.ReadAt((*buf)[at:at+n], off)
	if errors.Is(err, io.EOF) {
		err = nil // the file became shorter meanwhile
	}
	return (*buf)[at : at+got], err
}

var countBuffers = sync.Pool{New: func() any { b := make([]byte, 1<<20); return &b }}

// LineAt returns the number, from 1, of the line that starts at off. It counts newlines from the
// beginning of the file; 0 means that it could not.
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
