// Package pattern recognises lines with which programs report a failure. It holds a table of literals
// and expressions with the class and weight of each, the forms of lines, and the patterns of harmless
// lines.
package pattern

import (
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
)

// Weights: how much a pattern says about the cause. Of two causes with weights from Death on, the
// earlier one wins; below Death the heavier one wins. A Fact beats anything vague at any position,
// because the kernel, slurmstepd or an epilog writes it after the event.
const (
	Fact     = 95 // the kernel, the driver or Slurm reports on hardware or memory
	Specific = 80 // names the phenomenon itself
	vague    = 60 // names a consequence that several causes share
	Generic  = 50 // an exception that no row of the table matches
	Death    = 45 // a process died by a signal
	Ended    = 40 // Slurm ended the job
	fabric   = 30 // the network between ranks, which a dead rank also looks like to the others
	TimedOut = 20 // a collective never finished
	Aborted  = 15 // SIGABRT, with which watchdogs end their own process
	Exited   = 12 // an exit code other than zero
	Symptom  = 10 // a consequence of another failure
)

// A pattern is one way in which programs print a class of failure. A line matches if it contains one of
// the literals in on (lower case), and re, where given, matches too.
type pattern struct {
	Class  string
	Weight int
	on     []string
	re     string
}

// OfFabric matches lines of the network layers between ranks. They also contain the operating system's
// error texts, so only networkPatterns may match them.
var OfFabric = lazy.New(`\bUCX +(?:ERROR|WARN|DEBUG)|^\[\S+:\d+:\d+(?::\d+)?\] +\w+\.c:\d+ |^libfabric:`)

// oneOf splits a list of literals at "|".
func oneOf(literals string) []string { return strings.Split(literals, "|") }

// patterns is the table of failures. The rows of each group are in a file of their own, with their
// sources.
var patterns = func() (all []pattern) {
	for _, group := range [][]pattern{gpuPatterns, networkPatterns, pythonPatterns, storagePatterns, slurmPatterns, launchPatterns, symptomPatterns} {
		all = append(all, group...)
	}
	return all
}()

// A Compiled pattern compiles its expression on first use: most runs use few expressions.
type Compiled struct {
	pattern
	re    func() *regexp.Regexp // nil if a literal suffices
	words func() *lazy.Words    // a text without any of them does not match re
}

func (c *Compiled) matches(text string) bool {
	if c.re == nil {
		return true
	}
	words := c.words()
	return (words.Empty() || words.In(text)) && c.re().MatchString(text)
}

// A Table holds patterns and an index of all their literals, which finds them in one pass over a line.
type Table struct {
	rows   []Compiled
	words  *lazy.Words
	of     [][]int // literal → rows
	guards []Guard // literal → questions
}

// LoadTable returns the table of all failure patterns. It builds the table on first use.
var LoadTable = sync.OnceValue(func() *Table { return newTable(patterns) })

func newTable(patterns []pattern) *Table {
	t := &Table{}
	index := map[string]int{}
	var literals []string
	literal := func(w string) int {
		i, seen := index[w]
		if !seen {
			i = len(literals)
			index[w] = i
			literals = append(literals, w)
			t.of, t.guards = append(t.of, nil), append(t.guards, 0)
		}
		return i
	}
	for g, words := range guardWords {
		for _, w := range oneOf(words) {
			t.guards[literal(w)] |= g
		}
	}
	for _, p := range patterns {
		row := len(t.rows)
		c := Compiled{pattern: p}
		if p.re != "" {
			c.re = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile("(?i)" + p.re) })
			c.words = sync.OnceValue(func() *lazy.Words { return lazy.NewWords(lazy.Required("(?i)" + p.re)) })
		}
		t.rows = append(t.rows, c)
		for _, w := range p.on {
			i := literal(w)
			t.of[i] = append(t.of[i], row)
		}
	}
	t.words = lazy.NewWords(literals)
	return t
}

// Match returns the heaviest pattern that matches text, or nil.
func (t *Table) Match(text string) *Compiled {
	return t.Best(text, t.Look(text, nil))
}

// Best returns the heaviest pattern of h.Rows that matches text, or nil.
func (t *Table) Best(text string, h Hits) *Compiled {
	var best *Compiled
	for _, row := range h.Rows {
		c := &t.rows[row]
		if best != nil && c.Weight <= best.Weight {
			continue
		}
		if c.matches(text) {
			best = c
		}
	}
	return best
}

// Hits is the result of one pass over a line: the rows of which a literal occurs, and the scanner's
// questions of which a literal occurs.
type Hits struct {
	Rows []int
	Ask  Guard
}

// Look passes over text once. It stores the rows in buf, which it may replace by a larger slice.
func (t *Table) Look(text string, buf []int) Hits {
	h := Hits{Rows: buf[:0]}
	t.words.Each(text, func(word int) {
		h.Ask |= t.guards[word]
		for _, row := range t.of[word] {
			if !slices.Contains(h.Rows, row) {
				h.Rows = append(h.Rows, row)
			}
		}
	})
	return h
}

// A Guard is a set of the scanner's questions. A question costs an expression, so the scanner asks it
// only of lines with one of the question's literals.
type Guard uint32

// The scanner's questions.
const (
	AskStart Guard = 1 << iota
	AskEnd
	AskPhase
	AskAgent
	AskTask
	AskNodeRank
	AskMarker
	AskCollective
	AskProgress
	AskNode
	AskNodes
	AskExit
	AskWhole
	AskProcess
	AskServe
)

// guardWords are the literals of the questions, in lower case.
var guardWords = map[Guard]string{
	AskStart: "rendezvous complete|using world size|start|starting|started|job |restart|worker group|requeue",
	AskEnd:   "training|run_stop|exiting program|normal|successfully completed|validation loss|trainer.fit|train_iters|max_steps",
	AskPhase: "checkpoint|evaluating|building|compiling|>>> done|done with setup|training ...|initializ|[after |[before |validation loss" +
		"|storing|> finished|random|> setting",
	AskAgent:      "failed (exitcode|(first observed failure)|unable to shutdown process |errored trials: |trials did not complete: ",
	AskTask:       "srun: error|noticed that process rank|process name: [[|exit code:  |mpi_abort|abort(",
	AskNodeRank:   "node_rank|noderank",
	AskMarker:     "start: attempt=|commit|argv|command|container|image|venv|worktree",
	AskCollective: "collective operation timeout|last enqueued|join|failed to pass monitoredbarrier|errors while waiting",
	AskProgress:   "step|iter|it/s|s/it|epoch|round|[batch=",
	AskNode:       "srun: |slurmstepd-|nccl |node|host| on ",
	AskNodes:      "nodes|nodelist",
	AskProcess:    "pid|spawned with command|num_local_procs|world size|world_size|global_rank: |store-based barrier|to store for rank: |process ",
	AskServe:      "http://|https://|http/",
	AskExit:       "exit|sigint|keyboard interrupt|keyboardinterrupt|by user|by the user",
	AskWhole: "complete|processed|done|finished|passed|stop|succeeded|exit status|exit code|exit value|training time|end training|ended training|end of training" +
		"|process group destroyed|结束|完成|完毕|종료|완료|끝",
}
