package answer

import (
	"fmt"
	"strings"

	"github.com/slack-go/slack"

	"github.com/megatron-ops/megatron-ops/bot/typed"
	"github.com/megatron-ops/megatron-ops/internal/lang"
)

// The action ids of buttons that every answer may have. An action id may be followed by a colon
// and a suffix that tells the buttons of one message apart. What a button does is in its value.
// The value comes back from the client, so rights are checked when the button is pressed.
const (
	ActRun = "run" // value: the words of a command
	ActYes = "yes" // value: the id of a held call
	ActNo  = "no"  // value: the id of a held call
)

var textApplyFix = lang.Text{EN: "Submit again with the fix", ZH: "应用修复后重新提交"}

// NextButtons draws commands as buttons; it returns nil where none of them can run as it is.
func NextButtons(next []string, l lang.Lang) slack.Block {
	var es []slack.BlockElement
	for _, words := range next {
		words = strings.TrimPrefix(OneLine(words), "megatron-ops ")
		if len(es) == 5 || !runnable(words) {
			continue
		}
		es = append(es, slack.NewButtonBlockElement(fmt.Sprintf("%s:%d", ActRun, len(es)), words, Label(buttonWords(words, l))))
	}
	if len(es) == 0 {
		return nil
	}
	return slack.NewActionBlock("", es...)
}

var buttonNames = map[string]lang.Text{
	"submit":     {EN: "Submit a job", ZH: "提交作业"},
	"status":     {EN: "State", ZH: "状态"},
	"diagnose":   {EN: "Diagnose", ZH: "诊断"},
	"logs":       {EN: "Logs", ZH: "日志"},
	"metrics":    {EN: "Numbers", ZH: "指标"},
	"list":       {EN: "My jobs", ZH: "我的作业"},
	"list --all": {EN: "All my jobs", ZH: "我的全部作业"},
	"help":       {EN: "Help", ZH: "帮助"},
	"priority":   {EN: "Why does it wait?", ZH: "为什么还在等？"},
	"nodes":      {EN: "Nodes", ZH: "节点"},
	"accounts":   {EN: "My accounts", ZH: "我的账户"},
}

var (
	textEarlier = lang.Text{EN: "Could it start earlier?", ZH: "能否提前开始？"}
	textOptions = lang.Text{EN: "Options of %s", ZH: "%s 的选项"}
)

// buttonWords is the label of a command's button: what the command does, and the job's number
// where it names one. A command without a name in the table is its own label.
func buttonWords(words string, l lang.Lang) string {
	if job, ok := strings.CutPrefix(words, "submit --from "); ok && !isID(job) { // a specification that was changed so that the plan accepts it
		return textApplyFix.In(l)
	}
	words, _, _ = strings.Cut(words, " --cluster ")
	words = strings.TrimSuffix(words, " --tail 20")
	if name, ok := buttonNames[words]; ok {
		return name.In(l)
	}
	switch op, job, _ := strings.Cut(words, " "); {
	case op == "status" && strings.HasSuffix(job, " --earlier"):
		return textEarlier.In(l)
	case op == "help" && job != "":
		return fmt.Sprintf(textOptions.In(l), job)
	case op == "priority" && isID(job):
		return buttonNames[op].In(l)
	case isID(job) && buttonNames[op].EN != "":
		return buttonNames[op].In(l) + " " + job
	}
	return words
}

func isID(word string) bool { return word != "" && strings.Trim(word, "0123456789_") == "" }

// runnable reports whether words are a command that needs nothing filled in and no file on the
// machine of a shell.
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
