package script

import (
	"slices"
	"strings"
)

// An argument says whether an option takes an argument.
type argument int

const (
	none argument = iota
	required
	optional
)

// longOptions are the options of sbatch, srun and salloc in the manual pages of Slurm
// 20.11 to 25.05, including old spellings that still work. Options that sbatch does not
// have are in stepOptions.
var longOptions = map[string]argument{
	"account": required, "acctg-freq": required, "array": required, "batch": required, "bb": required, "bbf": required,
	"begin": required, "chdir": required, "cluster": required, "cluster-constraint": required, "clusters": required, "comment": required,
	"constraint": required, "container": required, "container-id": required, "contiguous": none, "core-spec": required,
	"cores-per-socket": required, "cpu-freq": required, "cpus-per-gpu": required, "cpus-per-task": required,
	"deadline": required, "delay-boot": required, "dependency": required, "distribution": required, "error": required,
	"exclude": required, "exclusive": optional, "export": required, "export-file": required, "extra": required, "extra-node-info": required,
	"get-user-env": optional, "gid": required, "gpu-bind": required, "gpu-freq": required, "gpus": required,
	"gpus-per-node": required, "gpus-per-socket": required, "gpus-per-task": required, "gres": required,
	"gres-flags": required, "help": none, "hint": required, "hold": none, "ignore-pbs": none, "input": required,
	"job-name": required, "kill-on-invalid-dep": required, "licenses": required, "mail-type": required,
	"mail-user": required, "mcs-label": required, "mem": required, "mem-bind": required, "mem-per-cpu": required,
	"mem-per-gpu": required, "mincores": required, "mincpus": required, "minsockets": required, "minthreads": required,
	"network": required, "nice": optional, "no-kill": optional, "no-requeue": none, "nodefile": required,
	"nodelist": required, "nodes": required, "ntasks": required, "ntasks-per-core": required, "ntasks-per-gpu": required,
	"ntasks-per-node": required, "ntasks-per-socket": required, "ntasks-per-tres": required, "oom-kill-step": optional, "open-mode": required, "output": required,
	"overcommit": none, "oversubscribe": none, "parsable": none, "partition": required, "power": required,
	"prefer": required, "priority": required, "profile": required, "propagate": optional, "qos": required, "quiet": none,
	"reboot": none, "requeue": none, "reservation": required, "resv-ports": optional, "segment": required, "signal": required,
	"sockets-per-node": required, "spread-job": none, "stepmgr": none, "switches": required, "tasks-per-node": required,
	"test-only": none, "thread-spec": required, "threads-per-core": required, "time": required, "time-min": required,
	"tmp": required, "tres-bind": required, "tres-per-job": required, "tres-per-node": required, "tres-per-socket": required, "tres-per-task": required, "uid": required,
	"usage": none, "use-min-nodes": none, "verbose": none, "version": none, "wait": none, "wait-all-nodes": required,
	"wckey": required, "wrap": required, "consolidate-segments": none, "spread-segments": none, "autocomplete": required,
}

var stepOptions = map[string]argument{
	"accel-bind": required, "bcast": optional, "bcast-exclude": required, "compress": optional, "cpu-bind": required, "cpu_bind": required, "mem_bind": required,
	"debugger-test": none, "disable-status": none, "epilog": required, "exact": none, "het-group": required, "pack-group": required, "immediate": optional,
	"interactive": none, "jobid": required, "kill-on-bad-exit": optional, "label": none, "launch-cmd": none, "mpi": required,
	"msg-timeout": required, "multi-prog": none, "no-allocate": none, "ntasks-per-tres": required, "overlap": none,
	"preserve-env": none, "preserve-slurm-env": none, "prolog": required, "pty": optional, "quit-on-interrupt": none, "relative": required,
	"send-libs": optional, "slurmd-debug": required, "task-epilog": required, "task-prolog": required, "threads": required,
	"unbuffered": none, "wait": required, "whole": none, "external-launcher": optional, "treewidth": required,
	// Options of salloc alone.
	"x11": optional, "bell": none, "no-bell": none, "no-shell": none, "kill-command": optional,
	// Options of the container plugin pyxis.
	"container-image": required, "container-mounts": required, "container-workdir": required, "container-name": required,
	"container-save": required, "container-mount-home": none, "no-container-mount-home": none, "container-remap-root": none,
	"no-container-remap-root": none, "container-entrypoint": none, "no-container-entrypoint": none, "container-writable": none,
	"container-readonly": none, "container-env": required, "container-entrypoint-log": none,
}

var shortOptions = map[byte]string{
	'A': "account", 'a': "array", 'b': "begin", 'D': "chdir", 'M': "clusters", 'C': "constraint", 'S': "core-spec",
	'c': "cpus-per-task", 'd': "dependency", 'm': "distribution", 'e': "error", 'x': "exclude", 'B': "extra-node-info",
	'G': "gpus", 'h': "help", 'H': "hold", 'i': "input", 'J': "job-name", 'L': "licenses", 'k': "no-kill", 'F': "nodefile",
	'w': "nodelist", 'N': "nodes", 'n': "ntasks", 'o': "output", 'O': "overcommit", 's': "oversubscribe", 'p': "partition",
	'q': "qos", 'Q': "quiet", 't': "time", 'v': "verbose", 'V': "version", 'W': "wait",
}

var stepShort = map[byte]string{
	'X': "disable-status", 'I': "immediate", 'K': "kill-on-bad-exit", 'l': "label", 'Z': "no-allocate", 'E': "preserve-env",
	'r': "relative", 'T': "threads", 'u': "unbuffered",
}

// optionalShort are the short options with an optional argument, which must be in the
// same word.
const optionalShort = "IKk"

// aliases maps old spellings of options to the current ones.
var aliases = map[string]string{
	"tasks-per-node": "ntasks-per-node", "cpu_bind": "cpu-bind", "mem_bind": "mem-bind", "cluster": "clusters",
}

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

// lookupOption finds an option by its long name or by an unambiguous beginning of it. If
// several options have that beginning, full is the shortest one and ok is false.
func lookupOption(name string, tables ...map[string]argument) (full string, arg argument, ok bool) {
	n := 0
	for _, t := range tables {
		if a, ok := t[name]; ok {
			return canonical(name), a, true
		}
		for long, a := range t {
			if !strings.HasPrefix(long, name) {
				continue
			}
			if n++; n == 1 || len(long) < len(full) || len(long) == len(full) && long < full {
				full, arg = long, a
			}
		}
	}
	return canonical(full), arg, n == 1
}

func canonical(name string) string {
	if a, ok := aliases[name]; ok {
		return a
	}
	return name
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
			full, arg, ok := lookupOption(strings.TrimPrefix(name, "--"), longOptions, stepOptions)
			o := Option{Name: full, Given: name, Value: val, Has: has, Line: a.Line}
			if !ok {
				o.Name = strings.TrimPrefix(name, "--")
			}
			if full == "wait" {
				arg = required // srun --wait takes seconds, sbatch --wait takes no value
			}
			args = args[1:]
			if ok && arg == required && !has && len(args) > 0 {
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
		name, ok := shortOptions[text[i]]
		if !ok {
			name = stepShort[text[i]]
		}
		o := Option{Name: name, Given: "-" + text[i:i+1], Line: a.Line}
		arg := longOptions[name]
		if x, ok := stepOptions[name]; ok {
			arg = x
		}
		if arg == required || arg == optional && strings.IndexByte(optionalShort, text[i]) >= 0 {
			rest := v[1:]
			if i+1 < len(text) {
				p := v[0]
				p.Text = text[i+1:]
				rest = append(Value{p}, rest...)
			}
			if len(rest) > 0 {
				o.Value, o.Has = rest, true
			} else if arg == required && len(args) > 0 {
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

// An OptionForm is the full name of an option of sbatch. NeedsValue says that the
// option requires a value; Alone says that it takes none.
type OptionForm struct {
	Name              string
	NeedsValue, Alone bool
}

// SbatchOption returns the option with the given name. The name may also be an old
// spelling or a beginning of the option's name. ok is false for a name that sbatch is
// not known to have.
func SbatchOption(name string) (form OptionForm, ok bool) {
	full, arg, ok := lookupOption(name, longOptions)
	return OptionForm{Name: full, NeedsValue: arg == required, Alone: arg == none}, ok || full != ""
}

// NearestOption returns the option of sbatch that a misspelt name, given without
// leading dashes, was most likely intended to be: the only option that differs by one
// edit, or by dashes for underscores.
func NearestOption(name string) (string, bool) {
	if _, _, ok := lookupOption(name, longOptions); ok || len(name) < 4 {
		return "", false
	}
	plain := strings.ReplaceAll(name, "_", "-")
	if _, ok := longOptions[plain]; ok {
		return plain, true
	}
	best := ""
	for long := range longOptions {
		if oneEdit(plain, long) {
			if best != "" {
				return "", false
			}
			best = long
		}
	}
	return best, best != ""
}

// oneEdit reports whether one edit changes a to b: one letter inserted, deleted or
// replaced, or two adjacent letters swapped.
func oneEdit(a, b string) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	if len(b)-len(a) > 1 {
		return false
	}
	i := 0
	for i < len(a) && a[i] == b[i] {
		i++
	}
	if len(a) < len(b) {
		return a[i:] == b[i+1:]
	}
	if i >= len(a) {
		return false
	}
	return a[i+1:] == b[i+1:] || i+1 < len(a) && a[i] == b[i+1] && a[i+1] == b[i] && a[i+2:] == b[i+2:]
}
