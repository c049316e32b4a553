package chart_test

import (
	"bytes"
	"flag"
	"image"
	"image/color"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/chart"
)

// The colours of the first two lines of a chart.
var blue, orange = color.RGBA{0, 114, 178, 255}, color.RGBA{213, 94, 0, 255}

func drawn(t *testing.T, write func(b *bytes.Buffer) error) image.Image {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, write(&b))
	img, err := png.Decode(&b)
	require.NoError(t, err)
	return img
}

// box is the smallest rectangle that contains all pixels of a colour.
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

var update = flag.Bool("update", false, "rewrite the pictures in testdata")

// TestPictures compares each picture with one that a person has approved.
func TestPictures(t *testing.T) {
	var mean, raw []chart.Point
	for i := range 300 {
		x := float64(i)
		y := 9*math.Exp(-x/60) + 2
		mean = append(mean, chart.Point{X: x, Y: y})
		raw = append(raw, chart.Point{X: x, Y: y + math.Sin(x*1.7)/3})
	}
	small := func(scale float64) (ps []chart.Point) {
		for _, p := range raw {
			ps = append(ps, chart.Point{X: p.X, Y: p.Y * scale})
		}
		return ps
	}
	for name, write := range map[string]func(b *bytes.Buffer) error{
		"lines.png": func(b *bytes.Buffer) error {
			return chart.WriteLines(b, []chart.Panel{
				{Title: "Loss", XLabel: "Iteration", Lines: []chart.Line{{Name: "a (4711)", Points: mean, Behind: raw}, {Name: "b (4712)", Points: raw[:100]}}, Low: 1, High: 12},
				{Title: "Tokens/s/GPU", XLabel: "Iteration", Lines: []chart.Line{{Points: small(2500)}}},
				{Title: "Learning rate", XLabel: "Iteration", Lines: []chart.Line{{Points: small(3e-5)}}},
			})
		},
		"bars.png": func(b *bytes.Buffer) error {
			return chart.WriteBars(b, "memory: 37.2 GiB", "GiB", []chart.Bar{{Name: "parameters", Value: 6.2}, {Name: "optimizer", Value: 31}}, 79.1, "h100")
		},
	} {
		t.Run(name, func(t *testing.T) {
			var b bytes.Buffer
			require.NoError(t, write(&b))
			path := filepath.Join("testdata", name)
			if *update {
				require.NoError(t, os.WriteFile(path, b.Bytes(), 0o644))
			}
			f, err := os.Open(path)
			require.NoError(t, err)
			defer f.Close()
			want, err := png.Decode(f)
			require.NoError(t, err)
			got, err := png.Decode(&b)
			require.NoError(t, err)
			require.Equal(t, want.Bounds(), got.Bounds())
			require.Less(t, different(want, got), 50, "pixels differ; look at the picture, and run with -update where it is right")
		})
	}
}

// different counts the pixels that differ visibly. Rounding differs a little between
// processors.
func different(a, b image.Image) (n int) {
	far := func(x, y uint32) bool { return max(x, y)-min(x, y) > 0x1000 }
	for y := range a.Bounds().Dy() {
		for x := range a.Bounds().Dx() {
			r1, g1, b1, _ := a.At(x, y).RGBA()
			r2, g2, b2, _ := b.At(x, y).RGBA()
			if far(r1, r2) || far(g1, g2) || far(b1, b2) {
				n++
			}
		}
	}
	return n
}
