package diagnose

import (
	"regexp"
	"strings"
	"sync"
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

// A compiled pattern has its expression ready.
type compiled struct {
	pattern
	re *regexp.Regexp
}

type table struct {
	rows  []compiled
	words *automaton
	of    [][]int // literal → rows
}

var loadTable = sync.OnceValue(func() *table {
	t := &table{}
	index := map[string]int{}
	var literals []string
	for _, p := range patterns {
		row := len(t.rows)
		c := compiled{pattern: p}
		if p.re != "" {
			c.re = regexp.MustCompile("(?i)" + p.re)
		}
		t.rows = append(t.rows, c)
		for _, w := range p.on {
			i, seen := index[w]
			if !seen {
				i = len(literals)
				index[w] = i
				literals = append(literals, w)
				t.of = append(t.of, nil)
			}
			t.of[i] = append(t.of[i], row)
		}
	}
	t.words = newAutomaton(literals)
	return t
})

// match returns the heaviest pattern that text shows, or nil.
func (t *table) match(text string) *compiled {
	var best *compiled
	t.words.each(text, func(word int) {
		for _, row := range t.of[word] {
			c := &t.rows[row]
			if best != nil && c.weight <= best.weight {
				continue
			}
			if c.re == nil || c.re.MatchString(text) {
				best = c
			}
		}
	})
	return best
}
