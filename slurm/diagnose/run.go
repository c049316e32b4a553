package diagnose

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/knowledge/megatron"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// A Context is what is known of a job besides its logs. The zero value knows
// nothing.
type Context struct {
	// JobState is any state in Slurm's words, or "ENDED".
	JobState string `json:"job_state,omitempty"`
	// SecondsSinceLastWrite is the age of the newest line; nil: the files'
	// own times count.
	SecondsSinceLastWrite *int64 `json:"seconds_since_last_write,omitempty"`

	Reason      string   `json:"reason,omitempty"`       // Slurm's reason
	ExitCode    string   `json:"exit_code,omitempty"`    // "1:0"
	FailedNodes []string `json:"failed_nodes,omitempty"` // nodes that Slurm holds down
	Nodes       []string `json:"nodes,omitempty"`        // of the job
	OOMKilled   bool     `json:"oom_killed,omitempty"`   // by Slurm's accounting

	// Addresses are the nodes of IP addresses, as the cluster resolves them.
	Addresses map[string]string `json:"addresses,omitempty"`
	// Resolve asks the cluster's name service for the names of an address; nil:
	// nobody can be asked.
	Resolve func(address string) []string `json:"-"`
	// Worktree is the folder that the job was to run in.
	Worktree string `json:"worktree,omitempty"`
	// Launch is the run's launch where the specification is known.
	Launch *megatron.Run `json:"-"`
	// Already is what remedies ask for and the specification has, or cannot have.
	Already []string `json:"-"`
}

// FromJob returns what a cluster's record of a job tells a diagnosis.
func FromJob(j slurm.Job) Context {
	c := Context{JobState: string(j.State), Reason: j.Reason, Nodes: j.Nodes, OOMKilled: j.State == slurm.OutOfMemory}
	if j.ExitCode != nil {
		c.ExitCode = *j.ExitCode
	}
	return c
}

func (c Context) state() slurm.State { return slurm.State(c.JobState) }

// running reports whether the job may still write; known tells whether the
// context says.
func (c Context) running() (is, known bool) {
	switch c.state() {
	case "":
		return false, false
	case slurm.Running, slurm.Completing, slurm.Pending, "CONFIGURING", "SUSPENDED", "RESIZING", "STAGE_OUT", "SIGNALING", "STOPPED":
		return true, true
	}
	return false, true
}

// Run diagnoses the logs in src. Files that cannot be read are noted in the
// report; an error means that no answer could be given.
func Run(ctx context.Context, src Source, c Context) (Report, error) {
	all, err := scanAll(ctx, src)
	if err != nil {
		return Report{}, err
	}
	recorded, noDumps := src.recordings()
	src.unreadable = append(src.unreadable, noDumps...)
	unread, something := src.unread(all)
	bySlurm := c.JobState != "" && c.JobState != "ENDED" && len(src.unreadable) == 0 && !slices.ContainsFunc(all, func(f *facts) bool { return f.reads != nil })
	if !something && len(recorded) == 0 && !src.noLogs && !bySlurm {
		return Report{}, &UnreadableError{unread}
	}
	j := newJob(src, all, c)
	if something {
		j.unreadable = unread
	}
	j.resolve()
	if m, ok := whoMissed(recorded); ok {
		j.missed = &m
	}
	return j.report(), nil
}

// Path diagnoses the logs at one path.
func Path(ctx context.Context, path string, c Context) (Report, error) {
	src, err := Open(path)
	if err != nil {
		return Report{}, err
	}
	return Run(ctx, src, c)
}

// scanAll reads all files, on all cores.
func scanAll(ctx context.Context, src Source) ([]*facts, error) {
	all := make([]*facts, len(src.files))
	want, keep := shares(len(src.files))
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(src.files)) {
		wg.Go(func() {
			var buf []byte
			for {
				i := int(next.Add(1)) - 1
				if i >= len(src.files) || ctx.Err() != nil {
					return
				}
				all[i] = scanFile(ctx, src.files[i], newScanner(i, keep), want, &buf)
				if len(buf) > maxExtended/2 {
					buf = nil
				}
			}
		})
	}
	wg.Wait()
	if err := ctx.Err(); err != nil {
		return nil, lang.Text{EN: "diagnosis stopped: %s", ZH: "诊断已停止：%s"}.Err(err)
	}
	return all, nil
}

// shares is how much of the end of each of n files is read, and how many of
// its iteration lines are kept.
func shares(n int) (want, keep int) {
	n = max(1, n)
	return min(max(allWindows/n, minWindow), maxWindow), min(max(allProgress/n, minProgress), maxProgress)
}

// scanFile reads one file. What goes wrong is kept with its facts.
func scanFile(ctx context.Context, f *logFile, s *scanner, want int, buf *[]byte) *facts {
	if d := f.digested; d != nil {
		if d.Error != "" {
			s.reads = errors.New(d.Error)
		}
		s.replay(d)
		s.finish()
		return s.facts
	}
	windows, err := f.windows(ctx, buf, want, healthy)
	if err == nil {
		err = looksBinary(windows)
	}
	if s.reads = err; err != nil {
		windows = nil
	}
	s.cut = len(windows) > 1
	for n, w := range windows {
		if n > 0 {
			s.gap()
		}
		s.scan(w)
	}
	s.finish()
	return s.facts
}

// gap is crossed between two windows: what was open stays unfinished.
func (s *scanner) gap() {
	s.streams = map[tag]*stream{}
	s.waiting = s.waiting[:0]
	s.now = time.Time{}
	s.counts = map[quota]int{}
}

// finish ends what is still open at the end of a file.
func (s *scanner) finish() {
	s.lastBy = map[tag]mark{}
	tags := slices.SortedFunc(maps.Keys(s.streams), func(a, b tag) int {
		return cmp.Or(cmp.Compare(s.streams[a].last.off, s.streams[b].last.off), cmp.Compare(a.rank, b.rank), cmp.Compare(a.label, b.label),
			cmp.Compare(a.local, b.local), cmp.Compare(a.host, b.host))
	})
	for _, t := range tags { // in one order: of events that are near each other the first may win
		st := s.streams[t]
		if st.last.text != "" && len(s.lastBy) < 1<<14 {
			s.lastBy[t] = st.last
		}
		if st.pending != "" {
			s.endPending(st, t)
		}
		s.usageAtEnd(st.usage)
		s.torn = s.torn || st.open != nil && len(st.open.frames) > 0
	}
	s.streams, s.counts, s.waiting, s.recent, s.buf, s.began = nil, nil, nil, nil, nil, nil
}
