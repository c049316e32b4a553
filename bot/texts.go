package bot

import (
	"context"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/view"
)

// What the bot itself says; operations bring their own words.
var (
	textBroken = lang.Text{
		EN: "something in megatron-ops broke while working on this; the server's log has the details",
		ZH: "megatron-ops 处理这个请求时内部出错，详情见服务器日志",
	}
	textSlow = lang.Text{
		EN: "That was a lot at once. Nothing was done; please try again in %d s.",
		ZH: "请求过于频繁，本次没有执行任何操作；请 %d 秒后再试。",
	}
	textError = map[ops.Code]lang.Text{
		ops.BadInput:   {EN: "That does not work as typed", ZH: "输入有误"},
		ops.Failed:     {EN: "That failed", ZH: "操作失败"},
		ops.NotAllowed: {EN: "Not allowed", ZH: "没有权限"},
		ops.NotFound:   {EN: "Not found", ZH: "没有找到"},
		ops.Preflight:  {EN: "The preflight found problems", ZH: "预检发现问题"},
	}
	textColon    = lang.Text{EN: ": ", ZH: "："}
	textField    = lang.Text{EN: "Field", ZH: "字段"}
	textWhat     = lang.Text{EN: "Problem", ZH: "问题"}
	textFix      = lang.Text{EN: "What would work", ZH: "如何修正"}
	textUnknown  = lang.Text{EN: "I do not know the command %q", ZH: "不认识命令 %q"}
	textMean     = lang.Text{EN: "Did you mean one of these?", ZH: "您是不是想用："}
	textConfirm  = lang.Text{EN: "Please confirm", ZH: "请确认"}
	textYes      = lang.Text{EN: "Yes, do it", ZH: "确认执行"}
	textNo       = lang.Text{EN: "Leave it", ZH: "放弃"}
	textExpired  = lang.Text{EN: "This question was answered already, or is older than an hour. Nothing was done.", ZH: "该确认已处理过或已超过一小时，没有执行任何操作。"}
	textNotYours = lang.Text{EN: "Only the person who asked can answer this. Nothing was done.", ZH: "只有发起人可以确认，没有执行任何操作。"}
	textLeft     = lang.Text{EN: "Left as it was. Nothing was done.", ZH: "已放弃，没有执行任何操作。"}
	textForeign  = lang.Text{
		EN: "you come from another workspace, so only `help` and `ask` are open to you here",
		ZH: "您来自其他工作区，这里只能使用 `help` 和 `ask`",
	}
	textChannel = lang.Text{
		EN: "jobs may not be changed from this channel",
		ZH: "不允许在本频道修改作业",
	}
	textChannelFix = lang.Text{
		EN: "use a direct message with the bot, or one of the channels that your operator has opened",
		ZH: "请在与机器人的私聊中操作，或使用管理员开放的频道",
	}
)

// guess is the language that a text is written in.
func guess(text string) lang.Lang { return lang.Of(text) }

func guessDoc(d view.Doc) lang.Lang {
	if len(d.Sections) > 0 {
		return lang.Of(d.Title + d.Sections[0].Heading)
	}
	return lang.Of(d.Title)
}

// langOf is the language to answer in: the one that the person chose, else the
// one they wrote in.
func (b *Bot) langOf(ctx context.Context, a ask) lang.Lang {
	if s := b.settings(ctx, a.Team, a.User); s.Lang != "" {
		return s.Lang
	}
	if l := guess(a.Text); a.local == nil || l != lang.EN {
		return l
	}
	return a.local.lang
}

// errorDoc shows an error: what was given, what is wrong, what would work.
func errorDoc(e *ops.Error, l lang.Lang) view.Doc {
	e = e.In(l)
	title, ok := textError[e.Code]
	if !ok {
		title = textError[ops.Failed]
	}
	d := view.Doc{Title: title.In(l), Tone: view.Bad}
	for _, x := range append([]*ops.Error{e}, e.More...) {
		var fs []view.Fact
		if x.Field != "" {
			fs = append(fs, view.Fact{Name: textField.In(l), Value: x.Field})
		}
		fs = append(fs, view.Fact{Name: textWhat.In(l), Value: x.Message})
		if x.Fix != "" {
			fs = append(fs, view.Fact{Name: textFix.In(l), Value: x.Fix})
		}
		d.Sections = append(d.Sections, view.Section{Facts: fs})
	}
	return d
}
