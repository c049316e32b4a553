package bot

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/megatron-ops/megatron-ops/bot/card"
	"github.com/megatron-ops/megatron-ops/bot/typed"
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/operations"
	"github.com/megatron-ops/megatron-ops/internal/view"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// ownHelp is what the bot's own words do.
var ownHelp = []struct {
	word string
	text lang.Text
}{
	{"help", lang.Text{EN: "what you can do now; `help COMMAND` for one command", ZH: "现在能做什么；`help 命令` 查看单个命令"}},
	{"link", lang.Text{EN: "prove which cluster user you are", ZH: "证明您是集群上的哪个用户"}},
	{"unlink", lang.Text{EN: "forget which cluster user you are", ZH: "解除与集群用户的绑定"}},
	{"whoami", lang.Text{EN: "who you are here and what you may do", ZH: "您在这里的身份和权限"}},
	{"settings", lang.Text{EN: "language, notifications, cluster", ZH: "语言、通知、集群"}},
	{"subscribe", lang.Text{EN: "follow a job, a person or everything in this channel", ZH: "订阅作业、某人或本频道的全部事件"}},
	{"unsubscribe", lang.Text{EN: "end a subscription", ZH: "取消订阅"}},
	{"mute", lang.Text{EN: "hear no more of a job", ZH: "不再接收某作业的消息"}},
	{"unmute", lang.Text{EN: "hear of a job again", ZH: "恢复接收某作业的消息"}},
}

var (
	textHelpTitle = lang.Text{EN: "What you can do now", ZH: "现在可以做什么"}
	textHelpNow   = lang.Text{EN: "Your jobs now", ZH: "您当前的作业"}
	textHelpMore  = lang.Text{EN: "More", ZH: "更多命令"}
	textHelpAll   = lang.Text{EN: "`help all` says what each of them does, `help COMMAND` how.", ZH: "`help all` 列出全部命令的说明，`help 命令` 查看用法。"}
	textHelpRead  = lang.Text{EN: "Look and ask", ZH: "查看与提问"}
	textHelpWrite = lang.Text{EN: "Change something", ZH: "执行操作"}
	textHelpOwn   = lang.Text{EN: "Here in Slack", ZH: "Slack 相关"}
	textHelpHow   = lang.Text{
		EN: "Type `/megatron COMMAND …`, or mention the bot with a question. Answers are for you alone; add `--share` to show one to everybody here.",
		ZH: "输入 `/megatron 命令 …`，或在消息中提到机器人提问。回答默认只有您能看到，加 `--share` 则所有人可见。",
	}
	textHelpHere = lang.Text{
		EN: "Type a command or a question. The same words work in Slack after `/megatron`, and in the shell after `megatron-ops`.",
		ZH: "输入命令或问题。同样的命令在 Slack 中写在 `/megatron` 之后，在命令行中写在 `megatron-ops` 之后。",
	}
	textHelpUnlinked = lang.Text{
		EN: "You are not linked to a cluster user yet: you can look and ask. To change something, run `/megatron link` first.",
		ZH: "您尚未绑定集群用户，只能查看和提问；要执行操作，请先运行 `/megatron link`。",
	}
	textHelpLinked = lang.Text{EN: "You act as the cluster user `%s`.", ZH: "您以集群用户 `%s` 的身份操作。"}
	textHelpRO     = lang.Text{EN: "You may look and ask here, and change nothing.", ZH: "您在这里只能查看和提问，不能修改。"}
	textExample    = lang.Text{EN: "Example", ZH: "示例"}
	textFlags      = lang.Text{EN: "Words", ZH: "参数"}
)

// helpDoc says what this person can do now, or how one command works; the topic
// all lists every command.
func (b *Bot) helpDoc(ctx context.Context, c *ops.Call, topic string) view.Doc {
	all := topic == "all" || topic == "全部"
	if topic != "" && !all {
		name, ok := typed.Resolve(topic)
		if !ok {
			return unknownDoc(topic, c.Lang)
		}
		if op, ok := operations.Lookup(name); ok {
			return opHelp(op, c.Lang)
		}
		for _, h := range ownHelp {
			if h.word == name {
				return view.Doc{Title: "/megatron " + name, Sections: []view.Section{{Text: h.text.In(c.Lang)}}}
			}
		}
	}
	l := c.Lang
	how := textHelpHow
	if c.Who.Surface == ops.Chat {
		how = textHelpHere
	}
	doc := view.Doc{Title: textHelpTitle.In(l), Sections: []view.Section{{Text: how.In(l)}}}
	now, next := b.helpNow(ctx, c)
	if len(now) > 0 {
		doc.Sections = append(doc.Sections, view.Section{Heading: textHelpNow.In(l), Items: now})
	}
	var read, write view.Section
	read.Heading, write.Heading = textHelpRead.In(l), textHelpWrite.In(l)
	var rest []string
	for _, op := range operations.All() {
		if !all && !op.Core && op.Name != "queue" && op.Name != "nodes" {
			rest = append(rest, "`"+op.Name+"`")
			continue
		}
		line := "`" + op.Name + "`  " + op.Summary.In(l)
		if op.Effect == ops.Read {
			read.Items = append(read.Items, line)
		} else {
			write.Items = append(write.Items, line)
		}
	}
	switch {
	case c.Who.ReadOnly:
		write.Text = textHelpRO.In(l)
	case c.Who.User == "":
		write.Text = textHelpUnlinked.In(l)
	default:
		write.Text = fmt.Sprintf(textHelpLinked.In(l), c.Who.User)
	}
	doc.Sections = append(doc.Sections, read, write)
	if c.Who.Surface != ops.Chat { // the other words are about people and channels of Slack
		own := view.Section{Heading: textHelpOwn.In(l)}
		for _, h := range ownHelp {
			own.Items = append(own.Items, "`"+h.word+"`  "+h.text.In(l))
		}
		doc.Sections = append(doc.Sections, own)
	}
	if len(rest) > 0 {
		doc.Sections = append(doc.Sections, view.Section{Heading: textHelpMore.In(l), Text: strings.Join(rest, " ") + "\n" + textHelpAll.In(l)})
	}
	switch {
	case c.Who.ReadOnly:
	case c.Who.User == "":
		doc.Next = append(doc.Next, "link")
	default:
		doc.Next = append(doc.Next, "submit")
	}
	doc.Next = slices.Concat(doc.Next, next, []string{"list", "nodes"})
	if !all {
		doc.Next = append(doc.Next[:min(len(doc.Next), 4)], "help all")
	}
	return doc
}

// helpNow are the person's jobs that have a card here and wait, run, or have
// failed in the last day, with what one would do next.
func (b *Bot) helpNow(ctx context.Context, c *ops.Call) (now, next []string) {
	if c.Who.User == "" || b.cfg.Store == nil {
		return nil, nil
	}
	add := func(n card.News, do string) {
		if j := n.Job; len(now) < 3 && j.User == c.Who.User {
			now = append(now, card.Headline(n, c.Lang))
			next = append(next, do+" "+string(j.ID)+" --cluster "+j.Cluster)
		}
	}
	for _, k := range b.cardsEndedSince(ctx, b.now().Add(-24*time.Hour)) {
		if j := k.News.Job; j.State != slurm.Completed && j.State != slurm.Cancelled {
			add(k.News, "diagnose")
		}
	}
	alive, err := b.unfinished(ctx)
	if err != nil {
		b.log.Warn("slack: cards", "err", err)
	}
	for _, j := range alive {
		add(card.News{Job: b.watchers.now(j)}, "status")
	}
	return now, next[:min(len(next), 2)]
}

// opHelp explains one operation.
func opHelp(op ops.Op, l lang.Lang) view.Doc {
	doc := view.Doc{Title: "/megatron " + op.Name, Sections: []view.Section{{Text: op.Summary.In(l)}}}
	if h := op.Help.In(l); h != "" {
		doc.Sections = append(doc.Sections, view.Section{Text: h})
	}
	if op.Example != "" {
		example := strings.TrimPrefix(op.Example, "megatron-ops ")
		doc.Sections = append(doc.Sections, view.Section{Heading: textExample.In(l), Code: "/megatron " + example})
	}
	if f := flagRows(op, l); len(f) > 0 {
		doc.Sections = append(doc.Sections, view.Section{Heading: textFlags.In(l), Table: &view.Table{
			Header: []string{textFlags.In(l), ""}, Rows: f,
		}})
	}
	return doc
}

// flagRows are the operation's arguments and flags, with what they mean.
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
