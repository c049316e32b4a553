package lint

import (
	"slices"
	"strconv"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/knowledge/megatron"
	"github.com/megatron-ops/megatron-ops/slurm/script"
)

// A flagUse is one flag of a Megatron command line, as far as it is shown.
type flagUse struct {
	name   string
	line   int
	values []string
	lines  []int
	// hidden is true where a value, or whether there is one, is not shown.
	hidden bool
	known  megatron.Flag
	ok     bool
}

// A trainer is one start of Megatron, with its arguments as far as the script
// shows them.
type trainer struct {
	start *script.Start
	entry string
	flags []flagUse
	stray []script.Arg
	// partial is true where words are hidden that may be flags.
	partial bool
}

// trainers are the starts of Megatron's own scripts.
func (c *checker) trainers() []trainer {
	var out []trainer
	for _, s := range c.job.Starts {
		entry, ok := megatron.OwnEntry(programName(s))
		if !ok || s.Trap || s.Subst || fork(s) {
			continue
		}
		out = append(out, read(s, entry))
	}
	return out
}

// otherProject are projects that took the names over, with flags of their own.
var otherProject = lazy.New(`(?i)deepspeed|gpt-neox|mindspeed|pai-megatron|bigscience|bigcode|epfllm|modellink`)

// fork reports whether the program is of Megatron-DeepSpeed or its like.
func fork(s *script.Start) bool {
	return s.Launcher == script.DeepSpeed || otherProject.MatchString(s.Program.Text()+" "+s.Env.Dir.String()) ||
		slices.ContainsFunc(argTexts(s.ProgramArgs), func(a string) bool { return strings.HasPrefix(a, "--deepspeed") })
}

// read takes the words after the program apart as argparse does.
func read(s *script.Start, entry string) trainer {
	t := trainer{start: s, entry: entry}
	for _, a := range s.ProgramArgs {
		text, shown := a.Value.Literal()
		switch {
		case !shown && wholeWord(a.Value):
			// --flag=$X or a value with an unknown part.
			if name, ok := flagBefore(a.Value); ok {
				t.add(name, a.Line)
				t.flags[len(t.flags)-1].hidden = true
			} else if len(t.flags) > 0 {
				t.flags[len(t.flags)-1].hidden = true
			}
		case !shown:
			t.partial = true
			if len(t.flags) > 0 && t.flags[len(t.flags)-1].wants() {
				t.flags[len(t.flags)-1].hidden = true
			}
		case strings.HasPrefix(text, "-") && len(text) > 1 && !number(text):
			name, val, has := strings.Cut(text, "=")
			if _, ok := megatron.LookupFlag(text); ok || !has {
				t.add(text, a.Line)
				break
			}
			t.add(name, a.Line)
			f := &t.flags[len(t.flags)-1]
			f.values, f.lines = append(f.values, val), append(f.lines, a.Line)
		case len(t.flags) == 0:
			t.stray = append(t.stray, a)
		default:
			f := &t.flags[len(t.flags)-1]
			f.values, f.lines = append(f.values, text), append(f.lines, a.Line)
		}
	}
	// A command line that shows no model at all is cut short.
	if !t.given("--num-layers") && !t.given("--hybrid-layer-pattern") && !t.given("--hybrid-override-pattern") {
		t.partial = true
	}
	return t
}

// unread reports whether the flag's value is not shown, or is one that the
// parser refuses: what follows from it is not known then.
func (f flagUse) unread() bool {
	if f.hidden {
		return true
	}
	_, errs := megatron.Parse(megatron.Run{Argv: append([]string{f.name}, f.values...)})
	return len(errs) > 0
}

// means reports whether an unknown flag was likely meant to be the named one.
func (f flagUse) means(name string) bool {
	to, _ := megatron.Renamed(f.name)
	return to == name || slices.Contains(megatron.Nearest(f.name), name)
}

// wants reports whether the flag may take another value.
func (f flagUse) wants() bool {
	switch {
	case !f.ok:
		return true
	case f.known.Action != megatron.Store:
		return false
	case f.known.Nargs == "":
		return len(f.values) == 0
	}
	n, err := strconv.Atoi(f.known.Nargs)
	return err != nil || len(f.values) < n
}

func (t *trainer) add(name string, line int) {
	f := flagUse{name: name, line: line}
	f.known, f.ok = megatron.LookupFlag(name)
	if !strings.HasPrefix(name, "--") {
		f.ok = false
	}
	t.flags = append(t.flags, f)
}

func (t *trainer) given(name string) bool {
	return slices.ContainsFunc(t.flags, func(f flagUse) bool { return f.name == name || f.ok && f.known.Name == name })
}

func number(s string) bool { return len(s) > 1 && (s[1] >= '0' && s[1] <= '9' || s[1] == '.') }

// wholeWord reports whether an unknown value is surely one word: it is quoted,
// or only a part of it is unknown.
func wholeWord(v script.Value) bool {
	for _, p := range v {
		if p.Ref != nil && len(v) == 1 && (p.Ref.Index == "@" || p.Ref.Index == "*" || p.Ref.Name == "@" || p.Ref.Name == "*") {
			return false
		}
		if p.Ref != nil && !p.Quoted && len(v) == 1 {
			// $X of a name that is one word by its use: SLURM_*, a loop's variable,
			// a positional parameter.
			r := p.Ref
			return strings.HasPrefix(r.Name, "SLURM_") || r.Loop || r.Kind == script.Sum
		}
	}
	return true
}

func flagBefore(v script.Value) (string, bool) {
	if len(v) < 2 || v[0].Ref != nil {
		return "", false
	}
	name, _, ok := strings.Cut(v[0].Text, "=")
	return name, ok && strings.HasPrefix(name, "--")
}

func unknownFlag(c *checker) {
	seen := map[string]bool{}
	for _, t := range c.trainers() {
		for _, f := range t.flags {
			if f.ok || seen[f.name] || f.name == "--" || f.name == "-h" || f.name == "--help" || strings.Contains(f.name, "$") {
				continue
			}
			seen[f.name] = true
			fix := lang.Text{}
			if near := megatron.Nearest(f.name); len(near) > 0 {
				fix = lang.Text{EN: "use " + strings.Join(near, " or "), ZH: "改用 " + strings.Join(near, " 或 ")}
			}
			if to, ok := megatron.Renamed(f.name); ok {
				fix = lang.Text{EN: "use " + to, ZH: "改用 " + to}
			}
			c.say(f.line, f.name, fix)
		}
	}
}

func flagType(c *checker) {
	for _, t := range c.trainers() {
		for _, f := range t.flags {
			if !f.ok || f.hidden {
				continue
			}
			_, errs := megatron.Parse(megatron.Run{Entry: t.entry, Argv: append([]string{f.name}, f.values...)})
			for _, e := range errs {
				if e.Fault == megatron.UnknownFlag {
					continue
				}
				line := f.line
				for i, v := range f.values {
					if slices.Contains(e.Values, v) {
						line = f.lines[i]
						break
					}
				}
				c.report(line, strings.Join(append([]string{f.name}, f.values...), " "))
				break
			}
		}
	}
}
