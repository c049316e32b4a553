package ops

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// Said is what an error says that arises where both languages are not known: in a
// back end, in the reading of logs, in the system. What the tables do not have, such
// as Slurm's own words, is quoted as it came.
func Said(err error) lang.Text {
	t := lang.Same(err.Error())
	if own, ok := errors.AsType[*Error](err); ok {
		return lang.Text{EN: own.Line(lang.EN), ZH: own.Line(lang.ZH)}
	}
	if s, ok := errors.AsType[*slurm.Error](err); ok && s.Error() == t.EN {
		t.ZH = quoted(s.Op, s.Msg)
		return t
	}
	t.ZH = phrases().Say(t.EN, lang.ZH)
	return t
}

// quoted is what was tried and what Slurm or the system said to it: that is quoted
// as it came, unless they are words of ours.
func quoted(tried, said string) string {
	words, op := clusterPhrases().Say(said, lang.ZH), attemptPhrases().Say(tried, lang.ZH)
	switch {
	case words == said && op == tried && op != "":
		return fmt.Sprintf("%s 失败，原文：“%s”", op, words)
	case words == said:
		return fmt.Sprintf("%s失败，原文：“%s”", cmp.Or(op, "操作"), words)
	case op == "":
		return words
	}
	return strings.TrimSpace(op) + "：" + words
}

// phrases are made ready at the first Chinese error.
var phrases = sync.OnceValue(func() *lang.Phrases {
	return lang.NewPhrases(saidByOperations, saidByArguments, saidByDoors, saidByClusters)
})

var attemptPhrases = sync.OnceValue(func() *lang.Phrases { return lang.NewPhrases(attempts) })

var clusterPhrases = sync.OnceValue(func() *lang.Phrases { return lang.NewPhrases(saidByClusters) })
