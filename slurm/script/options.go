package script

import (
	"slices"
	"strings"

	"github.com/megatron-ops/megatron-ops/slurm"
)

// An Option is one option of sbatch, srun or salloc.
type Option struct {
	Name  string // long name, without dashes
	Given string // as written, with dashes
	Value Value
	// Has is true if the option has an argument.
	Has  bool
	Line int
}

// String returns the option and its argument as one writes them: -o LOG, --output=LOG.
func (o Option) String() string {
	if strings.HasPrefix(o.Given, "--") {
		return o.Given + "=" + o.Text()
	}
	return o.Given + " " + o.Text()
}

// Text returns the option's argument, with unknown parts as written.
func (o Option) Text() string { return o.Value.String() }

// Options are the options of one command line, or of all directives of a script.
type Options []Option

// Get returns the last option that has one of the names. The last one takes effect.
func (o Options) Get(names ...string) (Option, bool) {
	for _, option := range slices.Backward(o) {
		if slices.Contains(names, option.Name) {
			return option, true
		}
	}
	return Option{}, false
}

// Has reports whether o has an option with one of the names.
func (o Options) Has(names ...string) bool {
	_, ok := o.Get(names...)
	return ok
}

// stepArgs parses the options of srun, salloc or sbatch; rest is the command.
func stepArgs(args []Arg) (opts Options, rest []Arg) {
	for len(args) > 0 {
		a := args[0]
		s := a.Text()
		lead := ""
		if len(a.Value) > 0 && a.Value[0].Ref == nil {
			lead = a.Value[0].Text
		}
		switch {
		case s == "--":
			return opts, args[1:]
		case s == ":":
			// The next component of a heterogeneous step.
			args = args[1:]
		case strings.HasPrefix(lead, "--"):
			name, val, has := cutValue(a.Value)
			full, takes, ok := slurm.StepOption(strings.TrimPrefix(name, "--"))
			o := Option{Name: full, Given: name, Value: val, Has: has, Line: a.Line}
			if !ok {
				o.Name = strings.TrimPrefix(name, "--")
			}
			args = args[1:]
			if ok && takes == slurm.NeedsArgument && !has && len(args) > 0 {
				o.Value, o.Has, args = args[0].Value, true, args[1:]
			}
			opts = append(opts, o)
		case len(lead) > 1 && lead[0] == '-':
			args = args[1:]
			opts, args = shortArgs(a, args, opts)
		case s != "" && len(a.Value) == 1 && a.Value[0].Ref != nil && (!a.Value[0].Quoted || manyWords(a.Value[0].Ref)) && len(args) > 1:
			// $SRUN_ARGS or "$@" holds options that the file does not show.
			opts = append(opts, Option{Name: "", Given: s, Line: a.Line})
			args = args[1:]
		default:
			return opts, args
		}
	}
	return opts, nil
}

// manyWords reports whether r expands to one word per element even in quotes, such as
// "$@" and "${A[@]}".
func manyWords(r *Ref) bool { return r.Op == "" && (r.Name == "@" || r.Index == "@") }

// shortArgs parses a word of short options such as -N2 or -lu.
func shortArgs(a Arg, args []Arg, opts Options) (Options, []Arg) {
	v := a.Value
	text := v[0].Text
	for i := 1; i < len(text); i++ {
		name, takes := slurm.StepLetter(text[i])
		o := Option{Name: name, Given: "-" + text[i:i+1], Line: a.Line}
		if takes != slurm.NoArgument {
			rest := v[1:]
			if i+1 < len(text) {
				p := v[0]
				p.Text = text[i+1:]
				rest = append(Value{p}, rest...)
			}
			if len(rest) > 0 {
				o.Value, o.Has = rest, true
			} else if takes == slurm.NeedsArgument && len(args) > 0 {
				o.Value, o.Has, args = args[0].Value, true, args[1:]
			}
			return append(opts, o), args
		}
		opts = append(opts, o)
	}
	return opts, args
}

// AfterEquals returns the value after the = of an option's word, or any other word
// itself.
func (a Arg) AfterEquals() Value {
	if !strings.HasPrefix(a.Text(), "-") {
		return a.Value
	}
	_, val, _ := cutValue(a.Value)
	return val
}

// cutValue splits a word at its first = in a known part. name has unknown parts as
// written.
func cutValue(v Value) (name string, val Value, has bool) {
	var b strings.Builder
	for i, p := range v {
		if p.Ref != nil {
			b.WriteString(p.Ref.Source)
			continue
		}
		before, after, ok := strings.Cut(p.Text, "=")
		b.WriteString(before)
		if ok {
			if after != "" || i == len(v)-1 {
				p.Text = after
				val = append(val, p)
			}
			return b.String(), append(val, v[i+1:]...), true
		}
	}
	return b.String(), nil, false
}
