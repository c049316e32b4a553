package knowledge

import "strings"

// follows finds how a question begins that goes on from the one before.
var follows = lazily(`(?i)^(?:and|what about|how about|what if|then|with|for|same|but|now|instead|if|or|on|why|how so|how come|why not|really)\b` +
	`|^(?:那|那么|如果|换成|改成|换|改|要是|再|还有|同样|和|若|在|用|为什么|为啥|怎么会|真的)`)

// maxTurns is how far back a question reaches.
const maxTurns = 4

// maxFollow is how long a question may be that goes on from another, in
// characters: a longer one stands alone, however it begins.
const maxFollow = 60

// inContext is a question together with the earlier ones that it goes on from,
// newest first, so that what it says anew is read before what was said. It is
// empty for a question that stands alone.
func inContext(text string, history []Turn) string {
	goesOn := func(s string) bool { return len([]rune(s)) <= maxFollow && follows().MatchString(s) }
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
	return strings.Join(said, " ; ")
}
