package typed

import (
	"strconv"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
)

// Flags are the flags that the chat handles itself, for every command.
type Flags struct {
	Share bool // show the answer to everybody here
	Yes   bool // confirmed: run without asking
	Json  bool // answer with the operation's JSON, which is YAML too
	// Output is the value of --output where no answer has that form; it is empty for a known
	// form.
	Output string
	// Cluster is the named cluster; empty means the person's own or the default.
	Cluster string
	Lang    lang.Lang
	Page    int // the page of a long answer, from 1; 0 is the first
}

// TakeFlags removes from words the flags that every command has, wherever they are: those of
// the shell, and --share.
func TakeFlags(words []string) (rest []string, f Flags) {
	for i := 0; i < len(words); i++ {
		name, value, has := strings.Cut(words[i], "=")
		// take returns the flag's value: what follows "=", or the next word.
		take := func() string {
			if !has && i+1 < len(words) {
				i++
				return words[i]
			}
			return value
		}
		switch name {
		case "--":
			return append(rest, words[i:]...), f // what follows belongs to the program
		case "--share", "--公开":
			f.Share = true
		case "--yes":
			f.Yes = true
		case "--cluster":
			f.Cluster = take()
		case "--lang":
			f.Lang, _ = lang.Parse(take())
		case "--page", "--页":
			f.Page, _ = strconv.Atoi(take())
		case "--output", "-o":
			switch form := take(); form {
			case "text", "json", "yaml":
				f.Json, f.Output = form != "text", ""
			default:
				f.Output = form
			}
		default:
			rest = append(rest, words[i])
		}
	}
	return rest, f
}

// IsQuestion guesses whether text without a command word is a question.
func IsQuestion(text string, words []string) bool {
	if strings.ContainsAny(text, "?？") || len(words) >= 3 {
		return true
	}
	return lang.Of(text) == lang.ZH && len([]rune(text)) >= 5
}
