package metrics

import (
	"fmt"
	"strconv"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/view"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logfile"
)

// View shows the summaries of one or more runs and a chart of their loss.
func View(runs []Run, sums []Summary, l lang.Lang) view.Doc {
	word := func(en, zh string) string { return lang.Text{EN: en, ZH: zh}.In(l) }
	doc := view.Doc{Title: word("Metrics", "训练指标")}
	t := view.Table{Header: []string{
		word("run", "运行"), word("iteration", "迭代"), word("loss", "损失"), word("best", "最低"), word("ms/iteration", "毫秒/迭代"),
		"tokens/s/GPU", "TFLOP/s/GPU", "MFU", word("remaining", "预计剩余"),
	}, Spare: []int{3, 5}}
	var losses [][]Point
	for i, r := range runs {
		s := sums[i]
		at := strconv.Itoa(s.Last)
		if s.Of > 0 {
			at += "/" + strconv.Itoa(s.Of)
		}
		left := ""
		if s.ETASeconds != nil {
			left = (time.Duration(*s.ETASeconds) * time.Second).String()
		}
		t.Rows = append(t.Rows, []string{
			s.Name, at, number(s.Loss, 4), number(s.BestLoss, 4), number(s.IterationMS, 1),
			number(s.TokensPerGPU, 0), number(s.TFLOPs, 1), percent(s.MFU), left,
		})
		if ps := r.Points(Loss); len(ps) > 0 {
			losses = append(losses, ps)
		}
	}
	doc.Sections = append(doc.Sections, view.Section{Table: &t})
	if chart := Chart(word("loss", "损失"), losses, 58, 12); chart != "" {
		doc.Sections = append(doc.Sections, view.Section{Code: chart, Narrow: Chart(word("loss", "损失"), losses, 36, 12)})
	}
	for _, r := range runs {
		if len(r.OtherJobs) > 0 {
			doc.Sections = append(doc.Sections, view.Section{Text: lang.Text{
				EN: "%s: files of older jobs in this folder were not read: %s; name a file to read it",
				ZH: "%s：以下文件属于该目录中较早的作业，未读取：%s；直接给出文件名即可读取",
			}.With(r.Name, logfile.Few(r.OtherJobs)).In(l)})
		}
		for _, f := range r.Check() {
			doc.Tone = view.Warn
			doc.Sections = append(doc.Sections, view.Section{Text: f.What.In(l) + " " + f.Fix.In(l)})
		}
	}
	return doc
}

func number(v *float64, decimals int) string {
	if v == nil {
		return ""
	}
	return strconv.FormatFloat(*v, 'f', decimals, 64)
}

func percent(v *float64) string {
	if v == nil {
		return ""
	}
	return fmt.Sprintf("%.1f %%", 100**v)
}
