package outbox

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"github.com/megatron-ops/megatron-ops/bot/answer"
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/store"
)

// botName is how the manifest names the bot.
const botName = "@megatron"

// These texts tell a person why a message reached them directly instead of in its channel.
var (
	textInvite = lang.Text{
		EN: "I am not in this channel, so this comes to you alone. To have it there, type /invite " + botName + " in ",
		ZH: "我不在该频道，因此只发给您本人。如需发到频道，请在其中输入 /invite " + botName + "：",
	}
	textArchived   = lang.Text{EN: "This comes to you alone, because this channel is archived: ", ZH: "频道已归档，因此只发给您本人："}
	textRestricted = lang.Text{EN: "This comes to you alone, because I may not post in ", ZH: "我没有在该频道发言的权限，因此只发给您本人："}
	textFileStays  = lang.Text{
		EN: "The file %s could not be sent: Slack says %s. Other messages are not affected.",
		ZH: "文件 %s 无法发送：Slack 返回 %s。其他消息不受影响。",
	}
)

// placeRefusals maps the error codes by which Slack refuses a message for its channel to what
// the person is told.
var placeRefusals = map[string]lang.Text{
	"not_in_channel": textInvite, "channel_not_found": textInvite, "user_not_in_channel": textInvite,
	"is_archived": textArchived, "restricted_action": textRestricted,
}

// movedKept is how long it is known why a message went to a person, for its edits.
const movedKept = 60 * 24 * time.Hour

// docMoved is the kind of the documents that say, by a message's key, by which error code its
// channel refused it.
const docMoved = "moved"

// noteMoved stores why a message goes to a person instead.
func (s *Sender) noteMoved(ctx context.Context, key string, err error) {
	code, ok := placeRefused(err)
	if !ok {
		return
	}
	key = strings.TrimRight(key, fallbackMark)
	if err := s.cfg.Store.Put(ctx, docMoved, key, code, s.cfg.Now().Add(movedKept)); err != nil {
		s.cfg.Log.Warn("slack: moved message", "key", key, "err", err)
	}
}

// whyMoved returns the reason that noteMoved stored.
func (s *Sender) whyMoved(ctx context.Context, key string) lang.Text {
	var code string
	if ok, err := s.cfg.Store.Get(ctx, docMoved, key, s.cfg.Now(), &code); err == nil && ok {
		return placeRefusals[code]
	}
	return textInvite
}

// placeRefused returns the error code by which the channel refused a message; ok is false where
// err has another cause.
func placeRefused(err error) (code string, ok bool) {
	for code := range placeRefusals {
		if strings.Contains(err.Error(), code) {
			return code, true
		}
	}
	return "", false
}

func blocksRefused(err error) bool {
	return slices.ContainsFunc([]string{"invalid_blocks", "msg_blocks_too_long", "invalid_attachments"}, func(code string) bool {
		return strings.Contains(err.Error(), code)
	})
}

// Plain reports whether a workspace refused newer kinds of block lately, so that it is sent
// older kinds only.
func (s *Sender) Plain(team string) bool {
	until, ok := s.plain.Load(team)
	return ok && s.cfg.Now().Before(until.(time.Time))
}

// fallback returns another form of a message that Slack refused for good. A picture that no
// message may show becomes a file. An answer that cannot replace its streamed message becomes a
// message of its own. Refused blocks become older kinds of block, and then plain text. A
// message that the channel or the response_url does not take becomes a direct message. A
// refused file becomes a sentence that names it, and a card that somebody deleted a new one. ok is false where no form is left.
func (s *Sender) fallback(m store.SlackMessage, o Message, err error) (store.SlackMessage, bool) {
	if !permanent(err) || strings.HasSuffix(m.Key, strings.Repeat(fallbackMark, maxFallbacks)) {
		return store.SlackMessage{}, false
	}
	code, elsewhere := placeRefused(err)
	next := o
	// anew sends the message that o edits anew; later edits and the thread follow it.
	anew := func() store.SlackMessage {
		next.Do, next.Ref, next.TS = Post, "", ""
		m := s.Owe(o.Ref+fallbackMark, m.Lane, next)
		m.Collapse = m.Key // of two edits that were under way the later counts
		return m
	}
	switch {
	case o.Bytes != nil && o.Do != Upload:
		next.Do, next.Ref, next.TS, next.Text = Upload, "", "", ""
	case o.Do == Finish && o.Text != "":
		next.Do, next.TS = Post, ""
	case blocksRefused(err):
		next.Picture = nil // settle queues the picture by itself
		plain, changed := answer.Plainer(o.Blocks)
		switch {
		case changed:
			next.Blocks = plain
		case o.Blocks != nil && o.Text != "":
			next.Blocks = nil
		default:
			return store.SlackMessage{}, false
		}
	case o.Do == Respond && o.User != "":
		// A response_url ends after thirty minutes or five uses.
		next.Do, next.URL, next.Channel, next.Thread = Post, "", o.User, ""
	case elsewhere && o.Do == Update:
		// The message cannot be edited any more where it is.
		if o.Ref == "" || o.Instead == "" {
			return store.SlackMessage{}, false
		}
		next = next.withReason(placeRefusals[code], o.Channel)
		next.Channel = o.Instead
		return anew(), true
	case o.Do == Update && o.Anew && o.Ref != "" && strings.Contains(err.Error(), "message_not_found"):
		return anew(), true
	case elsewhere && o.Instead != "" && o.Channel != o.Instead:
		if o.Do == Post || o.Do == Ephemeral {
			next = next.withReason(placeRefusals[code], o.Channel)
		}
		next.Channel, next.Thread, next.ThreadOf = o.Instead, "", ""
		if o.Do == Ephemeral {
			next.Do = Post
		}
	case o.Do == Upload:
		l := lang.Of(o.File.Title)
		next = Message{
			Do: Post, Team: o.Team, Channel: o.Channel, Thread: o.Thread, ThreadOf: o.ThreadOf, Instead: o.Instead,
			Text: answer.Escape(fmt.Sprintf(textFileStays.In(l), o.File.Name, err)),
		}
	default:
		return store.SlackMessage{}, false
	}
	return s.Owe(m.Key+fallbackMark, m.Lane+fallbackMark, next), true
}

// withReason returns o below a line that says why it could not be posted in channel.
func (o Message) withReason(why lang.Text, channel string) Message {
	said := why.In(lang.Of(o.Text + string(o.Blocks)))
	o.Text = answer.Escape(said) + "<#" + channel + ">\n" + o.Text
	return o.startingWith(slack.NewRichTextBlock("", slack.NewRichTextSection(
		slack.NewRichTextSectionTextElement(said, nil), slack.NewRichTextSectionChannelElement(channel, nil),
	)))
}
