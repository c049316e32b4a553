package bot_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/bot"
	"github.com/megatron-ops/megatron-ops/bot/card"
	"github.com/megatron-ops/megatron-ops/bot/slacktest"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// crowd puts n jobs of ada's on the cluster; every tenth waits and the others run.
func (y *yard) crowd(n int) {
	began := time.Now().Add(-time.Hour)
	for i := range n {
		at := began.Add(time.Duration(i) * time.Millisecond)
		j := slurm.Job{
			ID: slurm.JobID(fmt.Sprint(10_000 + i)), Name: fmt.Sprintf("gpt-%d", i), User: "ada", Partition: "gpu", State: slurm.Running,
			Nodes: []string{"gpu-01", "gpu-02"}, GPUs: 16, ElapsedS: 3600, SubmittedAt: &at,
		}
		if i%10 == 0 {
			j.State, j.Reason, j.Nodes, j.NumNodes = slurm.Pending, "Priority", nil, 2
		}
		y.put(j)
	}
}

func TestAListIsAPageOfRowsWithMoreBehindAButton(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := play(t)
		s.yard.crowd(10_000)
		s.Slash("list")
		msg := s.said("10,000 jobs · 9,000 running · 1,000 waiting", "1 to 10 of 10,000", "gpt-9999", "gpt-9990")
		require.Equal(t, "U1", msg.Only)
		require.NotContains(t, text(msg), "gpt-9989")
		require.Empty(t, s.State().Files, "ten thousand jobs are no file that nobody asked for")
		s.PressLabel(msg, "More ▶", "U1")
		msg = s.said("11 to 20 of 10,000", "gpt-9989")
		require.Len(t, s.State().Messages, 1, "the next page stands in the place of the first")
		s.PressLabel(msg, "◀ Newer", "U1")
		msg = s.said("1 to 10 of 10,000")
		s.PressLabel(msg, "Why does it wait?", "U1") // of the first that waits
		s.said("19990")
		s.Slash("list --page 9999")
		s.said("9,991 to 10,000 of 10,000")
	})
}

// The rows of a list show the jobs as the cluster has just listed them, like its headline, and
// not as the watcher saw them at its last look.
func TestAListsRowsAgreeWithItsHeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := play(t, watched, func(c *bot.Config) {
			c.Watchers = watching(c.Service.Clusters["yard"].(watchedYard), time.Hour)
		})
		submitted(t, s)
		s.said("gpt · waiting · 4711")
		s.yard.put(slurm.Job{ID: "4711", Name: "gpt", User: "ada", State: slurm.Running, Nodes: []string{"n1"}})
		s.Slash("list")
		require.Contains(t, text(s.said("1 job · 1 running")), "*gpt* · 4711 · running")
	})
}

func TestAPrivateAnswerIsSharedByAButton(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := play(t)
		s.yard.put(slurm.Job{ID: "4000", Name: "run", User: "ada", State: slurm.Running})
		s.Slash("status 4000")
		msg := s.said("run · running · 4000")
		require.Equal(t, "U1", msg.Only)
		s.PressLabel(msg, "Share here", "U1")
		shared := s.Wait("it for all", func(st slacktest.State) bool { return posted(st, "run · running · 4000") == 2 }).Messages[1]
		require.Empty(t, shared.Only)
		require.Equal(t, "C1", shared.Channel)

		s.Event(map[string]any{"type": "app_mention", "user": "U1", "channel": "C1", "ts": "1700000000.000200", "thread_ts": "1700000000.000100", "text": "<@UBOT> status 4000"})
		msg = s.Wait("one in the thread", func(st slacktest.State) bool { return posted(st, "run · running · 4000") == 3 }).Messages[2]
		require.Equal(t, "U1", msg.Only)
		s.PressLabel(msg, "Share in thread", "U1")
		shared = s.Wait("it for all in the thread", func(st slacktest.State) bool { return posted(st, "run · running · 4000") == 4 }).Messages[3]
		require.Equal(t, "1700000000.000100", shared.Thread)
		require.Empty(t, shared.Only)

		// Where people of other workspaces read, or nobody else does, there is no share button.
		s.Slash("status 4000", map[string]any{"channel_id": "D1"})
		msg = s.Wait("a direct one", func(st slacktest.State) bool { return posted(st, "run · running · 4000") == 5 }).Messages[4]
		_, offered := slacktest.Find(msg.Blocks, "Share here")
		require.False(t, offered)
	})
}

func TestWithoutWordsOpensWhatFits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := play(t)
		s.Slash("", map[string]any{"user_id": "U7"}) // nobody that the cluster knows
		msg := s.said("What you can do now", "not linked to a cluster user yet")
		buttonOf(t, msg, "Link my account")
		s.Slash("") // nothing runs: the form
		s.Wait("the form", func(st slacktest.State) bool { return len(st.Views) == 1 })
		submitted(t, s)
		require.NoError(t, s.bot.Tell(t.Context(), card.News{Job: slurm.Job{ID: "4711", Cluster: "yard", Name: "gpt", User: "ada", State: slurm.Failed}, Why: "GPU out of memory, rank 3"}))
		s.yard.put(slurm.Job{ID: "4711", Name: "gpt", User: "ada", State: slurm.Failed})
		s.yard.put(slurm.Job{ID: "4712", Name: "moe", User: "ada", State: slurm.Running})
		s.Slash("")
		msg = s.said("Your jobs now", "gpt* · 4711 · failed: GPU out of memory, rank 3", "moe* · 4712 · running")
		s.PressLabel(msg, "Submit a job", "U1")
		s.Wait("the form again", func(st slacktest.State) bool { return len(st.Views) == 2 })
	})
}

func TestHelpIsSixTasksToTry(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := play(t)
		s.Slash("help")
		msg := s.said("What you can do now", "Start a run", "You act as the cluster user `ada`")
		require.Equal(t, "U1", msg.Only)
		tries := 0
		for _, b := range msg.Blocks {
			if a, _ := b.(map[string]any)["accessory"].(map[string]any); a != nil {
				tries++
			}
		}
		require.Equal(t, 6, tries)
		s.Press(msg, "run:try3", "lint", "U1")
		st := s.Wait("the modal for a text", func(st slacktest.State) bool { return len(st.Views) == 1 })
		for id, v := range st.Views {
			s.Interact(map[string]any{"type": "view_submission", "view": map[string]any{
				"id": id, "callback_id": v["callback_id"], "private_metadata": v["private_metadata"],
				"state": map[string]any{"values": map[string]any{"text": map[string]any{"text": map[string]any{"type": "plain_text_input", "value": "#!/bin/bash\n#SBATCH --nodes=2\nsrun python pretrain_gpt.py\n"}}}},
			}})
		}
		s.said("findings")
		s.PressLabel(msg, "All commands", "U1")
		s.said("What you can do now", "expand node-[42,49-51]")
	})
}

func TestAScriptInAMessageIsLintedFromItsMenu(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := play(t)
		s.Interact(map[string]any{
			"type": "message_action", "callback_id": "lint_message", "channel": map[string]any{"id": "C1"},
			"message": map[string]any{"ts": "1.1", "text": "```#!/bin/bash\n#SBATCH --nodes=2\nsrun python pretrain_gpt.py\n```"},
		})
		msg := s.said("findings")
		require.Equal(t, "U1", msg.Only)
	})
}
