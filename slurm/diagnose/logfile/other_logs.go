package logfile

import (
	"io"
	"slices"
	"strings"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logline"
)

// An Owner is what Slurm knows of a job that tells its logs from those of other jobs: another
// cluster's job of the same number, one of years ago, before the numbers began again, or a
// later one with the same --output. Empty fields tell nothing.
type Owner struct {
	IDs     []string   `json:"ids,omitempty"` // the numbers by which the job's own output calls it
	Named   []string   `json:"named,omitempty"`
	Nodes   []string   `json:"nodes,omitempty"`
	Started *time.Time `json:"started,omitempty"`
	Ended   *time.Time `json:"ended,omitempty"`
}

const (
	clockSlack = time.Minute      // how far a file server's clock may be behind the cluster's
	lateOutput = 10 * time.Minute // what an epilog and a slow file server write after the end
	anyZone    = 26 * time.Hour   // between the times of two zones
)

var (
	// namedJob matches what only a job's own output says of a job's number: its environment, and
	// the messages of the program that ends it.
	namedJob = lazy.New(`(?m)\bSLURM_(?:ARRAY_|HET_)?JOB_?ID\b["']?\s*[=:]\s*["']?(\d+)|\*\*\* (?:JOB|STEP) (\d+)\b|\bStepId=(\d+)\b`)
	// markedHost matches the line with which a rendered script starts an attempt on a node.
	markedHost = lazy.New(`(?m)^(?:\d+: )?start: attempt=\d+ node=\d+ host=(\S+)`)
)

// WrittenBefore reports whether a file was last written before a job started.
func WrittenBefore(modified, started time.Time) bool {
	return modified.Before(started.Add(-clockSlack))
}

// LeaveOutOthers takes the logs out of the source that are not the owner's, and notes each with
// the reason in OtherLogs.
func (s *Source) LeaveOutOthers(o Owner) {
	other := func(f *File) bool {
		why, is := o.disowns(f)
		if is && len(s.OtherLogs) < MaxUnreadable {
			path := f.Path
			if path == "" {
				path = f.Name
			}
			s.OtherLogs = append(s.OtherLogs, Unread(path, why.Err()))
		}
		return is
	}
	s.Logs, s.dumps = slices.DeleteFunc(s.Logs, other), slices.DeleteFunc(s.dumps, other)
	s.noLogOfItsOwn()
}

// noLogOfItsOwn notes that other jobs' logs are all that was found.
func (s *Source) noLogOfItsOwn() {
	s.NoLogs = len(s.Logs)+len(s.dumps)+len(s.recorded)+len(s.Unreadable) == 0 && len(s.OtherLogs) > 0
}

// disowns reports whether a log is another job's, and why.
func (o Owner) disowns(f *File) (why lang.Text, is bool) {
	if o.Started != nil && !f.Modified.IsZero() && WrittenBefore(f.Modified, *o.Started) {
		return lang.Text{EN: "last written %s, before the job started", ZH: "最后写入时间为 %s，早于作业启动"}.With(minute(f.Modified)), true
	}
	// Of Slurm's own file only what was written after the job's end can be another job's.
	if slices.Contains(o.Named, f.Path) && (o.Ended == nil || !f.Modified.After(o.Ended.Add(lateOutput))) {
		return why, false
	}
	head, tail := f.ends()
	if ids := submatches(namedJob, head+tail); len(o.IDs) > 0 && len(ids) > 0 && !overlap(ids, o.IDs) {
		return lang.Text{EN: "its lines are those of job %s", ZH: "内容属于作业 %s"}.With(ids[0]), true
	}
	if hosts := submatches(markedHost, head); len(o.Nodes) > 0 && len(hosts) > 0 && !overlap(shortNames(hosts), shortNames(o.Nodes)) {
		return lang.Text{EN: "it was started on %s, not on the job's nodes", ZH: "在 %s 上启动，不是该作业的节点"}.With(logline.Show(hosts[0])), true
	}
	if first := earliest(head); o.Ended != nil && first.After(o.Ended.Add(anyZone)) {
		return lang.Text{EN: "its lines begin %s, after the job ended", ZH: "内容始于 %s，晚于作业结束"}.With(minute(first)), true
	}
	return why, false
}

// ends returns the beginning and the end of a file's text; nothing of one that is packed or cannot be read.
func (f *File) ends() (head, tail string) {
	if f.Path == "" || f.Packed() {
		return "", ""
	}
	file, err := f.Open()
	if err != nil {
		return "", ""
	}
	defer file.Close()
	part := func(from int64) string {
		text, _ := io.ReadAll(io.NewSectionReader(file, from, headWindow))
		return string(text)
	}
	if head = part(0); f.Size > headWindow {
		tail = part(max(headWindow, f.Size-headWindow))
	}
	return head, tail
}

// submatches returns the text of the group that took part in each match.
func submatches(re *lazy.Pattern, text string) (all []string) {
	for _, m := range re.FindAllStringSubmatch(text, -1) {
		all = append(all, strings.Join(m[1:], ""))
	}
	return all
}

// earliest is the earliest time with a year in the lines; zero where none has one.
func earliest(text string) (first time.Time) {
	for line := range strings.Lines(text) {
		if at, ok := logline.ParseTime(line); ok && at.Year() > logline.Yearless+1 && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	return first
}

func shortNames(hosts []string) []string {
	short := make([]string, len(hosts))
	for i, h := range hosts {
		short[i], _, _ = strings.Cut(h, ".")
	}
	return short
}

func overlap(a, b []string) bool {
	return slices.ContainsFunc(a, func(x string) bool { return slices.Contains(b, x) })
}

func minute(at time.Time) string { return at.UTC().Format("2006-01-02 15:04 MST") }
