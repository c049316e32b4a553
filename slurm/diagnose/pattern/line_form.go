package pattern

import (
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
)

// A Form is what kind of line a line is, whatever words it holds. Only a
// statement decides what a failure was.
type Form uint8

const (
	// Statement lines say that something happened, in the form in which programs
	// report errors: a program's name, a level of error, a place in a source.
	Statement Form = iota
	// Bare lines say it without any such form: a print, a sentence, data. They
	// decide only where a process is known to have died and nothing else says why.
	Bare
	// Report lines are logged below error, announce what begins, or say that the
	// program goes on. They never decide.
	Report
	// Inert lines are tables, usage texts, settings, echoed commands and
	// listings. They say nothing of what happened.
	Inert
)

// FormOf tells the form of a line that belongs to no usage text.
func FormOf(text string) Form {
	trimmed := strings.TrimLeft(text, " \t")
	indented := len(trimmed) < len(text)
	switch {
	case isTable(trimmed), isEcho(trimmed, indented), isSetting(text, trimmed):
		return Inert
	case isReport(text):
		return Report
	case stated.MatchString(trimmed[:min(len(trimmed), 400)]):
		return Statement
	}
	return Bare
}

// isTable reports whether a line belongs to a table or a frame, such as
// nvidia-smi's: it begins and ends with a rule, or is one.
func isTable(line string) bool {
	switch line[0] {
	case '|':
		return len(line) > 1 && strings.HasSuffix(line, "|")
	case '+':
		return strings.HasPrefix(line, "+-") || strings.HasPrefix(line, "+=")
	case '=':
		return strings.HasPrefix(line, "===")
	case '-':
		return strings.HasPrefix(line, "---") && !strings.Contains(line, "signal")
	case '*':
		return strings.HasPrefix(line, "****")
	}
	for _, rule := range []string{"│", "┃", "║", "├", "└", "┌", "╭", "╰", "╔", "╚", "━", "═", "─"} {
		if strings.HasPrefix(line, rule) {
			return true
		}
	}
	return false
}

// isEcho reports whether a line is a command that is about to run, a comment, a
// frame of a native or Python stack, or a step of a build.
func isEcho(line string, indented bool) bool {
	switch line[0] {
	case '+', '$':
		return !indented && len(line) > 1 && (line[1] == ' ' || line[1] == '+')
	case '#':
		return true
	case '-': // an option and what it means
		return indented && len(line) > 1 && (line[1] == '-' || len(line) > 2 && (line[2] == ' ' || line[2] == ','))
	}
	return strings.HasPrefix(line, "frame #") || strings.HasPrefix(line, `File "`) || buildStep.MatchString(line)
}

var (
	// buildStep is ninja's "[1/3] /usr/bin/g++ -MMD …".
	buildStep = lazy.New(`^\[\d+/\d+\] \S*/\S+ -`)
	// environment is a line of `env`, "export NAME=value" or "declare -x".
	environment = lazy.New(`^(?:export |declare -x )?[A-Z][A-Z0-9_]*=`)
	// property is a name, a column of blanks or dots, and a value: nvidia-smi -q,
	// printed arguments, configurations.
	property = lazy.New(`^[\w ./()-]+(?: {2,}: | {2,}:$| \.{2,} )`)
	// member is a member of a printed dictionary or a JSON text, or a list's item.
	member = lazy.New(`^(?:\{['"][\w .-]+['"]: .*\}$|["'][\w ./-]+["']: |[\w.]+: ?(?:True|False|None|null|true|false|[\d.e+-]+),?$|` +
		`[\w.]+=(?:True|False|None|[\d.e+-]+|'[^']*'),?$)`)
)

// level is a level of error with which a line begins, alone or behind the name of a
// program, whatever follows.
var level = lazy.New(`^(?:ERROR|FATAL|CRITICAL|ABORT)\b|^\w+ (?:error|fatal) *: `)

func isSetting(text, line string) bool {
	return !level.MatchString(line) && (strings.Contains(text, " .....") || environment.MatchString(line) || member.MatchString(line) || property.MatchString(line))
}

// isReport reports whether a line is logged below error, announces what
// begins, tells that nothing happened, or says that the program goes on.
func isReport(text string) bool {
	switch {
	case LowLevel.MatchString(text[:min(len(text), 160)]):
		return true
	case strings.HasSuffix(text, "...") || strings.HasSuffix(text, "…"):
		return !stated.MatchString(text)
	case bullet.MatchString(text), ZeroOf.MatchString(text) && !strings.Contains(text, " sp:") && // the kernel lists registers
		!failedAll.MatchString(text):
		return true
	}
	return harmless(text)
}

var (
	bullet = lazy.New(`^\s*(?:[-•] |\* )\S`)
	// ZeroOf matches lines that count none of what would be bad.
	ZeroOf = lazy.On("rror|RROR|ail|AIL|xid|Xid|XID|etired|ETIRED|emory|EMORY",
		`(?i)\b(?:errors?|failures?|failed|xids?|retired pages|out of memory)\b *[:=] *0\b|\b(?:0|no) (?:errors?|failures?|failed|xids?)\b`)
	// failedAll is a failure for which the system gave no reason: Gloo's "failed with […] no error".
	failedAll = lazy.New(`(?i)\bfailed with .*\bno error$`)
)

// stated matches the forms in which programs state an error.
var stated = lazy.New(`^\S*/\S+: ` + // a program by its path
	`|^[a-z][\w.+-]*(?:\[\d+\])?: ` + // a program by its name
	`|^\S+\.(?:py|sh|cc|cpp|cu|cuh|h|hpp|c)[:(]\d+` + // a place in a source
	`|\b(?:ERROR|FATAL|CRITICAL|SEVERE|PANIC)\b|(?i:(?:error|fatal|panic|exception|failure) *:)` +
	`|\[?\b[EF]\d{3,4} \d|^\[[EF] |\[[EF]\d{3,4} ` + // glog
	`|NCCL WARN|\bNVRM\b|\b[Xx]id\b|^slurm|^\[ *\d+\.\d+\]|kernel: ` +
	`|^(?:terminate called|what\(\):|Fatal |!!!|\*\*\* |\(core dumped\))` +
	`|^(?:Error|Failed|Failure|Cannot|Can't|Could ?n[o']t|Couldn't|Unable|Invalid|Killed|Aborted|Abort|Segmentation|Bus error|Floating point|` +
	`Illegal|Out of memory|No |Got |The |Mem|Exit|RuntimeE|Loading|Caught|Some NCCL|` +
	`Dataset does not exist: |Your job has requested more processes )`) // Megatron's megatron/data/indexed_dataset.py, mpirun

// WarningLevel matches a line that a logger marks as a warning.
var WarningLevel = lazy.New(`(?i)\bwarn(?:ing)?\b|^\[?W\d{4} |^\[W `)
