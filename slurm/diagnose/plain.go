package diagnose

import (
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
)

// plain looks for patterns in a line that belongs to no exception.
func (s *scanner) plain(st *stream, t tag, text, raw string, off int64, h hits) {
	if st.usage.has(text) {
		if st.usage.lines == 1 {
			st.usage.head = mark{off: off, text: raw, at: s.now, tag: t}
		}
		return
	}
	if len(h.rows) == 0 && h.ask&askExit == 0 {
		return
	}
	var p *compiled
	if !commandLine.MatchString(text) && !cleanUp.MatchString(text) {
		said := text
		if at := aCommand.FindStringIndex(text); at != nil {
			said = text[:at[0]]
		}
		p = s.table.best(said, h)
	}
	if p == nil && h.ask&askExit == 0 {
		return // most lines that hold a row's literal are none of its forms
	}
	f := formOf(text)
	if f == inert {
		return
	}
	if p == nil || p.weight <= exited {
		if g := find(h.ask&askExit, ownExit, text); g != nil && f < report {
			s.exited(t, g, text, raw, off)
			return
		}
		if h.ask&askExit != 0 && interrupted.MatchString(text) {
			s.exited(t, []string{"", "", "-2"}, text, raw, off)
			return
		}
	}
	if p == nil || p.class == Filesystem && ofFabric.MatchString(text) {
		return
	}
	if strings.HasSuffix(st.previous, ":") && pythonWarns.MatchString(st.previous) {
		return // the second line of a warning
	}
	e := &event{off: off, raw: raw, text: text, tag: t, class: p.class, weight: p.weight, form: f, agent: agentLine(text)}
	switch {
	case p.weight >= fact-1 && !factForm.MatchString(text):
		e.weight = specific
	case p.weight >= fact-1, lastRetry(text), e.agent:
		e.form = statement
	}
	s.add(e)
	if t == noTag && (isEnd(e.class) && !e.stepOnly() || complaint.MatchString(text)) {
		s.opening.over = true
	}
}

// commandLine is a command that a launcher repeats as a Python list: its words
// are paths and flags, and say nothing of what happened.
var commandLine = lazy.New(`\['[^']*', '-`)

// aCommand is a program with its options, as scripts and launchers repeat it: what
// is said of it stands before.
var aCommand = lazy.On(" -", `(?:^|[\s"'=(])(?:\S*/)?(?:python[\d.]*|torchrun|accelerate|deepspeed|srun|mpirun|bash|sh) (?:\S+ ){0,8}--?[a-z]`)

// pythonWarns is how Python prints a warning, whose text may go on in the next line.
var pythonWarns = lazy.New(`\.py:\d+: \w*Warning:(?: |$)`)

// cleanUp is pyxis on one of its own processes: it says so of the clean-up after
// any job too, and says more where a container did not start.
var cleanUp = lazy.New(`pyxis: child \d+ (?:failed|terminated)`)

// factForm is the form in which the kernel, the driver, CUDA, Slurm and its
// plugins state facts about hardware and memory.
var factForm = lazy.New(`NVRM|\b[Xx]id\b|\bSXid\b|^\[ *\d+\.\d+\]|kernel: |slurm\w*[-:\[(. ]|^srun: |^\[?\d{4}-\d\d-\d\dT\S+\]? (?:\[|` +
	`error:)|CUDA error|cuda(?:Error|_error)|NCCL WARN|node-check: |` +
	`Unable to determine the device handle|GPU is lost|fallen off the bus|mce:|pcieport|nvidia-(?:nvswitch|fabricmanager)|` +
	`[Oo]ut of memory: Kill|oom-kill:|invoked oom-killer|[Mm]emory cgroup out of memory|` +
	`[Ee]xceeded (?:job|step|virtual )?\s*memory limit|[Mm]emory limit|^TERM_[A-Z]+: |^=>> PBS: `)
