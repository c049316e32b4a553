package diagnose

import (
	"testing"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logline"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/pattern"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/scan"
	"github.com/stretchr/testify/require"
)

// Of two errors between ranks the earlier one counts, unless the later one says more.
func TestWhichErrorBetweenRanksCounts(t *testing.T) {
	for name, c := range map[string]struct {
		first, second int // their weights
		class         string
	}{
		"the network's, as much":          {30, 30, outcome.NCCLIB},
		"the network's, a little more":    {30, 32, outcome.NCCLIB},
		"the network's, more":             {30, 33, outcome.NCCLConnection},
		"the network's after collectives": {pattern.TimedOut, 30, outcome.NCCLConnection},
		"collectives, as much":            {pattern.TimedOut, pattern.TimedOut, outcome.NCCLIB},
		"collectives, a little more":      {pattern.TimedOut, pattern.TimedOut + 4, outcome.NCCLIB},
		"collectives, more":               {pattern.TimedOut, pattern.TimedOut + 5, outcome.NCCLConnection},
		"an abort is none":                {pattern.Aborted, pattern.TimedOut - 4, outcome.NCCLConnection},
	} {
		j, live := oneLog(0, scan.Event{Class: outcome.NCCLIB, Weight: c.first}, spoken{}, spoken{0, func(e *scan.Event) {
			e.Class, e.Weight = outcome.NCCLConnection, c.second
		}})
		v, ok := j.betweenRanks(live)
		require.True(t, ok, name)
		require.Equal(t, c.class, v.class, name)
	}
}

// The node of the rank for which others waited, by lines of that rank or the host before its lines.
func TestTheNodeOfAMissingRank(t *testing.T) {
	rank := func(n int) logline.Tag { return logline.Tag{Label: -1, Local: -1, Rank: n} }
	label := func(n int) logline.Tag { return logline.Tag{Label: n, Local: -1, Rank: -1} }
	for name, c := range map[string]struct {
		hosts    map[logline.Tag]string
		live     []*scan.Event
		taskRank bool
		node     string
	}{
		"nothing shows it": {nil, nil, true, ""},
		"a line of it": {
			map[logline.Tag]string{rank(3): "gpu9"}, []*scan.Event{{Rank: 2, Node: "gpu1"}, {Rank: 3}, {Rank: 3, Node: "gpu2"}}, false, "gpu2",
		},
		"the host before its line": {map[logline.Tag]string{rank(2): "gpu1", rank(3): "gpu2"}, nil, false, "gpu2"},
		"its task's label":         {map[logline.Tag]string{label(2): "gpu1", label(3): "gpu2"}, nil, true, "gpu2"},
		"another task's label":     {map[logline.Tag]string{label(12): "gpu1"}, nil, true, ""},
		"a task's label beside it": {map[logline.Tag]string{label(2): "gpu1"}, nil, true, "gpu1"},
		"a task that is a node":    {map[logline.Tag]string{label(3): "gpu2"}, nil, false, ""},
	} {
		j := &job{files: []*scan.Facts{{HostOf: c.hosts}}, fileNode: []string{""}, taskRank: c.taskRank}
		e := j.laggardEvent(laggard{rank: 3, by: &scan.NCCLRank{}}, c.live, nil)
		require.Equal(t, c.node, e.Node, name)
		require.Equal(t, 3, e.Rank, name)
	}
}

// An abort and a late collective: whether the watchdog ended the process.
func TestWhoseWatchdogAborted(t *testing.T) {
	const text = "terminate called after throwing an instance of 'c10::DistBackendError'"
	reason := int64(100 + len(text) + 2)
	for name, c := range map[string]struct {
		rank  int
		late  scan.Event
		ended bool
	}{
		"it said so before":             {1, scan.Event{Off: 99, Rank: 1}, true},
		"another rank said so":          {0, scan.Event{Off: 99, Rank: 1}, false},
		"nobody knows which rank it is": {-1, scan.Event{Off: 99, Rank: 1}, true},
		"nobody knows who said so":      {1, scan.Event{Off: 99, Rank: -1}, true},
		"the first rank, and another":   {1, scan.Event{Off: 99, Rank: 0}, false},
		"in another log":                {1, scan.Event{Off: 99, Rank: 1, File: 1}, false},
		"as the reason":                 {1, scan.Event{Off: reason, Rank: 1, Text: "  what():  late"}, true},
		"after the reason":              {1, scan.Event{Off: reason + 1, Rank: 1, Text: "  what():  late"}, false},
		"later, and no reason":          {1, scan.Event{Off: reason, Rank: 1, Text: "late"}, false},
	} {
		c.late.Class = outcome.NCCLTimeout
		j := &job{events: []*scan.Event{&c.late}}
		e := &scan.Event{Class: outcome.Segfault, Off: 100, Rank: c.rank, Raw: text, Text: text}
		require.Equal(t, c.ended, j.abortedByWatchdog(e), name)
		e.Text = "Segmentation fault"
		require.False(t, j.abortedByWatchdog(e), "%s, but by another signal", name)
	}
}

// The launcher's report on a rank's exit, among other lines.
func TestTheReportOnARanksExit(t *testing.T) {
	right := scan.Event{Agent: true, Exit: 1, Rank: 3}
	with := func(change func(*scan.Event)) *scan.Event { e := right; change(&e); return &e }
	for name, other := range map[string]*scan.Event{
		"another line's number": with(func(e *scan.Event) { e.Agent = false }),
		"no exit code":          with(func(e *scan.Event) { e.Exit = 0 }),
		"another rank's":        with(func(e *scan.Event) { e.Rank = 2 }),
		"several tasks'":        with(func(e *scan.Event) { e.Tasks = []int{3, 4} }),
	} {
		require.Nil(t, exitReport(3, []*scan.Event{other}), name)
		require.Same(t, &right, exitReport(3, []*scan.Event{other, &right}), name)
	}
	require.NotNil(t, exitReport(3, []*scan.Event{with(func(e *scan.Event) { e.Tasks = []int{3} })}), "one task's")
}

// Ranks that lost a peer, and launchers' reports: the only rank that exited without a complaint is it.
func TestTheRankThatLeftWithoutAWord(t *testing.T) {
	lost := func(rank int) *scan.Event { return &scan.Event{Rank: rank, Weight: pattern.Symptom} }
	left := func(exit, rank int) *scan.Event { return &scan.Event{Rank: rank, Exit: exit, Agent: true} }
	for name, c := range map[string]struct {
		live []*scan.Event
		rank int // -1 for none
	}{
		"one":                        {[]*scan.Event{lost(1), lost(2), left(1, 3)}, 3},
		"the first":                  {[]*scan.Event{lost(1), lost(2), left(1, 0)}, 0},
		"told twice":                 {[]*scan.Event{lost(1), lost(2), left(1, 0), left(1, 0)}, 0},
		"two, with the first":        {[]*scan.Event{lost(1), lost(2), left(1, 0), left(1, 3)}, -1},
		"those who lost it left too": {[]*scan.Event{lost(1), lost(2), left(1, 1), left(1, 3), left(1, 2)}, 3},
		"only one lost it":           {[]*scan.Event{lost(1), left(1, 3)}, -1},
		"nobody knows who lost it":   {[]*scan.Event{lost(1), lost(2), {Rank: -1, Kind: "RuntimeError", Weight: pattern.Symptom}, left(1, 3)}, -1},
		"nobody knows who left":      {[]*scan.Event{lost(1), lost(2), left(1, -1)}, -1},
		"without a code":             {[]*scan.Event{lost(1), lost(2), left(0, 3)}, -1},
		"by a signal":                {[]*scan.Event{lost(1), lost(2), left(-9, 3)}, 3},
		"told to end":                {[]*scan.Event{lost(1), lost(2), left(143, 3)}, -1},
	} {
		l, ok := (&job{ranks: func() int { return 0 }}).absentRank(c.live)
		require.Equal(t, c.rank >= 0, ok, name)
		if ok {
			require.Equal(t, c.rank, l.rank, name)
		}
	}
}
