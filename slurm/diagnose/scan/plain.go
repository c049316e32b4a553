package scan

import (
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logline"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/pattern"
)

// plain matches patterns against a line that belongs to no exception.
func (s *scanner) plain(st *stream, t logline.Tag, text, raw string, off int64, h pattern.Hits) {
	if st.usage.has(text) {
		if st.usage.lines == 1 {
			st.usage.head = Mark{Off: off, Text: raw, At: s.now, Tag: t}
		}
		return
	}
	if strings.HasPrefix(text, "  what():  ") && strings.Contains(st.previous, " instance of 'c10::") && s.table.Match(text) == nil {
		s.scriptEnded(Mark{Off: off, Text: raw, Tag: t}) // it is the message of PyTorch's own exception, whatever it says
		return
	}
	if len(h.Rows) == 0 && h.Ask&pattern.AskExit == 0 {
		return
	}
	var p *pattern.Compiled
	if !commandLine.MatchString(text) && !cleanUp.MatchString(text) {
		said := text
		if at := aCommand.FindStringIndex(text); at != nil {
			said = text[:at[0]]
		}
		if at := whatMayBe.FindStringIndex(said); at != nil {
			said = said[:at[0]]
		}
		if at := accountedStep.FindStringIndex(text); at != nil && stepState.MatchString(text[at[1]:]) {
			said = text[at[1]:]
		}
		if p = s.table.Best(said, h); p != nil && len(said) < len(text) {
			p = s.table.Match(said) // the literals found may be in the part that was cut off
		}
	}
	if p == nil && h.Ask&pattern.AskExit == 0 {
		return // most lines with a row's literal do not match the row
	}
	f := pattern.FormOf(text)
	if f == pattern.Inert {
		return
	}
	if p == nil || p.Weight <= pattern.Exited {
		if g := find(h.Ask&pattern.AskExit, ownExit, text); g != nil && f < pattern.Report {
			s.exited(t, g, text, raw, off)
			return
		}
		if h.Ask&pattern.AskExit != 0 && interrupted.MatchString(text) {
			s.exited(t, []string{"", "", "-2"}, text, raw, off)
			s.opening.over = s.opening.over || t == logline.NoTag
			return
		}
	}
	if p == nil || p.Class == outcome.Filesystem && pattern.OfFabric.MatchString(text) {
		return
	}
	if st.amidNote() {
		return
	}
	e := &Event{Off: off, Raw: raw, Text: text, Tag: t, Class: p.Class, Weight: p.Weight, Form: f, Agent: pattern.AgentLine(text)}
	if st.saidMore(e) && f == pattern.Bare {
		e.Form = pattern.Statement
	}
	switch {
	case p.Class == outcome.ImportError && f == pattern.Statement && strings.Contains(text, "ould not import "):
		e.Form = pattern.Bare // its program handled the error, and may have gone on
	case p.Weight >= pattern.Fact-1 && !factForm.MatchString(text):
		e.Weight = pattern.Specific
	case p.Weight >= pattern.Fact-1, pattern.LastRetry(text), e.Agent, DeathSignal.MatchString(text), p.Class == outcome.Hang:
		e.Form = pattern.Statement
	}
	s.add(e)
	if t == logline.NoTag && (IsEnd(e.Class) && !e.StepOnly() || Complaint.MatchString(text)) {
		s.opening.over = true
	}
}

// saidMore reports whether a line continues the message of an exception: the exception's line ended
// with a colon, or the line above is the one that PyTorch writes before NCCL's last warning
// (torch/csrc/distributed/c10d/NCCLUtils.cpp). A line that says more supersedes the exception itself.
func (st *stream) saidMore(e *Event) bool {
	if st.previous == ncclsLast {
		return true
	}
	of := st.raised
	if of == nil || of.Text != st.previous || !strings.HasSuffix(of.Text, ":") {
		return false
	}
	of.Superseded = of.Superseded || e.Weight >= of.Weight+10
	return true
}

// ncclsLast is the line above NCCL's last warning in an exception's message.
const ncclsLast = "Last error:"

// DeathSignal matches torchelastic's warning that a signal ends it: often its last words
// (torch/distributed/elastic/agent/server/api.py).
var DeathSignal = lazy.On("death signal", `\bReceived \S+ death signal, shutting down workers`)

// commandLine matches a command that a launcher prints as a Python list. Its words are paths and flags,
// and report nothing.
var commandLine = lazy.New(`\['[^']*', '-`)

// aCommand matches a program with its options, as scripts and launchers print it. What they report
// stands before it.
var aCommand = lazy.On(" -", `(?:^|[\s"'=(])(?:\S*/)?(?:python[\d.]*|torchrun|accelerate|deepspeed|srun|mpirun|bash|sh) (?:\S+ ){0,8}--?[a-z]`)

// whatMayBe matches the beginning of Ray's list of possible reasons for the end of a process, which
// reports none of them (src/ray/raylet/node_manager.cc).
var whatMayBe = lazy.On("(1) ", `(?:some potential root causes|Some common causes include)[.:] \(1\) `)

// accountedStep matches the beginning of a row of sacct, a step and its name; the name reports nothing.
// stepState matches the rest of the row.
var accountedStep = lazy.New(`^\s*\d+(?:_\d+)?(?:\.\w+)?\s+\S+\s+`)

var stepState = lazy.New(`\b(?:RUNNING|FAILED|COMPLETED|CANCELLED|TIMEOUT|OUT_OF_ME|NODE_FAIL|PREEMPTED)`)

// amidNote reports whether a line is the second one of a warning, or of a message that calls itself
// informational.
func (st *stream) amidNote() bool {
	return strings.HasSuffix(st.previous, ":") && (pythonWarns.MatchString(st.previous) || informs.MatchString(st.previous))
}

// informs matches the beginning of an informational message, such as Stan's about a rejected proposal.
var informs = lazy.New(`(?i)^\W*info(?:rmation(?:al)?)?\b(?: message)?:`)

// pythonWarns matches a warning as Python prints it. Its text may continue on the next line.
var pythonWarns = lazy.New(`\.py:\d+: \w*Warning:(?: |$)`)

// cleanUp matches pyxis's message about one of its own processes, which it writes at the clean-up after any job, and
// writes more if a container did not start; slurmstepd's about the TMPDIR for which it takes /tmp; and the driver's
// about a GPU that needs no recovery any more.
var cleanUp = lazy.New(`pyxis: child \d+ (?:failed|terminated)|^slurmstepd: error: Unable to create TMPDIR |` +
	`recovery action changed from .* to 0x0 \(None\)`)

// factForm matches the forms in which the kernel, the driver, CUDA, Slurm and its plugins report facts
// about hardware and memory.
var factForm = lazy.New(`NVRM|\b[Xx]id\b|\bSXid\b|^\[ *\d+\.\d+\]|kernel: |slurm\w*[-:\[(. ]|^srun: |^\[?\d{4}-\d\d-\d\dT\S+\]? (?:\[|` +
	`error:)|CUDA error|cuda(?:Error|_error)|NCCL WARN|node-check: |` +
	`Unable to determine the device handle|GPU is lost|fallen off the bus|mce:|pcieport|nvidia-(?:nvswitch|fabricmanager)|` +
	`[Oo]ut of memory: Kill|oom-kill:|invoked oom-killer|[Mm]emory cgroup out of memory|` +
	`[Ee]xceeded (?:job|step|virtual )?\s*memory limit|[Mm]emory limit|(?:^|<exit>; )TERM_[A-Z]+: |^=>> PBS: `)
