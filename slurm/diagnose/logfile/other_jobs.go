package logfile

import (
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
)

// ofJob is a log as Slurm names it where nobody says otherwise: its number is a job's.
// That of "10471.out" may also be a process's, a day's or a node's.
var ofJob = lazy.New(`^slurm-(\d{1,10})(?:_\d+)?\.(?:out|err)(?:\.gz|\.zst)?$`)

// A jobFolder tells which jobs' logs lie in a folder that several jobs write into. The
// newest job is the one asked about: what an older one left says nothing of it. One that
// has written nothing yet, where nothing else could be its log, cannot be asked about.
type jobFolder struct{ older map[string]bool } // their numbers

// jobsIn finds the jobs whose logs lie below path.
func (s *Source) jobsIn(path string) jobFolder {
	jobs, newest, newestSaying, alone := map[string]bool{}, int64(-1), int64(-1), true
	// A folder that cannot be read is told of where its logs are gathered.
	_ = s.in.WalkDir(path, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil
		}
		if d.IsDir() {
			return enter(d.Name())
		}
		info, err := d.Info()
		says := err == nil && isLog(filepath.ToSlash(p), info.Size())
		m := ofJob.FindStringSubmatch(d.Name())
		if m == nil {
			alone = alone && !says
			return nil
		}
		if n, err := strconv.ParseInt(m[1], 10, 64); err == nil {
			jobs[m[1]], newest = true, max(newest, n)
			if says {
				newestSaying = max(newestSaying, n)
			}
		}
		return nil
	})
	if alone && newestSaying >= 0 {
		newest = newestSaying
	}
	delete(jobs, strconv.FormatInt(newest, 10))
	return jobFolder{jobs}
}

// isOlder reports whether a name below the folder carries the number of an older job.
func (f jobFolder) isOlder(name string) bool {
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
