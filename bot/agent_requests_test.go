package bot_test

import (
	"fmt"
	"slices"
	"strings"
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

var agent = ops.Caller{Surface: ops.MCPHTTP, ID: "ada-agent", User: "ada", Agent: "claude-code"}

func TestAnAgentsWriteIsDecidedByAButton(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := play(t, func(c *bot.Config) {
			c.Policy.Operators, c.Policy.ApprovalChannel = []string{"U5", "U6"}, "C-ops"
		})
		require.True(t, s.bot.Decides())
		in := &jobcontrol.CancelIn{Job: "4711"}
		may := func() (bool, error) {
			by, err := s.service.Approved(t.Context(), ops.Approval{Who: agent, Op: "cancel", Why: "more than 512 GPU hours", Shown: []view.Section{{Text: "cancel job 4711", Code: "cancel job 4711 of ada? <!channel>\n#SBATCH --nodes=4"}}}, in)
			return by != "", err
		}
		ok, err := may()
		require.NoError(t, err)
		require.False(t, ok)
		q := s.said("An agent asks for your approval", "claude-code", "more than 512 GPU hours", "#SBATCH --nodes=4")
		require.Equal(t, "C-ops", q.Channel)
		require.NotContains(t, text(q), "<!channel>")

		action, value := buttonOf(t, q, "Approve")
		s.Press(q, action, value, "U1")
		s.said("only operators may approve this")
		s.Press(q, action, value, "U5")
		no, _ := buttonOf(t, q, "Decline")
		s.said("the agent's next call does it", "Decided by")
		s.Press(q, action, value, "U5") // as when a server is killed after it has stored the decision, and another one takes over
		s.Decline(q, no, value, "U6", "late")
		s.said("T1/U5 has decided already")
		require.Equal(t, 1, posted(s.State(), "has decided already"), "only who came second hears it")
		told := s.said("Your agent's cancel was decided")
		require.Equal(t, "DU1", told.Channel, "its person hears")
		require.Contains(t, told.Text, "cancel job 4711: Approved: the agent's next call does it", "also what it was about")
		ok, err = may()
		require.NoError(t, err)
		require.True(t, ok)
		ok, err = may()
		require.NoError(t, err)
		require.False(t, ok, "an approval serves one call")
		st := s.Wait("the second request", func(st slacktest.State) bool { return posted(st, "An agent asks for your approval") == 1 })
		require.Equal(t, 1, posted(st, "the agent's next call does it")-posted(st, "Your agent's cancel"), "the first one was rewritten in its place")
	})
}

// Each operator, and the agent's person, reads about it in the language that they chose.
func TestAnAgentsRequestIsInTheReadersLanguage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := play(t, func(c *bot.Config) { c.Policy.Operators = []string{"U5", "U6"} })
		for _, who := range []string{"U1", "U5"} {
			s.Slash("settings lang zh", map[string]any{"user_id": who})
		}
		s.Wait("both settings", func(st slacktest.State) bool { return posted(st, "您的设置") == 2 })
		_, err := s.service.Approved(t.Context(), ops.Approval{Who: agent, Op: "cancel", Why: "more than 512 GPU hours"}, &jobcontrol.CancelIn{Job: "4711"})
		require.NoError(t, err)
		q := s.said("An agent asks for your approval")
		s.said("智能体申请审批")
		action, value := buttonOf(t, q, "Approve")
		s.Press(q, action, value, "U6")
		s.said("the agent's next call does it")
		s.said("已批准：智能体再次调用即执行")
		require.Equal(t, "DU1", s.said("您的智能体申请的 cancel 已有结果").Channel)
	})
}

// A request that comes while Slack does not tell who is in the operators' group is asked later.
func TestAnAgentsRequestWaitsForTheGroupsMembers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := play(t, func(c *bot.Config) { c.Policy.Operators = []string{"S1"} })
		_, err := s.service.Approved(t.Context(), ops.Approval{Who: agent, Op: "cancel", Why: "a limit"}, &jobcontrol.CancelIn{Job: "4711"})
		require.NoError(t, err)
		time.Sleep(10 * time.Second)
		require.Zero(t, posted(s.State(), "An agent asks"))
		s.Members(map[string][]string{"S1": {"U5"}})
		time.Sleep(6 * time.Minute) // longer than the members of a group are kept
		require.Equal(t, "DU5", s.said("An agent asks for your approval").Channel)
	})
}

// A request that is longer than a message can be decided too.
func TestALongRequestOfAnAgentHasItsButtons(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := play(t, func(c *bot.Config) { c.Policy.Operators, c.Policy.ApprovalChannel = []string{"U5"}, "C-ops" })
		var long []view.Section
		for i := range answer.MaxBlocks + 10 {
			long = append(long, view.Section{Heading: fmt.Sprintf("Part %d", i), Code: "cancel"})
		}
		_, err := s.service.Approved(t.Context(), ops.Approval{Who: agent, Op: "cancel", Why: "more than 512 GPU hours", Shown: long}, &jobcontrol.CancelIn{Job: "4711"})
		require.NoError(t, err)
		q := s.said("An agent asks for your approval", "Part 0")
		require.Len(t, q.Blocks, answer.MaxBlocks)
		for i := range long { // all of it is shown: in the message, and below it
			part := fmt.Sprintf("Part %d", i)
			s.Wait(part, func(st slacktest.State) bool {
				return slices.ContainsFunc(st.Messages, func(m *slacktest.Message) bool {
					return (m.TS == q.TS || m.Thread == q.TS) && slices.Contains(strings.Fields(text(m)), fmt.Sprint(i)) && strings.Contains(text(m), part)
				})
			})
		}
		buttonOf(t, q, "Approve")
		buttonOf(t, q, "Decline")
	})
}

func TestNoticesAreThreadRepliesThatCallOnlyForAlarms(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := play(t)
		c := submitted(t, s)
		alarm := ops.Notice{
			Key: "loss/4711", Cluster: "yard", Job: "4711", Owner: "ada", Alarm: true,
			Title: lang.Text{EN: "The loss has risen for 200 iterations", ZH: "损失已连续 200 次迭代上升"},
		}
		for range 2 { // told twice, shown once
			require.NoError(t, s.service.Notify(t.Context(), alarm))
			s.said("The loss has risen")
		}
		require.Equal(t, c.TS, s.said("The loss has risen").Thread)
		require.Equal(t, 1, callsFor(s.State(), "U1"))

		own := ops.Notice{Key: "switch/4711", Cluster: "yard", Job: "4711", Owner: "ada", By: "T1/U1", Alarm: true, Title: lang.Text{EN: "The kill switch was thrown", ZH: "已触发停止开关"}}
		require.NoError(t, s.service.Notify(t.Context(), own))
		require.Equal(t, c.TS, s.said("The kill switch was thrown").Thread)
		require.Equal(t, 1, callsFor(s.State(), "U1"), "nobody is called for what they did")

		other := ops.Notice{Key: "switch/9", Cluster: "yard", Job: "9", Owner: "ada", Title: lang.Text{EN: "Somebody threw the switch of job 9", ZH: "有人触发了作业 9 的停止开关"}}
		require.NoError(t, s.service.Notify(t.Context(), other))
		require.Equal(t, "DU1", s.said("the switch of job 9").Channel, "a job without a card: its owner, directly")
		require.Equal(t, 1, posted(s.State(), "The loss has risen"))
		for _, m := range s.State().Messages {
			require.False(t, m.Broadcast)
		}
		require.NoError(t, s.bot.Note(t.Context(), slurm.Job{ID: "4711", Cluster: "yard", State: slurm.Failed}, "again", lang.Text{EN: "submitted again as 4712", ZH: "已再次提交为 4712"}))
		s.Wait("the note in the thread", func(st slacktest.State) bool {
			return slices.ContainsFunc(st.Messages, func(m *slacktest.Message) bool {
				return m.Thread == c.TS && strings.Contains(text(m), "submitted again as 4712")
			})
		})
	})
}
