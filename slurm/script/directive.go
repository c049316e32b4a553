package script

import (
	"slices"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/internal/near"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// A Directive is one line that is, or was intended as, a #SBATCH line.
type Directive struct {
	Line int
	// Text is the text after #SBATCH.
	Text    string
	Options Options
	// Component is the number of its component in a heterogeneous job, from 0.
	Component int
	// Ignored says why sbatch does not read the line, or is "".
	Ignored Reason
	// Fault says why sbatch rejects the line, or is empty. Misread means that sbatch accepts it,
	// with another value than was meant.
	Fault   lang.Text
	Misread bool
	// FaultOption is the option that Fault is about, without dashes.
	FaultOption string
}

var (
	textNoOption    = lang.Text{EN: "sbatch has no option %s", ZH: "sbatch 没有选项 %s"}
	textNoValue     = lang.Text{EN: "%s takes no value", ZH: "%s 不带取值"}
	textNeedsValue  = lang.Text{EN: "%s needs a value", ZH: "%s 缺少取值"}
	textNotOption   = lang.Text{EN: "%q is not an option", ZH: "%q 不是选项"}
	textOpenQuote   = lang.Text{EN: "the quote %s is not closed", ZH: "引号 %s 没有闭合"}
	textShortEquals = lang.Text{
		EN: "a short option such as %s takes its value without =, so the value here is %q",
		ZH: "%s 这样的短选项，取值前不写等号，因此这里的取值是 %q",
	}
)

// A Reason says why sbatch does not read a directive.
type Reason string

// The reasons for which sbatch does not read a directive.
const (
	Late    Reason = "after the first command"
	Indent  Reason = "blanks before #SBATCH"
	Spelled Reason = "not spelt #SBATCH"
)

// directives returns the directives of a batch script. Like sbatch, it reads line by
// line, and directives after the first line that is neither blank nor a comment are
// ignored. inside reports whether a line is part of a here-document or string.
func (r *reader) directives(t text, inside func(offset int) bool) []Directive {
	var out []Directive
	late, component := false, 0
	for _, l := range t.lines() {
		trimmed := strings.TrimLeft(l.text, " \t")
		if inside(l.start) {
			late = true // a command has opened the here-document
			continue
		}
		if trimmed == "" {
			continue
		}
		if trimmed[0] != '#' {
			late = true
			continue
		}
		word, rest := trimmed, ""
		if len(trimmed) >= len("#SBATCH") {
			word, rest = trimmed[:len("#SBATCH")], trimmed[len("#SBATCH"):]
		}
		if !strings.EqualFold(word, "#SBATCH") {
			var ok bool
			if word, rest, ok = misspelt(trimmed); !ok {
				continue
			}
		}
		if rest != "" && rest[0] != ' ' && rest[0] != '\t' && rest[0] != '-' {
			continue
		}
		d := Directive{Line: l.line, Text: strings.TrimSpace(rest)}
		exact := word == "#SBATCH"
		option := strings.HasPrefix(d.Text, "-")
		switch {
		case !option && (!exact || late || trimmed != l.text):
			continue // prose
		case !exact:
			d.Ignored = Spelled
		case trimmed != l.text:
			d.Ignored = Indent
		case late:
			d.Ignored = Late
		}
		if d.Text == "hetjob" || d.Text == "packjob" {
			component++
			continue
		}
		r.readDirective(&d)
		d.Component = component
		out = append(out, d)
	}
	return out
}

// commentedOut matches an option of sbatch in a comment, as "# SBATCH --nodes=2".
var commentedOut = lazy.New(`^#[ \t]+SBATCH[ \t]+--?[A-Za-z]`)

// Spaced returns the lines of a script that has no directive but several comments such as
// "# SBATCH --nodes=2". sbatch reads none of them. Beside a directive, such a comment is one
// that somebody switched off.
func (j *Job) Spaced() (lines []int) {
	if j.Inner || len(j.Directives) > 0 {
		return nil
	}
	for i, l := range j.Script.Lines {
		if commentedOut.MatchString(l) {
			lines = append(lines, i+1)
		}
	}
	if len(lines) == 1 {
		return nil
	}
	return lines
}

// misspelt splits a line with a misspelt #SBATCH, such as "#SBACTH --time=1:00:00".
func misspelt(line string) (word, rest string, ok bool) {
	word, rest, ok = strings.Cut(line, " ")
	if !ok || len(word) < 6 || !optionLike(strings.TrimSpace(rest)) || near.Distance(strings.ToUpper(word), "#SBATCH") != 1 {
		return "", "", false
	}
	return word, " " + rest, !switchedOff(word)
}

// switchedOff reports whether word is #SBATCH with a character before its S, as ##SBATCH
// and #XSBATCH: so people switch a directive off.
func switchedOff(word string) bool {
	return len(word) > len("#SBATCH") && word[1] != 'S' && strings.HasSuffix(word, "SBATCH")
}

// optionLike reports whether s begins with an option of sbatch, such as "--time=…",
// "-n 1" or "-n1". A word of a comment, such as "-wise", is not an option.
func optionLike(s string) bool {
	if strings.HasPrefix(s, "--") {
		return true
	}
	if len(s) < 3 || s[0] != '-' {
		return false
	}
	name, _ := slurm.BatchLetter(s[1])
	return name != "" && (s[2] == ' ' || s[2] >= '0' && s[2] <= '9')
}

// readDirective splits a directive into words as sbatch does, and parses its options as
// getopt_long does.
func (r *reader) readDirective(d *Directive) {
	words, open := slurm.SplitDirective(oneWord(d.Text))
	if open != 0 {
		d.Fault = textOpenQuote.With(string(open))
		return
	}
	for i, w := range words {
		words[i] = withBlanks(w)
	}
	fail := func(option string, said lang.Text) {
		if d.Fault.EN == "" {
			d.Fault, d.FaultOption = said, option
		}
	}
	for len(words) > 0 {
		w := words[0]
		words = words[1:]
		switch {
		case strings.HasPrefix(w, "--") && len(w) > 2:
			given, val, has := strings.Cut(w, "=")
			name, takes, ok := slurm.BatchOption(given[2:])
			if !ok {
				if plugin(given[2:]) {
					d.Options = append(d.Options, Option{Name: given[2:], Given: given, Value: r.decode(val, d.Line), Has: has, Line: d.Line})
					continue
				}
				fail(given[2:], textNoOption.With(given))
				// The value of a misspelt option is not a word of its own.
				if !has && len(words) > 0 && !strings.HasPrefix(words[0], "-") {
					words = words[1:]
				}
				continue
			}
			o := Option{Name: name, Given: given, Has: has, Line: d.Line}
			switch {
			case takes == slurm.NoArgument && has:
				fail(name, textNoValue.With(given))
			case takes == slurm.NeedsArgument && !has && len(words) == 0:
				fail(name, textNeedsValue.With(given))
			case takes == slurm.NeedsArgument && !has:
				val, o.Has, words = words[0], true, words[1:]
			}
			o.Value = r.decode(val, d.Line)
			r.addOption(d, o, val, fail)
		case len(w) > 1 && w[0] == '-':
			for i := 1; i < len(w); i++ {
				name, takes := slurm.BatchLetter(w[i])
				if name == "" {
					fail(w[i:i+1], textNoOption.With("-"+w[i:i+1]))
					break
				}
				o := Option{Name: name, Given: w[:1] + w[i:i+1], Line: d.Line}
				if takes != slurm.NoArgument {
					val := w[i+1:]
					if val == "" && takes == slurm.NeedsArgument {
						if len(words) == 0 {
							fail(name, textNeedsValue.With(o.Given))
							break
						}
						val, words = words[0], words[1:]
					}
					if _, checked := valueForms[name]; strings.HasPrefix(val, "=") && !checked {
						d.Misread = d.Misread || d.Fault.EN == ""
						fail(name, textShortEquals.With(o.Given, val))
					}
					o.Value, o.Has = r.decode(val, d.Line), true
					r.addOption(d, o, val, fail)
					break
				}
				d.Options = append(d.Options, o)
			}
		default:
			fail("", textNotOption.With(w))
		}
	}
}

// plugins are options that Slurm itself does not have and that common plugins add:
// pyxis, shifter, uenv, the container engine of Alps, the job monitor of MPCDF, and the
// spot quota of PJLab. A name that ends in a dash is a prefix.
var plugins = []string{
	"container-", "no-container-", "nvmps", "uenv", "view", "environment",
	"image", "imageuser", "volume", "module", "ccm", "quotatype",
}

func plugin(name string) bool {
	return slices.ContainsFunc(plugins, func(p string) bool {
		return name == p || strings.HasSuffix(p, "-") && strings.HasPrefix(name, p)
	})
}

func (r *reader) addOption(d *Directive, o Option, val string, fail func(string, lang.Text)) {
	d.Options = append(d.Options, o)
	// The form of a value with an unknown part cannot be checked.
	if o.Has && !strings.Contains(val, "$") && !place.MatchString(val) && !o.Value.Unknown() {
		if bad := badValue(o.Name, val); bad.EN != "" {
			fail(o.Name, bad)
		}
	}
}
