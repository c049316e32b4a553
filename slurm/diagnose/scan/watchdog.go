package scan

import (
	"strconv"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logline"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/pattern"
)

// An NCCLRank holds the messages of a rank's watchdog about its collectives
// (torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp).
type NCCLRank struct {
	TimedOut  bool
	Seq       int64 // sequence number of the collective that timed out
	Op        string
	Enqueued  int64 // -1 if unknown
	completed int64
	File      int
	Off       int64 // offset of the line that shows it best
	Raw       string
	Tag       logline.Tag
	Default   bool // Enqueued counts the collectives of the default group, not of one of the run's own
	Own       bool // of one of the run's own
}

var (
	ofRank    = lazy.New(`\bRank (\d+)\]`)
	watchWork = lazy.New(`collective operation timeout: WorkNCCL\(SeqNum=(\d+), OpType=(\w+)`)
	lastWork  = lazy.On("ast enqueued", `[Ll]ast enqueued (?:NCCL )?work: (-?\d+), last completed (?:NCCL )?work: (-?\d+)`)
	// torch's desync debugging names the missing ranks (TraceUtils.h), and so does monitoredBarrier
	// (ProcessGroupGloo.cpp).
	notJoined = lazy.On("join|finished collective|monitoredBarrier|errors while waiting",
		`[Rr]anks? \[?([\d, ]+)\]? (?:has not|have not|did(?:n't| not)) join|\[([\d, ]+)\] (?:has |`+
			`have )?finished collective .* but didn't (?:join|start)|[Rr]anks? ([\d, ]+) failed to pass monitoredBarrier|`+
			`errors while waiting for \S+ from (rank \d+)`)
)

// A NamedRank is a rank in another rank's error: the missing rank, or a Referee, whose own log tells
// which rank is missing.
type NamedRank struct {
	Rank    int
	Referee bool
}

// watchdog records what a line says about a rank's collectives.
func (s *scanner) watchdog(t logline.Tag, text, raw string, off int64) {
	if g := notJoined.FindStringSubmatch(text); g != nil && len(s.Missing) < 64 {
		for _, list := range g[1:] {
			list, referee := strings.CutPrefix(list, "rank ")
			for _, n := range strings.Split(list, ",") {
				if rank, ok := logline.Number(strings.TrimSpace(n)); ok {
					s.Missing = append(s.Missing, NamedRank{rank, referee})
				}
			}
		}
	}
	who := -1
	if g := ofRank.FindStringSubmatch(text[:min(len(text), 400)]); g != nil {
		who, _ = strconv.Atoi(g[1])
	} else if t.Rank >= 0 {
		who = t.Rank
	}
	if who < 0 {
		return
	}
	w, l := watchWork.FindStringSubmatch(text), lastWork.FindStringSubmatch(text)
	if w == nil && l == nil {
		return
	}
	r := s.NCCL[who]
	if r == nil {
		r = &NCCLRank{Enqueued: -1, completed: -1, File: s.file, Off: off, Raw: raw, Tag: t}
		s.NCCL[who] = r
	}
	if w != nil && !r.TimedOut {
		r.TimedOut, r.Op = true, w[2]
		r.Seq, _ = strconv.ParseInt(w[1], 10, 64)
		r.File, r.Off, r.Raw, r.Tag = s.file, off, raw, t
	}
	if l != nil && r.Enqueued < 0 {
		r.Enqueued, _ = strconv.ParseInt(l[1], 10, 64)
		r.completed, _ = strconv.ParseInt(l[2], 10, 64)
		r.Default = strings.Contains(text, "(default_pg)")
		r.Own = !r.Default && strings.Contains(text, "[PG ID ")
		if !r.TimedOut {
			r.Off, r.Raw, r.Tag = off, raw, t
		}
	}
}

// ToldToEnd reports whether an exit code is that of a process ended by a launcher's SIGTERM or SIGINT,
// directly or through a shell.
func ToldToEnd(code int) bool { return code == -15 || code == 143 || code == -2 || code == 130 }

// neverMet turns a warning into an error if the run has nothing else: PyTorch warns again and again
// that the name in MASTER_ADDR is unknown, until somebody ends the job.
func (f *Facts) neverMet() {
	if len(f.Progress) > 0 || f.Ran.Phases > 0 {
		return
	}
	var unknown []*Event
	for _, e := range f.Events {
		if e.Class == outcome.Rendezvous && e.Form == pattern.Report && nameUnknown.MatchString(e.Text) {
			unknown = append(unknown, e)
		}
	}
	if len(unknown) >= Enough {
		unknown[0].Form = pattern.Statement
	}
}

// nameUnknown matches getaddrinfo's error for a name that no service knows (EAI_NONAME).
var nameUnknown = lazy.New(`gai error: -2\b`)
