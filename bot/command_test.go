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
	"github.com/megatron-ops/megatron-ops/bot/card"
	"github.com/megatron-ops/megatron-ops/bot/slacktest"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// next sends a command and returns the message that answers it.
func (s *stage) next(command string, more ...map[string]any) (m *slacktest.Message) {
	s.t.Helper()
	before := len(s.State().Messages)
	s.Slash(command, more...)
	s.Wait("an answer to "+command, func(st slacktest.State) bool {
		if len(st.Messages) > before {
			m = st.Messages[before]
		}
		return m != nil
	})
	return m
}

// Text after /megatron is a command, a text to look at, a job or a question.
func TestACommandIsTakenForWhatItIs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := play(t)
		s.yard.put(jobNamed("4000", "old"))
		s.yard.put(jobNamed("4001", "llama-8b"))
		for _, row := range []struct{ text, says, never string }{
			{"```#!/bin/bash\n#SBATCH --nodes=2\nsrun python pretrain_gpt.py\n```", "findings", ""},
			{"```[rank3]: Traceback (most recent call last):\n[rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.```", "OutOfMemoryError", ""},
			{spec, "2 nodes, 16 ranks", "Please confirm"},
			{"status 4000 --output json", "\"state\": \"RUNNING\"", "Details"},
			{"logs my last job --tail 5", "4001", "4000"},
			{"status 4000", "Details", "\"job_id\""},
			{"which reservations do I have?", "", "not linked"},
			{"frobnicate", "I do not know the command", ""},
			{"web", "page", ""},
			{"help submit", "--nodes", "What you can do now"},
			{"settings", "Language", ""},
		} {
			said := text(s.next(row.text))
			require.Contains(t, said, row.says, row.text)
			if row.never != "" {
				require.NotContains(t, said, row.never, row.text)
			}
		}
		require.Zero(t, s.yard.count())
		require.Contains(t, text(s.next("logs my last job --tail 5", as("U5"))), "no job in the last seven days")
	})
}

// A sentence that asks for what a command does is the same after /megatron as in a mention,
// also where it starts with the command's word; a mistyped command keeps its error.
func TestASentenceAfterTheSlashIsTheSameAsInAMention(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := play(t)
		s.yard.put(jobNamed("4000", "old"))
		s.yard.put(jobNamed("4001", "moe"))
		for i, sentence := range []string{"list my jobs", "show me all my jobs", "list all my running jobs"} {
			ts := fmt.Sprintf("1700000300.%06d", i)
			s.Event(map[string]any{"type": "app_mention", "user": "U1", "channel": "C1", "ts": ts, "text": "<@UBOT> " + sentence})
			mentioned := text(s.answered(ts, sentence))
			require.Contains(t, mentioned, "2 jobs", sentence)
			slash := text(s.next(sentence))
			require.Contains(t, slash, "2 jobs", sentence)
			require.Contains(t, slash, "4001", sentence)
		}
		require.Contains(t, text(s.next("list my jobs --nodez")), "--nodez")
		require.Contains(t, text(s.next("list my partitions")), "does not work as typed")
	})
}

// Help is shown to the person alone after a slash command, and to everybody where the bot is
// written to.
func TestWhatOneCanDoIsToldWhereItIsAsked(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := play(t)
		for i, words := range []string{"help", "what can you do?"} {
			require.Equal(t, "U1", s.next(words).Only, words)
			require.Empty(t, s.next(words+" --share").Only, words)
			ts := fmt.Sprintf("1700000200.%06d", i)
			s.Event(map[string]any{"type": "app_mention", "user": "U1", "channel": "C1", "ts": ts, "text": "<@UBOT> " + words})
			require.Empty(t, s.answered(ts, words).Only, words)
		}
	})
}

// The pages of a list keep the cluster of the first page.
func TestAPageOfAListKeepsItsCluster(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := play(t)
		s.yard.crowd(10)
		whole := s.next("list")
		for _, label := range []string{"More ▶", "◀ Newer"} {
			_, has := slacktest.Find(whole.Blocks, label)
			require.False(t, has, "ten jobs are one page")
		}
		s.yard.crowd(11)
		other := &yard{jobs: map[slurm.JobID]slurm.Job{}}
		s.service.Clusters["other"] = other
		_, value := buttonOf(t, s.next("list --cluster yard"), "More ▶")
		require.Contains(t, value, "--page 2 --cluster yard")
		_, value = buttonOf(t, s.next("list"), "More ▶")
		require.NotContains(t, value, "--cluster")
		second := s.next("list --page 2")
		require.Contains(t, text(second), "11 to 11 of 11")
		_, last := slacktest.Find(second.Blocks, "More ▶")
		require.False(t, last)
		buttonOf(t, second, "◀ Newer")
	})
}

// A list that is out of date says since when.
func TestAListThatIsOldSaysSo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := play(t)
		seen := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
		j := jobNamed("4000", "old")
		s.yard.put(j)
		require.NotContains(t, text(s.next("list")), "does not answer")
		j.SeenAt = &seen
		s.yard.put(j)
		require.Contains(t, text(s.next("list")), "2026-11-20 12:00 UTC")
	})
}

// A request on a site with an approval channel goes to that channel.
func TestARequestGoesToTheOperatorsChannel(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := approving(t, func(c *bot.Config) { c.Policy.ApprovalChannel = "C8" })
		require.Contains(t, text(s.next("submit --yes --nodes 0 "+spec)), "nodes", "what could never go through is asked of nobody")
		require.Zero(t, posted(s.State(), "Approval needed"))
		s.Slash("submit --yes " + spec)
		require.Equal(t, "C8", s.said("Approval needed", "more than 8 GPUs").Channel)
		s.said("I have asked the operators")
	})
}

// A button of a version that is gone says that it does nothing.
func TestAButtonThatNobodyKnowsSaysSo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := play(t)
		q := s.next("help")
		s.Press(q, "of_an_older_version:1", "x", "U1")
		require.Equal(t, "U1", s.said("This button is of another version").Only)
	})
}

// A question whose held call is gone has expired, whatever button is pressed.
func TestAQuestionThatIsOverSaysSo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := play(t)
		q := s.next("submit " + spec)
		action, _ := buttonOf(t, q, "Yes, do it")
		s.Press(q, action, "no-such-question", "U1")
		s.said("This question has expired")
		require.Zero(t, s.yard.count())
	})
}

// A job that is submitted again without a node keeps its earlier excluded nodes.
func TestARetryKeepsTheNodesThatWereExcluded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := play(t)
		s.Slash("submit --yes " + strings.Replace(spec, "nodes: 2", "nodes: 2\nexclude: n7", 1))
		waitingCard(s, "4711")
		require.NoError(t, s.bot.Tell(t.Context(), card.News{
			Job:   slurm.Job{ID: "4711", Cluster: "yard", Name: "gpt", User: "ada", State: slurm.NodeFail},
			Class: "node_failure", Exclude: []string{"n2"},
		}))
		s.PressLabel(waitingCard(s, "4711", "node failed"), "Retry without the bad node", "U1")
		s.said("Please confirm", "#SBATCH --exclude=n7,n2")
	})
}

// A list of nodes that is longer than a button's value is read from the card.
func TestARetryLeavesOutEveryBadNode(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := play(t)
		submitted(t, s)
		var bad []string
		for i := range 300 {
			bad = append(bad, fmt.Sprintf("node-%c%d-rack%d", 'a'+i%26, i, i%7))
		}
		require.NoError(t, s.bot.Tell(t.Context(), card.News{
			Job:   slurm.Job{ID: "4711", Cluster: "yard", Name: "gpt", User: "ada", State: slurm.NodeFail},
			Class: "node_failure", Exclude: bad,
		}))
		s.PressLabel(waitingCard(s, "4711", "node failed"), "Retry without the bad node", "U1")
		s.said("Please confirm")
		s.Wait("the script", func(st slacktest.State) bool {
			return slices.ContainsFunc(st.Files, func(f *slacktest.Stored) bool { return f.Done && strings.Contains(string(f.Data), bad[299]) })
		})
	})
}

// A declined request of an agent says by whom it was declined and why.
func TestAnAgentsRequestIsDeclinedWithAReason(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := play(t, func(c *bot.Config) { c.Policy.Operators, c.Policy.ApprovalChannel = []string{"U5"}, "C8" })
		_, err := s.service.Approved(t.Context(), ops.Approval{Who: agent, Op: "cancel", Why: "more than 512 GPU hours"}, map[string]any{"job": "4711"})
		require.NoError(t, err)
		q := s.said("An agent asks for your approval")
		action, value := buttonOf(t, q, "Decline")
		s.Decline(q, action, value, "U5", "wait for the maintenance")
		s.said("Declined: nothing was done", "wait for the maintenance", "Decided by")
		s.said("Your agent's cancel was decided", "Declined: nothing was done")
	})
}
