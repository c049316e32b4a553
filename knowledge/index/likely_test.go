package index_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/knowledge/index"
)

func TestAQuestionIsOfTheDocThatIsAskedForInItsWords(t *testing.T) {
	x := index.New([]index.Doc{
		{Title: "Why a job is pending", Asks: []string{
			"why is my job pending", "pending job reason", "job stays pending for hours", "pending and does not start", "change in the queue, still pending",
		}},
		{Title: "Change a pending job", Asks: []string{
			"change number of nodes of a pending job", "move a pending job to another partition", "give a queued job fewer nodes",
		}},
	})
	for q, want := range map[string]int{
		"my pending job should have fewer nodes": 1,
		"for hours pending, reason":              0,
	} {
		hits := x.Search(q, 2)
		require.NotEmpty(t, hits, q)
		require.Equal(t, want, hits[0].Doc, q)
	}
}
