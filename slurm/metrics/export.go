package metrics

import (
	"encoding/csv"
	"fmt"
	"image/color"
	"io"
	"math"
	"strconv"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
)

// WriteCSV writes the run's iterations as a table with a header; values that
// the run does not report are empty.
func (r Run) WriteCSV(w io.Writer) error {
	c := csv.NewWriter(w)
	head := []string{"run", "iteration", "time", "consumed_samples", "global_batch_size"}
	for _, s := range AllSeries {
		head = append(head, s.Name)
	}
	if err := c.Write(head); err != nil {
		return fmt.Errorf("metrics of %s: %w", r.Name, err)
	}
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
		if err := c.Write(row); err != nil {
			return fmt.Errorf("metrics of %s: %w", r.Name, err)
		}
	}
	c.Flush()
	return c.Error()
}

// palette are colours that stay apart in print and for colour-blind readers
// (Okabe and Ito, 2008).
var palette = []color.Color{
	color.RGBA{0, 114, 178, 255}, color.RGBA{213, 94, 0, 255}, color.RGBA{0, 158, 115, 255}, color.RGBA{204, 121, 167, 255}, color.RGBA{230, 159, 0, 255}, color.RGBA{86, 180, 233, 255},
}

// titles name the series on a picture.
var titles = map[string]string{
	"loss": "Loss", "grad_norm": "Gradient norm", "learning_rate": "Learning rate", "iteration_ms": "Time per iteration (ms)", "tokens": "Tokens/s/GPU", "tflops": "TFLOP/s/GPU", "mfu": "MFU", "loss_scale": "Loss scale",
}

// maxDrawn bounds the points of one line on a picture.
const maxDrawn = 4000

// WritePNG draws the named series of the runs as panels of one picture, two
// in a row. Series that no run reports are left out; it is an error where
// nothing is left.
func WritePNG(w io.Writer, runs []Run, series []Series) error {
	var panels []*plot.Plot
	for _, s := range series {
		if len(series) > 1 && s.Name == LossScale.Name && flat(runs, s) {
			continue // without fp16 it is 1 for ever
		}
		p, ok, err := panel(runs, s)
		if err != nil {
			return err
		}
		if ok {
			panels = append(panels, p)
		}
	}
	if len(panels) == 0 {
		return fmt.Errorf("metrics: none of the %d series is reported by any run", len(series))
	}
	cols := min(2, len(panels))
	rows := (len(panels) + cols - 1) / cols
	canvas := vgimg.NewWith(vgimg.UseWH(vg.Length(cols)*14*vg.Centimeter, vg.Length(rows)*8.5*vg.Centimeter), vgimg.UseDPI(150))
	dc := draw.New(canvas)
	tiles := draw.Tiles{Rows: rows, Cols: cols, PadX: 6 * vg.Millimeter, PadY: 6 * vg.Millimeter, PadTop: 4 * vg.Millimeter, PadBottom: 4 * vg.Millimeter, PadLeft: 4 * vg.Millimeter, PadRight: 6 * vg.Millimeter}
	for i, p := range panels {
		p.Draw(tiles.At(dc, i%cols, i/cols))
	}
	if _, err := (vgimg.PngCanvas{Canvas: canvas}).WriteTo(w); err != nil {
		return fmt.Errorf("metrics: %w", err)
	}
	return nil
}

// flat reports whether a series has the same value all along in all runs.
func flat(runs []Run, s Series) bool {
	low, high := math.Inf(1), math.Inf(-1)
	for _, r := range runs {
		for _, p := range r.Points(s) {
			low, high = min(low, p.V), max(high, p.V)
		}
	}
	return low >= high
}

// panel draws one series of all runs.
func panel(runs []Run, s Series) (*plot.Plot, bool, error) {
	p := plot.New()
	p.Title.Text = titles[s.Name]
	p.Title.TextStyle.Font = font.Font{Typeface: "Liberation", Variant: "Sans", Size: 12}
	p.X.Label.Text = "Iteration"
	for _, f := range []*font.Font{&p.X.Label.TextStyle.Font, &p.Y.Label.TextStyle.Font, &p.X.Tick.Label.Font, &p.Y.Tick.Label.Font, &p.Legend.TextStyle.Font} {
		*f = font.Font{Typeface: "Liberation", Variant: "Sans", Size: 9}
	}
	p.Legend.Top = true
	grid := plotter.NewGrid()
	grid.Horizontal.Color, grid.Vertical.Color = color.Gray{225}, color.Gray{240}
	p.Add(grid)
	found, drawn := false, []float64(nil)
	for i, r := range runs {
		ps := r.Points(s)
		if len(ps) == 0 {
			continue
		}
		found = true
		drawn = append(drawn, plainRange(ps)...)
		raw, err := curve(ps, palette[i%len(palette)])
		if err != nil {
			return nil, false, fmt.Errorf("metrics of %s: %w", r.Name, err)
		}
		shown := raw
		if len(ps) >= noisy { // the values stay as a shade behind their running mean
			raw.Width, raw.Color = vg.Points(0.6), shade(raw.Color)
			if shown, err = curve(smooth(ps, len(ps)/60), palette[i%len(palette)]); err != nil {
				return nil, false, fmt.Errorf("metrics of %s: %w", r.Name, err)
			}
			p.Add(raw)
		}
		p.Add(shown)
		if len(runs) > 1 {
			p.Legend.Add(r.Name, shown)
		}
	}
	if found {
		low, high := span(drawn)
		margin := max((high-low)*0.08, max(high, -low)*0.01, 1e-12)
		p.Y.Min, p.Y.Max = low-margin, high+2*margin
	}
	return p, found, nil
}

// noisy is how many points make a line that needs a running mean.
const noisy = 200

// curve is a line through at most maxDrawn of the points.
func curve(ps []Point, c color.Color) (*plotter.Line, error) {
	stride := len(ps)/maxDrawn + 1
	var xy plotter.XYs
	for k := 0; k < len(ps); k += stride {
		xy = append(xy, plotter.XY{X: float64(ps[k].N), Y: ps[k].V})
	}
	line, err := plotter.NewLine(xy)
	if err != nil {
		return nil, err
	}
	line.Width, line.Color = vg.Points(1.4), c
	return line, nil
}

// smooth is the running mean over window points.
func smooth(ps []Point, window int) []Point {
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

// shade is a colour that stays behind another line of the same colour.
func shade(c color.Color) color.Color {
	r, g, b, _ := c.RGBA()
	return color.NRGBA{uint8(r >> 8), uint8(g >> 8), uint8(b >> 8), 70}
}

// plainRange is the lowest and the highest value.
func plainRange(ps []Point) []float64 {
	low, high := span(plain(ps))
	return []float64{low, high}
}
