package diagnose

import (
	"testing"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logline"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/pattern"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/scan"
	"github.com/stretchr/testify/require"
)

// The watchdogs' messages of a job show which rank is behind.
func TestWatchdogsShowWhoIsBehind(t *testing.T) {
	at := func(enqueued ...int64) map[int]*scan.NCCLRank {
		all := map[int]*scan.NCCLRank{}
		for rank, n := range enqueued {
			all[rank] = &scan.NCCLRank{Enqueued: n}
		}
		return all
	}
	ops := func(names ...string) map[int]*scan.NCCLRank {
		all := at(make([]int64, len(names))...)
		for rank, op := range names {
			all[rank].Op, all[rank].TimedOut = op, op != ""
		}
		return all
	}
	less := func(all map[int]*scan.NCCLRank, silent ...int) map[int]*scan.NCCLRank {
		for _, rank := range silent {
			delete(all, rank)
		}
		return all
	}
	late := func(enqueued, seq int64) *scan.NCCLRank {
		return &scan.NCCLRank{Enqueued: enqueued, Seq: seq, TimedOut: true}
	}
	own := func(n int64) *scan.NCCLRank { return &scan.NCCLRank{Enqueued: n, Own: true, TimedOut: true} }
	asked := func(n int64) *scan.NCCLRank { return &scan.NCCLRank{Enqueued: n, Default: true} }
	for name, c := range map[string]struct {
		said  map[int]*scan.NCCLRank
		world int
		rank  int // -1 if nothing shows it
		why   string
	}{
		"one enqueued less":               {at(9, 8, 9), 3, 1, "behind"},
		"the first enqueued nothing":      {at(0, 5), 2, 0, "behind"},
		"two enqueued nothing":            {at(0, 0, 5), 3, -1, ""},
		"all the same":                    {at(7, 7, 7), 3, -1, ""},
		"one alone speaks":                {at(7), 1, -1, ""},
		"by the collective that was late": {map[int]*scan.NCCLRank{0: late(-1, 4), 1: late(-1, 5)}, 2, 0, "behind"},
		"what was enqueued says more":     {map[int]*scan.NCCLRank{0: late(0, 9), 1: late(5, 9)}, 2, 0, "behind"},
		"of one nothing is known":         {map[int]*scan.NCCLRank{0: {Enqueued: -1, Seq: 4}, 1: late(5, 5)}, 2, -1, ""},
		"the first in another collective": {ops("ALLGATHER", "ALLREDUCE", "ALLREDUCE", "ALLREDUCE"), 4, 0, "other"},
		"the last in another collective":  {ops("ALLREDUCE", "ALLREDUCE", "ALLREDUCE", "ALLGATHER"), 4, 3, "other"},
		"one of three":                    {ops("ALLREDUCE", "ALLREDUCE", "ALLGATHER"), 3, -1, ""},
		"two of five":                     {ops("ALLREDUCE", "ALLREDUCE", "ALLREDUCE", "ALLGATHER", "ALLGATHER"), 5, -1, ""},
		"all in the same collective":      {ops("ALLREDUCE", "ALLREDUCE", "ALLREDUCE"), 3, -1, ""},
		"three kinds of collectives":      {ops("ALLREDUCE", "ALLREDUCE", "ALLREDUCE", "ALLGATHER", "BROADCAST"), 5, -1, ""},
		"one that was not late":           {ops("ALLREDUCE", "ALLREDUCE", "ALLREDUCE", ""), 4, -1, ""},
		"one counts in another group":     {map[int]*scan.NCCLRank{0: own(9), 1: asked(36), 2: asked(36)}, 3, -1, ""},
		"behind in the same group":        {map[int]*scan.NCCLRank{0: own(9), 1: own(9), 2: own(8), 3: asked(4)}, 4, 2, "behind"},
		"nobody waited":                   {map[int]*scan.NCCLRank{0: asked(36), 1: asked(36), 3: asked(36)}, 4, -1, ""},
		"one of four is silent":           {less(at(7, 7, 7, 7), 2), 4, 2, "silent"},
		"two of sixteen are silent":       {less(at(make([]int64, 16)...), 11, 5), 16, 5, "silent"},
		"two of fifteen are silent":       {less(at(make([]int64, 15)...), 11, 5), 15, -1, ""},
		"three of sixteen are silent":     {less(at(make([]int64, 16)...), 11, 5, 2), 16, -1, ""},
	} {
		l, ok := behind(c.said, c.world)
		require.Equal(t, c.rank >= 0, ok, name)
		if ok {
			require.Equal(t, c.rank, l.rank, name)
			require.Equal(t, c.why, l.why, name)
		}
	}
}

// The exit codes that launchers report for ranks.
func TestOneRankHasItsOwnExitCode(t *testing.T) {
	left := func(rank, exit int) *scan.Event { return &scan.Event{Rank: rank, Exit: exit, Agent: true} }
	first := func(rank, exit int) *scan.Event { return &scan.Event{Rank: rank, Exit: exit, Agent: true, First: true} }
	tasks := func(exit int, ranks ...int) *scan.Event {
		return &scan.Event{Rank: -1, Exit: exit, Agent: true, Tasks: ranks}
	}
	for name, c := range map[string]struct {
		told []*scan.Event
		rank int // -1 for none
	}{
		"one of three":                     {[]*scan.Event{left(0, 1), left(1, 1), left(2, -6)}, 2},
		"the first of three":               {[]*scan.Event{left(0, -6), left(1, 1), left(2, 1)}, 0},
		"each otherwise":                   {[]*scan.Event{left(0, 1), left(1, 3)}, -1},
		"all alike":                        {[]*scan.Event{left(0, 1), left(1, 1)}, -1},
		"one alone":                        {[]*scan.Event{left(1, 1)}, -1},
		"one alone, by a signal":           {[]*scan.Event{left(1, -9)}, -1},
		"by a signal, the others told to":  {[]*scan.Event{left(1, -9), left(0, -15)}, 1},
		"as a shell says it":               {[]*scan.Event{left(1, 137), left(0, -15)}, 1},
		"the least that a shell says so":   {[]*scan.Event{left(1, 128), left(0, -15)}, 1},
		"by itself, the others told to":    {[]*scan.Event{left(1, 127), left(0, -15)}, -1},
		"with 1, the others told to":       {[]*scan.Event{left(1, 1), left(0, -15)}, -1},
		"told to end first":                {[]*scan.Event{first(1, -15), left(0, -15)}, 1},
		"nobody knows which rank":          {[]*scan.Event{left(-1, 7), left(0, 1), left(1, 1)}, -1},
		"a code of 0 is none":              {[]*scan.Event{left(0, 0), left(1, 1), left(2, 1)}, -1},
		"tasks are ranks":                  {[]*scan.Event{tasks(1, 0, 2, 3), tasks(-6, 1)}, 1},
		"tasks are ranks, the first is it": {[]*scan.Event{tasks(1, 1, 2, 3), tasks(-6, 0)}, 0},
	} {
		l, ok := (&job{taskRank: true}).loneExitCode(c.told)
		require.Equal(t, c.rank >= 0, ok, name)
		if ok {
			require.Equal(t, c.rank, l.rank, name)
		}
	}
}

// Jobs in which most ranks complain of the others.
func TestOneRankIsSilent(t *testing.T) {
	all := func(n int, except ...int) (said []*scan.Event) {
		silent := map[int]bool{}
		for _, r := range except {
			silent[r] = true
		}
		for r := range n {
			if !silent[r] {
				said = append(said, &scan.Event{Rank: r, Weight: pattern.Symptom})
			}
		}
		return said
	}
	with := func(said []*scan.Event, e scan.Event) []*scan.Event { return append(said, &e) }
	for name, c := range map[string]struct {
		world int
		said  []*scan.Event
		rank  int // -1 if nothing shows it
	}{
		"one of three":             {3, all(3, 1), 1},
		"the first of three":       {3, all(3, 0), 0},
		"one of two":               {2, all(2, 1), -1},
		"nobody":                   {4, all(4), -1},
		"two of sixteen":           {16, all(16, 9, 4), 4},
		"two of fifteen":           {15, all(15, 9, 4), -1},
		"it died itself":           {4, with(all(4, 2), scan.Event{Rank: 2, Weight: pattern.Death}), 2},
		"a launcher tells of it":   {4, with(all(4, 2), scan.Event{Rank: 2, Weight: pattern.Exited, Agent: true}), 2},
		"it says what is no sign":  {4, with(all(4, 2), scan.Event{Rank: 2, Weight: pattern.Symptom - 1}), 2},
		"a line of nobody's":       {4, with(all(4, 2, 3), scan.Event{Rank: -1, Weight: pattern.Symptom}), -1},
		"it complains of a fabric": {4, with(all(4, 2), scan.Event{Rank: 2, Weight: pattern.Death - 1}), -1},
	} {
		l, ok := (&job{ranks: func() int { return c.world }}).loneSilent(c.said)
		require.Equal(t, c.rank >= 0, ok, name)
		if ok {
			require.Equal(t, c.rank, l.rank, name)
			require.Equal(t, "silent", l.why, name)
		}
	}
}

// The ranks that errors name, directly or through a referee.
func TestOthersNameTheMissingRank(t *testing.T) {
	for name, c := range map[string]struct {
		named []scan.NamedRank
		rank  int // -1 for none
	}{
		"nobody is named":                  {nil, -1},
		"the first rank":                   {[]scan.NamedRank{{Rank: 0}}, 0},
		"the first rank, less often":       {[]scan.NamedRank{{Rank: 0}, {Rank: 2}, {Rank: 2}}, 2},
		"the lower of two":                 {[]scan.NamedRank{{Rank: 2}, {Rank: 0}}, 0},
		"the lower of two, named first":    {[]scan.NamedRank{{Rank: 0}, {Rank: 2}}, 0},
		"a rank's word beside the store's": {[]scan.NamedRank{{Rank: 3, Referee: true}, {Rank: 3, Referee: true}, {Rank: 1}}, 1},
		"the store's beside a rank's word": {[]scan.NamedRank{{Rank: 1}, {Rank: 3, Referee: true}, {Rank: 3, Referee: true}}, 1},
		"rank 0's beside the store's word": {[]scan.NamedRank{{Rank: 0}, {Rank: 3, Referee: true}, {Rank: 3, Referee: true}}, 0},
		"only the store names ranks":       {[]scan.NamedRank{{Rank: 3, Referee: true}}, 3},
	} {
		l, ok := (&job{files: []*scan.Facts{{Missing: c.named}}}).namedByOthers(nil)
		require.Equal(t, c.rank >= 0, ok, name)
		require.Equal(t, c.rank, l.rank, name)
	}
}

// Causes beside the kernel's report about a GPU of gpu1.
func TestABrokenGPUsRank(t *testing.T) {
	cause := func(rank int, node string) *scan.Event {
		return &scan.Event{Rank: rank, Node: node, Class: outcome.CUDADriver}
	}
	for name, c := range map[string]struct {
		node   string
		causes []*scan.Event
		rank   int
	}{
		"the first rank":          {"gpu1", []*scan.Event{cause(0, "gpu1")}, 0},
		"another node's, and one": {"gpu1", []*scan.Event{cause(9, "gpu2"), cause(3, "gpu1"), cause(3, "gpu1")}, 3},
		"two of its ranks":        {"gpu1", []*scan.Event{cause(0, "gpu1"), cause(1, "gpu1")}, -1},
		"no rank is known":        {"gpu1", []*scan.Event{cause(-1, "gpu1")}, -1},
		"no node is known":        {"", []*scan.Event{cause(2, "")}, -1},
	} {
		require.Equal(t, c.rank, failedRankOn(&scan.Event{Rank: -1, Node: c.node}, c.causes), name)
	}
}

// Launchers' tags before lines, and what is known of the job.
func TestATagIsARank(t *testing.T) {
	tag := func(label, local, rank int) logline.Tag { return logline.Tag{Label: label, Local: local, Rank: rank} }
	base := map[logline.Tag]int{tag(1, 2, -1): 10}
	none := map[logline.Tag]int{}
	for name, c := range map[string]struct {
		j    job
		file string
		base map[logline.Tag]int
		tag  logline.Tag
		rank int
	}{
		"its own word":                         {job{}, "x", none, tag(3, 1, 7), 7},
		"its own word, rank 0":                 {job{world: 1}, "x", none, tag(3, 1, 0), 0},
		"seen with the tag":                    {job{}, "x", base, tag(1, 2, -1), 10},
		"a neighbour of one that was seen":     {job{}, "x", base, tag(1, 3, -1), 11},
		"the first beside one that was seen":   {job{}, "x", base, tag(1, 0, -1), 8},
		"another task than the one seen":       {job{}, "x", base, tag(0, 3, -1), -1},
		"tasks of eight processes":             {job{perNode: 8}, "x", none, tag(2, 3, -1), 19},
		"the first task of eight processes":    {job{perNode: 8}, "x", none, tag(0, 3, -1), 3},
		"a file of a node":                     {job{baseRank: []int{8}}, "x", none, tag(-1, 3, -1), 11},
		"a file of the first node":             {job{baseRank: []int{0}, world: 16, perNode: 8}, "x", none, tag(-1, 3, -1), 3},
		"the only node":                        {job{world: 8, perNode: 8}, "x", none, tag(-1, 3, -1), 3},
		"one of several nodes":                 {job{world: 16, perNode: 8}, "x", none, tag(-1, 3, -1), -1},
		"a task is a rank":                     {job{taskRank: true}, "x", none, tag(5, -1, -1), 5},
		"the first task is a rank":             {job{taskRank: true}, "x", none, tag(0, -1, -1), 0},
		"a task is a node":                     {job{}, "x", none, tag(5, -1, -1), -1},
		"a file of a rank":                     {job{fileRank: []int{4}}, "x", none, logline.NoTag, 4},
		"a file of the first rank":             {job{fileRank: []int{0}}, "x", none, logline.NoTag, 0},
		"a log folder of torchrun":             {job{baseRank: []int{8}}, "logs/gpu2/none_ab12cd34/attempt_0/3/stderr.log", none, logline.NoTag, 11},
		"a log folder of the first node":       {job{baseRank: []int{0}}, "logs/gpu2/none_ab12cd34/attempt_0/3/stderr.log", none, logline.NoTag, 3},
		"a log folder of nobody knows which":   {job{}, "logs/gpu2/none_ab12cd34/attempt_0/3/stderr.log", none, logline.NoTag, -1},
		"a log folder, the node said its base": {job{firstRank: map[string]int{"gpu2": 16}, fileNode: []string{"gpu2"}}, "logs/gpu2/none_ab12cd34/attempt_0/3/stderr.log", none, logline.NoTag, 19},
		"the only rank":                        {job{world: 1}, "x", none, logline.NoTag, 0},
		"one of two":                           {job{world: 2}, "x", none, logline.NoTag, -1},
	} {
		j := c.j
		j.files, j.src = []*scan.Facts{{Bases: c.base}}, sourceOf(c.file)
		for _, list := range []*[]int{&j.fileRank, &j.baseRank} {
			if *list == nil {
				*list = []int{-1}
			}
		}
		if j.fileNode == nil {
			j.fileNode = []string{""}
		}
		j.placeLocals()
		require.Equal(t, c.rank, j.rankOf(0, c.tag), name)
	}
}

// NCCL's own prefix: node, process, thread and device.
func TestNCCLsLinesTellTheRank(t *testing.T) {
	byPid, base := map[string]int{"gpu1:311": 5}, map[string]int{"gpu2": 8}
	for text, rank := range map[string]int{
		"gpu1:311:400 [2] misc/socket.cc:58 NCCL WARN x": 5,
		"gpu1:312:400 [2] misc/socket.cc:58 NCCL WARN x": -1,
		"gpu2:311:400 [2] misc/socket.cc:58 NCCL WARN x": 10,
		"gpu2:311:400 [0] misc/socket.cc:58 NCCL WARN x": 8,
		"misc/socket.cc:58 NCCL WARN x":                  -1,
	} {
		require.Equal(t, rank, ncclRankOf(text, byPid, base), text)
	}
}

// A rank whose node is not named, and what is known of the other ranks.
func TestANeighbourTellsTheNode(t *testing.T) {
	nodes := []string{"gpu1", "gpu2"}
	for name, c := range map[string]struct {
		perNode, ranks int
		given          []string
		known          map[int]string
		rank           int
		node           string
	}{
		"itself":                          {8, 16, nil, map[int]string{3: "gpu7", 0: "gpu1"}, 3, "gpu7"},
		"the last of its node":            {8, 16, nil, map[int]string{15: "gpu2"}, 9, "gpu2"},
		"the first of its node":           {8, 16, nil, map[int]string{8: "gpu2"}, 9, "gpu2"},
		"the last of the node before":     {8, 16, nil, map[int]string{7: "gpu1"}, 9, ""},
		"the first of the node after":     {8, 24, nil, map[int]string{16: "gpu3"}, 9, ""},
		"the job's nodes in their order":  {8, 16, nodes, nil, 9, "gpu2"},
		"the last of the first node":      {8, 16, nodes, nil, 7, "gpu1"},
		"more ranks than the nodes hold":  {8, 24, nodes, nil, 16, ""},
		"as many ranks as fit the nodes":  {0, 8, nodes, nil, 4, "gpu2"},
		"so many that the first has them": {0, 8, nodes, nil, 3, "gpu1"},
		"fewer ranks than nodes":          {0, 1, nodes, nil, 1, "gpu2"},
		"eight where nothing says it":     {0, 0, nil, map[int]string{7: "gpu1"}, 2, "gpu1"},
		"eight, and the ninth":            {0, 0, nodes, map[int]string{7: "gpu1"}, 8, "gpu2"},
	} {
		j := &job{perNode: c.perNode, given: Context{Nodes: c.given}, ranks: func() int { return c.ranks }}
		require.Equal(t, c.node, j.nodeByRank(c.rank, c.known), name)
	}
}

// Launchers' summaries and start lines tell the first rank of a node.
func TestTheFirstRankOfANode(t *testing.T) {
	summary := func(rank, local int, host string) scan.ElasticEntry {
		return scan.ElasticEntry{Rank: rank, Local: local, Host: host}
	}
	for name, c := range map[string]struct {
		starts []scan.NodeStart
		told   []scan.ElasticEntry
		first  map[string]int
	}{
		"a start line":              {[]scan.NodeStart{{Host: "gpu2", First: 8, Last: 15}}, nil, map[string]int{"gpu2": 8}},
		"a summary":                 {nil, []scan.ElasticEntry{summary(11, 3, "gpu2")}, map[string]int{"gpu2": 8}},
		"a summary of rank 0":       {nil, []scan.ElasticEntry{summary(0, 0, "gpu1")}, map[string]int{"gpu1": 0}},
		"one that names no rank":    {nil, []scan.ElasticEntry{summary(-1, 3, "gpu2")}, map[string]int{}},
		"one that names no place":   {nil, []scan.ElasticEntry{summary(11, -1, "gpu2")}, map[string]int{}},
		"one that names no node":    {nil, []scan.ElasticEntry{summary(11, 3, "")}, map[string]int{}},
		"an earlier attempt's line": {[]scan.NodeStart{{Host: "gpu2", First: 8}, {Host: "gpu1", First: 8, Attempt: 1}}, nil, map[string]int{"gpu1": 8}},
	} {
		require.Equal(t, c.first, (&job{files: []*scan.Facts{{NodeStarts: c.starts, Elastic: c.told}}}).firstRanks(), name)
	}
}

// A launcher's summaries tell the rank of a process by its number.
func TestSummariesTellTheRankOfAProcess(t *testing.T) {
	told := func(rank int, pid string) scan.ElasticEntry { return scan.ElasticEntry{Rank: rank, Pid: pid} }
	for name, c := range map[string]struct {
		told []scan.ElasticEntry
		rank int
	}{
		"one":                            {[]scan.ElasticEntry{told(3, "4711")}, 3},
		"the first rank":                 {[]scan.ElasticEntry{told(0, "4711")}, 0},
		"the same twice":                 {[]scan.ElasticEntry{told(0, "4711"), told(0, "4711")}, 0},
		"two, on two nodes":              {[]scan.ElasticEntry{told(0, "4711"), told(3, "4711")}, -1},
		"one of which the rank is known": {[]scan.ElasticEntry{told(-1, "4711"), told(3, "4711")}, 3},
		"another process":                {[]scan.ElasticEntry{told(3, "4712")}, -1},
	} {
		e := &scan.Event{Text: "/w/run.sh: line 20:  4711 Killed                  python3 -u train.py"}
		require.Equal(t, c.rank, (&job{files: []*scan.Facts{{Elastic: c.told}}}).rankOfProcess(e), name)
	}
}

// The first rank of the node of each file, by tags, log folders, other files of the node and file names.
func TestTheFirstRankOfAFilesNode(t *testing.T) {
	const folder = "logs/none_ab12cd34/attempt_0/"
	tag := func(label, local int) logline.Tag { return logline.Tag{Label: label, Local: local, Rank: -1} }
	seen := func(t logline.Tag, rank int) *scan.Facts { return &scan.Facts{Bases: map[logline.Tag]int{t: rank}} }
	summed := &scan.Facts{Elastic: []scan.ElasticEntry{{Rank: 11, Local: 3, Host: "gpu2"}}}
	for name, c := range map[string]struct {
		names []string
		files []*scan.Facts
		given Context
		world string
		want  []int
	}{
		"a tag":                         {[]string{"x"}, []*scan.Facts{seen(tag(-1, 3), 11)}, Context{}, "", []int{8}},
		"a tag of the first process":    {[]string{"x"}, []*scan.Facts{seen(tag(-1, 0), 8)}, Context{}, "", []int{8}},
		"a tag without a process":       {[]string{"x"}, []*scan.Facts{seen(tag(-1, -1), 11)}, Context{}, "", []int{-1}},
		"a tag with a task":             {[]string{"x"}, []*scan.Facts{seen(tag(0, 3), 11)}, Context{}, "", []int{-1}},
		"launchers' words":              {[]string{"x"}, []*scan.Facts{{Local0: []int{8, 8}}}, Context{}, "", []int{8}},
		"two launchers' words":          {[]string{"x"}, []*scan.Facts{{Local0: []int{8, 16}}}, Context{}, "", []int{-1}},
		"a tag beside launchers' words": {[]string{"x"}, []*scan.Facts{{Local0: []int{16}, Bases: map[logline.Tag]int{tag(-1, 3): 11}}}, Context{}, "", []int{8}},
		"the only launcher's folder":    {[]string{folder + "1/stdout.log", "y"}, []*scan.Facts{{}, summed}, Context{}, "", []int{8, -1}},
		"two launchers' folders, in each of which one rank said that it joined": {
			[]string{folder + "1/stderr.log", folder + "2/stdout.log", "logs/none_cd34ab12/attempt_0/0/stderr.log", "logs/none_cd34ab12/attempt_0/3/stderr.log"},
			[]*scan.Facts{{Came: map[int]int{1: 8}}, {}, {Came: map[int]int{4: 8}}, {}},
			Context{},
			"",
			[]int{0, 0, 4, 4},
		},
		"another attempt's folder": {
			[]string{folder + "1/stderr.log", "logs/none_ab12cd34/attempt_1/2/stdout.log"}, []*scan.Facts{{Came: map[int]int{1: 8}}, {}}, Context{}, "", []int{0, -1},
		},
		"a folder with its own word": {[]string{folder + "1/stdout.log", "y"}, []*scan.Facts{{Local0: []int{16}}, summed}, Context{}, "", []int{16, -1}},
		"two files of a node, the first": {
			[]string{"a-gpu2.out", "b-gpu2.err"}, []*scan.Facts{seen(tag(-1, 3), 11), {}}, Context{Nodes: []string{"gpu1", "gpu2"}}, "", []int{8, 8},
		},
		"two files of a node, the second": {
			[]string{"a-gpu2.out", "b-gpu2.err"}, []*scan.Facts{{}, seen(tag(-1, 3), 11)}, Context{Nodes: []string{"gpu1", "gpu2"}}, "", []int{8, 8},
		},
		"two files of which nobody knows": {[]string{"a.out", "b.err"}, []*scan.Facts{seen(tag(-1, 3), 11), {}}, Context{}, "", []int{8, -1}},
		"a node's number":                 {[]string{"train_node1_a.log"}, []*scan.Facts{{Locals: map[int]bool{7: true}}}, Context{}, "", []int{8}},
		"the last node's number":          {[]string{"train_node1_a.log"}, []*scan.Facts{{Locals: map[int]bool{7: true}}}, Context{}, "16", []int{8}},
		"a number that is too great":      {[]string{"train_node2_a.log"}, []*scan.Facts{{Locals: map[int]bool{7: true}}}, Context{}, "16", []int{-1}},
		"a node's number, and no process": {[]string{"train_node1_a.log"}, []*scan.Facts{{}}, Context{}, "", []int{-1}},
		"a node's number beside its words": {
			[]string{"train_node1_a.log"}, []*scan.Facts{{Locals: map[int]bool{7: true}, Local0: []int{24}}}, Context{}, "", []int{24},
		},
	} {
		if c.world != "" {
			c.files[0].Args = map[string]string{"world_size": c.world}
		}
		j := newJob(sourceOf(c.names...), c.files, c.given)
		j.firstRank = j.firstRanks()
		j.placeFiles()
		require.Equal(t, c.want, j.baseRank, name)
	}
}

// A rank's watchdog may speak in two files: the timeout counts.
func TestALateCollectiveCountsInWhicheverFile(t *testing.T) {
	late, quiet := &scan.NCCLRank{TimedOut: true, Seq: 1}, &scan.NCCLRank{Seq: 2}
	told := func(n *scan.NCCLRank) *scan.Facts { return &scan.Facts{NCCL: map[int]*scan.NCCLRank{0: n}} }
	for name, files := range map[string][]*scan.Facts{"the first": {told(late), told(quiet)}, "the second": {told(quiet), told(late)}} {
		require.Same(t, late, newJob(sourceOf("x", "y"), files, Context{}).nccl[0], name)
	}
	require.Same(t, late, newJob(sourceOf("x", "y"), []*scan.Facts{told(late), told(&scan.NCCLRank{TimedOut: true})}, Context{}).nccl[0], "the first of two")
}
