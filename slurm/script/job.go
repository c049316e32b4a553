package script

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
)

// A Script is what Read knows about one file.
type Script struct {
	Name string
	// BOM is true if the file starts with a byte order mark. CRLF is the first line with
	// a DOS line end, or 0.
	BOM  bool
	CRLF int
	// Lines are the lines of the file, without line ends.
	Lines []string
	// Jobs are the job of the file itself, and then the jobs that it writes and submits.
	Jobs []*Job
}

// A Job is one batch or launch script: the file itself, or a script that the file
// writes and submits.
type Job struct {
	Script *Script
	// Inner is true for a job that the file writes.
	Inner   bool
	Shebang string
	// FirstLine is the line of the file on which the job's script begins.
	FirstLine  int
	Directives []Directive
	// Options are the options of the directives that sbatch reads, and then those of
	// the command that submits the job.
	Options Options
	Shell   *Shell
	// Commands are the commands in the order in which they run.
	Commands    []*Command
	Starts      []*Start
	Steps       []*Step
	Allocations []*Step
	Containers  []*Container
	Handlers    []Handler
	Assignments []Assignment
	// Assigned are the names of all variables that the script assigns.
	Assigned    map[string]bool
	Written     []WrittenFile
	Submissions []*Submission
	Refusals    []SyntaxError
	Breaks      []Break
	Sources     []Source
	// Comments are the texts of all comments, without the #. A directive is none; what
	// follows its options is.
	Comments []string
	// Choices are the values that Settle chose.
	Choices []Choice
}

// An Assignment is one change of a variable.
type Assignment struct {
	Name   string
	Var    *Var
	Shell  *Shell
	Line   int
	Branch []Arm
	Trap   bool
}

// A WrittenFile is a file that the script writes from a here-document.
type WrittenFile struct {
	Name     string
	Document *Document
}

// A Submission is one sbatch command.
type Submission struct {
	Command *Command
	Options Options
	File    string
	Job     *Job // nil if the text of the submitted script is unknown
}

// A Source is text that a shell reads, with its syntax tree.
type Source struct {
	Syntax *syntax.File
	text   text
}

// Line returns the line of the file for a position in the syntax tree.
func (s Source) Line(p syntax.Pos) int { return s.text.at(p.Offset()) }

// Slice returns the source between two positions.
func (s Source) Slice(from, to syntax.Pos) string { return s.text.slice(from, to) }

// Text returns all of the source.
func (s Source) Text() string { return withBlanks(s.text.src) }

// A reader holds the state of one Read or Settle.
type reader struct {
	script   *Script
	job      *Job
	refs     []*Ref
	files    map[string]text
	deferred []func() // run at the end of the job
	settling bool
	// The cost so far, in commands, statements and bytes; see exhausted.
	count, steps, bytes int
}

var setLine = lazy.New(`(?m)^\s*(?:export\s+)?([A-Za-z_]\w*)=`)

// Read reads a script. It accepts any bytes.
func Read(name string, src []byte) *Script { return (&reader{}).file(name, src) }

func (r *reader) file(name string, src []byte) *Script {
	s := &Script{Name: name}
	if rest, ok := bytes.CutPrefix(src, []byte("\xef\xbb\xbf")); ok {
		s.BOM, src = true, rest
	}
	const most = 1 << 20
	if len(src) > most {
		src = src[:most]
	}
	body := string(src)
	if i := strings.Index(body, "\r\n"); i >= 0 {
		s.CRLF = 1 + strings.Count(body[:i], "\n")
		body = strings.ReplaceAll(body, "\r\n", "\n")
	}
	body = strings.Map(func(r rune) rune {
		if r == 0 || r == plainBracket || r == plainDollar || r == plainBlank {
			return ' '
		}
		return r
	}, body)
	s.Lines = strings.Split(body, "\n")
	r.script, r.files = s, map[string]text{}
	r.readJob(fileText(body), nil)
	return s
}

// readJob reads t as a separate script. cli are the options of the command that
// submits it.
func (r *reader) readJob(t text, cli Options) *Job {
	j := &Job{Script: r.script, Inner: len(r.script.Jobs) > 0, Assigned: map[string]bool{}, FirstLine: t.at(0)}
	r.script.Jobs = append(r.script.Jobs, j)
	saved := r.job
	r.job = j
	defer func() { r.job = saved }()
	if line, _, _ := strings.Cut(t.src, "\n"); strings.HasPrefix(line, "#!") {
		j.Shebang = line
	}
	sh := &Shell{Kind: Batch, vars: map[string]*Var{}, funcs: map[string]function{}}
	j.Shell = sh
	words := strings.Fields(j.Shebang)
	for i, w := range words {
		if i > 0 && strings.HasPrefix(w, "-") && !strings.HasPrefix(w, "--") {
			for _, o := range w[1:] {
				if o == 'l' || o == 'i' {
					sh.Login = true
				}
				sh.option(string(o), true)
			}
		}
		sh.Login = sh.Login || w == "--login"
	}
	file, parsed := r.load(t)
	j.Sources = append(j.Sources, Source{file, parsed})
	j.comments(file)
	if len(j.Refusals) > 0 {
		// The text that could not be parsed may contain assignments.
		for _, m := range setLine.FindAllStringSubmatch(t.src, -1) {
			j.Assigned[m[1]] = true
		}
	}
	docs := quotedRanges(file)
	j.Directives = r.directives(t, func(off int) bool {
		return slices.ContainsFunc(docs, func(d [2]uint) bool { return uint(off) >= d[0] && uint(off) < d[1] })
	})
	for _, d := range j.Directives {
		if d.Ignored == "" && d.Component == 0 {
			j.Options = append(j.Options, d.Options...)
		}
	}
	j.Options = append(j.Options, cli...)
	r.stmts(file.Stmts, frame{sh: sh, text: parsed})
	for len(r.deferred) > 0 {
		f := r.deferred[0]
		r.deferred = r.deferred[1:]
		f()
	}
	return j
}

// subjob reads t as a script that the current job submits.
func (r *reader) subjob(t text, cli Options, f frame) *Job {
	if f.depth > maxDepth || len(r.script.Jobs) > 8 {
		return nil
	}
	deferred := r.deferred
	r.deferred = nil
	j := r.readJob(t, cli)
	r.deferred = deferred
	return j
}

func (j *Job) comments(file *syntax.File) {
	syntax.Walk(file, func(n syntax.Node) bool {
		if c, ok := n.(*syntax.Comment); ok {
			text := c.Text
			if options, is := strings.CutPrefix(text, "SBATCH"); is {
				_, text, _ = strings.Cut(options, " #")
			}
			j.Comments = append(j.Comments, text)
		}
		return true
	})
}

// quotedRanges returns the offsets of quoted strings and of the bodies of
// here-documents. Lines in these ranges are text, not lines of the script.
func quotedRanges(file *syntax.File) [][2]uint {
	var out [][2]uint
	syntax.Walk(file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Redirect:
			if n.Hdoc != nil {
				out = append(out, [2]uint{n.Hdoc.Pos().Offset(), n.Hdoc.End().Offset()})
			}
		case *syntax.SglQuoted:
			out = append(out, [2]uint{n.Left.Offset() + 1, n.Right.Offset()})
		case *syntax.DblQuoted:
			out = append(out, [2]uint{n.Left.Offset() + 1, n.Right.Offset()})
		}
		return true
	})
	return out
}

// Batch reports whether the job has directives, and so is intended for sbatch.
func (j *Job) Batch() bool { return len(j.Directives) > 0 }

// Nodes returns the number of nodes that the job requests; ok is false if the script
// does not tell. For a range, it returns the minimum, and exact is false.
func (j *Job) Nodes() (n int, exact, ok bool) {
	if o, has := j.Options.Get("nodes"); has {
		return nodeCount(o.Value)
	}
	if !j.Batch() && len(j.Options) == 0 {
		for _, a := range j.Allocations {
			if o, has := a.Options.Get("nodes"); has {
				return nodeCount(o.Value)
			}
		}
		return 0, false, false
	}
	tasks, okT := intOption(j.Options, "ntasks")
	per, okP := intOption(j.Options, "ntasks-per-node")
	if okT && okP && per > 0 && tasks%per == 0 {
		return tasks / per, true, true
	}
	return 0, false, false
}

func nodeCount(v Value) (n int, exact, ok bool) {
	s, known := v.Literal()
	if !known {
		return 0, false, false
	}
	lo, hi, isRange := strings.Cut(s, "-")
	n, err := strconv.Atoi(lo)
	return n, !isRange || lo == hi, err == nil && n > 0
}

func intOption(o Options, name string) (int, bool) {
	x, ok := o.Get(name)
	if !ok {
		return 0, false
	}
	s, known := x.Value.Literal()
	n, err := strconv.Atoi(s)
	return n, known && err == nil
}

// Several reports whether the job certainly has more than one node.
func (j *Job) Several() bool {
	n, _, ok := j.Nodes()
	return ok && n > 1
}

// GPUs returns the number of GPUs per node and the option that sets it; ok is false if
// the options do not tell.
func (j *Job) GPUs() (n int, o Option, ok bool) { return j.gpus(j.Options) }

func (j *Job) gpus(opts Options) (n int, o Option, ok bool) {
	if o, has := opts.Get("gpus-per-node"); has {
		n, ok = gpuNumber(o.Text())
		return n, o, ok
	}
	if o, has := opts.Get("gres", "tres-per-node"); has {
		for g := range strings.SplitSeq(o.Text(), ",") {
			g = strings.TrimPrefix(g, "gres/")
			if g == "gpu" {
				return 1, o, true
			}
			if rest, is := strings.CutPrefix(g, "gpu:"); is {
				n, ok = gpuNumber(rest)
				return n, o, ok
			}
		}
	}
	if o, has := opts.Get("gpus-per-task"); has {
		if n, ok = gpuNumber(o.Text()); ok {
			t, known := j.TasksPerNode(opts)
			return n * t, o, known
		}
	}
	if o, has := opts.Get("gpus"); has {
		total, okG := gpuNumber(o.Text())
		nodes, exact, okN := j.Nodes()
		if okG && okN && exact && total%nodes == 0 {
			return total / nodes, o, true
		}
	}
	return 0, Option{}, false
}

// gpuNumber parses [type:]N, which a suffix such as (S:0) may follow.
func gpuNumber(s string) (int, bool) {
	s, _, _ = strings.Cut(s, "(")
	if n, ok := leadingInt(s); ok && len(s) == len(strconv.Itoa(n)) {
		return n, true
	}
	i := strings.LastIndexByte(s, ':')
	if i < 0 {
		return 1, s != "" && !strings.ContainsAny(s, "$") && s[0] > '9' // a type without a number means one GPU
	}
	return leadingInt(s[i+1:])
}

// leadingInt parses the number at the start of s.
func leadingInt(s string) (int, bool) {
	n, err := strconv.Atoi(s[:len(s)-len(strings.TrimLeft(s, "0123456789"))])
	return n, err == nil
}

// TasksPerNode returns the number of tasks per node that opts give; ok is false if
// opts do not tell.
func (j *Job) TasksPerNode(opts Options) (int, bool) {
	if n, ok := intOption(opts, "ntasks-per-node"); ok {
		return n, true
	}
	if n, ok := intOption(opts, "ntasks"); ok {
		if nodes, exact, ok := j.Nodes(); ok && exact && n%nodes == 0 {
			return n / nodes, true
		}
		if n == 1 {
			return 1, true
		}
	}
	return 0, false
}

// Int returns v as a number. Variables that Slurm sets have the values that follow
// from the job's options.
func (j *Job) Int(v Value) (int, bool) {
	s, ok := (&Expr{Leaf: v}).Span(j.span)
	if !ok || s.Lo != s.Hi {
		return 0, false
	}
	return int(s.Lo), true
}

// Span returns the range of numbers that v can be.
func (j *Job) Span(v Value) (Span, bool) { return (&Expr{Leaf: v}).Span(j.span) }

func (j *Job) span(v Value) (Span, bool) {
	ref := v.Only()
	if ref == nil || ref.Kind != Variable || ref.Op != "" && !ref.Guarded {
		return Span{}, false
	}
	exactly := func(n int, ok bool) (Span, bool) { return Span{int64(n), int64(n)}, ok }
	switch ref.Name {
	case "SLURM_NNODES", "SLURM_JOB_NUM_NODES":
		n, exact, ok := j.Nodes()
		return exactly(n, ok && exact)
	case "SLURM_NTASKS", "SLURM_NPROCS":
		if n, ok := intOption(j.Options, "ntasks"); ok {
			return exactly(n, true)
		}
		per, ok := intOption(j.Options, "ntasks-per-node")
		nodes, exact, okN := j.Nodes()
		return exactly(per*nodes, ok && okN && exact)
	case "SLURM_NTASKS_PER_NODE", "SLURM_TASKS_PER_NODE":
		return exactly(intOption(j.Options, "ntasks-per-node"))
	case "SLURM_CPUS_PER_TASK":
		return exactly(intOption(j.Options, "cpus-per-task"))
	case "SLURM_GPUS_ON_NODE":
		n, _, ok := j.GPUs()
		return exactly(n, ok)
	case "SLURM_GPUS_PER_NODE":
		o, ok := j.Options.Get("gpus-per-node")
		if !ok {
			return Span{}, false
		}
		return exactly(gpuNumber(o.Text()))
	case "RANDOM":
		return Span{0, 32767}, true
	case "SRANDOM":
		return Span{0, 1<<32 - 1}, true
	case "SLURM_JOB_ID", "SLURM_JOBID", "SLURM_ARRAY_JOB_ID":
		return Span{1, 1 << 26}, true
	case "SLURM_ARRAY_TASK_ID":
		return Span{0, j.lastIndex()}, true
	case "SLURM_PROCID", "SLURM_NODEID", "SLURM_LOCALID", "SLURM_RESTART_COUNT":
		return Span{0, 512}, true
	}
	return Span{}, false
}

// lastIndex returns the largest index of the job's array, or 0.
func (j *Job) lastIndex() int64 {
	last := int64(0)
	if o, ok := j.Options.Get("array"); ok {
		indexes, _, _ := strings.Cut(o.Text(), "%")
		for f := range strings.FieldsFuncSeq(indexes, func(r rune) bool { return r < '0' || r > '9' }) {
			if n, err := strconv.ParseInt(f, 10, 64); err == nil {
				last = max(last, n)
			}
		}
	}
	return last
}
