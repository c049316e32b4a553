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

// A Line is one line of a job's output, with its origin.
type Line struct {
	File   string     `json:"file"`
	LineNo int        `json:"line_no"`
	Rank   *int       `json:"rank"`
	Node   string     `json:"node"`
	Text   string     `json:"text"`
	Time   *time.Time `json:"time,omitempty"`
	// Ranks is the number of ranks that wrote the same line, where Collapse joined lines.
	Ranks int `json:"ranks,omitempty"`
}

// A Filter selects lines. The zero value selects all.
type Filter struct {
	Tail  int    // only this many of the newest lines; 0 for all
	Rank  *int   // only this global rank
	Node  string // only this node
	Level string // error or warning: only lines at this level or above; empty for all

	Nodes []string // the job's nodes, if known: file names may contain them
	Array bool     // the files are those of an array's tasks
}

// Lines calls yield with the lines of all ranks, merged by time and in order within each file. The
// lines are free of control characters and secrets. Lines stops at the first error of yield, and
// returns it.
func Lines(ctx context.Context, src logfile.Source, f Filter, yield func(Line) error) error {
	all, err := scan.All(ctx, src)
	if err != nil {
		return err
	}
	j := newJob(src, all, Context{Nodes: f.Nodes, Array: f.Array})
	j.resolve()
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
	m, ends, who := &readerHeap{}, j.writtenLast(), j.findNodes()
	for i, file := range src.Logs {
		newest := f.Tail
		if f.Rank != nil || f.Node != "" || f.Level != "" {
			newest = 0 // the file's last lines may be another rank's
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
		rank := j.rankOf(r.index, t)
		node := who.node(r.index, t, rank)
		wanted := (f.Rank == nil || rank == *f.Rank) && atLevel(text, f.Level)
		if wanted && node == "" { // last, because it tries many expressions
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

// Collapse joins equal lines of several ranks that are near each other: it keeps the first of them,
// with their number in Ranks.
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

// levelWords are words of which every line at a level contains one. Lines without them skip the
// expressions.
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

// A lineReader reads the lines of one file.
type lineReader struct {
	index, year int
	file        *os.File
	buf         *bufio.Reader
	no          int
	text        string
	at          time.Time
	off         int64 // offset of the next line
	// From offset untimed on no line carries a time. Those lines were written by end, if that is not
	// zero.
	untimed int64
	end     time.Time
	late    bool // the line is after untimed
	// next is the time of the first line with a time after an error message.
	next          time.Time
	alone, looked bool
	privateKeys
}

// privateKeys tracks private keys over the lines of each stream of a file.
type privateKeys map[logline.Tag]*redact.Stream

// hides reports whether a line is part of a private key.
func (k *privateKeys) hides(t logline.Tag, text string) bool {
	open := (*k)[t]
	if open == nil {
		if !strings.Contains(text, "PRIVATE KEY") {
			return false
		}
		if *k == nil {
			*k = privateKeys{}
		}
		if len(*k) >= 1<<14 {
			return false
		}
		open = &redact.Stream{}
		(*k)[t] = open
	}
	return open.Line(text) == redact.Mask
}

// maxTailRead bounds how many bytes back the newest lines of one file are searched.
const maxTailRead = 8 << 20

// openReader opens a log at its beginning, or at its newest tail lines if tail is not 0.
func openReader(f *logfile.File, tail int) (*lineReader, error) {
	if f.Kept != nil {
		return &lineReader{buf: bufio.NewReader(io.MultiReader(bytes.NewReader(f.Kept.Head), bytes.NewReader(f.Kept.Tail)))}, nil
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

// tailOffset returns the offset of the last n non-empty lines of a file.
func tailOffset(file *os.File, size int64, n int) int64 {
	buf := make([]byte, 64<<10)
	lines, written := 0, false
	end := size
	for end > 0 && size-end < maxTailRead {
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
	}
	return end
}

func (r *lineReader) close() {
	if r.file != nil {
		r.file.Close()
	}
}

// advance reads the next non-empty line, up to MaxLineLength bytes of it. It returns false at the end.
func (r *lineReader) advance() bool {
	for {
		part, err := r.buf.ReadSlice('\n')
		r.late = r.off >= r.untimed && !r.end.IsZero()
		r.off += int64(len(part))
		line := string(part[:min(len(part), logfile.MaxLineLength)])
		for errors.Is(err, bufio.ErrBufferFull) {
			part, err = r.buf.ReadSlice('\n')
			r.off += int64(len(part))
			line += string(part[:min(len(part), logfile.MaxLineLength-len(line))])
		}
		r.no++
		r.text = redact.Clean(strings.TrimRight(line, "\r\n "))
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
			r.at, r.next, r.looked = withYear(at, r.year), time.Time{}, false
		} else if !r.alone && !r.late && !r.looked && atLevel(text, "error") {
			r.next, r.looked = r.nextTime(), true
		}
		return true
	}
}

// A readerHeap is a heap of readers with the oldest line on top.
type readerHeap []*lineReader

func (m readerHeap) Len() int { return len(m) }
func (m readerHeap) Less(a, b int) bool {
	x, y := m[a].when(), m[b].when()
	if x.Equal(y) {
		return m[a].index < m[b].index
	}
	return x.Before(y)
}
func (m readerHeap) Swap(a, b int) { m[a], m[b] = m[b], m[a] }

// Push implements heap.Interface.
func (m *readerHeap) Push(x any) { *m = append(*m, x.(*lineReader)) }

// Pop implements heap.Interface.
func (m *readerHeap) Pop() any {
	old := *m
	r := old[len(old)-1]
	*m = old[:len(old)-1]
	return r
}
