package megatron

import (
	"errors"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Args holds the values that Megatron's parser reads from a command line.
type Args struct {
	Options
	// Run is the launch that was parsed.
	Run Run
	// given marks the destinations that the command line sets, by their numbers.
	given []bool
}

// Given reports whether the command line contains the flag under any of its names.
func (a *Args) Given(name string) bool {
	f, ok := LookupFlagIn(a.Run.Release, name)
	return ok && a.given[f.dest]
}

// A Fault is the reason why Megatron's parser rejects a part of the command line.
type Fault string

// The faults of a command line.
const (
	UnknownFlag  Fault = "unknown flag"
	StrayValue   Fault = "stray value"
	BadValue     Fault = "bad value"
	BadChoice    Fault = "bad choice"
	MissingValue Fault = "missing value"
	ExtraValue   Fault = "value for a switch"
	AsksForHelp  Fault = "asks for help"
)

// A ParseError is one part of the command line that Megatron's parser rejects.
type ParseError struct {
	Fault Fault
	// Flag is the flag as written. For a stray value it is the preceding flag, if
	// any.
	Flag string
	// Values are the rejected words.
	Values []string
	// Known is the flag's definition; zero for an unknown flag, unless another entry
	// script knows it.
	Known Flag
	// Nearest are existing flags whose names are similar to an unknown flag's.
	Nearest []string
}

// Parse reads a command line like Megatron's parser, with abbreviations off. It
// returns every fault, not only the first. A flag with a fault keeps its default.
func Parse(run Run) (*Args, []ParseError) {
	p := parser{args: &Args{Options: defaultOptions, Run: run, given: make([]bool, destinations)}, argv: run.Argv}
	olderDefaults(run.Release.OrNewest(), &p.args.Options)
	p.options = reflect.ValueOf(&p.args.Options).Elem()
	p.parse()
	return p.args, p.errors
}

// KnownEntry reports whether entry is one of Megatron's own pretrain scripts.
// These reject unknown flags.
func KnownEntry(entry string) bool {
	switch entry {
	case "", "gpt", "hybrid", "t5", "bert":
		return true
	}
	return false
}

// adds reports whether the entry script adds the flag to Megatron's own. Only the GPT
// and the hybrid script add those of ModelOpt.
func (a *Args) adds(f *Flag) bool {
	return !strings.HasPrefix(f.Group, "modelopt") || a.Run.Entry != "t5" && a.Run.Entry != "bert"
}

type parser struct {
	args    *Args
	argv    []string
	options reflect.Value
	errors  []ParseError
}

// mostNearest is for how many unknown flags the nearest ones are looked for: each takes a
// millisecond, and who gives more gave the arguments of another program.
const mostNearest = 50

func (p *parser) parse() {
	index := flagIndex(p.args.Run.Release)
	last := "" // the flag before a stray value
	for i := 0; i < len(p.argv); {
		word := p.argv[i]
		if word == "--" {
			// All words after "--" are positional, and Megatron takes no positional
			// arguments.
			if rest := p.argv[i+1:]; len(rest) > 0 {
				p.fail(ParseError{Fault: StrayValue, Flag: last, Values: rest})
			}
			return
		}
		if !looksLikeFlag(word, index) {
			j := i + 1
			for j < len(p.argv) && p.argv[j] != "--" && !looksLikeFlag(p.argv[j], index) {
				j++
			}
			p.fail(ParseError{Fault: StrayValue, Flag: last, Values: p.argv[i:j]})
			i = j
			continue
		}
		i++
		name, explicit, hasExplicit := word, "", false
		if _, ok := index[word]; !ok {
			name, explicit, hasExplicit = strings.Cut(word, "=")
		}
		last = name
		j := i
		for j < len(p.argv) && p.argv[j] != "--" && !looksLikeFlag(p.argv[j], index) {
			j++
		}
		at, ok := index[name]
		if ok && !p.args.adds(&flagTable[at]) {
			p.fail(ParseError{Fault: UnknownFlag, Flag: name, Values: p.argv[i:j], Known: flagTable[at]})
			i = j
			continue
		}
		if !ok {
			if word == "-h" || word == "--help" {
				p.fail(ParseError{Fault: AsksForHelp, Flag: word})
				continue
			}
			if slices.Contains(p.args.Run.Extra, name) {
				i = j // a fork's own flag, with whatever follows it
				continue
			}
			var values []string
			if hasExplicit {
				values = []string{explicit}
			}
			var near []string
			if len(p.errors) < mostNearest {
				near = nearestIn(p.args.Run.Release, name)
			}
			p.fail(ParseError{Fault: UnknownFlag, Flag: name, Values: append(values, p.argv[i:j]...), Nearest: near})
			i = j
			continue
		}
		i += p.take(&flagTable[at], name, explicit, hasExplicit, p.argv[i:j])
	}
}

// looksLikeFlag follows argparse: a word that begins with a dash is a flag,
// unless it contains a space or is a negative number.
func looksLikeFlag(word string, index map[string]int) bool {
	if len(word) < 2 || word[0] != '-' {
		return false
	}
	if _, ok := index[word]; ok {
		return true
	}
	if name, _, ok := strings.Cut(word, "="); ok {
		if _, ok := index[name]; ok {
			return true
		}
	}
	return !negativeNumber(word[1:]) && !strings.Contains(word, " ")
}

// negativeNumber reports whether s, the text after a minus sign, matches \d+ or
// \d*\.\d+. Like argparse it knows no exponents.
func negativeNumber(s string) bool {
	whole, fraction, dotted := strings.Cut(s, ".")
	if dotted {
		return digits(whole) && digits(fraction) && fraction != ""
	}
	return digits(whole) && whole != ""
}

func digits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return true
}

// take stores the flag's values and returns how many of words it consumes.
func (p *parser) take(f *Flag, name, explicit string, hasExplicit bool, words []string) int {
	if f.Type == Switch {
		if hasExplicit {
			p.fail(ParseError{Fault: ExtraValue, Flag: name, Values: []string{explicit}, Known: *f})
			return 0
		}
		on := f.Action == SetTrue || f.Action == Toggle && !strings.HasPrefix(name, "--no-")
		switch field := f.place(p.options); field.Kind() {
		case reflect.Bool:
			field.SetBool(on)
		case reflect.String: // a switch in an older release, which takes a word in the newest
			field.SetString(strconv.FormatBool(on))
		}
		p.args.given[f.dest] = true
		return 0
	}
	values, used := words, 0
	switch {
	case hasExplicit:
		values = []string{explicit}
	case f.Nargs == "+" || f.Nargs == "*":
		used = len(words)
	default:
		used = min(f.count(), len(words))
		values = words[:used]
	}
	if f.Nargs != "*" && len(values) < f.count() {
		p.fail(ParseError{Fault: MissingValue, Flag: name, Known: *f})
		return used
	}
	if fault := f.store(f.place(p.options), values); fault != "" {
		p.fail(ParseError{Fault: fault, Flag: name, Values: values, Known: *f})
		return used
	}
	p.args.given[f.dest] = true
	return used
}

// fail records an error. It also records unknown flags of a user's own script,
// which may add flags: the caller recognizes them by their Fault and decides.
func (p *parser) fail(e ParseError) { p.errors = append(p.errors, e) }

// count returns the least number of values that the flag needs.
func (f *Flag) count() int {
	if n, err := strconv.Atoi(f.Nargs); err == nil {
		return n
	}
	return 1
}

// place returns where the flag's value is kept. A value without a field is checked alone.
func (f *Flag) place(options reflect.Value) reflect.Value {
	if f.dest < options.NumField() {
		return options.Field(f.dest)
	}
	var to any = new([]string)
	switch f.Type {
	case Switch, Truth:
		to = new(bool)
	case Int, Tuple:
		to = new([]int)
	case Float:
		to = new([]float64)
	case Pattern:
		to = new(Freq)
	}
	return reflect.ValueOf(to).Elem()
}

// store converts the words and assigns them to the field. It returns the fault of
// the first word that Megatron would reject.
func (f *Flag) store(field reflect.Value, words []string) Fault {
	switch to := field.Addr().Interface().(type) {
	case *bool:
		*to = words[0] != "" // a switch that took a word in an older release
	case *int:
		return keep(to, words[0], parseInt)
	case *Opt[int]:
		return keepOpt(to, words[0], parseInt)
	case *float64:
		return keep(to, words[0], parseFloat)
	case *Opt[float64]:
		return keepOpt(to, words[0], parseFloat)
	case *string:
		return keep(to, words[0], f.parseWord)
	case *Opt[string]:
		return keepOpt(to, words[0], f.parseWord)
	case *Opt[bool]:
		*to = Some(words[0] != "") // Python's bool(): any non-empty text is true, even "False"
	case *Freq:
		return keep(to, words[0], parseFreq)
	case *Opt[Freq]:
		return keepOpt(to, words[0], parseFreq)
	case *[]string:
		return keepAll(to, words, f.parseWord)
	case *[]int:
		if f.Type == Tuple {
			words = strings.Split(strings.Trim(words[0], "()"), ",")
		}
		return keepAll(to, words, parseInt)
	case *[]float64:
		return keepAll(to, words, parseFloat)
	}
	return ""
}

func keep[T any](to *T, word string, parse func(string) (T, Fault)) Fault {
	v, fault := parse(word)
	if fault == "" {
		*to = v
	}
	return fault
}

func keepOpt[T any](to *Opt[T], word string, parse func(string) (T, Fault)) Fault {
	v, fault := parse(word)
	if fault == "" {
		*to = Some(v)
	}
	return fault
}

func keepAll[T any](to *[]T, words []string, parse func(string) (T, Fault)) Fault {
	all := make([]T, 0, len(words))
	for _, w := range words {
		v, fault := parse(w)
		if fault != "" {
			return fault
		}
		all = append(all, v)
	}
	*to = all
	return ""
}

// graphModules are the values of --cuda-graph-modules, including deprecated ones
// (megatron/core/transformer/enums.py:61, megatron/training/arguments.py:257).
var graphModules = []string{"attn", "mlp", "moe", "moe_router", "moe_preprocess", "mamba", "full", "full_iteration", "full_iteration_inference"}

func (f *Flag) parseWord(word string) (string, Fault) {
	choices := f.Choices
	switch f.Type {
	case GraphModule:
		if len(choices) == 0 {
			choices = graphModules
		}
	case Signal:
		if !strings.HasPrefix(word, "SIG") {
			return "", BadChoice
		}
	}
	if len(choices) > 0 && !slices.Contains(choices, word) {
		return "", BadChoice
	}
	return word, ""
}

// parseInt accepts what Python's int() accepts. It limits the result to ±2^53.
func parseInt(word string) (int, Fault) {
	s, ok := withoutUnderscores(strings.TrimSpace(word))
	if !ok {
		return 0, BadValue
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return 0, BadValue
	}
	return int(max(min(n, 1<<53), -1<<53)), ""
}

// parseFloat accepts what Python's float() accepts.
func parseFloat(word string) (float64, Fault) {
	s, ok := withoutUnderscores(strings.TrimSpace(word))
	if !ok || strings.ContainsAny(s, "xXpP") {
		return 0, BadValue
	}
	v, err := strconv.ParseFloat(s, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return 0, BadValue
	}
	return v, ""
}

// withoutUnderscores removes the underscores that Python allows between digits.
// It returns false where an underscore is anywhere else, or s is empty.
func withoutUnderscores(s string) (string, bool) {
	if !strings.Contains(s, "_") {
		return s, s != ""
	}
	for i := range len(s) {
		if s[i] == '_' && (i == 0 || i == len(s)-1 || !digits(s[i-1:i]) || !digits(s[i+1:i+2])) {
			return "", false
		}
	}
	return strings.ReplaceAll(s, "_", ""), true
}
