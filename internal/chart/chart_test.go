package chart_test

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/chart"
)

// The first two colours of lines.
var blue, orange = color.RGBA{0, 114, 178, 255}, color.RGBA{213, 94, 0, 255}

func drawn(t *testing.T, write func(b *bytes.Buffer) error) image.Image {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, write(&b))
	img, err := png.Decode(&b)
	require.NoError(t, err)
	return img
}

// box is the smallest rectangle that holds all pixels of a colour.
func box(img image.Image, c color.RGBA) image.Rectangle {
	var r image.Rectangle
	for y := range img.Bounds().Dy() {
		for x := range img.Bounds().Dx() {
			if color.RGBAModel.Convert(img.At(x, y)) == c {
				r = r.Union(image.Rect(x, y, x+1, y+1))
			}
		}
	}
	return r
}

func TestALineThatFallsFallsOnThePicture(t *testing.T) {
	falling := chart.Line{Name: "a", Points: []chart.Point{{X: 0, Y: 10}, {X: 100, Y: 2}}}
	img := drawn(t, func(b *bytes.Buffer) error {
		return chart.WriteLines(b, []chart.Panel{{Title: "Loss", XLabel: "Iteration", Lines: []chart.Line{falling}}})
	})
	r := box(img, blue)
	require.Greater(t, r.Dx(), img.Bounds().Dx()*3/4, "it uses the width")
	require.Greater(t, r.Dy(), img.Bounds().Dy()/2, "it uses the height")
	high := func(x int) int {
		for y := range img.Bounds().Dy() {
			if color.RGBAModel.Convert(img.At(x, y)) == blue {
				return y
			}
		}
		return -1
	}
	require.Less(t, high(r.Min.X+20), high(r.Max.X-20), "a lower value stands lower")
}

func TestPanelsStandTwoInARow(t *testing.T) {
	p := chart.Panel{Title: "Loss", Lines: []chart.Line{{Points: []chart.Point{{X: 1, Y: 1}, {X: 2, Y: 2}}}}}
	one := drawn(t, func(b *bytes.Buffer) error { return chart.WriteLines(b, []chart.Panel{p}) }).Bounds()
	three := drawn(t, func(b *bytes.Buffer) error { return chart.WriteLines(b, []chart.Panel{p, p, p}) }).Bounds()
	require.Equal(t, image.Pt(2*one.Dx(), 2*one.Dy()), three.Max)
	require.Error(t, chart.WriteLines(&bytes.Buffer{}, nil))
}

func TestValuesThatCannotBeDrawnBreakNothing(t *testing.T) {
	for name, ys := range map[string][]float64{
		"one value":  {3},
		"all alike":  {2, 2, 2},
		"not finite": {1, math.NaN(), 2, math.Inf(1), 3},
		"nothing":    nil,
		"huge":       {1e300, -1e300},
	} {
		t.Run(name, func(t *testing.T) {
			var l chart.Line
			for i, y := range ys {
				l.Points = append(l.Points, chart.Point{X: float64(i), Y: y})
			}
			drawn(t, func(b *bytes.Buffer) error {
				return chart.WriteLines(b, []chart.Panel{{Lines: []chart.Line{l}, High: 4}})
			})
		})
	}
}

func TestBarsAreAsLongAsTheirValues(t *testing.T) {
	length := func(v float64) int {
		img := drawn(t, func(b *bytes.Buffer) error {
			return chart.WriteBars(b, "memory", "GiB", []chart.Bar{{Name: "all", Value: v}}, 80, "h100")
		})
		require.False(t, box(img, orange).Empty(), "the limit is drawn")
		return box(img, blue).Dx()
	}
	require.InEpsilon(t, 2, float64(length(60))/float64(length(30)), 0.02)
	require.Error(t, chart.WriteBars(&bytes.Buffer{}, "nothing", "GiB", nil, 0, ""))
}
