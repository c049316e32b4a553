package bot_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/bot/card"
	"github.com/megatron-ops/megatron-ops/bot/slacktest"
	"github.com/megatron-ops/megatron-ops/internal/view"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// inThread writes to the bot in a message's thread, and returns the answer to that.
func (s *stage) inThread(root *slacktest.Message, text, ts string) (answers []*slacktest.Message) {
	s.t.Helper()
	before := len(s.State().Messages)
	s.Event(map[string]any{"type": "app_mention", "user": "U1", "channel": root.Channel, "ts": ts, "thread_ts": root.TS, "text": "<@UBOT> " + text})
	s.Wait("an answer to "+text, func(st slacktest.State) bool {
		answers = nil
		for _, m := range st.Messages[before:] {
			if m.Thread == root.TS && m.Via != "" {
				answers = append(answers, m)
			}
		}
		return len(answers) > 0
	})
	return answers
}

func TestInACardsThreadEverythingMeansThatJob(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := play(t)
		s.yard.put(jobNamed("5000", "another"))
		c := submitted(t, s)
		s.Wait("the script in the thread", func(st slacktest.State) bool { return len(st.Files) == 1 && st.Files[0].Done })
		for i, row := range []struct{ text, says string }{
			{"status", "4711"},
			{"how is it doing?", "4711"},
			{"还要多久？", "4711"},
			{"cancel it", "Please confirm"},
			{"status 5000", "5000"},
		} {
			got := s.inThread(c, row.text, "1700000001.00010"+string(rune('0'+i)))
			require.Contains(t, text(got[0]), row.says, row.text)
		}
		require.NoError(t, s.bot.Tell(t.Context(), card.News{
			Job: slurm.Job{ID: "4711", Cluster: "yard", Name: "gpt", User: "ada", State: slurm.Failed},
			Why: "GPU out of memory, rank 9 on n2", Class: "cuda_oom",
			Cause: &view.Doc{Title: "GPU out of memory, rank 9 on n2", Tone: view.Bad, Sections: []view.Section{{Text: "In the backward pass."}}},
		}))
		s.said("In the backward pass.")
		got := s.inThread(c, "why did it fail?", "1700000002.000100")
		require.Contains(t, text(got[0]), "The diagnosis above in this thread still holds")
		require.Equal(t, 1, posted(s.State(), "In the backward pass."), "the same text stands once")
		got = s.inThread(c, "为什么失败？", "1700000002.000200")
		require.NotContains(t, text(got[0]), "GPU out of memory", "who asks in Chinese is not sent to the English text above")
		for i, row := range []struct{ text, says string }{{"status", "4711"}, {"diagnose 5000", "5000"}} {
			got = s.inThread(c, row.text, "1700000003.00010"+string(rune('0'+i)))
			require.Contains(t, text(got[0]), row.says, row.text)
			require.NotContains(t, text(got[0]), "still holds", "something else was asked for")
		}
	})
}

// Where no cause was shown, none is referred to.
func TestInAThreadWithoutACauseOneIsLookedFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := play(t)
		c := submitted(t, s)
		require.NoError(t, s.bot.Tell(t.Context(), card.News{Job: slurm.Job{ID: "4711", Cluster: "yard", Name: "gpt", User: "ada", State: slurm.Completed}}))
		waitingCard(s, "4711", "completed")
		got := s.inThread(c, "diagnose", "1700000002.000100")
		require.NotContains(t, text(got[0]), "still holds")
	})
}

func TestMyLastJobIsUnderstoodEverywhere(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := play(t)
		s.yard.put(jobNamed("4000", "old"))
		s.yard.put(jobNamed("4001", "llama-8b"))
		s.Slash("status my last job")
		s.said("llama-8b · running · 4001")
		s.Slash("status old")
		s.said("old · running · 4000")
		s.Slash("logs of my latest run")
		s.said("job 4001")
		s.Event(map[string]any{"type": "message", "channel_type": "im", "user": "U1", "channel": "D1", "ts": "1.000100", "text": "我的上一个作业怎么样了？"})
		require.Equal(t, "1.000100", s.said("llama-8b · 运行中 · 4001", "1 个节点").Thread)
		s.Event(map[string]any{"type": "message", "channel_type": "im", "user": "U1", "channel": "D1", "ts": "1.000200", "thread_ts": "1.000100", "text": "日志"})
		require.Equal(t, "1.000100", s.said("没有找到", "4001").Thread, "the thread goes on about that job")
	})
}

// While the accounts are away, the newest job of the queue need not be the last one; a name in the
// queue is that job.
func TestMyLastJobIsNotGuessedWithoutTheAccounts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := play(t)
		s.yard.put(jobNamed("4000", "old"))
		ended := jobNamed("4001", "llama-8b")
		ended.State = slurm.Failed
		s.yard.put(ended)
		s.yard.mu.Lock()
		s.yard.accountless = true
		s.yard.mu.Unlock()
		s.Slash("status my last job")
		s.said("accounts do not answer")
		s.Event(map[string]any{"type": "message", "channel_type": "im", "user": "U1", "channel": "D1", "ts": "1.000100", "text": "我的上一个作业怎么样了？"})
		s.said("没有应答")
		s.Slash("status old")
		s.said("old · running · 4000")
	})
}

func TestACommandWithoutAJobAsksWhich(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := play(t)
		s.yard.put(jobNamed("4000", "old"))
		s.yard.put(jobNamed("4001", "llama-8b"))
		s.Slash("status")
		q := s.said("Which job?")
		s.PressLabel(q, "🔵 old (4000) · running", "U1")
		s.said("old · running · 4000")
		stranger := map[string]any{"user_id": "U7"}
		s.Slash("status my last job", stranger)
		s.said("You have had no job in the last seven days")
	})
}

// An otherYard is a yard of another name.
type otherYard struct{ *yard }

func (otherYard) Name() string { return "other" }

// Where there are several clusters, the question says on which one a job is meant, and the one
// that the command names is asked for its jobs. In a job's thread, another cluster is not the job's.
func TestWhichJobNamesTheCluster(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := play(t)
		other := otherYard{&yard{jobs: map[slurm.JobID]slurm.Job{}}}
		s.service.Clusters["other"] = other
		s.yard.put(jobNamed("4000", "here"))
		other.put(jobNamed("4000", "there"))
		s.Slash("status")
		s.said("Which job on yard?", "here (4000)")
		s.Slash("status --cluster other")
		q := s.said("Which job on other?", "there (4000)")
		s.PressLabel(q, "🔵 there (4000) · running", "U1")
		s.said("there · running · 4000")
		s.Slash("status here")
		s.said("here · running · 4000")
	})
}

func TestAnUnlinkedPersonIsOfferedTheLink(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := play(t)
		s.Slash("submit", map[string]any{"user_id": "U7"})
		m := s.said("You are not linked to a cluster user yet")
		_, ok := slacktest.Find(m.Blocks, "Link my account")
		require.True(t, ok)
		require.Empty(t, s.State().Views)
	})
}

func TestAFileThatCannotGoHoldsNothingUpAndIsSaid(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := play(t)
		s.Fault(slacktest.Fault{Method: "files.getUploadURLExternal", Times: 1, Status: http.StatusInternalServerError})
		s.Fault(slacktest.Fault{Method: "files.getUploadURLExternal", Rate: 1, Error: "missing_scope"})
		c := submitted(t, s)
		require.NoError(t, s.bot.Tell(t.Context(), card.News{Job: slurm.Job{ID: "4711", Cluster: "yard", Name: "gpt", User: "ada", State: slurm.Running, Nodes: []string{"n1"}}}))
		s.Wait("the news in the thread", func(st slacktest.State) bool {
			return slices.ContainsFunc(st.Messages, func(m *slacktest.Message) bool { return m.Thread == c.TS && strings.Contains(m.Text, "running on n1") })
		})
		said := s.said("The file 4711.sbatch could not be sent", "missing_scope")
		require.Equal(t, c.TS, said.Thread)
	})
}

func TestWhereTheBotIsNotInTheChannelItSaysHowToInviteIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := play(t)
		s.Fault(slacktest.Fault{Method: "chat.postMessage", Times: 1, Error: "not_in_channel"})
		s.Slash("submit --yes " + spec)
		c := s.said("gpt (4711): waiting", "/invite @megatron")
		require.Equal(t, "DU1", c.Channel)
		require.Contains(t, slacktest.JSON(c.Blocks), `"channel_id":"C1"`)
	})
}

func TestARefusedBlockIsSaidInPlainerOnesInTheSamePlace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := play(t)
		job := slurm.Job{ID: "4000", Cluster: "yard", Name: "run", User: "ada", State: slurm.Running, Nodes: []string{"n1"}}
		s.yard.put(job)
		s.Slash("subscribe all")
		s.said("Followed here")
		s.Fault(slacktest.Fault{Method: "chat.postMessage", Times: 1, Error: "invalid_blocks"}) // a workspace without charts
		require.NoError(t, s.bot.Tell(t.Context(), card.News{Job: job, Iteration: 30, Iterations: 100, Curve: curve(10, 5, 2.5)}))
		c := waitingCard(s, "4000", "running")
		require.Equal(t, "C1", c.Channel)
		require.Contains(t, text(c), "10 → 2.5", "the curve in words")
		require.NotEmpty(t, c.Blocks)
		s.Fault(slacktest.Fault{Method: "response_url", Times: 1, Status: http.StatusBadRequest, Error: "invalid_blocks"})
		s.Slash("help")
		m := s.said("What you can do now")
		require.Equal(t, "response_url", m.Via, "in the same place")
		require.Equal(t, "U1", m.Only)
	})
}
