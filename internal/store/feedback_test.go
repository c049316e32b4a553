package store

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestALaterVerdictReplacesTheEarlierOne(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		ctx := t.Context()
		add := func(who, verdict, question string, after time.Duration) {
			require.NoError(t, s.AddFeedback(ctx, Feedback{At: noon.Add(after), Surface: "slack", Who: who, Verdict: verdict, Question: question, Answer: "a"}))
		}
		add("U1", "good", "显存不足怎么办?", 0)
		add("U2", "wrong", "显存不足怎么办?", time.Second)
		add("U1", "wrong", "显存不足怎么办?", 2*time.Second)
		add("U1", "unknown", "what is a flux capacitor", 3*time.Second)

		all, err := s.Feedback(ctx, 10)
		require.NoError(t, err)
		require.Len(t, all, 3)
		require.Equal(t, "unknown", all[0].Verdict)
		require.Equal(t, "wrong", all[1].Verdict)
		require.Equal(t, "U1", all[1].Who)
		require.Equal(t, "显存不足怎么办?", all[1].Question)
		require.True(t, all[1].At.Equal(noon.Add(2*time.Second)))

		newest, err := s.Feedback(ctx, 1)
		require.NoError(t, err)
		require.Len(t, newest, 1)
	})
}
