package knowledge

import (
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
)

// followUpStart matches the beginning of a question that continues the previous one.
var followUpStart = lazy.New(`(?i)^(?:and|what about|how about|what if|then|same|but|instead|or|how so|how come|why not|really)\b` +
	`|^why(?:\W*$| (?:is|does|did|was|would|should|so|exactly|do you)\b.{0,12}\b(?:it|that|this|so|say|think)\b)|^why .{1,9}$` +
	`|^(?:那|那么|换成|换|改成|改|要是|还有|同样|和|真的|怎么会)`)

// shortFollowUp matches short questions that continue the previous one. The same
// beginnings in longer questions start a new subject.
var shortFollowUp = lazy.New(`(?i)^(?:with|for|on|now|if)\b.{0,26}$|^(?:is|does|do|can|will|would|should|was|has) (?:it|that|this|they|these|those)\b.{0,30}$|` +
	`^(?:它|这个|这样|那样|这).{0,10}$|^(?:如果|若|在|用|再|为什么|为啥).{0,7}$|^[^怎如什多哪]{1,10}呢[?？]?$`)

// maxTurns is the number of earlier turns that a question may continue.
const maxTurns = 4

// maxFollowUp is the maximal length of a question that continues another, in
// characters.
const maxFollowUp = 60

// turnEnd separates the questions in the result of inContext.
const turnEnd = " ; "

// inContext returns a question joined with the earlier questions that it continues,
// newest first, so that new words come before old ones. It returns "" for a question
// that stands alone.
func inContext(text string, history []Turn) string {
	isFollowUp := func(s string) bool {
		return len([]rune(s)) <= maxFollowUp && (followUpStart.MatchString(s) || shortFollowUp.MatchString(s))
	}
	if len(history) == 0 || !isFollowUp(text) {
		return ""
	}
	questions := []string{text}
	for i := len(history) - 1; i >= max(0, len(history)-maxTurns); i-- {
		questions = append(questions, history[i].Question)
		if !isFollowUp(history[i].Question) {
			break
		}
	}
	return strings.Join(questions, turnEnd)
}
