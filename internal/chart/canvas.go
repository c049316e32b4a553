package chart

import (
	"image"
	"image/color"
	"image/draw"
	"math"
	"sync"

	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/goregular"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/math/fixed"
	"golang.org/x/image/vector"
)

// A canvas is a picture with text.
type canvas struct {
	img   *image.RGBA
	faces map[float64]font.Face
}

// regular is the font. It is parsed when the first picture is drawn.
var regular = sync.OnceValue(func() *opentype.Font {
	f, err := opentype.Parse(goregular.TTF)
	if err != nil {
		panic("chart: the embedded font cannot be read: " + err.Error())
	}
	return f
})

func newCanvas(width, height int) *canvas {
	c := &canvas{img: image.NewRGBA(image.Rect(0, 0, width, height)), faces: map[float64]font.Face{}}
	c.fill(c.img.Bounds(), background)
	return c
}

func (c *canvas) fill(r image.Rectangle, ink color.Color) {
	draw.Draw(c.img, r, image.NewUniform(ink), image.Point{}, draw.Over)
}

func (c *canvas) face(size float64) font.Face {
	f, ok := c.faces[size]
	if !ok {
		// cannot fail: a parsed font has faces of every size above 0
		f, _ = opentype.NewFace(regular(), &opentype.FaceOptions{Size: size, DPI: 72, Hinting: font.HintingFull})
		c.faces[size] = f
	}
	return f
}

// width returns how many pixels a text takes.
func (c *canvas) width(text string, size float64) int {
	return font.MeasureString(c.face(size), text).Ceil()
}

// The share of a text that lies left of its point.
const (
	middle = 0.5
	right  = 1.0
)

// text writes words on the base line y. side is the share of them left of x.
func (c *canvas) text(words string, x, y int, size float64, ink color.Color, side float64) {
	from := x - int(math.Round(float64(c.width(words, size))*side))
	d := font.Drawer{Dst: c.img, Src: image.NewUniform(ink), Face: c.face(size), Dot: fixed.P(from, y)}
	d.DrawString(words)
}

// stroke draws a line through the points, as far as it lies within dst. A value that is
// not finite interrupts the line.
func stroke(dst draw.Image, x, y axis, points []Point, width float64, ink color.Color) {
	area := dst.Bounds()
	z := vector.NewRasterizer(area.Dx(), area.Dy())
	var before Point
	joined := false
	for _, p := range points {
		if math.IsNaN(p.Y) || math.IsInf(p.Y, 0) {
			joined = false
			continue
		}
		at := Point{x.position(p.X) - float64(area.Min.X), y.position(p.Y) - float64(area.Min.Y)}
		// Draw a value far outside just outside: the rasterizer works with small
		// numbers.
		at.Y = min(max(at.Y, -1e4), 1e4)
		if joined {
			segment(z, before, at, width/2)
		}
		joint(z, at, width/2)
		before, joined = at, true
	}
	z.Draw(dst, area, image.NewUniform(ink), image.Point{})
}

// segment adds a straight piece of a line; half is half its width.
func segment(z *vector.Rasterizer, a, b Point, half float64) {
	dx, dy := b.X-a.X, b.Y-a.Y
	length := math.Hypot(dx, dy)
	if length == 0 {
		return
	}
	nx, ny := -dy/length*half, dx/length*half
	z.MoveTo(float32(a.X+nx), float32(a.Y+ny))
	z.LineTo(float32(a.X-nx), float32(a.Y-ny))
	z.LineTo(float32(b.X-nx), float32(b.Y-ny))
	z.LineTo(float32(b.X+nx), float32(b.Y+ny))
	z.ClosePath()
}

// joint adds a round joint with the same winding direction as a segment, so that the
// two together stay filled.
func joint(z *vector.Rasterizer, at Point, r float64) {
	const corners = 8
	for i := range corners {
		angle := 2 * math.Pi * float64(i) / corners
		px, py := float32(at.X+r*math.Cos(angle)), float32(at.Y+r*math.Sin(angle))
		if i == 0 {
			z.MoveTo(px, py)
		} else {
			z.LineTo(px, py)
		}
	}
	z.ClosePath()
}
