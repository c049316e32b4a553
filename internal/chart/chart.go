// Package chart draws line charts and bar charts as PNG pictures, for people who read
// them in a chat or a mail. It knows nothing of what the numbers mean.
package chart

import (
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"io"
	"math"

	"github.com/megatron-ops/megatron-ops/internal/lang"
)

// A Point is one value of a line.
type Point struct{ X, Y float64 }

// A Line is a named series of points, in the order of X. If Behind is set, it holds the
// same values unsmoothed, which are drawn as a shade behind the line.
type Line struct {
	Name   string
	Points []Point
	Behind []Point
}

// A Panel is one set of axes. Low and High bound the vertical axis; if they are equal,
// the points bound it.
type Panel struct {
	Title, XLabel string
	Lines         []Line
	Low, High     float64
}

// palette are colours that are distinguishable in print and for colour-blind readers
// (Okabe and Ito, 2008).
var palette = []color.RGBA{
	{0, 114, 178, 255},
	{213, 94, 0, 255},
	{0, 158, 115, 255},
	{204, 121, 167, 255},
	{230, 159, 0, 255},
	{86, 180, 233, 255},
}

var (
	ink        = color.RGBA{40, 40, 40, 255}
	grid       = color.RGBA{226, 226, 226, 255}
	background = color.RGBA{255, 255, 255, 255}
)

// The sizes of a panel, in pixels.
const (
	panelWidth, panelHeight = 840, 500
	titleSize, labelSize    = 26.0, 19.0
	lineWidth, shadeWidth   = 3.0, 1.4
)

// WriteLines draws the panels, two in a row. Without panels it returns an error.
func WriteLines(w io.Writer, panels []Panel) error {
	if len(panels) == 0 {
		return lang.Text{EN: "chart: there is nothing to draw", ZH: "图表：没有可绘制的内容"}.Err()
	}
	cols := min(2, len(panels))
	rows := (len(panels) + cols - 1) / cols
	c := newCanvas(cols*panelWidth, rows*panelHeight)
	for i, p := range panels {
		at := image.Pt(i%cols*panelWidth, i/cols*panelHeight)
		c.panel(p, image.Rectangle{Min: at, Max: at.Add(image.Pt(panelWidth, panelHeight))})
	}
	return png.Encode(w, c.img)
}

// A Bar is one named amount.
type Bar struct {
	Name  string
	Value float64
}

// WriteBars draws amounts as horizontal bars with their values, the first at the top,
// and a line at limit if it is above 0. The font has no Chinese characters: labels must
// be English.
func WriteBars(w io.Writer, title, unit string, bars []Bar, limit float64, limitName string) error {
	if len(bars) == 0 {
		return lang.Text{EN: "chart: there are no bars of %q", ZH: "图表：%q 没有数据"}.Err(title)
	}
	const row, thick = 56, 30
	c := newCanvas(960, 130+row*len(bars))
	most, names := limit, 0
	for _, b := range bars {
		most, names = max(most, b.Value), max(names, c.width(b.label(), labelSize))
	}
	area := image.Rect(names+36, 60, 930, 60+row*len(bars))
	x := axis{low: 0, high: max(most*1.05, 1e-12), from: area.Min.X, to: area.Max.X}
	c.text(title, area.Min.X+area.Dx()/2, 36, titleSize, ink, middle)
	for _, t := range x.ticks() {
		c.fill(image.Rect(x.at(t), area.Min.Y, x.at(t)+1, area.Max.Y), grid)
		c.text(number(t), x.at(t), area.Max.Y+24, labelSize, ink, middle)
	}
	for i, b := range bars {
		top := area.Min.Y + i*row + (row-thick)/2
		c.fill(image.Rect(area.Min.X, top, x.at(b.Value), top+thick), palette[0])
		c.text(b.label(), area.Min.X-12, top+thick-9, labelSize, ink, right)
	}
	if limit > 0 {
		c.fill(image.Rect(x.at(limit)-1, area.Min.Y, x.at(limit)+2, area.Max.Y), palette[1])
		c.text(limitName, x.at(limit)-8, area.Min.Y-6, labelSize, palette[1], right)
	}
	c.text(unit, area.Min.X+area.Dx()/2, area.Max.Y+52, labelSize, ink, middle)
	return png.Encode(w, c.img)
}

func (b Bar) label() string { return fmt.Sprintf("%s  %.1f", b.Name, b.Value) }

// panel draws one set of axes with its lines into the rectangle.
func (c *canvas) panel(p Panel, r image.Rectangle) {
	x, y := p.span()
	left := 0
	for _, t := range y.ticks() {
		left = max(left, c.width(number(t), labelSize))
	}
	area := image.Rect(r.Min.X+left+34, r.Min.Y+58, r.Max.X-28, r.Max.Y-72)
	x.from, x.to = area.Min.X, area.Max.X
	y.from, y.to = area.Max.Y, area.Min.Y

	c.text(p.Title, area.Min.X+area.Dx()/2, r.Min.Y+36, titleSize, ink, middle)
	for _, t := range x.ticks() {
		c.fill(image.Rect(x.at(t), area.Min.Y, x.at(t)+1, area.Max.Y), grid)
		c.text(number(t), x.at(t), area.Max.Y+26, labelSize, ink, middle)
	}
	for _, t := range y.ticks() {
		c.fill(image.Rect(area.Min.X, y.at(t), area.Max.X, y.at(t)+1), grid)
		c.text(number(t), area.Min.X-10, y.at(t)+6, labelSize, ink, right)
	}
	c.text(p.XLabel, area.Min.X+area.Dx()/2, area.Max.Y+56, labelSize, ink, middle)

	inside := c.img.SubImage(area).(draw.Image)
	for i, l := range p.Lines {
		shade := palette[i%len(palette)]
		stroke(inside, x, y, l.Behind, shadeWidth, color.NRGBA{shade.R, shade.G, shade.B, 90})
		stroke(inside, x, y, l.Points, lineWidth, shade)
	}
	if len(p.Lines) > 1 {
		c.legend(p.Lines, area)
	}
}

// legend names the lines in the upper right corner.
func (c *canvas) legend(lines []Line, area image.Rectangle) {
	for i, l := range lines {
		y := area.Min.Y + 24 + i*26
		from := area.Max.X - 12 - c.width(l.Name, labelSize)
		c.fill(image.Rect(from-44, y-8, from-10, y-4), palette[i%len(palette)])
		c.text(l.Name, area.Max.X-12, y, labelSize, ink, right)
	}
}

// span returns the range of both axes.
func (p Panel) span() (x, y axis) {
	x.low, x.high, y.low, y.high = math.Inf(1), math.Inf(-1), math.Inf(1), math.Inf(-1)
	for _, l := range p.Lines {
		for _, pt := range l.Points {
			x.low, x.high = min(x.low, pt.X), max(x.high, pt.X)
			y.low, y.high = min(y.low, pt.Y), max(y.high, pt.Y)
		}
	}
	if p.Low < p.High {
		y.low, y.high = p.Low, p.High
	}
	return x.drawable(), y.drawable()
}
