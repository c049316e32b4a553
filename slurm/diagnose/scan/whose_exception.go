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

// spawnModule begins the types of exceptions with which torch.multiprocessing.spawn reports on its
// children.
const spawnModule = "torch.multiprocessing.spawn."

// child matches a child in such a report: its index is its local rank. Source: ProcessContext.join in
// torch/multiprocessing/spawn.py.
var child = lazy.New(`^(?:-- P|p)rocess (\d{1,5}) terminated with (?:the following error:$|signal |exit code (\d{1,3}))`)

// Spawns reports whether an exception is torch.multiprocessing.spawn's report on a child. Then spawn,
// and not Slurm, started the ranks of the node.
func (e *Event) Spawns() bool { return strings.HasPrefix(e.Kind, spawnModule) }

// childIn returns the index of the child in a text, or -1.
func childIn(text string) int {
	if m := child.FindStringSubmatch(text); m != nil {
		n, _ := strconv.Atoi(m[1])
		return n
	}
	return -1
}

// inconsistent matches DDP's error about two ranks whose models differ; all ranks compare theirs with
// rank 0's. Source: _verify_params_across_processes in torch/csrc/distributed/c10d.
var inconsistent = lazy.On("has inconsistent", `\bRank (\d{1,6}) has \d+ params, while rank (\d{1,6}) has inconsistent`)

// ofOther assigns an exception to the rank that raised it, if another rank repeats it and names that
// rank: torch.distributed.checkpoint's "(RANK 3)" after a traceback's header, and DDP's error about
// another rank's model.
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

// ofChild assigns an exception to the child that raised it or exited.
func (st *stream) ofChild(e *Event) {
	n := childIn(st.above)
	if left := childIn(e.message); e.Spawns() && left >= 0 {
		n, e.Agent = left, true
		e.Exit, _ = strconv.Atoi(child.FindStringSubmatch(e.message)[2]) // 0 if a signal ended it
		if e.Class == outcome.UnknownExit {
			e.Weight = pattern.Exited
		}
	}
	if n >= 0 && e.Tag.Local < 0 && e.Tag.Rank < 0 {
		e.Tag.Local, e.Child = n, true
	}
}

// failingRank matches a sentence that tells which rank failed, and ends with that, as one that tells how it goes on does not:
// "rank 4: training failed".
var (
	failingRank = lazy.On("rank|Rank|RANK|进程|rocess", `(?i)(?:^|[-:|>\]] ?|\b(?:error|fatal|critical) )\[?(?:rank[ =]?(\d{1,6})(?: ?(?:/|of) ?\d{1,6})?\]?|(?:process|进程) ?(\d{1,6}) ?(?:/|of) ?\d{1,6}|第 ?(\d{1,6}) ?号?进程)[:：]?`+
		` ?(?:[^,;:，；：]{0,60} ?(?:failed|crashed|died)|(?:(?:caught|raised|hit|got|uncaught|unhandled) (?:an? )?(?:\w+ )?)?(?:exception|error)(?: (?:in|at|during|while) [^,;:]{0,40})?`+
		`|[^,;:，；：]{0,40}(?:失败|出错|异常(?:退出)?|崩溃))[.:!。！：]*$`+
		`|\b(?:exception|error|failed|failure|crash(?:ed)?) (?:\w+ ){0,2}(?:on|in|at) rank[ =:]?(\d{1,6})[.:!]*$`)
)

// complains matches the levels of records below which a logger writes an exception.
var complains = lazy.New(`(?i)\b(?:error|critical|fatal|warn(?:ing)?|exception)\b|^[WEF] ?\d{4} `)

// fails matches the levels of records of fatal errors.
var fails = lazy.New(`\b(?:ERROR|CRITICAL|FATAL)\b|^[EF] ?\d{4} `)

// byRecord assigns an exception that a program caught and logged to the rank that its own record names, or the log record
// above it. An exception whose outermost frame is the module's may be uncaught, and then stands below
// an unrelated line; so for these only a record of an error counts.
func (st *stream) byRecord(e *Event) {
	caught := len(e.Stack.Frames) > 0 && e.Stack.Frames[0].Function != "<module>"
	if _, f, ok := logline.CutRank(st.margin); ok {
		e.writtenBy(f)
	} else if f, ok := failedRank(st.above); ok {
		e.writtenBy(f)
	} else if !caught && !fails.MatchString(st.above) {
		return
	} else if f, ok := writerOf(st.above); ok {
		e.writtenBy(f)
	} else if e.Stack.Chain != python.Unchained && st.raised != nil {
		e.Writer = st.raised.Writer
	}
}

func (e *Event) writtenBy(f logline.RankField) { e.Writer, e.World = strconv.Itoa(f.Rank), f.World }

// failedRank returns the rank that a sentence says has failed.
func failedRank(text string) (f logline.RankField, ok bool) {
	g := failingRank.FindStringSubmatch(text)
	if g == nil {
		return f, false
	}
	if _, f, ok = logline.CutRank(text); !ok {
		f.Rank, _ = logline.Number(strings.Join(g[1:], ""))
	}
	return f, true
}

// writerOf returns the rank in the record of an exception.
func writerOf(above string) (f logline.RankField, ok bool) {
	if !complains.MatchString(above) {
		return f, false
	}
	_, f, ok = logline.CutRank(above)
	return f, ok && (f.Form == logline.InBrackets || fails.MatchString(above))
}
