package diagnose

import (
	"slices"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/scan"
)

// A launcher is known by its file and srun's label. Several may write into one file without labels, and count as one.
type launcher struct{ file, task int }

// srun is the launcher of ranks that are its tasks.
var srun = launcher{-1, -1}

// Logs may claim any number of ranks. No job has more, and no node more of them.
const mostRanks, mostLocals = 1 << 17, 1 << 10

// A process is what a launcher tells of a rank: that it left by itself, that it was told to end, or nothing.
type process struct{ left, told bool }

// A rollCall is what one launcher tells of its processes.
type rollCall struct {
	of      map[int]*process // by rank
	pids    map[string]int
	nodes   map[string]bool
	ended   int // processes that it told to end, and that it does not name
	unnamed int // complaints of lost or awaited peers, by processes that no prefix names
}

// absent finds the process that the others lost or waited for by counting, if only one may be it. The rank is -1 if only its
// launcher is known; the report is that on its exit, nil if it has none.
func (j *job) absent(live []*scan.Event) (rank int, report *scan.Event, ok bool) {
	complaints, complains, unnamed := complaintsOfPeers(live), complaining(live), false
	delete(complains, -1)
	if len(complaints) == 0 {
		return -1, nil, false
	}
	var by launcher
	var suspects []int
	all, closed, known, count := j.rollCalls(live), allClosed(complaints), len(complains), 0
	for l, c := range all {
		silent, n, others := c.suspects(complains, closed, len(all) == 1)
		if known, unnamed = known+others, unnamed || c.unnamed > 0; n > 0 {
			by, suspects, count = l, silent, count+n
		}
	}
	if count != 1 || known < max(j.ranks(), slices.Max(suspects)+1) && (unnamed || len(complains) < 2) {
		return -1, nil, false
	}
	if len(suspects) == 1 {
		return suspects[0], exitReport(suspects[0], live), true
	}
	if report = firstEvent(live, func(e *scan.Event) bool { return e.Agent && e.Exit > 0 && launcher{e.File, e.Tag.Label} == by }); report != nil {
		e := *report
		if e.Rank = -1; len(all[by].nodes) != 1 {
			e.Node = ""
		}
		report = &e
	}
	return -1, report, true
}

// suspects returns the ranks among which one may be absent, how many are, and how many ranks the roll call tells of that do not
// complain by their name. One that complains of others is not absent. If others lost it, none that was told to end is, because it
// was still there: what remains are those that left and said nothing, and those of which nobody tells anything, because they
// left with 0. If others waited for it, it is one that did not complain.
func (c *rollCall) suspects(complains map[int]bool, closed, alone bool) (ranks []int, n, known int) {
	var left, untold []int // ranks that do not complain by their name
	for r, p := range c.of {
		switch {
		case complains[r]:
			continue
		case p.left:
			left = append(left, r)
		case !p.told:
			untold = append(untold, r)
		}
		known++
	}
	gone, there := c.unnamed, 0 // complaints that must be of processes that left, and how many of untold were there
	if closed {
		gone, there = max(0, c.unnamed-c.ended), c.ended
	}
	quiet, uncounted := max(0, len(left)-gone), max(0, len(untold)-there-max(0, gone-len(left)))
	known += max(0, c.ended-len(untold)) // told to end, of ranks that it does not name
	switch {
	case quiet == 0:
		return untold, uncounted, known
	case closed && alone && len(left) == 1 && uncounted == 1:
		return left, 1, known // it saw one that had left when it looked at all of them; another one left before its next word
	}
	return left, quiet + uncounted, known
}

// rollCalls returns what each launcher tells of its processes.
func (j *job) rollCalls(live []*scan.Event) map[launcher]*rollCall {
	all, seen := map[launcher]*rollCall{}, map[int]bool{}
	of := func(l launcher) *rollCall {
		if all[l] == nil {
			all[l] = &rollCall{of: map[int]*process{}, pids: map[string]int{}, nodes: map[string]bool{}}
		}
		return all[l]
	}
	per, firsts := j.mostLocal()+1, map[int]bool{} // nodes may have fewer processes than another one
	for _, f := range j.files {
		for _, e := range f.Elastic {
			firsts[e.Rank-e.Local] = true
		}
	}
	for i, f := range j.files {
		for _, e := range f.Elastic {
			if e.Local < 0 || e.Rank < e.Local {
				continue
			}
			c, first := of(launcher{i, e.Task}), e.Rank-e.Local
			for r := first; r < first+min(max(per, launchedBy(f)), mostLocals); r++ {
				if c.of[r] != nil || r > first && (firsts[r] || j.world > 0 && r >= j.world) {
					break
				}
				c.of[r], seen[r] = &process{}, true
			}
			if c.of[e.Rank] == nil { // more than another one shows
				c.of[e.Rank], seen[e.Rank] = &process{}, true
			}
			c.of[e.Rank].report(e.Exit)
			c.pids[e.Pid], c.nodes[e.Host] = e.Rank, true
			c.ended = max(c.ended, launchedBy(f)-1) // not all events that say so were kept
		}
	}
	for _, e := range live {
		l := launcher{e.File, e.Tag.Label}
		if j.taskRank && len(e.Tasks) > 0 {
			l = srun
		}
		for _, r := range j.exitedRanks(e) {
			if (e.Agent || l == srun) && e.Exit != 0 && r >= 0 && !seen[r] {
				c := of(l)
				if c.of[r] == nil {
					c.of[r] = &process{}
				}
				c.of[r].report(e.Exit)
				c.nodes[e.Node] = true
			}
		}
	}
	for _, c := range all {
		for r := range min(j.ranks(), mostRanks) {
			if len(all) == 1 && c.of[r] == nil { // the only launcher has all ranks
				c.of[r] = &process{}
			}
		}
	}
	ended := map[*rollCall]int{}
	for _, e := range j.events {
		c, g := all[launcher{e.File, e.Tag.Label}], closingSignal.FindStringSubmatch(e.Text)
		if c == nil || g == nil {
			continue
		}
		if r, named := c.pids[g[1]]; !named || !c.of[r].told {
			ended[c]++
			c.ended = max(c.ended, ended[c])
		}
	}
	for _, e := range complaintsOfPeers(live) {
		if e.Rank >= 0 {
			continue
		}
		c := all[launcher{e.File, e.Tag.Label}]
		if c == nil {
			c = all[srun]
		}
		if c != nil {
			c.unnamed++
		}
	}
	return all
}

// report takes a launcher's word on the exit of a process.
func (p *process) report(exit int) {
	p.left, p.told = p.left || !scan.ToldToEnd(exit), p.told || scan.ToldToEnd(exit)
}

// closingSignal matches torchelastic's word on the process that it tells to end.
var closingSignal = lazy.New(`Sending process (\d+) closing signal `)

// launchedBy returns how many processes a file's launcher certainly had; 0 if it reports none, or if several launchers may
// have written the file.
func launchedBy(f *scan.Facts) int {
	if len(f.Labels) > 0 {
		return 0
	}
	return f.Launched
}
