package metrics

import (
	"fmt"
	"image/color"
	"io"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
)

// A Bar is one named amount.
type Bar struct {
	Name  string
	Value float64
}

// WriteBars draws amounts as horizontal bars with their values, the first at
// the top, and a line at limit where it is above 0. Labels must be English: the
// font has no Chinese.
func WriteBars(w io.Writer, title, unit string, bars []Bar, limit float64, limitName string) error {
	if len(bars) == 0 {
		return fmt.Errorf("bars of %q: there are none", title)
	}
	text := func(size vg.Length) font.Font {
		return font.Font{Typeface: "Liberation", Variant: "Sans", Size: size}
	}
	p := plot.New()
	p.Title.Text, p.X.Label.Text = title, unit
	p.Title.TextStyle.Font, p.X.Label.TextStyle.Font = text(12), text(9)
	p.X.Tick.Label.Font, p.Y.Tick.Label.Font, p.Legend.TextStyle.Font = text(9), text(9), text(9)
	p.X.Min = 0
	p.Y.Label.Text = " " // room for the longest name
	p.Title.Padding = vg.Points(6)
	values, names, most := make(plotter.Values, len(bars)), make([]string, len(bars)), limit
	for i, b := range bars {
		at := len(bars) - 1 - i
		values[at], names[at] = b.Value, fmt.Sprintf("%s  %.1f", b.Name, b.Value)
		most = max(most, b.Value)
	}
	p.X.Max = most * 1.05
	chart, err := plotter.NewBarChart(values, vg.Points(16))
	if err != nil {
		return fmt.Errorf("bars of %q: %w", title, err)
	}
	chart.Horizontal, chart.Color = true, palette[0]
	chart.LineStyle.Width = 0
	p.Add(chart)
	p.NominalY(names...)
	if limit > 0 {
		line, err := plotter.NewLine(plotter.XYs{{X: limit, Y: -0.5}, {X: limit, Y: float64(len(bars)) - 0.5}})
		if err != nil {
			return fmt.Errorf("bars of %q: %w", title, err)
		}
		line.Color, line.Width = color.RGBA{213, 94, 0, 255}, vg.Points(1.5)
		p.Add(line)
		p.Legend.Add(limitName, line)
		p.Legend.Top = true
	}
	png, err := p.WriterTo(16*vg.Centimeter, vg.Length(len(bars)+4)*vg.Centimeter, "png")
	if err != nil {
		return fmt.Errorf("bars of %q: %w", title, err)
	}
	_, err = png.WriteTo(w)
	return err
}
