package bot_test

import (
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/bot"
	"github.com/megatron-ops/megatron-ops/bot/people"
	"github.com/megatron-ops/megatron-ops/bot/slacktest"
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// A request is decided by another person than its requester, once, and runs as the cluster
// user that it showed and with the rights that its requester still has, before and after a
// restart of the server.
func TestAnApprovalIsWorthWhatItShowed(t *testing.T) {
	links := func(change map[string]string) func(*bot.Config) {
		return func(c *bot.Config) {
			c.Policy.Links = maps.Clone(c.Policy.Links)
			maps.Copy(c.Policy.Links, change)
		}
	}
	viewer := func(id string) func(*bot.Config) {
		return func(c *bot.Config) { c.Policy.Viewers = []string{id} }
	}
	for name, c := range map[string]struct {
		restarted []func(*bot.Config) // nil: the server goes on
		by        string
		said      string
		jobs      int
	}{
		"another operator":                       {by: "U5", said: "Approved: submit", jobs: 1},
		"another operator, after a restart":      {restarted: []func(*bot.Config){}, by: "U5", said: "Approved: submit", jobs: 1},
		"the requester":                          {by: "U1", said: "somebody else than the requester"},
		"no operator":                            {by: "U2", said: "only operators may approve"},
		"the requester's other account":          {restarted: []func(*bot.Config){links(map[string]string{"U6": "ada"})}, by: "U6", said: "somebody else than the requester"},
		"that account, once they are not linked": {restarted: []func(*bot.Config){links(map[string]string{"U1": "", "U6": "ada"})}, by: "U6", said: "somebody else than the requester"},
		"that account, once they are another":    {restarted: []func(*bot.Config){links(map[string]string{"U1": "eve", "U6": "ada"})}, by: "U6", said: "somebody else than the requester"},
		"an operator who may only look by now":   {restarted: []func(*bot.Config){viewer("U5")}, by: "U5", said: "only operators may approve"},
		"the requester may only look by now":     {restarted: []func(*bot.Config){viewer("U1")}, by: "U5", said: "may only read"},
		"the requester is another user by now":   {restarted: []func(*bot.Config){links(map[string]string{"U1": "eve"})}, by: "U5", said: "acts as ada, and its requester is linked to eve now"},
		"the requester is not linked by now":     {restarted: []func(*bot.Config){links(map[string]string{"U1": ""})}, by: "U5", said: "acts as ada, and its requester is linked to no cluster user now"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := approving(t)
				s.Slash("submit --yes " + spec)
				q := s.said("Approval needed", "ada")
				if c.restarted != nil {
					s.stop()
					s.begin(c.restarted...)
					s.Target(slacktest.ServeInMemory(t, s.bot.Handler()))
				}
				action, value := buttonOf(t, q, "Approve")
				s.Press(q, action, value, c.by)
				s.said(c.said)
				require.Equal(t, c.jobs, s.yard.count())
				s.Press(q, action, value, c.by) // twice, from a window that was not drawn again
				settled(t, s.store)
				require.Equal(t, c.jobs, s.yard.count())
			})
		})
	}
}

// A person who asks, links their account anew by a code, and is approved, is told so; what an
// operator reads is what acts.
func TestALinkThatChangesMeanwhileNeedsAnotherApproval(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := approving(t)
		link := func(user string) {
			require.NoError(t, s.store.Slack().Put(t.Context(), "link", "T1/U7", people.Link{User: user, How: "code"}, time.Time{}))
		}
		link("ada")
		s.Slash("submit --yes "+spec, as("U7"))
		q := s.said("Approval needed", "ada")
		link("eve")
		s.PressLabel(q, "Approve", "U5")
		s.became(q, "Approved, but it failed: submit", "acts as ada, and its requester is linked to eve now")
		require.Zero(t, s.yard.count())
		s.Slash("submit --yes "+spec, as("U7"))
		s.PressLabel(s.said("Approval needed", "eve"), "Approve", "U5")
		s.said("gpt (4711)")
		require.Equal(t, 1, s.yard.count())
	})
}

// A yes, or an operator's approval, to cancelling all of one's jobs ends those that the question
// named, and none that was submitted meanwhile.
func TestAYesToAllOfOnesJobsIsToThoseThatWereShown(t *testing.T) {
	for name, c := range map[string]struct {
		words, asked, button, by string
	}{
		"own yes":     {"cancel --mine", "Please confirm", "Yes, do it", "U1"},
		"an approval": {"cancel --mine --yes", "Approval needed", "Approve", "U5"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := approving(t, func(cfg *bot.Config) {
					cfg.Policy.Approve = func(*ops.Call, string, any) (why lang.Text) {
						if c.by != "U1" {
							why = lang.Same("every change")
						}
						return why
					}
				})
				put := func(id slurm.JobID) { s.yard.put(slurm.Job{ID: id, Name: "run", User: "ada", State: slurm.Running}) }
				state := func(id slurm.JobID) slurm.State {
					j, err := s.yard.Job(t.Context(), id)
					require.NoError(t, err)
					return j.State
				}
				put("1")
				put("2_0")
				s.Slash(c.words)
				q := s.said(c.asked, "his ends 2 jobs of ada, 2 of them running")
				put("3")
				s.PressLabel(q, c.button, c.by)
				s.Wait("the end of the first", func(slacktest.State) bool { return state("1") == slurm.Cancelled })
				settled(t, s.store)
				require.Equal(t, slurm.Running, state("3"))
			})
		})
	}
}
