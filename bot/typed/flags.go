package typed

import (
	"strconv"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
)

// Flags are the words that belong to the chat and not to an operation.
type Flags struct {
	Share bool // show the answer to everybody here
	Yes   bool // do not ask
	Json  bool // answer with the operation's JSON, which is YAML too
	// Output is a form that no answer has; empty where one is known.
	Output string
	// cluster is the one that is meant; empty: the person's own, else the default.
	Cluster string
	Lang    lang.Lang
	Page    int // of a long answer, from 1; 0: the first
}

// TakeFlags takes the flags that every command has out of words, wherever they
// stand: those of the shell, and --share.
func TakeFlags(words []string) (rest []string, f Flags) {
	for i := 0; i < len(words); i++ {
		name, value, has := strings.Cut(words[i], "=")
		// take reads the flag's value, from behind "=" or from the next word.
		take := func() string {
			if !has && i+1 < len(words) {
				i++
				return words[i]
			}
			return value
		}
		switch name {
		case "--":
			return append(rest, words[i:]...), f // what follows is the program's own
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
