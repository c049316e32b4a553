package logfile

import (
	"bytes"
	"io"
	"path"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logline"
)

// Bounds on what is read as one file that others were put into.
const (
	fewLogs   = 16       // beside which it is looked for
	maxJoined = 32 << 20 // bytes of it
	maxParts  = 4096
)

// splitJoined takes apart logs that hold several: what tail and head print of more than
// one file ("==> rank_3.log <=="), and what grep does ("rank_3.log:text"). A part keeps
// the name that it had, below that of the file, and counts its own lines.
func (s *Source) splitJoined() {
	if len(s.Logs) > fewLogs {
		return
	}
	var logs []*File
	for _, f := range s.Logs {
		if parts := f.parts(); len(parts) > 0 {
			logs = append(logs, parts...)
			continue
		}
		logs = append(logs, f)
	}
	s.Logs = logs
}

// header is how tail and head announce a file; several in one are told apart by it.
var header = lazy.New(`^==> (\S.*?) <==\r?$`)

// found is how grep names the file of a line: a name with an ending or a folder.
var found = lazy.New(`^([\w./@%+=-]*[\w@%+=-]+(?:\.[\w-]+|/[\w-]+)):`)

// parts returns the files that a log was joined from; none where it was not.
func (f *File) parts() []*File {
	if f.Size > maxJoined || f.Digested != nil {
		return nil
	}
	first := string(bytes.TrimLeft(f.head(), "\r\n"))
	first, _, _ = strings.Cut(first, "\n")
	byHeader := header.MatchString(first)
	if !byHeader && !found.MatchString(first) {
		return nil
	}
	data, err := f.all()
	if err != nil {
		return nil
	}
	var order []string
	text := map[string]*bytes.Buffer{}
	name := ""
	for len(data) > 0 {
		line, rest, _ := bytes.Cut(data, Newline)
		data = rest
		if byHeader {
			if g := header.FindStringSubmatch(string(line[:min(len(line), MaxLineLength)])); g != nil {
				if b := text[name]; b != nil && bytes.HasSuffix(b.Bytes(), []byte("\n\n")) {
					b.Truncate(b.Len() - 1) // tail's empty line before a heading
				}
				if name = g[1]; text[name] != nil {
					continue // tail -f comes back to it
				}
				line = nil
			}
		} else {
			g := found.FindStringSubmatch(string(line[:min(len(line), MaxLineLength)]))
			if g == nil {
				if len(bytes.TrimSpace(line)) == 0 {
					continue
				}
				return nil
			}
			name, line = g[1], line[len(g[0]):]
		}
		b := text[name]
		if b == nil {
			if len(order) == maxParts {
				return nil
			}
			b = &bytes.Buffer{}
			text[name], order = b, append(order, name)
			if byHeader {
				continue
			}
		}
		b.Write(line)
		b.WriteByte('\n')
	}
	if !byHeader && !asLines(order, text) {
		return nil
	}
	var files []*File
	for _, n := range order {
		b := text[n].Bytes()
		inside := path.Clean("/" + n)
		files = append(files, &File{Name: f.Name + inside, Size: int64(len(b)), Modified: f.Modified, Kept: &kept{Head: b, size: int64(len(b))}})
	}
	return files
}

// asLines reports whether what stands behind names is the lines of several files, and
// not what compilers and interpreters say of places in them.
func asLines(order []string, text map[string]*bytes.Buffer) bool {
	var all []string
	for _, name := range order {
		lines := strings.Split(strings.TrimSuffix(text[name].String(), "\n"), "\n")
		all = append(all, lines...)
	}
	placed := 0
	for _, l := range all {
		if place.MatchString(l) {
			placed++
		}
	}
	return len(order) > 1 && len(all) > 2*len(order) && 2*placed < len(all) && logline.OfLines(all)
}

// place is a line's number, and what is said of it.
var place = lazy.New(`^(?:\d+:| line \d)`)

// head is the beginning of a log.
func (f *File) head() []byte {
	if f.Kept != nil {
		return f.Kept.Head[:min(len(f.Kept.Head), MaxLineLength)]
	}
	file, err := f.Open()
	if err != nil {
		return nil
	}
	defer file.Close()
	b := make([]byte, MaxLineLength)
	n, _ := io.ReadFull(file, b)
	return b[:n]
}

// all is the whole of a log.
func (f *File) all() ([]byte, error) {
	if k := f.Kept; k != nil {
		if k.Tail != nil {
			return nil, io.ErrShortBuffer
		}
		return k.Head, nil
	}
	file, err := f.Open()
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(io.LimitReader(file, maxJoined))
}
