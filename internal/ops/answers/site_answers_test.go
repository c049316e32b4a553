package answers

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/opstest"
	"github.com/megatron-ops/megatron-ops/knowledge"
	"github.com/megatron-ops/megatron-ops/knowledge/cards"
)

// answering returns a call whose answers include what operators have added.
func answering(t *testing.T) *ops.Call {
	c := opstest.NewCall(t, &opstest.Site{})
	answerer := knowledge.New(knowledge.Options{Added: func() (list []cards.Card) {
		all, err := SiteCards(t.Context(), c.Service)
		require.NoError(t, err)
		for _, k := range all {
			list = append(list, k.Card)
		}
		return list
	}})
	c.Answerer = func() *knowledge.Answerer { return answerer }
	return c
}

func TestAnOperatorsAnswerIsFoundAtOnce(t *testing.T) {
	c := answering(t)
	const question = "where is the falcon scratch mounted"
	asked := func() string {
		got, err := opstest.Do(t, c, Ask(func() []ops.Op { return nil }), question)
		require.NoError(t, err)
		return got.(AskOut).Answer.Answer
	}
	require.NotContains(t, asked(), "/falcon")

	got, err := opstest.Do(t, c, Card(), "add", "where", "is", "falcon", "scratch?", "--answer", "Under /falcon.", "--url", "https://wiki.example/falcon")
	require.NoError(t, err)
	added := got.(CardOut).Cards
	require.Len(t, added, 1)
	require.Contains(t, asked(), "Under /falcon.")
	require.Contains(t, asked(), "https://wiki.example/falcon")

	found, err := opstest.Do(t, c, Search(), "falcon", "scratch", "--top", "1")
	require.NoError(t, err)
	passage := found.(SearchOut).Passages[0]
	require.Equal(t, "Under /falcon.", passage.Text)
	card, ok := c.Answerer().Card(strings.TrimPrefix(passage.Card, knowledge.CardScheme))
	require.True(t, ok, "its address is read like that of any other")
	require.Equal(t, "Under /falcon.", card.Text.EN)

	_, err = opstest.Do(t, c, Card(), "remove", "nothing")
	require.ErrorContains(t, err, "no id of a card")
	got, err = opstest.Do(t, c, Card(), "remove", added[0].ID)
	require.NoError(t, err)
	require.Empty(t, got.(CardOut).Cards)
	require.NotContains(t, asked(), "/falcon")
}

func TestAFileOfCardsIsAdded(t *testing.T) {
	c := answering(t)
	c.Dir = t.TempDir()
	text := "## site.a | Falcon scratch | falcon 的 scratch\nask: falcon scratch\nen: /falcon\nzh: 在 /falcon\n## site.b | Help | 求助\nask: who " +
		"helps\nen: #gpu-help\n"
	require.NoError(t, os.WriteFile(filepath.Join(c.Dir, "cards.md"), []byte(text), 0o600))
	got, err := opstest.Do(t, c, Card(), "add", "-f", "cards.md")
	require.NoError(t, err)
	require.Len(t, got.(CardOut).Cards, 2)
	require.Contains(t, fmt.Sprint(got.(CardOut).View(lang.ZH).Sections[0].Table.Rows), "falcon 的 scratch")

	require.NoError(t, os.WriteFile(filepath.Join(c.Dir, "cards.md"), []byte("nonsense"), 0o600))
	_, err = opstest.Do(t, c, Card(), "add", "-f", "cards.md")
	require.ErrorContains(t, err, "before the first card")
	for want, args := range map[string][]string{"no question": {"add"}, "no answer": {"add", "why?"}} {
		_, err := opstest.Do(t, c, Card(), args...)
		require.ErrorContains(t, err, want)
	}
}

func TestOnlyOperatorsWriteTheSitesAnswers(t *testing.T) {
	c := answering(t)
	c.Who = ops.Caller{Surface: ops.Slack, ID: "T/U1", User: "alice"}
	_, err := opstest.Do(t, c, Card(), "add", "why?", "--answer", "because")
	require.ErrorContains(t, err, "operators")
	c.Who.Operator = true
	_, err = opstest.Do(t, c, Card(), "add", "why?", "--answer", "because")
	require.NoError(t, err)
}

func TestASearchReturnsTheNearestWhateverTheirScores(t *testing.T) {
	c := answering(t)
	got, err := opstest.Do(t, c, Search(), "context parallel NaN", "--top", "3")
	require.NoError(t, err)
	found := got.(SearchOut).Passages
	require.Len(t, found, 3)
	require.Contains(t, found[0].Text, "masked")
	require.NotEmpty(t, found[0].URL)
	require.GreaterOrEqual(t, found[0].Score, found[1].Score)

	_, err = opstest.Do(t, c, Search(), " ")
	require.ErrorContains(t, err, "nothing to look for")
	_, err = opstest.Do(t, c, Search(), "x", "--top", "21")
	require.ErrorContains(t, err, "between 1 and 20")
}
