package answer

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/view"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// drawnDocs are documents of every shape that operations return.
var drawnDocs = []struct {
	name string
	doc  view.Doc
}{
	{"a title alone", view.Doc{Title: "no job waits"}},
	{"nothing", view.Doc{}},
	{"facts and what comes next", view.Doc{
		Title: "gpt", Tone: view.Good, Sections: []view.Section{{Facts: []view.Fact{{Name: "state", Value: "RUNNING"}, {Name: "nodes", Value: "gpu[1-2]"}, {Name: "log", Value: "/w/a\n/w/b"}}}},
		Next: []string{"logs 77", "priority 77", "status 77 --earlier", "help submit", "help", "nonsense 77"},
	}},
	{"prose with an address and markup", view.Doc{Title: "see https://example.org/x", Tone: view.Bad, Sections: []view.Section{{Heading: "why", Text: "a `code` and *stars* <@U1> & more\n\nsecond"}, {Items: []string{"one", "two\n  inner"}}}}},
	{"a table", view.Doc{Title: "2 jobs", Sections: []view.Section{{Table: &view.Table{Header: []string{"job", "state"}, Rows: [][]string{{"1", "RUNNING"}, {"2", "PENDING"}}}}}}},
	{"two tables", view.Doc{Sections: []view.Section{
		{Heading: "here", Table: &view.Table{Header: []string{"a"}, Rows: [][]string{{"1"}}}}, {Heading: "there", Table: &view.Table{Header: []string{"b"}, Rows: [][]string{{"2"}}}},
	}}},
	{"code that a file holds", view.Doc{Title: "script", Sections: []view.Section{{Code: strings.Repeat("echo hello\n", 400), Lang: "bash"}, {Code: "a: 1\n", Lang: "yaml"}, {Code: strings.Repeat("line\n", 900), Lang: "log"}}}},
	{"folded sections", view.Doc{Title: "why", Sections: []view.Section{
		{Text: "open"},
		{Heading: "evidence", Fold: true, Text: "closed"},
		{Fold: true, Text: "closed without a heading"},
		{Heading: "only a heading", Fold: true},
		{Heading: "table", Fold: true, Table: &view.Table{Header: []string{"x"}, Rows: [][]string{{"1"}}}},
	}}},
	{"in Chinese", view.Doc{Title: "没有作业", Sections: []view.Section{{Facts: []view.Fact{{Name: "状态", Value: "运行中"}}, Items: []string{"第一项"}}}, Next: []string{"list"}}},
}

// How an answer is drawn is pinned, a block a line: for workspaces that take newer
// blocks, for those that do not, and as plain text.
func TestAnswersAreDrawnAsTheyAre(t *testing.T) {
	var b strings.Builder
	lines := func(head string, raw json.RawMessage) {
		if len(raw) == 0 {
			return
		}
		var list []json.RawMessage
		require.NoError(t, json.Unmarshal(raw, &list))
		for _, block := range list {
			fmt.Fprintf(&b, "%s %s\n", head, block)
		}
	}
	for _, c := range drawnDocs {
		for _, l := range []lang.Lang{lang.EN, lang.ZH} {
			r := Render(c.doc, l)
			fmt.Fprintf(&b, "=== %s, %s: %s\n", c.name, l, r.Text)
			for _, m := range r.Messages {
				lines("new", BlocksJSON(m))
				if older, changed := Plainer(BlocksJSON(m)); changed {
					lines("old", older)
				}
				if drawn := BlocksJSON(m); strings.Contains(string(drawn), `"type":"container"`) {
					lines("open", Unfolded(drawn))
				}
			}
			for _, f := range r.Files {
				fmt.Fprintf(&b, "file %s %q, %d characters\n", f.Name, f.Title, len(f.Content))
			}
		}
		fmt.Fprintf(&b, "plain %q\n", plain(c.doc))
	}
	const golden = "testdata/drawn.golden"
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(golden, []byte(b.String()), 0o644))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	require.Equal(t, strings.Split(string(want), "\n"), strings.Split(b.String(), "\n"), "run go test ./bot/answer -update and read the difference")
}

// What a person filled in comes back as it is, without what would drive a terminal or
// reorder text.
func TestWhatIsFilledInStaysVisible(t *testing.T) {
	for given, want := range map[string]string{
		"a\tb\nc": "a\tb\nc", "a\x00\x1f\x7f\u0085b": "ab", "a\u00a0b~": "a\u00a0b~", "\x1b[31mred\x1b[0m": "red", "a\xffb": "a\ufffdb",
		"a\u202eb\u2066c\u200e\u200fd\u2069e\u202af": "a\ufffdb\ufffdc\ufffd\ufffdd\ufffde\ufffdf", "\u202f\u2065\u206a\u200d": "\u202f\u2065\u206a\u200d",
	} {
		require.Equal(t, want, Visible(given), "%q", given)
	}
}

// A workspace without charts gets a curve as a row of bars.
func TestACurveIsARowOfBars(t *testing.T) {
	series := func(values ...float64) map[string]any {
		data := []any{}
		for _, v := range values {
			data = append(data, map[string]any{"value": v})
		}
		return map[string]any{"data": data}
	}
	for want, chart := range map[string][]any{
		"loss  2.5 → 1.25  █▁":           {series(2.5, 1.25)},
		"loss  2.5 → 1.25  █▁, 3 → 3  ▁": {series(2.5, 1.25), series(3)},
		"loss  3 → 3  ▁":                 {series(), series(3)}, // a run that has no number yet
		"loss  ":                         {},
	} {
		require.Equal(t, want, ChartLine(map[string]any{"title": "loss", "chart": map[string]any{"series": chart}}))
	}
}
