package diagnose

import (
	"bufio"
	"bytes"
	"os"
	"time"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logfile"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logline"
)

// Most lines of standard error name no time, a traceback's among them. What comes
// after a file's last time was written between that and the file's last change,
// which is the better guess: what ended the job was written last.

// writtenLast is, for each file, the time up to which its last lines came, by the
// clock of the lines; zero where nothing tells. Lines tell the time of a zone that
// they do not name: the files' own times are set against them. A copy's times are
// those of copying; then only a file without any time counts as the last.
func (j *job) writtenLast() []time.Time {
	ends := make([]time.Time, len(j.files))
	ahead, timed := time.Duration(1<<63-1), false
	for i, f := range j.files {
		if m := j.src.Logs[i].Modified; !f.LastTime.IsZero() && !m.IsZero() {
			ahead, timed = min(ahead, m.Sub(f.LastTime)), true
		}
	}
	const widest = 14 * time.Hour
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

// timedWindow is how much of a file's end is searched for its last time.
const timedWindow = 256 << 10

// lastTimed is where the lines begin that come after the last one with a time.
func lastTimed(file *os.File, size int64) int64 {
	if file == nil {
		return size
	}
	from := max(0, size-timedWindow)
	buf := make([]byte, size-from)
	n, err := file.ReadAt(buf, from)
	if n == 0 && err != nil {
		return size
	}
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

// nextWindow is how far ahead the next time is looked for.
const nextWindow = 64 << 10

// nextTime is the next time that the file names; zero where none is near.
func (r *lineReader) nextTime() time.Time {
	if r.file == nil {
		return time.Time{}
	}
	buf := make([]byte, nextWindow)
	n, _ := r.file.ReadAt(buf, r.off) // at the end it is short
	for line := range bytes.Lines(buf[:n]) {
		_, text := logline.CutTag(string(bytes.TrimSpace(line[:min(len(line), logfile.MaxLineLength)])))
		if at, ok := logline.ParseTime(text); ok {
			if at.Year() == logline.Yearless {
				at = at.AddDate(r.year, 0, 0)
			}
			return at
		}
	}
	return time.Time{}
}

// when is the time that a line is sorted by. What is said of an error belongs to
// what comes after it: the other ends that it brings about.
func (r *lineReader) when() time.Time {
	switch {
	case r.late && r.end.After(r.at):
		return r.end
	case r.next.After(r.at):
		return r.next
	}
	return r.at
}

// A speaker finds the node that a line comes from.
type speaker struct {
	*job
	ofRank map[int]string
	tasks  int // srun's, as far as its labels show
}

func (j *job) speakers(hostBase map[string]int) speaker {
	s := speaker{job: j, ofRank: j.startedOn()}
	for i, f := range j.files {
		for l := range f.Labels {
			s.tasks = max(s.tasks, l+1)
		}
		for t, h := range f.HostOf {
			if r := j.rankOf(i, t, hostBase); r >= 0 {
				s.ofRank[r] = h
			}
		}
	}
	return s
}

// node is where a line of a file was written: by the host that stands before it,
// by its file, by its rank, or by srun's label, as tasks fill the job's nodes one
// after the other.
func (s speaker) node(file int, t logline.Tag, rank int) string {
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
