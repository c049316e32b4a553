package bot_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/bot"
	"github.com/megatron-ops/megatron-ops/bot/slacktest"
	"github.com/megatron-ops/megatron-ops/internal/store"
	"github.com/megatron-ops/megatron-ops/knowledge"
)

// A speaker is a language model that says one sentence after another when the test says so, and
// reports its requests.
type speaker struct {
	model *knowledge.Model
	asked chan struct{}
	say   chan string // closed: that was all
}

func speak(t *testing.T) *speaker {
	t.Helper()
	p := &speaker{asked: make(chan struct{}, 10), say: make(chan string, 10)}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.asked <- struct{}{}
		w.Header().Set("Content-Type", "text/event-stream")
		for {
			select {
			case words, more := <-p.say:
				if !more {
					fmt.Fprint(w, "data: [DONE]\n\n")
					return
				}
				raw, _ := json.Marshal(map[string]any{"choices": []any{map[string]any{"delta": map[string]string{"content": words}}}})
				fmt.Fprintf(w, "data: %s\n\n", raw)
				w.(http.Flusher).Flush()
			case <-r.Context().Done():
				return
			}
		}
	}))
	t.Cleanup(srv.Close)
	p.model = &knowledge.Model{BaseURL: srv.URL, Key: "k", Name: "m"}
	return p
}

// with configures the model for a bot.
func (p *speaker) with(c *bot.Config) {
	a := knowledge.New(knowledge.Options{Model: p.model})
	a.Warm()
	c.Service.Answerer = func() *knowledge.Answerer { return a }
}

const (
	dpQuestion = "what is DP with TP 8 PP 2 on 64 gpus?"
	first      = "It is 4 replicas, <@U2> and [here](https://evil.example). "
	second     = "64 GPUs are divided by 16. "
	third      = "That is `TP` times `PP`."
)

// mention asks a question in C1, in the thread of somebody's message.
func (s *stage) mention(question string) {
	s.t.Helper()
	s.Event(map[string]any{
		"type": "app_mention", "user": "U1", "channel": "C1", "ts": "1700000000.000200", "thread_ts": "1700000000.000100", "text": "<@UBOT> " + question,
	})
}

// calls returns the calls of the methods, in order.
func calls(st slacktest.State, methods ...string) (list []slacktest.Call) {
	for _, c := range st.Calls {
		if slices.Contains(methods, c.Method) {
			list = append(list, c)
		}
	}
	return list
}

// shows waits until exactly one message contains the words: a message that is still streamed,
// or one with the answer in place.
func (s *stage) shows(streaming bool, words ...string) (found *slacktest.Message) {
	s.t.Helper()
	s.Wait(fmt.Sprintf("one message with %q, growing: %v", words, streaming), func(st slacktest.State) bool {
		found = nil
		for _, m := range st.Messages {
			answered := m.Edits > 0 || m.Via != "chat.startStream"
			if m.Streaming == streaming && answered != streaming && !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(text(m), w) }) {
				found = m
			}
		}
		return found != nil
	})
	require.Len(s.t, s.State().Messages, 1)
	return found
}

// whole returns the answer as a Slack shows it that refuses streams.
func whole(t *testing.T, words ...string) *slacktest.Message {
	t.Helper()
	p := speak(t)
	s := play(t, p.with)
	s.Fault(slacktest.Fault{Method: "chat.startStream", Times: 99, Error: "unknown_method"})
	for _, w := range words {
		p.say <- w
	}
	close(p.say)
	s.mention(dpQuestion)
	return s.shows(false, "64")
}

func TestAModelsWordsAppearWhileItSpeaks(t *testing.T) {
	t.Parallel()
	p := speak(t)
	s := play(t, p.with)
	s.mention(dpQuestion)
	p.say <- first
	p.say <- "64 " // the sentence before is whole now
	began := time.Now()
	s.shows(true, "It is 4 replicas, ‹@U2›")
	t.Logf("first words after %v", time.Since(began).Round(time.Millisecond))
	p.say <- strings.TrimPrefix(second, "64 ")
	p.say <- "That "
	msg := s.shows(true, "replicas", "64 GPUs are divided by 16.")
	require.Equal(t, "1700000000.000100", msg.Thread)
	p.say <- strings.TrimPrefix(third, "That ")
	close(p.say)
	msg = s.shows(false, "That is ")
	st := s.State()
	start := calls(st, "chat.startStream")
	require.Len(t, start, 1)
	require.Equal(t, "U1", start[0].Args["recipient_user_id"])
	require.Equal(t, "T1", start[0].Args["recipient_team_id"])
	require.NotContains(t, slacktest.JSON(start[0].Args), `"link"`, "what a model says is no link")
	grew := calls(st, "chat.startStream", "chat.appendStream")
	for i := range grew[1:] {
		require.GreaterOrEqual(t, grew[i+1].At.Sub(grew[i].At), 280*time.Millisecond, "about three calls a second")
	}

	same := whole(t, first, second, third)
	require.Equal(t, same.Text, msg.Text)
	require.Equal(t, same.Blocks, msg.Blocks, "the same words, sources and thumbs as without")
	require.Equal(t, same.Metadata["event_type"], msg.Metadata["event_type"])
	require.Contains(t, slacktest.JSON(msg.Blocks), "feedback_buttons")
	s.Press(msg, "feedback", thumb(t, msg, "positive_button"), "U1")
	require.Equal(t, "good", s.ratings(1)[0].Verdict)
}

func TestWordsAppearInADirectMessage(t *testing.T) {
	t.Parallel()
	for name, thread := range map[string]string{"first message": "", "assistant thread": "1700000000.000100"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := speak(t)
			s := play(t, p.with)
			s.Event(map[string]any{"type": "message", "channel_type": "im", "user": "U1", "channel": "D1", "ts": "1700000000.000200", "thread_ts": thread, "text": dpQuestion})
			p.say <- first
			p.say <- "64 "
			s.shows(true, "It is 4 replicas")
			p.say <- "GPUs."
			close(p.say)
			s.shows(false, "64 GPUs.")
		})
	}
}

func TestWordsThatDoNotStandAreGone(t *testing.T) {
	t.Parallel()
	p := speak(t)
	s := play(t, p.with)
	s.mention(dpQuestion)
	p.say <- first
	p.say <- "But "
	s.shows(true, "It is 4 replicas")
	p.say <- "DP = 16 here. "
	p.say <- "Really."
	msg := s.shows(false, "DP = 4")
	require.NotContains(t, text(msg), "replicas, ")
	require.NotContains(t, text(msg), "Not supported by the rules", "nothing above is left that it could mean")
	for _, c := range s.State().Calls {
		require.NotContains(t, slacktest.JSON(c.Args), "DP = 16", "and it never reached Slack")
	}
}

func TestWhereNoMessageMayGrowTheAnswerComesWhole(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]slacktest.Fault{
		"scope":   {Error: "missing_scope"},
		"channel": {Error: "channel_type_not_supported"},
		"method":  {Error: "unknown_method"},
		"limit":   {Status: http.StatusTooManyRequests, RetryAfter: 30},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := speak(t)
			s := play(t, p.with)
			f.Method, f.Times = "chat.startStream", 99
			s.Fault(f)
			for _, again := range []string{"", "?"} {
				s.Event(map[string]any{"type": "app_mention", "user": "U1", "channel": "C1", "ts": "1700000000.0002" + again, "text": "<@UBOT> " + dpQuestion + again})
				<-p.asked
				p.say <- first
				p.say <- "64 "
				s.Wait("the first try", func(st slacktest.State) bool { return len(calls(st, "chat.startStream")) == 1 })
				if again != "" {
					p.say <- "GPUs."
					close(p.say)
					break
				}
				p.say <- "and DP = 16 here. " // what the rules say stands, and is the first message
				p.say <- "Really."
				s.shows(false, "DP = 4")
			}
			s.said("64 GPUs.")
			st := s.State()
			require.Len(t, st.Messages, 2)
			require.Len(t, calls(st, "chat.startStream"), 1, "a channel that refused is not asked again")
			require.Empty(t, calls(st, "chat.appendStream", "chat.stopStream", "chat.update", "conversations.replies"))
			require.Empty(t, st.Early)
		})
	}
}

func TestAPrivateAnswerDoesNotGrow(t *testing.T) {
	t.Parallel()
	p := speak(t)
	s := play(t, p.with)
	s.Slash("ask " + dpQuestion)
	p.say <- first
	p.say <- "64 GPUs."
	close(p.say)
	s.said("It is 4 replicas", "64 GPUs.")
	require.Empty(t, calls(s.State(), "chat.startStream"))
}

func TestWithoutAModelNothingGrows(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := play(t)
		s.mention(dpQuestion)
		require.Equal(t, "chat.postMessage", s.shows(false, "DP = 4").Via)
		require.Empty(t, calls(s.State(), "chat.startStream", "chat.stopStream", "chat.update"))
	})
}

func TestALimitOnGrowingIsWaitedFor(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"chat.appendStream", "chat.stopStream", "chat.update"} {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			p := speak(t)
			s := play(t, p.with)
			s.Fault(slacktest.Fault{Method: method, Times: 1, Status: http.StatusTooManyRequests, RetryAfter: 2})
			s.mention(dpQuestion)
			p.say <- first
			p.say <- "64 "
			s.shows(true, "It is 4 replicas")
			p.say <- strings.TrimPrefix(second, "64 ")
			p.say <- "That "
			s.shows(true, "It is 4 replicas", "64 GPUs are divided by 16.")
			close(p.say)
			s.shows(false, "It is 4 replicas", "64 GPUs are divided by 16. That")
			require.Empty(t, s.State().Early, "no call before the Retry-After has passed")
		})
	}
}

// Whatever goes wrong between a stream's start and its end, there is one message, with the
// whole answer.
func TestAGrowingMessageIsFinishedWhateverHappens(t *testing.T) {
	t.Parallel()
	same := whole(t, first, second, "That ")
	for name, c := range map[string]struct {
		fault   slacktest.Fault
		at      string // the fault comes before these words
		age     bool   // Slack ends the message by itself
		replies bool   // the message is looked for
	}{
		"its beginning had no answer":     {fault: slacktest.Fault{Method: "chat.startStream", Times: 1, Reset: "after"}, at: "first", replies: true},
		"its beginning never reached":     {fault: slacktest.Fault{Method: "chat.startStream", Times: 1, Reset: "before"}, at: "first", replies: true},
		"somebody stopped it":             {fault: slacktest.Fault{Method: "chat.appendStream", Times: 9, Error: "stopped_by_user"}},
		"its end broke":                   {fault: slacktest.Fault{Method: "chat.stopStream", Times: 1, Reset: "after"}},
		"its end was refused":             {fault: slacktest.Fault{Method: "chat.stopStream", Times: 1, Error: "message_not_in_streaming_state"}},
		"its replacement broke":           {fault: slacktest.Fault{Method: "chat.update", Times: 1, Reset: "after"}},
		"Slack does not let it be edited": {fault: slacktest.Fault{Method: "chat.update", Times: 9, Error: "block_mismatch"}},
		"Slack ended it":                  {fault: slacktest.Fault{Method: "none"}, age: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := speak(t)
			s := play(t, p.with)
			if c.at == "first" {
				s.Fault(c.fault)
			}
			s.mention(dpQuestion)
			p.say <- first
			p.say <- "64 "
			s.Wait("the beginning", func(st slacktest.State) bool { return len(calls(st, "chat.startStream")) == 1 })
			if c.at == "" {
				s.shows(true, "It is 4 replicas")
				s.Fault(c.fault)
			}
			if c.age {
				s.Age(6 * time.Minute)
			}
			p.say <- strings.TrimPrefix(second, "64 ")
			p.say <- "That "
			if c.at == "" {
				s.Wait("more of it", func(st slacktest.State) bool { return len(calls(st, "chat.appendStream")) > 0 })
			}
			close(p.say)
			s.Wait("the answer", func(st slacktest.State) bool {
				return len(st.Messages) == 1 && strings.Contains(text(st.Messages[0]), "64 GPUs are divided by 16. That") &&
					st.Messages[0].Edits+len(calls(st, "chat.postMessage")) > 0
			})
			settled(t, s.store)
			msg := s.State().Messages[0]
			require.Len(t, s.State().Messages, 1)
			require.False(t, msg.Streaming && !c.age)
			require.Equal(t, same.Blocks, msg.Blocks)
			require.Equal(t, c.replies, len(calls(s.State(), "conversations.replies")) > 0)
		})
	}
}

// serveWithModel runs a bot with a model until it is killed.
func serveWithModel() int {
	ctx := context.Background()
	st, err := store.Open(ctx, os.Getenv("BOT_TEST_STATE"))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	cfg := killable(st)
	(&speaker{model: &knowledge.Model{BaseURL: os.Getenv("BOT_TEST_MODEL"), Key: "k", Name: "m"}}).with(&cfg)
	b, err := bot.New(cfg)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	_ = b.Run(ctx)
	return 0
}

func TestAGrowingMessageOutlivesAKill(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		moment string // the call at which the bot is killed
		delay  int    // of the answer to chat.startStream
	}{
		"while the message begins": {moment: "chat.startStream", delay: 5000},
		"while it grows":           {moment: "chat.appendStream"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := speak(t)
			s := &stage{t: t, Slack: slacktest.Start(t, slacktest.Config{SigningSecret: secret})}
			path := filepath.Join(t.TempDir(), "state.db")
			// This was accepted before the bot starts.
			st, err := store.Open(t.Context(), path)
			require.NoError(t, err)
			raw, err := json.Marshal(map[string]any{
				"kind": "message", "at": time.Now(), "team": "T1", "user": "U1", "channel": "C1", "thread": "1700000000.000100", "ts": "1700000000.000200", "text": dpQuestion,
			})
			require.NoError(t, err)
			_, err = st.Slack().Accept(t.Context(), store.SlackRequest{Key: "asked", Body: string(raw), At: time.Now()})
			require.NoError(t, err)
			require.NoError(t, st.Close())
			start := func() *exec.Cmd {
				cmd := exec.Command(os.Args[0])
				cmd.Env = append(os.Environ(), "BOT_TEST_STATE="+path, "BOT_TEST_API="+s.APIURL, "BOT_TEST_MODEL="+p.model.BaseURL)
				cmd.Stderr = os.Stderr
				_, err := cmd.StdinPipe()
				require.NoError(t, err)
				require.NoError(t, cmd.Start())
				t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
				return cmd
			}
			if c.delay > 0 {
				s.Fault(slacktest.Fault{Method: "chat.startStream", Times: 1, DelayMS: c.delay, Reset: "after"})
			}
			killed := start()
			<-p.asked
			p.say <- first
			p.say <- "64 "
			msg := s.shows(true, "It is 4 replicas")
			p.say <- "GPUs. "
			p.say <- "And "
			s.Wait("the moment", func(st slacktest.State) bool { return len(calls(st, c.moment)) > 0 })
			require.NoError(t, killed.Process.Kill())
			_ = killed.Wait()
			s.AwaitHangUp()
			require.True(t, s.State().Messages[0].Streaming)

			start()
			<-p.asked
			p.say <- "It is 4, said otherwise. "
			p.say <- "64 GPUs."
			close(p.say)
			again := s.shows(false, "It is 4, said otherwise. 64 GPUs.")
			require.Equal(t, msg.TS, again.TS, "the message that had begun is the answer")
			require.NotContains(t, text(again), "replicas")
			st, err = store.Open(t.Context(), path)
			require.NoError(t, err)
			settled(t, st)
			require.NoError(t, st.Close())
			require.Len(t, s.State().Messages, 1)
			require.Len(t, calls(s.State(), "chat.startStream"), 1)
		})
	}
}
