package knowledge

import (
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
)

// follows finds how a question begins that goes on from the one before.
var follows = lazy.New(`(?i)^(?:and|and what|what about|how about|what if|what happens|then|with|for|same|but|now|instead|if|or|on)\b|^(?:那|那么|如果|换成|改成|换|改|要是|再|还有|同样|和|若|在|用)`)

// maxTurns is how far back a question reaches.
const maxTurns = 4

// inContext is a question together with the earlier ones that it goes on from,
// newest first, so that what it says anew is read before what was said. It is
// empty for a question that stands alone.
func inContext(text string, history []Turn) string {
	if len(history) == 0 || !follows.MatchString(text) {
		return ""
	}
	said := []string{text}
	for i := len(history) - 1; i >= max(0, len(history)-maxTurns); i-- {
		said = append(said, history[i].Question)
		if !follows.MatchString(history[i].Question) {
			break
		}
	}
	return strings.Join(said, " ; ")
}
