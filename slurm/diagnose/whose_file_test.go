package diagnose

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose/flightrecorder"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logline"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/scan"
	"github.com/stretchr/testify/require"
)

// Paths of logs, and the nodes that the logs name, longest first.
func TestAFilesNameTellsItsNode(t *testing.T) {
	for name, c := range map[string]struct {
		known []string
		node  string
	}{
		"gpu1.log":                           {[]string{"gpu12", "gpu1"}, "gpu1"},
		"logs/gpu12.log":                     {[]string{"gpu12", "gpu1"}, "gpu12"},
		"gpu12/gpu1":                         {[]string{"gpu1"}, "gpu1"},
		"train.gpu1":                         {[]string{"gpu1"}, "gpu1"},
		"0gpu1.log":                          {[]string{"gpu1"}, ""},
		"9gpu1.log":                          {[]string{"gpu1"}, ""},
		"agpu1.log":                          {[]string{"gpu1"}, ""},
		"zgpu1.log":                          {[]string{"gpu1"}, ""},
		"Agpu1.log":                          {[]string{"gpu1"}, ""},
		"Zgpu1.log":                          {[]string{"gpu1"}, ""},
		"/gpu1:log":                          {[]string{"gpu1"}, "gpu1"},
		"@gpu1[log":                          {[]string{"gpu1"}, "gpu1"},
		"`gpu1{log":                          {[]string{"gpu1"}, "gpu1"},
		"train-77-gpu3.out":                  {nil, "gpu3"},
		"train-77-final.out":                 {nil, ""},
		"train-77-node3.out":                 {nil, "node3"},
		"train-77_node1.out":                 {[]string{"lrdn1402", "lrdn1403"}, ""},
		"train-77_node1.txt":                 {[]string{"node1", "node2"}, "node1"},
		"train-77-rank3.out":                 {nil, ""},
		"node02-gpu9.log":                    {nil, "gpu9"},
		"a/gpu4/x_ab/attempt_0/3/stderr.log": {nil, "gpu4"},
		"gpu4/x_ab/attempt_0/3/stderr.log":   {nil, "gpu4"},
		"x_ab/attempt_0/3/stderr.log":        {nil, ""},
		"run/x_ab/attempt_0/3/stderr.log":    {nil, ""},
	} {
		require.Equal(t, c.node, nodeOfPath(name, c.known), name)
	}
}

// The numbers at the ends of files' names, and what else is known of the job.
func TestFilesThatCountAreRanks(t *testing.T) {
	nodes := map[string]int{"gpu1": 1, "gpu2": 1}
	for name, c := range map[string]struct {
		numbers []int
		world   int
		nodes   map[string]int
		ranks   bool
	}{
		"from 0 on":                             {[]int{0, 1}, 0, nil, true},
		"one file":                              {[]int{0}, 0, nil, false},
		"one is missing":                        {[]int{0, 2}, 0, nil, false},
		"one is missing, of a world":            {[]int{0, 2, 3}, 4, nil, true},
		"half are missing, of a world":          {[]int{0, 3}, 4, nil, false},
		"as many as the world":                  {[]int{0, 1, 2, 3}, 4, nil, true},
		"more than the world":                   {[]int{0, 1, 2, 3, 4}, 4, nil, false},
		"one for each of two nodes":             {[]int{0, 1}, 16, nodes, false},
		"as many ranks as nodes":                {[]int{0, 1}, 2, nodes, true},
		"fewer than the world, more than nodes": {[]int{0, 1, 2}, 16, nodes, true},
		"fewer than the world, no nodes known":  {[]int{0, 1}, 16, nil, true},
	} {
		var names []string
		for _, n := range c.numbers {
			names = append(names, fmt.Sprintf("train-%d.log", n))
		}
		j := newJob(sourceOf(names...), make([]*scan.Facts, 0), Context{})
		j.world, j.nodes = c.world, c.nodes
		for range names {
			j.files, j.fileRank, j.fileNode = append(j.files, &scan.Facts{}), append(j.fileRank, -1), append(j.fileNode, "")
		}
		j.placeSeries()
		for i, n := range c.numbers {
			want := -1
			if c.ranks {
				want = n
			}
			require.Equal(t, want, j.fileRank[i], "%s: %s", name, names[i])
		}
	}
}

// A letter and a number in a file's name are a rank's if the files are a series from 0 on; alone they may be a run's.
func TestALetterAndANumberAreARankInASeriesOnly(t *testing.T) {
	for name, c := range map[string]struct {
		files []string
		rank  int // of the last file
	}{
		"alone":              {[]string{"r035.log"}, -1},
		"two runs":           {[]string{"r034.log", "r035.log"}, -1},
		"beside another log": {[]string{"slurm-7.out", "train-r3.log"}, -1},
		"a series":           {[]string{"r0.log", "r1.log", "r3.log"}, 3},
		"a series of nodes":  {[]string{"gpu1/r0.out", "gpu2/r1.out"}, 1},
		"two folders":        {[]string{"seed1/r0.log", "seed2/r0.log"}, -1},
		"the word":           {[]string{"rank3.log"}, 3},
		"a matrix":           {[]string{"lora-r0.log", "lora-r8.log"}, -1},
	} {
		j := newJob(sourceOf(c.files...), make([]*scan.Facts, 0), Context{})
		for range c.files {
			j.files = append(j.files, &scan.Facts{})
		}
		j.placeFiles()
		require.Equal(t, c.rank, j.fileRank[len(c.files)-1], name)
	}
}

// TestFilesThatCountNodesAreNoRanks has the names that srun --output=x_node%n.log produces.
func TestFilesThatCountNodesAreNoRanks(t *testing.T) {
	for name, rank := range map[string]int{"train_node%d.log": -1, "node-%d.log": -1, "%d/node%d.log": -1, "anode%d.log": 1, "train_task%d.log": 1} {
		name = strings.ReplaceAll(name, "%d/", "7/")
		j := newJob(sourceOf(fmt.Sprintf(name, 0), fmt.Sprintf(name, 1)), []*scan.Facts{{}, {}}, Context{})
		j.fileRank, j.fileNode = []int{-1, -1}, []string{"", ""}
		j.placeSeries()
		require.Equal(t, rank, j.fileRank[1], name)
	}
}

// TestStartLinesOfNodesAreNoRanks has the files in which a rendered script keeps what each node started.
func TestStartLinesOfNodesAreNoRanks(t *testing.T) {
	for ranks, rank := range map[[2]int]int{{0, 1}: 1, {1, 3}: -1} { // the last rank of each of two nodes → the rank of the second file
		of := func(first, last int) *scan.Facts {
			return &scan.Facts{NodeStarts: []scan.NodeStart{{First: first, Last: last}}}
		}
		j := newJob(sourceOf("7/start-0", "7/start-1"), []*scan.Facts{of(0, ranks[0]), of(ranks[0]+1, ranks[1])}, Context{})
		j.fileRank, j.fileNode = []int{-1, -1}, []string{"", ""}
		j.placeSeries()
		require.Equal(t, rank, j.fileRank[1], ranks)
	}
}

// The second of two numbered files is a node's if it tells of another rank than its number, or of several.
func TestAFileThatTellsOfOtherRanksIsANodes(t *testing.T) {
	told := func(rank, local int) scan.Facts {
		return scan.Facts{Elastic: []scan.ElasticEntry{{Rank: rank, Local: local}}}
	}
	for name, c := range map[string]struct {
		f    scan.Facts
		rank int
	}{
		"nothing":                       {scan.Facts{}, 1},
		"lines of its rank":             {scan.Facts{Ranks: map[int]bool{1: true}}, 1},
		"lines of another":              {scan.Facts{Ranks: map[int]bool{0: true}}, -1},
		"a launcher's word on its rank": {told(1, 0), 1},
		"on another":                    {told(2, 0), -1},
		"on the first":                  {told(0, 0), -1},
		"on none":                       {told(-1, 0), 1},
		"on the second of a node":       {told(1, 1), -1},
		"a start line of its rank":      {scan.Facts{NodeStarts: []scan.NodeStart{{First: 1, Last: 1}}}, 1},
		"a start line from its rank on": {scan.Facts{NodeStarts: []scan.NodeStart{{First: 1, Last: 2}}}, -1},
		"a start line up to its rank":   {scan.Facts{NodeStarts: []scan.NodeStart{{First: 0, Last: 1}}}, -1},
	} {
		j := newJob(sourceOf("x-0.log", "x-1.log"), []*scan.Facts{{}, &c.f}, Context{})
		j.fileRank, j.fileNode = []int{-1, -1}, []string{"", ""}
		j.placeSeries()
		require.Equal(t, c.rank, j.fileRank[1], name)
	}
}

// The names that srun --error=err.%t produces, and a log's older parts.
func TestNumbersAtTheEndOfNamesMayBeRanks(t *testing.T) {
	for name, c := range map[string]struct {
		files []string
		world int
		rank  int // of the last file
	}{
		"srun's tasks":              {[]string{"err.0", "err.1", "err.2"}, 0, 2},
		"of a world, one missing":   {[]string{"err.0", "err.2", "err.3"}, 4, -1},
		"older parts":               {[]string{"x.log", "x.log.1", "x.log.2"}, 3, -1},
		"older parts, counted so":   {[]string{"x.log", "x.log.0", "x.log.1"}, 0, -1},
		"the older parts alone":     {[]string{"x.log.1", "x.log.2"}, 3, -1},
		"a folder's tasks, by name": {[]string{"logs/out.0", "logs/out.1"}, 2, 1},
	} {
		j := newJob(sourceOf(c.files...), make([]*scan.Facts, 0), Context{})
		j.world = c.world
		for range c.files {
			j.files, j.fileRank, j.fileNode = append(j.files, &scan.Facts{}), append(j.fileRank, -1), append(j.fileNode, "")
		}
		j.placeSeries()
		require.Equal(t, c.rank, j.fileRank[len(c.files)-1], name)
	}
}

// The highest of srun's tasks, and what is known of the job.
func TestTasksAreRanksOrNodes(t *testing.T) {
	nodes := func(n int) map[string]int {
		all := map[string]int{}
		for i := range n {
			all[fmt.Sprintf("gpu%d", i)] = 1
		}
		return all
	}
	seen := func(label, rank int) map[logline.Tag]int {
		return map[logline.Tag]int{{Label: label, Local: 0, Rank: -1}: rank}
	}
	for name, c := range map[string]struct {
		most, world, perNode int
		nodes                map[string]int
		bases                map[logline.Tag]int
		tasks                []int
		ranks                bool
	}{
		"a task says its rank":                  {0, 0, 0, nil, seen(3, 3), nil, true},
		"a task says the first of its ranks":    {0, 0, 0, nil, seen(1, 8), nil, false},
		"task 0 says rank 0":                    {0, 0, 8, nil, seen(0, 0), nil, true},
		"a line without a task says its rank":   {3, 0, 8, nil, seen(-1, 3), nil, false},
		"several processes of a node":           {3, 16, 2, nil, nil, nil, false},
		"one process of a node":                 {3, 4, 1, nil, nil, nil, true},
		"as many as the world":                  {3, 4, 0, nil, nil, nil, true},
		"fewer than the world":                  {2, 4, 0, nil, nil, nil, false},
		"more than nodes, fewer than the world": {2, 4, 0, nodes(2), nil, nil, true},
		"as many as nodes":                      {1, 4, 0, nodes(2), nil, nil, false},
		"the only rank":                         {-1, 1, 0, nil, nil, nil, true},
		"nothing known but one node":            {0, 0, 0, nodes(1), nil, nil, true},
		"nothing known but no node":             {0, 0, 0, nil, nil, nil, true},
		"nothing known but as many as nodes":    {1, 0, 0, nodes(2), nil, nil, false},
		"nothing known but more than nodes":     {2, 0, 0, nodes(2), nil, nil, true},
		"nothing known, and no task":            {-1, 0, 0, nil, nil, nil, false},
		"srun tells of a higher one":            {0, 4, 0, nil, nil, []int{3}, true},
	} {
		f := &scan.Facts{Labels: map[int]bool{}, Bases: c.bases, Events: []*scan.Event{{Tasks: c.tasks}}}
		if c.most >= 0 {
			f.Labels[c.most] = true
		}
		j := &job{files: []*scan.Facts{f}, world: c.world, perNode: c.perNode, nodes: c.nodes}
		j.placeTasks()
		require.Equal(t, c.ranks, j.taskRank, name)
	}
}

// The start lines of two attempts.
func TestStartLinesTellTheNodesOfRanks(t *testing.T) {
	j := &job{files: []*scan.Facts{
		{NodeStarts: []scan.NodeStart{{Attempt: 0, Host: "gpu1", First: 0, Last: 7}, {Attempt: 1, Host: "gpu3", First: 2, Last: 3}}},
		{NodeStarts: []scan.NodeStart{{Attempt: 1, Host: "gpu2", First: 0, Last: 1}, {Attempt: 1, Host: "gpu2", First: 4, Last: 5}}},
	}}
	require.Equal(t, map[int]string{0: "gpu2", 1: "gpu2", 2: "gpu3", 3: "gpu3"}, j.startedOn())
	last := j.nodeStarts()
	require.Len(t, last, 2)
	require.Equal(t, "gpu2", last[0].Host, "in the order of ranks")
}

// Events of a file without start lines, in a job whose last attempt began at ten.
func TestWhichEventsBelongToAnEarlierAttempt(t *testing.T) {
	ten := time.Date(2026, 6, 11, 10, 0, 0, 0, time.UTC)
	none, before, edge, since := time.Time{}, ten.Add(-time.Minute), ten.Add(-skew), ten.Add(time.Minute)
	other := &scan.Event{Before: before, After: edge}
	for name, c := range map[string]struct {
		e            scan.Event
		first        *scan.Event
		before, sure bool
	}{
		"its own time, before":               {scan.Event{Dated: true, Before: before}, nil, true, true},
		"its own time, as clocks may differ": {scan.Event{Dated: true, Before: edge}, nil, false, true},
		"its own time, since":                {scan.Event{Dated: true, Before: since}, nil, false, true},
		"a time since before it":             {scan.Event{Before: since}, nil, false, true},
		"a time at the edge before it":       {scan.Event{Before: edge}, nil, false, true},
		"an earlier time after it":           {scan.Event{After: before}, nil, true, true},
		"between two earlier times":          {scan.Event{Before: before, After: before}, other, true, true},
		"between the attempts, the first":    {scan.Event{Before: before, After: since}, nil, true, false},
		"between the same two times":         {scan.Event{Before: before, After: since}, &scan.Event{Before: before, After: since}, true, false},
		"between the attempts, another":      {scan.Event{Before: before, After: since}, other, false, false},
		"a time at the edge after it":        {scan.Event{After: edge}, other, false, false},
		"no times, the first":                {scan.Event{Before: none}, nil, true, false},
		"no times, another":                  {scan.Event{Before: none}, other, false, false},
		"no times at all":                    {scan.Event{}, &scan.Event{}, false, false},
	} {
		was, sure := (&job{from: ten}).beforeStart(&c.e, c.first)
		require.Equal(t, c.before, was, name)
		require.Equal(t, c.sure, sure, name)
	}
}

// The seconds at which nodes logged common moments.
func TestClocksAheadAreThoseThatAllMomentsShow(t *testing.T) {
	at := time.Date(2026, 6, 11, 10, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		moments []map[string]int
		ahead   map[string]int
	}{
		"one moment":                    {[]map[string]int{{"a": 0, "b": 60}}, map[string]int{"b": 60}},
		"as much as is tolerated":       {[]map[string]int{{"a": 0, "b": 5}}, map[string]int{}},
		"a little more":                 {[]map[string]int{{"a": 0, "b": 6}}, map[string]int{"b": 6}},
		"behind two others":             {[]map[string]int{{"a": 0, "b": 60, "c": 61}}, map[string]int{"a": -60}},
		"behind as much as tolerated":   {[]map[string]int{{"a": 0, "b": 5, "c": 5}}, map[string]int{}},
		"moments that agree":            {[]map[string]int{{"a": 0, "b": 60}, {"a": 100, "b": 165}}, map[string]int{"b": 65}},
		"moments that do not":           {[]map[string]int{{"a": 0, "b": 60}, {"a": 100, "b": 166}}, map[string]int{}},
		"a moment of one node":          {[]map[string]int{{"b": 60}}, map[string]int{}},
		"the middle of three":           {[]map[string]int{{"a": 0, "b": 1, "c": 60}}, map[string]int{"c": 59}},
		"the middle of three that part": {[]map[string]int{{"a": 0, "b": 30, "c": 60}}, map[string]int{"a": -30, "c": 30}},
	} {
		seen, want := map[string]map[string]time.Time{}, map[string]time.Duration{}
		for i, m := range c.moments {
			by := map[string]time.Time{}
			for node, s := range m {
				by[node] = at.Add(time.Duration(s) * time.Second)
			}
			seen[fmt.Sprint(i)] = by
		}
		for node, s := range c.ahead {
			want[node] = time.Duration(s) * time.Second
		}
		require.Equal(t, want, clocksAhead(seen), name)
	}
}

// The last iteration of each rank.
func TestIterationsShowWhoIsBehind(t *testing.T) {
	for name, c := range map[string]struct {
		last  map[int]int
		ranks []int
		at    int
	}{
		"one of three":   {map[int]int{0: 9, 1: 8, 2: 9}, []int{1}, 9},
		"two of five":    {map[int]int{4: 1, 1: 8, 2: 9, 0: 9, 3: 9}, []int{1, 4}, 9},
		"half of them":   {map[int]int{0: 9, 1: 8}, nil, 0},
		"all as far":     {map[int]int{0: 9, 1: 9, 2: 9}, nil, 0},
		"nobody reports": {nil, nil, 0},
	} {
		ranks, at := ranksBehind(c.last)
		require.Equal(t, c.ranks, ranks, name)
		require.Equal(t, c.at, at, name)
	}
}

// The node that shows a cause, and the nodes that are known.
func TestOneNodeOfManyIsAvoided(t *testing.T) {
	for name, c := range map[string]struct {
		j      job
		others []*scan.Event
		one    bool
	}{
		"files of two nodes":           {job{fileNode: []string{"gpu1", "gpu2", ""}}, nil, true},
		"files of one node":            {job{fileNode: []string{"gpu1", ""}}, nil, false},
		"lines of two nodes":           {job{nodes: map[string]int{"gpu1": 1, "gpu2": 1}}, nil, true},
		"a job of two nodes":           {job{given: Context{Nodes: []string{"gpu1", "gpu2"}}}, nil, true},
		"a job of one node":            {job{given: Context{Nodes: []string{"gpu1"}}, nodes: map[string]int{"gpu1": 1, "login": 1}}, nil, false},
		"more ranks than a node holds": {job{perNode: 8, world: 16}, nil, true},
		"the ranks of one node":        {job{perNode: 8, world: 8}, nil, false},
		"nobody knows how many":        {job{world: 16}, nil, false},
		"two nodes show it":            {job{fileNode: []string{"gpu1", "gpu2"}}, []*scan.Event{{Node: "gpu2"}}, false},
		"one node shows it twice":      {job{fileNode: []string{"gpu1", "gpu2"}}, []*scan.Event{{Node: "gpu1"}, {}}, true},
	} {
		require.Equal(t, c.one, c.j.oneOfManyNodes(verdict{event: &scan.Event{Node: "gpu1"}, others: c.others}), name)
	}
}

// The node ranks that launchers printed.
func TestTwoNodesOfOneRank(t *testing.T) {
	for name, c := range map[string]struct {
		printed []map[string]string
		same    bool
	}{
		"each its own":        {[]map[string]string{{"gpu1": "0"}, {"gpu2": "1"}}, false},
		"both the same":       {[]map[string]string{{"gpu1": "0"}, {"gpu2": "0"}}, true},
		"one node, two files": {[]map[string]string{{"gpu1": "0"}, {"gpu1": "0"}}, false},
	} {
		j := &job{}
		for _, m := range c.printed {
			j.files = append(j.files, &scan.Facts{NodeRank: m})
		}
		require.Equal(t, c.same, j.sameNodeRank(), name)
	}
}

// Jobs in which only some of srun's tasks wrote.
func TestTasksThatWroteNothing(t *testing.T) {
	for name, c := range map[string]struct {
		ranks   bool
		world   int
		spoke   []int
		missing bool
	}{
		"one of two":            {true, 2, []int{0}, true},
		"all":                   {true, 2, []int{0, 1}, false},
		"nobody has a label":    {true, 2, nil, false},
		"tasks are nodes":       {false, 2, []int{0}, false},
		"the world is not said": {true, 0, []int{0}, false},
	} {
		f := &scan.Facts{Labels: map[int]bool{}}
		for _, l := range c.spoke {
			f.Labels[l] = true
		}
		require.Equal(t, c.missing, (&job{taskRank: c.ranks, world: c.world, files: []*scan.Facts{f}}).ranksMissing(), name)
	}
}

// A rank that is missing by flight recorder dumps, and what is known of the job.
func TestDumpsAloneTell(t *testing.T) {
	fresh, old := int64(5), int64(5000)
	missed := &flightrecorder.Missed{Rank: 3}
	for name, c := range map[string]struct {
		given  Context
		missed *flightrecorder.Missed
		class  string // empty if the dumps decide nothing
	}{
		"the job failed":       {Context{JobState: "FAILED"}, missed, outcome.NCCLTimeout},
		"it runs, and is old":  {Context{JobState: "RUNNING", SecondsSinceLastWrite: &old}, missed, outcome.Hang},
		"it runs, and writes":  {Context{JobState: "RUNNING", SecondsSinceLastWrite: &fresh}, missed, ""},
		"it failed just now":   {Context{JobState: "FAILED", SecondsSinceLastWrite: &fresh}, missed, outcome.NCCLTimeout},
		"nothing is known":     {Context{}, missed, outcome.NCCLTimeout},
		"it ended well":        {Context{JobState: "COMPLETED"}, missed, ""},
		"no dump shows a rank": {Context{JobState: "FAILED"}, nil, ""},
	} {
		j := newJob(sourceOf("x"), []*scan.Facts{{}}, c.given)
		j.missed = c.missed
		v, ok := j.onlyDumps(nil)
		require.Equal(t, c.class != "", ok, name)
		require.Equal(t, c.class, v.class, name)
		if ok {
			require.Equal(t, 3, v.laggard.rank, name)
		}
	}
}

// torchrun's log folders with lines of one rank, and logs that a launcher combined.
func TestOneRankSpokeInAFile(t *testing.T) {
	const folder = "logs/x_ab12cd34/attempt_0/3/stderr.log"
	one := func(with func(*scan.Facts)) *scan.Facts {
		f := &scan.Facts{Ranks: map[int]bool{5: true}}
		with(f)
		return f
	}
	for name, c := range map[string]struct {
		file string
		with func(*scan.Facts)
		rank int
	}{
		"one rank":               {folder, func(*scan.Facts) {}, 5},
		"a folder of its own":    {"logs/0/3/stderr.log", func(*scan.Facts) {}, 5},
		"two ranks":              {folder, func(f *scan.Facts) { f.Ranks[6] = true }, -1},
		"and a task":             {folder, func(f *scan.Facts) { f.Labels = map[int]bool{0: true} }, -1},
		"and a local rank":       {folder, func(f *scan.Facts) { f.Locals = map[int]bool{0: true} }, -1},
		"a log of any name":      {"logs/all.log", func(*scan.Facts) {}, -1},
		"a name with a rank":     {"logs/rank7.log", func(*scan.Facts) {}, 7},
		"a name of a low rank's": {"logs/lora_rank7.log", func(*scan.Facts) {}, -1},
	} {
		j := newJob(sourceOf(c.file), []*scan.Facts{one(c.with)}, Context{})
		j.placeFiles()
		require.Equal(t, c.rank, j.fileRank[0], name)
	}
}
