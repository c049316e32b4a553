package bot_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/bot/card"
	"github.com/megatron-ops/megatron-ops/bot/slacktest"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// oomLog is the log of a run whose rank 3 on gpu-07 ran out of GPU memory.
const oomLog = " [2026-11-20 12:00:01] iteration       40/     100 | consumed samples:         2560 | elapsed time per iteration (ms): 1234.5 | lm loss: 2.345678E+00 |\n" +
	"[rank3]: Traceback (most recent call last):\n[rank3]:   File \"/w/pretrain_gpt.py\", line 12, in forward_step\n" +
	"[rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 3 has a total capacity of 79.11 GiB of which 1.00 GiB is free.\n"

// failedJob puts a failed job with that log on the cluster, and returns its card.
func failedJob(t *testing.T, s *stage) *slacktest.Message {
	t.Helper()
	c := submitted(t, s)
	log := filepath.Join(t.TempDir(), "gpt-4711.out")
	require.NoError(t, os.WriteFile(log, []byte(oomLog), 0o600))
	job := slurm.Job{ID: "4711", Name: "gpt", User: "ada", Cluster: "yard", State: slurm.Failed, GPUs: 8, Nodes: []string{"gpu-07"}, Stdout: log}
	s.yard.put(job)
	require.NoError(t, s.bot.Tell(t.Context(), card.News{Job: job, Why: "GPU out of memory, rank 3"}))
	s.Wait("its end in the thread", func(st slacktest.State) bool {
		return slices.ContainsFunc(st.Messages, func(m *slacktest.Message) bool { return m.Thread == c.TS && strings.Contains(m.Text, "out of memory") })
	})
	return c
}

// A card may be read and answered while Slack's word that it was posted is late or lost. The
// question is about its job all the same.
func TestACardIsAnsweredBeforeSlackConfirmsIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := play(t, watched)
		s.Fault(slacktest.Fault{Method: "chat.postMessage", Reset: "after", Times: 1})
		c := submitted(t, s)
		s.Event(map[string]any{"type": "app_mention", "user": "U1", "channel": "C1", "ts": "1.1", "thread_ts": c.TS, "text": "<@UBOT> how is it going?"})
		s.Wait("the answer", func(st slacktest.State) bool {
			return slices.ContainsFunc(st.Messages, func(m *slacktest.Message) bool {
				return m.Thread == c.TS && strings.Contains(text(m), "gpt · waiting · 4711")
			})
		})
	})
}

func TestQuestionsInAFailedJobsThreadAreAnsweredFromItsDiagnosis(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := play(t)
		c := failedJob(t, s)
		ask := func(ts, words string) {
			s.Event(map[string]any{"type": "app_mention", "user": "U1", "channel": "C1", "ts": ts, "thread_ts": c.TS, "text": "<@UBOT> " + words})
		}
		for i, row := range []struct{ asked, answer string }{
			{"which rank?", "Rank 3"},
			{"should I retry?", "No: the same job would fail again"},
			{"what should I do?", "micro-batch-size"},
			{"was it like that last time?", "No earlier run of the same name is known"},
			{"when did it happen?", "the last iteration was 40"},
			{"哪个 rank？", "rank 3，节点 gpu-07。"},
			{"上次也是这样吗？", "没有同名的更早一次运行"},
			{"该怎么改？", "增加激活重计算"},
		} {
			ask([]string{"1.1", "1.2", "1.3", "1.4", "1.5", "1.6", "1.7", "1.71"}[i], row.asked)
			msg := s.said(row.answer)
			require.Equal(t, c.TS, msg.Thread, row.asked)
			require.Empty(t, msg.Only, "whoever reads the thread reads it")
		}
		// A question about something else goes to the knowledge base.
		ask("1.8", "What should CUDA_DEVICE_MAX_CONNECTIONS be on H100 with TP=4?")
		s.said("CUDA_DEVICE_MAX_CONNECTIONS=1", "Hopper")
		ask("1.9", "status")
		s.said("gpt · failed")
		ask("1.10", "retry 4711")
		s.said("submit --from 4711", "as a new job", "requeue 4711")
		ask("1.11", "run it again")
		_, ok := slacktest.Find(s.said("No: the same job would fail again", "submit --from 4711").Blocks, "submit --from 4711")
		require.True(t, ok)
	})
}

// Whoever asks for more than a fact gets the button for it: a retry without the node, the fix, and
// the failure's taking.
func TestAWishInAFailedJobsThreadHasItsButton(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := play(t)
		c := failedJob(t, s)
		for i, row := range []struct{ asked, says, button string }{
			{"retry it without that node", "the same job would fail again", "Retry without gpu-07"},
			{"can we try a different node?", "gpu-07", "Retry without gpu-07"},
			{"不带那个节点重跑", "原样重跑还会失败", "排除 gpu-07 后重试"},
			{"第几个 rank 先挂的?", "rank 3，节点 gpu-07", ""},
			{"who is looking at this?", "Nobody has said so yet", "I look after it"},
			{"谁在处理？", "还没有人认领", "我来处理"},
			{"what was the loss?", "2.346", ""},
			{"did it save a checkpoint?", "gpt · failed", ""},
			{"有 checkpoint 吗", "gpt · 失败", ""},
		} {
			msg := s.inThread(c, row.asked, "1700000003.00020"+string(rune('0'+i)))[0]
			require.Contains(t, text(msg), row.says, row.asked)
			if row.button != "" {
				buttonOf(t, msg, row.button)
			}
		}
		s.PressLabel(s.said("Nobody has said so yet"), "I look after it", "U5")
		s.said("grace looks after it")
		late := s.said("Nobody has said so yet") // in a window that was not drawn again
		s.PressLabel(late, "I look after it", "U6")
		s.Wait("who was faster", func(st slacktest.State) bool {
			return slices.ContainsFunc(st.Messages, func(m *slacktest.Message) bool {
				return m.Only == "U6" && strings.Contains(text(m), "grace looks after it")
			})
		})
		require.Contains(t, text(s.inThread(c, "who is handling this", "1700000003.000300")[0]), "grace looks after it")
		s.PressLabel(s.said("the same job would fail again", "Retry without gpu-07"), "Retry without gpu-07", "U1")
		s.said("Please confirm", "#SBATCH --exclude=gpu-07")
	})
}

// A question that names another job, or that is about the cluster, is not about the thread's job.
func TestAQuestionInAThreadMayBeAboutAnotherJob(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := play(t)
		c := failedJob(t, s)
		s.yard.put(jobNamed("5000", "moe-30b"))
		for i, row := range []struct{ asked, says string }{
			{"why did moe-30b die?", "moe-30b"},
			{"is moe-30b stuck?", "moe-30b"},
			{"moe-30b还要多久", "5000"},
			{"what node is job 5000 on", "5000"},
			{"who is using all the gpus", "1 job · 1 running"},
			{"restart moe-30b", "submit --from 5000"},
			{"cancel moe-30b please", "Cancelling 5000"},
		} {
			got := s.inThread(c, row.asked, "1700000003.00010"+string(rune('0'+i)))
			require.Contains(t, text(got[0]), row.says, row.asked)
		}
	})
}

func TestQuestionsAboutAJobThatRunsAreNotAnsweredFromADiagnosis(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := play(t)
		c := submitted(t, s)
		s.Event(map[string]any{"type": "app_mention", "user": "U1", "channel": "C1", "ts": "1.1", "thread_ts": c.TS, "text": "<@UBOT> when will it start?"})
		s.said("gpt · waiting · 4711")

		log := filepath.Join(t.TempDir(), "gpt-4711.out")
		require.NoError(t, os.WriteFile(log, []byte(" [2026-11-20 12:00:01] iteration       40/     100 | elapsed time per iteration (ms): 1234.5 | lm loss: 2.3E+00 |\n"), 0o600))
		job := slurm.Job{ID: "4711", Name: "gpt", User: "ada", Cluster: "yard", State: slurm.Running, GPUs: 8, Nodes: []string{"gpu-07"}, Stdout: log}
		s.yard.put(job)
		require.NoError(t, s.bot.Tell(t.Context(), card.News{Job: job}))
		s.said("gpt · running · 4711")
		for i, row := range []struct{ asked, says string }{
			{"any other errors?", "The job runs; nothing failed"},
			{"有其他报错吗", "没有失败"},
			{"any errors so far?", "nothing failed"},
			{"有报错吗", "没有失败"},
			{"which nodes?", "running on gpu-07"},
			{"在哪些节点？", "gpu-07"},
			{"慢吗？", "1.23 s"},
		} {
			require.Contains(t, text(s.inThread(c, row.asked, "1.1"+string(rune('0'+i)))[0]), row.says, row.asked)
		}
	})
}

// A diagnosis is made where the thread does not show one yet.
func TestAThreadThatShowsNoDiagnosisGetsOne(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := play(t)
		c := failedJob(t, s)
		answer := text(s.inThread(c, "diagnose", "1.1")[0])
		require.Contains(t, answer, "GPU out of memory")
		require.NotContains(t, answer, "still holds")
	})
}
