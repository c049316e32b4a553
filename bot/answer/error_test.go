package answer

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/view"
)

// An error shows each of its parts, in the reader's language.
func TestAnErrorSaysWhatWouldWork(t *testing.T) {
	e := &ops.Error{
		Code: ops.BadInput, Field: "time", Message: lang.Text{EN: "no time", ZH: "没有时间"}, Fix: lang.Text{EN: "give one", ZH: "请给出"},
		More: []*ops.Error{{Message: lang.Text{EN: "no nodes", ZH: "没有节点"}}},
	}
	require.Equal(t, view.Doc{
		Title: "That does not work as typed", Tone: view.Bad, Sections: []view.Section{
			{Facts: []view.Fact{{Name: "Field", Value: "time"}, {Name: "Problem", Value: "no time"}, {Name: "What would work", Value: "give one"}}},
			{Facts: []view.Fact{{Name: "Problem", Value: "no nodes"}}},
		},
	}, Error(e, lang.EN))
	require.Equal(t, "输入有误", Error(e, lang.ZH).Title)
	require.Equal(t, "请给出", Error(e, lang.ZH).Sections[0].Facts[2].Value)
	require.Equal(t, "That failed", Error(&ops.Error{Code: "new"}, lang.EN).Title)
}

// Buttons below an answer are in its language, which a heading shows where the title is a name.
func TestAnAnswersLanguage(t *testing.T) {
	for want, docs := range map[lang.Lang][]view.Doc{
		lang.ZH: {{Title: "作业"}, {Title: "4711", Sections: []view.Section{{Heading: "节点"}}}},
		lang.EN: {{Title: "job"}, {Title: "4711", Sections: []view.Section{{Heading: "nodes"}}}, {}},
	} {
		for _, d := range docs {
			require.Equal(t, want, LanguageOfDoc(d), d.Title)
		}
	}
}

// What a workspace refuses is said by older blocks, within what one message holds; what is old already stays.
func TestPlainerBlocksSayTheSame(t *testing.T) {
	for drawn, want := range map[string]string{
		`[{"type":"divider"}]`: ``,
		`not json`:             ``,
		`[{"type":"container","title":{"text":"a"},"child_blocks":[{"type":"divider"},{"type":"context_actions"}]},{"type":"divider"}]`:  `[{"type":"header","text":{"text":"a"}},{"type":"divider"},{"type":"divider"}]`,
		`[{"type":"data_visualization","title":"loss","chart":{"series":[{"data":[]},{"data":[{"value":4},{"value":2},{"value":3}]}]}}]`: `[{"type":"context","elements":[{"type":"plain_text","text":"loss  4 → 3  █▁▄"}]}]`,
		`[{"type":"data_visualization","title":"flat","chart":{"series":[{"data":[{"value":4},{"value":4}]}]}}]`:                         `[{"type":"context","elements":[{"type":"plain_text","text":"flat  4 → 4  ▁▁"}]}]`,
		`[{"type":"table","rows":[[{"text":"node"}],[{"text":"gpu1"}]]}]`:                                                                `[{"type":"rich_text","elements":[{"type":"rich_text_preformatted","elements":[{"type":"text","text":"  node\n  gpu1 "}]}]}]`,
	} {
		plain, changed := Plainer(json.RawMessage(drawn))
		require.Equal(t, want != "", changed, drawn)
		if want == "" {
			require.Equal(t, drawn, string(plain))
			continue
		}
		require.JSONEq(t, want, string(plain))
	}
	require.JSONEq(t, `[{"type":"header","text":"a"},{"type":"divider"},{"type":"divider"}]`,
		string(Unfolded(json.RawMessage(`[{"type":"container","title":"a","child_blocks":[{"type":"divider"}]},{"type":"divider"}]`))))
}
