package lint

import (
	"bytes"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/script"
)

// A fixer changes the lines of a script to remove a finding; ok is false if it cannot.
type fixer func(lines []string, f Finding) (out []string, ok bool)

// Fix corrects the faults that can be corrected without knowing the author's intention.
// It returns the corrected script, the findings that it corrected and those that are
// left, with messages in l. Fix keeps a change only if a new check shows that the fault
// is gone and that there is no new one.
func Fix(src []byte, l lang.Lang) (fixed []byte, applied, left []Finding) {
	fixed = src
	found := CheckIn("", fixed, l)
	known, tried := fixers(), map[string]bool{}
	for range 100 {
		next, f, ok := improve(fixed, found, known, tried, l)
		if !ok {
			break
		}
		fixed, applied = next, append(applied, f)
		found = CheckIn("", fixed, l)
	}
	return fixed, applied, found
}

// improve applies the first fixer that removes a finding.
func improve(src []byte, found []Finding, known map[string]fixer, tried map[string]bool, l lang.Lang) ([]byte, Finding, bool) {
	for _, f := range found {
		m, ok := known[f.Rule]
		key := f.Rule + ":" + strconv.Itoa(f.Line) + ":" + f.Message
		if !ok || tried[key] {
			continue
		}
		tried[key] = true
		text := string(bytes.TrimPrefix(src, []byte("\xef\xbb\xbf")))
		lines := strings.Split(text, "\n")
		if f.Line > len(lines) {
			continue
		}
		if lines, ok = m(lines, f); !ok {
			continue
		}
		next := []byte(strings.Join(lines, "\n"))
		if after := CheckIn("", next, l); count(after, f.Rule) < count(found, f.Rule) && noneNew(found, after) {
			return next, f, true
		}
	}
	return src, Finding{}, false
}

func count(fs []Finding, rule string) int {
	n := 0
	for _, f := range fs {
		if f.Rule == rule {
			n++
		}
	}
	return n
}

// noneNew reports whether no rule has more findings after than before. It allows new
// findings if a fault before may have hidden them.
func noneNew(before, after []Finding) bool {
	return !slices.ContainsFunc(after, func(f Finding) bool {
		return count(after, f.Rule) > count(before, f.Rule) && (f.Rule == "syntax-error" || !hides(before))
	})
}

// hides reports whether one of the findings may hide others.
func hides(fs []Finding) bool {
	return slices.ContainsFunc(fs, func(f Finding) bool {
		return slices.Contains([]string{"syntax-error", "broken-continuation", "no-shebang", "crlf", "bad-assignment", "sbatch-ignored", "bad-directive"}, f.Rule)
	})
}

// fixers returns the fixers by the rules whose findings they remove.
func fixers() map[string]fixer {
	return map[string]fixer{
		"crlf":                  fixCRLF,
		"no-shebang":            fixShebang,
		"bash-in-sh":            fixShell,
		"sbatch-ignored":        fixIgnored,
		"sbatch-variable":       inLine(fixVariable),
		"bad-directive":         inLine(fixDirective),
		"tasks-per-node":        replaceIn(regexp.MustCompile(`--n?tasks-per-node[= ]\d+`), "--ntasks-per-node=1"),
		"tty-in-batch":          firstOf(` --pty`, ``, ` -(it|ti)\b`, ` -i`, ` (-t|--tty)\b`, ``),
		"array-without-limit":   replaceIn(regexp.MustCompile(`(--array=|--array |-a )([\d,:-]+)(%\d+)?`), "${1}${2}%1"),
		"dependency-bare-id":    replaceIn(regexp.MustCompile(`(--dependency[= ]|-d )("?)`), "${1}${2}afterok:"),
		"export-none":           firstOf(`--export[= ](NONE|NIL)`, `--export=ALL`, `--export[= ]`, `--export=ALL,`),
		"log-name-fixed":        replaceIn(regexp.MustCompile(`((?:--(?:output|error)[= ]|-[oe]\s*)\S*?)((?:\.\w+)?)(\s|$)`), "${1}-%j${2}${3}"),
		"requeue-log-truncated": insertAfterHead("#SBATCH --open-mode=append"),
		"missing-pipefail":      insertAfterHead("set -o pipefail"),
		"background-no-wait":    appendLine("wait"),
		"docker-privileged":     replaceIn(regexp.MustCompile(` --privileged(=true)?`), ""),
		"docker-network-ipc":    fixDocker,
		"bad-assignment": firstOf(
			`^(\s*(?:export\s+)?[A-Za-z_]\w*)\s*=\s*`, `${1}=`,
			`^(\s*(?:export\s+)?)\$\{?([A-Za-z_]\w*)\}?=`, `${1}${2}=`,
			`^(\s*)set\s+([A-Za-z_]\w*)\s*=\s*`, `${1}${2}=`,
			`^(\s*)setenv\s+([A-Za-z_]\w*)\s+`, `${1}export ${2}=`,
		),
		"broken-continuation":      fixContinuation,
		"unexported-variable":      fixExported,
		"early-rank-interpolation": inLine(func(l string) string { return rankExpansion.ReplaceAllString(l, `${1}\$$${2}`) }),
		"nnodes-mismatch":          replaceIn(regexp.MustCompile(`((?:NNODES|NUM_NODES|N_NODES)=|--nnodes[= ])"?\d+"?`), "${1}$$SLURM_NNODES"),
		"cdmc-missing":             insertAfterHead("export CUDA_DEVICE_MAX_CONNECTIONS=1"),
		"cdmc-wrong":               replaceIn(regexp.MustCompile(`(CUDA_DEVICE_MAX_CONNECTIONS=)\S+`), "${1}1"),
		"no-such-timeout":          dropLine(regexp.MustCompile(`^\s*export\s+\w+=\S*\s*(#.*)?$`)),
		"debug-left-on":            dropLine(regexp.MustCompile(`^\s*export\s+\w+=\S*\s*(#.*)?$`)),
		"step-without-overlap":     replaceIn(regexp.MustCompile(`\bsrun\b`), "srun --overlap --gres=gpu:0"),
		"args-splitting":           fixArguments,
		"conda-activate":           insertBefore(`source "$(conda info --base)/etc/profile.d/conda.sh"`),
		"heredoc-expansion":        fixHereDoc,
		"bare-torchrun":            fixTorchrun,
		"exit-status-lost":         fixStatus,
	}
}

// changed returns lines with text as line i; ok is false if the line already is text.
func changed(lines []string, i int, text string) (out []string, ok bool) {
	if text == lines[i] {
		return nil, false
	}
	out = slices.Clone(lines)
	out[i] = text
	return out, true
}

// inLine applies change to the finding's line.
func inLine(change func(string) string) fixer {
	return func(lines []string, f Finding) ([]string, bool) {
		return changed(lines, f.Line-1, change(lines[f.Line-1]))
	}
}

// firstOf applies the first of several replacements that matches. pairs are regular
// expressions, each followed by its replacement.
func firstOf(pairs ...string) fixer {
	return func(lines []string, f Finding) (out []string, ok bool) {
		for p := range slices.Chunk(pairs, 2) {
			if out, ok = replaceIn(regexp.MustCompile(p[0]), p[1])(lines, f); ok {
				break
			}
		}
		return out, ok
	}
}

// replaceIn replaces the first match in the finding's line or in the lines that continue
// it.
func replaceIn(re *regexp.Regexp, with string) fixer {
	return func(lines []string, f Finding) ([]string, bool) {
		for i := f.Line - 1; i < len(lines); i++ {
			if loc := re.FindStringSubmatchIndex(lines[i]); loc != nil {
				rest := re.ExpandString(nil, with, lines[i], loc)
				return changed(lines, i, lines[i][:loc[0]]+string(rest)+lines[i][loc[1]:])
			}
			if !strings.HasSuffix(lines[i], "\\") {
				break
			}
		}
		return nil, false
	}
}

var torchrun = regexp.MustCompile(`\btorchrun\b`)

// compared matches a test or a branch of case that compares something with the word.
var compared = lazy.New(`[=~][ \t]+["']?torchrun\b|(?:^|\bin|;;|\|)[ \t]*["']?torchrun["'*]*[ \t]*[|)]`)

// fixTorchrun replaces the word by three: in quotes where it is the value of a variable. The same
// programs must be launched after the change, and nothing may ask whether the value is the word.
func fixTorchrun(lines []string, f Finding) ([]string, bool) {
	if slices.ContainsFunc(lines, func(line string) bool { code, _ := script.Uncommented(line); return compared.MatchString(code) }) {
		return nil, false
	}
	before := launched(lines)
	for _, with := range []string{"python -m torch.distributed.run", `"python -m torch.distributed.run"`} {
		if out, ok := replaceIn(torchrun, with)(lines, f); ok && slices.Equal(launched(out), before) {
			return out, true
		}
	}
	return nil, false
}

// launched returns the programs that torchrun or torch.distributed.run starts.
func launched(lines []string) (programs []string) {
	for _, j := range script.Read("", []byte(strings.Join(lines, "\n"))).Jobs {
		for _, st := range j.Starts {
			if st.Launcher.Elastic() {
				programs = append(programs, st.Program.Text())
			}
		}
	}
	return programs
}

// headEnd returns the index after the last #SBATCH line before the first command.
func headEnd(lines []string) int {
	end := 0
	for i, l := range lines {
		switch t := strings.TrimSpace(l); {
		case strings.HasPrefix(l, "#SBATCH"), i == 0 && strings.HasPrefix(l, "#!"):
			end = i + 1
		case t == "" || t[0] == '#':
		default:
			return end
		}
	}
	return end
}

func insertAt(lines []string, i int, s string) []string {
	return slices.Insert(slices.Clone(lines), i, s)
}

func insertAfterHead(s string) fixer {
	return func(lines []string, _ Finding) ([]string, bool) { return insertAt(lines, headEnd(lines), s), true }
}

func insertBefore(s string) fixer {
	return func(lines []string, f Finding) ([]string, bool) {
		i := f.Line - 1
		indent := lines[i][:len(lines[i])-len(strings.TrimLeft(lines[i], " \t"))]
		return insertAt(lines, i, indent+s), true
	}
}

func appendLine(s string) fixer {
	return func(lines []string, _ Finding) ([]string, bool) {
		if n := len(lines); lines[n-1] == "" {
			return insertAt(lines, n-1, s), true
		}
		return append(slices.Clone(lines), s, ""), true
	}
}

func dropLine(re *regexp.Regexp) fixer {
	return func(lines []string, f Finding) ([]string, bool) {
		i := f.Line - 1
		if !re.MatchString(lines[i]) {
			return nil, false
		}
		return slices.Delete(slices.Clone(lines), i, i+1), true
	}
}

func fixCRLF(lines []string, _ Finding) ([]string, bool) {
	out := slices.Clone(lines)
	for i := range out {
		out[i] = strings.TrimSuffix(out[i], "\r")
	}
	return out, true
}

func fixShebang(lines []string, _ Finding) ([]string, bool) {
	i := slices.IndexFunc(lines, func(l string) bool { return strings.TrimSpace(l) != "" })
	if i >= 0 && strings.HasPrefix(lines[i], "#!") {
		return lines[i:], true // without the byte order mark, or the blank lines before
	}
	return insertAt(lines, 0, "#!/bin/bash"), true
}

func fixShell(lines []string, _ Finding) ([]string, bool) {
	return replaceIn(regexp.MustCompile(`^#!.*$`), "#!/bin/bash")(lines, Finding{Line: 1})
}

var sbatchWord = lazy.New(`(?i)^\s*#SBATCH`)

func fixIgnored(lines []string, f Finding) ([]string, bool) {
	i := f.Line - 1
	fixed := sbatchWord.ReplaceAllString(lines[i], "#SBATCH")
	out := slices.Delete(slices.Clone(lines), i, i+1)
	return insertAt(out, min(headEnd(out), i), fixed), true
}

func fixVariable(l string) string {
	if !logOption.MatchString(l) {
		return l
	}
	for _, r := range [][2]string{{"USER", "%u"}, {"SLURM_JOB_ID", "%j"}, {"SLURM_JOBID", "%j"}, {"SLURM_JOB_NAME", "%x"}, {"SLURM_ARRAY_JOB_ID", "%A"}, {"SLURM_ARRAY_TASK_ID", "%a"}} {
		l = strings.ReplaceAll(strings.ReplaceAll(l, "${"+r[0]+"}", r[1]), "$"+r[0], r[1])
	}
	return l
}

var (
	logOption   = lazy.New(`--(output|error)|-[oe]\b`)
	blankEquals = lazy.New(`(--[a-z_-]+)\s*=\s*`)
	shortEquals = lazy.New(`(\s-[A-Za-z])=`)
	unitTime    = lazy.New(`(--time=|-t\s*)(\d+)\s*([hHdDmM])\w*`)
	blankUnit   = lazy.New(`(--mem\S*=\d+)\s+([KMGTkmgt][Bb]?)`)
	longName    = lazy.New(`--[A-Za-z_-]+`)
)

func fixDirective(l string) string {
	l = strings.ReplaceAll(strings.ReplaceAll(l, "—", "--"), "–", "--")
	l = blankEquals.ReplaceAllString(l, "$1=")
	l = shortEquals.ReplaceAllString(l, "$1 ")
	l = blankUnit.ReplaceAllString(l, "$1$2")
	l = unitTime.ReplaceAllStringFunc(l, func(s string) string {
		m := unitTime.FindStringSubmatch(s)
		switch strings.ToLower(m[3]) {
		case "h":
			return m[1] + m[2] + ":00:00"
		case "d":
			return m[1] + m[2] + "-00:00:00"
		}
		return m[1] + m[2]
	})
	return longName.ReplaceAllStringFunc(l, func(s string) string {
		if near, ok := slurm.NearestOption(s[2:]); ok {
			return "--" + near
		}
		return s
	})
}

func fixDocker(lines []string, f Finding) ([]string, bool) {
	add := ""
	command := commandLines(lines, f)
	if !regexp.MustCompile(`--net(work)?[= ]`).MatchString(command) {
		add += " --network host"
	}
	if !regexp.MustCompile(`--ipc[= ]|--shm-size`).MatchString(command) {
		add += " --ipc=host"
	}
	return replaceIn(regexp.MustCompile(`\b(docker|podman) run\b`), "${0}"+add)(lines, f)
}

// commandLines returns the finding's line and the lines that continue it.
func commandLines(lines []string, f Finding) string {
	i := f.Line - 1
	for end := i; ; end++ {
		if end == len(lines)-1 || !strings.HasSuffix(lines[end], "\\") {
			return strings.Join(lines[i:end+1], "\n")
		}
	}
}

var blankOrComment = lazy.New(`^\s*(#|$)`)

func fixContinuation(lines []string, f Finding) ([]string, bool) {
	i := f.Line - 1
	if out, escapes, sure := fixEscapes(lines, f.Line); escapes {
		return out, sure
	}
	// Remove the lines between the separated line and its command.
	command := i - 1
	for command >= 0 && blankOrComment.MatchString(lines[command]) {
		command--
	}
	if command < 0 {
		return nil, false
	}
	out := slices.Delete(slices.Clone(lines), command+1, i)
	if code, _ := script.Uncommented(out[command]); !strings.HasSuffix(code, `\`) {
		out[command] = code + ` \`
	}
	return out, true
}

// fixEscapes removes the backslash of a line that escapes a blank. It continues the line where the
// command goes on, and else keeps the comment. A quote in the comment hides the lines after it from
// bash, so that they change together. A command that bash runs is never made a word of another: where
// sure is false, the author has to say what was meant.
func fixEscapes(lines []string, line int) (out []string, escapes, sure bool) {
	out = slices.Clone(lines)
	for _, j := range script.Read("", []byte(strings.Join(lines, "\n"))).Jobs {
		for _, b := range j.Breaks {
			if !b.Escapes() || b.Line != line {
				continue
			}
			if b.Guess {
				return nil, true, false
			}
			code, comment := script.Uncommented(out[line-1])
			if b.Last {
				out[line-1] = strings.TrimRight(code+" "+comment, " ")
			} else {
				out[line-1] = code + ` \`
			}
			if escapes = true; !strings.ContainsAny(comment, "'\"`") {
				return out, true, true
			}
			line++
		}
	}
	return out, escapes, true
}

func fixExported(lines []string, f Finding) ([]string, bool) {
	name, _, _ := strings.Cut(strings.TrimPrefix(f.Message, "$"), ":")
	re := regexp.MustCompile(`^(\s*)` + regexp.QuoteMeta(name) + `(\+?=)`)
	for i, l := range lines {
		if re.MatchString(l) && i < f.Line {
			return changed(lines, i, re.ReplaceAllString(l, "${1}export "+name+"${2}"))
		}
	}
	return nil, false
}

var rankExpansion = lazy.New(`([^\\$]|^)\$(\{?SLURM_(?:PROCID|NODEID|LOCALID)\}?)`)

func fixArguments(lines []string, f Finding) ([]string, bool) {
	for _, r := range [][2]string{
		{`"\$\{?([A-Za-z_]\w*)\}?"`, `$$${1}`},
		{`\$([A-Za-z_]\w*)\b`, `"$${${1}[@]}"`},
		{`\[@\]`, `[*]`},
	} {
		if out, ok := replaceIn(regexp.MustCompile(r[0]), r[1])(lines, f); ok {
			after := CheckIn("", []byte(strings.Join(out, "\n")), lang.EN)
			if !slices.ContainsFunc(after, func(g Finding) bool { return g.Rule == f.Rule }) {
				return out, true
			}
		}
	}
	return nil, false
}

// fixHereDoc quotes the delimiter of the here-document. The new check shows whether the
// document needs expansion.
func fixHereDoc(lines []string, f Finding) ([]string, bool) {
	re := regexp.MustCompile(`<<(-?)\s*([A-Za-z_]\w*)`)
	for i := min(f.Line, len(lines)) - 1; i >= 0; i-- {
		m := re.FindStringSubmatch(lines[i])
		if m == nil {
			continue
		}
		out, ok := changed(lines, i, re.ReplaceAllString(lines[i], "<<${1}'${2}'"))
		for j := i + 1; j < len(out) && strings.TrimLeft(out[j], "\t") != m[2]; j++ {
			out[j] = unescaped.Replace(out[j]) // a quoted here-document keeps its backslashes
		}
		return out, ok
	}
	return nil, false
}

// unescaped removes the backslashes that an unquoted here-document removes.
var unescaped = strings.NewReplacer(`\\`, `\`, `\$`, `$`, "\\`", "`")

func fixStatus(lines []string, f Finding) ([]string, bool) {
	if out, ok := replaceIn(regexp.MustCompile(`\s*\|\|\s*(true|:)\s*$`), "")(lines, f); ok {
		return out, true
	}
	var reads []string
	for _, l := range lines {
		if readStatus.MatchString(l) && !showsStatus.MatchString(l) {
			reads = append(reads, l)
		}
	}
	if len(reads) == 0 {
		return insertAt(lines, headEnd(lines), "set -e"), true
	}
	// set -e would end the script before it looks at the status.
	if m := savedStatus.FindStringSubmatch(reads[0]); m != nil && len(reads) == 1 {
		return appendLine(`exit "$`+m[1]+`"`)(lines, f)
	}
	return nil, false
}

var (
	// readStatus matches a line that looks at the status of the command before it.
	readStatus = lazy.New(`^[^#]*\$\{?(?:\?|PIPESTATUS)`)
	// showsStatus matches a line that only prints it or ends with it.
	showsStatus = lazy.New(`^\s*(?:echo|printf|exit)\s[^;&|]*$`)
	// savedStatus matches an assignment that saves it.
	savedStatus = lazy.New(`^\s*(\w+)=\$\?\s*(?:[;#]|$)`)
)
