package diagnose

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/pattern"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/python"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/scan"
)

// exactRank completes a verdict whose cause has no rank, such as slurmstepd's report about a node, by
// other lines about the same failure. A launcher knows only the ranks of its own task.
func (j *job) exactRank(v verdict, live []*scan.Event) verdict {
	if v.event.Rank >= 0 {
		return v
	}
	if task := v.event.Tag.Label; task >= 0 {
		live = slices.DeleteFunc(slices.Clone(live), func(e *scan.Event) bool { return e.Tag.Label >= 0 && e.Tag.Label != task })
	}
	if r := j.unreportedRank(); r >= 0 && inThread(v.event) { // the process lived on until the launcher ended it, so no launcher reported its exit
		v.event.Rank, v.event.Node = r, cmp.Or(v.event.Node, j.nodeByRank(r, j.nodesOfRanks()))
		return v
	}
	if e := j.onlyAborted(v, j.ofItsLauncher(v.event, live)); e != nil {
		v.event.Rank, v.event.Node = e.Rank, cmp.Or(v.event.Node, e.Node)
		return v
	}
	ofKernel := kernels.MatchString(v.event.Text) // and about one process
	for _, e := range live {
		if e.Class == v.class && e.Rank >= 0 && (!ofKernel || len(e.Tasks) <= 1) && e != v.event &&
			(e.Node == v.event.Node || v.event.Node == "" || e.Node == "") && e.Weight >= pattern.Death {
			v.event.Rank, v.event.Node = e.Rank, cmp.Or(v.event.Node, e.Node)
			return v
		}
	}
	for _, e := range live {
		if e.Spawns() && e.Agent && e.Rank >= 0 && e.File == v.event.File {
			v.event.Rank = e.Rank
			return v
		}
	}
	if !v.event.Agent {
		e := onlyRankExited(live)
		if e == nil && v.event.Kind != "" && len(v.others) == 0 {
			e = onlyRankWithOne(j.ofItsLauncher(v.event, live))
		}
		if e != nil {
			v.event.Rank, v.event.Node = e.Rank, cmp.Or(v.event.Node, e.Node)
		}
	}
	if v.event.Rank < 0 && v.event.Kind != "" {
		j.rankByFirstExit(v, live)
	}
	if v.event.Rank < 0 && v.event.Kind != "" && v.event.Tag.Local >= 0 {
		if r := j.onlyOneThatLeft(v.event, live); r >= 0 {
			v.event.Rank, v.event.Node = r, cmp.Or(v.event.Node, j.nodeByRank(r, j.nodesOfRanks()))
		}
	}
	if v.event.Rank < 0 && v.class == outcome.EnvLaunch {
		j.rankByShell(v, live)
	}
	if v.event.Rank < 0 {
		j.rankBySummaries(v)
	}
	if v.event.Rank < 0 && v.event.Kind != "" {
		v.event.Rank = j.onlyRankOn(v.event.Node)
	}
	if l, ok := j.loneExitCode(live); ok && v.event.Rank < 0 && !strings.HasPrefix(v.event.Text, "slurmstepd") {
		v.event.Rank = l.rank
		v.event.Node = cmp.Or(v.event.Node, j.nodeByRank(l.rank, j.nodesOfRanks()))
	}
	return v
}

// onlyAborted returns the launcher's report on the only rank that SIGABRT ended, if C++ repeated the message of the exception, or of
// the one that its handling raised, as it ended the process; else nil.
func (j *job) onlyAborted(v verdict, live []*scan.Event) (only *scan.Event) {
	raised := v.event
	if o := firstEvent(j.events, func(o *scan.Event) bool {
		return o.File == raised.File && o.Tag == raised.Tag && o.Off > raised.Off && o.Kind != ""
	}); o != nil && o.Superseded && o.Stack != nil && o.Stack.Chain != python.Unchained {
		raised = o
	}
	_, message, _ := strings.Cut(raised.Text, ": ")
	repeats := func(e *scan.Event) bool {
		said, ok := strings.CutPrefix(strings.TrimSpace(e.Text), "what():")
		return ok && e.File == v.event.File && e.Off > v.event.Off && strings.TrimSpace(said) == message
	}
	again := func(e *scan.Event) bool { return e.Text == v.event.Text } // another rank's
	if v.event.Kind == "" || !slices.ContainsFunc(live, repeats) || slices.ContainsFunc(v.others, again) {
		return nil
	}
	for _, e := range live {
		if !e.Agent || e.Exit != -6 || e.Rank < 0 {
			continue
		}
		if only != nil && only.Rank != e.Rank {
			return nil
		}
		only = e
	}
	return only
}

// onlyOneThatLeft returns the only rank with an event's local rank that left by itself, if launchers tell of all nodes, and had to tell
// the others to end, which so were not the first to leave; else -1.
func (j *job) onlyOneThatLeft(e *scan.Event, live []*scan.Event) int {
	c, only, untold, there, firsts := j.rollCalls(live)[launcher{e.File, e.Tag.Label}], -1, 0, 0, map[int]bool{}
	if c == nil || j.world > len(c.of) {
		return -1
	}
	for _, o := range j.files[e.File].Elastic {
		if o.Local >= 0 && o.Rank >= o.Local && o.Task == e.Tag.Label {
			firsts[o.Rank-o.Local] = true
		}
	}
	for _, p := range c.of {
		if !p.left && !p.told {
			untold++
		}
	}
	for first := range firsts {
		switch p := c.of[first+e.Tag.Local]; {
		case p == nil, p.left && only >= 0:
			return -1
		case p.left:
			only = first + e.Tag.Local
		case !p.told:
			there++
		}
	}
	raised := map[int]int{} // by local rank
	for _, o := range j.files[e.File].Events {
		if o.Kind != "" && !o.Agent && !o.Superseded && o.Tag.Label == e.Tag.Label && o.Tag.Local >= 0 {
			if raised[o.Tag.Local]++; raised[o.Tag.Local] > len(firsts) {
				return -1 // a node of which no launcher tells has one, too
			}
		}
	}
	if there > 0 && untold > c.ended || len(j.nodes) > len(firsts) {
		return -1
	}
	return only
}

// onlyRankOn returns the rank of a node where launchers say that every node has one; else -1.
func (j *job) onlyRankOn(node string) int {
	only, hosts := -1, map[string]int{}
	for _, f := range j.files {
		for _, e := range f.Elastic {
			if e.Rank < 0 || e.Host == "" {
				continue
			}
			if r, ok := hosts[e.Host]; ok && r != e.Rank || e.Local > 0 {
				return -1
			}
			if hosts[e.Host] = e.Rank; e.Host == node {
				only = e.Rank
			}
		}
	}
	if len(hosts) != j.ranks() {
		return -1
	}
	return only
}

// firstByChance reports whether a process of another node raised another exception that says as much, and neither rank nor time
// tells which was first.
func firstByChance(best *scan.Event, causes []*scan.Event) bool {
	vague := func(e *scan.Event) bool {
		return e.Before.IsZero() || e.After.IsZero() || e.After.Sub(e.Before) > time.Second
	}
	return best.Kind != "" && best.Rank < 0 && slices.ContainsFunc(causes, func(e *scan.Event) bool {
		return e.Kind != "" && e.Text != best.Text && e.Weight == best.Weight && e.File != best.File &&
			e.Node != "" && best.Node != "" && e.Node != best.Node &&
			(vague(e) || vague(best)) && (e.When().IsZero() || best.When().IsZero() || e.When().Sub(best.When()).Abs() <= skew)
	})
}

// rankByFirstExit finds the rank of an exception where every Slurm task is a rank: the first task whose
// exit srun reports. The other tasks exit later because they miss it. Of several tasks that
// srun reports together only the node is known, unless each of them raised the exception.
func (j *job) rankByFirstExit(v verdict, live []*scan.Event) {
	ofRank := func(e scan.ElasticEntry) bool { return e.Rank >= 0 || e.Local >= 0 } // not the exit code of a script
	if !j.taskRank || slices.ContainsFunc(j.files, func(f *scan.Facts) bool { return slices.ContainsFunc(f.Elastic, ofRank) }) {
		return
	}
	var first *scan.Event
	for _, e := range live {
		if e.File == v.event.File && e.Off < v.event.Off || v.event.Node != "" && v.event.Node != e.Node {
			continue // in an earlier attempt, or on another node
		}
		if e.Agent && len(e.Tasks) > 0 && e.Exit > 0 && !scan.ToldToEnd(e.Exit) && (first == nil || j.precedes(e, first)) {
			first = e
		}
	}
	if first == nil {
		return
	}
	if v.event.Node = first.Node; len(v.others)+1 >= len(first.Tasks) {
		v.event.Rank = first.Tasks[0]
	}
}

// rankByShell finds the rank whose shell could not start a program, where every Slurm task is a rank:
// the lowest task with a shell's exit code for that, if all such tasks are on one node.
func (j *job) rankByShell(v verdict, live []*scan.Event) {
	var first *scan.Event
	for _, e := range live {
		if !j.taskRank || len(e.Tasks) == 0 || e.Exit != 126 && e.Exit != 127 {
			continue
		}
		if first != nil && first.Node != e.Node {
			return
		}
		if first == nil || e.Tasks[0] < first.Tasks[0] {
			first = e
		}
	}
	if first != nil && (v.event.Node == "" || v.event.Node == first.Node) {
		v.event.Rank, v.event.Node = first.Tasks[0], first.Node
	}
}

// rankBySummaries finds the rank of a cause from torchelastic's summaries. If as many ranks failed as
// the file shows this cause, the cause is theirs. If one rank failed well before all others, the cause
// is that rank's. A parser that refuses its arguments exits with 2. Of several attempts, only what the
// cause's own launcher wrote after it counts.
func (j *job) rankBySummaries(v verdict) {
	same := 1
	for _, e := range v.others {
		if e.File == v.event.File && e.Kind == v.event.Kind {
			same++
		}
	}
	refused := v.class == outcome.BadArgs && v.event.Kind == ""
	failed := map[int]scan.ElasticEntry{}
	var all []scan.ElasticEntry
	for i, f := range j.files {
		for _, e := range f.Elastic {
			if e.Rank < 0 || e.Exit == -15 || refused && e.Exit != 2 || e.Task >= 0 && v.event.Tag.Label >= 0 && e.Task != v.event.Tag.Label {
				continue
			}
			if j.attempts > 1 && (i != v.event.File || e.Off < v.event.Off) {
				continue
			}
			all = append(all, e)
			if i == v.event.File {
				failed[e.Rank] = e
			}
		}
	}
	var found *scan.ElasticEntry
	if len(failed) == same {
		for _, e := range failed {
			if here := v.event.Node == "" || v.event.Node == e.Host; here && (found == nil || e.Rank < found.Rank) {
				found = &e
			}
		}
	}
	slices.SortStableFunc(all, func(a, b scan.ElasticEntry) int { return a.At.Compare(b.At) })
	if found == nil && len(all) > 1 && !all[0].At.IsZero() && all[1].At.Sub(all[0].At) >= skew {
		found = &all[0]
	}
	if found != nil && (v.event.Node == "" || v.event.Node == found.Host) {
		v.event.Rank, v.event.Node = found.Rank, found.Host
	}
}

// onlyRankExited returns the launcher's report on the only rank that exited by itself, as after an
// exception; signals ended the others. It returns nil if there are several.
func onlyRankExited(live []*scan.Event) (only *scan.Event) {
	for _, e := range live {
		if !e.Agent || e.Class != outcome.UnknownExit || e.Weight != pattern.Exited {
			continue
		}
		if e.Rank < 0 || len(e.Tasks) > 1 || only != nil && only.Rank != e.Rank {
			return nil
		}
		only = e
	}
	return only
}

// onlyRankWithOne returns the launcher's report on the only rank that exited with 1, as Python does after an exception,
// or nil if there are several. The others caught the loss of it, and left with codes of their own.
func onlyRankWithOne(live []*scan.Event) (only *scan.Event) {
	for _, e := range live {
		if !e.Agent || e.Exit != 1 || len(e.Tasks) > 0 || e.Rank < 0 && e.Tag.Local < 0 {
			continue // of a node's launcher, or of the script
		}
		if e.Rank < 0 || only != nil && only.Rank != e.Rank {
			return nil
		}
		only = e
	}
	return only
}

// ofItsLauncher returns the reports of the launcher that wrote into the file of an event; all events if none did.
func (j *job) ofItsLauncher(e *scan.Event, live []*scan.Event) []*scan.Event {
	if len(j.files[e.File].Elastic) == 0 {
		return live
	}
	return slices.DeleteFunc(slices.Clone(live), func(o *scan.Event) bool { return o.File != e.File })
}

// ownExitCode returns the launcher's report on the only process with an exit code of its own, if each
// other process exited with 1, as Python does after an exception, or was told to end.
func ownExitCode(live []*scan.Event) (own *scan.Event) {
	others := 0
	for _, e := range live {
		switch {
		case len(e.Tasks) == 0 && (!e.Agent || e.Rank < 0 && !e.Spawns() || e.Exit == 0):
		case e.Exit == 1 || scan.ToldToEnd(e.Exit):
			others++
		case own != nil && (e.Rank < 0 || e.Rank != own.Rank) || len(e.Tasks) > 1 || e.Exit < 2 || e.Exit > 125:
			return nil
		default:
			own = e
		}
	}
	if others == 0 {
		return nil
	}
	return own
}
