package card

import (
	"fmt"
	"strings"

	"github.com/slack-go/slack"

	"github.com/megatron-ops/megatron-ops/bot/answer"
	"github.com/megatron-ops/megatron-ops/bot/typed"
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/hostlist"
)

// A button is a button that a card has in some states of its job.
type button struct {
	label lang.Text
	// words returns a command, or the value of action; empty means that the card does not have
	// the button now.
	words  func(Card) string
	action string // empty: words returns a command
	// next marks the next step to take: the first such button is drawn as the primary one.
	next bool
	// hidden puts the button into the menu even where there is room for it.
	hidden bool
}

func onJob(verb string, when func(News) bool) func(Card) string {
	return func(k Card) string {
		if !when(k.News) {
			return ""
		}
		return verb + " " + string(k.News.Job.ID)
	}
}

func onCard(when func(News) bool) func(Card) string {
	return func(k Card) string {
		if !when(k.News) {
			return ""
		}
		return ID(k.News.Job.Cluster, k.News.Job.ID)
	}
}

// unlessCancelled leaves a button out from the moment when a person cancels the job, which the cluster
// tells later.
func unlessCancelled(words func(Card) string) func(Card) string {
	return func(k Card) string {
		if k.EndedBy() != "" && !k.BySwitch {
			return ""
		}
		return words(k)
	}
}

func waits(n News) bool  { return n.Job.State == slurm.Pending }
func runs(n News) bool   { return n.Job.State == slurm.Running }
func ended(n News) bool  { return n.Job.State.Ended() }
func alive(n News) bool  { return !n.Job.State.Ended() }
func failed(n News) bool { return ended(n) && ToneOf(n.Job.State) == "bad" }
func isHeld(n News) bool { return waits(n) && strings.HasPrefix(n.Job.Reason, "JobHeld") }

// buttonTable holds every button of a card in their order: next steps, then what people use
// most, then what is only in the menu. Rights are checked when a button is pressed.
var buttonTable = []button{
	{label: lang.Text{EN: "Apply fix and resubmit", ZH: "应用修复并重新提交"}, action: ActMend, next: true, words: onCard(func(n News) bool {
		return failed(n) && len(n.Fix) > 0
	})},
	{label: lang.Text{EN: "Retry without the bad node", ZH: "排除故障节点后重试"}, action: ActAvoid, next: true, words: func(k Card) string {
		if !failed(k.News) || len(k.News.Exclude) == 0 {
			return ""
		}
		return AvoidValue(k.News.Job.Cluster, k.News.Job.ID, hostlist.Compress(k.News.Exclude))
	}},
	{label: lang.Text{EN: "Release", ZH: "释放"}, next: true, words: onJob("release", isHeld)},
	{label: lang.Text{EN: "Diagnose", ZH: "诊断"}, next: true, words: onJob("diagnose", func(n News) bool { return failed(n) && n.reason(lang.EN) == "" })},
	{label: lang.Text{EN: "I look after it", ZH: "我来处理"}, action: ActTake, words: func(k Card) string {
		if !failed(k.News) || k.Taken != "" {
			return ""
		}
		return ID(k.News.Job.Cluster, k.News.Job.ID)
	}},
	{label: lang.Text{EN: "Diagnose", ZH: "诊断"}, words: onJob("diagnose", func(n News) bool { return runs(n) || n.Job.State == slurm.Ended })},
	{label: lang.Text{EN: "Logs", ZH: "日志"}, words: func(k Card) string {
		if waits(k.News) {
			return ""
		}
		return "logs " + string(k.News.Job.ID) + " --tail 20"
	}},
	{label: lang.Text{EN: "Why does it wait?", ZH: "为什么在排队？"}, words: onJob("priority", waits)},
	{label: lang.Text{EN: "Change and resubmit", ZH: "修改并重新提交"}, action: ActAgain, words: onCard(ended)},
	{label: lang.Text{EN: "Numbers", ZH: "指标"}, hidden: true, words: onJob("metrics", func(n News) bool { return !waits(n) && n.Iteration > 0 })},
	{label: lang.Text{EN: "Extend chain", ZH: "延长作业链"}, hidden: true, action: ActExtend, words: unlessCancelled(onCard(alive))},
	{label: lang.Text{EN: "Hold", ZH: "挂起"}, hidden: true, words: unlessCancelled(onJob("hold", func(n News) bool { return waits(n) && !isHeld(n) }))},
	{label: lang.Text{EN: "Diagnose again", ZH: "重新诊断"}, hidden: true, words: onJob("diagnose", func(n News) bool { return failed(n) && n.reason(lang.EN) != "" })},
	{label: lang.Text{EN: "Cancel", ZH: "取消作业"}, hidden: true, words: onJob("cancel", alive)},
	{label: lang.Text{EN: "Mute", ZH: "静音"}, hidden: true, words: func(k Card) string {
		if len(k.Places) == 0 { // nobody is told of the job
			return ""
		}
		return onJob("mute", alive)(k)
	}},
}

// AvoidValue returns the value of ActAvoid. Nodes that are too many for a button are left to the
// card.
func AvoidValue(cluster string, job slurm.JobID, nodes string) string {
	id := ID(cluster, job)
	if value := id + " " + nodes; len(value) <= answer.MaxValue {
		return value
	}
	return id
}

// maxShown is how many buttons are beside the menu.
const maxShown = 3

// Buttons draws the buttons of a job's card for its present state: at most three buttons, of
// which the next step is the primary one, and a menu with the rest.
func Buttons(k Card, l lang.Lang) slack.Block {
	var es []slack.BlockElement
	var menu []*slack.OptionBlockObject
	primary := false
	for i, x := range buttonTable {
		words := x.words(k)
		verb, _, _ := strings.Cut(words, " ")
		if words == "" || x.action == "" && !typed.Known(verb) {
			continue
		}
		action := x.action
		if action == "" {
			action = answer.ActRun
			if c := k.News.Job.Cluster; c != "" {
				words += " --cluster " + c
			}
		}
		if !x.hidden && len(es) < maxShown && len(words) <= answer.MaxValue {
			e := slack.NewButtonBlockElement(fmt.Sprintf("%s:card%d", action, i), words, answer.Label(x.label.In(l)))
			if x.next && !primary {
				e.Style, primary = slack.StylePrimary, true
			}
			es = append(es, e)
			continue
		}
		if value := action + " " + words; len(value) <= answer.MaxOption {
			menu = append(menu, slack.NewOptionBlockObject(value, answer.Label(x.label.In(l)), nil))
		}
	}
	if len(menu) > 0 {
		es = append(es, slack.NewOverflowBlockElement(ActMenu+":card", menu...))
	}
	if len(es) == 0 {
		return nil
	}
	return slack.NewActionBlock("", es...)
}
