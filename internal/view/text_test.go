package view

import (
	"strings"
	"testing"

	"charm.land/lipgloss/v2"
	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
)

func draw(d Doc, s Style) string {
	var b strings.Builder
	_ = Text(&b, d, s)
	return b.String()
}

func TestTextAlignsChinese(t *testing.T) {
	got := draw(Doc{
		Title: "作业 4711",
		Sections: []Section{
			{Facts: []Fact{{"状态", "RUNNING"}, {"time", "1:00"}}},
			{Table: &Table{Header: []string{"节点", "state"}, Rows: [][]string{{"gpu1", "idle"}}}},
		},
		Next: []string{"logs 4711"},
	}, Style{Program: "megatron-ops", Next: "next:"})
	require.Equal(t, `作业 4711
  状态  RUNNING
  time  1:00
  节点  state
  gpu1  idle

next: megatron-ops logs 4711
`, got)
}

// A full-width colon includes its own space.
func TestCommandsBehindAFullWidthColon(t *testing.T) {
	got := draw(Doc{Next: []string{"logs 4711"}}, Style{Program: "megatron-ops", Next: "下一步："})
	require.Equal(t, "下一步：megatron-ops logs 4711\n", got)
}

func TestATitlesColourSaysHowItWent(t *testing.T) {
	for tone, begin := range map[Tone]string{Plain: "\x1b[1m", Good: "\x1b[1;32m", Warn: "\x1b[1;33m", Bad: "\x1b[1;31m"} {
		require.Equal(t, begin+"作业 4711\x1b[m\n", draw(Doc{Title: "作业 4711", Tone: tone}, Style{Color: true}))
		require.Equal(t, "作业 4711\n", draw(Doc{Title: "作业 4711", Tone: tone}, Style{}))
	}
	folded := Doc{Sections: []Section{{Heading: "notes", Fold: true, Items: []string{"one"}}}}
	require.Equal(t, "\x1b[2mnotes: 1\x1b[m\n", draw(folded, Style{Color: true, Folded: "%s: %d"}))
}

func TestTextShowsControlCharactersInsteadOfObeying(t *testing.T) {
	got := draw(Doc{Sections: []Section{{Code: "a\x1b[2Jb\u202ec"}}}, Style{})
	require.NotContains(t, got, "\x1b")
	require.NotContains(t, got, "\u202e")
	require.Contains(t, got, "b")
}

func TestNoLineIsWiderThanAskedFor(t *testing.T) {
	for _, s := range []string{"this submits hello to slurm: 1 node, 2 GPUs, time limit 00:05:00", "若各节点确实可见，请写入站点配置的目录；PATH 中没有 sbatch，也没有指定集群：不会提交。", "`--load /lustre/alice/run` 与 2×8 张 GPU（共 16 张）"} {
		for width := narrowest; width < 70; width++ {
			got := wrap(s, width)
			require.LessOrEqual(t, lipgloss.Width(got), width, got)
			require.Equal(t, strings.ReplaceAll(s, " ", ""), strings.NewReplacer(" ", "", "\n", "").Replace(got))
		}
	}
}

func TestTextFitsTheTerminal(t *testing.T) {
	d := Doc{
		Title: "a title of somewhat greater length", Sections: []Section{
			{Facts: []Fact{{"field", "--global-batch-size has a value"}, {"path", "/lustre/alice/checkpoints/run"}}},
			{Items: []string{"一个中文句子会按两列宽度换行", "wrong\n      try: as far in as it began"}},
			{Table: &Table{Header: []string{"job", "user", "state", "where"}, Rows: [][]string{{"4711", "alice", "RUNNING", "gpu[1-20]"}}, Spare: []int{1}}},
			{Code: "code stays as long as it is, whatever the terminal"},
		},
	}
	require.Equal(t, `a title of somewhat
  greater length
  field  --global-batch-size
         has a value
  path   /lustre/alice/
         checkpoints/run
  - 一个中文句子会按两列宽度
    换行
  - wrong
          try: as far in as
          it began
  job   state    where
  4711  RUNNING  gpu[1-20]
  code stays as long as it is, whatever the terminal
`, draw(d, Style{Width: 28}))
	d = Doc{Sections: []Section{{Table: &Table{Header: []string{"job", "where"}, Rows: [][]string{{"4711", strings.Repeat("x", 40)}}}}}}
	require.Equal(t, "  job   where\n  4711  "+strings.Repeat("x", 22)+"\n        "+strings.Repeat("x", 18)+"\n", draw(d, Style{Width: 30}))
	require.Contains(t, draw(d, Style{}), strings.Repeat("x", 40), "a pipe has any width")
	d = Doc{Sections: []Section{{Table: &Table{Header: []string{"run", "tokens/s/GPU", "loss", "remaining"}, Rows: [][]string{{"gpt-8b 12", "", "6.1", "00:12:13"}}, Spare: []int{1, 3}}}}}
	require.Equal(t, "  run        loss  remaining\n  gpt-8b 12  6.1   00:12:13\n", draw(d, Style{Width: 30}), "what holds nothing goes first")
	require.Contains(t, draw(d, Style{Width: 60}), "tokens/s/GPU")
}

// A character after which a line is broken stays within the width, a percent sign stays
// with its number, and a heading is whole if another column can give space.
func TestWrappedLinesKeepTheirWidth(t *testing.T) {
	for _, tt := range []struct {
		s     string
		width int
		want  string
	}{
		{"TP 4, PP 4, VPP 10", 10, "TP 4, PP\n4, VPP 10"},
		{"known, and more", 5, "know\nn,\nand\nmore"},
		{"气泡多了，时间多了", 8, "气泡多\n了，时间\n多了"},
		{"gpt-8b-fp8_run-0042", 9, "gpt-8b-\nfp8_run-\n0042"},
		{"less time: 3.6 % of it", 14, "less time:\n3.6 % of it"},
	} {
		require.Equal(t, tt.want, wrap(tt.s, tt.width))
	}
	table := &Table{Header: []string{"layout", "microbatches", "what"}, Rows: [][]string{{"TP 4, PP 4, VPP 10", "8", strings.Repeat("x ", 12)}}}
	require.Contains(t, draw(Doc{Sections: []Section{{Table: table}}}, Style{Width: 40}), "  microbatches  what")
}

// A name that is too long for its column is shown whole, on its own line above the row.
func TestANarrowTableBreaksNoName(t *testing.T) {
	rows := [][]string{{"qwen3-235b-a22b", "h100", "TP2 PP8 VP4 EP32"}, {"", "b200", "TP1 PP8"}, {"nemotron4-15b", "", ""}, {"qwen3-8b", "h100", "TP1 PP1"}}
	d := Doc{Sections: []Section{{Table: &Table{Header: []string{"model", "GPU", "layout"}, Rows: rows}}}}
	require.Equal(t, `  model       GPU   layout
  qwen3-235b-a22b
              h100  TP2 PP8
                    VP4 EP32
              b200  TP1 PP8
  nemotron4-15b
  qwen3-8b    h100  TP1 PP1
`, draw(d, Style{Width: 30}))
	require.Contains(t, draw(d, Style{Width: 80}), "\n  qwen3-235b-a22b  h100  TP2 PP8 VP4 EP32\n")
}

// Where not even the narrowest columns fit, a row becomes a list; a value goes below a
// name that leaves no room beside it; and a chart has a narrow form.
func TestATerminalTooNarrowForATable(t *testing.T) {
	rows := [][]string{{"qwen3-8b", "h100", "8192", "3.1", ""}, {"", "b200", "128", "9.4", "with fp8 throughout"}}
	d := Doc{Sections: []Section{
		{Table: &Table{Header: []string{"model", "GPU", "GPUs", "seconds", "note"}, Rows: rows}},
		{Facts: Facts{{"--overlap-param-gather", "one value\nits reason is longer than that"}}},
		{Code: "wide " + strings.Repeat("x", 30), Narrow: "narrow"},
		{Heading: "the reasons for that", Items: []string{"1"}, Fold: true},
	}}
	require.Equal(t, `  - qwen3-8b
    GPU  h100
    GPUs  8192
    seconds  3.1
  - GPU  b200
    GPUs  128
    seconds  9.4
    note  with fp8
    throughout
  --overlap-param-gather
    one value
    its reason is longer
    than that
  narrow

the reasons for that: 1
(-v shows them)
`, draw(d, Style{Width: 26, Folded: Unfold.EN}))
	wide := draw(d, Style{Width: 80})
	require.Contains(t, wide, "  qwen3-8b  h100  8192")
	require.Contains(t, wide, "wide xxx")
}

// A column becomes narrower than ten characters only if that breaks none of its words.
func TestANarrowTableBreaksNoWordOfACell(t *testing.T) {
	rows := [][]string{{"qwen3-8b", "blockwise", "TP1 PP1 MBS2", "1024"}, {"", "fp8", "TP2 VP4", "32"}}
	d := Doc{Sections: []Section{{Table: &Table{Header: []string{"model", "type", "layout", "GBS"}, Rows: rows}}}}
	require.Equal(t, `  model     type       layout   GBS
  qwen3-8b  blockwise  TP1 PP1  1024
                       MBS2
            fp8        TP2 VP4  32
`, draw(d, Style{Width: 36}))
	require.Empty(t, draw(Doc{Sections: []Section{{Table: &Table{}}}}, Style{Width: 38}))
}

// Chat text is broken only at blanks and between Chinese characters, so that a path can
// be copied as it is.
func TestProseBreaksNoWord(t *testing.T) {
	for _, tt := range []struct {
		lead, s string
		width   int
		want    string
	}{
		{"", "the last words of a sentence", 12, "the last\nwords of a\nsentence"},
		{"", "the last words of a sentence", 0, "the last words of a sentence"},
		{"  • ", "load /lustre/alice/run now\nand then", 14, "  • load\n    /lustre/alice/run\n    now\n    and then"},
		{"", "  • one two three\n• four five six", 14, "  • one two\n    three\n• four five\n  six"},
		{"", "请输入命令或问题；exit 退出。", 12, "请输入命令或\n问题；exit\n退出。"},
	} {
		require.Equal(t, tt.want, Prose(tt.lead, tt.s, tt.width))
	}
}

func TestTextFoldsOnlyLists(t *testing.T) {
	d := Doc{Sections: []Section{
		{Heading: "notes", Items: []string{"one", "two"}, Fold: true},
		{Heading: "script", Code: "true", Fold: true},
		{Heading: "errors", Items: []string{"three"}},
	}}
	require.Equal(t, "notes: 2, -v\n\nscript\n  true\n\nerrors\n  - three\n", draw(d, Style{Folded: "%s: %d, -v"}))
	require.Contains(t, draw(d, Style{}), "  - two\n")
}

func TestBehindALeadTextIsWrappedBetweenWords(t *testing.T) {
	require.Equal(t, "megatron-ops: one line\n", Behind("megatron-ops: ", "one line", 0))
	require.Equal(t, "try: give one of uv, python,\n     --gpus-per-node\n", Behind("try: ", "give one of uv, python, --gpus-per-node", 28))
	require.Equal(t, "建议：请给出一个可\n      读的文件\n", Behind("建议：", "请给出一个可读的文件", 18))
	require.Equal(t, "a lead that takes all: one two\n", Behind("a lead that takes all: ", "one two", 24), "too narrow to wrap")
}

func TestWhatIsEmptyIsNotAdded(t *testing.T) {
	var d Doc
	d.Add(Section{Heading: "nothing"}, Section{Heading: "rows", Table: &Table{Header: []string{"a"}}}, Section{Heading: "one", Items: []string{"x"}})
	require.Equal(t, []Section{{Heading: "one", Items: []string{"x"}}}, d.Sections)
	var facts Facts
	facts.Add(lang.ZH, "page", "网页", "")
	facts.Add(lang.ZH, "page", "网页", "https://x")
	require.Equal(t, Facts{{"网页", "https://x"}}, facts)
}

func TestBarsAreAsHighAsTheirValues(t *testing.T) {
	t.Parallel()
	require.Equal(t, "▁▂▃▄▅▆▇█", Bars([]float64{0, 1, 2, 3, 4, 5, 6, 7}))
	require.Equal(t, "▁▁", Bars([]float64{3, 3}))
	require.Equal(t, "█▁▄", Bars([]float64{-2, -10, -6}))
	require.Empty(t, Bars(nil))
}
