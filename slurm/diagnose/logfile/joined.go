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

// TakenApart is the source with those logs that hold several as so many: what tail and
// head print of more than one file ("==> rank_3.log <=="), and what grep does
// ("rank_3.log:text"). A part has the name that it had, below that of the file, for what
// the name tells; its lines stay where they are.
func (s Source) TakenApart() Source {
	if len(s.Logs) > fewLogs {
		return s
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
	return s
}

// Place is the file and the number, from 1, of the line that starts at off: of a part,
// those of the file that holds it.
func (f *File) Place(off int64) (name string, no int) {
	no = f.Number(f.LineAt(off))
	if f.Digested != nil && f.Digested.Holder != "" {
		return f.Digested.Holder, no
	}
	return f.Holder(f.Name), no
}

// Holder is the name of the file that holds this one; otherwise where it is one itself.
func (f *File) Holder(otherwise string) string {
	if f.holder == nil {
		return otherwise
	}
	return f.holder.Name
}

// Number is the number that the line of this number has where it stands.
func (f *File) Number(no int) int {
	if no > 0 && no <= len(f.lines) {
		return f.lines[no-1]
	}
	return no
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
	text, lines := map[string]*bytes.Buffer{}, map[string][]int{}
	name := ""
	for no := 1; len(data) > 0; no++ {
		line, rest, _ := bytes.Cut(data, Newline)
		data = rest
		if byHeader {
			if g := header.FindStringSubmatch(string(line[:min(len(line), MaxLineLength)])); g != nil {
				if b := text[name]; b != nil && bytes.HasSuffix(b.Bytes(), []byte("\n\n")) {
					b.Truncate(b.Len() - 1) // tail's empty line before a heading
					lines[name] = lines[name][:len(lines[name])-1]
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
		lines[name] = append(lines[name], no)
	}
	if !byHeader && !asLines(order, text) {
		return nil
	}
	var files []*File
	for _, n := range order {
		b := text[n].Bytes()
		inside := path.Clean("/" + n)
		files = append(files, &File{
			Name: f.Name + inside, Size: int64(len(b)), Modified: f.Modified,
			Kept: &kept{Head: b, size: int64(len(b))}, holder: f, lines: lines[n],
		})
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
