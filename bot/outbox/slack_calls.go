package outbox

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"github.com/megatron-ops/megatron-ops/internal/store"
)

// metadataType marks our messages. The metadata's payload holds the outbox key, by which a
// message is found where its send had no answer.
const metadataType = "megatron_ops_message"

func (s *Sender) call(ctx context.Context, key string, o Message) (store.SlackRef, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	if o.Do == Respond {
		return store.SlackRef{}, s.respond(ctx, o)
	}
	api, err := s.cfg.Client(ctx, o.Team)
	if err != nil {
		return store.SlackRef{}, err
	}
	if o.Bytes != nil && (o.Do == Post || o.Do == Update) {
		return s.show(ctx, api, key, o)
	}
	switch o.Do {
	case Post:
		opts, err := o.message()
		if err != nil {
			return store.SlackRef{}, err
		}
		channel, ts, err := api.PostMessageContext(ctx, o.Channel, append(opts, signed(key))...)
		return store.SlackRef{Channel: channel, TS: ts}, err
	case Update:
		opts, err := o.message()
		if err != nil {
			return store.SlackRef{}, err
		}
		_, _, _, err = api.UpdateMessageContext(ctx, o.Channel, o.TS, opts...)
		return store.SlackRef{}, err
	case Finish:
		return s.finish(ctx, api, key, o)
	case Ephemeral:
		opts, err := o.message()
		if err != nil {
			return store.SlackRef{}, err
		}
		_, err = api.PostEphemeralContext(ctx, o.Channel, o.User, opts...)
		return store.SlackRef{}, err
	case Upload:
		return s.upload(ctx, api, o)
	case Home:
		bs, err := rawBlocks(o.Blocks)
		if err != nil {
			return store.SlackRef{}, err
		}
		v := slack.HomeTabViewRequest{Type: slack.VTHomeTab, Blocks: slack.Blocks{BlockSet: bs}}
		_, err = api.PublishViewContext(ctx, slack.PublishViewContextRequest{UserID: o.User, View: v})
		return store.SlackRef{}, err
	case Unfurl:
		var u map[string]slack.Attachment
		if err := json.Unmarshal(o.Extra, &u); err != nil {
			return store.SlackRef{}, permanentError{err}
		}
		_, _, err := api.PostMessageContext(ctx, o.Channel, slack.MsgOptionUnfurl(o.TS, u))
		return store.SlackRef{}, err
	case Prompts:
		var p slack.AssistantThreadsSetSuggestedPromptsParameters
		if err := json.Unmarshal(o.Extra, &p); err != nil {
			return store.SlackRef{}, permanentError{err}
		}
		return store.SlackRef{}, api.SetAssistantThreadsSuggestedPromptsContext(ctx, p)
	}
	return store.SlackRef{}, permanentError{fmt.Errorf("no way to %q", o.Do)}
}

// signed marks a message with its outbox key.
func signed(key string) slack.MsgOption {
	return slack.MsgOptionMetadata(slack.SlackMetadata{EventType: metadataType, EventPayload: map[string]any{"key": key}})
}

// message returns the options that all our messages have: links are not unfurled, and names are
// not turned into mentions.
func (o Message) message() ([]slack.MsgOption, error) {
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
	if o.Thread != "" && o.Do != Update && o.Do != Finish {
		opts = append(opts, slack.MsgOptionTS(o.Thread))
	}
	return opts, nil
}

// respond posts to a response_url, after checking that it is Slack's.
func (s *Sender) respond(ctx context.Context, o Message) error {
	to, err := s.cfg.ResponseURL(o.URL)
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
	body, err := json.Marshal(msg)
	if err != nil {
		return permanentError{err}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to, bytes.NewReader(body))
	if err != nil {
		return permanentError{err}
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := s.cfg.HTTP.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	said, err := io.ReadAll(io.LimitReader(res.Body, 4<<10))
	if err != nil {
		return err
	}
	return answered(res, said)
}

// errorCode is the shape of Slack's error codes.
var errorCode = regexp.MustCompile(`^[a-z][a-z_]{2,60}$`)

// answered turns the answer of a response_url into an error. Slack refuses either by a status
// with the error code as the body, or by JSON with status 200.
func answered(res *http.Response, said []byte) error {
	var in slack.SlackResponse
	code := strings.TrimSpace(string(said))
	if json.Unmarshal(said, &in) == nil && !in.Ok && in.Error != "" {
		code = in.Error
	}
	switch {
	case res.StatusCode >= 300 && res.StatusCode < 400:
		return permanentError{errors.New("the response_url leads elsewhere")}
	case res.StatusCode == http.StatusTooManyRequests:
		wait, err := strconv.Atoi(res.Header.Get("Retry-After"))
		if err != nil {
			wait = 1
		}
		return &slack.RateLimitedError{RetryAfter: time.Duration(wait) * time.Second}
	case res.StatusCode < 300 && !errorCode.MatchString(code):
		return nil
	case res.StatusCode < 500 && errorCode.MatchString(code):
		return slack.SlackErrorResponse{Err: code}
	}
	return slack.StatusCodeError{Code: res.StatusCode, Status: res.Status}
}

// upload sends a file by Slack's three upload calls. A picture is sent from Bytes, any other
// file from its content.
func (s *Sender) upload(ctx context.Context, api *slack.Client, o Message) (store.SlackRef, error) {
	channel, err := openedChannel(ctx, api, o.Channel)
	if err != nil {
		return store.SlackRef{}, err
	}
	data := o.Bytes
	if data == nil {
		data = []byte(o.File.Content)
	}
	if len(data) == 0 {
		return store.SlackRef{}, nil // Slack refuses empty files
	}
	_, err = api.UploadFileContext(ctx, slack.UploadFileParameters{
		Reader: bytes.NewReader(data), FileSize: len(data), Filename: o.File.Name, Title: o.File.Title,
		AltTxt: o.File.Title, Channel: channel, ThreadTimestamp: o.Thread,
	})
	return store.SlackRef{}, err
}

// openedChannel returns the id of a channel, or of the direct message with a user.
func openedChannel(ctx context.Context, api *slack.Client, id string) (string, error) {
	if !strings.HasPrefix(id, "U") && !strings.HasPrefix(id, "W") {
		return id, nil
	}
	c, _, _, err := api.OpenConversationContext(ctx, &slack.OpenConversationParameters{Users: []string{id}})
	if err != nil {
		return "", err
	}
	return c.ID, nil
}

// lookUp searches Slack for a message whose send had no answer. Where Slack refuses the search
// for good, for example because a scope is missing, the message counts as not found. A returned
// error is one that may pass.
func (s *Sender) lookUp(ctx context.Context, m store.SlackMessage, o Message) (ref store.SlackRef, ok bool, err error) {
	defer func() {
		if err != nil {
			s.cfg.Log.Warn("slack: could not look for a message", "key", m.Key, "err", err)
		}
		if permanent(err) {
			err = nil
		}
	}()
	api, err := s.cfg.Client(ctx, o.Team)
	if err != nil {
		return store.SlackRef{}, false, err
	}
	channel, err := openedChannel(ctx, api, o.Channel)
	if err != nil {
		return store.SlackRef{}, false, err
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
		return store.SlackRef{}, false, err
	}
	for _, msg := range found {
		// Slack shares an uploaded file by a message of its own, which has no metadata.
		if msg.Metadata.EventType == metadataType && msg.Metadata.EventPayload["key"] == m.Key || o.sharedBy(msg) || isStream(msg, m.Key) {
			return store.SlackRef{Channel: channel, TS: msg.Timestamp}, true, nil
		}
	}
	return store.SlackRef{}, false, nil
}

func (o Message) sharedBy(msg slack.Message) bool {
	return o.Do == Upload && slices.ContainsFunc(msg.Files, func(f slack.File) bool {
		return f.Name == o.File.Name && f.Title == o.File.Title
	})
}
