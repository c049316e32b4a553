package profile

import (
	"flag"
	"path/filepath"
	"slices"
	"testing"

	"github.com/slack-go/slack"
	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/bot/answer"
	"github.com/megatron-ops/megatron-ops/bot/slacktest"
	"github.com/megatron-ops/megatron-ops/internal/lang"
)

var update = flag.Bool("update", false, "write the golden files")

// The way to prove who one is is drawn as it was, and as Slack takes it.
func TestTheLinkIsWhatItWas(t *testing.T) {
	var all []slacktest.Drawn
	for _, l := range []lang.Lang{lang.EN, lang.ZH} {
		blocks := answer.BlocksJSON(slices.Concat(answer.Blocks(linkDoc("ABCDEFGHIJKLMNOPQRSTUVWXYZ", l), l), []slack.Block{linkRow(l)}))
		require.Empty(t, slacktest.CheckBlocks(blocks, slacktest.InMessage), l)
		slacktest.SameView(t, filepath.Join("testdata", "views", "link."+string(l)+".json"), blocks, *update)
		all = append(all, slacktest.Drawn{Name: "link", On: slacktest.InMessage, JSON: blocks})
	}
	slacktest.CheckTypes(t, filepath.Join("..", "..", "tools", "node", "node_modules"), all)
}
