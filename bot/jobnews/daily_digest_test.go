package jobnews

import (
	"flag"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/bot/answer"
	"github.com/megatron-ops/megatron-ops/bot/slacktest"
	"github.com/megatron-ops/megatron-ops/internal/lang"
)

var update = flag.Bool("update", false, "write the golden files")

// The drawn digest of a day has not changed, and Slack accepts it.
func TestTheDigestIsWhatItWas(t *testing.T) {
	var all []slacktest.Drawn
	for _, l := range []lang.Lang{lang.EN, lang.ZH} {
		blocks := answer.BlocksJSON(answer.Blocks(digestOf(dayCounts{
			done: []string{"4709 gpt-8b"}, failed: map[string][]string{"cuda_oom": {"4711 gpt-8b"}, "slurm_node_fail": {"4712 moe", "4713 moe"}}, lost: 145.3, still: 2,
		}, l), l))
		require.Empty(t, slacktest.CheckBlocks(blocks, slacktest.InMessage), l)
		all = append(all, slacktest.Drawn{Name: "digest", On: slacktest.InMessage, JSON: blocks})
		slacktest.SameView(t, filepath.Join("testdata", "views", "digest."+string(l)+".json"), blocks, *update)
	}
	slacktest.CheckTypes(t, filepath.Join("..", "..", "tools", "node", "node_modules"), all)
}
