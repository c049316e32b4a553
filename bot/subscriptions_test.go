package bot_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/bot"
	"github.com/megatron-ops/megatron-ops/bot/card"
	"github.com/megatron-ops/megatron-ops/bot/slacktest"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// shifted has the bot's clock run ahead by what is returned.
func shifted(by *atomic.Int64) func(*bot.Config) {
	return func(c *bot.Config) {
		c.Now = func() time.Time { return time.Now().Add(time.Duration(by.Load())) }
	}
}

func TestSubscriptionsAreSeenAndEndedByAButton(t *testing.T) {
	t.Parallel()
	s := play(t)
	s.Slash("subscribe")
	msg := s.said("What is followed here", "Nothing is followed here yet")
	s.PressLabel(msg, "All failures", "U1")
	told := s.said("Followed here: all jobs · when one fails", "Set by ada")
	require.Empty(t, told.Only, "whoever reads the channel is told")
	require.NoError(t, s.bot.Tell(t.Context(), card.News{Job: slurm.Job{ID: "5000", Cluster: "yard", Name: "moe", User: "bob", State: slurm.Running}}))
	require.NoError(t, s.bot.Tell(t.Context(), card.News{Job: slurm.Job{ID: "5001", Cluster: "yard", Name: "moe", User: "bob", State: slurm.Failed}}))
	st := s.Wait("the failed one's card", func(st slacktest.State) bool { return len(cards(st, "5001")) == 1 })
	require.Empty(t, cards(st, "5000"), "one that runs is nobody's business here")
	s.Slash("subscribe")
	msg = s.said("What is followed here", "all jobs · when one fails")
	s.PressLabel(msg, "End it", "U5")
	s.said("Not followed here any more: all jobs · when one fails", "Set by grace")
	s.Slash("subscribe weather=fine")
	s.said("is nothing that can be followed", "project=…")
	s.Slash("subscribe all expected")
	s.said("an alarm needs a name")
}

func TestARunThatIsExpectedAndMissingIsAnAlarm(t *testing.T) {
	t.Parallel()
	var ahead atomic.Int64
	s := play(t, shifted(&ahead), watched)
	s.Slash("subscribe name=nightly-* expected", map[string]any{"channel_id": "C9"})
	s.said("an alarm while none waits or runs")
	s.yard.put(slurm.Job{ID: "5000", Name: "nightly-1", User: "grace", State: slurm.Pending, Reason: "DependencyNeverSatisfied"})
	require.Eventually(t, func() bool {
		keys, err := s.store.Slack().Keys(t.Context(), "missing", time.Now())
		return err == nil && len(keys) == 1
	}, time.Minute, 20*time.Millisecond, "it is noted as missing")
	require.Zero(t, posted(s.State(), "No run named"), "a chain takes a while between two")
	ahead.Store(int64(11 * time.Minute))
	msg := s.said("No run named nightly-* waits or runs", "Job 5000 waits for a job that did not end well")
	require.Equal(t, "C9", msg.Channel)
	s.yard.put(slurm.Job{ID: "5001", Name: "nightly-2", User: "grace", State: slurm.Running})
	s.said("A run named nightly-* is there again: job 5001")
	require.Equal(t, 1, posted(s.State(), "No run named nightly-*"), "said once")
}

func TestAPlaceIsToldEveryMorningInOneMessage(t *testing.T) {
	t.Parallel()
	morning := time.Now().UTC().Truncate(24 * time.Hour).Add(33*time.Hour + 5*time.Minute) // 09:05 tomorrow
	ended := morning.Add(-time.Hour)
	var at atomic.Int64
	s := play(t, shifted(&at))
	s.Slash("subscribe project=research digest", map[string]any{"channel_id": "C9"})
	s.said("every morning, in one message")
	s.yard.put(slurm.Job{ID: "5000", Name: "moe", User: "grace", Account: "research", EndedAt: &ended, State: slurm.Failed, GPUs: 8, ElapsedS: 3600})
	s.yard.put(slurm.Job{ID: "5001", Name: "gpt", User: "grace", Account: "research", EndedAt: &ended, State: slurm.Completed})
	s.yard.put(slurm.Job{ID: "5002", Name: "other", User: "grace", Account: "elsewhere", EndedAt: &ended, State: slurm.Failed})
	at.Store(int64(time.Until(morning)))
	for range 3 {
		s.bot.Digests(t.Context())
	}
	msg := s.said("Jobs of the last day · jobs of the project research", "5000 moe", "8.0")
	require.Equal(t, "C9", msg.Channel)
	require.NotContains(t, text(msg), "5002")
	require.Equal(t, 1, posted(s.State(), "Jobs of the last day"))
}
