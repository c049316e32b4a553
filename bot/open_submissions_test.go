package bot_test

import (
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/bot"
	"github.com/megatron-ops/megatron-ops/bot/slacktest"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// playLater is play with a clock that can be moved forward.
func playLater(t *testing.T) (s *stage, later func(time.Duration)) {
	t.Helper()
	var by atomic.Int64
	now := func() time.Time { return time.Now().Add(time.Duration(by.Load())) }
	s = play(t, func(c *bot.Config) { c.Now, c.Service.Now = now, now })
	return s, func(d time.Duration) { by.Store(int64(d)) }
}

// The controller takes a job but its answer is lost: the person is told once, asks for the same
// again, and has one job.
func TestAnUnknownOutcomeIsFoundOutByTheServer(t *testing.T) {
	t.Parallel()
	s, later := playLater(t)
	s.yard.fallSilent(true, false)
	s.Slash("submit --yes " + spec)
	open := s.said("gpt: not known yet whether it was submitted")
	require.Equal(t, "C1", open.Channel)
	s.Slash("submit --yes " + spec) // an impatient person
	s.said("The message of the first request will show its outcome")
	require.Equal(t, 1, s.yard.count())
	s.yard.fallSilent(false, false)
	later(2 * time.Minute)
	s.bot.SettleOpen(t.Context())
	s.Wait("the outcome in the same message", func(st slacktest.State) bool {
		for _, m := range st.Messages {
			if m.TS == open.TS && m.Edits > 0 && m.Text == "✅ gpt was submitted: job 4711" {
				return true
			}
		}
		return false
	})
	s.said("gpt (4711): waiting")
	require.Equal(t, 1, s.yard.count())
}

// The controller never received the job: once that is certain, the person is offered to submit
// it now, with the same key.
func TestASubmissionThatNeverArrivedIsOfferedAgain(t *testing.T) {
	t.Parallel()
	s, later := playLater(t)
	s.yard.fallSilent(true, true)
	s.Slash("submit --yes " + spec)
	open := s.said("gpt: not known yet whether it was submitted")
	s.yard.fallSilent(false, false)
	s.bot.SettleOpen(t.Context())
	require.Equal(t, 0, posted(s.State(), "gpt was not submitted"), "a job may be under way for a while")
	later(2 * time.Minute)
	s.bot.SettleOpen(t.Context())
	again := s.said("gpt was not submitted", "answers again and has no such job")
	require.Equal(t, open.TS, again.TS)
	s.Deliver(slacktest.Delivery{Kind: "interactive", AgeS: -120, Payload: pressOf(t, again, "Submit it now")})
	s.said("gpt submitted to yard as job 4712")
	s.bot.SettleOpen(t.Context())
	require.Equal(t, 2, s.yard.count(), "the first was lost, the second is the job")
}

// pressOf returns the payload of pressing the control with that label in a message.
func pressOf(t *testing.T, m *slacktest.Message, label string) map[string]any {
	t.Helper()
	action, value := buttonOf(t, m, label)
	return map[string]any{
		"type": "block_actions", "team": map[string]any{"id": "T1"}, "user": map[string]any{"id": "U1", "team_id": "T1"},
		"channel": map[string]any{"id": m.Channel}, "container": map[string]any{"type": "message", "message_ts": m.TS, "channel_id": m.Channel},
		"actions": []any{map[string]any{"action_id": action, "type": "button", "value": value, "block_id": "b"}},
	}
}

// An approved submission that gets no answer, at once or before its time is over, is shown to the operators
// as what nobody knows yet, with how to find out. A refusal is known.
func TestAnApprovedSubmissionWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		silent, hangs bool
		refusal       error
		lang          string
		said          []string
	}{
		"no answer": {silent: true, said: []string{
			"Approved, but it is not known yet whether it ran: submit", "/megatron list --all --user ada --cluster yard", "Submission token",
		}},
		"no answer, in Chinese": {silent: true, lang: "zh", said: []string{
			"已批准，但尚不清楚是否已执行：submit", "/megatron list --all --user ada --cluster yard", "提交令牌",
		}},
		"its time is over": {silent: true, hangs: true, said: []string{
			"Approved, but it is not known yet whether it ran: submit", "no answer within 10 min", "Submission token",
		}},
		"a refusal": {refusal: slurm.ErrRejected, said: []string{"Approved, but it failed: submit", "refused by Slurm"}},
		"a job":     {said: []string{"Approved: submit", "4711"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := approving(t)
				s.yard.fallSilent(c.silent, false)
				s.yard.refusal = c.refusal
				if c.hangs {
					defer s.yard.hold("submit")()
				}
				asked, approve := "Approval needed", "Approve"
				if c.lang == "zh" {
					asked, approve = "需要审批", "批准"
					s.Slash("settings lang zh", as("U1"))
					s.said("您的设置")
				}
				s.Slash("submit --yes " + spec)
				q := s.said(asked)
				s.became(q, `"user_id":"U1"`)
				action, id := buttonOf(t, q, approve)
				s.Press(q, action, id, "U5")
				time.Sleep(15 * time.Minute)
				drawn := s.became(q, c.said...)
				require.Equal(t, c.silent, strings.Contains(drawn, s.yard.last().Token), "the token is what the cluster was given")
				if c.silent {
					require.Equal(t, 1, posted(s.State(), s.yard.last().Name+": not known yet")+posted(s.State(), s.yard.last().Name+"：尚不清楚是否已提交"), "the requester is told once")
				}
			})
		})
	}
}
