package bot

import (
	"fmt"
	"strings"

	"github.com/slack-go/slack"
)

// The action ids of our buttons. The part after the colon tells buttons of one
// message apart; what a button means is in its value, and is judged again when
// it is pressed: a value comes back from the client.
const (
	actRun = "run" // value: the words of a command
	actYes = "yes" // value: the id of a held call
	actNo  = "no"  // value: the id of a held call
)

// NextButtons offers commands as buttons; nil where there are none that Slack
// can run as they are.
func NextButtons(next []string) slack.Block {
	var es []slack.BlockElement
	for _, words := range next {
		words = strings.TrimPrefix(oneLine(words), "megatron-ops ")
		if len(es) == 5 || !runnable(words) {
			continue
		}
		es = append(es, slack.NewButtonBlockElement(fmt.Sprintf("%s:%d", actRun, len(es)), words, plain(cut(words, maxButton))))
	}
	if len(es) == 0 {
		return nil
	}
	return slack.NewActionBlock("", es...)
}

// runnable reports whether words are a command that needs nothing filled in and
// no file of the shell's machine.
func runnable(words string) bool {
	if words == "" || len(words) > maxValue || strings.ContainsAny(words, "<>…|") {
		return false
	}
	for w := range strings.FieldsSeq(words) {
		if w == "-f" || w == "--file" || w == "..." || w == strings.ToUpper(w) && strings.ToLower(w) != w && !strings.HasPrefix(w, "-") {
			return false
		}
	}
	_, ok := resolve(strings.Fields(words)[0])
	return ok
}
