package scan

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logline"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/pattern"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/python"
)

// An ElasticEntry is one failed process in a launcher's report: torchelastic's summary or log line, or
// srun's.
type ElasticEntry struct {
	Off         int64
	raw, text   string
	Host        string
	Rank, Local int
	Task        int // by srun's label; -1 without one
	Pid         string
	Exit        int // as in shells and torchelastic: -9 for signal 9
	At          time.Time
	first       bool // under "Root Cause (first observed failure)"
	open        bool // that heading has come, but no field yet
}

// starts are lines, by kind, that each attempt of a job prints once. The second line of a kind in a
// file begins a new attempt.
var starts = []struct {
	kind string
	re   *lazy.Pattern
}{
	{"megatron", lazy.New(`^using world size: \d+, `)}, // megatron/training/arguments.py: rank 0 prints it at every start
	{"script", lazy.New(`^(?:START TIME: |=+ ?(?:START|BEGIN)|(?:Job )?(?:started|starting) (?:at|on) .*\d\d:\d\d:\d\d|Job \d+ on \S+, \d+ nodes)`)},
	{Restarted, lazy.New(`Restarting worker group|Worker group FAILED. \d+/\d+ attempts left|will restart worker group`)},
	{Requeued, lazy.New(`SLURM_RESTART_COUNT=[1-9]|(?:restart|requeue) count:? [1-9]`)},
}

// endings match lines that only a trainer that completed prints. Scripts echo "training finished" in
// any case. Megatron-LM's own is whole, with its date, behind a logger's level, time, source line or rank.
var endings = lazy.New(`^\[after training is done\]|^\[exiting program (?:at|after)|^exiting program (?:at|after) |` +
	`^[^"'\x60]{0,80}(?:\bINFO\b|:\d|\b[Rr]ank\b)[^"'\x60]{0,80}[\])>:|-] +\[(?:after training is done|exiting program at [^\]]*)\] datetime: \d|` +
	`successfully finished training|validation loss at iteration \d+ on (?:test|validation) set|` +
	`^Trainer\.fit.* stopped: .max_steps|reached train_iters|max_steps=\d+. reached|\bterminated normally\b[^,]{0,40}$|` +
	`^ *Normal termination\b|^\s*\(1\) Normal termination \(return value 0\)|^Successfully completed\.$|` +
	`:::MLL.*\brun_stop\b.*"status": "success"`) // LAMMPS, HTCondor, LSF, MLPerf

// ofScript matches those that LSF and HTCondor write when a job's script has ended with 0.
var ofScript = lazy.New(`^Successfully completed\.$|^\s*\(1\) Normal termination \(return value 0\)`)

// OfScript reports whether a message of a run that completed is a batch system's, about the script.
func OfScript(m *Mark) bool { return ofScript.MatchString(m.Text) }

// phasesOf match lines that name the run's work between iterations.
var phasesOf = lazy.New(`^\s*(?:saving checkpoint|successfully saved checkpoint|Evaluating (?:on|iter)|loading checkpoint|` +
	`loading distributed checkpoint|> building|> compiling|>>> done|building |done with setup|training \.\.\.|` +
	`> initializ|\[(?:after|before) |validation loss|Storing distributed|> finished|scheduled an async checkpoint|` +
	`setting random|> setting)`)

var (
	argLine   = lazy.New(`^ {2}(\w+) \.{2,} (.*)$`)
	worldLine = lazy.New(`^using world size: (\d+), data-parallel size: (\d+),(?:.*context-parallel size: (\d+),)?.*tensor-model-parallel` +
		` size: (\d+)(?:,.*pipeline-model-parallel size: (\d+))?`)
	summaryLine  = lazy.New(`^\s{2}(time|host|rank|exitcode|error_file|traceback)\s*: (.*)$`)
	rankLocal    = lazy.New(`^(\d+) \(local_rank: (\d+)\)`)
	exitPid      = lazy.New(`^(-?\d+) (?:\(pid: (\d+)\))?`)
	trialsFailed = lazy.New(`^Number of errored trials: [1-9]|\bERROR\b.* Trials did not complete: `) // Ray Tune
	srunTask     = lazy.New(`^srun: error: (\S+?): tasks? ([\d,\[\]-]+): (.*)$`)
	nodeRankIs   = lazy.New(`(?i)\bNODE_?RANK\s*[=:]\s*(\d+)\b.*?\b(?:on|host|node|hostname)\s*[=:]?\s*([\w.-]+)`)
	hostRankIs   = lazy.New(`(?i)^([\w.-]+)\s*:?\s+NODE_?RANK\s*[=:]\s*(\d+)\b`)
	// NCCLHost matches the head of NCCL's own lines: node, process and local device.
	NCCLHost   = lazy.New(`^(?:\[[^\]]*\] )?([A-Za-z][\w.-]*):(\d+):\d+ \[(\d+)\] `)
	daemonHost = lazy.New(`^slurmstepd-([\w.-]+): |^(?:[A-Z][a-z]{2} +\d+ [\d:.]+|\d{4}-\d\d-\d\dT\S+) ([\w.-]+) kernel: `) // or syslog's
	onHost     = lazy.On("ode|ost|ON ", `(?:\b[Nn]ode:? |\b[Hh]ost(?:name)?[:= ]+|\bON )\[?([A-Za-z][\w-]*\d[\w.-]*)|`+
		`\*\*\* (?:JOB|STEP) \S+ ON ([\w.-]+) `)
	// FailureOn matches Slurm's message that names a failed node.
	FailureOn = lazy.On("ode|ODE",
		`(?i)(?:node|prolog) failure on (?:node )?([\w,\[\].-]+)|failed on node ([\w.-]+)|nodes? ([\w,\[\].-]*\d[\w,\[\].-]*) (?:is |are )?not responding`)
	nodesLine   = lazy.New(`^(?:NODES|NODELIST|SLURM_(?:JOB_)?NODELIST|Nodes|nodelist)\s*[:=]\s*(\S+)`)
	startMarker = lazy.New(`(?i)^\W*(?:megatron-ops )?(commit|git commit|argv|command|container|image|venv|worktree)\s*[:=]\s*(\S.*)$`)
)

// marks handles a line about the state of the run or a failed process. It reports whether the line
// needs no further handling.
func (s *scanner) marks(t logline.Tag, text, raw string, off int64, h pattern.Hits) bool {
	m := Mark{Off: off, Text: raw, At: s.now, Tag: t}
	if !pattern.AgentLine(text) {
		s.lastOff = off
	}
	if h.Ask&pattern.AskMarker != 0 && strings.HasPrefix(text, "start: attempt=") && s.nodeStarted(m, text) {
		return true
	}
	if h.Ask&pattern.AskStart != 0 && strings.Contains(text, rendezvousDone) {
		if at, dated := logline.ParseTime(text); dated {
			s.moment("rendezvous ", at)
		}
	}
	said := text
	if h.Ask&(pattern.AskStart|pattern.AskEnd|pattern.AskPhase) != 0 {
		said = logline.CutLogger(text)
	}
	for _, k := range starts {
		if h.Ask&pattern.AskStart == 0 {
			break
		}
		if len(s.Starts[k.kind]) < 1024 && k.re.MatchString(said) {
			s.Starts[k.kind] = append(s.Starts[k.kind], m)
			s.opening.over = false
			if _, dated := logline.ParseTime(text); !dated {
				s.begun = k.kind
			}
			if len(s.Starts[k.kind]) > 1 {
				s.counts = map[quota]int{} // a new attempt has its own quotas
			}
			break
		}
	}
	switch {
	case strings.Contains(text, " ....") && argLine.MatchString(text):
		if s.Lines > s.listing+2 { // a list of arguments is one phase
			s.shows(t, text, true)
		}
		s.listing = s.Lines
		if g := argLine.FindStringSubmatch(text); len(s.Args) < 2048 {
			s.Args[g[1]] = strings.TrimSpace(g[2])
		}
		return true
	case strings.HasPrefix(said, "using world size: "):
		s.shows(t, text, true)
		if g := worldLine.FindStringSubmatch(said); g != nil {
			for i, name := range []string{"world_size", "data_parallel_size", "context_parallel_size", "tensor_model_parallel_size", "pipeline_model_parallel_size"} {
				if g[i+1] != "" {
					s.Args[name] = g[i+1]
				}
			}
		}
		return true
	case h.Ask&pattern.AskEnd != 0 && endings.MatchString(said):
		if s.Finished == nil || !OfScript(&m) {
			s.Finished = new(m)
		}
		s.shows(t, text, true)
		return true
	case h.Ask&pattern.AskPhase != 0 && phasesOf.MatchString(said):
		s.Doing = m
		s.shows(t, text, true)
		return strings.HasSuffix(said, "...") || strings.HasPrefix(said, "[")
	case strings.HasPrefix(text, "  "):
		if s.summaryField(m.Tag, text, raw, off) {
			return true
		}
	}
	if h.Ask&pattern.AskAgent != 0 && strings.Contains(text, "Root Cause (first observed failure)") {
		s.summary = ElasticEntry{open: true}
		return true
	}
	if s.agents.tell(s, m, text, h) {
		return true
	}
	if find(h.Ask&pattern.AskAgent, trialsFailed, text) != nil {
		s.Failed = new(m)
	}
	if g := find(h.Ask&pattern.AskTask, srunTask, text); g != nil {
		s.Hosts[g[1]]++
		return s.taskEnded(g[1], TaskList(g[2]), g[3], t, text, raw, off)
	}
	if h.Ask&pattern.AskTask != 0 && s.mpirunTells(t, text, raw, off) {
		return true
	}
	if g := find(h.Ask&pattern.AskNodeRank, nodeRankIs, text); g != nil {
		s.NodeRank[g[2]] = g[1]
	} else if g := find(h.Ask&pattern.AskNodeRank, hostRankIs, text); g != nil {
		s.NodeRank[g[1]] = g[2]
	}
	if h.Ask&pattern.AskProcess != 0 {
		s.processes(t, text)
	}
	if g := find(h.Ask&pattern.AskMarker, startMarker, text); g != nil && len(s.Markers) < 64 {
		s.Markers[strings.ToLower(g[1])] = g[2]
	}
	if h.Ask&pattern.AskCollective != 0 {
		s.watchdog(t, text, raw, off)
	}
	if h.Ask&pattern.AskProgress != 0 && s.matches(otherProgress, text) {
		return s.otherProgress(m)
	}
	s.shows(t, text, false)
	return false
}

func (s *scanner) otherProgress(m Mark) bool {
	s.shows(m.Tag, m.Text, !s.redraws(m.Text))
	s.note(&s.Progress, m, s.keep)
	return true
}

// find applies an expression if its guard is set.
func find(ask pattern.Guard, re *lazy.Pattern, text string) []string {
	if ask == 0 {
		return nil
	}
	return re.FindStringSubmatch(text)
}

// summaryField parses one field of torchelastic's summary
// (torch/distributed/elastic/multiprocessing/errors/__init__.py).
func (s *scanner) summaryField(t logline.Tag, text, raw string, off int64) bool {
	g := summaryLine.FindStringSubmatch(text)
	if g == nil {
		return false
	}
	e := &s.summary
	switch g[1] {
	case "time":
		*e = ElasticEntry{first: e.open, Rank: -1, Local: -1}
		e.At, _ = logline.ParseTime(g[2])
	case "host":
		e.Host = strings.TrimRight(g[2], " .") // a fully qualified name may end with the root's dot
		s.Hosts[e.Host]++
	case "rank":
		if r := rankLocal.FindStringSubmatch(g[2]); r != nil {
			e.Rank, _ = strconv.Atoi(r[1])
			e.Local, _ = strconv.Atoi(r[2])
			s.Local0 = append(s.Local0, e.Rank-e.Local)
		}
	case "exitcode":
		if c := exitPid.FindStringSubmatch(g[2]); c != nil {
			e.Exit, _ = strconv.Atoi(c[1])
			e.Pid = c[2]
			e.Off, e.raw, e.text = off, raw, text
			s.Failed = &Mark{Off: off, Text: raw, At: e.At}
			s.died(*e, logline.Tag{Label: t.Label, Local: -1, Rank: -1})
		}
	case "traceback":
		return !strings.Contains(text, python.Header)
	}
	return true
}

// signals maps the signal that ended a process to a class and weight, for processes of which nothing
// else is known. Launchers and watchdogs end other processes by 6 and 15.
var signals = map[int]struct {
	class  string
	weight int
}{
	9: {outcome.HostOOM, pattern.Death}, 7: {outcome.ShmBusError, pattern.Death + 6}, 11: {outcome.Segfault, pattern.Death + 6},
	8: {outcome.Segfault, pattern.Death + 5}, 4: {outcome.Segfault, pattern.Death + 5}, 6: {outcome.Segfault, pattern.Aborted},
	15: {outcome.UnknownExit, pattern.Symptom}, 2: {outcome.SlurmCancelled, pattern.Ended - 5},
	1: {outcome.UnknownExit, pattern.Symptom}, 3: {outcome.UnknownExit, pattern.Symptom},
}

// exitClass maps an exit code, as shells and torchelastic write it, to a class and weight.
func exitClass(code int) (class string, weight int) {
	switch {
	case code > 128 && code < 160:
		code = -(code - 128)
	case code > 240 && code < 253: // sys.exit of a negative signal number, as in DeepSpeed's launcher
		code -= 256
	}
	if sig, ok := signals[-code]; ok {
		return sig.class, sig.weight
	}
	switch code {
	case 126, 127:
		return outcome.EnvLaunch, pattern.Exited
	}
	if code < 0 && code != -13 { // no launcher sends it, and no lost peer brings it about; SIGPIPE does follow from a reader's end
		return outcome.UnknownExit, pattern.Aborted
	}
	return outcome.UnknownExit, pattern.Exited
}

// died records a process that a launcher reports as failed.
func (s *scanner) died(entry ElasticEntry, t logline.Tag) {
	entry.Task = t.Label
	if _, dated := logline.ParseTime(entry.raw); dated && entry.At.IsZero() { // else it is some time after the last known one
		entry.At = s.now
	}
	if entry.Exit == -9 && slices.Contains(s.agents.forced, entry.Pid) {
		entry.Exit = -15 // the launcher killed it because it ignored SIGTERM, so memory is not the reason
	}
	s.Elastic = append(s.Elastic, entry)
	class, weight := exitClass(entry.Exit)
	e := &Event{
		Off:    entry.Off,
		Raw:    entry.raw,
		Text:   strings.TrimSpace(entry.text),
		Tag:    t,
		Class:  class,
		Weight: weight,
		Node:   entry.Host,
		Agent:  true,
		Exit:   entry.Exit,
		Pid:    entry.Pid,
		First:  entry.first,
	}
	if entry.Rank >= 0 {
		e.Tag.Rank = entry.Rank
	}
	if entry.Local >= 0 {
		e.Tag.Local = entry.Local
	}
	s.add(e)
	if !entry.At.IsZero() {
		e.Before, e.After = entry.At, entry.At
		s.waiting = slices.DeleteFunc(s.waiting, func(o *Event) bool { return o == e }) // its time is known
	}
}

// ownExit matches the exit code of a program in messages of scripts, batch systems and DeepSpeed's
// launcher, but not srun's option --kill-on-bad-exit=1. DeepSpeed repeats the command line of the
// process that it started last, whichever failed; so that process's local rank is known only if it is
// 0, the first.
var ownExit = lazy.New(`(?i)(?:--local_rank=(0)\b.*)?(?:^|[^\w-])exit(?:s|ed)?(?: with)?(?: exit| return)?(?:[ -]code| status)?(?: ?[:=]\s*| )(-?\d{1,3})\b`)

// interrupted matches messages of launchers and programs that somebody stopped them from a terminal.
var interrupted = lazy.New(`(?i)\breceived SIGINT\b.*\bexit|^command killed by keyboard interrupt$` +
	`|(?:^\W*|[-\]:|>] )(?:(?:detected|caught|received) )?keyboard ?interrupt(?:ion)?(?: \w+)?(?:\W*$|[.,;!] ?[a-z])` +
	`|\b` + wholeRun + `\b.{0,12}\b(?:stopped|interrupted|cancell?ed|aborted) by (?:the )?user\b`)

// exited records the exit code of a program in a line of its launcher or script, unless it is 0.
func (s *scanner) exited(t logline.Tag, g []string, text, raw string, off int64) {
	code, _ := strconv.Atoi(g[2])
	if code == 0 {
		return
	}
	local := -1
	if g[1] != "" {
		local = 0
	}
	s.Failed = &Mark{Off: off, Text: raw, At: s.now, Tag: t}
	s.died(ElasticEntry{Off: off, raw: raw, text: text, Rank: -1, Local: local, Exit: code}, t)
}

var exitCode = lazy.New(`[Ee]xited with exit code (\d+)|[Ee]xit(?:ed with)? (?:code|status):? (\d+)`)

// deaths are srun's words for the signals that ended tasks, as in strsignal(3).
var deaths = map[string]int{
	"killed": 9, "segmentation fault": 11, "bus error": 7, "floating point": 8, "illegal instruction": 4, "aborted": 6, "terminated": 15,
	"user defined signal 1": 10, "user defined signal 2": 12,
}

// taskEnded records srun's report on tasks that ended by a signal, named as in strsignal(3), or with an
// exit code.
func (s *scanner) taskEnded(node string, tasks []int, how string, t logline.Tag, text, raw string, off int64) bool {
	if g := exitCode.FindStringSubmatch(how); g != nil {
		code, _ := strconv.Atoi(g[1] + g[2])
		if code == 0 {
			return true
		}
		class, weight := exitClass(code)
		s.Failed = &Mark{Off: off, Text: raw, At: s.now, Tag: t}
		s.add(&Event{Off: off, Raw: raw, Text: text, Tag: t, Class: class, Weight: weight, Node: node, Tasks: tasks, Agent: true, Exit: code})
		return true
	}
	class, weight, exit := outcome.UnknownExit, pattern.Symptom, 0
	how = strings.ToLower(how)
	for words, signal := range deaths {
		if strings.HasPrefix(how, words) {
			exit = -signal
			class, weight = exitClass(exit)
		}
	}
	if strings.HasPrefix(how, "out of memory") {
		class, weight, exit = outcome.HostOOM, pattern.Fact-1, -9
	}
	s.Failed = &Mark{Off: off, Text: raw, At: s.now, Tag: t}
	first := len(tasks) == 1 && ToldToEnd(exit) && !slices.ContainsFunc(s.Events, EndsJob) // nothing had ended the step yet
	s.add(&Event{Off: off, Raw: raw, Text: text, Tag: t, Class: class, Weight: weight, Node: node, Tasks: tasks, Agent: true, Exit: exit, First: first})
	return true
}

// TaskList parses srun's list of tasks: "3", "0,2", "0-3,7", "[0-3]".
func TaskList(s string) (tasks []int) {
	for _, part := range strings.Split(strings.Trim(s, "[]"), ",") {
		a, b, isRange := strings.Cut(part, "-")
		lo, ok1 := logline.Number(a)
		hi, ok2 := logline.Number(b)
		if !isRange {
			hi, ok2 = lo, ok1
		}
		for n := lo; ok1 && ok2 && n <= hi && len(tasks) < 1<<14; n++ {
			tasks = append(tasks, n)
		}
	}
	return tasks
}

// ExpandNodes expands the simple hostlists that logs print. It leaves out what it cannot parse.
func ExpandNodes(list string) (nodes []string) {
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
			if logline.IsWord(strings.ReplaceAll(item, ".", "")) {
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
			lo, ok1 := logline.Number(a)
			hi, ok2 := logline.Number(b)
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

// ownAddress matches the line with which NCCL prints a node's address at its start.
var ownAddress = lazy.New(`(?:Using|OOB|interface) (?:\[\d+\])?([A-Za-z][\w.-]*):([0-9a-f.:]+)<\d+>`)
