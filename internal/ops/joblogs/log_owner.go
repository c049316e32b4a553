package joblogs

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logfile"
)

// A logFinder finds a job's logs among files whose names contain the job's number, and
// excludes other jobs' logs: the job "gpt-12" leaves "gpt-12-34.out", and task 12 of the
// array 34 leaves "gpt-34_12.out", which are not logs of job 12. It asks Slurm about few numbers only, because the numbers of rank
// files are not job ids.
type logFinder struct {
	known  map[string]bool
	looks  int
	others []logfile.Unreadable // those left out because Slurm knows whose they are
}

const maxLooks = 16

var (
	numbers    = regexp.MustCompile(`[0-9]+`)
	arrayTasks = regexp.MustCompile(`[0-9]+_[0-9]+`)
)

// ofOther reports whether the file is the log of a job other than j.
func (f *logFinder) ofOther(ctx context.Context, c *ops.Call, cluster string, j slurm.Job, file string) bool {
	cl := c.Clusters[cluster]
	if cl == nil {
		return false
	}
	if is, ok := f.known[file]; ok {
		return is
	}
	if f.known == nil {
		f.known = map[string]bool{}
	}
	name := filepath.Base(file)
	for _, n := range append(arrayTasks.FindAllString(name, -1), numbers.FindAllString(name, -1)...) {
		id := slurm.JobID(n)
		if id == j.ID || id == j.ID.Array() || id.Array() == j.ID || id == j.RawID || f.looks >= maxLooks {
			continue
		}
		f.looks++
		other, err := c.Look(ctx, cl, id)
		// The accounts of older releases do not know where an ended task wrote its log; that
		// there is such a task is enough.
		isTask := id.Array() != id && other.Stdout == "" && other.Reason != slurm.ReasonVanished
		if err == nil && (isTask || other.Stdout == file || other.Stderr == file) {
			f.known[file] = true
			if len(f.others) < logfile.MaxUnreadable {
				f.others = append(f.others, logfile.Unread(file, lang.Text{EN: "it is the log of job %s", ZH: "是作业 %s 的日志"}.Err(id)))
			}
			return true
		}
	}
	f.known[file] = false
	return false
}

// carriesID matches the file names that contain the job's id.
func carriesID(j slurm.Job) *regexp.Regexp {
	after := `([^0-9_]|$)`
	if len(j.Tasks) > 0 { // the logs of every task
		after = `(_[0-9]+([^0-9]|$)|[^0-9_]|$)`
	}
	return regexp.MustCompile(`(^|[^0-9])` + regexp.QuoteMeta(string(j.ID)) + after)
}

// unnamed finds the logs of a job whose accounts do not name them, as those of Slurm before
// 24.05. They lie in the job's folder or in logs, and have a name as sbatch gives one, or one
// with the job's name; what is older than the job's start is another's.
func (f *logFinder) unnamed(ctx context.Context, c *ops.Call, cluster string, j slurm.Job) (found []string) {
	if !filepath.IsAbs(j.WorkDir) || j.StartedAt == nil {
		return nil
	}
	carries := carriesID(j)
	for _, dir := range []string{j.WorkDir, filepath.Join(j.WorkDir, "logs")} {
		entries, err := os.ReadDir(dir)
		if err != nil {
			continue
		}
		for _, e := range entries {
			name, full := e.Name(), filepath.Join(dir, e.Name())
			if !carries.MatchString(name) || !strings.HasPrefix(name, "slurm-") && (j.Name == "" || !strings.Contains(name, j.Name)) {
				continue
			}
			st, err := e.Info()
			if err == nil && st.Mode().IsRegular() && !logfile.WrittenBefore(st.ModTime(), *j.StartedAt) && !f.ofOther(ctx, c, cluster, j, full) {
				found = append(found, full)
			}
		}
	}
	return found
}

// ownerOf returns what tells a job's logs from those of other jobs. Where a requeued job has
// written nothing since, what is there is of its run before. Only times tell of a whole array:
// the numbers and nodes of its tasks are not known.
func ownerOf(j slurm.Job, paths []string) logfile.Owner {
	o := logfile.Owner{Named: []string{j.Stdout, j.Stderr}, Started: j.StartedAt}
	if j.Restarts > 0 && j.StartedAt != nil && !slices.ContainsFunc(paths, func(path string) bool {
		st, err := os.Stat(path)
		return err != nil || !st.Mode().IsRegular() || !logfile.WrittenBefore(st.ModTime(), *j.StartedAt)
	}) {
		o.Started = nil
	}
	if len(j.Tasks) > 0 {
		return o
	}
	for _, id := range []slurm.JobID{j.ID.Array(), j.RawID} {
		if id != "" {
			o.IDs = append(o.IDs, string(id))
		}
	}
	if j.Restarts == 0 { // a run before was on other nodes
		o.Nodes = j.Nodes
	}
	if j.State.Ended() {
		o.Ended = j.EndedAt
	}
	return o
}

// LastWrite returns when a job last wrote to one of its logs; zero where none can be
// seen from here.
func LastWrite(ctx context.Context, c *ops.Call, j slurm.Job) (last time.Time) {
	for _, path := range logFiles(ctx, c, j.Cluster, j) {
		if st, err := os.Stat(path); err == nil && st.ModTime().After(last) {
			last = st.ModTime()
		}
	}
	return last
}
