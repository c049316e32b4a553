package logfile

import (
	"bytes"
	"io"
	"path"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logline"
)

// Bounds on splitting a file into the logs that somebody joined in it.
const (
	maxLogsToSplit = 16       // a source with more logs is not split
	maxJoined      = 32 << 20 // bytes of such a file
	maxParts       = 4096
)

// TakenApart returns the source with each log that holds several split into these: the output of tail
// and head for several files ("==> rank_3.log <=="), and grep's ("rank_3.log:text"). A part's name is
// FILE/PART, so that the part's own name can tell its rank; its line numbers stay those of the file.
func (s Source) TakenApart() Source {
	if len(s.Logs) > maxLogsToSplit {
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

// Place returns the file and the number, from 1, of the line that starts at off. For a part of a split
// file these are the file's.
func (f *File) Place(off int64) (name string, no int) {
	no = f.Number(f.LineAt(off))
	if f.Digested != nil && f.Digested.Holder != "" {
		return f.Digested.Holder, no
	}
	return f.Holder(f.Name), no
}

// Holder returns the name of the file from which this log was split off, or otherwise where it is a
// file itself.
func (f *File) Holder(otherwise string) string {
	if f.holder == nil {
		return otherwise
	}
	return f.holder.Name
}

// Number converts a line number of a split-off log to the line's number in the whole file.
func (f *File) Number(no int) int {
	if no > 0 && no <= len(f.lines) {
		return f.lines[no-1]
	}
	return no
}

// tailHeader matches the line with which tail and head announce each of several files.
var tailHeader = lazy.New(`^==> (\S.*?) <==\r?$`)

// grepName matches the file name with which grep starts a line: a name with a suffix or a folder.
var grepName = lazy.New(`^([\w./@%+=-]*[\w@%+=-]+(?:\.[\w-]+|/[\w-]+)):`)

// parts splits a log that holds several. It returns none for a log that does not.
func (f *File) parts() []*File {
	if f.Size > maxJoined || f.Digested != nil {
		return nil
	}
	first := string(bytes.TrimLeft(f.head(), "\r\n"))
	first, _, _ = strings.Cut(first, "\n")
	byHeader := tailHeader.MatchString(first)
	if !byHeader && !grepName.MatchString(first) {
		return nil
	}
	data, err := f.readAll()
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
			if g := tailHeader.FindStringSubmatch(string(line[:min(len(line), MaxLineLength)])); g != nil {
				if b := text[name]; b != nil && bytes.HasSuffix(b.Bytes(), []byte("\n\n")) {
					b.Truncate(b.Len() - 1) // the empty line that tail writes before a header
					lines[name] = lines[name][:len(lines[name])-1]
				}
				if name = g[1]; text[name] != nil {
					continue // tail -f returns to this file
				}
				line = nil
			}
		} else {
			g := grepName.FindStringSubmatch(string(line[:min(len(line), MaxLineLength)]))
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
	if !byHeader && !areLogLines(order, text) {
		return nil
	}
	var files []*File
	for _, n := range order {
		b := text[n].Bytes()
		inside := path.Clean("/" + n)
		files = append(files, &File{
			Name: f.Name + inside, Size: int64(len(b)), Modified: f.Modified,
			Kept: &streamEnds{Head: b, size: int64(len(b))}, holder: f, lines: lines[n],
		})
	}
	return files
}

// areLogLines reports whether the texts after the names are lines of several log files, and not
// messages of compilers and interpreters about places in source files.
func areLogLines(order []string, text map[string]*bytes.Buffer) bool {
	var all []string
	for _, name := range order {
		lines := strings.Split(strings.TrimSuffix(text[name].String(), "\n"), "\n")
		all = append(all, lines...)
	}
	placed := 0
	for _, l := range all {
		if sourcePlace.MatchString(l) {
			placed++
		}
	}
	return len(order) > 1 && len(all) > 2*len(order) && 2*placed < len(all) && logline.OfLines(all)
}

// sourcePlace matches a line number and the message about that line.
var sourcePlace = lazy.New(`^(?:\d+:| line \d)`)

// head returns the first bytes of a log.
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

// readAll returns a whole log.
func (f *File) readAll() ([]byte, error) {
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
