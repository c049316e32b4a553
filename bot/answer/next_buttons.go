package answer

import (
	"fmt"
	"strings"

	"github.com/slack-go/slack"

	"github.com/megatron-ops/megatron-ops/bot/typed"
	"github.com/megatron-ops/megatron-ops/internal/lang"
)

// The action ids of our buttons. The part after the colon tells buttons of one
// message apart; what a button means is in its value, and is judged again when
// it is pressed: a value comes back from the client.
const (
	ActRun = "run" // value: the words of a command
	ActYes = "yes" // value: the id of a held call
	ActNo  = "no"  // value: the id of a held call
)

var textApplyFix = lang.Text{EN: "Submit again with the fix", ZH: "应用修复后重新提交"}

// NextButtons offers commands as buttons; nil where there are none that Slack
// can run as they are.
func NextButtons(next []string, l lang.Lang) slack.Block {
	var es []slack.BlockElement
	for _, words := range next {
		words = strings.TrimPrefix(OneLine(words), "megatron-ops ")
		if len(es) == 5 || !runnable(words) {
			continue
		}
		said := words
		if strings.HasPrefix(words, "submit --from ") { // a change that the plan accepts
			said = textApplyFix.In(l)
		}
		es = append(es, slack.NewButtonBlockElement(fmt.Sprintf("%s:%d", ActRun, len(es)), words, Label(Cut(said, maxButton))))
	}
	if len(es) == 0 {
		return nil
	}
	return slack.NewActionBlock("", es...)
}

// runnable reports whether words are a command that needs nothing filled in and
// no file of the shell's machine.
func runnable(words string) bool {
	if words == "" || len(words) > MaxValue || strings.ContainsAny(words, "<>…|") {
		return false
	}
	for w := range strings.FieldsSeq(words) {
		if w == "-f" || w == "--file" || w == "..." || w == strings.ToUpper(w) && strings.ToLower(w) != w && !strings.HasPrefix(w, "-") {
			return false
		}
	}
	_, ok := typed.Resolve(strings.Fields(words)[0])
	return ok
}
