package diagnose

import (
	"bufio"
	"bytes"
	"os"
	"time"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logfile"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logline"
)

// Most lines of standard error carry no time, tracebacks included. Lines after the last time in a file
// were written between that time and the file's last modification. The merge assumes the latter,
// because what ended the job was written last.

// writtenLast returns for each file the time by which its last lines were written, on the clock of its
// lines; zero if unknown. Lines do not name their time zone, so it compares their times with the files'
// modification times. The modification times of copied files are those of copying; then only a file
// without any time counts as written last.
func (j *job) writtenLast() []time.Time {
	ends := make([]time.Time, len(j.files))
	ahead, timed := time.Duration(1<<63-1), false
	for i, f := range j.files {
		if m := j.src.Logs[i].Modified; !f.LastTime.IsZero() && !m.IsZero() {
			ahead, timed = min(ahead, m.Sub(f.LastTime)), true
		}
	}
	zone := ahead.Round(15 * time.Minute)
	for i, f := range j.files {
		m := j.src.Logs[i].Modified
		switch {
		case !timed:
			ends[i] = m
		case zone <= widest && zone >= -widest && !m.IsZero():
			ends[i] = m.Add(-zone)
		case f.LastTime.IsZero():
			ends[i] = m.AddDate(1000, 0, 0)
		}
	}
	return ends
}

// widest is how far a time zone is from UTC at most.
const widest = 14 * time.Hour

// timedWindow is how many bytes at a file's end are searched for its last time.
const timedWindow = 256 << 10

// lastTimed returns the offset after the last line with a time.
func lastTimed(file *os.File, size int64) int64 {
	if file == nil {
		return size
	}
	from := max(0, size-timedWindow)
	buf := make([]byte, size-from)
	n, _ := file.ReadAt(buf, from) // a file that cannot be read has no lines either
	r := lineReader{off: from, alone: true, buf: bufio.NewReader(bytes.NewReader(buf[:n]))}
	last := from
	for r.advance() {
		_, text := logline.CutTag(r.text)
		if _, ok := logline.ParseTime(text); ok {
			last = r.off
		}
	}
	return last
}

// nextWindow is how many bytes ahead nextTime searches.
const nextWindow = 64 << 10

// nextTime returns the next time in the file; zero if none is near.
func (r *lineReader) nextTime() time.Time {
	if r.file == nil { // only its lines are kept; each would cost a buffer
		return time.Time{}
	}
	buf := make([]byte, nextWindow)
	n, _ := r.file.ReadAt(buf, r.off) // shorter at the end of the file
	for line := range bytes.Lines(buf[:n]) {
		_, text := logline.CutTag(string(bytes.TrimSpace(line[:min(len(line), logfile.MaxLineLength)])))
		if at, ok := logline.ParseTime(text); ok {
			return withYear(at, r.year)
		}
	}
	return time.Time{}
}

// when is the time by which a line is sorted. An error message without a time belongs to the lines
// after it, that is to the consequences of the error.
func (r *lineReader) when() time.Time {
	switch {
	case r.late && r.end.After(r.at):
		return r.end
	case r.next.After(r.at):
		return r.next
	}
	return r.at
}

// A nodeFinder finds the node that wrote a line.
type nodeFinder struct {
	*job
	ofRank map[int]string
	tasks  int // number of srun's tasks, as far as labels show it
}

func (j *job) findNodes() nodeFinder {
	s := nodeFinder{job: j, ofRank: j.startedOn()}
	for i, f := range j.files {
		for l := range f.Labels {
			s.tasks = max(s.tasks, l+1)
		}
		for t, h := range f.HostOf {
			if r := j.rankOf(i, t); r >= 0 && h != "" {
				s.ofRank[r] = h
			}
		}
	}
	return s
}

// node returns the node that wrote a line of a file: by the host before the line, by the file, by the
// rank, or by srun's label, since tasks fill the job's nodes one after the other.
func (s nodeFinder) node(file int, t logline.Tag, rank int) string {
	nodes := s.given.Nodes
	switch {
	case t.Host != "":
		return t.Host
	case s.fileNode[file] != "":
		return s.fileNode[file]
	case s.files[file].HostOf[t] != "":
		return s.files[file].HostOf[t]
	case t.Label >= 0 && !s.taskRank && s.tasks <= len(nodes):
		return nodes[min(t.Label, len(nodes)-1)]
	case rank >= 0:
		return s.nodeByRank(rank, s.ofRank)
	case t.Label >= 0 && s.tasks > len(nodes) && len(nodes) > 0 && s.tasks%len(nodes) == 0:
		return nodes[min(t.Label/(s.tasks/len(nodes)), len(nodes)-1)]
	}
	return ""
}
