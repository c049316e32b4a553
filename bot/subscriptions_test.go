package bot_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/bot/card"
	"github.com/megatron-ops/megatron-ops/bot/slacktest"
	"github.com/megatron-ops/megatron-ops/slurm"
)

func TestSubscriptionsAreSeenAndEndedByAButton(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
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
		s.said("cannot be followed", "project=…")
		s.Slash("subscribe all expected")
		s.said("an alarm needs a name")
	})
}
