package slurm

import (
	"slices"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
)

// An Option is one option of sbatch, under its long name without dashes.
type Option struct {
	Name  string
	Value string
}

// Options are the options of one submission in order: a later option overrides an
// earlier one.
type Options []Option

// Value returns the value of the last option called name, or "".
func (o Options) Value(name string) string {
	v, _ := o.Lookup(name)
	return v
}

// Lookup returns the value of the last option called name, and whether there is such an
// option.
func (o Options) Lookup(name string) (string, bool) {
	for i := len(o) - 1; i >= 0; i-- {
		if o[i].Name == name {
			return o[i].Value, true
		}
	}
	return "", false
}

// ReadDirectives returns the options of a script's #SBATCH lines by sbatch's own rules:
// sbatch stops at the first command, wants "#SBATCH" at the very start of the line,
// accepts several options on a line, reads quotes as a shell does, takes " #" as the
// start of a comment, and expands nothing. For a heterogeneous job it returns the
// options of the first component, which include those that hold for all components.
func ReadDirectives(script string) (Options, error) {
	components, err := ReadComponents(script)
	return components[0], err
}

// ReadComponents returns the options of each component of a heterogeneous job,
// separated by "#SBATCH hetjob" lines. Any other job has one component.
func ReadComponents(script string) ([]Options, error) {
	all := []Options{nil}
	number := 0
	for line := range strings.Lines(script) {
		number++
		line = strings.TrimRight(line, "\r\n")
		if blank := strings.TrimSpace(line); blank != "" && !strings.HasPrefix(blank, "#") {
			break
		}
		rest, ok := strings.CutPrefix(line, "#SBATCH")
		if !ok {
			continue
		}
		if rest != "" && rest[0] != ' ' && rest[0] != '\t' && rest[0] != '-' {
			continue
		}
		words, open := SplitDirective(rest)
		if open != 0 {
			return all, lang.Text{EN: "line %d: %s", ZH: "第 %d 行：%s"}.Err(number, Sayf("unmatched `%c` in %s", open, rest))
		}
		if len(words) == 1 && slices.Contains(hetWords, words[0]) {
			all = append(all, nil)
			continue
		}
		some, err := ReadOptions(words)
		if err != nil {
			return all, lang.Text{EN: "line %d: %s", ZH: "第 %d 行：%s"}.Err(number, err)
		}
		all[len(all)-1] = append(all[len(all)-1], some...)
	}
	return all, nil
}

// hetWords separate the components of a heterogeneous job: hetjob today, packjob before
// 20.02.
var hetWords = []string{"hetjob", "packjob"}

// ReadOptions reads command-line arguments of sbatch.
func ReadOptions(args []string) (Options, error) {
	var opts Options
	for i := 0; i < len(args); i++ {
		arg := args[i]
		var o Option
		var has bool
		takes := NeedsArgument // so does an option that is not known
		switch {
		case strings.HasPrefix(arg, "--") && len(arg) > 2:
			o.Name, o.Value, has = strings.Cut(arg[2:], "=")
			if full, arg, known := BatchOption(o.Name); known {
				o.Name, takes = full, arg
			}
		case strings.HasPrefix(arg, "-") && len(arg) > 1 && batchLetters[arg[1]] != "":
			o.Name, takes = BatchLetter(arg[1])
			if has = len(arg) > 2; has && takes != NoArgument {
				o.Value = arg[2:]
			}
		case strings.HasPrefix(arg, "-"):
			return opts, Sayf("unrecognized option '%s'", arg)
		default:
			return opts, Sayf("invalid directive found in batch script: %s", arg)
		}
		if !has && takes == NeedsArgument {
			if i+1 == len(args) {
				return opts, Sayf("option '--%s' requires an argument", o.Name)
			}
			i++
			o.Value = args[i]
		}
		opts = append(opts, o)
	}
	return opts, nil
}
