package pattern

import (
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
)

// A Form is the kind of a line, whatever its words. Only a Statement can decide what a failure was.
type Form uint8

const (
	// Statement is a line in a form in which programs report errors: with the program's name, an error
	// level, or a place in a source file.
	Statement Form = iota
	// Bare is a line without any such form: a print, a sentence, data. It decides only if a process is
	// known to have died and nothing else says why.
	Bare
	// Report is a line logged below error, or one that announces what begins, or says that the program
	// goes on. It never decides.
	Report
	// Inert is a line of a table, usage text, configuration, listing or echoed command. It says nothing
	// about what happened.
	Inert
)

// FormOf returns the form of a line outside of usage texts.
func FormOf(text string) Form {
	trimmed := strings.TrimLeft(text, " \t")
	indented := len(trimmed) < len(text)
	switch {
	case isTable(trimmed), isEcho(trimmed, indented), isSetting(text, trimmed):
		return Inert
	case isReport(text):
		return Report
	case errorForm.MatchString(trimmed[:min(len(trimmed), 400)]):
		return Statement
	case column.MatchString(text):
		return Inert
	}
	return Bare
}

// isTable reports whether a line belongs to a table or box, such as nvidia-smi's: it begins and ends
// with a rule, or is one.
func isTable(line string) bool {
	switch line[0] {
	case '|':
		return len(line) > 1 && strings.HasSuffix(line, "|")
	case '+':
		return strings.HasPrefix(line, "+-") || strings.HasPrefix(line, "+=")
	case '=':
		return strings.HasPrefix(line, "===") && !testsFailed.MatchString(line)
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

// isEcho reports whether a line is an echoed command, a comment, a frame of a native or Python stack,
// or a step of a build.
func isEcho(line string, indented bool) bool {
	switch line[0] {
	case '+', '$':
		return !indented && len(line) > 1 && (line[1] == ' ' || line[1] == '+')
	case '#':
		return true
	case '-': // an option and its description
		return indented && len(line) > 1 && (line[1] == '-' || len(line) > 2 && (line[2] == ' ' || line[2] == ','))
	}
	return strings.HasPrefix(line, "frame #") || strings.HasPrefix(line, `File "`) || buildStep.MatchString(line)
}

var (
	// buildStep matches ninja's "[1/3] /usr/bin/g++ -MMD …".
	buildStep = lazy.New(`^\[\d+/\d+\] \S*/\S+ -`)
	// environment matches a line of `env`, "export NAME=value" or "declare -x".
	environment = lazy.New(`^(?:export |declare -x )?[A-Z][A-Z0-9_]*=`)
	// property matches a name, a column of blanks or dots, and a value: nvidia-smi -q, printed
	// arguments, configurations.
	property = lazy.New(`^[\w ./()-]+(?: {2,}: | {2,}:$| \.{2,} )`)
	// column matches a row of a table without rules: a name, a gap that no one types within a sentence, and a value.
	column = lazy.New(`^[A-Za-z][\w./()$,-]*(?: [\w./()$,-]+){0,3} {3,}\S`)
	// member matches a member of a printed dictionary or of JSON, or a list's item.
	member = lazy.New(`^(?:\{['"][\w .-]+['"]: .*\}$|["'][\w ./-]+["']: |[\w.]+: ?(?:True|False|None|null|true|false|[\d.e+-]+),?$|` +
		`[\w.]+=(?:True|False|None|[\d.e+-]+|'[^']*'),?$)`)
)

// errorLevel matches an error level at the beginning of a line, alone or after a program's name.
var errorLevel = lazy.New(`^(?:ERROR|FATAL|CRITICAL|ABORT)\b|^\w+ (?:error|fatal) *: `)

func isSetting(text, line string) bool {
	return !errorLevel.MatchString(line) &&
		(strings.Contains(text, " .....") || environment.MatchString(line) || member.MatchString(line) || property.MatchString(line))
}

// isReport reports whether a line is logged below error, announces what begins, says that nothing
// happened, or says that the program goes on.
func isReport(text string) bool {
	switch {
	case LowLevel.MatchString(text[:min(len(text), 160)]):
		return true
	case strings.HasSuffix(text, "...") || strings.HasSuffix(text, "…"):
		return !errorForm.MatchString(text)
	case bullet.MatchString(text), ZeroOf.MatchString(text) && !strings.Contains(text, " sp:") && // "sp:" is in the kernel's lists of registers
		!failedAll.MatchString(text):
		return true
	}
	return harmless(text)
}

var (
	bullet = lazy.New(`^\s*(?:[-•] |\* )\S`)
	// ZeroOf matches lines that report a count of zero failures, or an empty list of what is missing.
	ZeroOf = lazy.On("issing|nexpected|rror|RROR|ail|AIL|xid|Xid|XID|etired|ETIRED|emory|EMORY|orrupt|失败|错误|异常",
		`(?i)\b(?:errors?|failures?|failed(?: \w+)?|xids?|retired pages|out of memory)\b *[:=] *(?:(?:0|none)\b|\[\]|\{\})|`+
			`\b(?:0|no|without(?: any)?)(?: of \d+ \w+)? (?:errors?|failures?|failed|xids?|corrupt(?:ed)?)\b`+
			`|\b(?:missing|unexpected)(?:[ _]keys)? *[:=] *\[\]$`+
			`|(?:没有|无|(?:^|[^\d.])0 ?个|未(?:出现|发生|发现)?)(?:任何)?(?:任务)?(?:失败|错误|异常)|(?:失败|错误|异常)\p{Han}{0,3} *[:：] *0(?:[^\d.]|$)`)
	// failedAll matches Gloo's "failed with […] no error", a failure for which the system gave no
	// reason.
	failedAll = lazy.New(`(?i)\bfailed with .*\bno error$`)
)

// testsFailed matches pytest's and unittest's count of the tests that failed: their program leaves with 1.
var testsFailed = lazy.On("failed|FAILED", testsFailedForm)

const testsFailedForm = `^=* ?\d+ failed` +
	`(?:, \d+ (?:passed|skipped|deselected|xfailed|xpassed|warnings?|errors?|rerun|subtests \w+))* in \d[\d.]*s\b|^FAILED \((?:failures|errors)=\d`

// errorForm matches the forms in which programs report an error.
var errorForm = lazy.New(`^\S*/\S+: ` + // a program's path
	`|^[a-z][\w.+-]*(?:\[\d+\])?: ` + // a program's name
	`|^\S+\.(?:py|sh|cc|cpp|cu|cuh|h|hpp|c)[:(]\d+` + // a place in a source file
	`|\b(?:ERROR|FATAL|CRITICAL|SEVERE|PANIC)\b|(?i:(?:error|fatal|panic|exception|failure) *:)` +
	`|\[?\b[EF]\d{3,4} \d|^\[[EF] |\[[EF]\d{3,4} |^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+: [EF] ` + // glog, TensorFlow
	`|NCCL WARN|\bNVRM\b|\b[Xx]id\b|^slurm|^\[ *\d+\.\d+\]|kernel: ` +
	`|^(?:terminate called|what\(\):|Fatal |!!!|\*\*\* |\(core dumped\))` +
	`|^(?:Error|Failed|Failure|Cannot|Can't|Could ?n[o']t|Couldn't|Unable|Invalid|Killed|Aborted|Abort|Segmentation|Bus error|Floating point|` +
	`Illegal|Out of memory|No |Got |The |Mem|Exit|RuntimeE|Loading|Caught|Some NCCL|` +
	`已杀死|段错误|总线错误|\S*[:：] ?行 ?\d+[:：]|` + // bash in Chinese
	`CMake Error at |memory allocation of \d|` + // Rust's handler of a failed allocation, which then aborts: tokenizers, safetensors
	`Dataset does not exist: |Your job has requested more processes )`) // Megatron's megatron/data/indexed_dataset.py, mpirun

// WarningLevel matches a line that a logger marks as a warning.
var WarningLevel = lazy.New(`(?i)\b(?:warn(?:ing)?|wrn)\b|^\[?W\d{4} |^\[W `)
