package bot_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/bot/card"
	"github.com/megatron-ops/megatron-ops/bot/slacktest"
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/store"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// posted counts the messages in channels that contain a text.
func posted(st slacktest.State, containing string) (n int) {
	for _, m := range st.Messages {
		if strings.Contains(text(m), containing) {
			n++
		}
	}
	return n
}

// follow subscribes C1 to all jobs and sends the news of n jobs.
func follow(t *testing.T, s *stage, n int) {
	t.Helper()
	s.Slash("subscribe all")
	s.said("Followed here")

	for i := range n {
		require.NoError(t, s.bot.Tell(t.Context(), card.News{Job: slurm.Job{
			ID: slurm.JobID(fmt.Sprint(9000 + i)), Cluster: "yard", Name: "run", User: "grace", State: slurm.Pending,
		}}))
	}
}

func TestALimitIsWaitedFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := play(t)
		s.Fault(slacktest.Fault{Method: "chat.postMessage", Times: 1, Status: http.StatusTooManyRequests, RetryAfter: 1})
		follow(t, s, 2)
		st := s.Wait("both cards", func(st slacktest.State) bool { return len(cards(st, "900")) == 2 })
		require.Empty(t, st.Early, "no call before the Retry-After has passed")
	})
}

// The news of one channel, which Slack takes minutes to accept, does not delay answers.
func TestABusyChannelHoldsUpNoAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := play(t)
		const n = 250
		follow(t, s, n)
		s.Slash("help")
		s.said("What you can do now")
		require.Less(t, len(cards(s.State(), "9")), n, "the answer came before the last card")
	})
}

func TestAServersErrorIsTriedAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := play(t)
		s.Fault(slacktest.Fault{Method: "response_url", Times: 1, Status: http.StatusInternalServerError})
		s.Slash("help")
		s.said("What you can do now")
		require.Equal(t, 1, posted(s.State(), "What you can do now"))
	})
}

func TestAMessageWhoseAnswerWasLostIsNotPostedTwice(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := play(t)
		s.Fault(slacktest.Fault{Method: "chat.postMessage", Times: 1, Reset: "after"})
		follow(t, s, 1)
		s.Wait("a look for the message", func(st slacktest.State) bool {
			for _, c := range st.Calls {
				if c.Method == "conversations.history" {
					return true
				}
			}
			return false
		})
		require.NoError(t, s.bot.Tell(t.Context(), card.News{Job: slurm.Job{ID: "9000", Cluster: "yard", Name: "run", User: "grace", State: slurm.Running, Nodes: []string{"n1"}}}))
		s.said("running")
		require.Len(t, cards(s.State(), "9000"), 1, "found again, and edited in place")
	})
}

// A private message cannot be searched for: where it may have arrived, it is sent again and
// says so.
func TestAPrivateAnswerThatComesTwiceSaysSo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for _, row := range []struct{ ask, answer, mark string }{
			{"help", "What you can do now", "Sent once more, in case it did not arrive the first time. Nothing was done twice."},
			{"帮助", "现在可以做什么", "（重发：不确定上一次是否送达，操作没有重复执行）"},
		} {
			s := play(t)
			s.Fault(slacktest.Fault{Method: "response_url", Times: 1, Reset: "after"})
			s.Slash(row.ask)
			s.said(row.mark, row.answer)
			first, second := 0, 0
			for _, m := range s.State().Messages {
				if strings.Contains(text(m), row.mark) {
					second++
					require.Equal(t, "context", m.Blocks[0].(map[string]any)["type"])
				} else if strings.Contains(text(m), row.answer) {
					first++
				}
			}
			require.Equal(t, []int{1, 1}, []int{first, second})
		}
	})
}

func TestAFileWhoseUploadWasLostIsNotUploadedTwice(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := play(t)
		s.Fault(slacktest.Fault{Method: "files.completeUploadExternal", Times: 1, Reset: "after"})
		c := submitted(t, s)
		s.Wait("a look into the thread", func(st slacktest.State) bool {
			return slices.ContainsFunc(st.Calls, func(x slacktest.Call) bool { return x.Method == "conversations.replies" })
		})
		require.NoError(t, s.bot.Note(t.Context(), slurm.Job{ID: "4711", Cluster: "yard", State: slurm.Running}, "after", lang.Text{EN: "what comes after it", ZH: "之后的内容"}))
		require.Equal(t, c.TS, s.said("what comes after it").Thread)
		n := 0
		for _, f := range s.State().Files {
			if f.Done && f.Name == "4711.sbatch" {
				n++
			}
		}
		require.Equal(t, 1, n)
	})
}

func TestWhereTheBotMayNotPostItWritesDirectly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := play(t)
		s.Fault(slacktest.Fault{Method: "chat.postMessage", Times: 1, Error: "not_in_channel"})
		s.Slash("submit --yes " + spec)
		st := s.Wait("the card", func(st slacktest.State) bool { return len(cards(st, "4711")) == 1 })
		require.Equal(t, "DU1", cards(st, "4711")[0].Channel)
	})
}

func TestAnOldResponseURLIsNotTheEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := play(t)
		s.Fault(slacktest.Fault{Method: "response_url", Times: 1, Status: http.StatusNotFound})
		s.Slash("help")
		msg := s.said("What you can do now")
		require.Equal(t, "DU1", msg.Channel)
	})
}

func TestAnswersGoToSlackOnly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := play(t)
		var hit bool
		other := newCatcher(t, &hit)
		s.Slash("help", map[string]any{"response_url": other + "/steal"})
		s.said("What you can do now") // directly, instead
		require.False(t, hit)
	})
}

func TestWhatSlackRefusesIsSaidInPlainWords(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := play(t)
		follow(t, s, 0)
		s.Fault(slacktest.Fault{Method: "chat.postMessage", Times: 1, Error: "invalid_blocks"})
		require.NoError(t, s.bot.Tell(t.Context(), card.News{Job: slurm.Job{ID: "9000", Cluster: "yard", Name: "run", User: "grace", State: slurm.Pending}}))
		s.Wait("a message without blocks", func(st slacktest.State) bool {
			return len(cards(st, "9000")) == 1 && len(cards(st, "9000")[0].Blocks) == 0
		})
	})
}

func TestEverythingArrivesOnceThroughABadHour(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := play(t)
		s.Slash("subscribe all")
		s.said("Followed here")
		s.Fault(slacktest.Fault{Method: "chat.postMessage", Rate: 0.2, Status: http.StatusTooManyRequests, RetryAfter: 1})
		s.Fault(slacktest.Fault{Method: "chat.postMessage", Rate: 0.15, Status: http.StatusInternalServerError})
		s.Fault(slacktest.Fault{Method: "chat.postMessage", Rate: 0.1, Reset: "after"})
		const n = 10
		for i := range n {
			require.NoError(
				t,
				s.bot.Tell(t.Context(), card.News{Job: slurm.Job{ID: slurm.JobID(fmt.Sprint(9000 + i)), Cluster: "yard", Name: "run", User: "grace", State: slurm.Pending}}),
			)
		}
		s.Wait("two that failed", func(st slacktest.State) bool {
			return failed(st, "chat.postMessage") >= 2 || len(cards(st, "900")) >= n
		})
		s.Calm()
		st := s.Wait("every card", func(st slacktest.State) bool { return len(cards(st, "900")) >= n })
		require.Len(t, cards(st, "900"), n)
		require.Empty(t, st.Early)
	})
}

// failed counts the calls of a method that Slack answered with an error.
func failed(st slacktest.State, method string) (n int) {
	for _, c := range calls(st, method) {
		if c.Answer != "ok" {
			n++
		}
	}
	return n
}

// newCatcher starts a server that must not be called.
func newCatcher(t *testing.T, hit *bool) string {
	t.Helper()
	srv := slacktest.ServeInMemory(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { *hit = true }))
	return srv
}

func TestAnAcceptedCommandSurvivesARestart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := play(t)
		raw, err := json.Marshal(map[string]any{
			"kind": "command", "at": time.Now(), "team": "T1", "user": "U1", "channel": "C1", "text": "submit --yes " + spec,
		})
		require.NoError(t, err)
		// This is what a process that died has left behind.
		_, err = s.store.Slack().Accept(t.Context(), store.SlackRequest{Key: "left-behind", Body: string(raw), At: time.Now()})
		require.NoError(t, err)
		s.said("gpt submitted to yard as job 4711")
		require.Equal(t, 1, s.yard.count())
	})
}

func TestACallThatHangsHoldsUpNobodyElse(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := play(t)
		s.Fault(slacktest.Fault{Method: "chat.postMessage", Times: 1, DelayMS: 90_000})
		s.Slash("subscribe all")
		s.said("Followed here")
		require.NoError(t, s.bot.Tell(t.Context(), card.News{Job: slurm.Job{ID: "9000", Cluster: "yard", Name: "run", User: "grace", State: slurm.Pending}}))
		s.Slash("help")
		s.said("What you can do now") // it is waited for a minute, and the call hangs for longer
		require.Empty(t, cards(s.State(), "9000"))
	})
}

func TestAnAnswerThatTookHalfAnHourComesDirectly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := play(t)
		s.yard.put(jobNamed("4000", "run"))
		answer := s.yard.hold("job")
		s.Slash("status 4000")
		s.Age(31 * time.Minute) // Slack takes no answer at the response_url any more
		answer()
		require.Equal(t, "DU1", s.said("run · running · 4000").Channel)
	})
}

func TestAFormThatComesTooLateIsOfferedByAButton(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := play(t)
		s.yard.put(jobNamed("4000", "run"))
		answer := s.yard.hold("job")
		for range 2 { // as many as one person may have under way
			s.Slash("status 4000")
		}
		s.Slash("submit")
		s.Age(4 * time.Second) // Slack takes a trigger for three
		answer()
		late := s.said("The form could not be opened in time")
		require.Empty(t, s.State().Views)
		action, value := buttonOf(t, late, "Submit a job")
		s.Press(late, action, value, "U1")
		openedForm(s, 1)
	})
}

func TestAThreadKeepsItsOrderThroughErrors(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := play(t)
		c := submitted(t, s)
		s.Fault(slacktest.Fault{Method: "chat.postMessage", Rate: 0.3, Status: http.StatusInternalServerError})
		s.Fault(slacktest.Fault{Method: "chat.postMessage", Times: 1, Status: http.StatusTooManyRequests, RetryAfter: 1})
		const n = 8
		for i := range n {
			note := fmt.Sprintf("note number %d of the run", i)
			require.NoError(t, s.bot.Note(t.Context(), slurm.Job{ID: "4711", Cluster: "yard", State: slurm.Running}, note, lang.Text{EN: note, ZH: note}))
		}
		in := func(st slacktest.State) (told []string) {
			for _, m := range st.Messages {
				if m.Thread == c.TS && strings.Contains(m.Text, "note number") {
					told = append(told, m.Text)
				}
			}
			return told
		}
		s.Wait("two that failed", func(st slacktest.State) bool { return failed(st, "chat.postMessage") >= 2 || len(in(st)) >= n })
		s.Calm()
		st := s.Wait("the thread", func(st slacktest.State) bool { return len(in(st)) >= n })
		require.Len(t, in(st), n)
		require.True(t, slices.IsSorted(in(st)), "%v", in(st))
		require.Empty(t, st.Early)
	})
}

func TestACardThatWentElsewhereIsEditedThere(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := play(t)
		s.Fault(slacktest.Fault{Method: "chat.postMessage", Times: 1, Error: "not_in_channel"})
		s.Slash("submit --yes " + spec)
		s.Wait("the card", func(st slacktest.State) bool { return len(cards(st, "gpt (4711): waiting")) == 1 })
		require.NoError(t, s.bot.Tell(t.Context(), card.News{Job: slurm.Job{ID: "4711", Cluster: "yard", Name: "gpt", User: "ada", State: slurm.Running, Nodes: []string{"n1"}}}))
		c := waitingCard(s, "gpt (4711): running", "running")
		require.Equal(t, "DU1", c.Channel)
		s.Wait("its thread", func(st slacktest.State) bool {
			return slices.ContainsFunc(st.Messages, func(m *slacktest.Message) bool { return m.Thread == c.TS && strings.Contains(text(m), "running on n1") })
		})
	})
}

// A card that cannot be edited any more, since its channel was archived or has removed the bot,
// goes on with its buttons and its thread in the messages of whoever asked for the job.
func TestACardMovesWhereItsChannelIsGone(t *testing.T) {
	for code, why := range map[string]string{"is_archived": "this channel is archived", "not_in_channel": "I am not in this channel"} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := play(t)
				submitted(t, s)
				tell := func(state slurm.State) {
					require.NoError(t, s.bot.Tell(t.Context(), card.News{Job: slurm.Job{ID: "4711", Cluster: "yard", Name: "gpt", User: "ada", State: state, Nodes: []string{"n1"}}}))
					settled(t, s.store)
				}
				s.Fault(slacktest.Fault{Method: "chat.update", Error: code, Times: 1})
				s.Fault(slacktest.Fault{Method: "chat.postMessage", Error: code, Times: 1}) // in the card's thread
				tell(slurm.Running)
				tell(slurm.Failed)
				var moved *slacktest.Message
				s.Wait("the card in the person's messages", func(st slacktest.State) bool {
					for _, m := range st.Messages {
						if m.Channel == "DU1" && m.Thread == "" && strings.Contains(text(m), "gpt · failed") {
							moved = m
						}
					}
					return moved != nil
				})
				require.Contains(t, text(moved), why)
				buttonOf(t, moved, "Change and resubmit")
				s.Wait("its thread", func(st slacktest.State) bool {
					return slices.ContainsFunc(st.Messages, func(m *slacktest.Message) bool {
						return m.Channel == "DU1" && m.Thread == moved.TS && strings.Contains(text(m), "failed")
					})
				})
			})
		})
	}
}

func TestWhatBelongsToARefusedMessageIsGivenUpToo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := play(t)
		s.Fault(slacktest.Fault{Method: "chat.postMessage", Times: 2, Error: "is_archived"}) // the channel, and the person
		s.Slash("submit --yes " + spec)
		s.said("gpt submitted to yard as job 4711")
		require.Eventually(t, func() bool {
			due, err := s.store.Slack().Due(t.Context(), time.Now().Add(time.Hour), 10)
			return err == nil && len(due) == 0
		}, time.Minute, 50*time.Millisecond, "nothing waits for ever")
		dead, err := s.store.Slack().Buried(t.Context(), 10)
		require.NoError(t, err)
		require.NotEmpty(t, dead)
	})
}

func TestEvidenceIsFoldedWhereSlackFolds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := play(t)
		log := "```[rank3]: Traceback (most recent call last):\n[rank3]:   File \"/w/m.py\", line 812, in forward\n[rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 3 has a total capacity of 79.11 GiB\n```"
		ask := func(ts string) *slacktest.Message {
			t.Helper()
			s.Event(map[string]any{"type": "app_mention", "user": "U1", "channel": "C1", "ts": ts, "text": "<@UBOT> " + log})
			var m *slacktest.Message
			s.Wait("a diagnosis", func(st slacktest.State) bool {
				for _, x := range st.Messages {
					if x.Thread == ts {
						m = x
					}
				}
				return m != nil
			})
			return m
		}
		folded := ask("1.000100")
		require.Contains(t, slacktest.JSON(folded.Blocks), `"default_collapsed":true`)
		require.Contains(t, slacktest.JSON(folded.Blocks), "Seen in the log")
		s.Fault(slacktest.Fault{Method: "chat.postMessage", Times: 1, Error: "invalid_blocks"}) // a workspace without containers
		open := ask("1.000200")
		require.NotContains(t, slacktest.JSON(open.Blocks), "default_collapsed")
		require.Contains(t, slacktest.JSON(open.Blocks), "Class, who acts, retry")
		// From then on that workspace is sent older blocks at once.
		s.Fault(slacktest.Fault{Method: "chat.postMessage", Times: 1, Error: "invalid_blocks"})
		plain := ask("1.000300")
		require.Empty(t, plain.Blocks)
		require.Contains(t, strings.ToLower(plain.Text), "memory")
	})
}
