package lint

import (
	"slices"
	"strconv"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/knowledge/megatron"
	"github.com/megatron-ops/megatron-ops/knowledge/rules"
	"github.com/megatron-ops/megatron-ops/slurm/script"
)

// A flagUse is one flag on a Megatron command line.
type flagUse struct {
	name   string
	line   int
	values []string
	lines  []int // lines of the values
	// hidden is true if the script does not show a value, or whether there is one.
	hidden bool
	known  megatron.Flag
	ok     bool // Megatron has the flag, which is known
}

// A megatronStart is one start of Megatron, with the arguments that the script shows.
type megatronStart struct {
	start *script.Start
	entry string
	flags []flagUse
	// partial is true if unknown words may be flags.
	partial bool
	// hydra is true if the arguments are settings of Hydra.
	hydra bool
}

// megatronStarts returns the starts of Megatron's own scripts.
func (c *checker) megatronStarts() []megatronStart {
	var out []megatronStart
	for _, s := range c.job.Starts {
		entry, ok := megatron.OwnEntry(programName(s))
		if !ok || s.Subst || ofOtherProject(s) {
			continue
		}
		if t := readFlags(s, entry); !t.hydra {
			out = append(out, t)
		}
	}
	return out
}

// readFlags parses the program's arguments as argparse does.
func readFlags(s *script.Start, entry string) megatronStart {
	t := megatronStart{start: s, entry: entry}
	for _, a := range s.ProgramArgs {
		text, shown := a.Value.Literal()
		t.hydra = t.hydra || t.overrides(a)
		switch {
		case !shown && wholeWord(a.Value):
			// --flag=$X, or a value with an unknown part.
			if name, ok := flagBefore(a.Value); ok {
				t.add(name, a.Line).hidden = true
			} else if len(t.flags) > 0 {
				t.flags[len(t.flags)-1].hidden = true
			}
		case !shown:
			t.partial = true
			if len(t.flags) > 0 && t.flags[len(t.flags)-1].takesMore() {
				t.flags[len(t.flags)-1].hidden = true
			}
		case strings.HasPrefix(text, "-") && len(text) > 1 && !number(text):
			name, val, has := strings.Cut(text, "=")
			if _, ok := megatron.LookupFlag(text); ok || !has {
				t.add(text, a.Line)
				break
			}
			f := t.add(name, a.Line)
			f.values, f.lines = append(f.values, val), append(f.lines, a.Line)
		case len(t.flags) > 0:
			f := &t.flags[len(t.flags)-1]
			f.values, f.lines = append(f.values, text), append(f.lines, a.Line)
		}
	}
	// Without any of these flags, the script does not show the whole command line.
	if !t.given("--num-layers") && !t.given("--hybrid-layer-pattern") && !t.given("--hybrid-override-pattern") {
		t.partial = true
	}
	t.partial = t.partial || t.templated()
	return t
}

// valueUnknown reports whether the script does not show the flag's value, or Megatron's
// parser rejects the value.
func (f flagUse) valueUnknown() bool {
	if f.hidden {
		return true
	}
	_, errs := megatron.Parse(megatron.Run{Argv: append([]string{f.name}, f.values...)})
	return len(errs) > 0
}

// means reports whether an unknown flag was probably intended as the named flag.
func (f flagUse) means(name string) bool {
	to, _ := megatron.Renamed(f.name)
	return to == name || slices.Contains(megatron.Nearest(f.name), name)
}

// takesMore reports whether the flag can take a further value.
func (f flagUse) takesMore() bool {
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

// add appends a flag and returns it.
func (t *megatronStart) add(name string, line int) *flagUse {
	known, ok := megatron.LookupFlag(name)
	t.flags = append(t.flags, flagUse{name: name, line: line, known: known, ok: ok && strings.HasPrefix(name, "--")})
	return &t.flags[len(t.flags)-1]
}

func (t *megatronStart) given(name string) bool {
	return slices.ContainsFunc(t.flags, func(f flagUse) bool { return f.name == name || f.ok && f.known.Name == name })
}

func number(s string) bool { return len(s) > 1 && (s[1] >= '0' && s[1] <= '9' || s[1] == '.') }

// wholeWord reports whether an unknown value is certainly one word: it is quoted, only a
// part of it is unknown, or it is a number or the variable of a loop.
func wholeWord(v script.Value) bool {
	r := v.Only()
	switch {
	case r == nil:
		return true
	case r.List():
		return false
	}
	return v[0].Quoted || strings.HasPrefix(r.Name, "SLURM_") || r.Loop || r.Kind == script.Sum
}

func flagBefore(v script.Value) (string, bool) {
	if len(v) < 2 || v[0].Ref != nil {
		return "", false
	}
	name, _, ok := strings.Cut(v[0].Text, "=")
	return name, ok && strings.HasPrefix(name, "--")
}

// otherParser returns the flags that Megatron does not have if they are most of the
// flags: the program then has a parser of its own.
func (t *megatronStart) otherParser() []flagUse {
	const fewest = 8
	var unknown []flagUse
	for _, f := range t.flags {
		if !f.ok && strings.HasPrefix(f.name, "--") && len(f.name) > 2 && lastWith(f.name) == "" {
			unknown = append(unknown, f)
		}
	}
	if len(unknown) < fewest || 2*len(unknown) <= len(t.flags) {
		return nil
	}
	return unknown
}

// otherFlags says that most flags are unknown.
var otherFlags = lang.Text{
	EN: "%d of the %d flags, as %s, are in no release of Megatron-LM (abbreviations are off): unless your copy has a parser of its own, it exits",
	ZH: "%d 个参数（共 %d 个，例如 %s）不属于 Megatron-LM 的任何版本（不支持缩写）：除非您的代码有自己的解析器，否则会直接退出",
}

func unknownFlag(c *checker) {
	seen := map[string]bool{}
	for _, t := range c.megatronStarts() {
		if unknown := t.otherParser(); len(unknown) > 0 {
			c.warnThat(unknown[0].line, t.start.Program.Text(), otherFlags.With(len(unknown), len(t.flags), unknown[0].name))
			continue
		}
		for _, f := range t.flags {
			if f.ok || seen[f.name] || f.name == "--" || f.name == "-h" || f.name == "--help" || strings.Contains(f.name, "$") {
				continue
			}
			seen[f.name] = true
			fix := lang.Text{}
			if near := megatron.Nearest(f.name); lastWith(f.name) != "" {
				fix = lang.Text{EN: "remove it if your copy is newer", ZH: "如果您的代码更新，请删除它"}
			} else if len(near) > 0 {
				fix = lang.Text{EN: "if it is misspelt: " + strings.Join(near, " or "), ZH: "如果是笔误：" + strings.Join(near, " 或 ")}
			}
			if to, ok := megatron.Renamed(f.name); ok {
				fix = lang.Text{EN: "use " + to, ZH: "改用 " + to}
			}
			c.reportWithFix(f.line, f.name, fix)
			if last := lastWith(f.name); last != "" { // the script does not show how old the copy is
				finding := &c.out[len(c.out)-1]
				finding.Severity, finding.Message = rules.Warning, about.With(f.name, droppedFlag.With(last)).In(c.lang)
			}
		}
	}
}

// templated reports whether the shell reads words such as <PATH TO DATA> as
// redirections. The words that remain are no values that anybody meant.
func (t *megatronStart) templated() bool {
	return slices.ContainsFunc(t.start.Redirects, func(r script.Redirect) bool { return strings.HasPrefix(r.Target.String(), "--") })
}

func flagType(c *checker) {
	for _, t := range c.megatronStarts() {
		if t.templated() {
			continue
		}
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
				what := strings.Join(append([]string{f.name}, f.values...), " ")
				if e.Fault == megatron.BadChoice && t.addsFlags() {
					c.warnThat(line, what, addedValue)
				} else {
					c.report(line, what)
				}
				break
			}
		}
	}
}
