package wording

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops/joblogs"
	"github.com/megatron-ops/megatron-ops/internal/ops/launch"
	"github.com/megatron-ops/megatron-ops/internal/view"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/report"
)

// Why names the cause with as much of its place as is known.
func TestWhyNamesThePlace(t *testing.T) {
	t.Parallel()
	rank, node, none := 3, "gpu4", ""
	for _, c := range []struct {
		r      report.Report
		en, zh string
	}{
		{report.Report{Class: "cuda_oom", RootRank: &rank, RootNode: &node}, "GPU out of memory, rank 3 on gpu4", "GPU 显存不足，gpu4 上的 rank 3"},
		{report.Report{Class: "cuda_oom", RootRank: &rank, RootNode: &none}, "GPU out of memory, rank 3", "GPU 显存不足，rank 3"},
		{report.Report{Class: "cuda_oom", RootRank: &rank}, "GPU out of memory, rank 3", "GPU 显存不足，rank 3"},
		{report.Report{Class: "cuda_oom", RootNode: &node}, "GPU out of memory, on gpu4", "GPU 显存不足，节点 gpu4"},
		{report.Report{Class: "cuda_oom", RootNode: &none}, "GPU out of memory", "GPU 显存不足"},
		{report.Report{Class: "of another kind"}, "of another kind", "of another kind"},
		{report.Report{Class: outcome.Success, RootRank: &rank}, "", ""},
		{report.Report{Class: outcome.Running, RootRank: &rank}, "", ""},
	} {
		require.Equal(t, []string{c.en, c.zh}, []string{Why(c.r, lang.EN), Why(c.r, lang.ZH)})
	}
	require.Equal(t, "GPU out of memory (cuda_oom)", CauseWords("cuda_oom", lang.EN))
	require.Equal(t, "cause not known", CauseWords("", lang.EN))
}

// A diagnosis starts with the cause and its lines, says what to do, and folds the rest.
func TestADiagnosisBeginsWithTheCause(t *testing.T) {
	t.Parallel()
	rank, line, node := 3, 812, "gpu4"
	d := joblogs.DiagnoseOut{Report: report.Report{
		Class: "cuda_oom", RootRank: &rank, RootNode: &node, RootFile: "x.out", RootLineNo: &line, RootLine: "[rank3]: torch.OutOfMemoryError: CUDA out of memory.",
		Summary: "GPU out of memory on rank 3. The model did not fit.", Advice: []string{"Lower the micro-batch."}, Attempts: 1,
		Stacks: []report.StackGroup{{Ranks: []int{3}, Frames: []string{"forward"}}},
	}, FixUnknown: "the cluster does not answer"}
	doc := Diagnosis(d, lang.EN)
	require.Equal(t, "GPU out of memory, rank 3 on gpu4", doc.Title)
	var shown, folded []string
	for _, s := range doc.Sections {
		if s.Fold {
			folded = append(folded, s.Heading)
		} else {
			shown = append(shown, s.Heading+s.Text+s.Code)
			require.Empty(t, folded, "what is folded comes last")
		}
	}
	require.Len(t, shown, 3)
	require.Equal(t, "Seen in the logrank 3 · x.out:812 │ torch.OutOfMemoryError: CUDA out of memory.", shown[0])
	require.Equal(t, "What to do", shown[1])
	require.Equal(t, "No change is offered: the cluster does not answer", shown[2])
	require.Equal(t, []string{"Class, who acts, retry", "Stacks, smallest group first"}, folded)
	for _, s := range doc.Sections {
		require.NotEqual(t, d.RootLine, s.Code, "the line is shown once")
	}
	fine := Diagnosis(joblogs.DiagnoseOut{Report: report.Report{Class: outcome.Success, Summary: "The job completed."}}, lang.EN)
	require.NotEmpty(t, fine.Title)
	require.NotContains(t, fine.Title, "out of")
}

// A first sentence that repeats the title is left out, another one is not.
func TestTheTitleIsNotSaidTwice(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"GPU out of memory on rank 3. The model did not fit.": "The model did not fit.",
		"gpu out of memory.":                        "",
		"The model did not fit. GPU out of memory.": "The model did not fit. GPU out of memory.",
		"GPU out of memory after the optimizer's state had been moved to the device again. So.": "GPU out of memory after the optimizer's state had been moved to the device again. So.",
		"": "",
	} {
		require.Equal(t, want, withoutTitle(text, "cuda_oom", lang.EN), text)
	}
	require.Equal(t, "模型放不下。", withoutTitle("rank 3 GPU 显存不足。模型放不下。", "cuda_oom", lang.ZH))
}

// The lines that show a cause are few, each once, behind their place, without the mark
// that says the rank again.
func TestEvidenceIsAFewLines(t *testing.T) {
	t.Parallel()
	one, two, no := 1, 2, 10
	r := report.Report{RootFile: "a.out", RootLineNo: &no, RootRank: &one, RootLine: "[rank1]: the root", Evidence: []report.Evidence{
		{File: "a.out", LineNo: 10, Rank: &one, Text: "  [rank1]: the root "},
		{File: "a.out", LineNo: 11, Text: " "},
		{File: "b.out", LineNo: 12, Rank: &two, Text: "[rank1]: of another"},
		{File: "c.out", LineNo: 13, Text: "[rank1]: of nobody"},
		{File: "d.out", LineNo: 14, Rank: &one, Text: "[default1]: marked"},
		{File: "e.out", LineNo: 15, Text: "one too many"},
	}}
	require.Equal(t, "rank 1 · a.out:10 │ the root\nrank 2 · b.out:12 │ [rank1]: of another\nc.out:13 │ [rank1]: of nobody\nrank 1 · d.out:14 │ marked", evidence(r, lang.EN))
	require.Empty(t, evidence(report.Report{RootLine: "of no line"}, lang.EN))
}

// What a button changes is advised once: beside the button.
func TestAChangeIsAdvisedOnce(t *testing.T) {
	t.Parallel()
	fix := &launch.SpecPatch{Changes: []string{"--micro-batch-size: 2 → 1", "env：X"}}
	sections := []view.Section{
		{Heading: "What to do", Items: []string{"Lower --micro-batch-size.", "Free memory."}},
		{Heading: "Only that", Items: []string{"Lower --micro-batch-size."}},
		{Heading: "Accepted", Items: fix.Changes},
		{Items: []string{"set env"}},
		{Heading: "Facts", Facts: []view.Fact{{Name: "a", Value: "b"}}},
		{Heading: "Code", Code: "x"},
		{Heading: "Text", Text: "x"},
		{Heading: "Table", Table: &view.Table{}},
	}
	got := changeOnce(sections, fix)
	var heads []string
	for _, s := range got {
		heads = append(heads, s.Heading)
	}
	require.Equal(t, []string{"What to do", "Accepted", "", "Facts", "Code", "Text", "Table"}, heads)
	require.Equal(t, []string{"Free memory."}, got[0].Items)
	require.Equal(t, fix.Changes, got[1].Items)
	require.Empty(t, got[2].Items)
	require.Equal(t, sections, changeOnce(sections, nil))
	require.Len(t, sections[0].Items, 2, "what was given is as it was")
	require.Equal(t, []string{"Free memory."}, changeOnce(sections[:1], &launch.SpecPatch{Changes: []string{": odd", "--micro-batch-size"}})[0].Items)
}
