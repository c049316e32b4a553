package joblogs

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/redact"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logfile"
	"github.com/megatron-ops/megatron-ops/slurm/metrics"
)

// Files returns a job and its log files, without the folders that hold logs of single ranks.
func Files(ctx context.Context, c *ops.Call, cluster string, id slurm.JobID) (slurm.Job, []string, error) {
	cl, j, err := c.Job(ctx, cluster, id)
	if err != nil {
		return j, nil, err
	}
	return j, slices.DeleteFunc(logFiles(ctx, c, cl.Name(), j), isFolder), nil
}

func isFolder(path string) bool {
	st, err := os.Lstat(path)
	return err == nil && st.IsDir()
}

// Numbers returns the iterations that a job has logged.
func Numbers(ctx context.Context, c *ops.Call, cluster string, id slurm.JobID) (metrics.Run, error) {
	run, _, _, err := runOf(ctx, c, MetricsIn{OnCluster: ops.OnCluster{Cluster: cluster}}, string(id))
	return run, err
}

// Bytes returns the total size of those of a job's logs that may be read. paths come
// from Files.
func Bytes(c *ops.Call, j slurm.Job, paths []string) (all int64) {
	in, err := openFolders(c, j, paths)
	if err != nil {
		return 0
	}
	defer in.Close()
	for _, path := range paths {
		readParts(in, path, func(_ io.ReaderAt, size int64) { all += size })
	}
	return all
}

// A Place says which part of a log file to read. The zero Place is the file's
// beginning.
type Place struct {
	// From is an offset in bytes. The first line is the one that begins there or after
	// it.
	From int64
	// Before, where it is above 0, is an offset in front of which the lines end.
	Before int64
	// End selects the newest lines. Line selects the line of that number, counted from
	// 1, and the lines around it.
	End  bool
	Line int
	// Find selects the lines that contain this text, in upper or lower case. Rank, Node
	// and Level select the lines of that rank, that node, and that level or above
	// ("error", "warning").
	Find        string
	Rank        *int
	Node, Level string
}

// filters reports whether only some lines are selected.
func (at Place) filters() bool {
	return at.Find != "" || at.Rank != nil || at.Node != "" || at.Level != ""
}

// A Window is a part of one log file: whole lines, cleaned and without secrets.
type Window struct {
	// From and To are the offsets of the part. Size is the size of the file.
	From int64 `json:"from"`
	To   int64 `json:"to"`
	Size int64 `json:"size"`
	// Mark is the index of the requested line; below 0: none was requested.
	Mark  int      `json:"mark"`
	Lines []string `json:"lines"`
}

const (
	// windowBytes is how much of a file one window reads.
	windowBytes = 64 << 10
	// findTime is how long one search takes at most. The next search continues where it
	// ended.
	findTime = 120 * time.Millisecond
	// findLines is the most lines that one search returns.
	findLines = 500
	// findEnd is how much of the file's end a search for its newest lines reads.
	findEnd = 4 << 20
	// longestLine is how much of one line is shown, in bytes.
	longestLine = 4 << 10
)

// ReadWindow reads the part of a job's log file that a viewer shows at once, however
// large the file is. path comes from Files.
func ReadWindow(ctx context.Context, c *ops.Call, j slurm.Job, path string, at Place) (Window, error) {
	in, err := openFolders(c, j, []string{path})
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
	case at.filters():
		if at.End {
			at.From = max(0, w.Size-findEnd)
		}
		return find(ctx, f, w, at, j.Nodes)
	case at.Line > 0:
		start, err := lineStart(ctx, f, at.Line)
		if err != nil {
			return w, err
		}
		before, err := readRange(f, w, max(0, start-windowBytes/2), start)
		if err != nil {
			return w, err
		}
		after, err := readRange(f, w, start, start+windowBytes/2)
		after.From, after.Mark = before.From, len(before.Lines)
		after.Lines = append(before.Lines, after.Lines...)
		return after, err
	case at.End:
		return readRange(f, w, max(0, w.Size-windowBytes), w.Size)
	case at.Before > 0:
		end := min(at.Before, w.Size)
		return readRange(f, w, max(0, end-windowBytes), end)
	}
	return readRange(f, w, max(0, at.From), at.From+windowBytes)
}

// readRange reads the whole lines between two offsets. A line that began before from is
// left out, unless the whole range is one line.
func readRange(f *os.File, w Window, from, to int64) (Window, error) {
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
	if to < w.Size { // the last line continues behind the range
		if cut := bytes.LastIndexByte(raw, '\n'); cut >= 0 {
			raw = raw[:cut+1]
		}
	}
	w.To = w.From + int64(len(raw))
	for line := range bytes.Lines(raw) {
		w.Lines = append(w.Lines, cleaned(line))
	}
	return w, nil
}

// cleaned returns a line without control characters and secrets, cut to longestLine.
func cleaned(line []byte) string {
	line = bytes.TrimRight(line, "\r\n")
	if i := bytes.LastIndexByte(line, '\r'); i >= 0 { // keep only the last state of a progress bar
		line = line[i+1:]
	}
	line = line[:min(len(line), longestLine)]
	return redact.Text(redact.Clean(string(line)))
}

// countBytes is how much of a file is counted at a time.
const countBytes = 1 << 20

// lineStart returns the offset of a line, or of the last line where there are fewer.
func lineStart(ctx context.Context, f *os.File, line int) (int64, error) {
	buffer := make([]byte, countBytes)
	var at, start int64
	for before := line - 1; before > 0 && ctx.Err() == nil; {
		n, err := f.ReadAt(buffer, at)
		block := buffer[:n]
		lines := bytes.Count(block, []byte{'\n'})
		if before <= lines { // the line begins in this block
			for ; before > 0; before-- {
				end := bytes.IndexByte(block, '\n') + 1
				block, at = block[end:], at+int64(end)
			}
			return at, nil
		}
		before -= lines
		if last := bytes.LastIndexByte(block, '\n'); last >= 0 {
			start = at + int64(last) + 1
		}
		if at += int64(n); errors.Is(err, io.EOF) {
			return start, nil
		} else if err != nil {
			return 0, err
		}
	}
	return start, ctx.Err()
}

// find searches for lines from an offset on.
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
		found, read, err := at.matches(ctx, f.Name(), block, nodes, findLines-len(w.Lines))
		if err != nil {
			return w, err
		}
		w.Lines, w.To = append(w.Lines, found...), w.To+int64(read)
	}
	return w, ctx.Err()
}

// matches returns the selected lines of a block, at most most, and how many bytes of
// the block it read for them.
func (at Place) matches(ctx context.Context, name string, block []byte, nodes []string, most int) (lines []string, read int, err error) {
	wanted := strings.ToLower(at.Find)
	if !bytes.Contains(bytes.ToLower(block), []byte(wanted)) {
		return nil, len(block), nil
	}
	var whose map[int]bool // the numbers of the lines that rank, node and level select; nil: all lines
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
			lines = append(lines, cleaned(line))
		}
	}
	return lines, read, nil
}
