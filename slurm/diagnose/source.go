package diagnose

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/within"
)

// Bounds on what is read, whatever is there to read.
const (
	maxFiles      = 65536
	headWindow    = 64 << 10
	smallHead     = 8 << 10  // where only the smallest end is read
	minWindow     = 64 << 10 // of the end of each file, at least
	maxWindow     = 4 << 20  // of the end of each file, where there are few
	allWindows    = 16 << 20 // the ends of all files together, before any is extended
	maxExtended   = 16 << 20 // of one file whose end shows no progress
	maxLineLength = 4 << 10  // of a line that is looked at; the rest of it is skipped
)

// A Source is a set of log files of one job.
type Source struct {
	root  string
	files []*logFile
	dumps []*logFile // of the flight recorder

	unreadable []Unreadable
	noLogs     bool // the job left none

	recorded    []*recording // dumps that were read elsewhere
	in          *within.Folders
	part, parts int // which files are taken: each parts-th, from part on; 0: all
	seen        int // files that were come by
	kept        int // bytes of streams
}

// A logFile is one log: a regular file that is opened when it is read, or the
// ends of a stream that were kept.
type logFile struct {
	name  string // relative to the source's root
	path  string // on disk; empty for a stream
	in    *within.Folders
	size  int64
	mtime time.Time
	kept  *kept

	digested *digest
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
	if err == nil && len(s.files)+len(s.dumps)+len(s.recorded) == 0 && len(s.unreadable) > 0 {
		return s, &UnreadableError{s.unreadable}
	}
	if err == nil && len(s.files)+len(s.dumps)+len(s.recorded) == 0 {
		err = lang.Text{
			EN: "logs %q: no readable log file in it: %s",
			ZH: "日志 %q：其中没有可读取的日志文件：%s",
		}.Err(strings.Join(paths, " "), fs.ErrNotExist)
	}
	return s, err
}

// Count returns how many logs lie under the given paths. Nothing is read but
// folders; an archive counts as one.
func Count(paths ...string) (int, error) {
	s, err := gather(nil, -1, 1, paths)
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
	sort.SliceStable(s.files, func(i, j int) bool { return s.files[i].name < s.files[j].name })
	return s, nil
}

// Read gathers one log from a stream such as standard input, keeping its ends
// where it is long.
func Read(name string, r io.Reader) (Source, error) {
	k, err := keep(r, keepTail)
	if err != nil {
		return Source{}, lang.Text{EN: "logs %q: %s", ZH: "日志 %q：%s"}.Err(name, err)
	}
	return Source{files: []*logFile{{name: name, size: k.size, kept: k}}}, nil
}

// Files returns the names of the logs in the source, relative to its root.
func (s Source) Files() []string {
	names := make([]string, len(s.files))
	for i, f := range s.files {
		names[i] = f.name
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
	return s.in.WalkDir(path, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			rel, relErr := filepath.Rel(path, p)
			if relErr != nil || rel == "." {
				rel = p
			}
			s.skip(filepath.ToSlash(rel), reasonOf(err))
			return nil
		}
		if d.IsDir() {
			if d.Name() == ".git" || d.Name() == ".venv" {
				return fs.SkipDir
			}
			return nil
		}
		info, err := d.Info()
		if err == nil && info.Mode().IsRegular() && len(s.dumps) < maxFiles && (dumpName.MatchString(d.Name()) || s.holdsDump(p, d.Name())) {
			if !s.mine() {
				return nil
			}
			rel, _ := filepath.Rel(path, p)
			s.dumps = append(s.dumps, &logFile{name: filepath.ToSlash(rel), path: p, in: s.in, size: info.Size(), mtime: info.ModTime()})
			return nil
		}
		if err != nil || !info.Mode().IsRegular() || !isLog(d.Name(), info.Size()) || len(s.files) >= maxFiles {
			return nil
		}
		rel, err := filepath.Rel(path, p)
		if err != nil {
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

// notLogs are files that lie beside logs and are none.
var notLogs = []string{
	".json",
	".jsonl",
	".yaml",
	".yml",
	".py",
	".pyc",
	".sh",
	".sbatch",
	".bin",
	".idx",
	".pt",
	".pth",
	".npy",
	".npz",
	".safetensors",
	".distcp",
	".png",
	".so",
	".o",
	".lock",
	".pid",
	".db",
	".sqlite",
	".nsys-rep",
	".qdrep",
	".md",
	".toml",
	".csv",
	".html",
	".svg",
	".sqsh",
	".sif",
	".whl",
	".pickle",
	".pkl",
}

func isLog(name string, size int64) bool {
	if size == 0 || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "events.out.tfevents") {
		return false
	}
	low := strings.ToLower(name)
	for _, end := range notLogs {
		if strings.HasSuffix(low, end) {
			return false
		}
	}
	return true
}

func (s *Source) addFile(path, name string, info fs.FileInfo) error {
	if !info.Mode().IsRegular() {
		return lang.Text{EN: "logs %q: not a regular file", ZH: "日志 %q：不是普通文件"}.Err(path)
	}
	if !s.mine() {
		return nil
	}
	if base := filepath.Base(path); dumpName.MatchString(base) || s.holdsDump(path, base) {
		s.dumps = append(s.dumps, &logFile{name: name, path: path, in: s.in, size: info.Size(), mtime: info.ModTime()})
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
	s.files = append(s.files, &logFile{name: name, path: path, in: s.in, size: info.Size(), mtime: info.ModTime()})
	return nil
}

// holdsDump reports whether a file whose name ends with a rank, and with none of
// a log's endings, holds a flight recorder dump.
func (s *Source) holdsDump(path, name string) bool {
	if !rankAtEnd.MatchString(name) {
		return false
	}
	f, err := s.in.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	head := make([]byte, 4096)
	n, _ := io.ReadFull(f, head)
	return isDump(name, head[:n])
}

// orSkip notes that an archive could not be read; what else there is is read.
func (s *Source) orSkip(name string, err error) error {
	if err != nil {
		s.skip(name, reasonOf(err))
	}
	return nil
}

// open opens the log's file.
func (f *logFile) open() (*os.File, error) { return f.in.Open(f.path) }

var newline = []byte{'\n'}

// A window is a piece of a log.
type window struct {
	data []byte
	off  int64 // where it starts in the file
}

// windows reads the parts of the log that matter: its head, and from the end
// back until healthy progress is seen, at least want bytes.
func (f *logFile) windows(ctx context.Context, buf *[]byte, want int, healthy func([]byte) bool) ([]window, error) {
	if f.kept != nil {
		ws := []window{{f.kept.head, 0}}
		if f.kept.tail != nil {
			ws = append(ws, window{f.kept.tail, int64(len(f.kept.head)) + f.kept.gapBytes})
		}
		return ws, nil
	}
	file, err := f.open()
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if k, err := keptAsUTF8(file); k != nil {
		if f.kept, f.size = k, k.size; err != nil {
			return nil, err
		}
		return f.windows(ctx, buf, want, healthy)
	}
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		from := max(0, f.size-int64(want))
		tail, err := readAt(file, buf, 0, from, int(f.size-from))
		if err != nil {
			return nil, err
		}
		if from > 0 && want < maxExtended && !healthy(tail) {
			want = min(4*want, maxExtended)
			continue
		}
		if from == 0 {
			return []window{{tail, 0}}, nil
		}
		if i := bytes.IndexByte(tail, '\n'); i >= 0 && i < len(tail)-1 {
			tail, from = tail[i+1:], from+int64(i)+1
		}
		n := int(min(headWindow, from))
		if want <= 2*minWindow {
			n = min(n, smallHead)
		}
		head, err := readAt(file, buf, want+1, 0, n)
		if err != nil {
			return nil, err
		}
		if i := bytes.LastIndexByte(head, '\n'); i >= 0 {
			head = head[:i+1]
		}
		return []window{{head, 0}, {tail, from}}, nil
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

// lineAt returns the number, from 1, of the line that starts at off.
func (f *logFile) lineAt(off int64) int {
	if f.digested != nil {
		return f.digested.lineOf(off)
	}
	if k := f.kept; k != nil {
		if off <= int64(len(k.head)) {
			return bytes.Count(k.head[:off], newline) + 1
		}
		inTail := off - int64(len(k.head)) - k.gapBytes
		return bytes.Count(k.head, newline) + k.gapLines + bytes.Count(k.tail[:max(0, min(inTail, int64(len(k.tail))))], newline) + 1
	}
	file, err := f.open()
	if err != nil {
		return 0
	}
	defer file.Close()
	buf := countBuffers.Get().(*[]byte)
	defer countBuffers.Put(buf)
	lines := 1
	for at := int64(0); at < off; {
		n, err := file.ReadAt((*buf)[:min(int64(len(*buf)), off-at)], at)
		lines += bytes.Count((*buf)[:n], newline)
		at += int64(n)
		if n == 0 || err != nil && !errors.Is(err, io.EOF) {
			break
		}
	}
	return lines
}
