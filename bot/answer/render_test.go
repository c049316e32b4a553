package answer

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/slack-go/slack"
	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/bot/slacktest"
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/view"
)

func Raw(t testing.TB, bs []slack.Block) []byte {
	t.Helper()
	b, err := json.Marshal(slack.Blocks{BlockSet: bs})
	require.NoError(t, err)
	return b
}

// hostile is what a job's name, a log line or a model's answer may contain.
var hostile = []string{
	"<https://evil.example/steal?x=1|megatron docs>", "```\nend of code", "*bold* _it_ ~no~ `tick`", "&lt;!channel&gt;", "\x1b[31mred\x1b[0m \x1b]8;;https://evil.example\x07click\x1b]8;;\x07",
	"abc\u202edef", "nul\x00byte", "bad \xff\xfe utf8", "https://evil.example/a?b=c", "@channel @here", strings.Repeat("x", 5000), "", " ", "\n\n",
}

func hostileDoc(s string) view.Doc {
	return view.Doc{
		Title: s, Tone: view.Bad, Next: []string{"status " + s, "logs 4711"},
		Sections: []view.Section{
			{Heading: s, Text: s},
			{Facts: []view.Fact{{Name: s, Value: s}, {Name: "n", Value: s}}},
			{Table: &view.Table{Header: []string{"a", s}, Rows: [][]string{{s, s}, {"", "x"}}}},
			{Items: []string{s, "x"}},
			{Code: s, Lang: "log"},
			{Code: s, Fold: true},
		},
	}
}

func TestStrangersTextIsInert(t *testing.T) {
	t.Parallel()
	for _, s := range hostile {
		r := Render(hostileDoc(s), lang.EN)
		for _, bs := range r.Messages {
			b := Raw(t, bs)
			require.Empty(t, slacktest.CheckBlocks(b, slacktest.InMessage), "%q", s)
			var v any
			require.NoError(t, json.Unmarshal(b, &v))
			eachString(v, func(key, got string) {
				require.NotRegexp(t, `<[!@#]`, got, "%q in %s", s, key)
				require.NotContains(t, got, "\x1b")
				require.NotContains(t, got, "\u202e")
			})
			require.NotContains(t, string(b), `"type":"mrkdwn"`)
			require.NotContains(t, string(b), `"type":"broadcast"`)
			require.NotContains(t, string(b), `"url":"https://evil`)
		}
		require.NotRegexp(t, `<[!@#h]`, r.Text)
	}
}

func eachString(v any, f func(key, s string)) {
	switch v := v.(type) {
	case []any:
		for _, x := range v {
			eachString(x, f)
		}
	case map[string]any:
		for k, x := range v {
			if s, ok := x.(string); ok {
				f(k, s)
				continue
			}
			eachString(x, f)
		}
	}
}

func TestSecretsAreNotShown(t *testing.T) {
	t.Parallel()
	secret := "export WANDB_API_KEY=0123456789abcdef0123456789abcdef01234567\nexport HF_TOKEN=hf_abcdefghijklmnopqrstuvwxyzABCDEF\n"
	long := strings.Repeat("a line of the script\n", 300)
	r := Render(
		view.Doc{
			Title:    secret,
			Sections: []view.Section{{Text: secret, Code: secret + long}, {Items: []string{secret}, Facts: []view.Fact{{Name: "env", Value: secret}}}},
		},
		lang.EN,
	)
	all := r.Text
	for _, bs := range r.Messages {
		all += string(Raw(t, bs))
	}
	for _, f := range r.Files {
		all += f.Content
	}
	require.NotContains(t, all, "0123456789abcdef0123456789abcdef01234567")
	require.NotContains(t, all, "hf_abcdefghijklmnopqrstuvwxyz")
}

func TestLongAnswersStayWithinSlacksLimits(t *testing.T) {
	t.Parallel()
	long := view.Doc{Title: strings.Repeat("long ", 100)}
	for i := range 120 {
		long.Sections = append(long.Sections, view.Section{Heading: fmt.Sprint("part ", i), Text: strings.Repeat("word ", 300)})
	}
	wide := view.Doc{Sections: []view.Section{
		{Table: &view.Table{Header: make([]string, 30)}},
		{Table: &view.Table{Header: []string{"a"}, Rows: [][]string{{"b"}}}},
	}}
	for i := range 500 {
		row := make([]string, 30)
		for j := range row {
			row[j] = fmt.Sprint("cell ", i, " ", j)
		}
		wide.Sections[0].Table.Rows = append(wide.Sections[0].Table.Rows, row)
	}
	log := view.Doc{Sections: []view.Section{{Code: strings.Repeat("a line of a log\n", 5000), Lang: "log", Fold: true}}}
	oneLine := view.Doc{Sections: []view.Section{{Code: strings.Repeat("字", 100_000)}}}
	items := view.Doc{Sections: []view.Section{{Items: strings.Split(strings.Repeat("item,", 2000), ",")}}}
	facts := view.Doc{Sections: []view.Section{{Facts: make([]view.Fact, 500)}}}
	for name, d := range map[string]view.Doc{"sections": long, "table": wide, "log": log, "one line": oneLine, "items": items, "facts": facts, "nothing": {}} {
		r := Render(d, lang.ZH)
		require.LessOrEqual(t, len(r.Messages), maxParts, name)
		for _, bs := range r.Messages {
			require.Empty(t, slacktest.CheckBlocks(Raw(t, bs), slacktest.InMessage), name)
		}
		require.LessOrEqual(t, utf8.RuneCountInString(r.Text), 3000)
	}
	require.Len(t, Render(log, lang.EN).Files, 1)
	require.Equal(t, 5000, strings.Count(Render(log, lang.EN).Files[0].Content, "\n"), "the file holds all of it")
	require.NotEmpty(t, Render(long, lang.EN).Files, "what does not fit is in a file")
}

func TestOnlyKnownDocumentsAreLinked(t *testing.T) {
	t.Parallel()
	d := view.Doc{Sections: []view.Section{{Text: "see https://docs.nvidia.com/megatron-core, or https://docs.nvidia.com.evil.example/x and http://github.com/x"}}}
	b := string(Raw(t, Blocks(d, lang.EN)))
	require.Contains(t, b, `"url":"https://docs.nvidia.com/megatron-core"`)
	require.Equal(t, 1, strings.Count(b, `"type":"link"`))

	d = view.Doc{Sections: []view.Section{{Text: "https://slurm.schedmd.com/sbatch.html and https://me@github.com/x or https://github.com:8443/x"}}}
	b = string(Raw(t, Blocks(d, lang.EN)))
	require.Contains(t, b, `"url":"https://slurm.schedmd.com/sbatch.html"`)
	require.Equal(t, 1, strings.Count(b, `"type":"link"`))
	require.NotContains(t, b, `"text":""`, "Slack refuses an empty text before a link")
}

func TestButtonsOfferOnlyWhatSlackCanRun(t *testing.T) {
	t.Parallel()
	b := NextButtons([]string{"submit -f job.yaml", "status JOB", "megatron-ops status 4711", "unknown 4711", "logs 4711 --tail 20", "diagnose <job>"}, lang.EN)
	require.NotNil(t, b)
	got := string(Raw(t, []slack.Block{b}))
	require.Contains(t, got, `"value":"status 4711"`)
	require.Contains(t, got, `"value":"logs 4711 --tail 20"`)
	require.NotContains(t, got, "job.yaml")
	require.NotContains(t, got, "unknown")
	require.NotContains(t, got, "JOB")
}

func FuzzAnyTextGivesBlocksThatSlackTakes(f *testing.F) {
	for _, s := range hostile {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		r := Render(hostileDoc(s), lang.EN)
		for _, bs := range r.Messages {
			if found := slacktest.CheckBlocks(Raw(t, bs), slacktest.InMessage); len(found) > 0 {
				t.Fatalf("%q: %v", s, found)
			}
		}
	})
}

// A notification shows one line: a title that is a sentence takes no colon, and an address that
// nobody can follow there is left out.
func TestANotificationIsOneReadableLine(t *testing.T) {
	t.Parallel()
	page := view.Section{Facts: []view.Fact{{Name: "page", Value: "https://ops.example.org/web/jobs/prod/7"}}}
	why := view.Section{Facts: []view.Fact{{Name: "Reason", Value: "too long"}}}
	for want, doc := range map[string]view.Doc{
		"gpt submitted to prod as job 7":       {Title: "gpt submitted to prod as job 7", Sections: []view.Section{page}},
		"Declined. Nothing was done. too long": {Title: "Declined. Nothing was done.", Sections: []view.Section{why}},
		"Not allowed: too long":                {Title: "Not allowed", Sections: []view.Section{why}},
	} {
		require.Equal(t, want, summary(doc))
	}
}
