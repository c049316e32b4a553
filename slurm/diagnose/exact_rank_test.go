package diagnose

import (
	"testing"
	"time"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logline"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/pattern"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/scan"
	"github.com/stretchr/testify/require"
)

// Where every task is a rank, srun's reports of a shell's exit codes show which of them found no program.
func TestWhoseShellFoundNoProgramBySrun(t *testing.T) {
	left := func(exit int, node string, tasks ...int) *scan.Event {
		return &scan.Event{Agent: true, Exit: exit, Tasks: tasks, Node: node}
	}
	for name, c := range map[string]struct {
		node string
		told []*scan.Event
		rank int // -1 for none
	}{
		"one":                          {"", []*scan.Event{left(127, "gpu1", 3)}, 3},
		"one that may not run it":      {"", []*scan.Event{left(126, "gpu1", 3)}, 3},
		"the lowest of a node":         {"", []*scan.Event{left(127, "gpu1", 3), left(127, "gpu1", 1), left(127, "gpu1", 2)}, 1},
		"two nodes":                    {"", []*scan.Event{left(127, "gpu1", 0), left(127, "gpu2", 1)}, -1},
		"another exit code, elsewhere": {"", []*scan.Event{left(1, "gpu2", 0), left(127, "gpu1", 3)}, 3},
		"no task":                      {"", []*scan.Event{left(127, "gpu2"), left(127, "gpu1", 3)}, 3},
		"of the line's node":           {"gpu1", []*scan.Event{left(127, "gpu1", 3)}, 3},
		"of another node":              {"gpu2", []*scan.Event{left(127, "gpu1", 3)}, -1},
		"nobody":                       {"", nil, -1},
	} {
		for _, taskRank := range []bool{true, false} {
			v := verdict{event: &scan.Event{Rank: -1, Node: c.node}}
			(&job{taskRank: taskRank}).rankByShell(v, c.told)
			want := c.rank
			if !taskRank {
				want = -1
			}
			require.Equal(t, want, v.event.Rank, name)
			if want >= 0 {
				require.Equal(t, "gpu1", v.event.Node, name)
			}
		}
	}
}

// A cause without a rank, seen once in the first of two files, and torchelastic's summaries.
func TestSummariesShowTheRankOfACause(t *testing.T) {
	at := time.Date(2026, 6, 11, 10, 0, 0, 0, time.UTC)
	failed := func(rank, after int, host string) scan.ElasticEntry {
		return scan.ElasticEntry{Rank: rank, Local: -1, Task: -1, Exit: 1, Host: host, At: at.Add(time.Duration(after) * time.Second)}
	}
	with := func(e scan.ElasticEntry, change func(*scan.ElasticEntry)) scan.ElasticEntry { change(&e); return e }
	type entries = []scan.ElasticEntry
	label := func(task int) logline.Tag { return logline.Tag{Label: task, Local: -1, Rank: -1} }
	soon, late := int(skew/time.Second)-1, int(skew/time.Second)
	for name, c := range map[string]struct {
		node        string
		tag         logline.Tag
		here, there entries
		others      int
		rank        int // -1 for none
	}{
		"one failed":                       {"", logline.NoTag, entries{failed(3, 0, "gpu1")}, nil, 0, 3},
		"the first rank failed":            {"", logline.NoTag, entries{failed(0, 0, "gpu1")}, nil, 0, 0},
		"one failed in the other log":      {"", logline.NoTag, nil, entries{failed(3, 0, "gpu1")}, 0, -1},
		"its rank is not known":            {"", logline.NoTag, entries{failed(-1, 0, "gpu1"), failed(3, 0, "gpu1")}, nil, 0, 3},
		"two failed at once":               {"", logline.NoTag, entries{failed(3, 0, "gpu1"), failed(2, soon, "gpu1")}, nil, 0, -1},
		"one failed well before the other": {"", logline.NoTag, entries{failed(2, late, "gpu1"), failed(3, 0, "gpu1")}, nil, 0, 3},
		"nobody knows when": {
			"", logline.NoTag, entries{with(failed(3, 0, "gpu1"), func(e *scan.ElasticEntry) { e.At = time.Time{} }), failed(2, 0, "gpu1")}, nil, 0, -1,
		},
		"two failed, and two show the cause":   {"", logline.NoTag, entries{failed(3, 0, "gpu1"), failed(2, 0, "gpu1")}, nil, 1, 2},
		"three failed, and two show the cause": {"", logline.NoTag, entries{failed(3, 0, "gpu1"), failed(2, 0, "gpu1"), failed(1, 0, "gpu1")}, nil, 1, -1},
		"the other was told to end": {
			"", logline.NoTag, entries{failed(3, 0, "gpu1"), with(failed(2, 0, "gpu1"), func(e *scan.ElasticEntry) { e.Exit = -15 })}, nil, 0, 3,
		},
		"the other is another task's": {
			"", label(1),
			entries{with(failed(3, 0, "gpu1"), func(e *scan.ElasticEntry) { e.Task = 1 }), with(failed(2, 0, "gpu1"), func(e *scan.ElasticEntry) { e.Task = 0 })},
			nil,
			0, 3,
		},
		"the line has no label":                {"", logline.NoTag, entries{with(failed(3, 0, "gpu1"), func(e *scan.ElasticEntry) { e.Task = 1 })}, nil, 0, 3},
		"the first task's line, and another's": {"", label(0), entries{with(failed(3, 0, "gpu1"), func(e *scan.ElasticEntry) { e.Task = 1 })}, nil, 0, -1},
		"the summary has no label":             {"", label(1), entries{failed(3, 0, "gpu1")}, nil, 0, 3},
		"on the cause's node":                  {"gpu1", logline.NoTag, entries{failed(3, 0, "gpu1")}, nil, 0, 3},
		"on another node":                      {"gpu2", logline.NoTag, entries{failed(3, 0, "gpu1")}, nil, 0, -1},
	} {
		v := verdict{event: &scan.Event{Rank: -1, Node: c.node, Tag: c.tag, Kind: "KeyError"}}
		for range c.others {
			v.others = append(v.others, &scan.Event{Kind: "KeyError"})
		}
		v.others = append(v.others, &scan.Event{Kind: "KeyError", File: 1}, &scan.Event{Kind: "ValueError"})
		j := &job{files: []*scan.Facts{{Elastic: c.here}, {Elastic: c.there}}, attempts: 1}
		j.rankBySummaries(v)
		require.Equal(t, c.rank, v.event.Rank, name)
		if c.rank >= 0 {
			require.Equal(t, "gpu1", v.event.Node, name)
		}
		v.event.Rank, v.event.Off, j.attempts = -1, 1, 2
		j.rankBySummaries(v)
		require.Equal(t, -1, v.event.Rank, "%s, and that was an earlier attempt", name)
	}
}

// What a launcher wrote after the cause counts in a later attempt, but not what another one wrote.
func TestTheSummaryOfTheLastAttemptShowsTheRank(t *testing.T) {
	for _, file := range []int{0, 1} {
		files := []*scan.Facts{{}, {}}
		files[file].Elastic = []scan.ElasticEntry{{Rank: 6, Local: 6, Task: -1, Exit: 1, Host: "gpu1", Off: 9}}
		v := verdict{event: &scan.Event{Rank: -1, Off: 5, Kind: "RuntimeError"}}
		(&job{files: files, attempts: 3}).rankBySummaries(v)
		require.Equal(t, []int{6, -1}[file], v.event.Rank)
	}
}

// Two ranks refuse their arguments, and two others miss them.
func TestARefusalOfArgumentsExitsWithTwo(t *testing.T) {
	f := &scan.Facts{}
	for rank, exit := range []int{1, 1, 2, 2} {
		f.Elastic = append(f.Elastic, scan.ElasticEntry{Rank: rank, Local: rank % 2, Task: -1, Exit: exit, Host: []string{"gpu1", "gpu2"}[rank/2]})
	}
	refusal := func() *scan.Event { return &scan.Event{Rank: -1, Class: outcome.BadArgs} }
	v := verdict{class: outcome.BadArgs, event: refusal(), others: []*scan.Event{refusal()}}
	(&job{files: []*scan.Facts{f}, attempts: 1}).rankBySummaries(v)
	require.Equal(t, 2, v.event.Rank)
	require.Equal(t, "gpu2", v.event.Node)
}

// Launchers' reports show the only process with an exit code of its own.
func TestOneProcessHasACodeOfItsOwn(t *testing.T) {
	left := func(rank, exit int) *scan.Event { return &scan.Event{Rank: rank, Exit: exit, Agent: true} }
	tasks := func(exit int, tasks ...int) *scan.Event {
		return &scan.Event{Rank: -1, Exit: exit, Agent: true, Tasks: tasks}
	}
	spawned := &scan.Event{Rank: -1, Exit: 1, Kind: "torch.multiprocessing.spawn.ProcessExitedException", Agent: true}
	for name, c := range map[string]struct {
		told []*scan.Event
		code int // 0 for none
	}{
		"one, and others as Python exits":      {[]*scan.Event{left(0, 1), left(1, 3)}, 3},
		"one, and others that were told to":    {[]*scan.Event{left(1, 3), left(0, -15)}, 3},
		"the least code":                       {[]*scan.Event{left(0, 1), left(1, 2)}, 2},
		"the greatest code":                    {[]*scan.Event{left(0, 1), left(1, 125)}, 125},
		"a shell's code":                       {[]*scan.Event{left(0, 1), left(1, 126)}, 0},
		"a signal":                             {[]*scan.Event{left(0, 1), left(1, -9)}, 0},
		"one alone":                            {[]*scan.Event{left(1, 3)}, 0},
		"two":                                  {[]*scan.Event{left(0, 1), left(1, 3), left(2, 4)}, 0},
		"one, told twice":                      {[]*scan.Event{left(0, 1), left(1, 3), left(1, 3)}, 3},
		"the first rank, told twice":           {[]*scan.Event{left(1, 1), left(0, 3), left(0, 3)}, 3},
		"a task":                               {[]*scan.Event{tasks(1, 0), tasks(3, 1)}, 3},
		"two tasks, nobody knows which rank":   {[]*scan.Event{tasks(1, 0), tasks(3, 1), tasks(4, 2)}, 0},
		"several tasks at once":                {[]*scan.Event{tasks(1, 0), tasks(3, 1, 2)}, 0},
		"nobody knows whose":                   {[]*scan.Event{left(0, 1), left(-1, 3)}, 0},
		"a process that another one spawned":   {[]*scan.Event{spawned, left(1, 3)}, 3},
		"another line's number":                {[]*scan.Event{{Rank: 0, Exit: 1}, left(1, 3)}, 0},
		"a report without a code is no exit":   {[]*scan.Event{left(0, 0), left(1, 3)}, 0},
		"a report without a code spoils none":  {[]*scan.Event{left(0, 1), left(2, 0), left(1, 3)}, 3},
		"a report without a rank spoils none":  {[]*scan.Event{left(0, 1), left(-1, 7), left(1, 3)}, 3},
		"another line's number spoils nothing": {[]*scan.Event{left(0, 1), {Rank: 2, Exit: 9}, left(1, 3)}, 3},
	} {
		own := ownExitCode(c.told)
		require.Equal(t, c.code != 0, own != nil, name)
		if own != nil {
			require.Equal(t, c.code, own.Exit, name)
		}
	}
}

// Other lines about a failure tell the rank of a cause that names none.
func TestOtherLinesTellTheRankOfACause(t *testing.T) {
	same := func(rank int, node string) *scan.Event {
		return &scan.Event{Class: outcome.HostOOM, Weight: pattern.Death, Rank: rank, Node: node, Tag: logline.NoTag}
	}
	with := func(e *scan.Event, change func(*scan.Event)) *scan.Event { change(e); return e }
	exit := func(rank int, node string) *scan.Event {
		return &scan.Event{Class: outcome.UnknownExit, Weight: pattern.Exited, Rank: rank, Node: node, Agent: true, Tag: logline.NoTag, Exit: 1}
	}
	task := func(label int) func(*scan.Event) { return func(e *scan.Event) { e.Tag.Label = label } }
	plain := func(*scan.Event) {}
	spawned := func(change func(*scan.Event)) *scan.Event {
		return with(&scan.Event{
			Class: outcome.UserException, Weight: pattern.Generic, Agent: true,
			Kind: "torch.multiprocessing.spawn.ProcessRaisedException", Tag: logline.NoTag,
		}, change)
	}
	for name, c := range map[string]struct {
		node string
		as   func(*scan.Event) // what else is known of the cause
		live []*scan.Event
		rank int // -1 for none
		on   string
	}{
		"a line of a rank":                   {"", plain, []*scan.Event{same(3, "gpu1")}, 3, "gpu1"},
		"a line of the first rank":           {"", plain, []*scan.Event{same(0, "gpu1")}, 0, "gpu1"},
		"a line without a rank":              {"", plain, []*scan.Event{same(-1, "gpu1")}, -1, ""},
		"a line of the node":                 {"gpu1", plain, []*scan.Event{same(2, "gpu2"), same(3, "gpu1")}, 3, "gpu1"},
		"a line of no node":                  {"gpu1", plain, []*scan.Event{same(3, "")}, 3, "gpu1"},
		"a line of another class":            {"", plain, []*scan.Event{with(same(3, "gpu1"), func(e *scan.Event) { e.Class = outcome.Segfault })}, -1, ""},
		"a line that says less than death":   {"", plain, []*scan.Event{with(same(3, "gpu1"), func(e *scan.Event) { e.Weight = pattern.Death - 1 })}, -1, ""},
		"a line of its task":                 {"", task(1), []*scan.Event{with(same(2, "gpu1"), task(0)), with(same(3, "gpu1"), task(1))}, 3, "gpu1"},
		"a line of no task":                  {"", task(0), []*scan.Event{same(3, "gpu1")}, 3, "gpu1"},
		"a line of another task":             {"", task(0), []*scan.Event{with(same(3, "gpu1"), task(1))}, -1, ""},
		"the only rank that exited":          {"", plain, []*scan.Event{exit(3, "gpu1"), exit(3, "gpu1")}, 3, "gpu1"},
		"a launcher's own word, and an exit": {"", func(e *scan.Event) { e.Agent = true }, []*scan.Event{exit(3, "gpu1")}, -1, ""},
		"a child that it spawned":            {"", plain, []*scan.Event{spawned(plain)}, 0, ""},
		"a child, and no launcher tells it":  {"", plain, []*scan.Event{spawned(func(e *scan.Event) { e.Agent = false })}, -1, ""},
		"a child of another log":             {"", plain, []*scan.Event{spawned(func(e *scan.Event) { e.File = 1 })}, -1, ""},
		"a child that nobody knows":          {"", plain, []*scan.Event{spawned(func(e *scan.Event) { e.Rank = -1 })}, -1, ""},
		"a launcher's other exception":       {"", plain, []*scan.Event{spawned(func(e *scan.Event) { e.Kind = "KeyError" })}, -1, ""},
		"one that has a rank":                {"", func(e *scan.Event) { e.Rank = 0 }, []*scan.Event{same(3, "gpu1")}, 0, ""},
	} {
		cause := &scan.Event{Class: outcome.HostOOM, Weight: pattern.Fact, Rank: -1, Node: c.node, Tag: logline.NoTag}
		c.as(cause)
		j := &job{files: []*scan.Facts{{}}, ranks: func() int { return 8 }, attempts: 1}
		v := j.exactRank(verdict{class: outcome.HostOOM, event: cause}, append([]*scan.Event{cause}, c.live...))
		require.Equal(t, c.rank, v.event.Rank, name)
		require.Equal(t, c.on, v.event.Node, name)
	}
}
