package slurm

import (
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/near"
)

// An Argument says whether an option takes an argument.
type Argument int

// The kinds of options. An optional argument follows "=", or the letter of a short option.
const (
	NoArgument Argument = iota
	NeedsArgument
	OptionalArgument
)

// batchOptions are the options of sbatch in the manual pages of Slurm 20.11 to 25.05, including
// old spellings that still work. Most of them are options of srun and salloc too.
var batchOptions = optionTable(`consolidate-segments contiguous help hold ignore-pbs no-requeue overcommit oversubscribe parsable
	quiet reboot requeue spread-job spread-segments stepmgr test-only usage use-min-nodes verbose version wait`,
	`exclusive get-user-env nice no-kill oom-kill-step propagate resv-ports`,
	`account acctg-freq array autocomplete batch bb bbf begin chdir cluster cluster-constraint clusters comment
	constraint container container-id core-spec cores-per-socket cpu-freq cpus-per-gpu cpus-per-task deadline
	delay-boot dependency distribution error exclude export export-file extra extra-node-info gid gpu-bind gpu-freq
	gpus gpus-per-node gpus-per-socket gpus-per-task gres gres-flags hint input job-name kill-on-invalid-dep licenses
	mail-type mail-user mcs-label mem mem-bind mem-per-cpu mem-per-gpu mincores mincpus minsockets minthreads network
	nodefile nodelist nodes ntasks ntasks-per-core ntasks-per-gpu ntasks-per-node ntasks-per-socket ntasks-per-tres
	open-mode output partition power prefer priority profile qos reservation segment signal sockets-per-node switches
	tasks-per-node thread-spec threads-per-core time time-min tmp tres-bind tres-per-job tres-per-node tres-per-socket
	tres-per-task uid wait-all-nodes wckey wrap`)

// stepOptions are the options that only srun, salloc and the container plugin pyxis have.
var stepOptions = optionTable(`bell container-entrypoint container-entrypoint-log container-mount-home container-readonly
	container-remap-root container-writable debugger-test disable-status exact interactive label launch-cmd multi-prog
	no-allocate no-bell no-container-entrypoint no-container-mount-home no-container-remap-root no-shell overlap
	preserve-env preserve-slurm-env quit-on-interrupt unbuffered whole`,
	`bcast compress external-launcher immediate kill-command kill-on-bad-exit pty send-libs x11`,
	`accel-bind bcast-exclude container-env container-image container-mounts container-name container-save
	container-workdir cpu-bind cpu_bind epilog het-group jobid mem_bind mpi msg-timeout pack-group prolog relative
	slurmd-debug task-epilog task-prolog threads treewidth wait`)

// optionTable returns a table of options from the names of those without, with an optional and with
// a required argument.
func optionTable(without, optional, required string) map[string]Argument {
	table := map[string]Argument{}
	for arg, names := range map[Argument]string{NoArgument: without, OptionalArgument: optional, NeedsArgument: required} {
		for name := range strings.FieldsSeq(names) {
			table[name] = arg
		}
	}
	return table
}

// batchLetters are the short options of sbatch; stepLetters those that only srun has.
var (
	batchLetters = map[byte]string{
		'A': "account", 'a': "array", 'b': "begin", 'D': "chdir", 'M': "clusters", 'C': "constraint", 'S': "core-spec",
		'c': "cpus-per-task", 'd': "dependency", 'm': "distribution", 'e': "error", 'x': "exclude", 'B': "extra-node-info",
		'G': "gpus", 'h': "help", 'H': "hold", 'i': "input", 'J': "job-name", 'L': "licenses", 'k': "no-kill", 'F': "nodefile",
		'w': "nodelist", 'N': "nodes", 'n': "ntasks", 'o': "output", 'O': "overcommit", 's': "oversubscribe", 'p': "partition",
		'q': "qos", 'Q': "quiet", 't': "time", 'v': "verbose", 'V': "version", 'W': "wait",
	}
	stepLetters = map[byte]string{
		'X': "disable-status", 'I': "immediate", 'K': "kill-on-bad-exit", 'l': "label", 'Z': "no-allocate", 'E': "preserve-env",
		'r': "relative", 'T': "threads", 'u': "unbuffered",
	}
)

// optionAliases are old spellings that still work.
var optionAliases = map[string]string{
	"tasks-per-node": "ntasks-per-node", "cpu_bind": "cpu-bind", "mem_bind": "mem-bind", "cluster": "clusters", "workdir": "chdir", "share": "oversubscribe",
}

// BatchOption finds an option of sbatch by its long name, by an old spelling, or by an unambiguous
// beginning. Where several options have that beginning, full is the shortest and ok is false.
func BatchOption(name string) (full string, takes Argument, ok bool) {
	return findOption(name, batchOptions)
}

// StepOption is BatchOption for srun and salloc, whose own options come first: srun --wait takes
// seconds, sbatch --wait takes no value.
func StepOption(name string) (full string, takes Argument, ok bool) {
	return findOption(name, stepOptions, batchOptions)
}

// BatchLetter returns the option of sbatch with a one-letter name; full is empty if there is none.
func BatchLetter(letter byte) (full string, takes Argument) {
	full = batchLetters[letter]
	return full, batchOptions[full]
}

// StepLetter is BatchLetter for srun and salloc.
func StepLetter(letter byte) (full string, takes Argument) {
	if full, takes = BatchLetter(letter); full == "" {
		full = stepLetters[letter]
	}
	if own, has := stepOptions[full]; has {
		takes = own
	}
	return full, takes
}

// MailTypes are the events of --mail-type.
var MailTypes = strings.Fields("NONE BEGIN END FAIL REQUEUE ALL INVALID_DEPEND STAGE_OUT TIME_LIMIT TIME_LIMIT_90 TIME_LIMIT_80 TIME_LIMIT_50 ARRAY_TASKS")

func findOption(name string, tables ...map[string]Argument) (full string, takes Argument, ok bool) {
	n := 0
	for _, t := range tables {
		if takes, ok := t[name]; ok {
			return canonical(name), takes, true
		}
		for long, arg := range t {
			if !strings.HasPrefix(long, name) {
				continue
			}
			if n++; n == 1 || len(long) < len(full) || len(long) == len(full) && long < full {
				full, takes = long, arg
			}
		}
	}
	return canonical(full), takes, n == 1
}

func canonical(name string) string {
	if a, ok := optionAliases[name]; ok {
		return a
	}
	return name
}

// NearestOption returns the option of sbatch that a misspelt name, given without
// leading dashes, was most likely intended to be: the only option that differs by one
// edit, or by dashes for underscores.
func NearestOption(name string) (string, bool) {
	if _, _, ok := BatchOption(name); ok || len(name) < 4 {
		return "", false
	}
	plain := strings.ReplaceAll(name, "_", "-")
	if _, ok := batchOptions[plain]; ok {
		return plain, true
	}
	best := ""
	for long := range batchOptions {
		if near.Distance(plain, long) == 1 {
			if best != "" {
				return "", false
			}
			best = long
		}
	}
	return best, best != ""
}

// SplitDirective splits the text of one #SBATCH line into words as sbatch does: quotes join words, a
// backslash escapes the next character except in single quotes, and a # outside quotes begins a
// comment, even in the middle of a word. open is a quote that is not closed, or 0.
func SplitDirective(line string) (words []string, open byte) {
	var word strings.Builder
	inWord := false
	for i := 0; i < len(line); i++ {
		c := line[i]
		switch {
		case open != 0 && c == open:
			open = 0
		case c == '\\' && open != '\'' && i+1 < len(line):
			i++
			word.WriteByte(line[i])
			inWord = true
		case open != 0:
			word.WriteByte(c)
		case c == '\'' || c == '"':
			open, inWord = c, true
		case c == ' ' || c == '\t':
			if inWord {
				words = append(words, word.String())
			}
			word.Reset()
			inWord = false
		case c == '#':
			i = len(line)
		default:
			word.WriteByte(c)
			inWord = true
		}
	}
	if inWord && open == 0 {
		words = append(words, word.String())
	}
	return words, open
}
