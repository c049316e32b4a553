package diagnose

import (
	"cmp"
	"maps"
	"sort"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/pattern"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/scan"
)

// missing names the rank that the others waited for or lost, by one rule for
// NCCL, gloo, torchelastic and Slurm: flight recorder dumps, errors of the others
// that name it, sequence numbers, a collective that no other rank was in, an exit code
// that is no other rank's, or that it alone is silent.
func (j *job) missing(live []*scan.Event) (laggard, bool) {
	for _, by := range []func([]*scan.Event) (laggard, bool){
		j.recorded, j.named, j.behindBySequence, j.inAnother, j.leftAlone, j.silentAlone, j.leftUncomplaining,
	} {
		if l, ok := by(live); ok {
			return l, true
		}
	}
	return laggard{}, false
}

func (j *job) behindBySequence([]*scan.Event) (laggard, bool) { return behind(j.nccl, j.world) }

// inAnother is the rank that was in another collective than the rest, by what ranks say
// of theirs, or by where their exceptions were raised.
func (j *job) inAnother(live []*scan.Event) (laggard, bool) {
	said, waited := map[int]*scan.NCCLRank{}, false
	var ranks []int
	for _, e := range live {
		waited = waited || e.Class == outcome.NCCLTimeout
		op := collectiveOf(e)
		if op == "" || e.Rank < 0 || said[e.Rank] != nil {
			continue
		}
		ranks = append(ranks, e.Rank)
		said[e.Rank] = &scan.NCCLRank{TimedOut: true, Op: op, File: e.File, Off: e.Off, Raw: e.Raw, Tag: e.Tag}
	}
	r, ok := oddOne(ranks, said)
	return laggard{r, said[r], "other"}, ok && waited
}

// collectiveOf is the collective that a complaint about others was raised in, or "".
func collectiveOf(e *scan.Event) string {
	if g := fingerprint.FindStringSubmatch(e.Text); g != nil {
		return g[1]
	}
	if e.Stack == nil || e.Class != outcome.NCCLTimeout && e.Class != outcome.NCCLConnection {
		return ""
	}
	op := ""
	for _, f := range e.Stack.Frames {
		if strings.HasSuffix(f.File, "torch/distributed/distributed_c10d.py") {
			op = f.Function
		}
	}
	return op
}

// fingerprint is what a rank says of its own collective where TORCH_DISTRIBUTED_DEBUG is
// DETAIL (ProcessGroupWrapper.cpp).
var fingerprint = lazy.New(`Rank \d+ is running collective: CollectiveFingerPrint\(` +
	`((?:SequenceNumber=\d+)?[, ]*OpType=\w+(?:, TensorShape=\[[\d, ]*\])?(?:, TensorDtypes=\w+)?)`)

// leftAlone is the rank whose process alone left with its exit code, beside
// others that left with another. A launcher that tells all others to end does so
// after the first that it sees: that one counts only where a signal ended it.
func (j *job) leftAlone(live []*scan.Event) (laggard, bool) {
	codes, told := map[int]int{}, false // rank → exit code; a launcher told some to end
	for _, e := range live {
		if e.Exit == 0 {
			continue
		}
		if scan.ToldToEnd(e.Exit) && !e.First { // the first one was told by somebody else
			told = true
			continue
		}
		for _, r := range j.leavers(e) {
			if r >= 0 {
				codes[r] = e.Exit
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
	if only < 0 || len(codes) == 1 && (codes[only] > 0 && codes[only] < 128 || !told) {
		return laggard{}, false
	}
	return laggard{only, j.nccl[only], "exit"}, true
}

// leavers are the ranks of whose end a launcher tells; -1 for one that nobody knows.
func (j *job) leavers(e *scan.Event) []int {
	if len(e.Tasks) > 0 && j.taskRank {
		return e.Tasks
	}
	return []int{e.Rank}
}

// severalSay reports whether more ranks than one say the same: that they lost a peer, or
// were interrupted. Who of them says it first is chance, and none is to blame.
func severalSay(class string, events []*scan.Event) bool {
	ranks := map[int]struct{}{}
	for _, e := range events {
		if e.Class == class && !e.Agent && e.Rank >= 0 {
			ranks[e.Rank] = struct{}{}
		}
	}
	return len(ranks) > 1
}

// silentAlone is the only rank, or the first of few, that does not complain of
// the others where most do, or that wrote nothing at all where most wrote, or that did
// not say that it came where most said so.
func (j *job) silentAlone(live []*scan.Event) (laggard, bool) {
	complains := complaining(live)
	delete(complains, -1)
	wrote := maps.Clone(complains)
	for i, f := range j.files {
		for t := range f.LastBy {
			if r := j.rankOf(i, t, nil); r >= 0 {
				wrote[r] = true
			}
		}
	}
	came, of := j.came()
	world := cmp.Or(j.ranks(), of)
	for _, spoke := range []map[int]bool{complains, wrote, came} {
		if silent := world - len(spoke); world < 3 || silent < 1 || silent > max(1, world/8) {
			continue
		}
		for r := range world {
			if !spoke[r] {
				return laggard{r, j.nccl[r], "silent"}, true
			}
		}
	}
	return laggard{}, false
}

// came are the ranks that said so when they joined the others, and of how many.
func (j *job) came() (ranks map[int]bool, of int) {
	ranks = map[int]bool{}
	for _, f := range j.files {
		for r, n := range f.Came {
			ranks[r], of = true, max(of, n)
		}
	}
	return ranks, of
}

// complaining are the ranks that complain of others; -1 among them: nobody knows which
// raised an exception. What torch's launcher raises is no rank's.
func complaining(live []*scan.Event) map[int]bool {
	complains := map[int]bool{}
	for _, e := range live {
		launchers := e.Rank < 0 && strings.HasPrefix(e.Kind, "torch.distributed.elastic.")
		misses := e.Weight >= pattern.Symptom && e.Weight < pattern.Death || clientsJoined.MatchString(e.Text)
		if !e.Agent && !launchers && misses && (e.Rank >= 0 || e.Kind != "") {
			complains[max(e.Rank, -1)] = true
		}
	}
	return complains
}

// leftUncomplaining is the only rank of which a launcher tells that it left by itself, and
// that did not complain before it did, where several others complain: they lost it.
func (j *job) leftUncomplaining(live []*scan.Event) (laggard, bool) {
	complains, quiet := complaining(live), -1
	if complains[-1] || len(complains) < 2 {
		return laggard{}, false
	}
	for _, e := range live {
		if e.Exit <= 0 || scan.ToldToEnd(e.Exit) {
			continue
		}
		for _, r := range j.leavers(e) {
			switch {
			case r < 0 || complains[r] || r == quiet:
			case quiet >= 0:
				return laggard{}, false
			default:
				quiet = r
			}
		}
	}
	return laggard{quiet, j.nccl[max(quiet, 0)], "silent"}, quiet >= 0
}

// A laggard is a rank that a collective waited for, and how that is known.
type laggard struct {
	rank int
	by   *scan.NCCLRank // nil where the rank said nothing
	why  string         // one of the keys of laggardWhy
}

// behind names the rank that others waited for, from what all watchdogs say:
// the one that enqueued less than all others, the one that waited in another
// collective, or the only one that said nothing.
func behind(all map[int]*scan.NCCLRank, world int) (laggard, bool) {
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
		n := all[r].Enqueued
		if n < 0 {
			if n = all[r].Seq; !all[r].TimedOut {
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
func oddOne(ranks []int, all map[int]*scan.NCCLRank) (int, bool) {
	by := map[string][]int{}
	for _, r := range ranks {
		if all[r].TimedOut {
			by[all[r].Op] = append(by[all[r].Op], r)
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
