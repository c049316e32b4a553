package logfile

import (
	"bytes"
	"io"
	"io/fs"
	"maps"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logline"
	"github.com/megatron-ops/megatron-ops/slurm/loglike"
)

// ofJob is a log as Slurm names it where nobody says otherwise: its number is a job's.
// That of "10471.out" may also be a process's, a day's or a node's.
var ofJob = lazy.New(`^slurm-(\d{1,10})(?:_\d+)?\.(?:out|err)(?:\.gz|\.zst)?$`)

// ofNamed is a log as scripts have Slurm name it: "gpt-4711.out" of --output=%x-%j.out,
// "gpt.o4711". Its number may be anything, so that what stands in the logs decides.
var ofNamed = lazy.New(`^(.*?[A-Za-z].*?)[-_.][joe]?([1-9]\d{3,9})(?:[-_.]\S*)?$`)

// ofProcesses are names whose numbers tell the parts of one job apart.
var ofProcesses = lazy.New(`(?i)^nccl|(?:^|[^a-z])(?:rank|task|proc|process|worker|node|host|gpu|local|pid|log|core|stack|step|iter|iteration|shard|part)[^a-z]*$`)

// aDay is a number that reads as a date.
var aDay = lazy.New(`^(?:19|20)\d\d(?:[01]\d[0-3]\d)?$`)

// namedJob reads the name and the number of a log that may be a job's.
func namedJob(file string) (name string, number int64, ok bool) {
	m := ofNamed.FindStringSubmatch(file)
	if m == nil || ofProcesses.MatchString(m[1]) || aDay.MatchString(m[2]) {
		return "", 0, false
	}
	number, err := strconv.ParseInt(m[2], 10, 64)
	return m[1], number, err == nil
}

// startOfNodes is the line that a rendered script's first node begins an attempt with.
var startOfNodes = lazy.New(`(?m)^(?:\d+: )?start: (attempt=\d+) node=0 `)

// A jobFolder tells which jobs' logs lie in a folder that several jobs write into. The
// newest job is the one asked about: what an older one left says nothing of it. One that
// has written nothing yet, where nothing else could be its log, cannot be asked about.
type jobFolder struct {
	older map[string]bool           // numbers, where Slurm named the logs
	named map[string]map[int64]bool // numbers behind a name, where scripts did
}

// jobsIn finds the jobs whose logs lie below path.
func (s *Source) jobsIn(path string) jobFolder {
	jobs, newest, newestSaying, alone := map[string]bool{}, int64(-1), int64(-1), true
	named := map[string]map[int64][]string{} // folder and name → number → files
	// A folder that cannot be read is told of where its logs are gathered.
	_ = s.in.WalkDir(path, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil
		}
		if d.IsDir() {
			return loglike.Enter(d.Name())
		}
		says := func() bool {
			info, err := d.Info()
			return err == nil && isLog(filepath.ToSlash(p), info.Size())
		}
		if m := ofJob.FindStringSubmatch(d.Name()); m != nil {
			if n, err := strconv.ParseInt(m[1], 10, 64); err == nil {
				jobs[m[1]], newest = true, max(newest, n)
				if says() {
					newestSaying = max(newestSaying, n)
				}
			}
			return nil
		}
		alone = alone && !says()
		if name, n, ok := namedJob(d.Name()); ok && d.Type().IsRegular() && says() {
			stem := filepath.Join(filepath.Dir(p), name)
			if named[stem] == nil {
				named[stem] = map[int64][]string{}
			}
			named[stem][n] = append(named[stem][n], p)
		}
		return nil
	})
	if alone && newestSaying >= 0 {
		newest = newestSaying
	}
	delete(jobs, strconv.FormatInt(newest, 10))
	older := map[string]map[int64]bool{}
	for stem, numbers := range named {
		before, name := s.before(numbers), filepath.Base(stem)
		if older[name] == nil && len(before) > 0 {
			older[name] = map[int64]bool{}
		}
		maps.Copy(older[name], before)
	}
	return jobFolder{jobs, older}
}

// before are the numbers of jobs that ended before the one of the highest number began,
// or that began as it did: of one job, a name's files are written at the same time.
func (s *Source) before(numbers map[int64][]string) map[int64]bool {
	if len(numbers) < 2 {
		return nil
	}
	older, newest := map[int64]bool{}, int64(-1)
	for n := range numbers {
		newest = max(newest, n)
	}
	last := s.span(numbers[newest])
	for n, files := range numbers {
		if n == newest {
			continue
		}
		a := s.span(files)
		comparable := !a.to.IsZero() && !last.from.IsZero() && (a.to.Year() == logline.Yearless) == (last.from.Year() == logline.Yearless)
		if a.start != "" && a.start == last.start || comparable && !last.from.Before(a.to) {
			older[n] = true
		}
	}
	return older
}

// A logSpan is what the ends of some logs tell of when they were written.
type logSpan struct {
	from, to time.Time
	start    string // of the first node's attempt, in a rendered script's words
}

// span reads the ends of files. What cannot be read tells nothing.
func (s *Source) span(files []string) (all logSpan) {
	for _, name := range files {
		f, err := s.in.Open(name)
		if err != nil {
			continue
		}
		head, err := io.ReadAll(io.LimitReader(f, headWindow))
		tail := head
		if info, statErr := f.Stat(); err == nil && statErr == nil && info.Size() > headWindow {
			tail = make([]byte, headWindow)
			n, _ := f.ReadAt(tail, max(headWindow, info.Size()-headWindow))
			tail = tail[:n]
		}
		f.Close()
		if m := startOfNodes.FindStringSubmatch(string(head)); m != nil && all.start == "" {
			all.start = m[1]
		}
		for line := range bytes.Lines(head) {
			if at, ok := logline.ParseTime(string(line)); ok {
				if all.from.IsZero() || at.Before(all.from) {
					all.from = at
				}
				break
			}
		}
		for line := range bytes.Lines(tail) {
			if at, ok := logline.ParseTime(string(line)); ok && at.After(all.to) {
				all.to = at
			}
		}
	}
	return all
}

// isOlder reports whether a name below the folder carries the number of an older job.
func (f jobFolder) isOlder(name string) bool {
	if len(f.named) > 0 {
		for part := range strings.SplitSeq(filepath.ToSlash(name), "/") { // a job's folder carries its name, as its log does
			if stem, n, ok := namedJob(part); ok && f.named[stem][n] {
				return true
			}
		}
	}
	if len(f.older) == 0 {
		return false
	}
	if m := ofJob.FindStringSubmatch(filepath.Base(name)); m != nil {
		return f.older[m[1]]
	}
	for _, n := range strings.FieldsFunc(name, func(r rune) bool { return r < '0' || r > '9' }) {
		if len(n) >= fewestDigits && f.older[n] {
			return true
		}
	}
	return false
}

// fewestDigits has a number within a longer name: a shorter one may be a rank's.
const fewestDigits = 4
