package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/jobcontrol"
	"github.com/megatron-ops/megatron-ops/internal/ops/operations"
)

// A completionIn names the shell whose words are completed.
type completionIn struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"the shell that reads the script" zh:"读取该脚本的 shell"`
}

// completionCommand prints the script that makes a shell complete this program's words:
// `source <(megatron-ops completion bash)`.
func completionCommand(_ context.Context, sh *shell, in completionIn) error {
	_, err := io.WriteString(sh.out, completionScripts[in.Shell])
	return err
}

// completionScripts ask the program itself for candidates. It prints one candidate per
// line, then a tab and a description; without candidates the shell completes file
// names.
var completionScripts = map[string]string{
	"bash": `# bash completion for megatron-ops
_megatron_ops() {
    local line IFS=$'\n'
    COMPREPLY=()
    for line in $(megatron-ops __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null); do
        COMPREPLY+=("${line%%$'\t'*}")
    done
}
complete -o default -o nosort -F _megatron_ops megatron-ops
`,
	"zsh": `#compdef megatron-ops
_megatron_ops() {
    local -a found
    local line
    for line in ${(f)"$(megatron-ops __complete "${(@)words[2,CURRENT]}" 2>/dev/null)"}; do
        line=${line//:/\\:}
        found+=("${line/$'\t'/:}")
    done
    if (( ${#found} )); then _describe -V megatron-ops found; else _files; fi
}
if [ "$funcstack[1]" = _megatron_ops ]; then _megatron_ops "$@"; else compdef _megatron_ops megatron-ops; fi
`,
	"fish": `# fish completion for megatron-ops
complete -c megatron-ops -f -a '(begin
    set -l found (megatron-ops __complete (commandline -opc)[2..-1] (commandline -ct) 2>/dev/null)
    if test (count $found) -gt 0
        printf "%s\n" $found
    else
        __fish_complete_path (commandline -ct)
    end
end)'
`,
}

// A candidate is a possible next word and its description.
type candidate struct{ word, means string }

// completionTimeout bounds how long a person waits after pressing Tab.
const completionTimeout = 2 * time.Second

// completeCommand prints the candidates for the last of words, the command line so far
// without the program's name.
func completeCommand(ctx context.Context, sh *shell, words []string) error {
	ctx, stop := context.WithTimeout(ctx, completionTimeout)
	defer stop()
	if len(words) == 0 {
		words = []string{""}
	}
	last := words[len(words)-1]
	for _, c := range sh.candidates(ctx, words[:len(words)-1], last) {
		if strings.HasPrefix(c.word, last) {
			means, _, _ := strings.Cut(c.means, "\n")
			fmt.Fprintf(sh.out, "%s\t%s\n", c.word, means)
		}
	}
	return nil
}

// candidates returns the words that may follow before. last is what is typed of the
// next word.
func (sh *shell) candidates(ctx context.Context, before []string, last string) []candidate {
	if len(before) == 0 {
		return sh.commandNames()
	}
	c, given, ok := lookup(before)
	op := c.Op
	var params []ops.Param
	if ok {
		params = op.Params()
	}
	if flag, is := longFlag(params, before[len(before)-1]); is {
		if values := sh.flagValues(ctx, params, flag); values != nil {
			return values
		}
		takesValue := func(p ops.Param) bool { return !p.Arg && p.Name == flag && p.Type != "switch" }
		if i := slices.IndexFunc(params, takesValue); i >= 0 { // any value, which is no argument
			if params[i].Job {
				return sh.jobWords(ctx)
			}
			return nil
		}
	}
	if ok && strings.HasPrefix(last, "-") {
		return sh.flags(op)
	}
	if more := sh.wordsAfter(before); more != nil {
		return more
	}
	for _, p := range params {
		switch {
		case !p.Arg:
		case len(p.Enum) > 0 && !p.Several && slices.ContainsFunc(given, func(word string) bool { return slices.Contains(p.Enum, word) }):
		case len(p.Enum) > 0:
			return enumerated(p)
		case p.Job || p.JobOrPath:
			return sh.jobWords(ctx)
		case strings.HasPrefix(p.Name, "partition"):
			return sh.rowCandidates(ctx, "partitions", "partitions", "partition", "state")
		}
	}
	return nil
}

// jobWords returns what names a job: ids, and the two words for the newest ones.
func (sh *shell) jobWords(ctx context.Context) []candidate {
	return append(sh.rowCandidates(ctx, "list", "jobs", "job_id", "name", "state"),
		candidate{"last", lang.Text{EN: "the job submitted last", ZH: "最近提交的作业"}.In(sh.lang)},
		candidate{"failed", lang.Text{EN: "the job that failed last", ZH: "最近失败的作业"}.In(sh.lang)})
}

// longFlag returns the long name of the flag that word is, in its long or short form.
func longFlag(params []ops.Param, word string) (name string, ok bool) {
	if strings.Contains(word, "=") {
		return "", false
	}
	if name, ok = strings.CutPrefix(word, "--"); ok {
		return name, true
	}
	if letter, short := strings.CutPrefix(word, "-"); short {
		if letter == "o" {
			return "output", true
		}
		for _, p := range params {
			if p.Short != 0 && string(p.Short) == letter {
				return p.Name, true
			}
		}
	}
	return "", false
}

func (sh *shell) commandNames() (all []candidate) {
	for _, op := range operations.All() {
		all = append(all, candidate{op.Name, op.Summary.In(sh.lang)})
	}
	for _, c := range commands() {
		if !strings.Contains(c.Name, " ") {
			all = append(all, candidate{c.Name, c.Summary.In(sh.lang)})
		}
	}
	slices.SortFunc(all, func(a, b candidate) int { return cmp.Compare(a.word, b.word) })
	return all
}

// wordsAfter returns the second words of a command whose name has two.
func (sh *shell) wordsAfter(before []string) (all []candidate) {
	if before[0] == "help" && len(before) == 1 {
		return sh.commandNames()
	}
	for _, c := range beginningWith(strings.Join(before, " ")) {
		_, second, _ := strings.Cut(c.Name, " ")
		all = append(all, candidate{second, c.Summary.In(sh.lang)})
	}
	return all
}

func (sh *shell) flags(op ops.Op) (all []candidate) {
	for _, p := range op.Params() {
		if !p.Arg {
			all = append(all, candidate{"--" + p.Name, p.Help.In(sh.lang)})
		}
	}
	return append(all,
		candidate{"--cluster", lang.Text{EN: "another cluster than the default one", ZH: "使用默认集群以外的集群"}.In(sh.lang)},
		candidate{"--output", "text, json, yaml"},
		candidate{"--lang", "en, zh"},
		candidate{"--verbose", lang.Text{EN: "also show notes, which need no action", ZH: "同时显示无需处理的说明"}.In(sh.lang)},
		candidate{"--help", lang.Text{EN: "this command's flags", ZH: "该命令的参数"}.In(sh.lang)})
}

// flagValues returns the values of a flag that has few, or that the cluster knows. It
// returns nil if the flag takes no value or any value.
func (sh *shell) flagValues(ctx context.Context, params []ops.Param, flag string) (values []candidate) {
	switch flag {
	case "output":
		return []candidate{{word: "text"}, {word: "json"}, {word: "yaml"}}
	case "lang":
		return []candidate{{word: "en"}, {word: "zh"}}
	case "partition":
		return sh.rowCandidates(ctx, "partitions", "partitions", "partition", "state")
	case "cluster":
		return sh.clusterNames()
	case "columns":
		for _, name := range jobcontrol.ColumnNames() {
			values = append(values, candidate{word: name})
		}
		return values
	}
	for _, p := range params {
		if p.Name == flag {
			return enumerated(p)
		}
	}
	return nil
}

func enumerated(p ops.Param) (all []candidate) {
	for _, v := range p.Enum {
		all = append(all, candidate{word: v})
	}
	return all
}

func (sh *shell) clusterNames() (all []candidate) {
	svc, err := sh.service()
	if err != nil {
		return nil
	}
	for name := range svc.Clusters {
		all = append(all, candidate{word: name})
	}
	slices.SortFunc(all, func(a, b candidate) int { return cmp.Compare(a.word, b.word) })
	return all
}

// rowCandidates runs an operation and returns a candidate for each row of the list
// under key in its JSON output: the field id, described by the fields means. It returns
// nil if the cluster does not answer.
func (sh *shell) rowCandidates(ctx context.Context, operation, key, id string, means ...string) (all []candidate) {
	op, _ := operations.Lookup(operation)
	call, err := sh.call()
	if err != nil {
		return nil
	}
	out, err := op.Run(ctx, call, op.NewIn())
	if err != nil {
		return nil
	}
	var lists map[string]json.RawMessage
	var rows []map[string]any
	if doc, err := json.Marshal(out); err != nil || json.Unmarshal(doc, &lists) != nil || json.Unmarshal(lists[key], &rows) != nil {
		return nil
	}
	for _, row := range rows {
		word, ok := row[id].(string)
		if !ok {
			continue
		}
		c := candidate{word: word}
		for _, m := range means {
			if v, ok := row[m].(string); ok && v != "" {
				c.means = strings.TrimSpace(c.means + " " + v)
			}
		}
		all = append(all, c)
	}
	return all
}
