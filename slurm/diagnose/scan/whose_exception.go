package scan

import (
	"strconv"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logline"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/pattern"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/python"
)

// spawnModule begins the names of the exceptions by which torch.multiprocessing.spawn
// tells of its children.
const spawnModule = "torch.multiprocessing.spawn."

// child is how it names one of them: by its number, which is the rank on its node. Source:
// ProcessContext.join in torch/multiprocessing/spawn.py.
var child = lazy.New(`^(?:-- P|p)rocess (\d{1,5}) terminated with (?:the following error:$|signal |exit code (\d{1,3}))`)

// Spawns reports whether an exception is the word of torch.multiprocessing.spawn on one
// of its children: then it started the ranks of a node, and Slurm did not.
func (e *Event) Spawns() bool { return strings.HasPrefix(e.Kind, spawnModule) }

// childIn is the child that a text names; -1: none.
func childIn(text string) int {
	if m := child.FindStringSubmatch(text); m != nil {
		n, _ := strconv.Atoi(m[1])
		return n
	}
	return -1
}

// inconsistent is how DDP names two ranks whose models differ; rank 0's is the one with
// which all compare. Source: _verify_params_across_processes in torch/csrc/distributed/c10d.
var inconsistent = lazy.On("has inconsistent", `\bRank (\d{1,6}) has \d+ params, while rank (\d{1,6}) has inconsistent`)

// ofOther gives an exception to the rank that raised it, where another rank repeats it
// and names that one: torch.distributed.checkpoint's "(RANK 3)" behind the head of a
// traceback, and what DDP says of another model.
func (e *Event) ofOther() {
	n, ok := -1, false
	if e.Stack != nil && e.Stack.Of != "" {
		n, ok = logline.Number(e.Stack.Of)
	} else if g := inconsistent.FindStringSubmatch(e.Text); g != nil {
		if n, ok = logline.Number(g[2]); n == 0 {
			n, ok = logline.Number(g[1])
		}
	}
	if ok {
		e.Tag, e.Quoted = logline.Tag{Label: -1, Local: -1, Rank: n}, true
	}
}

// ofChild gives an exception to the child that raised it, or that left as it says.
func (st *stream) ofChild(e *Event) {
	n := childIn(st.above)
	if left := childIn(e.message); e.Spawns() && left >= 0 {
		n, e.Agent = left, true
		e.Exit, _ = strconv.Atoi(child.FindStringSubmatch(e.message)[2]) // 0: a signal ended it
		if e.Class == outcome.UnknownExit {
			e.Weight = pattern.Exited
		}
	}
	if n >= 0 && e.Tag.Local < 0 && e.Tag.Rank < 0 {
		e.Tag.Local, e.Child = n, true
	}
}

// rankField is a logger's field with the rank of whoever writes: "[rank 2/4 gpu1] ERROR",
// "| rank=1 |".
var rankField = lazy.On("rank|Rank|RANK", `(?i)^.{0,60}[\[(|<] ?(?:global[ _-]?)?rank[ :=]{0,2}(\d{1,6})(?: ?(?:/|of) ?(\d{1,6}))?(?:[ ,;][^\]\[)(|>]{0,40})? ?[\])|>]`)

// complains is the level of a record below which a logger writes an exception.
var complains = lazy.New(`(?i)\b(?:error|critical|fatal|warn(?:ing)?|exception)\b`)

// fails is the level of a record of what a program gave up for.
var fails = lazy.New(`\b(?:ERROR|CRITICAL|FATAL)\b`)

// byRecord gives an exception that a program caught and had its logger write below a
// record to the rank which the record names as its writer. One that comes from the module
// down may be one that nobody caught, below whichever line was written before: only a
// record of an error has it.
func (st *stream) byRecord(e *Event) {
	caught := len(e.Stack.Frames) > 0 && e.Stack.Frames[0].Function != "<module>"
	switch g := rankField.FindStringSubmatch(st.above); {
	case !caught && !fails.MatchString(st.above):
	case g != nil && complains.MatchString(st.above):
		e.Writer = g[1]
		e.World, _ = logline.Number(g[2])
	case e.Stack.Chain != python.Unchained && st.raised != nil:
		e.Writer = st.raised.Writer
	}
}
