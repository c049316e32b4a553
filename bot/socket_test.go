package bot_test

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/bot"
	"github.com/megatron-ops/megatron-ops/bot/install"
	"github.com/megatron-ops/megatron-ops/bot/slacktest"
)

func overSocket(c *bot.Config) { c.AppToken, c.SigningSecret = "xapp-test", "" }

// connected waits for n connections.
func connected(s *stage, n int) {
	s.Wait("the connections", func(st slacktest.State) bool { return st.Sockets >= n })
}

func TestSocketModeServesWhatHTTPServes(t *testing.T) {
	t.Parallel()
	s := play(t, overSocket)
	connected(s, 2)
	d := slacktest.Command("help")
	d.Socket = true
	r := s.Deliver(d)
	require.Equal(t, http.StatusOK, r.Status, r.Error)
	s.said("What you can do now")

	d = slacktest.Delivery{Kind: "events_api", Socket: true, Times: 3, Payload: map[string]any{
		"team_id": "T1", "event": map[string]any{"type": "app_mention", "user": "U1", "channel": "C1", "ts": "1700000000.000100", "text": "<@UBOT> status 99"},
	}}
	require.Equal(t, http.StatusOK, s.Deliver(d).Status)
	s.said("Not found", "job 99")
	settled(t, s.store)
	require.Equal(t, 1, posted(s.State(), "Not found"), "an envelope on two connections is one request")
}

func TestConnectionsAreRenewed(t *testing.T) {
	t.Parallel()
	s := play(t, overSocket)
	for _, reason := range []string{"refresh_requested", "", "too_many_websockets"} {
		connected(s, 2)
		before := s.State().Opened
		s.Disconnect(reason)
		s.Wait("new connections after "+reason, func(st slacktest.State) bool { return st.Opened > before && st.Sockets >= 2 })
	}
	d := slacktest.Command("help")
	d.Socket = true
	r := s.Deliver(d)
	require.Equal(t, http.StatusOK, r.Status, r.Error)
	s.said("What you can do now")
}

func TestConnectionsThatAreHalfOpenAreReplaced(t *testing.T) {
	t.Parallel()
	s := play(t, overSocket, func(c *bot.Config) { c.Silence = 1500 * time.Millisecond })
	connected(s, 2)
	before := s.State().Opened
	s.Silence()
	require.Zero(t, s.State().Sockets, "what Slack has left is two dead connections")
	s.Wait("two new connections", func(st slacktest.State) bool { return st.Opened >= before+2 && st.Sockets >= 2 })
	d := slacktest.Command("help")
	d.Socket = true
	r := s.Deliver(d)
	require.Equal(t, http.StatusOK, r.Status, r.Error)
	s.said("What you can do now")
}

func TestAFormIsAnsweredOverTheSocket(t *testing.T) {
	t.Parallel()
	s := play(t, overSocket)
	connected(s, 2)
	r := s.Deliver(slacktest.Delivery{Kind: "interactive", Socket: true, Payload: map[string]any{
		"type": "view_submission", "team": map[string]any{"id": "T1"}, "user": map[string]any{"id": "U1", "team_id": "T1"},
		"view": map[string]any{"id": "V1", "callback_id": "submit", "state": map[string]any{"values": stateOf(map[string]string{"name": "x", "nodes": "-1"})}},
	}})
	require.Contains(t, r.Body, `"response_action":"errors"`)
	require.Contains(t, r.Body, `"nodes"`)
}

func TestHTTPIsClosedWithoutASigningSecret(t *testing.T) {
	t.Parallel()
	s := play(t, overSocket)
	require.Equal(t, http.StatusNotFound, s.Slash("help").Status)
}

func TestTokensThatCannotServeAreRefused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		good := play(t)
		for name, c := range map[string]struct {
			cfg  bot.Config
			says string
		}{
			"a bot token alone":      {bot.Config{BotToken: "xoxb-1"}, "SLACK_BOT_TOKEN is set, but neither SLACK_SIGNING_SECRET"},
			"an app alone":           {bot.Config{OAuth: &install.OAuth{ClientID: "1.2"}}, "SLACK_CLIENT_ID is set, but neither SLACK_SIGNING_SECRET"},
			"nothing":                {bot.Config{}, "no Slack token"},
			"an app token alone":     {bot.Config{AppToken: "xapp-1"}, "SLACK_BOT_TOKEN is missing"},
			"a wrong bot token":      {bot.Config{BotToken: "token", SigningSecret: "s"}, "xoxb-"},
			"a wrong app token":      {bot.Config{BotToken: "xoxb-1", AppToken: "xoxb-1"}, "xapp-"},
			"an address that is not": {bot.Config{BotToken: "xoxb-1", SigningSecret: "s", APIURL: "nowhere"}, "SLACK_API_URL"},
		} {
			c.cfg.Store, c.cfg.Service = good.store.Slack(), good.service
			_, err := bot.New(c.cfg)
			require.ErrorContains(t, err, c.says, name)
		}
	})
}
