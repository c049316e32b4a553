package diagnose

import (
	"sort"
	"strconv"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
)

// An ncclRank is what a rank's watchdog says of its collectives
// (torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp).
type ncclRank struct {
	timedOut  bool
	seq       int64 // the collective that timed out
	op        string
	enqueued  int64 // -1 where it does not say
	completed int64
	file      int
	off       int64 // the line that shows it best
	raw       string
	tag       tag
}

var (
	ofRank    = lazy.New(`\bRank (\d+)\]`)
	watchWork = lazy.New(`collective operation timeout: WorkNCCL\(SeqNum=(\d+), OpType=(\w+)`)
	lastWork  = lazy.On("ast enqueued", `[Ll]ast enqueued (?:NCCL )?work: (-?\d+), last completed (?:NCCL )?work: (-?\d+)`)
	// torch's desync debugging names them outright (TraceUtils.h).
	// monitoredBarrier does too (ProcessGroupGloo.cpp).
	notJoined = lazy.On("join|finished collective|monitoredBarrier|errors while waiting",
		`[Rr]anks? \[?([\d, ]+)\]? (?:has not|have not|did(?:n't| not)) join|\[([\d, ]+)\] (?:has |`+
			`have )?finished collective .* but didn't (?:join|start)|[Rr]anks? ([\d, ]+) failed to pass monitoredBarrier|`+
			`errors while waiting for \S+ from (rank \d+)`)
)

// A namedRank is one that another rank's error names: as the one that did not come, or
// as the one whose own log says who that is.
type namedRank struct {
	rank    int
	referee bool
}

// watchdog reads what a line says of a rank's collectives.
func (s *scanner) watchdog(t tag, text, raw string, off int64) {
	if g := notJoined.FindStringSubmatch(text); g != nil && len(s.missing) < 64 {
		for _, list := range g[1:] {
			list, referee := strings.CutPrefix(list, "rank ")
			for _, n := range strings.Split(list, ",") {
				if rank, ok := number(strings.TrimSpace(n)); ok {
					s.missing = append(s.missing, namedRank{rank, referee})
				}
			}
		}
	}
	who := -1
	if g := ofRank.FindStringSubmatch(text[:min(len(text), 400)]); g != nil {
		who, _ = strconv.Atoi(g[1])
	} else if t.rank >= 0 {
		who = t.rank
	}
	if who < 0 {
		return
	}
	w, l := watchWork.FindStringSubmatch(text), lastWork.FindStringSubmatch(text)
	if w == nil && l == nil {
		return
	}
	r := s.nccl[who]
	if r == nil {
		r = &ncclRank{enqueued: -1, completed: -1, file: s.file, off: off, raw: raw, tag: t}
		s.nccl[who] = r
	}
	if w != nil && !r.timedOut {
		r.timedOut, r.op = true, w[2]
		r.seq, _ = strconv.ParseInt(w[1], 10, 64)
		r.file, r.off, r.raw, r.tag = s.file, off, raw, t
	}
	if l != nil && r.enqueued < 0 {
		r.enqueued, _ = strconv.ParseInt(l[1], 10, 64)
		r.completed, _ = strconv.ParseInt(l[2], 10, 64)
		if !r.timedOut {
			r.off, r.raw, r.tag = off, raw, t
		}
	}
}

// missing names the rank that the others waited for or lost, by one rule for
// NCCL, gloo, torchelastic and Slurm: flight recorder dumps, errors of the others
// that name it, sequence numbers, an exit code that is no other rank's, or that
// it alone is silent.
func (j *job) missing(live []*event) (laggard, bool) {
	for _, by := range []func([]*event) (laggard, bool){j.recorded, j.named, j.behindBySequence, j.leftAlone, j.silentAlone} {
		if l, ok := by(live); ok {
			return l, true
		}
	}
	return laggard{}, false
}

func (j *job) behindBySequence([]*event) (laggard, bool) { return behind(j.nccl, j.world) }

// leftAlone is the rank whose process alone left with its exit code, beside
// others that left with another. A launcher that tells all others to end does so
// after the first that it sees: that one counts only where a signal ended it.
func (j *job) leftAlone(live []*event) (laggard, bool) {
	codes, told := map[int]int{}, map[int]bool{} // rank → exit code
	for _, e := range live {
		if e.exit == 0 {
			continue
		}
		if toldToEnd(e.exit) && !e.first { // the first one was told by somebody else
			told[e.rank] = true
			continue
		}
		ranks := []int{e.rank}
		if len(e.tasks) > 0 && j.taskRank {
			ranks = e.tasks
		}
		for _, r := range ranks {
			if r >= 0 {
				codes[r] = e.exit
			}
		}
	}
	by := map[int][]int{}
	for r, code := range codes {
		by[code] = append(by[code], r)
	}
	only := -1
	for _, ranks := range by {
		if len(ranks) == 1 {
			if only >= 0 {
				return laggard{}, false
			}
			only = ranks[0]
		}
	}
	if only < 0 || len(codes) == 1 && (codes[only] > 0 && codes[only] < 128 || len(told) == 0) {
		return laggard{}, false
	}
	return laggard{only, j.nccl[only], "exit"}, true
}

// toldToEnd reports whether an exit code is what a launcher's SIGTERM or SIGINT
// leaves, directly or through a shell.
func toldToEnd(code int) bool { return code == -15 || code == 143 || code == -2 || code == 130 }

// silentAlone is the only rank, or the first of few, that does not complain of
// the others, where most do.
func (j *job) silentAlone(live []*event) (laggard, bool) {
	complains := map[int]bool{}
	for _, e := range live {
		if e.rank >= 0 && !e.agent && e.weight >= symptom && e.weight < death {
			complains[e.rank] = true
		}
	}
	world := j.ranks()
	if silent := world - len(complains); world < 3 || silent < 1 || silent > max(1, world/8) {
		return laggard{}, false
	}
	for r := range world {
		if !complains[r] {
			return laggard{r, j.nccl[r], "silent"}, true
		}
	}
	return laggard{}, false
}

// A laggard is a rank that a collective waited for, and how that is known.
type laggard struct {
	rank int
	by   *ncclRank // nil where the rank said nothing
	why  string    // one of the keys of laggardWhy
}

// behind names the rank that others waited for, from what all watchdogs say:
// the one that enqueued less than all others, the one that waited in another
// collective, or the only one that said nothing.
func behind(all map[int]*ncclRank, world int) (laggard, bool) {
	var ranks []int
	for r := range all {
		ranks = append(ranks, r)
	}
	sort.Ints(ranks)
	if len(ranks) < 2 {
		return laggard{}, false
	}
	least, second := int64(-1), int64(-1)
	who := -1
	for _, r := range ranks {
		n := all[r].enqueued
		if n < 0 {
			if n = all[r].seq; !all[r].timedOut {
				continue
			}
		}
		switch {
		case least < 0 || n < least:
			second, least, who = least, n, r
		case second < 0 || n < second:
			second = n
		}
	}
	if who >= 0 && second > least {
		return laggard{who, all[who], "behind"}, true
	}
	if r, ok := oddOne(ranks, all); ok {
		return laggard{r, all[r], "other"}, true
	}
	if world > len(ranks) && world-len(ranks) <= max(1, world/8) {
		for r := range world {
			if all[r] == nil {
				return laggard{r, nil, "silent"}, true
			}
		}
	}
	return laggard{}, false
}

// oddOne finds the single rank that waited in another kind of collective.
func oddOne(ranks []int, all map[int]*ncclRank) (int, bool) {
	by := map[string][]int{}
	for _, r := range ranks {
		if all[r].timedOut {
			by[all[r].op] = append(by[all[r].op], r)
		}
	}
	if len(by) != 2 {
		return -1, false
	}
	odd, rest := -1, 0
	for _, rs := range by {
		if len(rs) == 1 {
			odd = rs[0]
		}
		rest = max(rest, len(rs))
	}
	return odd, odd >= 0 && rest >= 3
}
