package answers

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/opstest"
	"github.com/megatron-ops/megatron-ops/knowledge"
)

func TestGapsAreWhatWasWrongOrNotKnown(t *testing.T) {
	c := opstest.NewCall(t, &opstest.Site{})
	answerer := knowledge.New(knowledge.Options{})
	c.Answerer = func() *knowledge.Answerer { return answerer }

	for _, q := range []string{"how do I set MASTER_ADDR?", "which lampshade suits the third floor foyer", "write a poem about spring"} {
		_, err := opstest.Do(t, c, Ask(func() []ops.Op { return nil }), q)
		require.NoError(t, err)
	}
	_, err := opstest.Do(t, c, Knowledge(), "wrong", "how", "do", "I", "set", "MASTER_ADDR?", "token=xoxb-123456789012-abcdefghijkl")
	require.NoError(t, err)
	_, err = opstest.Do(t, c, Knowledge(), "good", "what is %x")
	require.NoError(t, err)

	got, err := opstest.Do(t, c, Knowledge(), "gaps")
	require.NoError(t, err)
	gaps := got.(KnowledgeOut).Gaps
	require.Len(t, gaps, 2, "an answered question, a good one and one that is about something else are no gaps")
	require.Equal(t, 1, gaps[0].Wrong)
	require.Contains(t, gaps[0].Question, "MASTER_ADDR")
	require.NotContains(t, gaps[0].Question, "abcdefghijkl", "secrets are not kept")
	require.Equal(t, 1, gaps[1].Unknown)
	require.Contains(t, gaps[1].Question, "lampshade")

	_, err = opstest.Do(t, c, Knowledge(), "wrong")
	require.ErrorContains(t, err, "no question")

	c.Who = ops.Caller{Surface: ops.Slack, ID: "T/U9"}
	_, err = opstest.Do(t, c, Knowledge())
	require.ErrorContains(t, err, "operators", "others' questions are not for everybody")
}

func TestGapsThatAskTheSameAreOne(t *testing.T) {
	c := opstest.NewCall(t, &opstest.Site{})
	note := func(who, verdict, question string) {
		c.Who.ID = who
		require.NoError(t, NoteVerdict(t.Context(), c, verdict, question, ""))
	}
	note("ada", VerdictUnknown, "where do I park my bicycle")
	note("bo", VerdictWrong, "how do I get on the h200 partition")
	note("cy", VerdictUnknown, "how can I get on the h200 partition?")
	note("cy", VerdictGood, "how do I get on the h200 partition at all")

	got, err := opstest.Do(t, c, Knowledge())
	require.NoError(t, err)
	gaps := got.(KnowledgeOut).Gaps
	require.Len(t, gaps, 2)
	require.Equal(t, "how can I get on the h200 partition?", gaps[0].Question, "the most asked first, as it was asked last")
	require.Equal(t, []string{"how do I get on the h200 partition"}, gaps[0].Others)
	require.Equal(t, []int{1, 1}, []int{gaps[0].Wrong, gaps[0].Unknown})
	require.Equal(t, []string{"cy", "bo"}, gaps[0].Who)
	require.Contains(t, gaps[1].Question, "bicycle")
	rows := got.(KnowledgeOut).View(lang.EN).Sections[0].Table.Rows
	require.Equal(t, []string{"2", "1"}, rows[0][:2], "how often, and how often of these an answer was wrong")
	require.Equal(t, []string{"1", "0"}, rows[1][:2])

	got, err = opstest.Do(t, c, Knowledge(), "gaps", "--limit", "1")
	require.NoError(t, err)
	require.Len(t, got.(KnowledgeOut).Gaps, 1)
}
