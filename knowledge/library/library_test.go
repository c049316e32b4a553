package library_test

import (
	"bytes"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/knowledge/cards"
	"github.com/megatron-ops/megatron-ops/knowledge/index"
	"github.com/megatron-ops/megatron-ops/knowledge/library"
)

func TestEmbeddedFilesAreCurrent(t *testing.T) {
	c, x, err := library.Build(os.DirFS("../cards/data"))
	require.NoError(t, err)
	haveCards, err := os.ReadFile("cards.bin")
	require.NoError(t, err)
	haveIndex, err := os.ReadFile("index.bin")
	require.NoError(t, err)
	require.True(t, bytes.Equal(c, haveCards) && bytes.Equal(x, haveIndex), "the cards have changed: run go generate ./knowledge/library")
}

func TestEmbeddedCardsEqualTheSource(t *testing.T) {
	list, err := cards.Load(os.DirFS("../cards/data"))
	require.NoError(t, err)
	lib := library.BuiltIn()
	require.Greater(t, len(lib.Cards), len(list), "the cards of Megatron's messages follow")
	for i, c := range list {
		c.Asks, c.Table = nil, "" // only the index needs them
		got := lib.Cards[i]
		if strings.HasPrefix(c.ID, "flag.") { // the default follows
			got.Text.EN, got.Text.ZH = strings.TrimPrefix(got.Text.EN, c.Text.EN), strings.TrimPrefix(got.Text.ZH, c.Text.ZH)
			require.Regexp(t, `^(?:; default \S.*)?$`, got.Text.EN)
			require.Regexp(t, `^(?:;默认 \S.*)?$`, got.Text.ZH)
			got.Text = c.Text
		}
		require.Equal(t, c, got)
	}
	c, ok := lib.Find(list[0].ID)
	require.True(t, ok)
	require.Equal(t, list[0].Title, c.Title)
	_, ok = lib.Find("no.such")
	require.False(t, ok)
}

// Each example question must find its own card.
func TestExampleQuestionsFindTheirCards(t *testing.T) {
	list, err := cards.Load(os.DirFS("../cards/data"))
	require.NoError(t, err)
	lib := library.BuiltIn()
	asked, lost := 0, 0
	for i, c := range list {
		for j, ask := range c.Asks {
			if j%40 != 0 { // a sample, for time
				continue
			}
			asked++
			found := false
			for _, h := range lib.Index.Search(ask, 3) {
				found = found || h.Doc == i
			}
			if !found {
				lost++
				t.Logf("%s: %q finds other cards", c.ID, ask)
			}
		}
	}
	require.Less(t, float64(lost)/float64(asked), 0.02)
}

// Messages of Megatron, with the error's name and with values filled in, find the card of
// their rule.
func TestMessagesOfMegatronFindTheirRules(t *testing.T) {
	lib := library.BuiltIn()
	for message, want := range map[string]string{
		"AssertionError: --use-checkpoint-args requires --load or --pretrained-checkpoint argument": "check.checkpoint-args-need-load",
		"AssertionError: Embedding must be specified exactly once":                                  "check.layout-one-embedding",
		"assert args.save_retain_interval % args.save_interval == 0":                                "check.retain-interval-multiple",
	} {
		hits := lib.Index.Search(message, 3)
		require.NotEmpty(t, hits, message)
		require.Equal(t, want, lib.Cards[hits[0].Doc].ID, message)
	}
	for _, c := range lib.Cards {
		if strings.HasPrefix(c.ID, library.MessagePrefix) {
			require.Regexp(t, `^https://github\.com/NVIDIA/Megatron-LM/blob/[0-9a-f]{40}/(megatron/.*|\w+)\.py#L\d+$`, c.URL, c.ID)
			require.Contains(t, c.Text.EN, "To do: ", c.ID)
			require.Contains(t, c.Text.ZH, "做法", c.ID)
		}
	}
}

func TestTermsOfCards(t *testing.T) {
	lib := library.BuiltIn()
	require.True(t, lib.Holds("--ntasks-per-node"))
	require.True(t, lib.Holds("nccl_ib_timeout"))
	require.False(t, lib.Holds("--turbo-slurm-mode"), "an off-topic question contains it, and no card does")
	require.True(t, lib.HasFieldTerm("why is my sbatch job pending"))
	require.True(t, lib.HasFieldTerm("fairshare explained"), "the questions of several cards contain it, and no off-topic question does")
	require.False(t, lib.HasFieldTerm("my back hurts"))
	require.Zero(t, lib.UnknownShare("why is my sbatch job pending"))
	require.Zero(t, lib.UnknownShare("NCCL WARN fe80::ff nemo_zz v99"), "a name or a number may be new anywhere")
	require.Greater(t, lib.UnknownShare("how do I water a rhododendron"), lib.UnknownShare("how do I water a rhododendron on a GPU node under Slurm"))
	require.InDelta(t, 1, lib.UnknownShare("rhododendron"), 1e-9)
	require.Zero(t, lib.UnknownShare(""))
	require.Zero(t, lib.ForeignShare("why is my sbatch job pending"))
	require.Zero(t, lib.ForeignShare("how do I water a rhododendron"), "no off-topic question has the flower")
	require.Greater(t, lib.ForeignShare("sourdough in the oven"), lib.ForeignShare("sourdough in the oven while my sbatch job is pending"))
	require.Zero(t, lib.ForeignShare(""))
}

func TestMake(t *testing.T) {
	lib := library.Make([]cards.Card{{
		ID: "a", Title: lang.Text{EN: "Falcon scratch"}, Asks: []string{"where is scratch on falcon"}, Text: lang.Text{EN: "/falcon/scratch"},
	}, {ID: "b", Title: lang.Text{EN: "Contacts"}, Asks: []string{"who helps"}, Text: lang.Text{EN: "#gpu-help"}}})
	hits := lib.Index.Search("falcon scratch?", 5)
	require.NotEmpty(t, hits)
	require.Equal(t, 0, hits[0].Doc)
	require.False(t, lib.OffTopic(hits[0]))
	require.False(t, lib.OffTopic(index.Hit{Doc: 1}))
	require.True(t, lib.OffTopic(index.Hit{Doc: 2}), "no card is behind the last one")
}

// A command line that somebody copies has to start with a recent release, where
// --eval-interval has no default.
func TestCommandsToCopyGiveTheEvalInterval(t *testing.T) {
	length := regexp.MustCompile(`--train-(?:iters|samples) \d+`)
	for _, c := range library.BuiltIn().Cards {
		for _, text := range []string{c.Text.EN, c.Text.ZH} {
			if strings.Contains(text, "--mock-data") && length.MatchString(text) {
				require.Contains(t, text, "--eval-interval", c.Title.EN)
			}
		}
	}
}

// The rows of flags that take a value say its default, in one place only.
func TestRowsOfFlagsSayTheDefault(t *testing.T) {
	for id, want := range map[string][2]string{
		"flag.--muon-momentum":     {"; default 0.9", ";默认 0.9"},
		"flag.--muon-num-ns-steps": {"; default 5", ";默认 5"},
		"flag.--muon-tp-mode":      {"; default duplicated (blockwise up to 0.19.0)", ";默认 duplicated(0.19.0 及以前为 blockwise)"},
		"flag.--weight-decay":      {"default 0.01", "默认 0.01"}, // the row's own words
	} {
		c, ok := library.BuiltIn().Find(id)
		require.True(t, ok, id)
		require.Equal(t, 1, strings.Count(c.Text.EN, "default"), c.Text.EN)
		require.Contains(t, c.Text.EN, want[0])
		require.Contains(t, c.Text.ZH, want[1])
	}
	c, _ := library.BuiltIn().Find("flag.--muon-nesterov") // a switch
	require.NotContains(t, c.Text.EN, "default false")
}
