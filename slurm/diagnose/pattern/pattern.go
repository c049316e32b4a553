// Package pattern knows the lines with which programs report a failure: a table of
// words and expressions with the class that each names and its weight, the forms that
// lines have whatever they say, and the words of what does no harm.
package pattern

import (
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
)

// How much a pattern says about the cause. Where two causes are seen, the
// earlier one wins among those of rank death and above; below that, the
// heavier one. A fact wins over anything vague wherever it stands, since it
// is written after the event: by the kernel, by slurmstepd, by an epilog.
const (
	Fact     = 95 // said by the kernel, the driver or Slurm about hardware or memory
	Specific = 80 // names the phenomenon itself
	vague    = 60 // names a consequence that several causes share
	Generic  = 50 // an exception that no row knows
	Death    = 45 // a process that died of a signal
	Ended    = 40 // Slurm ended the job
	fabric   = 30 // network between ranks: also what a death looks like to the others
	TimedOut = 20 // a collective that never finished
	Aborted  = 15 // SIGABRT: watchdogs end their own process so
	Exited   = 12 // a plain exit code other than zero
	Symptom  = 10 // what is seen after something else broke
)

// A pattern is one way in which programs print a class of failure. on holds
// literals in lower case, any of which must occur in the line; re, where
// given, must match as well.
type pattern struct {
	Class  string
	Weight int
	on     []string
	re     string
}

// OfFabric matches lines of the network between ranks, which name the operating
// system's errors too: only the network's own rows read them.
var OfFabric = lazy.New(`\bUCX +(?:ERROR|WARN|DEBUG)|^\[\S+:\d+:\d+(?::\d+)?\] +\w+\.c:\d+ |^libfabric:`)

// oneOf splits a list of literals, which are written with | between them.
func oneOf(literals string) []string { return strings.Split(literals, "|") }

// patterns is the table: one row for each way in which a program says it.
// Rows of one group stand in one file, beside their sources.
var patterns = func() (all []pattern) {
	for _, group := range [][]pattern{gpuPatterns, networkPatterns, pythonPatterns, storagePatterns, slurmPatterns, launchPatterns, symptomPatterns} {
		all = append(all, group...)
	}
	return all
}()

// A Compiled pattern has its expression at hand, compiled when it is first
// asked: most runs ask few of them.
type Compiled struct {
	pattern
	re func() *regexp.Regexp // nil where literals suffice
}

func (c *Compiled) matches(text string) bool { return c.re == nil || c.re().MatchString(text) }

// A Table is the rows of patterns with all their literals, which one pass over a line finds.
type Table struct {
	rows   []Compiled
	words  *lazy.Words
	of     [][]int // literal → rows
	guards []Guard // literal → questions
}

// LoadTable returns the table of all patterns, which is made when it is first asked for.
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

// shows reports whether text shows any row.
func (t *Table) shows(text string) bool {
	for _, row := range t.Look(text, nil).Rows {
		if c := &t.rows[row]; c.matches(text) {
			return true
		}
	}
	return false
}

// Match returns the heaviest pattern that text shows, or nil.
func (t *Table) Match(text string) *Compiled {
	return t.Best(text, t.Look(text, nil))
}

// Best returns the heaviest of the rows that text shows, or nil.
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

// Hits is what one pass over a line finds: rows of the table whose literals
// occur, and which of the scanner's own questions are worth asking.
type Hits struct {
	Rows []int
	Ask  Guard
}

// Look passes over text once; rows are appended to buf.
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

// A Guard is a question that costs an expression, and is only asked of lines
// that hold one of its literals.
type Guard uint32

// The questions of the scanner.
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
	AskDone
	AskProcess
)

// guardWords are the literals of the guards, in lower case.
var guardWords = map[Guard]string{
	AskStart: "rendezvous complete|using world size|start|starting|started|job |restart|worker group|requeue",
	AskEnd:   "training|run_stop|exiting program|normal|successfully completed|validation loss|trainer.fit|train_iters|max_steps",
	AskPhase: "checkpoint|evaluating|building|compiling|>>> done|done with setup|training ...|initializ|[after |[before |validation loss" +
		"|storing|> finished|random|> setting",
	AskAgent:      "failed (exitcode|(first observed failure)|unable to shutdown process |errored trials: |trials did not complete: ",
	AskTask:       "srun: error|noticed that process rank|process name: [[|exit code:  ",
	AskNodeRank:   "node_rank|noderank",
	AskMarker:     "start: attempt=|commit|argv|command|container|image|venv|worktree",
	AskCollective: "collective operation timeout|last enqueued|join|failed to pass monitoredbarrier|errors while waiting",
	AskProgress:   "step|iter|it/s|s/it|epoch|[batch=",
	AskNode:       "srun: |slurmstepd-|nccl |node|host| on ",
	AskNodes:      "nodes|nodelist",
	AskProcess:    "pid|spawned with command|num_local_procs|world size|world_size|global_rank: ",
	AskExit:       "exit|sigint|keyboard interrupt|keyboardinterrupt|by user|by the user",
	AskWhole:      "complete|processed|done|finished|passed|stop|succeeded|exit status|exit code|exit value|training time|end training|ended training|end of training",
	AskDone: "complete| time|runtime|done|finish|passed|success|saved|written|wrote|ended|generated|final|best|test|valid|eval|完成|结束|保存|成功" +
		"|acc|precision|recall|score|loss|ran for|conclu|sucesso|éxito|terminad|terminé|finalizad|completad|succès|abgeschlossen|erfolgreich|完了|終了|완료" +
		"|сохран|заверш|закончен|успешно|最终|最好",
}
