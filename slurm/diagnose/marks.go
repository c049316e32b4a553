package diagnose

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
)

// An elasticEntry is one process in a launcher's account of what failed:
// torchelastic's summary, its log line, or srun's.
type elasticEntry struct {
	off         int64
	raw, text   string
	host        string
	rank, local int
	pid         string
	exit        int // as a shell or torchelastic has it: -9 for signal 9
	at          time.Time
	first       bool // called "Root Cause (first observed failure)"
	open        bool
}

// starts are lines that every attempt of a job prints once, by kind; the
// second one of a kind in a file begins a new attempt.
var starts = []struct {
	kind string
	re   *lazy.Pattern
}{
	{"megatron", lazy.New(`^using world size: \d+, `)}, // megatron/training/arguments.py: rank 0, at every start
	{"script", lazy.New(`^(?:START TIME: |=+ ?(?:START|BEGIN)|(?:Job )?(?:started|starting) (?:at|on) .*\d\d:\d\d:\d\d|Job \d+ on \S+, \d+ nodes)`)},
	{"elastic", lazy.New(`Restarting worker group|Worker group FAILED. \d+/\d+ attempts left|will restart worker group`)},
	{"requeue", lazy.New(`SLURM_RESTART_COUNT=[1-9]|(?:restart|requeue) count:? [1-9]`)},
}

// endings are lines that only a trainer that ended well prints. Scripts echo
// "training finished" whatever happened.
var endings = lazy.New(`^\[after training is done\]|^\[exiting program (?:at|after)|^exiting program (?:at|after) |` +
	`successfully finished training|validation loss at iteration \d+ on (?:test|validation) set|` +
	`^Trainer\.fit.* stopped: .max_steps|reached train_iters|max_steps=\d+. reached|\bterminated normally\b[^,]{0,40}$|` +
	`^ *Normal termination\b|^\s*\(1\) Normal termination \(return value 0\)|^Successfully completed\.$|` +
	`:::MLL.*\brun_stop\b.*"status": "success"`) // LAMMPS's, HTCondor's, LSF's, MLPerf's

// phasesOf are lines that name what the run does between iterations.
var phasesOf = lazy.New(`^\s*(?:saving checkpoint|successfully saved checkpoint|Evaluating (?:on|iter)|loading checkpoint|` +
	`loading distributed checkpoint|> building|> compiling|>>> done|building |done with setup|training \.\.\.|` +
	`> initializ|\[(?:after|before) |validation loss|Storing distributed|> finished|scheduled an async checkpoint|` +
	`setting random|> setting)`)

var (
	argLine   = lazy.New(`^ {2}(\w+) \.{2,} (.*)$`)
	worldLine = lazy.New(`^using world size: (\d+), data-parallel size: (\d+),(?:.*context-parallel size: (\d+),)?.*tensor-model-parallel` +
		` size: (\d+),.*pipeline-model-parallel size: (\d+)`)
	summaryLine  = lazy.New(`^\s{2}(time|host|rank|exitcode|error_file|traceback)\s*: (.*)$`)
	rankLocal    = lazy.New(`^(\d+) \(local_rank: (\d+)\)`)
	exitPid      = lazy.New(`^(-?\d+) (?:\(pid: (\d+)\))?`)
	agentFailed  = lazy.New(`failed \(exitcode: (-?\d+)\) local_rank: (\d+)(?: \(pid: (\d+)\))?`)
	trialsFailed = lazy.New(`^Number of errored trials: [1-9]|\bERROR\b.* Trials did not complete: `) // Ray Tune's
	srunTask     = lazy.New(`^srun: error: (\S+?): tasks? ([\d,\[\]-]+): (.*)$`)
	// mpirunRank is Open MPI's word on a rank that a signal ended.
	mpirunRank = lazy.New(`^(?:mpi\w+|orterun|prterun) noticed that process rank (\d+) with PID \d+ on node (\S+) exited on signal \d+ \((.*?)\)`)
	nodeRankIs = lazy.New(`(?i)\bNODE_?RANK\s*[=:]\s*(\d+)\b.*?\b(?:on|host|node|hostname)\s*[=:]?\s*([\w.-]+)`)
	hostRankIs = lazy.New(`(?i)^([\w.-]+)\s*:?\s+NODE_?RANK\s*[=:]\s*(\d+)\b`)
	ncclHost   = lazy.New(`^(?:\[[^\]]*\] )?([A-Za-z][\w.-]*):(\d+):\d+ \[(\d+)\] `)
	daemonHost = lazy.New(`^slurmstepd-([\w.-]+): `)
	onHost     = lazy.On("ode|ost|ON ", `(?:\b[Nn]ode:? |\b[Hh]ost(?:name)?[:= ]+|\bON )\[?([A-Za-z][\w-]*\d[\w.-]*)|`+
		`\*\*\* (?:JOB|STEP) \S+ ON ([\w.-]+) `)
	failureOn = lazy.On("ode|ODE",
		`(?i)node failure on ([\w,\[\].-]+)|failed on node ([\w.-]+)|nodes? ([\w,\[\].-]*\d[\w,\[\].-]*) (?:is |are )?not responding`)
	nodesLine   = lazy.New(`^(?:NODES|NODELIST|SLURM_(?:JOB_)?NODELIST|Nodes|nodelist)\s*[:=]\s*(\S+)`)
	startMarker = lazy.New(`(?i)^\W*(?:megatron-ops )?(commit|git commit|argv|command|container|image|venv|worktree)\s*[:=]\s*(\S.*)$`)
)

// marks reads a line that says where the run is or who failed. It reports
// whether the line says nothing else.
func (s *scanner) marks(t tag, text, raw string, off int64, h hits) bool {
	m := mark{off: off, text: raw, at: s.now, tag: t}
	if !agentLine(text) {
		s.lastOff = off
	}
	if h.ask&askMarker != 0 && strings.HasPrefix(text, "start: attempt=") && s.nodeStarted(m, text) {
		return true
	}
	if h.ask&askStart != 0 && strings.Contains(text, rendezvousDone) {
		if at, dated := timestamp(text); dated {
			s.moment("rendezvous ", at)
		}
	}
	for _, k := range starts {
		if h.ask&askStart == 0 {
			break
		}
		if len(s.starts[k.kind]) < 1024 && k.re.MatchString(text) {
			s.starts[k.kind] = append(s.starts[k.kind], m)
			s.opening.over = false
			if _, dated := timestamp(text); !dated {
				s.begun = k.kind
			}
			if len(s.starts[k.kind]) > 1 {
				s.counts = map[quota]int{} // a new attempt has its own bounds
			}
			break
		}
	}
	switch {
	case strings.Contains(text, " ....") && argLine.MatchString(text):
		if s.lines > s.listing+2 { // one list of arguments is one phase
			s.shows(t, text, true)
		}
		s.listing = s.lines
		if g := argLine.FindStringSubmatch(text); len(s.args) < 2048 {
			s.args[g[1]] = strings.TrimSpace(g[2])
		}
		return true
	case strings.HasPrefix(text, "using world size: "):
		s.shows(t, text, true)
		if g := worldLine.FindStringSubmatch(text); g != nil {
			for i, name := range []string{"world_size", "data_parallel_size", "context_parallel_size", "tensor_model_parallel_size", "pipeline_model_parallel_size"} {
				if g[i+1] != "" {
					s.args[name] = g[i+1]
				}
			}
		}
		return true
	case h.ask&askEnd != 0 && endings.MatchString(text):
		s.finished = &m
		s.shows(t, text, true)
		return true
	case h.ask&askPhase != 0 && phasesOf.MatchString(text):
		s.doing = m
		s.shows(t, text, true)
		return strings.HasSuffix(text, "...") || strings.HasPrefix(text, "[")
	case strings.HasPrefix(text, "  ") || s.summary.open:
		if s.summaryField(text, raw, off) {
			return true
		}
	}
	if h.ask&askAgent != 0 && strings.Contains(text, "Root Cause (first observed failure)") {
		s.summary = elasticEntry{first: true, open: true, rank: -1, local: -1}
		return true
	}
	if g := find(h.ask&askAgent, agentFailed, text); g != nil {
		code, _ := strconv.Atoi(g[1])
		local, _ := strconv.Atoi(g[2])
		s.failed = &m
		s.died(elasticEntry{off: off, raw: raw, text: text, rank: -1, local: local, pid: g[3], exit: code, at: s.now}, t)
		return true
	}
	if find(h.ask&askAgent, trialsFailed, text) != nil {
		s.failed = &m
	}
	if g := find(h.ask&askTask, srunTask, text); g != nil {
		s.hosts[g[1]]++
		return s.taskEnded(g[1], taskList(g[2]), g[3], t, text, raw, off)
	}
	if g := find(h.ask&askTask, mpirunRank, text); g != nil {
		s.hosts[g[2]]++
		return s.taskEnded(g[2], taskList(g[1]), g[3], t, text, raw, off)
	}
	if g := find(h.ask&askNodeRank, nodeRankIs, text); g != nil {
		s.nodeRank[g[2]] = g[1]
	} else if g := find(h.ask&askNodeRank, hostRankIs, text); g != nil {
		s.nodeRank[g[1]] = g[2]
	}
	if g := find(h.ask&askMarker, startMarker, text); g != nil && len(s.markers) < 64 {
		s.markers[strings.ToLower(g[1])] = g[2]
	}
	if h.ask&askCollective != 0 {
		s.watchdog(t, text, raw, off)
	}
	if h.ask&askProgress != 0 && otherProgress.MatchString(text) {
		return s.otherProgress(m)
	}
	s.shows(t, text, false)
	return false
}

func (s *scanner) otherProgress(m mark) bool {
	s.shows(m.tag, m.text, true)
	s.note(&s.progress, m, s.keep)
	return true
}

// find applies an expression where its guard lets it.
func find(ask guard, re *lazy.Pattern, text string) []string {
	if ask == 0 {
		return nil
	}
	return re.FindStringSubmatch(text)
}

// seen notes who speaks, and from which node.
func (s *scanner) seen(t tag, text string, h hits) {
	if t.label >= 0 {
		s.labels[t.label] = true
	}
	if t.local >= 0 {
		s.locals[t.local] = true
	}
	if t.rank >= 0 {
		s.ranks[t.rank] = true
		if t.label >= 0 || t.local >= 0 {
			s.bases[tag{label: t.label, local: t.local, rank: -1, host: t.host}] = t.rank
		}
	}
	if h.ask&(askNode|askNodes) == 0 {
		return
	}
	if g := ncclHost.FindStringSubmatch(text); g != nil && g[1] != "localhost" {
		s.hosts[g[1]]++
		if a := ownAddress.FindStringSubmatch(text); a != nil && len(s.addresses) < 1<<12 {
			s.addresses[a[2]] = g[1]
		}
		if len(s.hostOf) < 1<<16 {
			s.hostOf[t] = g[1]
		}
		return
	}
	if g := find(h.ask&askNodes, nodesLine, text); g != nil {
		for _, n := range expandNodes(g[1]) {
			s.hosts[n]++
		}
		return
	}
	if n := nodeIn(text); n != "" {
		s.hosts[n]++
	}
}

// nodeIn returns the node that a line of NCCL, Slurm or Megatron names as its
// own or as the one at fault.
func nodeIn(text string) string {
	if g := failureOn.FindStringSubmatch(text); g != nil {
		for _, list := range g[1:] {
			if nodes := expandNodes(list); len(nodes) == 1 {
				return nodes[0]
			}
		}
	}
	if g := srunTask.FindStringSubmatch(text); g != nil {
		return g[1]
	}
	if g := ncclHost.FindStringSubmatch(text); g != nil && g[1] != "localhost" {
		return g[1]
	}
	if g := daemonHost.FindStringSubmatch(text); g != nil {
		return g[1]
	}
	if g := onHost.FindStringSubmatch(text); g != nil {
		return strings.TrimRight(g[1]+g[2], ".")
	}
	return ""
}

// summaryField reads one field of torchelastic's summary
// (torch/distributed/elastic/multiprocessing/errors/__init__.py).
func (s *scanner) summaryField(text, raw string, off int64) bool {
	g := summaryLine.FindStringSubmatch(text)
	if g == nil {
		return false
	}
	e := &s.summary
	switch g[1] {
	case "time":
		*e = elasticEntry{first: e.first && e.open, open: true, rank: -1, local: -1}
		e.at, _ = timestamp(g[2])
	case "host":
		e.host = strings.TrimSpace(g[2])
		s.hosts[e.host]++
	case "rank":
		if r := rankLocal.FindStringSubmatch(g[2]); r != nil {
			e.rank, _ = strconv.Atoi(r[1])
			e.local, _ = strconv.Atoi(r[2])
			s.local0 = append(s.local0, e.rank-e.local)
		}
	case "exitcode":
		if c := exitPid.FindStringSubmatch(g[2]); c != nil {
			e.exit, _ = strconv.Atoi(c[1])
			e.pid = c[2]
			e.off, e.raw, e.text = off, raw, text
			s.failed = &mark{off: off, text: raw, at: e.at}
			s.died(*e, noTag)
		}
	case "traceback":
		e.open = false
		return !strings.Contains(text, header)
	}
	return true
}

// signals is what a process that died of a signal says of the cause, where
// nothing else does. 6 and 15 are how launchers and watchdogs end others.
var signals = map[int]struct {
	class  string
	weight int
}{
	9: {HostOOM, death}, 7: {ShmBusError, death + 6}, 11: {Segfault, death + 6}, 8: {Segfault, death + 5}, 4: {Segfault, death + 5},
	6: {Segfault, aborted}, 15: {UnknownExit, symptom}, 2: {SlurmCancelled, ended - 5}, 1: {UnknownExit, symptom}, 3: {UnknownExit, symptom},
}

// aborted is the weight of SIGABRT: watchdogs end their own process so.
const aborted = 15

// exited is the weight of a plain exit code other than zero.
const exited = 12

// exitClass maps an exit code as shells and torchelastic have it.
func exitClass(code int) (class string, weight int) {
	if code > 128 && code < 160 {
		code = -(code - 128)
	}
	if sig, ok := signals[-code]; ok && code < 0 {
		return sig.class, sig.weight
	}
	switch code {
	case 126, 127:
		return EnvLaunch, exited
	}
	return UnknownExit, exited
}

// died notes a process that a launcher's account says has failed.
func (s *scanner) died(entry elasticEntry, t tag) {
	s.elastic = append(s.elastic, entry)
	class, weight := exitClass(entry.exit)
	e := &event{
		off:    entry.off,
		raw:    entry.raw,
		text:   strings.TrimSpace(entry.text),
		tag:    t,
		class:  class,
		weight: weight,
		node:   entry.host,
		agent:  true,
		exit:   entry.exit,
		pid:    entry.pid,
		first:  entry.first,
	}
	if entry.rank >= 0 {
		e.tag.rank = entry.rank
	}
	if entry.local >= 0 {
		e.tag.local = entry.local
	}
	s.add(e)
	if !entry.at.IsZero() {
		e.before, e.after = entry.at, entry.at
	}
}

// ownExit is how scripts, batch systems and DeepSpeed's launcher say with which
// code a program ended. The local rank stands in the command line that
// DeepSpeed repeats.
var ownExit = lazy.New(`(?i)(?:--local_rank=(\d+).*)?\bexit(?:s|ed)?(?: with)?(?: exit| return)?(?:[ -]code| status)?(?: ?[:=] ?| )(-?\d{1,3})\b`)

// interrupted is how launchers and programs say that somebody stopped them from a
// terminal.
var interrupted = lazy.New(`(?i)\breceived (?:a )?(?:signal )?(?:SIGINT|signal 2)\b.*\b(?:exit|terminat|stop|quit)|^command killed by keyboard interrupt$` +
	`|(?:^\W*|[-\]:|>] )(?:(?:detected|caught|received) )?(?:a )?keyboard ?interrupt(?:ion)?(?: (?:detected|caught|received))?(?:\W*$|[.,;!] ?[a-z])` +
	`|\b(?:training|run|execution|program|script)\b.{0,12}\b(?:stopped|interrupted|cancell?ed|aborted) by (?:the )?user\b`)

// exited notes a program's exit code that a line of its launcher or script
// tells, unless it is 0.
func (s *scanner) exited(t tag, g []string, text, raw string, off int64) {
	code, _ := strconv.Atoi(g[2])
	if code == 0 {
		return
	}
	local := -1
	if g[1] != "" {
		local, _ = strconv.Atoi(g[1])
	}
	s.failed = &mark{off: off, text: raw, at: s.now, tag: t}
	s.died(elasticEntry{off: off, raw: raw, text: text, rank: -1, local: local, exit: code, at: s.now}, t)
}

var exitCode = lazy.New(`[Ee]xited with exit code (\d+)|[Ee]xit(?:ed with)? (?:code|status):? (\d+)`)

// deaths are srun's words on tasks that a signal ended, as strsignal(3) has them.
var deaths = []struct {
	words, class string
	weight, exit int
}{
	{"out of memory", HostOOM, fact - 1, -9},
	{"killed", HostOOM, death, -9},
	{"segmentation fault", Segfault, death + 6, -11},
	{"bus error", ShmBusError, death + 6, -7},
	{"floating point", Segfault, death + 5, -8},
	{"illegal instruction", Segfault, death + 5, -4},
	{"aborted", Segfault, aborted, -6},
	{"terminated", UnknownExit, symptom, -15},
}

// taskEnded reads srun's word on tasks that ended: a signal by its name as
// strsignal(3) has it, or an exit code.
func (s *scanner) taskEnded(node string, tasks []int, how string, t tag, text, raw string, off int64) bool {
	if g := exitCode.FindStringSubmatch(how); g != nil {
		code, _ := strconv.Atoi(g[1] + g[2])
		if code == 0 {
			return true
		}
		class, weight := exitClass(code)
		s.failed = &mark{off: off, text: raw, at: s.now, tag: t}
		s.add(&event{off: off, raw: raw, text: text, tag: t, class: class, weight: weight, node: node, tasks: tasks, agent: true, exit: code})
		return true
	}
	class, weight, exit := UnknownExit, symptom, 0
	for _, d := range deaths {
		if strings.HasPrefix(strings.ToLower(how), d.words) {
			class, weight, exit = d.class, d.weight, d.exit
			break
		}
	}
	s.failed = &mark{off: off, text: raw, at: s.now, tag: t}
	first := len(tasks) == 1 && toldToEnd(exit) && !slices.ContainsFunc(s.events, endsJob) // nobody had ended the step yet
	s.add(&event{off: off, raw: raw, text: text, tag: t, class: class, weight: weight, node: node, tasks: tasks, agent: true, exit: exit, first: first})
	return true
}

// taskList reads srun's task list: "3", "0,2", "0-3,7", "[0-3]".
func taskList(s string) (tasks []int) {
	for _, part := range strings.Split(strings.Trim(s, "[]"), ",") {
		a, b, isRange := strings.Cut(part, "-")
		lo, ok1 := number(a)
		hi, ok2 := number(b)
		if !isRange {
			hi, ok2 = lo, ok1
		}
		for n := lo; ok1 && ok2 && n <= hi && len(tasks) < 1<<14; n++ {
			tasks = append(tasks, n)
		}
	}
	return tasks
}

// expandNodes expands the simple hostlists that logs print; what it cannot
// read it leaves out.
func expandNodes(list string) (nodes []string) {
	for len(list) > 0 && len(nodes) < 4096 {
		depth, end := 0, len(list)
		for i := 0; i < len(list); i++ {
			if list[i] == '[' {
				depth++
			} else if list[i] == ']' {
				depth--
			} else if list[i] == ',' && depth == 0 {
				end = i
				break
			}
		}
		item := list[:end]
		list = strings.TrimPrefix(list[end:], ",")
		before, rest, ranged := strings.Cut(item, "[")
		if !ranged {
			if isWord(strings.ReplaceAll(item, ".", "")) {
				nodes = append(nodes, item)
			}
			continue
		}
		inside, after, _ := strings.Cut(rest, "]")
		for _, part := range strings.Split(inside, ",") {
			a, b, isRange := strings.Cut(part, "-")
			if !isRange {
				b = a
			}
			lo, ok1 := number(a)
			hi, ok2 := number(b)
			for n := lo; ok1 && ok2 && n <= hi && len(nodes) < 4096; n++ {
				digits := strconv.Itoa(n)
				for len(digits) < len(a) {
					digits = "0" + digits
				}
				nodes = append(nodes, before+digits+after)
			}
		}
	}
	return nodes
}
