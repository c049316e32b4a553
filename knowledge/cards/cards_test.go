package cards_test

import (
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/knowledge/cards"
	"github.com/megatron-ops/megatron-ops/skills"
)

func TestCardsAreComplete(t *testing.T) {
	list, err := cards.Load(os.DirFS("data"))
	require.NoError(t, err)
	require.Greater(t, len(list), 1600)
	for _, c := range list {
		_, ok := skills.Get(c.Skill)
		require.True(t, ok, "%s: no skill %q", c.ID, c.Skill)
		require.LessOrEqual(t, len([]rune(c.Text.EN)), 1800, c.ID)
		if len([]rune(c.Text.ZH)) > 60 && !strings.HasPrefix(c.Text.ZH, "```") {
			require.Equal(t, lang.ZH, lang.Of(c.Text.ZH), "%s is not in Chinese", c.ID)
		}
		require.NotRegexp(t, `^(?:(?:No|Yes)[.:,]|Because )`, c.Text.EN, "%s does not stand alone", c.ID)
	}
}

// wholePages are pages without anchors, which many cards may share.
var wholePages = []string{
	"/elastic/run.html", "/job_reason_codes.html", "/analyzing-xid-catalog.html", "/torch_nccl_environment_variables.html",
	"/05-appendices/environment-variables.html",
}

// A card's URL is the page that states the fact: never the front page of a site or a
// repository, and never a page without anchor that many cards share. A URL of
// Megatron-LM's code names a commit and a line.
func TestURLsAreSpecific(t *testing.T) {
	list, err := cards.Load(os.DirFS("data"))
	require.NoError(t, err)
	shared := map[string]int{}
	for _, c := range list {
		if c.URL == "" {
			continue
		}
		u, err := url.Parse(c.URL)
		require.NoError(t, err, c.ID)
		require.Equal(t, "https", u.Scheme, c.ID)
		parts := strings.Split(strings.Trim(u.Path, "/"), "/")
		front := u.Fragment == "" && (u.Path == "" || u.Path == "/" || u.Host == "github.com" && len(parts) < 3)
		require.False(t, front, "%s: %s is a front page", c.ID, c.URL)
		if strings.Contains(u.Path, "/Megatron-LM/blob/") {
			require.Regexp(t, `/blob/[0-9a-f]{40}/`, u.Path, "%s: a branch moves, a commit does not", c.ID)
			require.True(t, !strings.HasSuffix(u.Path, ".py") || strings.HasPrefix(u.Fragment, "L"), "%s: which line of %s", c.ID, c.URL)
		}
		if strings.HasPrefix(c.URL, "https://slurm.schedmd.com/sbatch.html#OPT_") {
			require.NotRegexp(t, "^`[^`]+`: \\((?:squeue|sacct|scancel|sinfo)", c.Text.EN, "%s is no option of sbatch", c.ID)
			require.NotRegexp(t, `#OPT_(?:NCCL|TORCH|PYTORCH|CUDA|NVTE|HF|ENROOT|UV|OMP|GLOO)_`, c.URL, "%s is no variable of Slurm", c.ID)
		}
		if u.Fragment == "" {
			shared[c.URL]++
		}
	}
	for page, n := range shared {
		if !slices.ContainsFunc(wholePages, func(end string) bool { return strings.HasSuffix(page, end) }) {
			require.LessOrEqual(t, n, 13, "%d cards give %s as their source", n, page)
		}
	}
}

func TestIncompleteCardsAreRejected(t *testing.T) {
	for text, want := range map[string]string{
		"url: https://x.example\n\n## a | b | c\nask: q\nen: x\nzh: y\n": "is before the first card",
		"## a | b\n":                                "a card begins with",
		"## a | b | c\nen: x\nzh: y\n":              "ask or en is missing",
		"## a | b | c\nask: q\nzh: y\n":             "ask or en is missing",
		"## a | b | c\nask: q\nen: x\n":             "zh is missing",
		"## a | b | c\nask: q\nwhat is this\nen: x": "belongs to no field",
	} {
		_, err := cards.Load(fstest.MapFS{"x.md": {Data: []byte(text)}})
		require.ErrorContains(t, err, want)
		require.ErrorContains(t, err, "x.md")
	}
	one := "## a | b | c\nask: q | 问\nurl: https://x.example/y#z\nen: first\nsecond\nzh: 一\n"
	list, err := cards.Parse(one)
	require.NoError(t, err)
	require.Equal(t, []cards.Card{{
		ID: "a", Title: lang.Text{EN: "b", ZH: "c"}, URL: "https://x.example/y#z", Asks: []string{"q", "问"}, Text: lang.Text{EN: "first\nsecond", ZH: "一"},
	}}, list)
	_, err = cards.Load(fstest.MapFS{"x.md": {Data: []byte(one)}, "y.md": {Data: []byte(one)}})
	require.ErrorContains(t, err, "the id occurs twice")
}

func TestTableOfTerms(t *testing.T) {
	list, err := cards.Load(fstest.MapFS{"t.tsv": {Data: []byte(
		"# a comment\n#: kind = option\n#: skill = s\n#: url = https://x.example/p#{name}-{anchor}\n#: asks = what is {} | {} 是什么\n" +
			"--a_b\tone\t一\tmore | and more\n--c\ttwo\t二\t\thttps://y.example/own\n#: url\n--d\tthree\t三\n")}})
	require.NoError(t, err)
	require.Len(t, list, 3)
	require.Empty(t, list[2].URL)
	require.Equal(t, "option.--a_b", list[0].ID)
	require.Equal(t, "https://x.example/p#a_b---a-b", list[0].URL)
	require.Equal(t, []string{"what is --a_b", "--a_b 是什么", "more", "and more"}, list[0].Asks)
	require.Equal(t, "`--a_b`: one", list[0].Text.EN)
	require.Equal(t, "https://y.example/own", list[1].URL)
	_, err = cards.Load(fstest.MapFS{"t.tsv": {Data: []byte("a\tb\n")}})
	require.ErrorContains(t, err, "2 columns")
}
