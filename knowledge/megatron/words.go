package megatron

import (
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
)

// SplitWords splits a command line like a shell: blanks separate words, quotes
// and backslashes protect blanks, a backslash at the end of a line joins it to the
// next, and # begins a comment. SplitWords expands nothing: a $ or a backquote
// that a shell would expand is an error, because its value is not known here.
func SplitWords(text string) ([]string, error) {
	var words []string
	var word strings.Builder
	inWord := false
	quote := rune(0)
	runes := []rune(text)
	for i := 0; i < len(runes); i++ {
		r := runes[i]
		switch {
		case quote == '\'':
			if r == '\'' {
				quote = 0
				continue
			}
			word.WriteRune(r)
		case r == '\\':
			i++
			switch {
			case i == len(runes):
				return nil, lang.Text{EN: "the command line ends in a backslash", ZH: "命令行以反斜杠结尾"}.Err()
			case runes[i] == '\n':
				continue
			case quote == '"' && !strings.ContainsRune("$`\"\\", runes[i]):
				word.WriteRune('\\')
			}
			word.WriteRune(runes[i])
			inWord = true
		case r == '$' || r == '`':
			return nil, lang.Text{
				EN: "%q is expanded by the shell, and its value is not known here: write the value",
				ZH: "%q 由 shell 展开，这里不知道其值：请直接写出值",
			}.Err(string(runes[i:min(len(runes), i+20)]))
		case quote == '"':
			if r == '"' {
				quote = 0
				continue
			}
			word.WriteRune(r)
		case r == '\'' || r == '"':
			quote, inWord = r, true
		case r == ' ' || r == '\t' || r == '\n' || r == '\r':
			if inWord {
				words = append(words, word.String())
			}
			word.Reset()
			inWord = false
		case r == '#' && !inWord:
			for i+1 < len(runes) && runes[i+1] != '\n' {
				i++
			}
		default:
			word.WriteRune(r)
			inWord = true
		}
	}
	if quote != 0 {
		return nil, lang.Text{EN: "the quote %c is not closed", ZH: "引号 %c 没有闭合"}.Err(quote)
	}
	if inWord {
		words = append(words, word.String())
	}
	return words, nil
}

// entryScripts maps Megatron's own pretrain scripts to their entries.
var entryScripts = map[string]string{
	"pretrain_gpt.py": "gpt", "pretrain_hybrid.py": "hybrid", "pretrain_mamba.py": "hybrid", "pretrain_t5.py": "t5", "pretrain_bert.py": "bert",
}

// OwnEntry returns the entry of the script at a path. ok is false where the script
// is none of Megatron's own pretrain scripts.
func OwnEntry(script string) (entry string, ok bool) {
	entry, ok = entryScripts[script[strings.LastIndexAny(script, `/\`)+1:]]
	return entry, ok
}

// EntryScript returns the pretrain script of an entry in a release.
func EntryScript(entry string, release Release) string {
	if entry == "hybrid" {
		entry = hybridName(release)
	}
	return "pretrain_" + entry + ".py"
}

// HybridSpec returns the words of --spec for the layers of a hybrid model in a release: a module and
// a name in it.
func HybridSpec(release Release) []string {
	kind := hybridName(release)
	return []string{"megatron.core.models." + kind + "." + kind + "_layer_specs", kind + "_stack_spec"}
}

// hybridName returns what a release calls hybrid models. Later ones know the older name too.
func hybridName(release Release) string {
	if release.OrNewest() < V018 {
		return "mamba"
	}
	return "hybrid"
}
