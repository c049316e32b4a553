package outbox

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/slack-go/slack"
	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/bot/answer"
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/store"
)

// What Slack refuses is said in another way, and not lost; each way is tried once.
func TestWhatIsRefusedIsSaidAnotherWay(t *testing.T) {
	s := New(Config{Now: func() time.Time { return time.Unix(1000, 0) }})
	refusal := func(code string) error { return slack.SlackErrorResponse{Err: code} }
	chart := json.RawMessage(`[{"type":"data_visualization","title":"Loss","chart":{"type":"line","series":[{"name":"loss","data":[{"label":"1","value":2},{"label":"2","value":1}]}]}}]`)
	plain := json.RawMessage(`[{"type":"header","text":{"type":"plain_text","text":"gpt"}}]`)
	for name, c := range map[string]struct {
		said Message
		err  error
		then func(t *testing.T, o Message)
	}{
		"a channel without the bot is told of to the person": {
			Message{Do: Post, Channel: "C1", Thread: "1.2", Instead: "U1", Text: "done", Blocks: plain},
			refusal("not_in_channel"),
			func(t *testing.T, o Message) {
				require.Equal(t, Message{Do: Post, Channel: "U1", Instead: "U1", Text: o.Text, Blocks: o.Blocks}, o)
				require.Equal(t, "I am not in this channel, so this comes to you alone. To have it there, type /invite @megatron in <#C1>\ndone", o.Text)
				require.Contains(t, string(o.Blocks), `"channel_id":"C1"`)
			},
		},
		"a private answer that a channel refuses becomes a message": {
			Message{Do: Ephemeral, Channel: "C1", User: "U1", Instead: "U1", Text: "好"},
			refusal("is_archived"),
			func(t *testing.T, o Message) {
				require.Equal(t, Post, o.Do)
				require.Equal(t, "频道已归档，因此只发给您本人：<#C1>\n好", o.Text)
			},
		},
		"newer blocks become older ones": {
			Message{Do: Post, Channel: "C1", Text: "gpt", Blocks: chart, Picture: &Message{}},
			refusal("invalid_blocks"),
			func(t *testing.T, o Message) {
				require.NotContains(t, string(o.Blocks), "data_visualization")
				require.NotEmpty(t, o.Blocks)
				require.Nil(t, o.Picture)
			},
		},
		"older blocks become words": {
			Message{Do: Post, Channel: "C1", Text: "gpt", Blocks: plain},
			refusal("msg_blocks_too_long"),
			func(t *testing.T, o Message) { require.Nil(t, o.Blocks); require.Equal(t, "gpt", o.Text) },
		},
		"an answer too late for its address is a direct message": {
			Message{Do: Respond, URL: "https://hooks.slack.com/x", User: "U1", Text: "done"},
			Permanent(errors.New("expired_url")),
			func(t *testing.T, o Message) {
				require.Equal(t, Message{Do: Post, Channel: "U1", User: "U1", Text: "done"}, o)
			},
		},
		"a message that cannot be replaced is followed by one": {
			Message{Do: Finish, Channel: "C1", TS: "1.2", Text: "done"},
			refusal("message_not_found"),
			func(t *testing.T, o Message) { require.Equal(t, Message{Do: Post, Channel: "C1", Text: "done"}, o) },
		},
		"a picture that no message may show is a file": {
			Message{Do: Update, Channel: "C1", Ref: "k", TS: "1.2", Text: "curve", Bytes: []byte("png"), File: &answer.File{Name: "loss.png"}},
			refusal("not_allowed"),
			func(t *testing.T, o Message) {
				require.Equal(t, Message{Do: Upload, Channel: "C1", Bytes: []byte("png"), File: &answer.File{Name: "loss.png"}}, o)
			},
		},
		"a file that is refused is said in words": {
			Message{Do: Upload, Channel: "C1", Thread: "1.2", File: &answer.File{Name: "run.log", Title: "log"}},
			refusal("file_uploads_disabled"),
			func(t *testing.T, o Message) {
				require.Equal(t, Post, o.Do)
				require.Equal(t, "1.2", o.Thread)
				require.Contains(t, o.Text, "The file run.log could not be sent: Slack says file_uploads_disabled.")
			},
		},
	} {
		m := s.Owe("key", "lane", c.said)
		again, ok := s.fallback(m, c.said, c.err)
		require.True(t, ok, name)
		require.Equal(t, "key~ lane~", again.Key+" "+again.Lane, name)
		var o Message
		require.NoError(t, json.Unmarshal([]byte(again.Body), &o), name)
		c.then(t, o)

		m.Key += strings.Repeat(fallbackMark, maxFallbacks)
		_, ok = s.fallback(m, c.said, c.err)
		require.False(t, ok, "%s: three ways are enough", name)
	}
	for name, c := range map[string]struct {
		said Message
		err  error
	}{
		"Slack is asked again":                   {Message{Do: Post, Channel: "C1", Instead: "U1"}, refusal("internal_error")},
		"an edit of which nobody is to be told":  {Message{Do: Update, Channel: "C1", Ref: "card", Text: "done"}, refusal("is_archived")},
		"nobody to tell":                         {Message{Do: Post, Channel: "C1", Text: "done"}, refusal("not_in_channel")},
		"the person's own channel is refused":    {Message{Do: Post, Channel: "U1", Instead: "U1"}, refusal("channel_not_found")},
		"blocks without words":                   {Message{Do: Home, Blocks: plain}, refusal("invalid_blocks")},
		"a button's address and nobody's name":   {Message{Do: Respond, URL: "https://hooks.slack.com/x"}, Permanent(errors.New("expired_url"))},
		"a message that ends and says nothing":   {Message{Do: Finish, Channel: "C1"}, refusal("message_not_found")},
		"a refusal that no other way would lift": {Message{Do: Post, Channel: "C1", Instead: "U1"}, refusal("invalid_auth")},
	} {
		_, ok := s.fallback(store.SlackMessage{Key: "key"}, c.said, c.err)
		require.False(t, ok, name)
	}
}

// A message that its channel lets nobody edit any more is sent anew to the person, under a key by
// which its later edits find it.
func TestAnEditThatIsRefusedIsAMessageToThePerson(t *testing.T) {
	t.Parallel()
	s := New(Config{Now: time.Now})
	said := Message{Do: Update, Channel: "C1", Ref: "card", TS: "1.2", Instead: "U1", Text: "done"}
	again, ok := s.fallback(s.Owe("card/3", "card", said), said, slack.SlackErrorResponse{Err: "is_archived"})
	require.True(t, ok)
	require.Equal(t, "card~ card", again.Key+" "+again.Lane)
	var o Message
	require.NoError(t, json.Unmarshal([]byte(again.Body), &o))
	require.Equal(t, Message{Do: Post, Channel: "U1", Instead: "U1", Text: "This comes to you alone, because this channel is archived: <#C1>\ndone"}, o)
}

// What may arrive later is sent again; what Slack has understood and refused is not.
func TestOnlyARefusalIsFinal(t *testing.T) {
	for _, c := range []struct {
		err   error
		final bool
	}{
		{Permanent(errors.New("gone")), true},
		{errors.New("connection reset"), false},
		{slack.SlackErrorResponse{Err: "channel_not_found"}, true},
		{slack.SlackErrorResponse{Err: "ratelimited"}, false},
		{slack.SlackErrorResponse{Err: "request_timeout"}, false},
		{slack.StatusCodeError{Code: http.StatusBadRequest}, true},
		{slack.StatusCodeError{Code: http.StatusRequestTimeout}, false},
		{slack.StatusCodeError{Code: http.StatusTooManyRequests}, false},
		{slack.StatusCodeError{Code: http.StatusInternalServerError}, false},
		{slack.StatusCodeError{Code: http.StatusMovedPermanently}, false},
		{slack.StatusCodeError{Code: http.StatusUnavailableForLegalReasons}, true},
	} {
		require.Equal(t, c.final, permanent(c.err), "%v", c.err)
	}
}

// A private answer that may have arrived says so the second time; a message that can be sent
// twice without harm does not.
func TestAnAnswerThatMayHaveArrivedSaysSo(t *testing.T) {
	for o, private := range map[*Message]bool{
		{Do: Ephemeral}: true, {Do: Respond}: true, {Do: Respond, Replace: true}: false, {Do: Post}: false, {Do: Update}: false,
	} {
		require.Equal(t, private, o.untraceable(), "%v", *o)
	}
	blocks := json.RawMessage(`[{"type":"header","text":{"type":"plain_text","text":"gpt"}}]`)
	o := Message{Do: Ephemeral, Text: "submitted", Blocks: blocks}.repeated()
	require.Equal(t, "Sent once more, in case it did not arrive the first time. Nothing was done twice.\nsubmitted", o.Text)
	require.True(t, strings.HasPrefix(string(o.Blocks), `[{"type":"context"`), "%s", o.Blocks)
	require.True(t, strings.HasSuffix(string(o.Blocks), string(blocks[1:])), "%s", o.Blocks)

	full := json.RawMessage("[" + strings.TrimSuffix(strings.Repeat(`{"type":"divider"},`, answer.MaxBlocks), ",") + "]")
	require.Equal(t, string(full), string(Message{Do: Ephemeral, Text: "x", Blocks: full}.repeated().Blocks), "there is no room for a block more")
	require.Nil(t, Message{Do: Ephemeral, Text: "x"}.repeated().Blocks)
}

// Slack is given a text as it is escaped already, unfurls nothing and calls nobody.
func TestAMessagesOptions(t *testing.T) {
	opts, err := Message{Text: "a &lt;b&gt; @here"}.message()
	require.NoError(t, err)
	_, values, err := slack.UnsafeApplyMsgOptions("", "C1", "", opts...)
	require.NoError(t, err)
	require.Equal(t, "a &lt;b&gt; @here", values.Get("text"))
	for _, name := range []string{"unfurl_links", "unfurl_media", "link_names"} {
		require.Equal(t, "false", values.Get(name), name)
	}
	require.Equal(t, "none", values.Get("parse"))
}

// The line that says why a message stands elsewhere is its first block, where there is room for one.
func TestWhyAMessageStandsElsewhere(t *testing.T) {
	why := lang.Text{EN: "no place in ", ZH: "无法发到 "}
	blocks := func(n int) json.RawMessage {
		return json.RawMessage("[" + strings.TrimSuffix(strings.Repeat(`{"type":"divider"},`, n), ",") + "]")
	}
	for had, want := range map[int]int{0: 0, 1: 2, answer.MaxBlocks - 1: answer.MaxBlocks, answer.MaxBlocks: answer.MaxBlocks} {
		o := Message{Text: "done", Blocks: blocks(had)}.withReason(why, "C1")
		require.Equal(t, "no place in <#C1>\ndone", o.Text)
		var list []json.RawMessage
		require.NoError(t, json.Unmarshal(o.Blocks, &list))
		require.Len(t, list, want)
	}
	require.Empty(t, Message{Text: "done"}.withReason(why, "C1").Blocks)
}
