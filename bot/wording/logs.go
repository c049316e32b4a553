package wording

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops/joblogs"
	"github.com/megatron-ops/megatron-ops/internal/view"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose"
	"github.com/megatron-ops/megatron-ops/slurm/metrics"
)

var (
	textLogsOf = lang.Text{EN: "Log of %s, newest last", ZH: "%s 的日志，最新的在最后"}
	textRanks  = lang.Text{EN: "× %d ranks", ZH: "%d 个 rank"}
)

// logsDoc draws a job's log lines for a chat: each follows its rank and node, and Megatron's
// long line about an iteration is reduced to a few numbers.
func logsDoc(o joblogs.LogsOut, l lang.Lang) view.Doc {
	if len(o.Lines) == 0 {
		return o.View(l)
	}
	var b strings.Builder
	for _, line := range o.Lines {
		b.WriteString(lineSource(line, l) + " │ " + shortIteration(withoutRankMark(line.Text, line.Rank), l) + "\n")
	}
	return view.Doc{
		Title:    fmt.Sprintf(textLogsOf.In(l), o.JobID),
		Sections: []view.Section{{Code: b.String(), Lang: "log"}},
		Next:     []string{"diagnose " + string(o.JobID)},
	}
}

// lineSource says which rank wrote a line and on which node, or which file it is in where the
// rank is unknown.
func lineSource(line diagnose.Line, l lang.Lang) string {
	who := line.File
	switch {
	case line.Ranks > 1:
		who = fmt.Sprintf(textRanks.In(l), line.Ranks)
	case line.Rank != nil:
		who = "rank " + strconv.Itoa(*line.Rank)
	}
	if line.Node != "" {
		who += " " + line.Node
	}
	return who
}

// shortIteration reduces Megatron's line about an iteration to the numbers that people read, and
// returns any other line unchanged.
func shortIteration(text string, l lang.Lang) string {
	if !strings.Contains(text, "elapsed time per iteration") {
		return text
	}
	run, err := metrics.ReadFrom("line", strings.NewReader(text+"\n"), "")
	if err != nil || len(run.Iterations) != 1 {
		return text
	}
	it := run.Iterations[0]
	said := lang.Text{EN: "iteration", ZH: "迭代"}.In(l) + " " + strconv.Itoa(it.N)
	if run.Of > 0 {
		said += "/" + strconv.Itoa(run.Of)
	}
	add := func(name string, v *float64, format string) {
		if v != nil {
			said += " · " + fmt.Sprintf(format, name, *v)
		}
	}
	add(lang.Text{EN: "loss", ZH: "损失"}.In(l), it.Loss, "%s %.4g")
	if it.ElapsedMS != nil {
		said += fmt.Sprintf(" · %.3g s", *it.ElapsedMS/1000)
	}
	add("TFLOP/s/GPU", it.TFLOPs, "%.0[2]f %[1]s")
	add("grad norm", it.GradNorm, "%s %.3g")
	return said
}
