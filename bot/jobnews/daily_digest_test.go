package jobnews

import (
	"flag"
	"fmt"
	"path/filepath"
	"strings"
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

// A bad night's digest says how many more jobs failed than it names.
func TestADigestCountsWhatItDoesNotName(t *testing.T) {
	var jobs []string
	for i := range 30 {
		jobs = append(jobs, fmt.Sprintf("%d %s", 5000+i, strings.Repeat("long", 40)))
	}
	doc := digestOf(dayCounts{failed: map[string][]string{"cuda_oom": jobs}}, lang.EN)
	line := doc.Sections[1].Items[0]
	require.Contains(t, line, "5007 long")
	require.NotContains(t, line, "5008 long")
	require.True(t, strings.HasSuffix(line, "…, and 22 more"), line)
	require.Less(t, len(line), 700)
	require.Contains(t, digestOf(dayCounts{failed: map[string][]string{"cuda_oom": jobs}}, lang.ZH).Sections[1].Items[0], "另有 22 个")
}
