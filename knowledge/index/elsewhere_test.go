package index_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/knowledge/index"
)

func TestElsewhereKnowsTheLanguageOfOtherQuestions(t *testing.T) {
	x := index.New([]index.Doc{
		{Title: "Pending jobs", Asks: []string{"why is my job pending", "reason of a pending job", "作业一直排队是什么原因", "job waits for resources, which reason", "what does the reason of a pending job mean", "作业排队的原因怎么看", "reason why a job is still pending"}},
		{Title: "Nodes", Asks: []string{"exclude a node from the job", "which option keeps a node out", "怎么排除一个节点", "node list of the job", "keep nodes out of a job"}},
	})
	most := math.Inf(-1)
	for _, q := range []string{"reason why the job is pending", "keep a node out of the job", "作业排队的原因"} {
		most = max(most, x.Elsewhere(q))
	}
	for _, q := range []string{"could you restart the server for me", "how much does one cost per month", "谁负责这件事 电话多少", "给我讲个笑话"} {
		require.Greater(t, x.Elsewhere(q), most, q)
	}
	require.Zero(t, x.Elsewhere("42"))
}
