package card

import (
	"fmt"
	"strings"

	"github.com/slack-go/slack"

	"github.com/megatron-ops/megatron-ops/bot/answer"
	"github.com/megatron-ops/megatron-ops/bot/typed"
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// A cardButton is one that a card has in some states.
type cardButton struct {
	label  lang.Text
	words  func(News) string // a command; empty: not now
	action string            // where it is no command: whose value words are
	danger bool
	sure   lang.Text // asked before
}

func onJob(verb string, when func(News) bool) func(News) string {
	return func(n News) string {
		if !when(n) {
			return ""
		}
		return verb + " " + string(n.Job.ID)
	}
}

func waits(n News) bool  { return n.Job.State == slurm.Pending }
func runs(n News) bool   { return n.Job.State == slurm.Running }
func ended(n News) bool  { return n.Job.State.Ended() }
func alive(n News) bool  { return !n.Job.State.Ended() }
func failed(n News) bool { return ended(n) && n.Job.State != slurm.Completed }
func isHeld(n News) bool { return waits(n) && strings.HasPrefix(n.Job.Reason, "JobHeld") }

// cardButtonTable is every button of a card, in order. What the presser may do
// is judged when it is pressed.
var cardButtonTable = []cardButton{
	{label: lang.Text{EN: "Diagnose", ZH: "诊断"}, words: onJob("diagnose", func(n News) bool { return runs(n) || failed(n) })},
	{label: lang.Text{EN: "Logs", ZH: "日志"}, words: func(n News) string {
		if waits(n) {
			return ""
		}
		return "logs " + string(n.Job.ID) + " --tail 20"
	}},
	{label: lang.Text{EN: "Retry without the bad node", ZH: "排除故障节点后重试"}, action: ActAvoid, words: func(n News) string {
		if !failed(n) || len(n.Exclude) == 0 {
			return ""
		}
		return ID(n.Job.Cluster, n.Job.ID) + " " + strings.Join(n.Exclude, ",")
	}},
	{label: lang.Text{EN: "Apply fix and resubmit", ZH: "应用修复并重新提交"}, action: ActMend, words: func(n News) string {
		if !failed(n) || len(n.Fix) == 0 {
			return ""
		}
		return ID(n.Job.Cluster, n.Job.ID)
	}},
	{label: lang.Text{EN: "Extend chain", ZH: "延长作业链"}, action: ActExtend, words: func(n News) string {
		if ended(n) {
			return ""
		}
		return ID(n.Job.Cluster, n.Job.ID)
	}},
	{label: lang.Text{EN: "Change and resubmit", ZH: "修改并重新提交"}, action: ActAgain, words: func(n News) string {
		if !ended(n) {
			return ""
		}
		return ID(n.Job.Cluster, n.Job.ID)
	}},
	{label: lang.Text{EN: "Hold", ZH: "挂起"}, words: onJob("hold", func(n News) bool { return waits(n) && !isHeld(n) })},
	{label: lang.Text{EN: "Release", ZH: "释放"}, words: onJob("release", isHeld)},
	{
		label: lang.Text{EN: "Cancel", ZH: "取消作业"}, words: onJob("cancel", alive), danger: true,
		sure: lang.Text{EN: "The job ends now. What was computed since the last checkpoint is lost.", ZH: "作业将立即结束，最近检查点之后的计算会丢失。"},
	},
	{label: lang.Text{EN: "Mute", ZH: "静音"}, words: onJob("mute", alive)},
}

// Buttons are the buttons that a job's card has now.
func Buttons(n News, l lang.Lang) slack.Block {
	var es []slack.BlockElement
	for i, x := range cardButtonTable {
		words := x.words(n)
		verb, _, _ := strings.Cut(words, " ")
		if words == "" || x.action == "" && !typed.Known(verb) {
			continue
		}
		switch {
		case n.Job.Cluster == "" || x.action != "":
		default:
			words += " --cluster " + n.Job.Cluster
		}
		if x.sure.EN != "" {
			words += " --yes" // Slack asks, by the button's own dialog
		}
		if len(words) > answer.MaxValue {
			continue
		}
		action := x.action
		if action == "" {
			action = answer.ActRun
		}
		e := slack.NewButtonBlockElement(fmt.Sprintf("%s:card%d", action, i), words, answer.Label(x.label.In(l)))
		if x.danger {
			e.Style = slack.StyleDanger
		}
		if x.sure.EN != "" {
			e.Confirm = slack.NewConfirmationBlockObject(answer.Label(x.label.In(l)), answer.Label(x.sure.In(l)), answer.Label(answer.Yes.In(l)), answer.Label(answer.No.In(l)))
		}
		es = append(es, e)
	}
	if len(es) == 0 {
		return nil
	}
	return slack.NewActionBlock("", es...)
}
