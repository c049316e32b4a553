package metrics

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/view"
)

// Sparkline draws a series as one line of at most width characters.
func Sparkline(ps []Point, width int) string { return view.Bars(downsample(ps, width)) }

// downsample averages a series into at most n cells.
func downsample(ps []Point, n int) (cells []float64) {
	n = min(n, len(ps))
	for c := range n {
		from, to := c*len(ps)/n, (c+1)*len(ps)/n
		sum := 0.0
		for _, p := range ps[from:to] {
			sum += p.V
		}
		cells = append(cells, sum/float64(to-from))
	}
	return cells
}

func span(vs []float64) (low, high float64) {
	low, high = math.Inf(1), math.Inf(-1)
	for _, v := range vs {
		low, high = min(low, v), max(high, v)
	}
	return low, high
}

// Chart draws a series of one or more runs in braille dots, two by four to a character, as a block of
// width by height characters. It labels the ends of both axes. Where there is nothing to draw it
// returns the empty string.
func Chart(title string, runs [][]Point, width, height int) string {
	first, last := math.MaxInt, math.MinInt
	low, high := math.Inf(1), math.Inf(-1)
	for _, ps := range runs {
		for _, p := range ps {
			first, last = min(first, p.N), max(last, p.N)
			low, high = min(low, p.V), max(high, p.V)
		}
	}
	if last < first || width < 12 || height < 2 {
		return ""
	}
	labels := []string{formatShort(high), formatShort(low)}
	margin := max(len(labels[0]), len(labels[1]))
	cols := width - margin - 2
	if cols < 4 {
		return ""
	}
	grid := make([][]rune, height)
	for y := range grid {
		grid[y] = []rune(strings.Repeat("\u2800", cols))
	}
	for _, ps := range runs {
		drawLine(grid, ps, first, last, low, high)
	}
	var b strings.Builder
	if title != "" {
		fmt.Fprintf(&b, "%*s  %s\n", margin, "", title)
	}
	for y, row := range grid {
		label := ""
		switch y {
		case 0:
			label = labels[0]
		case height - 1:
			label = labels[1]
		}
		fmt.Fprintf(&b, "%*s ┤%s\n", margin, label, string(row))
	}
	left, right := strconv.Itoa(first), strconv.Itoa(last)
	fmt.Fprintf(&b, "%*s  %s%*s", margin, "", left, max(1, cols-len(left)), right)
	return b.String()
}

// dots are the bits of a braille character, by column and row.
var dots = [2][4]rune{{0x01, 0x02, 0x04, 0x40}, {0x08, 0x10, 0x20, 0x80}}

// drawLine draws a series' points into grid and connects them.
func drawLine(grid [][]rune, ps []Point, first, last int, low, high float64) {
	w, h := 2*len(grid[0]), 4*len(grid)
	at := func(p Point) (x, y int) {
		if last > first {
			x = int(float64(p.N-first) / float64(last-first) * float64(w-1))
		}
		y = h / 2
		if high > low {
			y = int((high - p.V) / (high - low) * float64(h-1))
		}
		return x, y
	}
	for i, p := range ps {
		x, y := at(p)
		if i == 0 {
			grid[y/4][x/2] |= dots[x%2][y%4]
			continue
		}
		px, py := at(ps[i-1])
		steps := max(max(x-px, px-x), max(y-py, py-y), 1)
		for s := 0; s <= steps; s++ {
			cx, cy := px+(x-px)*s/steps, py+(y-py)*s/steps
			grid[cy/4][cx/2] |= dots[cx%2][cy%4]
		}
	}
}

// formatShort formats a number in at most eight characters.
func formatShort(v float64) string {
	switch a := math.Abs(v); {
	case a == 0:
		return "0"
	case a >= 1e5 || a < 1e-3:
		return strconv.FormatFloat(v, 'e', 2, 64)
	case a >= 100:
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'g', 4, 64)
}
