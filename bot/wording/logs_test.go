package wording

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/bot/answer"
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops/joblogs"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose"
)

const iterationLine = " [2026-11-20 12:00:01] iteration     1240/    5000 | consumed samples:        79360 | elapsed time per iteration (ms): 1923.4 |" +
	" throughput per GPU (TFLOP/s/GPU): 411.7 | learning rate: 1.500000E-04 | global batch size:    64 | lm loss: 2.314160E+00 | loss scale: 1.0 |" +
	" grad norm: 0.512 | number of skipped iterations:   0 | number of nan iterations:   0 |"

func TestAnIterationLineIsCondensedToWhatPeopleRead(t *testing.T) {
	t.Parallel()
	require.Equal(t, "iteration 1240/5000 · loss 2.314 · 1.92 s · 412 TFLOP/s/GPU · grad norm 0.512", shortIteration(iterationLine, lang.EN))
	require.Equal(t, "迭代 1240/5000 · 损失 2.314 · 1.92 s · 412 TFLOP/s/GPU · grad norm 0.512", shortIteration(iterationLine, lang.ZH))
	require.Equal(t, "> building datasets", shortIteration("> building datasets", lang.EN))
}

func TestLogsShowTheNewestLinesWithWhoWroteThem(t *testing.T) {
	t.Parallel()
	rank := 3
	o := joblogs.LogsOut{JobID: "4711"}
	for i := range 400 {
		o.Lines = append(o.Lines, diagnose.Line{File: "x.out", LineNo: i, Rank: &rank, Node: "gpu1", Text: fmt.Sprintf("line %d of them", i)})
	}
	o.Lines = append(
		o.Lines,
		diagnose.Line{File: "x.out", Rank: &rank, Text: "[rank3]: Traceback"},
		diagnose.Line{File: "x.out", Rank: &rank, Ranks: 8, Text: "[rank4]: of another"},
		diagnose.Line{File: "x.out", Text: iterationLine},
	)
	doc := logsDoc(o, lang.EN)
	r := answer.Render(doc, lang.EN)
	shown := string(answer.BlocksJSON(r.Messages[0]))
	require.Contains(t, shown, "rank 3 gpu1 │ line 399 of them\\nrank 3 │ Traceback\\n× 8 ranks │ [rank4]: of another\\nx.out │ iteration 1240/5000")
	require.Contains(t, string(answer.BlocksJSON(answer.Render(logsDoc(o, lang.ZH), lang.ZH).Messages[0])), "8 个 rank │ [rank4]")
	require.NotContains(t, shown, "line 1 of them")
	require.Contains(t, shown, "the newest")
	require.Len(t, r.Files, 1)
	require.Contains(t, r.Files[0].Content, "line 1 of them", "the file has them all")
	require.Less(t, strings.Index(shown, "line 398"), strings.Index(shown, "line 399"))
}
