package bot_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/bot"
	"github.com/megatron-ops/megatron-ops/bot/answer"
	"github.com/megatron-ops/megatron-ops/bot/slacktest"
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/jobcontrol"
	"github.com/megatron-ops/megatron-ops/internal/view"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// briefly makes requests expire after a minute.
func briefly(c *bot.Config) { c.Service.ApprovalLife = time.Minute }

// became waits until a message says all the words, and returns what is drawn of it then.
func (s *stage) became(q *slacktest.Message, words ...string) (drawn string) {
	s.t.Helper()
	s.Wait("the message to say "+strings.Join(words, ", "), func(st slacktest.State) bool {
		for _, m := range st.Messages {
			if m.Channel != q.Channel || m.TS != q.TS {
				continue
			}
			drawn = text(m) + slacktest.JSON(m.Blocks)
			for _, w := range words {
				if !strings.Contains(drawn, w) {
					return false
				}
			}
			return true
		}
		return false
	})
	return drawn
}

// A request that nobody decides in time loses its buttons and says who asked for what, whether
// the server runs when it expires or is started later. Its requester is told, and asks again by
// a button.
func TestAnExpiredRequestLosesItsButtons(t *testing.T) {
	for name, off := range map[string]bool{"while it runs": false, "while it is off": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := approving(t, briefly)
				s.Slash("submit --yes " + spec)
				q := s.said("Approval needed", "more than 8 GPUs")
				s.became(q, `"user_id":"U1"`, `"type":"button"`)
				if off {
					s.stop()
					time.Sleep(3 * time.Hour)
					s.begin()
					s.Target(slacktest.ServeInMemory(t, s.bot.Handler()))
				}
				drawn := s.became(q, "Expired: submit", "Expired at", "Nobody decided in time")
				require.NotContains(t, drawn, `"type":"button"`)
				for _, part := range []string{`"gpt": 2 nodes`, "more than 8 GPUs", `"user_id":"U1"`, "asks again"} {
					require.Contains(t, drawn, part, "who asked for what, and how to ask again")
				}
				require.Less(t, strings.Index(drawn, "Nobody decided in time"), strings.Index(drawn, "SHA-256"), "what became of it stands first")
				told := s.said("Nobody decided your request in time", `"gpt": 2 nodes`)
				require.NotContains(t, text(told), "submit: submit", "the operation is named once")
				require.Equal(t, "DU1", told.Channel)
				waiting, err := s.store.Slack().Keys(t.Context(), "waiting", time.Now())
				require.NoError(t, err)
				require.Empty(t, waiting, "it is closed once")

				action, value := buttonOf(t, q, "Approve") // in a window that was not drawn again
				s.Press(q, action, value, "U5")
				s.said("This request was decided already, or it has expired")
				require.Contains(t, s.at(q), "Expired: submit")
				require.Zero(t, s.yard.count())

				s.PressLabel(told, "Ask again", "U1")
				again := s.said("Approval needed")
				require.Equal(t, q.Channel, again.Channel, "where it was asked first, and not where the button was")
				s.PressLabel(again, "Approve", "U5")
				require.Equal(t, "C1", s.said("gpt (4711): waiting").Channel)
			})
		})
	}
}

// A request that somebody decided in time does not expire while the decision is carried out, such as by
// another server.
func TestARequestThatIsBeingDecidedDoesNotExpire(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := approving(t, briefly)
		s.Slash("submit --yes " + spec)
		q := s.said("Approval needed")
		_, id := buttonOf(t, q, "Approve")
		_, err := s.store.Slack().Claim(t.Context(), "claim", id, "another server's press", time.Now().Add(time.Hour))
		require.NoError(t, err)
		time.Sleep(2 * time.Minute)
		require.NotContains(t, s.at(q), "Expired")
		require.Zero(t, posted(s.State(), "Nobody decided"))
	})
}

// A request that was decided in time stays as it was decided.
func TestADecidedRequestDoesNotExpire(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := approving(t, briefly)
		s.Slash("submit --yes " + spec)
		q := s.said("Approval needed")
		s.PressLabel(q, "Approve", "U5")
		s.became(q, "Approved: submit")
		time.Sleep(2 * time.Minute)
		require.Contains(t, s.at(q), "Approved: submit")
		require.Zero(t, posted(s.State(), "Nobody decided"))
	})
}

// A request that was declined stays declined, however late somebody presses a button in a window
// that was not drawn again.
func TestADeclinedRequestIsNotApprovedLater(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := approving(t)
		s.Slash("submit --yes " + spec)
		q := s.said("Approval needed")
		approve, id := buttonOf(t, q, "Approve")
		decline, _ := buttonOf(t, q, "Decline")
		s.Decline(q, decline, id, "U5", "wait")
		s.became(q, "Declined: submit")
		s.stop() // three hours of a server's polls take seconds
		time.Sleep(3 * time.Hour)
		s.begin()
		s.Target(slacktest.ServeInMemory(t, s.bot.Handler()))
		s.Press(q, approve, id, "U6")
		s.said("This request was decided already, or it has expired")
		require.Zero(t, s.yard.count())
	})
}

// "Ask again" agrees to nothing: where no operator is needed any more, the person confirms what
// would be done now.
func TestAskAgainDoesNothingUnasked(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var lifted atomic.Bool
		s := approving(t, briefly, func(c *bot.Config) {
			c.Policy.Approve = func(*ops.Call, string, any) (why lang.Text) {
				if !lifted.Load() {
					why = lang.Same("a limit")
				}
				return why
			}
		})
		s.Slash("submit " + spec)
		s.said("Approval needed")
		told := s.said("Nobody decided your request in time")
		lifted.Store(true)
		s.PressLabel(told, "Ask again", "U6")
		s.said("Only the person who asked can answer this")
		s.PressLabel(told, "Ask again", "U1")
		s.said("Please confirm")
		require.Zero(t, s.yard.count())
	})
}

// A request that version 0.2.0 posted is decided once, and closed by its decision, too.
func TestARequestOfAnEarlierVersionIsClosed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := approving(t)
		s.Slash("submit --yes " + spec)
		q := s.said("Approval needed")
		s.became(q, `"user_id":"U1"`)
		_, id := buttonOf(t, q, "Approve")
		var waits struct {
			Request ops.Approval
			Cards   []struct {
				Key string
				Doc json.RawMessage
			}
		}
		docs := s.store.Slack()
		ok, err := docs.Get(t.Context(), "waiting", id, time.Now(), &waits)
		require.NoError(t, err)
		require.True(t, ok)
		held := map[string]any{}
		require.NoError(t, json.Unmarshal(waits.Request.Own, &held))
		held["approve"], held["digest"], held["asked"], held["message"] = true, waits.Request.Digest, waits.Cards[0].Doc, waits.Cards[0].Key
		key, _, _ := strings.Cut(id, ".")
		require.NoError(t, errors.Join(docs.Delete(t.Context(), "waiting", id), docs.Delete(t.Context(), "approval", key)))
		require.NoError(t, docs.Put(t.Context(), "held", "OLD", held, time.Now().Add(time.Hour)))
		s.Press(q, answer.ActYes, "OLD", "U1")
		s.said("somebody else than the requester")
		s.Press(q, answer.ActYes, "OLD", "U5")
		require.NotContains(t, s.became(q, "Approved: submit", `"user_id":"U5"`), `"type":"button"`)
		s.Press(q, answer.ActYes, "OLD", "U6")
		expires, err := docs.Expiries(t.Context(), "held", time.Now())
		require.NoError(t, err)
		require.False(t, expires["OLD"].IsZero(), "it named no end, and is not kept forever")
		settled(t, s.store)
		require.Equal(t, 1, s.yard.count())
	})
}

// A request is asked in the channel where it was made if nobody is in the group that should decide,
// and of the operators if nobody else reads there.
func TestARequestToAGroupOfNobodyIsAsked(t *testing.T) {
	t.Parallel()
	operators := []string{"DU5", "DU6"} // both are asked, in any order
	synctest.Test(t, func(t *testing.T) {
		s := approving(t, func(c *bot.Config) { c.Policy.ApprovalChannel = "S404" })
		s.Slash("submit --yes " + spec)
		require.Equal(t, "C1", s.said("Approval needed").Channel)
		s.Slash("submit --yes " + spec)
		s.said("You have asked for this already")
	})
	synctest.Test(t, func(t *testing.T) {
		s := approving(t, func(c *bot.Config) { c.Policy.ApprovalChannel = "S404" })
		s.write("U1", "submit --yes "+spec)
		require.Contains(t, operators, s.said("Approval needed").Channel, "nobody else reads a direct message")
	})
	synctest.Test(t, func(t *testing.T) {
		s := approving(t, func(c *bot.Config) { c.Policy.ApprovalChannel = "S1" })
		s.Members(map[string][]string{"S1": {"U1"}})
		s.write("U1", "submit --yes "+spec)
		require.Contains(t, operators, s.said("Approval needed").Channel, "nobody decides about their own request")
	})
}

// Nobody's requests bury the operators.
func TestAPersonsWaitingRequestsAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := approving(t, func(c *bot.Config) { c.Policy.PerMinute = 1000 })
		for n := range ops.MostWaiting {
			s.Slash(fmt.Sprintf("submit --yes --nice %d %s", n, spec))
		}
		s.Wait("the requests", func(st slacktest.State) bool { return posted(st, "Approval needed") == ops.MostWaiting })
		s.Slash("submit --yes --nice 100 " + spec)
		s.said("32 of your requests wait for an operator already; nobody was asked")
	})
}

// Where the channel refuses a request, it goes to an operator of the channel's workspace.
func TestARequestGoesToAnOperatorOfItsWorkspace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := approving(t, func(c *bot.Config) { c.Policy.Operators = []string{"T9/U5", "U6"} })
		s.Fault(slacktest.Fault{Method: "chat.postMessage", Error: "not_in_channel", Times: 1})
		s.Slash("submit --yes " + spec)
		require.Equal(t, "DU6", s.said("Approval needed").Channel)
	})
}

// An agent's request loses its buttons when it expires and when somebody decides it elsewhere.
func TestAnAgentsRequestThatIsOverLosesItsButtons(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := approving(t, briefly, func(c *bot.Config) { c.Policy.ApprovalChannel = "C8" })
		ask := func(job string) *slacktest.Message {
			_, err := s.service.Approved(t.Context(), ops.Approval{Who: agent, Op: "cancel", Why: "a limit", Shown: []view.Section{{Text: "cancel " + job}}}, &jobcontrol.CancelIn{Job: slurm.JobID(job)})
			require.NoError(t, err)
			return s.said("An agent asks for your approval", "cancel "+job)
		}
		q := ask("4711")
		drawn := s.became(q, "Expired: nobody decided in time", "Expired at", "cancel 4711", "asks again by the same call")
		require.NotContains(t, drawn, `"type":"button"`)
		require.Equal(t, "DU1", s.said("Your agent's cancel was decided", "Expired").Channel)

		q = ask("4712")
		waiting, err := s.service.Approvals(t.Context())
		require.NoError(t, err)
		require.Len(t, waiting, 1)
		_, err = s.service.Decide(t.Context(), waiting[0].ID, ops.Caller{Surface: "web", ID: "grace", User: "grace", Operator: true}, "grace", true, "")
		require.NoError(t, err)
		require.NotContains(t, s.became(q, "Decided elsewhere", "cancel 4712"), `"type":"button"`)
	})
}

// A question that has expired loses its buttons at the first press.
func TestAnExpiredQuestionLosesItsButtons(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := play(t)
		q := s.next("submit " + spec)
		s.stop()
		time.Sleep(2 * time.Hour)
		s.begin()
		s.Target(slacktest.ServeInMemory(t, s.bot.Handler()))
		s.PressLabel(q, "Yes, do it", "U1")
		drawn := ""
		s.Wait("the question to be replaced", func(st slacktest.State) bool {
			for _, m := range st.Messages {
				if m.TS == q.TS {
					drawn = text(m) + slacktest.JSON(m.Blocks)
				}
			}
			return strings.Contains(drawn, "This question has expired")
		})
		require.NotContains(t, drawn, `"type":"button"`)
		require.Zero(t, s.yard.count())
	})
}

// The requester and each place read what became of a request in their own language.
func TestADecisionIsReadInEachReadersLanguage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := approving(t)
		s.Slash("settings lang zh", map[string]any{"user_id": "U1"})
		s.said("您的设置")
		s.Slash("submit --yes " + spec)
		q := s.said("需要审批")
		action, value := buttonOf(t, q, "拒绝")
		s.Decline(q, action, value, "U5", "wait")
		require.Contains(t, s.became(q, "已拒绝：submit"), "审批人")
		require.Equal(t, "DU1", s.said("管理员已拒绝您的申请").Channel)
	})
}

// A request reaches somebody who can decide it: from a direct message, and from a channel that
// the bot is not in, it goes to the operators themselves.
func TestARequestReachesAnOperator(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := approving(t)
		s.Event(map[string]any{
			"type": "message", "channel_type": "im", "user": "U1", "channel": "DU1", "ts": "1700000000.000100", "text": "submit --yes " + spec,
		})
		q := s.said("Approval needed")
		require.Contains(t, []string{"DU5", "DU6"}, q.Channel)
		s.Wait("both operators to have it, and nobody else", func(st slacktest.State) bool { return posted(st, "Approval needed") == 2 })
		s.PressLabel(q, "Approve", "U5")
		s.Wait("the decision in both places", func(st slacktest.State) bool { return posted(st, "Approved: submit") == 2 })
		require.Equal(t, 1, s.yard.count())

		s.Fault(slacktest.Fault{Method: "chat.postMessage", Error: "not_in_channel", Times: 1})
		s.Slash("submit --yes " + strings.Replace(spec, "name: gpt", "name: other", 1))
		q = s.said("Approval needed", `"other"`)
		require.Equal(t, "DU5", q.Channel)
		require.Contains(t, text(q), "I am not in this channel")
	})
}

// Whoever asks for the same thing again while their request waits is told so, and the operators
// are asked once: two approvals would start two jobs.
func TestTheSameRequestIsMadeOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := approving(t)
		s.Slash("submit --yes " + spec)
		q := s.said("Approval needed")
		s.Slash("submit --yes " + spec)
		s.said("You have asked for this already", `"gpt": 2 nodes`, "The request ends")
		s.Slash("submit --yes " + strings.Replace(spec, "nodes: 2", "nodes: 4", 1))
		s.said("Approval needed", `"gpt": 4 nodes`)
		require.Equal(t, 2, posted(s.State(), "Approval needed"))
		s.PressLabel(q, "Approve", "U5")
		s.became(q, "Approved: submit")
		s.Slash("submit --yes " + spec) // after the decision it is another request
		s.Wait("another request", func(st slacktest.State) bool { return posted(st, "Approval needed") == 2 })
	})
}

// Two equal requests at the same moment, such as a command that was sent twice, are one.
func TestTheSameRequestAtTheSameMomentIsMadeOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := approving(t)
		const requests = 5
		for i := range requests {
			same := fmt.Sprintf("submit --yes --account a%d %s", i, spec)
			for range 2 {
				s.Slash(same)
			}
		}
		s.Wait("an answer to each", func(st slacktest.State) bool {
			return posted(st, "I have asked the operators")+posted(st, "You have asked for this already") == 2*requests
		})
		settled(t, s.store)
		require.Equal(t, requests, posted(s.State(), "Approval needed"))
	})
}

// Slack may fail to tell some members of a group: no operator loses a request by that.
func TestARequestStaysWithEachMemberOfAGroup(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := approving(t, askingIn("S1"))
		s.Members(map[string][]string{"S1": {"U5", "U6"}})
		s.Slash("submit --yes " + spec)
		s.Wait("both to have it", func(st slacktest.State) bool { return posted(st, "Approval needed") == 2 })
		s.stop()
		s.Members(map[string][]string{"S1": {"U5"}})
		s.begin(askingIn("S1"))
		s.Target(slacktest.ServeInMemory(t, s.bot.Handler()))
		time.Sleep(time.Minute)
		settled(t, s.store)
		require.Equal(t, 2, posted(s.State(), "Approval needed"))
	})
}
