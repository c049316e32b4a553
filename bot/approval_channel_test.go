package bot_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/bot"
	"github.com/megatron-ops/megatron-ops/bot/slacktest"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/jobcontrol"
	"github.com/megatron-ops/megatron-ops/internal/view"
)

func askingIn(channel string) func(*bot.Config) {
	return func(c *bot.Config) { c.Policy.ApprovalChannel = channel }
}

// askedInC8 plays until a person's and an agent's request wait in the approval channel C8.
func askedInC8(t *testing.T) *stage {
	t.Helper()
	s := approving(t, askingIn("C8"))
	_, err := s.service.Approved(t.Context(), ops.Approval{Who: agent, Op: "cancel", Why: "a limit", Shown: []view.Section{{Text: "cancel 4711"}}}, &jobcontrol.CancelIn{Job: "4711"})
	require.NoError(t, err)
	s.Slash("submit --yes " + spec)
	return s
}

// A request that waits while the approval channel is changed is asked in the new channel, can be
// decided there, and loses its buttons in the old one.
func TestARequestFollowsTheApprovalChannel(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := askedInC8(t)
		old := map[string]*slacktest.Message{"Approval needed": nil, "An agent asks": nil}
		for what := range old {
			old[what] = s.said(what)
			require.Equal(t, "C8", old[what].Channel)
		}
		for range 2 { // the second start changes nothing
			s.stop()
			s.begin(askingIn("C9"))
			s.Target(slacktest.ServeInMemory(t, s.bot.Handler()))
			for _, q := range old {
				require.NotContains(t, s.became(q, "Asked elsewhere"), `"type":"button"`)
			}
		}
		for what, done := range map[string]string{"Approval needed": "Approved: submit", "An agent asks": "the agent's next call does it"} {
			q := s.said(what)
			require.Equal(t, "C9", q.Channel)
			require.Equal(t, 1, posted(s.State(), what))
			s.became(q, `"type":"button"`)
			s.PressLabel(q, "Approve", "U5")
			require.NotContains(t, s.became(q, done), `"type":"button"`)
			require.Contains(t, s.at(old[what]), "Asked elsewhere")
		}
		require.Equal(t, 1, s.yard.count())
	})
}

// A request that was moved away by mistake comes back, with its buttons, and can be decided.
func TestARequestComesBackToTheApprovalChannel(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := askedInC8(t)
		wanted := map[string]string{"Approval needed": "Approved: submit", "An agent asks": "the agent's next call does it"}
		for what := range wanted {
			s.said(what)
		}
		for _, channel := range []string{"C9", "C8", "C9"} {
			s.stop()
			s.begin(askingIn(channel))
			s.Target(slacktest.ServeInMemory(t, s.bot.Handler()))
			for what := range wanted {
				s.Wait(what+" in "+channel+" alone", func(st slacktest.State) bool {
					var open []string
					for _, m := range st.Messages {
						if strings.Contains(text(m), what) && strings.Contains(slacktest.JSON(m.Blocks), `"type":"button"`) {
							open = append(open, m.Channel)
						}
					}
					return len(open) == 1 && open[0] == channel
				})
			}
		}
		for what, done := range wanted {
			q := s.said(what)
			s.PressLabel(q, "Approve", "U5")
			require.NotContains(t, s.became(q, done), `"type":"button"`)
		}
		require.Equal(t, 1, s.yard.count())
	})
}

// A request that was made in a thread of a channel is asked again from there; whoever made it in a
// direct message is told directly, and not in its thread.
func TestARequestInAThreadIsAskedAgainThere(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := approving(t, briefly)
		s.Event(map[string]any{"type": "app_mention", "user": "U1", "channel": "C1", "ts": "1700000001.000100", "text": "<@UBOT> submit --yes " + spec})
		told := s.said("Nobody decided your request in time")
		require.Equal(t, []string{"C1", "1700000001.000100", ""}, []string{told.Channel, told.Thread, told.Only})
		require.Equal(t, 1, callsFor(s.State(), "U1"))
		s.PressLabel(told, "Ask again", "U5")
		s.said("Only the person who asked")
		s.PressLabel(told, "Ask again", "U1")
		require.Equal(t, "C1", s.said("Approval needed").Channel)
		other := strings.Replace(spec, "name: gpt", "name: other", 1)
		s.Event(map[string]any{"type": "message", "channel_type": "im", "user": "U1", "channel": "DU1", "ts": "1700000002.000100", "text": "submit --yes " + other})
		told = s.said("Nobody decided your request in time: submit", `"other"`)
		require.Equal(t, "DU1", told.Channel)
		require.Empty(t, told.Thread)
	})
}
