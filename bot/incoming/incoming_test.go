package incoming

import (
	"encoding/hex"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/slack-go/slack"
	"github.com/stretchr/testify/require"
)

// An event becomes an ask where it is for us: our own messages, other bots' messages and edits
// are not.
func TestWhichEventsAreForUs(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		event string
		want  Ask
		no    bool
	}{
		"a mention": {
			event: `{"type":"app_mention","user":"U1","channel":"C1","ts":"1.1","thread_ts":"1.0","text":"<@UBOT> status 99","files":[{"name":"a","url_private":"u"}]}`,
			want:  Ask{Kind: AsMessage, User: "U1", Channel: "C1", TS: "1.1", Thread: "1.0", Text: "status 99", Files: []File{{"a", "u"}}},
		},
		"a mention with a name and a colon": {event: `{"type":"app_mention","user":"U1","channel":"C1","text":" <@UBOT|megatron>： help"}`, want: Ask{Kind: AsMessage, User: "U1", Channel: "C1", Text: "help"}},
		"an edited mention":                 {event: `{"type":"app_mention","user":"U1","subtype":"message_changed","channel":"C1"}`, no: true},
		"a mention by nobody":               {event: `{"type":"app_mention","channel":"C1"}`, no: true},
		"a bot's mention":                   {event: `{"type":"app_mention","user":"U1","bot_id":"B1","channel":"C1"}`, no: true},
		"a direct message":                  {event: `{"type":"message","channel_type":"im","user":"U1","channel":"X1","text":"help"}`, want: Ask{Kind: AsMessage, User: "U1", Channel: "X1", Direct: true, Text: "help"}},
		"a direct message with a file":      {event: `{"type":"message","subtype":"file_share","user":"U1","channel":"D1","text":"help"}`, want: Ask{Kind: AsMessage, User: "U1", Channel: "D1", Direct: true, Text: "help"}},
		"an edited direct message":          {event: `{"type":"message","subtype":"message_changed","channel_type":"im","user":"U1","channel":"D1"}`, no: true},
		"a direct message of nobody":        {event: `{"type":"message","channel_type":"im","channel":"D1"}`, no: true},
		"a message in a channel":            {event: `{"type":"message","channel_type":"channel","user":"U1","channel":"C1"}`, no: true},
		"the home tab":                      {event: `{"type":"app_home_opened","user":"U1","channel":"D1","tab":"home"}`, want: Ask{Kind: AsHome, User: "U1", Channel: "D1", Direct: true}},
		"the messages tab":                  {event: `{"type":"app_home_opened","user":"U1","channel":"X1","tab":"messages"}`, want: Ask{Kind: AsAssistant, User: "U1", Channel: "X1", Direct: true}},
		"another tab":                       {event: `{"type":"app_home_opened","user":"U1","channel":"D1","tab":"about"}`, no: true},
		"an assistant thread": {
			event: `{"type":"assistant_thread_started","assistant_thread":{"user_id":"U1","channel_id":"X1","thread_ts":"1.5"}}`,
			want:  Ask{Kind: AsAssistant, User: "U1", Channel: "X1", Thread: "1.5", Direct: true},
		},
		"links":                  {event: `{"type":"link_shared","user":"U1","channel":"C1","message_ts":"1.7","links":[{"url":"https://x/1"},{"url":"https://x/2"}]}`, want: Ask{Kind: AsLinks, User: "U1", Channel: "C1", TS: "1.7", Links: []string{"https://x/1", "https://x/2"}}},
		"no links":               {event: `{"type":"link_shared","user":"U1","channel":"C1"}`, no: true},
		"removed":                {event: `{"type":"app_uninstalled"}`, want: Ask{Kind: AsGone}},
		"its token ended":        {event: `{"type":"tokens_revoked"}`, want: Ask{Kind: AsGone}},
		"its bot's token ended":  {event: `{"type":"tokens_revoked","tokens":{"oauth":["U1"],"bot":["UBOT"]}}`, want: Ask{Kind: AsGone}},
		"a person's token ended": {event: `{"type":"tokens_revoked","tokens":{"oauth":["U1"]}}`, no: true},
		"of another workspace":   {event: `{"type":"app_mention","user":"U1","user_team":"T9","channel":"C1","text":"help"}`, want: Ask{Kind: AsMessage, User: "U1", Channel: "C1", Foreign: true, Text: "help"}},
		"of this workspace":      {event: `{"type":"app_mention","user":"U1","user_team":"T1","channel":"C1","text":"help"}`, want: Ask{Kind: AsMessage, User: "U1", Channel: "C1", Text: "help"}},
		"what we do not hear":    {event: `{"type":"reaction_added","user":"U1"}`, no: true},
	} {
		var e Event
		require.NoError(t, json.Unmarshal([]byte(`{"team_id":"T1","enterprise_id":"E1","event_id":"Ev1","is_ext_shared_channel":true,"event":`+c.event+`}`), &e), name)
		got, ok := DecodeEvent(e)
		require.Equal(t, !c.no, ok, name)
		if c.no {
			continue
		}
		require.NotEmpty(t, got.Key)
		got.Key = ""
		c.want.Team, c.want.Enterprise, c.want.Open = "T1", "E1", true
		require.Equal(t, c.want, got, name)
	}
}

// The app subscribes to what it reads; to links only where it shows them, and not to
// what an earlier app had.
func TestEventsThatAreSubscribedTo(t *testing.T) {
	t.Parallel()
	plain := []string{"app_home_opened", "app_mention", "app_uninstalled", "message.im", "tokens_revoked"}
	require.Equal(t, plain, Events(false))
	require.ElementsMatch(t, append(plain, "link_shared"), Events(true))
}

// The same payload has the same key, and another one another.
func TestAKeyNamesAPayload(t *testing.T) {
	t.Parallel()
	require.Equal(t, KeyOf("a", "b"), KeyOf("a", "b"))
	require.NotEqual(t, KeyOf("a", "b"), KeyOf("ab"))
	require.NotEqual(t, KeyOf("a", "b"), KeyOf("b", "a"))
	c := slack.SlashCommand{TeamID: "T1", UserID: "U1", ChannelID: "C1", Text: "help", TriggerID: "1", ResponseURL: "u"}
	a := DecodeCommand(c)
	require.Equal(t, Ask{Key: a.Key, Kind: AsCommand, Team: "T1", User: "U1", Channel: "C1", Text: "help", Trigger: "1", Response: "u"}, a)
	c.ChannelID, c.TriggerID = "D1", "2"
	require.True(t, DecodeCommand(c).Direct)
	require.NotEqual(t, a.Key, DecodeCommand(c).Key)
}

// Button presses, forms and shortcuts are decoded; what needs no work is skipped.
func TestAnInteractionIsRead(t *testing.T) {
	t.Parallel()
	const who = `"team":{"id":"T1"},"user":{"id":"U1","team_id":"T1"},"trigger_id":"t","response_url":"r",`
	for name, c := range map[string]struct {
		body string
		want Ask
		no   bool
	}{
		"a button": {
			body: `{"type":"block_actions","channel":{"id":"C1"},"container":{"is_ephemeral":true,"message_ts":"1.1","thread_ts":"1.0"},"actions":[{"block_id":"b","action_id":"take","value":"x/1"}]`,
			want: Ask{Kind: AsButton, Channel: "C1", Hidden: true, TS: "1.1", Thread: "1.0", Action: "take", Value: "x/1"},
		},
		"a select":                {body: `{"type":"block_actions","channel":{"id":"C1"},"actions":[{"block_id":"b","action_id":"set","value":"old","selected_option":{"value":"zh"}}]`, want: Ask{Kind: AsButton, Channel: "C1", Action: "set", Value: "zh"}},
		"a channel":               {body: `{"type":"block_actions","container":{"channel_id":"D1"},"actions":[{"block_id":"b","action_id":"share","selected_conversation":"C7"}]`, want: Ask{Kind: AsButton, Channel: "D1", Direct: true, Action: "share", Value: "C7"}},
		"a button without action": {body: `{"type":"block_actions","actions":[]`, no: true},
		"a closed form":           {body: `{"type":"view_closed"`, no: true},
		"a form": {
			body: `{"type":"view_submission","view":{"id":"V1","hash":"h","callback_id":"submit","private_metadata":"m","state":{"values":{"b1":{"name":{"value":"gpt"}},
				"b2":{"gpu":{"selected_option":{"value":"h100"}}},"b3":{"flags":{"selected_options":[{"value":"a"},{"value":"b"}]}},"b4":{"to":{"selected_conversation":"C7"}},"b5":{"none":{"value":null}}}}}`,
			want: Ask{Kind: AsForm, View: "V1", Hash: "h", Callback: "submit", Meta: "m", Fields: map[string]string{"name": "gpt", "gpu": "h100", "flags": "a,b", "to": "C7", "none": ""}},
		},
		"a message's menu": {
			body: `{"type":"message_action","callback_id":"lint_message","channel":{"id":"C1"},"message":{"text":"a script","ts":"1.2","thread_ts":"1.0","files":[{"name":"a.sh","url_private":"u"}]}`,
			want: Ask{Kind: AsShortcut, Channel: "C1", Callback: "lint_message", Text: "a script", TS: "1.2", Thread: "1.0", Files: []File{{"a.sh", "u"}}},
		},
		"the shortcut": {body: `{"type":"shortcut","callback_id":"submit_job"`, want: Ask{Kind: AsShortcut, Callback: "submit_job"}},
	} {
		got, ok, err := DecodeInteraction([]byte(strings.Replace(c.body, "{", "{"+who, 1) + "}"))
		require.NoError(t, err, name)
		require.Equal(t, !c.no, ok, name)
		if c.no {
			continue
		}
		got.Key = ""
		if c.want.Fields == nil && got.Kind == AsButton {
			c.want.Fields = map[string]string{}
		}
		c.want.Team, c.want.User, c.want.Trigger, c.want.Response = "T1", "U1", "t", "r"
		require.Equal(t, c.want, got, name)
	}
	for who, foreign := range map[string]bool{
		`"team":{"id":"T1"},"user":{"id":"U1","team_id":"T9"}`: true, `"team":{"id":"T1"},"user":{"id":"U1"}`: false, `"user":{"id":"U1","team_id":"T9"}`: false,
	} {
		a, _, err := DecodeInteraction([]byte(`{"type":"shortcut",` + who + `}`))
		require.NoError(t, err)
		require.Equal(t, foreign, a.Foreign, who)
	}
	for _, body := range []string{"", "{", `{"view":{"state":{"values":7}}}`} {
		_, ok, err := DecodeInteraction([]byte(body))
		require.Error(t, err, body)
		require.False(t, ok)
	}
}

// Only what Slack has signed, now and with a secret of ours, is believed.
// A form's title tells the language in which it was read. The entry that somebody chooses in it may
// be a name.
func TestAFormsTitleTellsItsLanguage(t *testing.T) {
	t.Parallel()
	a, ok, err := DecodeInteraction([]byte(`{"type":"block_actions","user":{"id":"U1"},"view":{"type":"modal","title":{"type":"plain_text","text":"提交训练作业"}},
		"actions":[{"action_id":"recipe","block_id":"b","type":"static_select","selected_option":{"text":{"type":"plain_text","text":"llama3-8b"},"value":"llama3-8b"}}]}`))
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, "提交训练作业", a.Label)
}

func TestOnlySlackIsBelieved(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	body := []byte("text=help")
	signed := func(secret string, at time.Time) http.Header {
		stamp := strconv.FormatInt(at.Unix(), 10)
		h := http.Header{}
		h.Set("X-Slack-Request-Timestamp", stamp)
		h.Set("X-Slack-Signature", "v0="+hex.EncodeToString(signature(secret, stamp, body)))
		return h
	}
	with := func(name, value string) http.Header {
		h := signed("new", now)
		h.Set(name, value)
		return h
	}
	whole := signed("new", now).Get("X-Slack-Signature")
	for name, c := range map[string]struct {
		h    http.Header
		want error
	}{
		"of our secret":       {signed("new", now), nil},
		"of the one before":   {signed("old", now), nil},
		"of another":          {signed("guess", now), errForged},
		"of an empty one":     {signed("", now), errForged},
		"five minutes old":    {signed("new", now.Add(-window)), nil},
		"older":               {signed("new", now.Add(-window-time.Second)), errStale},
		"five minutes ahead":  {signed("new", now.Add(window)), nil},
		"further ahead":       {signed("new", now.Add(window+time.Second)), errStale},
		"without a signature": {with("X-Slack-Signature", ""), errUnsigned},
		"of another version":  {with("X-Slack-Signature", whole[3:]), errUnsigned},
		"no hexadecimal":      {with("X-Slack-Signature", "v0=xyz"), errUnsigned},
		"too short":           {with("X-Slack-Signature", whole[:20]), errUnsigned},
		"without a time":      {with("X-Slack-Request-Timestamp", ""), errUnsigned},
		"a time that is none": {with("X-Slack-Request-Timestamp", "noon"), errUnsigned},
		"for another time":    {with("X-Slack-Request-Timestamp", strconv.FormatInt(now.Unix()+1, 10)), errForged},
	} {
		require.Equal(t, c.want, Verify(c.h, body, now, "new", "old", ""), name)
	}
	require.Equal(t, errForged, Verify(signed("new", now), []byte("text=cancel"), now, "new"))
}
