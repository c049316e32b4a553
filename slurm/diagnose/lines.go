package diagnose

import (
	"bufio"
	"bytes"
	"container/heap"
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/internal/redact"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logfile"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logline"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/pattern"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/scan"
)

// A Line is one line of a job's output, and who wrote it.
type Line struct {
	File   string     `json:"file"`
	LineNo int        `json:"line_no"`
	Rank   *int       `json:"rank"`
	Node   string     `json:"node"`
	Text   string     `json:"text"`
	Time   *time.Time `json:"time,omitempty"`
	// Ranks is how many ranks wrote the same, where lines were collapsed.
	Ranks int `json:"ranks,omitempty"`
}

// A Filter chooses lines. The zero value chooses all.
type Filter struct {
	Tail  int    // only so many of the newest lines; 0: all
	Rank  *int   // only this global rank
	Node  string // only this node
	Level string // only lines at this level or above: error, warning; empty: all

	Nodes []string // of the job, where they are known: file names may carry them
}

// Lines calls yield with the job's lines of all ranks, merged by time and
// within one file in its order, clean and free of secrets. It stops at the
// first error that yield returns.
func Lines(ctx context.Context, src logfile.Source, f Filter, yield func(Line) error) error {
	all, err := scan.All(ctx, src)
	if err != nil {
		return err
	}
	j := newJob(src, all, Context{Nodes: f.Nodes})
	j.resolve()
	hostBase := map[string]int{}
	var tail []Line
	emit := func(l Line) error {
		if f.Tail <= 0 {
			l.Text = redact.Text(l.Text)
			return yield(l)
		}
		if len(tail) >= 2*f.Tail {
			tail = append(tail[:0], tail[len(tail)-f.Tail:]...)
		}
		tail = append(tail, l)
		return nil
	}
	m, ends, who := &merge{}, j.writtenLast(), j.speakers(hostBase)
	for i, file := range src.Logs {
		newest := f.Tail
		if f.Rank != nil || f.Node != "" || f.Level != "" {
			newest = 0 // the last lines of the file may be anybody's
		}
		r, err := openReader(file, newest)
		if err != nil {
			continue // a file that vanished or cannot be read has no lines
		}
		defer r.close()
		r.index, r.year, r.alone = i, j.year, len(src.Logs) == 1
		if r.end = ends[i]; !r.end.IsZero() && !j.files[i].LastTime.IsZero() {
			r.untimed = lastTimed(r.file, file.Size)
		}
		if r.advance() {
			heap.Push(m, r)
		}
	}
	for m.Len() > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		r := (*m)[0]
		t, text := logline.CutTag(r.text)
		rank := j.rankOf(r.index, t, hostBase)
		node := who.node(r.index, t, rank)
		wanted := (f.Rank == nil || rank == *f.Rank) && atLevel(text, f.Level)
		if wanted && node == "" { // last: it is many expressions
			node = scan.NodeIn(text)
		}
		if wanted && (f.Node == "" || node == f.Node) {
			l := Line{File: src.Logs[r.index].Name, LineNo: r.no, Node: node, Text: r.text}
			if rank >= 0 {
				l.Rank = &rank
			}
			if !r.at.IsZero() {
				at := r.at
				l.Time = &at
			}
			if err := emit(l); err != nil {
				return err
			}
		}
		if r.advance() {
			heap.Fix(m, 0)
		} else {
			heap.Pop(m)
		}
	}
	for _, l := range tail[max(0, len(tail)-max(f.Tail, 0)):] {
		l.Text = redact.Text(l.Text)
		if err := yield(l); err != nil {
			return err
		}
	}
	return nil
}

// Collapse joins lines that several ranks wrote in the same words, within
// runs of neighbouring lines, into the first of them with its count.
func Collapse(lines []Line) []Line {
	const window = 4096
	var out []Line
	seen := map[string]int{}
	for _, l := range lines {
		_, key := logline.CutTag(l.Text)
		if i, ok := seen[key]; ok && len(out)-i < window && key != "" && !sameRank(out[i].Rank, l.Rank) {
			if out[i].Ranks == 0 {
				out[i].Ranks = 1
			}
			out[i].Ranks++
			continue
		}
		seen[key] = len(out)
		out = append(out, l)
	}
	return out
}

func sameRank(a, b *int) bool { return a == nil && b == nil || a != nil && b != nil && *a == *b }

var errorLevel = lazy.New(`(?i)\b(?:error|fatal|critical|exception|failed|failure|traceback|panic|killed|aborted|segmentation fault|` +
	`cancelled)\b|\w(?:Error|Exception)\b|^\[?[EF]\d{4} |^\[[EF] |NCCL WARN`)

// levelWords are those without one of which no line is at a level: most lines
// are spared the expressions.
var levelWords = []string{"error", "fatal", "critical", "exception", "fail", "traceback", "panic", "killed", "abort", "segmentation", "cancelled", "warn"}

func atLevel(text, level string) bool {
	if level == "" {
		return true
	}
	mark := strings.TrimPrefix(text, "[")
	if lower := strings.ToLower(text); mark == "" || !strings.ContainsRune("EFW", rune(mark[0])) &&
		!slices.ContainsFunc(levelWords, func(w string) bool { return strings.Contains(lower, w) }) {
		return false
	}
	switch level {
	case "error":
		return errorLevel.MatchString(text)
	case "warning", "warn":
		return errorLevel.MatchString(text) || pattern.WarningLevel.MatchString(text)
	}
	return true
}

// A lineReader gives the lines of one file, one at a time.
type lineReader struct {
	index, year int
	file        *os.File
	buf         *bufio.Reader
	no          int
	text        string
	at          time.Time
	off         int64 // where the next line begins
	// From untimed on no line names a time; they came up to end, where that is known.
	untimed int64
	end     time.Time
	late    bool // the line is one of them
	// next is the time of the line that a message of an error stands before.
	next          time.Time
	alone, looked bool
	keys
}

// keys follows private keys over the lines of each stream of a file.
type keys map[logline.Tag]*redact.Stream

// hides reports whether a line is the inside of a private key.
func (k *keys) hides(t logline.Tag, text string) bool {
	open := (*k)[t]
	if open == nil {
		if !strings.Contains(text, "PRIVATE KEY") {
			return false
		}
		if *k == nil {
			*k = keys{}
		}
		if len(*k) >= 1<<14 {
			return false
		}
		open = &redact.Stream{}
		(*k)[t] = open
	}
	return open.Line(text) == redact.Mask
}

// maxTailRead bounds how far back the newest lines of one file are looked for.
const maxTailRead = 8 << 20

// openReader opens a log at its start, or where its newest lines begin.
func openReader(f *logfile.File, tail int) (*lineReader, error) {
	if f.Kept != nil {
		r := &lineReader{buf: bufio.NewReader(io.MultiReader(bytes.NewReader(f.Kept.Head), bytes.NewReader(f.Kept.Tail)))}
		return r, nil
	}
	file, err := f.Open()
	if err != nil {
		return nil, err
	}
	r := &lineReader{file: file}
	if tail > 0 {
		from := tailOffset(file, f.Size, tail)
		r.no, r.off = f.LineAt(from)-1, from
		if _, err := file.Seek(from, io.SeekStart); err != nil {
			file.Close()
			return nil, err
		}
	}
	r.buf = bufio.NewReaderSize(io.LimitReader(file, max(f.Size, 0)), 16<<10)
	return r, nil
}

// tailOffset finds where the last n lines of a file begin; empty ones do not count.
func tailOffset(file *os.File, size int64, n int) int64 {
	buf := make([]byte, 64<<10)
	lines, written := 0, false
	for end := size; end > 0 && size-end < maxTailRead; {
		from := max(0, end-int64(len(buf)))
		got, err := file.ReadAt(buf[:end-from], from)
		if err != nil && !errors.Is(err, io.EOF) {
			return end
		}
		for i := got - 1; i >= 0; i-- {
			switch buf[i] {
			case ' ', '\r':
			case '\n':
				if written {
					lines, written = lines+1, false
				}
				if lines == n {
					return from + int64(i) + 1
				}
			default:
				written = true
			}
		}
		end = from
		if end == 0 {
			return 0
		}
	}
	return max(0, size-maxTailRead)
}

func (r *lineReader) close() {
	if r.file != nil {
		r.file.Close()
	}
}

// advance reads the next line that is not empty; a long one is cut.
func (r *lineReader) advance() bool {
	for {
		part, err := r.buf.ReadSlice('\n')
		r.late = r.off >= r.untimed && !r.end.IsZero()
		r.off += int64(len(part))
		line := string(part[:min(len(part), logfile.MaxLineLength)])
		for errors.Is(err, bufio.ErrBufferFull) {
			part, err = r.buf.ReadSlice('\n')
			r.off += int64(len(part))
			if room := logfile.MaxLineLength - len(line); room > 0 {
				line += string(part[:min(len(part), room)])
			}
		}
		if line == "" && err != nil {
			return false
		}
		r.no++
		r.text = redact.Clean(trimEnd(line))
		if r.text == "" {
			if err != nil {
				return false
			}
			continue
		}
		t, text := logline.CutTag(r.text)
		if r.hides(t, text) {
			r.text = redact.Mask
			return true
		}
		if at, ok := logline.ParseTime(text); ok {
			if at.Year() == logline.Yearless {
				at = at.AddDate(r.year, 0, 0)
			}
			r.at, r.next, r.looked = at, time.Time{}, false
		} else if !r.alone && !r.late && !r.looked && atLevel(text, "error") {
			r.next, r.looked = r.nextTime(), true
		}
		return true
	}
}

func trimEnd(s string) string {
	for len(s) > 0 && (s[len(s)-1] == '\n' || s[len(s)-1] == '\r' || s[len(s)-1] == ' ') {
		s = s[:len(s)-1]
	}
	return s
}

// A merge is a heap of readers, the one with the oldest line on top.
type merge []*lineReader

func (m merge) Len() int { return len(m) }
func (m merge) Less(a, b int) bool {
	x, y := m[a].when(), m[b].when()
	if x.Equal(y) {
		return m[a].index < m[b].index
	}
	return x.Before(y)
}
func (m merge) Swap(a, b int) { m[a], m[b] = m[b], m[a] }

// Push adds a reader; it is for the heap package.
func (m *merge) Push(x any) { *m = append(*m, x.(*lineReader)) }

// Pop takes the last reader; it is for the heap package.
func (m *merge) Pop() any {
	old := *m
	r := old[len(old)-1]
	*m = old[:len(old)-1]
	return r
}
