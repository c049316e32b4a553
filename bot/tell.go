package bot

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"github.com/megatron-ops/megatron-ops/internal/store"
)

// metadataType marks our messages; its payload holds the outbox key, by which a
// message is found again when its send had no answer.
const metadataType = "megatron_ops_message"

// tell makes one call to Slack.
func (b *Bot) tell(ctx context.Context, key string, o out) (store.SlackRef, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	if o.Do == doRespond {
		return store.SlackRef{}, b.respond(ctx, o)
	}
	api, err := b.client(ctx, o.Team)
	if err != nil {
		return store.SlackRef{}, err
	}
	switch o.Do {
	case doPost:
		opts, err := o.message()
		if err != nil {
			return store.SlackRef{}, err
		}
		channel, ts, err := api.PostMessageContext(ctx, o.Channel, append(opts, signed(key))...)
		return store.SlackRef{Channel: channel, TS: ts}, err
	case doUpdate:
		opts, err := o.message()
		if err != nil {
			return store.SlackRef{}, err
		}
		_, _, _, err = api.UpdateMessageContext(ctx, o.Channel, o.TS, opts...)
		return store.SlackRef{}, err
	case doFinish:
		return b.finish(ctx, api, key, o)
	case doEphemeral:
		opts, err := o.message()
		if err != nil {
			return store.SlackRef{}, err
		}
		_, err = api.PostEphemeralContext(ctx, o.Channel, o.User, opts...)
		return store.SlackRef{}, err
	case doUpload:
		return b.upload(ctx, api, o)
	case doHome:
		bs, err := rawBlocks(o.Blocks)
		if err != nil {
			return store.SlackRef{}, err
		}
		v := slack.HomeTabViewRequest{Type: slack.VTHomeTab, Blocks: slack.Blocks{BlockSet: bs}}
		_, err = api.PublishViewContext(ctx, slack.PublishViewContextRequest{UserID: o.User, View: v})
		return store.SlackRef{}, err
	case doUnfurl:
		var u map[string]slack.Attachment
		if err := json.Unmarshal(o.Extra, &u); err != nil {
			return store.SlackRef{}, permanentError{err}
		}
		_, _, err := api.PostMessageContext(ctx, o.Channel, slack.MsgOptionUnfurl(o.TS, u))
		return store.SlackRef{}, err
	case doPrompts:
		var p slack.AssistantThreadsSetSuggestedPromptsParameters
		if err := json.Unmarshal(o.Extra, &p); err != nil {
			return store.SlackRef{}, permanentError{err}
		}
		return store.SlackRef{}, api.SetAssistantThreadsSuggestedPromptsContext(ctx, p)
	}
	return store.SlackRef{}, permanentError{fmt.Errorf("no way to %q", o.Do)}
}

// signed marks a message with its key.
func signed(key string) slack.MsgOption {
	return slack.MsgOptionMetadata(slack.SlackMetadata{EventType: metadataType, EventPayload: map[string]any{"key": key}})
}

// message are the options that every message of ours has: nothing is unfurled,
// nothing is parsed for names.
func (o out) message() ([]slack.MsgOption, error) {
	opts := []slack.MsgOption{
		slack.MsgOptionText(o.Text, false),
		slack.MsgOptionDisableLinkUnfurl(), slack.MsgOptionDisableMediaUnfurl(),
		slack.MsgOptionParse(false), slack.MsgOptionLinkNames(false),
	}
	if o.Blocks != nil {
		bs, err := rawBlocks(o.Blocks)
		if err != nil {
			return nil, err
		}
		opts = append(opts, slack.MsgOptionBlocks(bs...))
	}
	if o.Thread != "" && o.Do != doUpdate && o.Do != doFinish {
		opts = append(opts, slack.MsgOptionTS(o.Thread))
	}
	return opts, nil
}

// respond posts through a response_url, and only to Slack.
func (b *Bot) respond(ctx context.Context, o out) error {
	to, err := b.responseURL(o.URL)
	if err != nil {
		return permanentError{err}
	}
	msg := &slack.WebhookMessage{
		Text: o.Text, ResponseType: slack.ResponseTypeEphemeral, ReplaceOriginal: o.Replace,
		ThreadTimestamp: o.Thread, Parse: "none", UnfurlLinks: new(bool), UnfurlMedia: new(bool),
	}
	if o.Share {
		msg.ResponseType = slack.ResponseTypeInChannel
	}
	if o.Blocks != nil {
		bs, err := rawBlocks(o.Blocks)
		if err != nil {
			return err
		}
		msg.Blocks = &slack.Blocks{BlockSet: bs}
	}
	err = slack.PostWebhookCustomHTTPContext(ctx, to, b.plain, msg)
	if e, ok := errors.AsType[slack.StatusCodeError](err); ok && e.Code >= 300 && e.Code < 400 {
		return permanentError{errors.New("the response_url leads elsewhere")}
	}
	return err
}

// upload sends a file with Slack's three calls. A picture goes as bytes.
func (b *Bot) upload(ctx context.Context, api *slack.Client, o out) (store.SlackRef, error) {
	channel := o.Channel
	if strings.HasPrefix(channel, "U") || strings.HasPrefix(channel, "W") {
		c, _, _, err := api.OpenConversationContext(ctx, &slack.OpenConversationParameters{Users: []string{channel}})
		if err != nil {
			return store.SlackRef{}, err
		}
		channel = c.ID
	}
	data := o.Bytes
	if data == nil {
		data = []byte(o.File.Content)
	}
	if len(data) == 0 {
		return store.SlackRef{}, nil // Slack takes no empty file
	}
	_, err := api.UploadFileContext(ctx, slack.UploadFileParameters{
		Reader: bytes.NewReader(data), FileSize: len(data), Filename: o.File.Name, Title: o.File.Title,
		AltTxt: o.File.Title, Channel: channel, ThreadTimestamp: o.Thread,
	})
	return store.SlackRef{}, err
}

// lookUp searches Slack for a message whose send had no answer.
func (b *Bot) lookUp(ctx context.Context, m store.SlackMessage, o out) (store.SlackRef, bool) {
	api, err := b.client(ctx, o.Team)
	if err != nil {
		return store.SlackRef{}, false
	}
	channel := o.Channel
	if strings.HasPrefix(channel, "U") || strings.HasPrefix(channel, "W") {
		c, _, _, err := api.OpenConversationContext(ctx, &slack.OpenConversationParameters{Users: []string{channel}})
		if err != nil {
			return store.SlackRef{}, false
		}
		channel = c.ID
	}
	// Slack's clock may be a little behind ours.
	oldest := strconv.FormatInt(m.Tried.Add(-2*time.Minute).Unix(), 10)
	var found []slack.Message
	if o.Thread != "" {
		found, _, _, err = api.GetConversationRepliesContext(ctx, &slack.GetConversationRepliesParameters{
			ChannelID: channel, Timestamp: o.Thread, Oldest: oldest, IncludeAllMetadata: true, Limit: 200,
		})
	} else {
		var h *slack.GetConversationHistoryResponse
		h, err = api.GetConversationHistoryContext(ctx, &slack.GetConversationHistoryParameters{
			ChannelID: channel, Oldest: oldest, IncludeAllMetadata: true, Limit: 200,
		})
		if h != nil {
			found = h.Messages
		}
	}
	if err != nil {
		b.log.Warn("slack: could not look for a message", "key", m.Key, "err", err)
		return store.SlackRef{}, false
	}
	for _, msg := range found {
		// A file is shared by a message of Slack's own, without metadata.
		if msg.Metadata.EventType == metadataType && msg.Metadata.EventPayload["key"] == m.Key || o.sharedBy(msg) || begunAs(msg, m.Key) {
			return store.SlackRef{Channel: channel, TS: msg.Timestamp}, true
		}
	}
	return store.SlackRef{}, false
}

// sharedBy reports whether a message shares the file that o uploads.
func (o out) sharedBy(msg slack.Message) bool {
	return o.Do == doUpload && o.File != nil && slices.ContainsFunc(msg.Files, func(f slack.File) bool {
		return f.Name == o.File.Name && f.Title == o.File.Title
	})
}
