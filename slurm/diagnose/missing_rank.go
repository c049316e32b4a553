package diagnose

import (
	"cmp"
	"maps"
	"slices"
	"sort"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/pattern"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/scan"
)

// missing finds the rank that the others waited for or lost. The same rules serve NCCL, gloo, torchelastic and Slurm: flight
// recorder dumps, errors that name the rank, sequence numbers, a collective that no other rank was in, the only one of all processes
// that did not complain or that was not there any more, an exit code that no other rank has, and silence of that rank alone.
func (j *job) missing(live []*scan.Event) (laggard, bool) {
	for _, by := range []func([]*scan.Event) (laggard, bool){
		j.missingByRecorder, j.namedByOthers, j.behindBySequence, j.inOtherCollective, j.loneHung, j.absentRank, j.loneExitCode, j.loneSilent,
	} {
		if l, ok := by(live); ok {
			return l, true
		}
	}
	return laggard{}, false
}

func (j *job) behindBySequence([]*scan.Event) (laggard, bool) { return behind(j.nccl, j.world) }

// inOtherCollective returns the rank that was in another collective than the rest, by the ranks'
// messages or by where their exceptions were raised.
func (j *job) inOtherCollective(live []*scan.Event) (laggard, bool) {
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

// collectiveOf returns the collective in which a complaint about others was raised, or the empty
// string.
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

// fingerprint matches a rank's description of its own collective, with TORCH_DISTRIBUTED_DEBUG=DETAIL
// (ProcessGroupWrapper.cpp).
var fingerprint = lazy.New(`Rank \d+ is running collective: CollectiveFingerPrint\(` +
	`((?:SequenceNumber=\d+)?[, ]*OpType=\w+(?:, TensorShape=\[[\d, ]*\])?(?:, TensorDtypes=\w+)?)`)

// otherLength matches gloo's words for a message of another length than the receiver expects. It ends the
// receiver, which is wrong no more likely than the sender.
var otherLength = lazy.New(`op\.preamble\.length <= op\.nbytes`)

// loneExitCode returns the rank whose exit code no other rank has. A launcher tells all others to end
// after the first exit that it sees; so if it reports one exit only, that one counts only if a signal
// ended it.
func (j *job) loneExitCode(live []*scan.Event) (laggard, bool) {
	codes, told := map[int]int{}, false // rank → exit code; and whether a launcher told some ranks to end
	oneGaveUp := slices.ContainsFunc(live, func(e *scan.Event) bool {
		return slices.ContainsFunc(j.exitedRanks(e), func(r int) bool { return j.gaveUp(r, e.Exit) })
	})
	for _, e := range live {
		if e.Exit == 0 {
			continue
		}
		if scan.ToldToEnd(e.Exit) && (!e.First || oneGaveUp || j.launcherTold(e.File)) { // something else told the first one to end
			told = true
			continue
		}
		for _, r := range j.exitedRanks(e) {
			if r >= 0 && !j.gaveUp(r, e.Exit) {
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

// gaveUp reports whether an exit code is that of a rank whose watchdog ended it because it waited in vain: it was there.
func (j *job) gaveUp(rank, exit int) bool {
	n := j.nccl[rank]
	return (exit == -6 || exit == 128+6) && n != nil && n.TimedOut
}

// exitedRanks returns the ranks on whose exit a launcher reports; -1 for an unknown one.
func (j *job) exitedRanks(e *scan.Event) []int {
	if len(e.Tasks) > 0 && j.taskRank {
		return e.Tasks
	}
	return []int{e.Rank}
}

// severalSay reports whether several ranks report the same class, such as a lost peer or an interrupt.
// Chance decides which of them writes first, so none is at fault.
func severalSay(class string, events []*scan.Event) bool {
	ranks, _, _ := saidBy(events, ofClass(class))
	return len(ranks) > 1
}

// loneSilent returns the only rank, or the first of few, without a complaint if most ranks complain; or
// without any line if most wrote some; or without a message that it joined if most wrote that.
func (j *job) loneSilent(live []*scan.Event) (laggard, bool) {
	complains := complaining(live)
	delete(complains, -1)
	wrote := maps.Clone(complains)
	for i, f := range j.files {
		for t := range f.LastBy {
			if r := j.rankOf(i, t); r >= 0 {
				wrote[r] = true
			}
		}
	}
	came, of := j.joined()
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

// joined returns the ranks that said that they joined the others, and the number that was expected.
func (j *job) joined() (ranks map[int]bool, of int) {
	ranks = map[int]bool{}
	for _, f := range j.files {
		for r, n := range f.Came {
			ranks[r], of = true, max(of, n)
		}
	}
	return ranks, of
}

// complaining returns the ranks that complain of others. It contains -1 if an exception's rank is
// unknown.
func complaining(live []*scan.Event) map[int]bool {
	complains := map[int]bool{}
	for _, e := range live {
		if misses(e) && (e.Rank >= 0 || e.Kind != "") {
			complains[max(e.Rank, -1)] = true
		}
	}
	return complains
}

// dumpSignal matches what every live rank writes when another one asks for dumps: it does not say that the
// rank waits.
var dumpSignal = lazy.New(`(?i)\b(?:received a|flight recorder) dump signal\b`)

// misses reports whether a process complains of others. A launcher's exceptions do not count.
func misses(e *scan.Event) bool {
	return !e.Agent && !launcherRaised(e) && !dumpSignal.MatchString(e.Text) &&
		(e.Weight >= pattern.Symptom && e.Weight < pattern.Death || clientsJoined.MatchString(e.Text))
}

// complaintsOfPeers returns the events that say what they miss, not only that a process ended or aborted.
func complaintsOfPeers(live []*scan.Event) (complaints []*scan.Event) {
	for _, e := range live {
		if misses(e) && e.Class != outcome.UnknownExit && e.Weight != pattern.Aborted {
			complaints = append(complaints, e)
		}
	}
	return complaints
}

// allClosed reports whether all complain of a connection that was closed: a process ended.
func allClosed(complaints []*scan.Event) bool {
	return !slices.ContainsFunc(complaints, func(e *scan.Event) bool { return e.Class != outcome.NCCLConnection })
}

// launcherRaised reports whether torch's launcher raised an exception: the program of the ranks is another process.
func launcherRaised(e *scan.Event) bool {
	return e.Rank < 0 && strings.HasPrefix(e.Kind, "torch.distributed.elastic.") || e.Stack.Has(launcherFiles...)
}

var launcherFiles = []string{
	"torch/distributed/run.py", "torch/distributed/launch.py", "torch/distributed/launcher/", "torch/distributed/elastic/agent/",
	"torch/distributed/elastic/rendezvous/",
}

// absentRank returns the rank that is absent by counting.
func (j *job) absentRank(live []*scan.Event) (laggard, bool) {
	rank, _, ok := j.absent(live)
	return laggard{rank, j.nccl[rank], "silent"}, ok && rank >= 0
}

// loneHung returns the only rank that was killed after others had timed out.
func (j *job) loneHung([]*scan.Event) (laggard, bool) {
	ranks := slices.Compact(slices.Sorted(slices.Values(j.hung)))
	if len(ranks) != 1 {
		return laggard{}, false
	}
	return laggard{ranks[0], j.nccl[ranks[0]], "exit"}, true
}

// waitedInVain reports whether ranks timed out while none lost another one.
func (j *job) waitedInVain() bool {
	timedOut := false
	for _, e := range j.events {
		if e.Agent || e.Superseded {
			continue
		}
		if e.Class == outcome.NCCLConnection {
			return false
		}
		timedOut = timedOut || e.Class == outcome.NCCLTimeout
	}
	return timedOut
}

// observedLater reports whether the launcher of a rank's node says that it saw another of its ranks fail first.
func (j *job) observedLater(e *scan.Event) bool {
	return slices.ContainsFunc(j.events, func(o *scan.Event) bool {
		return o.Agent && o.First && o.Rank >= 0 && o.Rank != e.Rank && o.File == e.File && o.Node == e.Node && o.Exit == 1
	})
}

// A laggard is a rank for which a collective waited.
type laggard struct {
	rank int
	by   *scan.NCCLRank // the rank's own message; nil without one
	why  string         // how it is known, as in report.Report.Laggard
}

// behind finds the rank for which others waited from all watchdogs' messages: the one that enqueued the
// fewest collectives, the one that waited in another collective, or the only silent one.
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
	who, of := -1, 0 // of: how many more ranks count the collectives of groups of the run than of the default group
	for _, r := range ranks {
		if all[r].Own {
			of++
		} else if all[r].Default {
			of--
		}
	}
	for _, r := range ranks {
		n := all[r].Enqueued
		if of > 0 && all[r].Default || of <= 0 && all[r].Own {
			continue // another group's number
		}
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
	waited := slices.ContainsFunc(ranks, func(r int) bool { return all[r].TimedOut || !all[r].Default })
	if waited && world > len(ranks) && world-len(ranks) <= max(1, world/8) {
		for r := range world {
			if all[r] == nil {
				return laggard{r, nil, "silent"}, true
			}
		}
	}
	return laggard{}, false
}

// oddOne returns the only rank that waited in another kind of collective.
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
