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
	"github.com/megatron-ops/megatron-ops/internal/within"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logline"
	"github.com/megatron-ops/megatron-ops/slurm/loglike"
)

// defaultLogName matches Slurm's default log name, whose number is always a job id. The
// number of "10471.out" may also be a process id, a date or a node's number.
var defaultLogName = lazy.New(`^slurm-(\d{1,10})(?:_\d+)?\.(?:out|err)(?:\.gz|\.zst)?$`)

// OfJob reports whether a log has Slurm's default name, so that srun's own messages are in it.
func OfJob(name string) bool { return defaultLogName.MatchString(filepath.Base(name)) }

// customLogName matches the log names that scripts choose: "gpt-4711.out" of
// --output=%x-%j.out, "gpt.o4711". The number need not be a job id, so the logs' contents decide.
var customLogName = lazy.New(`^(.*?[A-Za-z].*?)[-_.][joe]?([1-9]\d{3,9})(?:[-_.]\S*)?$`)

// partOfJob matches names whose numbers count parts of one job, such as its ranks.
var partOfJob = lazy.New(`(?i)^nccl|(?:^|[^a-z])(?:rank|task|proc|process|worker|node|host|gpu|local|pid|log|core|stack|step|iter|iteration|shard|part)[^a-z]*$`)

// date matches a number that reads as a year or a date.
var date = lazy.New(`^(?:19|20)\d\d(?:[01]\d[0-3]\d)?$`)

// parseCustomName splits a log's name into a job's name and a number that may be its id.
func parseCustomName(file string) (name string, number int64, ok bool) {
	m := customLogName.FindStringSubmatch(file)
	if m == nil || partOfJob.MatchString(m[1]) || date.MatchString(m[2]) {
		return "", 0, false
	}
	number, err := strconv.ParseInt(m[2], 10, 64)
	return m[1], number, err == nil
}

// attemptStart matches the line with which the first node of a rendered script starts an attempt.
var attemptStart = lazy.New(`(?m)^(?:\d+: )?start: (attempt=\d+) node=0 `)

// OlderJobs tells which logs of a folder belong to jobs older than the newest job that
// wrote there. A reader of the folder wants the newest job only. A job whose log is still
// empty does not count as the newest unless another file may be its log.
type OlderJobs struct {
	ids    map[string]bool           // from Slurm's default log names
	byName map[string]map[int64]bool // from names that scripts chose: job name → ids
}

// FindOlderJobs looks at the logs below folder. It reads by way of in, or by path where in is nil.
func FindOlderJobs(in *within.Folders, folder string) OlderJobs {
	ids, newest, newestWithText, onlyDefaultNames := map[string]bool{}, int64(-1), int64(-1), true
	named := map[string]map[int64][]string{} // folder and job name → number → files
	// Whoever reads the logs reports a folder that cannot be read.
	_ = in.WalkDir(folder, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil
		}
		if d.IsDir() {
			return loglike.Enter(d.Name())
		}
		hasText := func() bool {
			info, err := d.Info()
			return err == nil && isLog(filepath.ToSlash(p), info.Size())
		}
		if m := defaultLogName.FindStringSubmatch(d.Name()); m != nil {
			if n, err := strconv.ParseInt(m[1], 10, 64); err == nil {
				ids[m[1]], newest = true, max(newest, n)
				if hasText() {
					newestWithText = max(newestWithText, n)
				}
			}
			return nil
		}
		onlyDefaultNames = onlyDefaultNames && !hasText()
		if name, n, ok := parseCustomName(d.Name()); ok && d.Type().IsRegular() && hasText() {
			stem := filepath.Join(filepath.Dir(p), name)
			if named[stem] == nil {
				named[stem] = map[int64][]string{}
			}
			named[stem][n] = append(named[stem][n], p)
		}
		return nil
	})
	if onlyDefaultNames && newestWithText >= 0 {
		newest = newestWithText
	}
	delete(ids, strconv.FormatInt(newest, 10))
	byName := map[string]map[int64]bool{}
	for stem, numbers := range named {
		older, name := olderThanHighest(in, numbers), filepath.Base(stem)
		if byName[name] == nil && len(older) > 0 {
			byName[name] = map[int64]bool{}
		}
		maps.Copy(byName[name], older)
	}
	return OlderJobs{ids, byName}
}

// olderThanHighest returns the numbers whose files ended before the files of the highest
// number began, or began with the same attempt's start: the files of one job are written
// during the same time, and only one of them has the first node's start.
func olderThanHighest(in *within.Folders, numbers map[int64][]string) map[int64]bool {
	if len(numbers) < 2 {
		return nil
	}
	older, newest := map[int64]bool{}, int64(-1)
	for n := range numbers {
		newest = max(newest, n)
	}
	last := readSpan(in, numbers[newest])
	for n, files := range numbers {
		if n == newest {
			continue
		}
		a := readSpan(in, files)
		comparable := !a.to.IsZero() && !last.from.IsZero() && (a.to.Year() == logline.Yearless) == (last.from.Year() == logline.Yearless)
		if a.start != "" && a.start == last.start || comparable && !last.from.Before(a.to) {
			older[n] = true
		}
	}
	return older
}

// A logSpan is the time during which some logs were written, by the times in their lines.
type logSpan struct {
	from, to time.Time
	start    string // "attempt=N" of the first node's start line; empty without one
}

// readSpan reads the beginning and the end of each file. It skips files that it cannot read.
func readSpan(in *within.Folders, files []string) (all logSpan) {
	for _, name := range files {
		f, err := in.Open(name)
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
		if m := attemptStart.FindStringSubmatch(string(head)); m != nil && all.start == "" {
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

// Wrote reports whether a name, relative to the folder, carries the number of an older job.
func (o OlderJobs) Wrote(name string) bool {
	if len(o.byName) > 0 {
		for part := range strings.SplitSeq(filepath.ToSlash(name), "/") { // a job's folder is named like its log
			if job, n, ok := parseCustomName(part); ok && o.byName[job][n] {
				return true
			}
		}
	}
	if len(o.ids) == 0 {
		return false
	}
	if m := defaultLogName.FindStringSubmatch(filepath.Base(name)); m != nil {
		return o.ids[m[1]]
	}
	for _, n := range strings.FieldsFunc(name, func(r rune) bool { return r < '0' || r > '9' }) {
		if len(n) >= minIDDigits && o.ids[n] {
			return true
		}
	}
	return false
}

// minIDDigits is the length from which a number within a longer name counts as a job id;
// a shorter one may be a rank's.
const minIDDigits = 4
