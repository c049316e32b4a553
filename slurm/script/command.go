package script

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// A Command is one simple command, in the order in which commands run.
type Command struct {
	// Shell is the shell that expands the command's words. Env holds the command's
	// environment, which differs if srun starts the command or it runs in a container.
	Shell, Env *Shell
	Place
	// Args are the words, starting with the command's name.
	Args []Arg
	// Assigns are the names of the NAME=value words before the command.
	Assigns []string
	// Line and End are the first and last line.
	Line, End int
	Redirects []Redirect
	// Expansions are the variables in the words.
	Expansions []Expansion
	// By is the command that starts this one, such as srun, docker, env or bash -c.
	By *Command
	// Starts are the commands that this one starts.
	Starts []*Command

	Background int // line of the &, or 0
	Pipe       *Pipe
	PipedInto  bool
	Masked     int  // line of `|| true`, or 0
	Checked    bool // the script tests its status: if, &&, ||, !
	Condition  bool // it is the condition of an if
	Branch     []Arm
	Loop       *Loop
	Trap       bool // it is in the handler of a trap
	Subst      bool // it is in $( … )
	Function   bool // it calls a function of the script
	CallLine   int  // line of the call of the function that contains it, or 0
	Seq        int  // position in the order in which commands run
	ErrExit    bool
	Sourced    bool // the shell has sourced a file whose text is unknown
}

// An Arg is one word of a command.
type Arg struct {
	Value Value
	Line  int
	// Word is the number, in the source, of the word that it was expanded from.
	Word int
}

// Text returns the word's text, with unknown parts as written in the source.
func (a Arg) Text() string { return a.Value.String() }

// Texts returns the texts of several words.
func Texts(args []Arg) []string {
	out := make([]string, len(args))
	for i, a := range args {
		out[i] = a.Text()
	}
	return out
}

// Name returns the first word without its folder, or "" if it is unknown.
func (c *Command) Name() string {
	if len(c.Args) == 0 {
		return ""
	}
	return baseName(c.Args[0].Value)
}

// baseName returns the last element of a path, even if its folder is unknown.
func baseName(v Value) string {
	if len(v) == 0 || v[len(v)-1].Ref != nil {
		return ""
	}
	s := v.String()
	if i := strings.LastIndexByte(s, '/'); i >= 0 {
		return s[i+1:]
	}
	if v.Unknown() {
		return ""
	}
	return s
}

// A Redirect is a redirection of a command.
type Redirect struct {
	Op     string
	Target Value
	Line   int
	// Doc is the text of a here-document.
	Doc *Document
}

// A Document is the text of a here-document or here-string.
type Document struct {
	// Quoted is true for <<'EOF', whose text is not expanded.
	Quoted bool
	text   text
	// Expansions are the variables in the text, which the shell expands.
	Expansions []Expansion
	// Source is the text before expansion.
	Source string
}

// Text returns the document after expansion, with unknown parts as written.
func (d *Document) Text() string { return d.text.src }

// redirects expands redirections and here-documents.
func (r *reader) redirects(list []*syntax.Redirect, f frame) []Redirect {
	var out []Redirect
	for _, x := range list {
		red := Redirect{Op: x.Op.String(), Line: f.text.at(x.OpPos.Offset())}
		if x.N != nil {
			red.Op = x.N.Value + red.Op
		}
		switch x.Op {
		case syntax.Hdoc, syntax.DashHdoc:
			red.Doc = r.document(x, f)
		default:
			red.Target = joinWords(r.word(x.Word, f))
			if x.Op == syntax.WordHdoc {
				red.Doc = &Document{text: r.flatten(red.Target)}
			}
		}
		out = append(out, red)
	}
	return out
}

func (r *reader) document(x *syntax.Redirect, f frame) *Document {
	d := &Document{}
	for _, p := range x.Word.Parts {
		if l, ok := p.(*syntax.Lit); !ok || strings.Contains(f.text.slice(l.ValuePos, l.ValueEnd), "\\") {
			d.Quoted = true
		}
	}
	if x.Hdoc == nil {
		d.text = fileText("")
		return d
	}
	f.document = true
	f.expansions = &d.Expansions
	f.words = nil
	var v Value
	delimiter, _ := joinWords(r.word(x.Word, frame{sh: f.sh, text: f.text})).Literal()
	for i, p := range x.Hdoc.Parts {
		switch p := p.(type) {
		case *syntax.Lit:
			q := document
			if d.Quoted {
				q = raw
			}
			src := f.text.slice(p.ValuePos, p.ValueEnd)
			if i == len(x.Hdoc.Parts)-1 {
				src = withoutDelimiter(src, delimiter)
			}
			v = append(v, r.literal(src, p.ValuePos.Offset(), q, f)...)
		default:
			var l fieldList
			r.quotedPart(p, f, &l, false)
			l.end()
			v = append(v, joinWords(l.out)...)
		}
	}
	d.Source = withoutDelimiter(f.text.slice(x.Hdoc.Pos(), x.Hdoc.End()), delimiter)
	d.text = r.flatten(v)
	if x.Op == syntax.DashHdoc {
		d.text = untab(d.text)
	}
	return d
}

// withoutDelimiter removes the last line of a here-document, which has the delimiter.
// The parser includes that line in the text.
func withoutDelimiter(src, delimiter string) string {
	rest, ok := strings.CutSuffix(src, delimiter)
	if !ok {
		return src
	}
	rest = strings.TrimRight(rest, "\t")
	if rest == "" || strings.HasSuffix(rest, "\n") {
		return rest
	}
	return src
}

// untab removes the leading tabs that <<- removes.
func untab(t text) text {
	var b strings.Builder
	var lines []int32
	start := true
	for i := range len(t.src) {
		if start && t.src[i] == '\t' {
			continue
		}
		start = t.src[i] == '\n'
		b.WriteByte(t.src[i])
		lines = append(lines, t.line[i])
	}
	return text{b.String(), append(lines, t.line[len(t.src)])}
}

// declare evaluates export, declare, local and readonly.
func (r *reader) declare(c *syntax.DeclClause, s *syntax.Stmt, f frame) {
	var exps []Expansion
	f.expansions = &exps
	export, undo := c.Variant.Value == "export", false
	line := f.text.at(c.Pos().Offset())
	cmd := r.command(f, line, f.text.at(c.End().Offset()))
	cmd.Args = []Arg{{Value: textValue(c.Variant.Value, line), Line: line}}
	for _, a := range c.Args {
		if a.Name == nil {
			w := joinWords(r.word(a.Value, f))
			if s, ok := w.Literal(); ok && strings.HasPrefix(s, "-") && c.Variant.Value != "export" && strings.Contains(s, "x") {
				export = true
			}
			if s, ok := w.Literal(); ok && c.Variant.Value == "export" && strings.HasPrefix(s, "-") && strings.Contains(s, "n") {
				undo = true // export -n NAME: no longer exported
			}
			if len(w) > 0 && w[0].Ref != nil && w[0].Ref.Kind == Output {
				f.sh.Sourced = true // export $(cat .env)
			}
			cmd.Args = append(cmd.Args, Arg{Value: w, Line: f.text.at(a.Value.Pos().Offset())})
			continue
		}
		r.assignment(a, f, export && !undo)
		if undo {
			f.sh.unexport(a.Name.Value)
		}
		src := f.text.slice(a.Pos(), a.End())
		cmd.Args = append(cmd.Args, Arg{Value: textValue(src, f.text.at(a.Pos().Offset())), Line: f.text.at(a.Pos().Offset())})
	}
	cmd.Redirects = r.redirects(s.Redirs, f)
	cmd.Expansions = exps
	r.record(cmd)
}

// command returns a command without words, in the context f.
func (r *reader) command(f frame, line, end int) *Command {
	return &Command{
		Shell: f.sh, Env: f.sh, Place: f.sh.Place, Line: line, End: end,
		Background: f.background, Pipe: f.pipe, PipedInto: f.pipedInto, Masked: f.masked, Checked: f.checked, Condition: f.condition,
		Branch: f.branch, Loop: f.loop, Trap: f.trap, Subst: f.substitution, CallLine: f.callLine,
		ErrExit: f.sh.ErrExit, Sourced: f.sh.Sourced, Redirects: f.redirs,
	}
}

func (r *reader) record(c *Command) {
	r.count++
	c.Seq = r.count
	r.job.Commands = append(r.job.Commands, c)
}

// call evaluates a simple command.
func (r *reader) call(c *syntax.CallExpr, s *syntax.Stmt, f frame) {
	var exps []Expansion
	f.expansions = &exps
	line := f.text.at(s.Position.Offset())
	if len(c.Args) == 0 {
		for _, a := range c.Assigns {
			r.assignment(a, f, false)
		}
		r.redirects(s.Redirs, f)
		cmd := r.command(f, line, f.text.at(c.End().Offset()))
		cmd.Expansions = exps
		for _, a := range c.Assigns {
			cmd.Assigns = append(cmd.Assigns, a.Name.Value)
		}
		r.record(cmd)
		return
	}
	line = f.text.at(c.Args[0].Pos().Offset())
	var args []Arg
	for i, w := range c.Args {
		f.words = &i
		at := f.text.at(w.Pos().Offset())
		for _, v := range r.word(w, f) {
			l := v.Line()
			if l == 0 || i == 0 {
				l = at
			}
			args = append(args, Arg{v, l, i})
		}
	}
	f.words = nil
	if len(args) == 0 {
		return
	}
	cmd := r.command(f, line, f.text.at(c.End().Offset()-1))
	cmd.Redirects = append(slices.Clip(f.redirs), r.redirects(s.Redirs, f)...)
	if len(c.Assigns) > 0 {
		env := f.sh.fork()
		g := f
		g.sh = env
		for _, a := range c.Assigns {
			r.assignment(a, g, true)
			cmd.Assigns = append(cmd.Assigns, a.Name.Value)
		}
		cmd.Env = env
	}
	cmd.Expansions = exps
	forms := r.readings(args, f.branch)
	for i, one := range forms {
		if len(forms) > 1 {
			one.branch = append(slices.Clip(one.branch), Arm{c, i}) // only one of them runs
		}
		x, g := *cmd, f
		x.Args, x.Branch, g.branch = one.args, one.branch, one.branch
		r.record(&x)
		r.run(&x, g)
	}
}

// A reading is one possible form of a command, and the branches in which the command
// has that form.
type reading struct {
	args   []Arg
	branch []Arm
}

// maxReadings is the most readings of one command.
const maxReadings = 8

// readings returns the possible forms of the command args. If a variable that branches set
// is among the words that the first word expands to, such as a launcher with and without
// srun or srun with and without a container, there is one reading per value of the variable.
func (r *reader) readings(args []Arg, branch []Arm) []reading {
	at := slices.IndexFunc(args, func(a Arg) bool {
		ref := a.Value.Only()
		return a.Word == args[0].Word && ref != nil && !a.Value[0].Quoted && !ref.List() && len(ref.Alt) > 0
	})
	if at < 0 {
		return []reading{{args, branch}}
	}
	ref := args[at].Value.Only()
	values := ref.Alt
	if len(values) == 1 && !ref.Loop {
		values = append([]Value{nil}, values...) // the variable may be unset
	}
	var out []reading
	for _, v := range values {
		var l fieldList
		l.split(v)
		l.end()
		words := slices.Clone(args[:at])
		for _, w := range l.out {
			words = append(words, Arg{w, args[at].Line, args[at].Word})
		}
		if words = append(words, args[at+1:]...); len(words) > 0 && len(out) < maxReadings {
			out = append(out, r.readings(words, r.branchOf(ref.Name, v, branch))...)
		}
	}
	return out
}

// branchOf appends to branch the branches in which the variable was set to v.
func (r *reader) branchOf(name string, v Value, branch []Arm) []Arm {
	for _, a := range slices.Backward(r.job.Assignments) {
		if a.Name == name && v != nil && sameValue(a.Var.Value, v) {
			return append(slices.Clip(branch), a.Branch...)
		}
	}
	return branch
}

// start records and evaluates the command args, which by starts with the environment
// env.
func (r *reader) start(by *Command, args []Arg, env *Shell, f frame) {
	if len(args) == 0 || f.depth > maxDepth || r.exhausted() {
		return
	}
	f.depth++
	c := *by
	c.By, c.Starts, c.Args, c.Env, c.Place = by, nil, args, env, env.Place
	c.Line = min(by.End, max(by.Line, args[0].Line))
	by.Starts = append(by.Starts, &c)
	r.record(&c)
	r.run(&c, f)
}

// nested evaluates t in the shell sh, which by starts.
func (r *reader) nested(by *Command, sh *Shell, t text, args []Value, f frame) {
	if f.depth > maxDepth || r.exhausted() {
		return
	}
	file, t := r.load(t)
	g := frame{
		sh: sh, text: t, args: &params{args}, depth: f.depth + 1, trap: f.trap, substitution: f.substitution,
		loop: f.loop, branch: f.branch,
	}
	r.job.Sources = append(r.job.Sources, Source{file, t})
	n := len(r.job.Commands)
	r.stmts(file.Stmts, g)
	for _, c := range r.job.Commands[n:] {
		if c.By == nil {
			c.By = by
			by.Starts = append(by.Starts, c)
		}
	}
}
