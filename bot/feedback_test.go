package bot_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/bot/record"
	"github.com/megatron-ops/megatron-ops/bot/slacktest"
	"github.com/megatron-ops/megatron-ops/internal/store"
)

// thumb returns the value of the good or the bad rating button under an answer.
func thumb(t *testing.T, msg *slacktest.Message, which string) string {
	t.Helper()
	for _, x := range msg.Blocks {
		b := x.(map[string]any)
		if b["type"] != "context_actions" {
			continue
		}
		el := b["elements"].([]any)[0].(map[string]any)
		return el[which].(map[string]any)["value"].(string)
	}
	t.Fatalf("no thumbs under %s", text(msg))
	return ""
}

// ratings waits until there are n ratings and returns them, newest first.
func (s *stage) ratings(n int) (list []store.Feedback) {
	s.t.Helper()
	require.Eventually(s.t, func() bool {
		var err error
		list, err = s.store.Feedback(s.t.Context(), 10)
		return err == nil && len(list) == n
	}, time.Minute, 20*time.Millisecond)
	return list
}

func TestAThumbIsStoredWithItsQuestion(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := play(t)
		s.Slash("ask what should CUDA_DEVICE_MAX_CONNECTIONS be on H100 with TP=4?")
		msg := s.said("CUDA_DEVICE_MAX_CONNECTIONS=1")
		s.Press(msg, "feedback", thumb(t, msg, "negative_button"), "U1")
		got := s.ratings(1)
		require.Equal(t, "wrong", got[0].Verdict)
		require.Contains(t, got[0].Question, "on H100 with TP=4?")
		require.Contains(t, got[0].Who, "U1")

		s.Press(msg, "feedback", thumb(t, msg, "positive_button"), "U1")
		require.Eventually(t, func() bool { return s.ratings(1)[0].Verdict == "good" }, time.Minute, 20*time.Millisecond)
	})
}

func TestWrongInAThreadIsAboutItsLastAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := play(t)
		say := func(ts, q string) {
			s.Event(map[string]any{"type": "message", "channel_type": "im", "user": "U1", "channel": "D1", "ts": ts, "thread_ts": "1.000100", "text": q})
		}
		say("1.000200", "MASTER_ADDR 怎么设?")
		s.said("scontrol show hostnames")
		say("1.000300", "不对!")
		s.said("谢谢")
		got := s.ratings(1)
		require.Equal(t, "wrong", got[0].Verdict)
		require.Equal(t, "MASTER_ADDR 怎么设?", got[0].Question)
		require.Contains(t, got[0].Answer, "scontrol show hostnames")
	})
}

// A person who pasted a secret is told to revoke it, and what is remembered of the thread does not
// hold it.
func TestAPastedSecretIsToldAndNotRemembered(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := play(t)
		s.Event(map[string]any{"type": "message", "channel_type": "im", "user": "U1", "channel": "DU1", "ts": "5.1", "text": "why does HF_TOKEN=hf_abcdefghijklmnopqrstuvwxyzABCDEF12 not download the tokenizer"})
		s.answered("5.1", "the question")
		s.said("seems to contain a secret", "revoke the token or password")
		docs := s.store.Slack()
		keys, err := docs.Keys(t.Context(), record.Thread, time.Now())
		require.NoError(t, err)
		require.Len(t, keys, 1)
		var kept map[string]any
		_, err = docs.Get(t.Context(), record.Thread, keys[0], time.Now(), &kept)
		require.NoError(t, err)
		require.Contains(t, slacktest.JSON(kept), "download the tokenizer")
		require.NotContains(t, slacktest.JSON(kept), "hf_abc")
	})
}
