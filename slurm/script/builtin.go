package script

import (
	"cmp"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/megatron-ops/megatron-ops/slurm"
)

func (r *reader) set(c *Command, f frame) {
	for i := 1; i < len(c.Args); i++ {
		s := c.Args[i].Text()
		if s == "--" || len(s) < 2 {
			return
		}
		on := s[0] == '-'
		if !on && s[0] != '+' {
			return
		}
		for _, o := range s[1:] {
			name := string(o)
			if o == 'o' {
				if i++; i >= len(c.Args) {
					return
				}
				name = c.Args[i].Text()
			}
			f.sh.option(name, on)
		}
	}
}

func (sh *Shell) option(name string, on bool) {
	switch name {
	case "e", "errexit":
		sh.ErrExit = on
	case "u", "nounset":
		sh.NoUnset = on
	case "a", "allexport":
		sh.AllExport = on
	case "pipefail":
		sh.PipeFail = on
	}
}

func (r *reader) exit(_ *Command, f frame) {
	f.sh.ended = f.sh.ended || !f.trap
}

func (r *reader) cd(c *Command, f frame) {
	for _, a := range c.Args[1:] {
		if s := a.Text(); s != "--" && s != "-P" && s != "-L" {
			f.sh.Dir = f.sh.resolve(a.Value, c.Line)
			return
		}
	}
	f.sh.Dir = textValue("~", c.Line)
}

// resolve returns the folder dir, which may be relative to the working directory of sh.
func (sh *Shell) resolve(dir Value, line int) Value {
	to, shown := dir.Literal()
	if !shown || path.IsAbs(to) || strings.HasPrefix(to, "~") || to == "-" || len(sh.Dir) == 0 {
		return dir
	}
	if from, ok := sh.Dir.Literal(); ok {
		return textValue(path.Join(from, to), line)
	}
	return append(slices.Clip(sh.Dir), Piece{Text: "/" + to, Line: line, Quoted: true})
}

// environmentScripts are the ends of the names of files that set up an installed
// program. Scripts that source them get no variables of the launch from them.
var environmentScripts = []string{
	"activate", "conda.sh", "mamba.sh", ".bashrc", ".bash_profile", ".profile", "/etc/profile", "modules.sh", "lmod.sh", "/init/bash", "z00_lmod.sh",
}

func (r *reader) source(c *Command, f frame) {
	if len(c.Args) < 2 {
		return
	}
	file := c.Args[1].Text()
	if t, ok := r.written(file); ok {
		parsed, t, _ := parse(t)
		g := f
		g.text = t
		r.stmts(parsed.Stmts, g)
		return
	}
	if !slices.ContainsFunc(environmentScripts, func(s string) bool { return strings.HasSuffix(file, s) }) {
		f.sh.Sourced = true
	}
}

func (r *reader) eval(c *Command, f frame) {
	file, t, _ := parse(r.flatten(joinWords(values(c.Args[1:]))))
	f.text = t
	r.stmts(file.Stmts, f)
}

// A Handler is one trap command.
type Handler struct {
	Signals []string // without SIG
	Shell   *Shell
	Line    int
	Seq     int
	// Ignores is true for an empty handler, Resets for "-".
	Ignores, Resets bool
	Text            string
}

func (r *reader) trap(c *Command, f frame) {
	args := c.Args[1:]
	if len(args) > 0 && args[0].Text() == "--" {
		args = args[1:]
	}
	if len(args) < 2 {
		return
	}
	h := Handler{Shell: f.sh, Line: c.Line, Seq: c.Seq, Text: args[0].Text()}
	h.Ignores, h.Resets = h.Text == "", h.Text == "-"
	for _, a := range args[1:] {
		h.Signals = append(h.Signals, slurm.SignalName(a.Text()))
	}
	r.job.Handlers = append(r.job.Handlers, h)
	if h.Ignores || h.Resets {
		return
	}
	r.handler(args[0].Value, f)
}

// handler evaluates the commands of a trap at the end of the script, because they may
// call functions that are defined later.
func (r *reader) handler(v Value, f frame) {
	file, t, _ := parse(r.flatten(v))
	g := frame{sh: f.sh, text: t, trap: true, depth: f.depth + 1}
	r.deferred = append(r.deferred, func() {
		g.sh = g.sh.fork()
		g.sh.ended = false
		r.stmts(file.Stmts, g)
	})
}

func (r *reader) read(c *Command, f frame) {
	array := c.Name() != "read"
	var from Value
	var doc *Document
	whole := false // up to a delimiter that a text cannot have
	for _, red := range c.Redirects {
		if red.Target != nil {
			from = red.Target
		}
		doc = cmp.Or(red.Doc, doc)
	}
	for i := 1; i < len(c.Args); i++ {
		s := c.Args[i].Text()
		if strings.HasPrefix(s, "-") {
			whole = whole || strings.HasSuffix(s, "d") && i+1 < len(c.Args) && c.argText(i+1) == ""
			if strings.HasSuffix(s, "a") && c.Name() == "read" {
				array = true
			} else if strings.ContainsAny(s[1:], "dnNpsuitcCO") && len(s) == 2 && s != "-s" && s != "-t" || s == "-t" && c.Name() == "read" {
				i++
			}
			continue
		}
		if !isName(s) {
			continue
		}
		ref := &Ref{Name: s, Line: c.Line, Shell: f.sh, Guarded: true, Of: from, Source: "$" + s}
		if array {
			v := &Var{Array: true, Line: c.Line, Elems: []Value{from}}
			if from.Only() == nil {
				v.Elems = []Value{refValue(ref)}
			}
			f.sh.vars[s] = v
			r.noteAssignment(s, v, f)
			continue
		}
		v := refValue(ref)
		if whole && doc != nil && i == len(c.Args)-1 && c.argText(i-1) == "" { // read -d '' NAME <<EOF
			v = r.value(doc.text)
		}
		r.assign(s, v, f, c.Line)
	}
}

// value returns t as the value of a variable, without the blanks around it.
func (r *reader) value(t text) Value {
	var v Value
	blank := ""
	for _, l := range t.lines() {
		line := strings.TrimRight(l.text, " \t")
		if len(v) == 0 {
			line = strings.TrimLeft(line, " \t")
		}
		if line != "" {
			v = append(v, r.decode(blank+line, l.line)...)
			blank = ""
		}
		if len(v) > 0 {
			blank += l.text[len(strings.TrimRight(l.text, " \t")):] + "\n"
		}
	}
	return v
}

func (r *reader) getopts(c *Command, f frame) {
	for _, n := range append([]string{"OPTARG", "OPTIND"}, c.argText(2)) {
		if isName(n) {
			r.assign(n, refValue(&Ref{Name: n, Line: c.Line, Shell: f.sh, Guarded: true, Source: "$" + n}), f, c.Line)
		}
	}
}

func (r *reader) printf(c *Command, f frame) {
	if c.argText(1) == "-v" && isName(c.argText(2)) {
		n := c.argText(2)
		r.assign(n, refValue(&Ref{Name: n, Line: c.Line, Shell: f.sh, Guarded: true, Source: "$" + n}), f, c.Line)
	}
}

func (r *reader) unset(c *Command, f frame) {
	for _, a := range c.Args[1:] {
		delete(f.sh.vars, a.Text())
	}
}

// shift removes positional parameters: one, or the given number of them. As in bash, a
// number above the number of parameters removes none. The parameters of the script itself are
// unknown, and are only counted.
func (r *reader) shift(c *Command, f frame) {
	n, err := strconv.Atoi(cmp.Or(c.argText(1), "1"))
	if f.args == nil {
		if err == nil && n > 0 && f.loop == nil && len(f.branch) == 0 {
			f.sh.shifted += n
		}
		return
	}
	if err != nil {
		n = len(f.args.list) // the number is unknown, so all parameters become unknown
	}
	if n >= 0 && n <= len(f.args.list) {
		f.args.list = slices.Clone(f.args.list[n:])
	}
}

// argText returns the text of word i, or "" if there is none.
func (c *Command) argText(i int) string {
	if i < len(c.Args) {
		return c.Args[i].Text()
	}
	return ""
}

// write records a here-document that the command writes to a file.
func (r *reader) write(c *Command, _ frame) {
	var doc *Document
	name := ""
	for _, red := range c.Redirects {
		if red.Doc != nil {
			doc = red.Doc
		} else if strings.HasSuffix(red.Op, ">") || strings.HasSuffix(red.Op, ">>") || strings.HasSuffix(red.Op, ">|") {
			name = red.Target.String()
		}
	}
	if c.Name() == "tee" {
		for _, a := range c.Args[1:] {
			if s := a.Text(); !strings.HasPrefix(s, "-") {
				name = s
			}
		}
	}
	if doc == nil || name == "" {
		return
	}
	r.files[fileKey(name)] = doc.text
	r.job.Written = append(r.job.Written, WrittenFile{Name: name, Document: doc})
}

// fileKey returns the name of a file without its folder, which a script may write in
// several ways.
func fileKey(name string) string { return name[strings.LastIndexByte(name, '/')+1:] }

func (r *reader) written(name string) (text, bool) {
	t, ok := r.files[fileKey(name)]
	return t, ok
}

func (r *reader) functionCall(fn function, c *Command, f frame) {
	c.Function = true
	f.text = fn.text
	f.callLine = c.Line
	f.redirs = c.Redirects
	f.args = &params{values(c.Args[1:])}
	if c.Env != c.Shell {
		saved := f.sh.vars
		f.sh.vars = maps.Clone(c.Env.vars)
		r.stmt(fn.body, f)
		f.sh.vars = saved
		return
	}
	r.stmt(fn.body, f)
}
