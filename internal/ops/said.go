package ops

import (
	"cmp"
	"fmt"
	"strings"
	"sync"

	"github.com/megatron-ops/megatron-ops/internal/lang"
)

// Errors are written in English where they arise: the code below, which knows no
// language, stays free of it, and so do logs and the audit trail. The tables
// said… hold the Chinese of each sentence; a person who reads Chinese is given
// that at the door.

// In is e in language l, with all that comes with it.
func (e *Error) In(l lang.Lang) *Error {
	if e == nil || l != lang.ZH {
		return e
	}
	said := *e
	said.zh = chinese{}
	said.Message, said.Fix = cmp.Or(e.zh.message, Say(e.Message, l)), cmp.Or(e.zh.fix, Say(e.Fix, l))
	if e.zh.words != "" {
		said.Message = e.zh.quoted()
	}
	said.More = nil
	for _, x := range e.More {
		said.More = append(said.More, x.In(l))
	}
	return &said
}

// chinese is what an error says in Chinese where the tables cannot know it.
type chinese struct {
	message, fix string
	// op is what was tried, words what Slurm or the system said to it: that is
	// quoted as it came, unless they are words of ours.
	op, words string
}

// quoted is what failed and what was said to it.
func (c chinese) quoted() string {
	words, op := clusterPhrases().Say(c.words, lang.ZH), attemptPhrases().Say(c.op, lang.ZH)
	switch {
	case words == c.words && op == c.op && op != "":
		return fmt.Sprintf("%s 失败，原文：“%s”", op, words)
	case words == c.words:
		return fmt.Sprintf("%s失败，原文：“%s”", cmp.Or(op, "操作"), words)
	case op == "":
		return words
	}
	return strings.TrimSpace(op) + "：" + words
}

// Say returns a sentence of an error, with its values, in language l. What the
// tables do not know, such as Slurm's own words, stays as it is.
func Say(text string, l lang.Lang) string { return phrases().Say(text, l) }

// phrases are made ready at the first Chinese error.
var phrases = sync.OnceValue(func() *lang.Phrases {
	return lang.NewPhrases(saidByOperations, saidByArguments, saidByDoors, saidByClusters)
})

var attemptPhrases = sync.OnceValue(func() *lang.Phrases { return lang.NewPhrases(attempts) })

var clusterPhrases = sync.OnceValue(func() *lang.Phrases { return lang.NewPhrases(saidByClusters) })
