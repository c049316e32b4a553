package ops

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/knowledge"
)

func TestGapsAreWhatWasWrongOrNotKnown(t *testing.T) {
	c := newCall(t, &site{})
	answerer := knowledge.New(knowledge.Options{})
	c.Answerer = func() *knowledge.Answerer { return answerer }

	for _, q := range []string{"how do I set MASTER_ADDR?", "which lampshade suits the third floor foyer", "write a poem about spring"} {
		_, err := do(t, c, "ask", q)
		require.NoError(t, err)
	}
	_, err := do(t, c, "knowledge", "wrong", "how", "do", "I", "set", "MASTER_ADDR?", "token=xoxb-123456789012-abcdefghijkl")
	require.NoError(t, err)
	_, err = do(t, c, "knowledge", "good", "what is %x")
	require.NoError(t, err)

	got, err := do(t, c, "knowledge", "gaps")
	require.NoError(t, err)
	gaps := got.(KnowledgeOut).Gaps
	require.Len(t, gaps, 2, "an answered question, a good one and one that is about something else are no gaps")
	require.Equal(t, VerdictWrong, gaps[0].Verdict)
	require.Contains(t, gaps[0].Question, "MASTER_ADDR")
	require.NotContains(t, gaps[0].Question, "abcdefghijkl", "secrets are not kept")
	require.Equal(t, VerdictUnknown, gaps[1].Verdict)
	require.Contains(t, gaps[1].Question, "lampshade")

	_, err = do(t, c, "knowledge", "wrong")
	require.ErrorContains(t, err, "no question")

	c.Who = Caller{Surface: Slack, ID: "T/U9"}
	_, err = do(t, c, "knowledge")
	require.ErrorContains(t, err, "operators", "others' questions are not for everybody")
}
