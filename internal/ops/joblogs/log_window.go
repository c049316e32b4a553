package joblogs

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/redact"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logfile"
	"github.com/megatron-ops/megatron-ops/slurm/metrics"
)

// Files are the log files of a job that is known to the cluster.
func Files(ctx context.Context, c *ops.Call, cluster string, id slurm.JobID) (slurm.Job, []string, error) {
	cl, j, err := c.Job(ctx, cluster, id)
	if err != nil {
		return j, nil, err
	}
	return j, logFiles(ctx, c, cl.Name(), j), nil
}

// Numbers is what a job has logged of its iterations.
func Numbers(ctx context.Context, c *ops.Call, cluster string, id slurm.JobID) (metrics.Run, error) {
	run, _, _, err := runOf(ctx, c, MetricsIn{OnCluster: ops.OnCluster{Cluster: cluster}}, string(id))
	return run, err
}

// Bytes is how much there is of a job's logs, as far as they may be read. paths are
// of Files.
func Bytes(c *ops.Call, j slurm.Job, paths []string) (all int64) {
	in, err := holding(c, j, paths)
	if err != nil {
		return 0
	}
	defer in.Close()
	for _, path := range paths {
		f, err := in.Open(path)
		if err != nil { // not there yet, or somebody else's
			continue
		}
		if info, err := f.Stat(); err == nil {
			all += info.Size()
		}
		f.Close()
	}
	return all
}

// A Place is where in a log file to read. The zero Place is its beginning.
type Place struct {
	// From is an offset in bytes; the line that begins there or after it is the first.
	From int64
	// Before, where it is above 0, is an offset that the lines end before.
	Before int64
	// End is the newest lines, Line the line of that number, counted from 1, and those
	// around it.
	End  bool
	Line int
	// Find keeps only the lines that hold this text, in any case of letters; Rank, Node
	// and Level only those of that rank, that node, and that level or above ("error",
	// "warning").
	Find        string
	Rank        *int
	Node, Level string
}

// chooses reports whether only some lines are wanted.
func (at Place) chooses() bool {
	return at.Find != "" || at.Rank != nil || at.Node != "" || at.Level != ""
}

// A Window is a part of one log file: whole lines, clean and without secrets.
type Window struct {
	// From and To are the offsets of the part, Size that of the file's end.
	From int64 `json:"from"`
	To   int64 `json:"to"`
	Size int64 `json:"size"`
	// Mark is which of the lines was asked for; below 0: none.
	Mark  int      `json:"mark"`
	Lines []string `json:"lines"`
}

const (
	// windowBytes is how much of a file is read for one window.
	windowBytes = 64 << 10
	// findTime is how long one search looks; the next goes on where it ended.
	findTime = 120 * time.Millisecond
	// findLines is how many lines one search finds.
	findLines = 500
	// findEnd is how much of the file's end is searched for its newest lines.
	findEnd = 4 << 20
	// longestLine is how much of one line is shown.
	longestLine = 4 << 10
)

// ReadWindow reads a part of one of a job's log files: what a viewer shows at
// once, however large the file is. path is one of Files.
func ReadWindow(ctx context.Context, c *ops.Call, j slurm.Job, path string, at Place) (Window, error) {
	in, err := holding(c, j, []string{path})
	if err != nil {
		return Window{}, err
	}
	defer in.Close()
	f, err := in.Open(path)
	if err != nil {
		return Window{}, &ops.Error{
			Code: ops.NotFound, Field: "file",
			Message: lang.Text{EN: "%s cannot be read: %v", ZH: "无法读取 %s：%v"}.With(path, errors.Unwrap(err)),
			Fix:     lang.Text{EN: "the job may not have begun, or the file is another user's", ZH: "作业可能尚未开始，或该文件属于其他用户"},
		}
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return Window{}, err
	}
	w := Window{Size: info.Size(), Mark: -1, Lines: []string{}}
	switch {
	case at.chooses():
		if at.End {
			at.From = max(0, w.Size-findEnd)
		}
		return find(ctx, f, w, at, j.Nodes)
	case at.Line > 0:
		start, err := lineStart(ctx, f, at.Line)
		if err != nil {
			return w, err
		}
		before, err := part(f, w, max(0, start-windowBytes/2), start)
		if err != nil {
			return w, err
		}
		after, err := part(f, w, start, start+windowBytes/2)
		after.From, after.Mark = before.From, len(before.Lines)
		after.Lines = append(before.Lines, after.Lines...)
		return after, err
	case at.End:
		return part(f, w, max(0, w.Size-windowBytes), w.Size)
	case at.Before > 0:
		end := min(at.Before, w.Size)
		return part(f, w, max(0, end-windowBytes), end)
	}
	return part(f, w, max(0, at.From), at.From+windowBytes)
}

// part reads the whole lines between two offsets. A line that began before from
// is left out, unless all of the part is one line.
func part(f *os.File, w Window, from, to int64) (Window, error) {
	to = min(to, w.Size)
	w.From, w.To = from, max(from, to)
	if to <= from {
		return w, nil
	}
	raw := make([]byte, to-from)
	n, err := f.ReadAt(raw, from)
	if err != nil && !errors.Is(err, io.EOF) {
		return w, err
	}
	raw = raw[:n]
	if from > 0 {
		var before [1]byte
		if _, err := f.ReadAt(before[:], from-1); err == nil && before[0] != '\n' {
			if cut := bytes.IndexByte(raw, '\n'); cut >= 0 && cut+1 < len(raw) {
				raw = raw[cut+1:]
				w.From += int64(cut + 1)
			}
		}
	}
	if to < w.Size { // the last line goes on behind the part
		if cut := bytes.LastIndexByte(raw, '\n'); cut >= 0 {
			raw = raw[:cut+1]
		}
	}
	w.To = w.From + int64(len(raw))
	for line := range bytes.Lines(raw) {
		w.Lines = append(w.Lines, shown(line))
	}
	return w, nil
}

// shown is a line as it may be shown.
func shown(line []byte) string {
	line = bytes.TrimRight(line, "\r\n")
	if i := bytes.LastIndexByte(line, '\r'); i >= 0 { // a progress bar's last state
		line = line[i+1:]
	}
	line = line[:min(len(line), longestLine)]
	return redact.Text(redact.Clean(string(line)))
}

// countBytes is how much of a file one of several counters reads at a time.
const countBytes = 4 << 20

// lineStart is the offset of a line, or of the last one where there are fewer. A
// file of a gigabyte is counted by all processors.
func lineStart(ctx context.Context, f *os.File, line int) (int64, error) {
	type counted struct {
		lines int
		last  int64 // behind the last line's end; below 0: none ends here
		read  int
		err   error
	}
	buffers := make([][]byte, runtime.GOMAXPROCS(0))
	for i := range buffers {
		buffers[i] = make([]byte, countBytes)
	}
	parts := make([]counted, len(buffers))
	var at, start int64
	for before := line - 1; before > 0; at += int64(len(parts)) * countBytes {
		var all sync.WaitGroup
		for i := range parts {
			all.Go(func() {
				from := at + int64(i)*countBytes
				n, err := f.ReadAt(buffers[i], from)
				block := buffers[i][:n]
				parts[i] = counted{bytes.Count(block, []byte{'\n'}), -1, n, err}
				if last := bytes.LastIndexByte(block, '\n'); last >= 0 {
					parts[i].last = from + int64(last) + 1
				}
			})
		}
		all.Wait()
		for i, p := range parts {
			if before <= p.lines { // it begins behind one of these
				offset := 0
				for ; before > 0; before-- {
					offset += bytes.IndexByte(buffers[i][offset:p.read], '\n') + 1
				}
				return at + int64(i)*countBytes + int64(offset), nil
			}
			if before -= p.lines; p.last >= 0 {
				start = p.last
			}
			switch {
			case errors.Is(p.err, io.EOF):
				return start, nil
			case p.err != nil:
				return 0, p.err
			}
		}
		if ctx.Err() != nil {
			return 0, ctx.Err()
		}
	}
	return start, nil
}

// find looks for lines from an offset on.
func find(ctx context.Context, f *os.File, w Window, at Place, nodes []string) (Window, error) {
	w.From, w.To = at.From, at.From
	buffer := make([]byte, 1<<20)
	began := time.Now()
	for w.To < w.Size && len(w.Lines) < findLines && ctx.Err() == nil && (w.To == w.From || time.Since(began) < findTime) {
		n, err := f.ReadAt(buffer, w.To)
		if n == 0 {
			return w, err
		}
		block := buffer[:n]
		if cut := bytes.LastIndexByte(block, '\n'); cut >= 0 {
			block = block[:cut+1]
		}
		chosen, read, err := at.chosen(ctx, f.Name(), block, nodes, findLines-len(w.Lines))
		if err != nil {
			return w, err
		}
		w.Lines, w.To = append(w.Lines, chosen...), w.To+int64(read)
	}
	return w, ctx.Err()
}

// chosen are the wanted lines of a block, at most so many, and how much of the block
// was read for them.
func (at Place) chosen(ctx context.Context, name string, block []byte, nodes []string, most int) (lines []string, read int, err error) {
	wanted := strings.ToLower(at.Find)
	if !bytes.Contains(bytes.ToLower(block), []byte(wanted)) {
		return nil, len(block), nil
	}
	var whose map[int]bool // the lines of the rank, node and level, where such are wanted
	if at.Rank != nil || at.Node != "" || at.Level != "" {
		whose = map[int]bool{}
		src, err := logfile.Read(name, bytes.NewReader(block))
		if err != nil {
			return nil, 0, err
		}
		filter := diagnose.Filter{Rank: at.Rank, Node: at.Node, Level: at.Level, Nodes: nodes}
		if err := diagnose.Lines(ctx, src, filter, func(l diagnose.Line) error { whose[l.LineNo] = true; return nil }); err != nil {
			return nil, 0, err
		}
	}
	number := 0
	for line := range bytes.Lines(block) {
		if len(lines) == most {
			break
		}
		number++
		read += len(line)
		if (whose == nil || whose[number]) && bytes.Contains(bytes.ToLower(line), []byte(wanted)) {
			lines = append(lines, shown(line))
		}
	}
	return lines, read, nil
}
