package bot

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/slack-go/slack"

	"github.com/megatron-ops/megatron-ops/bot/help"
	"github.com/megatron-ops/megatron-ops/bot/incoming"
	"github.com/megatron-ops/megatron-ops/bot/install"
	"github.com/megatron-ops/megatron-ops/bot/outbox"
	"github.com/megatron-ops/megatron-ops/bot/typed"
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/operations"
	"github.com/megatron-ops/megatron-ops/internal/redact"
	"github.com/megatron-ops/megatron-ops/internal/store"
	"github.com/megatron-ops/megatron-ops/internal/view"
	"github.com/megatron-ops/megatron-ops/slurm"
)

var (
	textSecret = lang.Text{EN: "Your message seems to contain a secret", ZH: "您的消息中似乎含有密钥"}
	textRevoke = lang.Text{
		EN: "Delete the message, and revoke the token or password: whoever reads this conversation may have seen it.",
		ZH: "请删除这条消息，并作废其中的令牌或密码：能看到此会话的人可能都已看到。",
	}
)

// message answers a message to the bot, and warns the person privately of a secret in it.
func (b *Bot) message(ctx context.Context, a incoming.Ask) []store.SlackMessage {
	owed := b.answerMessage(ctx, a)
	if a.Terminal != nil || redact.Text(a.Text) == a.Text {
		return owed
	}
	warning := a
	warning.Key += "/secret"
	l := b.people.Call(ctx, a).Lang
	return append(b.reply.Doc(warning, view.Doc{Tone: view.Warn, Title: textSecret.In(l), Sections: []view.Section{{Text: textRevoke.In(l)}}}, false), owed...)
}

// answerMessage answers a message to the bot: as a command where it reads as one, otherwise as a
// question. The answer goes into the thread.
func (b *Bot) answerMessage(ctx context.Context, a incoming.Ask) []store.SlackMessage {
	a.Text = b.namePeople(ctx, a)
	t := typed.Read(a.Text)
	c := b.people.Call(ctx, a)
	words, f := typed.TakeFlags(typed.Unglue(t.Words))
	if len(words) == 0 && len(t.Blocks) == 0 && len(a.Files) == 0 {
		return b.help(a, c, "", false)
	}
	if owed, ok := b.rated(ctx, a, c); ok {
		return owed
	}
	wordless, greets := typed.Wordless(a.Text)
	if len(a.Files) == 0 && greets {
		return b.help(a, c, "", false)
	}
	if len(t.Blocks) == 0 && len(a.Files) == 0 && (wordless || typed.Thanks(strings.Join(words, " "))) {
		return b.reply.Doc(a, view.Doc{Sections: []view.Section{{Text: textWelcome.In(c.Lang)}}}, true)
	}
	if len(a.Files) > 0 || len(t.Blocks) > 0 {
		if owed, ok := b.pastedIn(ctx, a, c, t); ok {
			return owed
		}
	}
	if len(words) == 1 && slurm.IsJobID(words[0]) {
		return b.perform(ctx, a, c, "status", words, t, f)
	}
	if len(words) > 0 && len(t.Blocks) == 0 {
		if d, ok := help.OnceMore(words, c.Lang); ok {
			return b.reply.Doc(a, d, true)
		}
		if owed, done := b.followUp(ctx, a, c, a.Text); done {
			return owed
		}
		if owed, done := b.askedOfJob(ctx, a, c, words, f); done {
			return owed
		}
	}
	if len(words) > 0 {
		if name, ok := typed.Resolve(words[0]); ok && name != "ask" && readsAsCommand(name, words[1:], t) {
			return b.perform(ctx, a, c, name, words[1:], t, f)
		}
		if name, ok := typed.Resolve(words[0]); ok && name == "ask" && len(words) > 1 {
			return b.question(ctx, a, c, t.Rest)
		}
	}
	if owed, done := b.answerSentence(ctx, a, c, t, f); done {
		return owed
	}
	if a.Direct && len(words) > 0 && len(words) <= 2 && !typed.IsQuestion(a.Text, words) && len(typed.DidYouMean(words[0])) > 0 {
		return b.reply.Doc(a, help.Unknown(words[0], c.Lang, words[1:]...), true)
	}
	return b.question(ctx, a, c, t.Whole())
}

// readsAsCommand tells a command from a sentence that starts with the same word: "list the
// constants for H100" is a question.
func readsAsCommand(name string, words []string, t typed.Text) bool {
	op, ok := operations.Lookup(name)
	if !ok { // "help me understand this" is a sentence; "settings quiet 23:00-07:00 Asia/Shanghai" is none
		return len(words) <= 2 || name != "help" && slices.ContainsFunc(words, func(w string) bool { return strings.ContainsAny(w, "=:0123456789") })
	}
	_, err := typed.Fill(op, typed.Call{Words: words, Blocks: t.Blocks, Rest: t.Rest})
	if err == nil {
		jobs := slices.ContainsFunc(op.Params(), func(p ops.Param) bool { return p.Arg && p.Job && p.Several })
		named := slices.ContainsFunc(words, func(w string) bool { return strings.HasPrefix(w, "-") || slurm.IsJobID(w) })
		return op.Effect != ops.Read || !jobs || named || len(words) <= 1
	}
	// A mistyped command with flags or a single word is still treated as a command.
	return len(words) <= 1 || slices.ContainsFunc(words, func(w string) bool { return strings.HasPrefix(w, "--") })
}

// question answers a question in its thread, where everybody can read the answer.
func (b *Bot) question(ctx context.Context, a incoming.Ask, c *ops.Call, q string) []store.SlackMessage {
	op, ok := operations.Lookup("ask")
	if !ok {
		return b.reply.Doc(a, help.Unknown("ask", c.Lang), true)
	}
	return b.run(ctx, a, c, op, typed.Call{Op: op.Name, Rest: q, Key: a.Key, Share: true})
}

var (
	textWelcome = lang.Text{EN: "You are welcome.", ZH: "不客气。"}
	textPrompts = lang.Text{EN: "What would you like to know?", ZH: "想了解什么？"}
)

// assistant suggests questions where a conversation starts: in the Messages tab, or for an app
// with an older manifest in the assistant's thread.
func (b *Bot) assistant(ctx context.Context, a incoming.Ask) []store.SlackMessage {
	l := b.people.LangOf(ctx, a)
	p := slack.AssistantThreadsSetSuggestedPromptsParameters{Title: textPrompts.In(l), ChannelID: a.Channel, ThreadTS: a.Thread}
	for _, x := range install.Prompts {
		p.AddPrompt(x.Title.In(l), x.Text.In(l))
	}
	extra, err := json.Marshal(p)
	if err != nil {
		return nil
	}
	return []store.SlackMessage{b.out.Owe(a.Key+"/prompts", "t/"+a.Channel+"/"+a.Thread,
		outbox.Message{Do: outbox.Prompts, Team: a.Team, Channel: a.Channel, Extra: extra})}
}
