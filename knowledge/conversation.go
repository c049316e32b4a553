package knowledge

import (
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
)

// follows finds how a question begins that goes on from the one before.
var follows = lazy.New(`(?i)^(?:and|what about|how about|what if|then|same|but|instead|or|how so|how come|why not|really)\b` +
	`|^why(?:\W*$| (?:is|does|did|was|would|should|so|exactly|do you)\b.{0,12}\b(?:it|that|this|so|say|think)\b)|^why .{1,9}$` +
	`|^(?:那|那么|换成|换|改成|改|要是|还有|同样|和|真的|怎么会)`)

// briefly finds a question that goes on from the one before where it is short,
// and one of its own where it says more.
var briefly = lazy.New(`(?i)^(?:with|for|on|now|if)\b.{0,26}$|^(?:is|does|do|can|will|would|should|was|has) (?:it|that|this|they|these|those)\b.{0,30}$|` +
	`^(?:它|这个|这样|那样|这).{0,10}$|^(?:如果|若|在|用|再|为什么|为啥).{0,7}$|^[^怎如什多哪]{1,10}呢[?？]?$`)

// maxTurns is how far back a question reaches.
const maxTurns = 4

// maxFollow is how long a question may be that goes on from another, in
// characters: a longer one stands alone, however it begins.
const maxFollow = 60

// turnEnd stands between the questions of inContext.
const turnEnd = " ; "

// inContext is a question together with the earlier ones that it goes on from,
// newest first, so that what it says anew is read before what was said. It is
// empty for a question that stands alone.
func inContext(text string, history []Turn) string {
	goesOn := func(s string) bool {
		return len([]rune(s)) <= maxFollow && (follows.MatchString(s) || briefly.MatchString(s))
	}
	if len(history) == 0 || !goesOn(text) {
		return ""
	}
	said := []string{text}
	for i := len(history) - 1; i >= max(0, len(history)-maxTurns); i-- {
		said = append(said, history[i].Question)
		if !goesOn(history[i].Question) {
			break
		}
	}
	return strings.Join(said, turnEnd)
}
