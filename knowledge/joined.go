package knowledge

import (
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/knowledge/compute"
)

// maxJoined is how many characters a computed answer and what is written about
// its question have together, so that both are read at a glance.
const maxJoined = 800

// textNumbers stands before what was worked out of a question that asks for
// something else.
var textNumbers = lang.Text{EN: "From your numbers: ", ZH: "按给出的数字:"}

// joined puts together what was worked out of a question's numbers and what is
// written about it. A value that is asked for goes first, and alone where the
// question wants nothing else that is known to fit; where the numbers only tell the setting, what is
// written goes first.
func (a *Answerer) joined(r compute.Result, written finding, q Question) finding {
	l := q.Lang
	if contradicts(q.Text, r.Text) {
		r.Text = textNo.In(l) + r.Text
	}
	worked := finding{
		Answer:   Answer{Answer: r.Text, Sources: []Source{{Skill: r.Skill, Section: r.Section, URL: r.URL}}},
		computed: true,
		hits:     written.hits,
	}
	if written.Refused || len(written.Sources) == 0 || !r.Told && written.doubt {
		return worked
	}
	// The first source alone: more would bury what the question wants.
	text, _, _ := strings.Cut(written.Answer.Answer, "\n\n"+textRelated.In(l))
	if r.Asked() {
		more := "\n\n" + textRelated.In(l) + written.Sources[0].Section + "\n" + text
		if len([]rune(r.Text))+len([]rune(more)) > maxJoined {
			return worked
		}
		worked.Answer.Answer += more
		worked.Sources = append(worked.Sources, written.Sources[0])
		return worked
	}
	more := "\n\n" + textNumbers.In(l) + r.Text
	if len([]rune(text))+len([]rune(more)) <= maxJoined {
		written.Answer.Answer = text + more
		written.Sources = append(written.Sources[:1:1], worked.Sources[0])
	}
	return written
}

// workedOut reports whether a question gives what was measured and wants what
// follows from it: nothing is foretold then.
func workedOut(text string, l lang.Lang) bool {
	r, ok := compute.Answer(text, l)
	return ok && r.Measured && r.Wanted
}
