package slacktest_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/slack-go/slack"
	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/bot/slacktest"
)

func TestWhatSlackRefusesIsFound(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 3001)
	text := func(s string) string { return `{"type":"plain_text","text":"` + s + `"}` }
	for name, c := range map[string]struct {
		blocks string
		on     slacktest.Surface
		says   string // empty: accepted
	}{
		"a good section":               {`[{"type":"section","text":` + text("hello") + `}]`, slacktest.InMessage, ""},
		"a folded table":               {`[{"type":"container","title":` + text("x") + `,"is_collapsible":true,"default_collapsed":true,"child_blocks":[{"type":"table","rows":[[{"type":"raw_text","text":"a"}]]}]}]`, slacktest.InMessage, ""},
		"an empty container":           {`[{"type":"container","title":` + text("x") + `,"child_blocks":[]}]`, slacktest.InMessage, "1 to 10"},
		"a container in a container":   {`[{"type":"container","title":` + text("x") + `,"child_blocks":[{"type":"container"}]}]`, slacktest.InMessage, "not for a container"},
		"an unknown block":             {`[{"type":"sektion"}]`, slacktest.InMessage, "unknown type"},
		"a section of nothing":         {`[{"type":"section"}]`, slacktest.InMessage, "needs text or fields"},
		"an empty text":                {`[{"type":"section","text":` + text("") + `}]`, slacktest.InMessage, "1 to 3000"},
		"a long text":                  {`[{"type":"section","text":` + text(long) + `}]`, slacktest.InMessage, "1 to 3000"},
		"a header in mrkdwn":           {`[{"type":"header","text":{"type":"mrkdwn","text":"x"}}]`, slacktest.InMessage, "must be plain_text"},
		"a long header":                {`[{"type":"header","text":` + text(strings.Repeat("x", 151)) + `}]`, slacktest.InMessage, "1 to 150"},
		"two equal action ids":         {`[{"type":"actions","elements":[{"type":"button","action_id":"a","text":` + text("x") + `},{"type":"button","action_id":"a","text":` + text("y") + `}]}]`, slacktest.InMessage, "twice"},
		"no buttons":                   {`[{"type":"actions","elements":[]}]`, slacktest.InMessage, "1 to 25"},
		"a button's long text":         {`[{"type":"actions","elements":[{"type":"button","text":` + text(strings.Repeat("x", 76)) + `}]}]`, slacktest.InMessage, "1 to 75"},
		"a wrong style":                {`[{"type":"actions","elements":[{"type":"button","style":"blue","text":` + text("x") + `}]}]`, slacktest.InMessage, "primary or danger"},
		"fifty-one blocks":             {"[" + strings.TrimSuffix(strings.Repeat(`{"type":"divider"},`, 51), ",") + "]", slacktest.InMessage, "at most 50"},
		"fifty-one blocks in a home":   {"[" + strings.TrimSuffix(strings.Repeat(`{"type":"divider"},`, 51), ",") + "]", slacktest.InHome, ""},
		"a table in a home":            {`[{"type":"table","rows":[[{"type":"raw_text","text":"a"}]]}]`, slacktest.InHome, "not for a home"},
		"two tables":                   {`[{"type":"table","rows":[[{"type":"raw_text","text":"a"}]]},{"type":"table","rows":[[{"type":"raw_text","text":"a"}]]}]`, slacktest.InMessage, "only one table"},
		"an empty cell":                {`[{"type":"table","rows":[[{"type":"raw_text","text":""}]]}]`, slacktest.InMessage, "empty text"},
		"rich text of nothing":         {`[{"type":"rich_text","elements":[]}]`, slacktest.InMessage, "empty"},
		"an empty rich element":        {`[{"type":"rich_text","elements":[{"type":"rich_text_section","elements":[{"type":"text","text":""}]}]}]`, slacktest.InMessage, "empty"},
		"a choice that is not offered": {`[{"type":"actions","elements":[{"type":"static_select","action_id":"a","options":[{"text":` + text("x") + `,"value":"x"}],"initial_option":{"text":` + text("y") + `,"value":"y"}}]}]`, slacktest.InMessage, "not one of the options"},
		"too much in all":              {"[" + strings.TrimSuffix(strings.Repeat(`{"type":"section","text":`+text(strings.Repeat("x", 2900))+`},`, 5), ",") + "]", slacktest.InMessage, "msg_blocks_too_long"},
	} {
		found := slacktest.CheckBlocks([]byte(c.blocks), c.on)
		if c.says == "" {
			require.Empty(t, found, name)
			continue
		}
		require.Contains(t, strings.Join(found, "\n"), c.says, name)
	}
	require.Contains(t, strings.Join(slacktest.CheckView([]byte(`{"type":"modal","title":{"type":"plain_text","text":"a title that is far too long"},"blocks":[]}`)), "\n"), "1 to 24")
	require.Contains(t, strings.Join(slacktest.CheckView([]byte(`{"type":"modal","title":{"type":"plain_text","text":"x"},"blocks":[{"type":"input","label":{"type":"plain_text","text":"x"},"element":{"type":"plain_text_input"}}]}`)), "\n"), "needed with input")
}

func TestTheServerBehavesAsSlackDoes(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(slacktest.New(slacktest.Config{SigningSecret: "s", BotScopes: "chat:write"}))
	t.Cleanup(srv.Close)
	call := func(token, method string, form url.Values) (answer map[string]any) {
		form.Set("token", token)
		res, err := http.PostForm(srv.URL+"/api/"+method, form)
		require.NoError(t, err)
		defer res.Body.Close()
		require.NoError(t, json.NewDecoder(res.Body).Decode(&answer))
		return answer
	}
	require.Equal(t, "not_authed", call("", "auth.test", url.Values{})["error"])
	require.Equal(t, "invalid_auth", call("nonsense", "auth.test", url.Values{})["error"])
	require.Equal(t, "unknown_method", call("xoxb-1", "chat.sing", url.Values{})["error"])
	require.Equal(t, "missing_scope", call("xoxb-1", "users.info", url.Values{"user": {"U1"}})["error"])
	require.Equal(t, "no_text", call("xoxb-1", "chat.postMessage", url.Values{"channel": {"C1"}})["error"])
	require.Equal(t, "invalid_blocks", call("xoxb-1", "chat.postMessage", url.Values{"channel": {"C1"}, "text": {"x"}, "blocks": {`[{"type":"header"}]`}})["error"])
	require.Equal(t, "message_not_found", call("xoxb-1", "chat.update", url.Values{"channel": {"C1"}, "ts": {"1.1"}, "text": {"x"}})["error"])
	require.Equal(t, "invalid_trigger_id", call("xoxb-1", "views.open", url.Values{"trigger_id": {"x"}, "view": {`{"type":"modal","title":{"type":"plain_text","text":"x"},"blocks":[]}`}})["error"])

	api := slack.New("xoxb-1", slack.OptionAPIURL(srv.URL+"/api/"))
	channel, ts, err := api.PostMessage("C1", slack.MsgOptionText("one", false))
	require.NoError(t, err)
	_, _, _, err = api.UpdateMessage(channel, ts, slack.MsgOptionText("two", false))
	require.NoError(t, err)

	res, err := http.Post(srv.URL+"/response/none", "application/json", strings.NewReader(`{"text":"x"}`))
	require.NoError(t, err)
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusNotFound, res.StatusCode)
	require.Equal(t, "used_url", strings.TrimSpace(string(body)))
}

func ExampleHTML() {
	page, err := slacktest.HTML([]byte(`[{"type":"header","text":{"type":"plain_text","text":"4711 <gpt>"}}]`))
	fmt.Println(strings.Contains(page, `<div class="header">4711 &lt;gpt&gt;</div>`), err)
	// Output: true <nil>
}
