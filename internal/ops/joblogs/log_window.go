package joblogs

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/redact"
	"github.com/megatron-ops/megatron-ops/slurm"
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
	// Find keeps only the lines that hold this text, in any case of letters.
	Find string
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
	// findBytes is how much of a file one search looks through; the next goes on.
	findBytes = 512 << 20
	// findLines is how many lines one search finds.
	findLines = 500
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
	case at.Find != "":
		return find(ctx, f, w, at)
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

// lineStart is the offset of a line, or of the last one where there are fewer.
func lineStart(ctx context.Context, f *os.File, line int) (int64, error) {
	buffer := make([]byte, 1<<20)
	var at, start int64
	for seen := 1; ; {
		n, err := f.ReadAt(buffer, at)
		block := buffer[:n]
		for seen < line {
			i := bytes.IndexByte(block, '\n')
			if i < 0 {
				break
			}
			if count := bytes.Count(block, []byte{'\n'}); seen+count < line { // none of this block
				seen += count
				start = at + int64(n-len(block)+bytes.LastIndexByte(block, '\n')+1)
				break
			}
			seen++
			start = at + int64(n-len(block)+i+1)
			block = block[i+1:]
		}
		at += int64(n)
		switch {
		case seen >= line || errors.Is(err, io.EOF):
			return start, nil
		case err != nil:
			return 0, err
		case ctx.Err() != nil:
			return 0, ctx.Err()
		}
	}
}

// find looks for lines from an offset on.
func find(ctx context.Context, f *os.File, w Window, at Place) (Window, error) {
	w.From, w.To = at.From, at.From
	wanted := strings.ToLower(at.Find)
	buffer := make([]byte, 1<<20)
	for w.To < w.Size && w.To-w.From < findBytes && len(w.Lines) < findLines && ctx.Err() == nil {
		n, err := f.ReadAt(buffer, w.To)
		if n == 0 {
			return w, err
		}
		block := buffer[:n]
		if cut := bytes.LastIndexByte(block, '\n'); cut >= 0 {
			block = block[:cut+1]
		}
		if bytes.Contains(bytes.ToLower(block), []byte(wanted)) {
			for line := range bytes.Lines(block) {
				if len(w.Lines) == findLines {
					break
				}
				if bytes.Contains(bytes.ToLower(line), []byte(wanted)) {
					w.Lines = append(w.Lines, shown(line))
				}
				w.To += int64(len(line))
			}
			continue
		}
		w.To += int64(len(block))
	}
	return w, ctx.Err()
}
