// Package help tells people what they can do: the common tasks, all commands, and how each
// command works.
package help

import (
	"fmt"
	"slices"
	"strings"

	"github.com/slack-go/slack"

	"github.com/megatron-ops/megatron-ops/bot/answer"
	"github.com/megatron-ops/megatron-ops/bot/people"
	"github.com/megatron-ops/megatron-ops/bot/reply"
	"github.com/megatron-ops/megatron-ops/bot/typed"
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/operations"
	"github.com/megatron-ops/megatron-ops/internal/view"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// ownHelp describes the commands that only the bot has.
var ownHelp = []struct {
	word     string
	text     lang.Text
	examples string
}{
	{"help", lang.Text{EN: "what you can do now; `help COMMAND` for one command", ZH: "现在能做什么；`help 命令` 查看单个命令"}, "help cancel"},
	{"link", lang.Text{EN: "prove which cluster user you are", ZH: "证明您是集群上的哪个用户"}, "link"},
	{"unlink", lang.Text{EN: "forget which cluster user you are", ZH: "解除与集群用户的绑定"}, "unlink"},
	{"web", lang.Text{EN: "a link to the page: jobs, curves and logs in a browser", ZH: "网页链接：在浏览器中查看作业、曲线与日志"}, "web"},
	{"whoami", lang.Text{EN: "who you are here and what you may do", ZH: "您在这里的身份和权限"}, "whoami"},
	{"settings", lang.Text{EN: "language, notifications, cluster", ZH: "语言、通知、集群"}, "settings\nsettings quiet 22:00-08:00 Asia/Shanghai"},
	{"subscribe", lang.Text{EN: "follow a job, a person or everything in this channel", ZH: "订阅作业、某人或本频道的全部事件"}, "subscribe\nsubscribe 4711\nsubscribe partition=prod failed completed\nsubscribe name=nightly-* expected\nsubscribe project=research digest"},
	{"unsubscribe", lang.Text{EN: "end a subscription", ZH: "取消订阅"}, "unsubscribe 4711"},
	{"mute", lang.Text{EN: "stop notifications about a job", ZH: "不再接收某作业的消息"}, "mute 4711"},
	{"unmute", lang.Text{EN: "resume notifications about a job", ZH: "恢复接收某作业的消息"}, "unmute 4711"},
}

// Title is the heading of the help.
var Title = lang.Text{EN: "What you can do now", ZH: "现在可以做什么"}

// Unlinked tells a person without a cluster user what they can do.
var Unlinked = lang.Text{
	EN: "You are not linked to a cluster user yet: you can ask. To see jobs and start them, link yourself first.",
	ZH: "您尚未绑定集群用户，目前只能提问；要查看或提交作业，请先绑定。",
}

var (
	textHelpRead  = lang.Text{EN: "Look and ask", ZH: "查看与提问"}
	textHelpWrite = lang.Text{EN: "Change something", ZH: "执行操作"}
	textHelpOwn   = lang.Text{EN: "Here in Slack", ZH: "Slack 相关"}
	textHelpHow   = lang.Text{EN: "Type `/megatron`, mention me, or write to me.", ZH: "输入 `/megatron`、提到我或直接给我发消息。"}
	textTryIt     = lang.Text{EN: "Try it", ZH: "试一试"}
	textHelpEvery = lang.Text{EN: "All commands", ZH: "全部命令"}
	textHelpHere  = lang.Text{
		EN: "Type a command or a question. The same words work in Slack after `/megatron`, and in the shell after `megatron-ops`.",
		ZH: "输入命令或问题。同样的命令在 Slack 中写在 `/megatron` 之后，在命令行中写在 `megatron-ops` 之后。",
	}
	textHelpLinked = lang.Text{EN: "You act as the cluster user `%s`.", ZH: "您以集群用户 `%s` 的身份操作。"}
	textHelpRO     = lang.Text{EN: "You may look and ask here, and change nothing.", ZH: "您在这里只能查看和提问，不能修改。"}
	textExample    = lang.Text{EN: "Example", ZH: "示例"}
	textFlags      = lang.Text{EN: "Word", ZH: "参数"}
	textMeaning    = lang.Text{EN: "What it does", ZH: "说明"}
)

// helpTasks are the tasks that people come for, each with the command that starts it.
var helpTasks = []struct {
	do, how lang.Text
	words   string
	// acts marks a task that only a person with a cluster user can do.
	acts bool
}{
	{
		lang.Text{EN: "Start a run", ZH: "启动训练"},
		lang.Text{EN: "from a recipe, your last run, a script or YAML; it is checked before it queues", ZH: "从模型配方、上次运行、脚本或 YAML 开始，排队前先检查"},
		"submit", true,
	},
	{
		lang.Text{EN: "See your jobs", ZH: "查看作业"},
		lang.Text{EN: "how far they are, why they wait; a job's number alone works too", ZH: "进度、排队原因；直接输入作业号也可以"},
		"list", true,
	},
	{
		lang.Text{EN: "Find out why a job failed", ZH: "查找失败原因"},
		lang.Text{EN: "the root cause over all ranks, and what to change; then ask on in its thread", ZH: "从所有 rank 中找到根本原因和处理办法，可在讨论串中继续追问"},
		"diagnose my last job", true,
	},
	{
		lang.Text{EN: "Check a script or a log", ZH: "检查脚本或日志"},
		lang.Text{EN: "paste it, or use “Lint this script” and “Diagnose this” on any message", ZH: "粘贴内容，或在任意消息的菜单中选择 Lint this script、Diagnose this"},
		"lint", false,
	},
	{
		lang.Text{EN: "Ask", ZH: "提问"},
		lang.Text{EN: "about Megatron-LM, NCCL or Slurm; answers name their source", ZH: "Megatron-LM、NCCL、Slurm 相关问题，回答附来源"},
		"ask What should CUDA_DEVICE_MAX_CONNECTIONS be on H100 with TP=8?", false,
	},
	{
		lang.Text{EN: "Get news", ZH: "接收通知"},
		lang.Text{EN: "of a job, a person, a project or a partition, here or every morning", ZH: "关注作业、某人、项目或分区，实时或每天早上汇总"},
		"subscribe", true,
	},
}

// Tasks draws those tasks, one a line, and says who the person is.
func Tasks(c *ops.Call) []slack.Block {
	l := c.Lang
	bs := []slack.Block{answer.Header(Title.In(l))}
	for i, t := range helpTasks {
		section := slack.NewSectionBlock(answer.Markup("*"+t.do.In(l)+"*\n"+t.how.In(l)), nil, nil)
		if !t.acts || c.Who.User != "" {
			e := slack.NewButtonBlockElement(fmt.Sprintf("%s:try%d", answer.ActRun, i), t.words, answer.Label(textTryIt.In(l)))
			section.Accessory = slack.NewAccessory(e)
		}
		bs = append(bs, section)
	}
	said := fmt.Sprintf(textHelpLinked.In(l), answer.Escape(c.Who.User))
	es := []slack.BlockElement{slack.NewButtonBlockElement(answer.ActRun+":all", "help all", answer.Label(textHelpEvery.In(l)))}
	switch {
	case c.Who.ReadOnly:
		said = textHelpRO.In(l)
	case c.Who.User == "":
		said = Unlinked.In(l)
		e := slack.NewButtonBlockElement(answer.ActRun+":link", "link", answer.Label(reply.LinkMe.In(l)))
		e.Style = slack.StylePrimary
		es = append([]slack.BlockElement{e}, es...)
	default:
		es = append(es, slack.NewButtonBlockElement(answer.ActRun+":settings", "settings", answer.Label(people.YourSettings.In(l))))
	}
	return append(bs, answer.ContextMarkup(said+map[bool]string{true: "", false: " "}[l == lang.ZH]+textHelpHow.In(l)), slack.NewActionBlock("", es...))
}

// Doc explains one command or, for an empty topic or the topic "all", lists all commands.
func Doc(c *ops.Call, topic string) view.Doc {
	if topic != "" && topic != "all" && topic != "全部" {
		name, ok := typed.Resolve(topic)
		if !ok {
			return Unknown(topic, c.Lang)
		}
		if op, ok := operations.Lookup(name); ok {
			return opHelp(op, c.Lang)
		}
		for _, h := range ownHelp {
			if h.word == name {
				return view.Doc{Title: "/megatron " + name, Sections: []view.Section{
					{Text: lang.Capital(h.text.In(c.Lang))},
					{Heading: textExample.In(c.Lang), Code: "/megatron " + strings.ReplaceAll(h.examples, "\n", "\n/megatron ")},
				}}
			}
		}
	}
	l := c.Lang
	doc := view.Doc{Title: Title.In(l)}
	if c.Who.Surface == ops.Chat {
		doc.Sections = []view.Section{{Text: textHelpHere.In(l)}}
	}
	var read, write view.Section
	read.Heading, write.Heading = textHelpRead.In(l), textHelpWrite.In(l)
	for _, op := range operations.All() {
		line := "`" + op.Name + "`  " + op.Summary.In(l)
		if op.Effect == ops.Read {
			read.Items = append(read.Items, line)
		} else {
			write.Items = append(write.Items, line)
		}
	}
	doc.Sections = append(doc.Sections, read, write)
	if c.Who.Surface != ops.Chat { // the bot's own commands are about people and channels of Slack
		own := view.Section{Heading: textHelpOwn.In(l)}
		for _, h := range ownHelp {
			own.Items = append(own.Items, "`"+h.word+"`  "+h.text.In(l))
		}
		doc.Sections = append(doc.Sections, own)
	}
	return doc
}

func opHelp(op ops.Op, l lang.Lang) view.Doc {
	doc := view.Doc{Title: "/megatron " + op.Name, Sections: []view.Section{
		{Text: op.Summary.In(l)},
		{Text: op.Help.In(l)},
		{Heading: textExample.In(l), Code: "/megatron " + strings.TrimPrefix(op.Example, "megatron-ops ")},
	}}
	if f := flagRows(op, l); len(f) > 0 {
		doc.Sections = append(doc.Sections, view.Section{Table: &view.Table{Header: []string{textFlags.In(l), textMeaning.In(l)}, Rows: f}})
	}
	return doc
}

// flagRows lists the operation's arguments and flags with their meaning.
func flagRows(op ops.Op, l lang.Lang) (rows [][]string) {
	for _, p := range op.Params() {
		name := "--" + p.Name
		if p.Arg {
			name = strings.ToUpper(p.Name)
		}
		help := p.Help.In(l)
		if len(p.Enum) > 0 {
			help += " (" + strings.Join(p.Enum, ", ") + ")"
		}
		rows = append(rows, []string{name, help})
	}
	return rows
}

var (
	textUnknown  = lang.Text{EN: "I do not know the command %q", ZH: "不认识命令 %q"}
	textOnceMore = lang.Text{EN: "Run %s once more?", ZH: "再次运行 %s？"}
	textMean     = lang.Text{EN: "Did you mean one of these?", ZH: "您是不是想用："}
)

// OnceMore offers the commands that run a job once more, where the first word is none of them
// but names that wish and a job follows. ok is false for any other words: such a word alone may
// be part of a question.
func OnceMore(words []string, l lang.Lang) (d view.Doc, ok bool) {
	if len(words) < 2 || !slurm.IsJobID(words[1]) {
		return d, false
	}
	all, refused := operations.OnceMore(words)
	d = offer(words[1], all, l)
	if refused != nil {
		d.Tone, d.Sections[0].Text = view.Warn, refused.Line(l)
		if len(all) == 0 {
			d.Sections[0].Text += "\n" + refused.Fix.In(l)
		}
	}
	return d, len(all) > 0 || refused != nil
}

// Reruns offers the commands that run that job once more.
func Reruns(job string, l lang.Lang) view.Doc { return offer(job, operations.Reruns(job), l) }

func offer(job string, all []operations.Rerun, l lang.Lang) view.Doc {
	d := view.Doc{Title: fmt.Sprintf(textOnceMore.In(l), job), Sections: []view.Section{{}}}
	for _, r := range all {
		d.Next = append(d.Next, r.Command)
		d.Sections[0].Items = append(d.Sections[0].Items, "`"+r.Command+"` "+r.Does.In(l))
	}
	return d
}

// Unknown says that a command is unknown and offers the nearest ones, followed by the words
// that were typed after it.
func Unknown(word string, l lang.Lang, rest ...string) view.Doc {
	d := view.Doc{Title: fmt.Sprintf(textUnknown.In(l), answer.Cut(word, 40)), Tone: view.Warn, Next: []string{"help"}}
	if near := typed.DidYouMean(word); len(near) > 0 {
		d.Sections = []view.Section{{Text: textMean.In(l)}}
		for i := range near {
			near[i] = strings.Join(append([]string{near[i]}, rest...), " ")
		}
		d.Next = near
		if !slices.Contains(near, "help") {
			d.Next = append(d.Next, "help")
		}
	}
	return d
}
