package diagnose

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
	fact     = 95 // said by the kernel, the driver or Slurm about hardware or memory
	specific = 80 // names the phenomenon itself
	vague    = 60 // names a consequence that several causes share
	generic  = 50 // an exception that no row knows
	death    = 45 // a process that died of a signal
	ended    = 40 // Slurm ended the job
	fabric   = 30 // network between ranks: also what a death looks like to the others
	timedOut = 20 // a collective that never finished
	symptom  = 10 // what is seen after something else broke
)

// A pattern is one way in which programs print a class of failure. on holds
// literals in lower case, any of which must occur in the line; re, where
// given, must match as well.
type pattern struct {
	class  string
	weight int
	on     []string
	re     string
}

// ofFabric matches lines of the network between ranks, which name the operating
// system's errors too: only the network's own rows read them.
var ofFabric = lazy.New(`\bUCX +(?:ERROR|WARN|DEBUG)|^\[\S+:\d+:\d+(?::\d+)?\] +\w+\.c:\d+ |^libfabric:`)

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

// A compiled pattern has its expression at hand, compiled when it is first
// asked: most runs ask few of them.
type compiled struct {
	pattern
	re func() *regexp.Regexp // nil where literals suffice
}

func (c *compiled) matches(text string) bool { return c.re == nil || c.re().MatchString(text) }

type table struct {
	rows   []compiled
	words  *lazy.Words
	of     [][]int // literal → rows
	guards []guard // literal → questions
}

var loadTable = sync.OnceValue(func() *table { return newTable(patterns) })

func newTable(patterns []pattern) *table {
	t := &table{}
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
		c := compiled{pattern: p}
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
func (t *table) shows(text string) bool {
	for _, row := range t.look(text, nil).rows {
		if c := &t.rows[row]; c.matches(text) {
			return true
		}
	}
	return false
}

// match returns the heaviest pattern that text shows, or nil.
func (t *table) match(text string) *compiled {
	return t.best(text, t.look(text, nil))
}

// best returns the heaviest of the rows that text shows, or nil.
func (t *table) best(text string, h hits) *compiled {
	var best *compiled
	for _, row := range h.rows {
		c := &t.rows[row]
		if best != nil && c.weight <= best.weight {
			continue
		}
		if c.matches(text) {
			best = c
		}
	}
	return best
}

// hits is what one pass over a line finds: rows of the table whose literals
// occur, and which of the scanner's own questions are worth asking.
type hits struct {
	rows []int
	ask  guard
}

// look passes over text once; rows are appended to buf.
func (t *table) look(text string, buf []int) hits {
	h := hits{rows: buf[:0]}
	t.words.Each(text, func(word int) {
		h.ask |= t.guards[word]
		for _, row := range t.of[word] {
			if !slices.Contains(h.rows, row) {
				h.rows = append(h.rows, row)
			}
		}
	})
	return h
}

// A guard is a question that costs an expression, and is only asked of lines
// that hold one of its literals.
type guard uint32

const (
	askStart guard = 1 << iota
	askEnd
	askPhase
	askAgent
	askTask
	askNodeRank
	askMarker
	askCollective
	askProgress
	askNode
	askNodes
	askExit
	askWhole
	askDone
)

// guardWords are the literals of the guards, in lower case.
var guardWords = map[guard]string{
	askStart: "rendezvous complete|using world size|start|starting|started|job |restart|worker group|requeue",
	askEnd:   "training|run_stop|exiting program|normal|successfully completed|validation loss|trainer.fit|train_iters|max_steps",
	askPhase: "checkpoint|evaluating|building|compiling|>>> done|done with setup|training ...|initializ|[after |[before |validation loss" +
		"|storing|> finished|random|> setting",
	askAgent:      "failed (exitcode|(first observed failure)|errored trials: |trials did not complete: ",
	askTask:       "srun: error|noticed that process rank",
	askNodeRank:   "node_rank|noderank",
	askMarker:     "start: attempt=|commit|argv|command|container|image|venv|worktree",
	askCollective: "collective operation timeout|last enqueued|join|failed to pass monitoredbarrier|errors while waiting",
	askProgress:   "step|iter|it/s|s/it|epoch",
	askNode:       "srun: |slurmstepd-|nccl |node|host| on ",
	askNodes:      "nodes|nodelist",
	askExit:       "exit|sigint|keyboard interrupt|keyboardinterrupt|by user|by the user",
	askWhole:      "complete|done|finished|passed|stop|training time",
	askDone: "complete| time|runtime|done|finish|passed|success|saved|written|wrote|ended|generated|final|best|test|valid|eval|完成|结束|保存|成功" +
		"|acc|precision|recall|score|loss|ran for|conclu|sucesso|éxito|terminad|terminé|finalizad|completad|succès|abgeschlossen|erfolgreich|完了|終了|완료",
}
