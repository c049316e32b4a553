package metrics

import (
	"encoding/csv"
	"io"
	"strconv"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/chart"
	"github.com/megatron-ops/megatron-ops/internal/lang"
)

// WriteCSV writes the run's iterations as a table with a header. A value that the run does not report
// is an empty cell.
func (r Run) WriteCSV(w io.Writer) error {
	head := []string{"run", "iteration", "time", "consumed_samples", "global_batch_size"}
	for _, s := range AllSeries {
		head = append(head, s.Name)
	}
	rows := [][]string{head}
	for _, it := range r.Iterations {
		row := []string{r.Name, strconv.Itoa(it.N), "", "", ""}
		if it.Time != nil {
			row[2] = it.Time.Format(time.RFC3339)
		}
		if it.Samples != nil {
			row[3] = strconv.FormatInt(*it.Samples, 10)
		}
		if it.GlobalBatch != nil {
			row[4] = strconv.Itoa(*it.GlobalBatch)
		}
		for _, s := range AllSeries {
			cell := ""
			if v := s.of(it); v != nil {
				cell = strconv.FormatFloat(*v, 'g', -1, 64)
			}
			row = append(row, cell)
		}
		rows = append(rows, row)
	}
	if err := csv.NewWriter(w).WriteAll(rows); err != nil {
		return lang.Text{EN: "metrics of %s: %s", ZH: "%s 的指标：%s"}.Err(r.Name, err)
	}
	return nil
}

// maxDrawn bounds the points of one line in a picture.
const maxDrawn = 4000

// WritePNG draws each of the series, for all runs together, as one panel of a picture with two panels
// in a row. It leaves out a series that no run reports, and returns an error if none is left.
func WritePNG(w io.Writer, runs []Run, series []Series) error {
	var panels []chart.Panel
	for _, s := range series {
		if len(series) > 1 && s.Name == LossScale.Name && flat(runs, s) {
			continue // without fp16 the loss scale is always 1
		}
		if p, ok := panel(runs, s); ok {
			panels = append(panels, p)
		}
	}
	if len(panels) == 0 {
		return lang.Text{EN: "metrics: no run reports any of the %d series", ZH: "指标：%d 个序列在所有运行中都没有"}.Err(len(series))
	}
	return chart.WriteLines(w, panels)
}

// flat reports whether a series has one and the same value in all runs.
func flat(runs []Run, s Series) bool {
	var all []float64
	for _, r := range runs {
		all = append(all, pointValues(r.Points(s))...)
	}
	low, high := span(all)
	return low >= high
}

// smoothFrom is the number of points from which a line is drawn as its running mean.
const smoothFrom = 200

// panel draws one series of all runs; ok is false where no run reports it. A long run is drawn as its
// running mean, with the values themselves as a shade behind it.
func panel(runs []Run, s Series) (p chart.Panel, ok bool) {
	p = chart.Panel{Title: s.title, XLabel: "Iteration"}
	var drawn []float64
	for _, r := range runs {
		ps := r.Points(s)
		if len(ps) == 0 {
			continue
		}
		low, high := span(pointValues(ps))
		drawn = append(drawn, low, high)
		line := chart.Line{Name: r.Name, Points: subsample(ps)}
		if len(ps) >= smoothFrom {
			line.Points, line.Behind = subsample(runningMean(ps, len(ps)/60)), line.Points
		}
		p.Lines = append(p.Lines, line)
	}
	if len(p.Lines) == 0 {
		return p, false
	}
	low, high := span(drawn)
	margin := max((high-low)*0.08, max(high, -low)*0.01, 1e-12)
	p.Low, p.High = low-margin, high+2*margin
	return p, true
}

// subsample returns at most maxDrawn of the points.
func subsample(ps []Point) []chart.Point {
	stride := len(ps)/maxDrawn + 1
	var out []chart.Point
	for k := 0; k < len(ps); k += stride {
		out = append(out, chart.Point{X: float64(ps[k].N), Y: ps[k].V})
	}
	return out
}

// runningMean averages each point with up to window-1 points before it.
func runningMean(ps []Point, window int) []Point {
	out := make([]Point, 0, len(ps))
	sum, from := 0.0, 0
	for i, p := range ps {
		sum += p.V
		if i-from >= window {
			sum -= ps[from].V
			from++
		}
		out = append(out, Point{p.N, sum / float64(i-from+1)})
	}
	return out
}
